//! Proofs that programs do what their specifications say, and that the profiles say what they
//! should.

mod equality;
mod oracle;
mod profiles;
mod random;

use super::*;

/// Every option set a proof runs over, with a name for messages.
fn option_sets() -> Vec<(&'static str, ProfileOptions)> {
    let native = ProfileOptions::native();
    let all = Mediation {
        files: true,
        reads: false,
        attributes: true,
        owners: true,
        times: true,
        unix_sockets: true,
    };
    vec![
        ("native", native.clone()),
        ("shared", ProfileOptions::shared_namespaces()),
        (
            "permissive",
            ProfileOptions {
                kind: ProfileKind::Permissive,
                ..native.clone()
            },
        ),
        (
            "logging",
            ProfileOptions {
                kind: ProfileKind::Logging,
                ..native.clone()
            },
        ),
        (
            "nested",
            ProfileOptions {
                allow_namespaces: true,
                ..native.clone()
            },
        ),
        ("unmediated", ProfileOptions::unmediated()),
        (
            "unmediated and logged",
            ProfileOptions {
                kind: ProfileKind::Logging,
                ..ProfileOptions::unmediated()
            },
        ),
        (
            "mediated",
            ProfileOptions {
                mediation: Some(all),
                ..native.clone()
            },
        ),
        (
            "mediated without owners",
            ProfileOptions {
                mediation: Some(Mediation {
                    owners: false,
                    ..all
                }),
                ..native.clone()
            },
        ),
        (
            "mediated reads and datagrams",
            ProfileOptions {
                mediation: Some(Mediation { reads: true, ..all }),
                unix_datagrams: UnixDatagrams::Mediate,
                ..native.clone()
            },
        ),
        (
            "mediated sockets",
            ProfileOptions {
                mediation: Some(Mediation {
                    files: false,
                    ..all
                }),
                ..native.clone()
            },
        ),
        (
            "logged and mediated",
            ProfileOptions {
                kind: ProfileKind::Logging,
                mediation: Some(all),
                ..native.clone()
            },
        ),
        (
            "custom",
            ProfileOptions {
                blocked: Some(vec!["mkdir".into(), "mkdir".into(), "umount".into()]),
                extra_blocked: vec!["openat".into(), "ioctl".into()],
                mediation: Some(all),
                ..native
            },
        ),
    ]
}

/// A call on the architecture of a filter.
fn call(arch: Arch, name: &str, args: &[u64]) -> SyscallData {
    let mut data = SyscallData {
        number: arch
            .number(name)
            .unwrap_or_else(|| panic!("{name} on {arch:?}")),
        arch: arch.audit(),
        args: [0; 6],
    };
    data.args[..args.len()].copy_from_slice(args);
    data
}
