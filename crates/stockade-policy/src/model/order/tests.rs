use proptest::prelude::*;
use proptest::sample::select;
use stockade_rules::AbsPath;

use super::super::*;
use super::*;

fn abs(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn place() -> Surroundings {
    Surroundings::new(abs("/ws"))
        .with_home(abs("/home/u"))
        .with_tmpdir(abs("/ws/t"))
}

fn at_most(new: &SandboxPolicy, old: &SandboxPolicy) -> bool {
    new.is_at_most_in(old, &place())
}

fn external(text: &str) -> SandboxPolicy {
    SandboxPolicy::ExternalSandbox {
        description: text.to_owned(),
    }
}

fn workspace(roots: &[&str]) -> SandboxPolicy {
    SandboxPolicy::workspace_write(roots.iter().map(PathBuf::from).collect())
}

#[test]
fn the_table_of_variants() {
    let read_only = SandboxPolicy::read_only();
    let write = SandboxPolicy::workspace_write_with_limits(
        vec!["/a".into()],
        ResourceLimits::conservative(),
    );
    let (danger, other) = (SandboxPolicy::full_access(), external("x"));
    let all = [&read_only, &write, &danger, &other];
    let allowed: Vec<Vec<bool>> = all
        .iter()
        .map(|from| {
            all.iter()
                .map(|to| from.can_set_in(to, &place()).is_ok())
                .collect()
        })
        .collect();
    assert_eq!(
        allowed,
        [
            [true, false, false, false],
            [true, true, false, false],
            [true, true, true, true],
            [true, true, false, true],
        ]
    );
    assert!(!at_most(&external("x"), &external("y")));
    assert!(read_only.can_set(&danger).is_err());
    assert!(danger.can_set(&read_only).is_ok());
}

#[test]
fn a_widening_is_named() {
    let old = SandboxPolicy::workspace_write_with_limits(vec![], ResourceLimits::moderate());
    let error = |new: SandboxPolicy| match old.can_set_in(&new, &place()) {
        Err(CanSetError::Wider(widening)) => widening,
        other => panic!("{other:?}"),
    };
    let limits = ResourceLimits::moderate();
    let roots = || vec![PathBuf::from("/a")];
    assert_eq!(
        error(SandboxPolicy::workspace_write_with_limits(roots(), limits)),
        Widening::Write("/a".into())
    );
    assert_eq!(
        error(SandboxPolicy::workspace_write_with_limits(
            vec![],
            limits.with_max_pids(0)
        )),
        Widening::Limit("max_pids")
    );
    let full = |list, sensitive, seccomp| {
        SandboxPolicy::workspace_write_full(vec![], list, sensitive, limits, seccomp)
    };
    assert_eq!(
        error(full(
            vec![NetworkAllowlistEntry::https("a.test")],
            None,
            SeccompProfile::strict()
        )),
        Widening::Network("a.test:443".into())
    );
    assert_eq!(
        error(full(vec![], Some(vec![]), SeccompProfile::strict())),
        Widening::Sensitive("~/.ssh".into())
    );
    assert_eq!(
        error(full(vec![], None, SeccompProfile::logging())),
        Widening::Seccomp("log_only".into())
    );
    assert_eq!(error(external("x")), Widening::External);
    assert_eq!(error(SandboxPolicy::full_access()), Widening::FullAccess);
}

#[test]
fn giving_up_roots_is_narrowing() {
    assert!(at_most(&workspace(&["/a"]), &workspace(&["/a", "/b"])));
    assert!(at_most(&workspace(&["/a/sub"]), &workspace(&["/a"])));
    assert!(at_most(&workspace(&[]), &workspace(&["/a"])));
    assert!(!at_most(&workspace(&["/a"]), &workspace(&["/a/sub"])));
    // Writable where commands start today, but not where they may start tomorrow.
    assert!(!at_most(&workspace(&["/ws"]), &workspace(&[])));
}

#[test]
fn an_unnamed_working_directory_is_wider_than_a_named_one() {
    let with = |exclude_cwd: bool| {
        let json = r#"{"type":"workspace_write","writable_roots":[{"root":"/ws"}],"exclude_cwd":"#;
        SandboxPolicy::from_json(format!("{json}{exclude_cwd}}}").as_bytes()).unwrap()
    };
    assert_eq!(
        with(false).widening_over(&with(true), &place()),
        Some(Widening::Flag("exclude_cwd"))
    );
    assert!(at_most(&with(true), &with(false)));
}

#[test]
fn reaching_into_what_is_protected_is_widening() {
    for root in [
        "/a/.git/hooks",
        "/a/.git/hooks/x",
        "/home/u/.ssh",
        "/home/u/.ssh/x",
    ] {
        assert!(
            !at_most(&workspace(&[root]), &workspace(&["/a", "/home/u"])),
            "{root}"
        );
    }
    // `/a/.git` alone would not be protected at its hooks.
    assert!(!at_most(&workspace(&["/a/.git"]), &workspace(&["/a"])));
    // Nor would they, seen from above, once `/ws/b` is no longer a root.
    assert!(!at_most(&workspace(&[]), &workspace(&["/ws/b"])));
}

#[test]
fn an_approval_lets_one_command_have_one_wider_policy() {
    let approver = Approver::danger_on_behalf_of_the_user();
    let (old, new) = (SandboxPolicy::read_only(), SandboxPolicy::full_access());
    let command = CommandSpec::new("make").with_args(["install"]);
    let approve = || {
        approver
            .approve(ApprovalScope::new(&command, &new), "needs the system")
            .unwrap()
    };
    assert_eq!(old.can_set_with(&new, &command, approve()), Ok(()));
    let other = CommandSpec::new("make").with_args(["uninstall"]);
    assert_eq!(
        old.can_set_with(&new, &other, approve()),
        Err(ApprovalError::Mismatch("the command").into())
    );
    assert_eq!(
        old.can_set_with(&external("x"), &command, approve()),
        Err(ApprovalError::Mismatch("the policy").into())
    );
}

const PATHS: &[&str] = &[
    "/",
    "/ws",
    "/ws/a",
    "/ws/a/b",
    "/ws/t",
    "/tmp",
    "/tmp/x",
    "/home/u",
    "/home/u/.ssh",
    "/home/u/.ssh/k",
    "/ws/.git",
    "/ws/.git/hooks",
    "/ws/a/.git/hooks/x",
    "/ws/a/.env",
    "/etc",
];

fn arb_sensitive() -> impl Strategy<Value = SensitivePath> {
    let path = prop_oneof![
        select(PATHS).prop_map(str::to_owned),
        select(vec![
            "~/.ssh",
            "~",
            "**/.env",
            "**/a/.env",
            "**/a",
            "**/*",
            "**/[ab]/b"
        ])
        .prop_map(str::to_owned),
    ];
    (
        path,
        select(vec![(true, true), (false, true), (true, false)]),
    )
        .prop_map(|(path, (block_read, block_write))| SensitivePath {
            path: path.into(),
            block_read,
            block_write,
        })
}

fn arb_list<T: std::fmt::Debug>(item: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    proptest::collection::vec(item, 0..3)
}

fn arb_network() -> impl Strategy<Value = Network> {
    let domain = select(vec![
        "a.test",
        "*.a.test",
        "x.a.test",
        "10.0.0.0/30",
        "10.0.0.1",
        "*",
        "b",
    ]);
    let entry =
        (domain, select(vec![443, 22])).prop_map(|(d, p)| NetworkAllowlistEntry::with_port(d, p));
    prop_oneof![
        Just(Network::Off),
        Just(Network::Open),
        arb_list(entry).prop_map(Network::Allowlist),
    ]
}

fn arb_limits() -> impl Strategy<Value = ResourceLimits> {
    (0_u64..3, 0_u32..2, select(vec![0_u64, 100, 300, 500])).prop_map(|(memory, pids, secs)| {
        ResourceLimits::unlimited()
            .with_memory_mb(memory)
            .with_max_pids(pids)
            .with_timeout_secs(secs)
    })
}

fn arb_seccomp() -> impl Strategy<Value = SeccompProfile> {
    let calls = proptest::sample::subsequence(vec!["ptrace", "unshare", "bpf"], 0..=3);
    (calls, any::<[bool; 3]>()).prop_map(|(calls, [namespaces, sockets, log_only])| {
        SeccompProfile {
            blocked_syscalls: calls.into_iter().map(str::to_owned).collect(),
            allow_namespaces: namespaces,
            allow_network_sockets: sockets,
            log_only,
        }
    })
}

fn arb_policy() -> impl Strategy<Value = SandboxPolicy> {
    // Most fields at their default most of the time, or hardly any two policies are comparable.
    let common = (
        prop_oneof![3 => Just(Network::Off), 2 => arb_network()],
        arb_list(select(PATHS).prop_map(PathBuf::from)),
        prop_oneof![2 => Just(None), 1 => Just(Some(vec![])), 4 => arb_list(arb_sensitive()).prop_map(Some)],
        prop_oneof![3 => Just(ResourceLimits::conservative()), 1 => arb_limits()],
        prop_oneof![3 => Just(SeccompProfile::strict()), 1 => arb_seccomp()],
    );
    let roots = arb_list(select(PATHS).prop_map(WritableRoot::new));
    let write = (common, proptest::option::of((roots, any::<[bool; 3]>()))).prop_map(
        |((network, readable_paths, sensitive_paths, resource_limits, seccomp_profile), write)| {
            match write {
                None => SandboxPolicy::ReadOnly {
                    network,
                    readable_paths,
                    sensitive_paths,
                    resource_limits,
                    seccomp_profile,
                },
                Some((writable_roots, [cwd, tmpdir, slash_tmp])) => SandboxPolicy::WorkspaceWrite {
                    writable_roots,
                    network,
                    readable_paths,
                    sensitive_paths,
                    resource_limits,
                    seccomp_profile,
                    exclude_cwd: cwd,
                    exclude_tmpdir_env_var: tmpdir,
                    exclude_slash_tmp: slash_tmp,
                },
            }
        },
    );
    prop_oneof![
        12 => write,
        1 => Just(SandboxPolicy::DangerFullAccess),
        1 => select(vec!["x", "y"]).prop_map(external),
    ]
}

/// A policy and one made from it by a small change: random pairs are hardly ever comparable.
fn arb_related() -> impl Strategy<Value = (SandboxPolicy, SandboxPolicy)> {
    (arb_policy(), arb_policy(), arb_take()).prop_map(|(one, donor, take)| {
        let other = graft(&one, &donor, take);
        (one, other)
    })
}

/// Which fields to change: few, so that the others don't decide.
fn arb_take() -> impl Strategy<Value = [bool; 8]> {
    proptest::array::uniform8(proptest::bool::weighted(0.25))
}

fn pick<T: Clone>(take: bool, one: &T, donor: &T) -> T {
    if take { donor.clone() } else { one.clone() }
}

/// `one`, with some fields of `donor`.
fn graft(one: &SandboxPolicy, donor: &SandboxPolicy, take: [bool; 8]) -> SandboxPolicy {
    use SandboxPolicy::WorkspaceWrite;
    let (
        WorkspaceWrite {
            writable_roots: r1,
            network: n1,
            readable_paths: p1,
            sensitive_paths: s1,
            resource_limits: l1,
            seccomp_profile: c1,
            exclude_cwd: e1,
            exclude_tmpdir_env_var: t1,
            exclude_slash_tmp: x1,
        },
        WorkspaceWrite {
            writable_roots: r2,
            network: n2,
            readable_paths: p2,
            sensitive_paths: s2,
            resource_limits: l2,
            seccomp_profile: c2,
            exclude_cwd: e2,
            exclude_tmpdir_env_var: t2,
            exclude_slash_tmp: x2,
        },
    ) = (one, donor)
    else {
        return if take[0] { donor.clone() } else { one.clone() };
    };
    WorkspaceWrite {
        writable_roots: pick(take[0], r1, r2),
        network: pick(take[1], n1, n2),
        readable_paths: pick(take[2], p1, p2),
        sensitive_paths: pick(take[3], s1, s2),
        resource_limits: pick(take[4], l1, l2),
        seccomp_profile: pick(take[5], c1, c2),
        exclude_cwd: pick(take[6], e1, e2),
        exclude_tmpdir_env_var: pick(take[7], t1, t2),
        exclude_slash_tmp: pick(take[7], x1, x2),
    }
}

fn arb_path() -> impl Strategy<Value = PathBuf> {
    let tail = select(vec![
        "",
        "x",
        ".git/hooks/x",
        ".git",
        ".env",
        "a/.env",
        "a",
        "b/b",
        ".ssh/k",
        "../etc",
        ".codex",
    ]);
    (select(PATHS), tail).prop_map(|(head, tail)| Path::new(head).join(tail))
}

/// Everything that `new` permits about this path and about some hosts, `old` permits.
fn permits_no_more(
    new: &SandboxPolicy,
    old: &SandboxPolicy,
    path: &Path,
    place: &Surroundings,
) -> bool {
    let no_more = |permits: &dyn Fn(&SandboxPolicy) -> bool| !permits(new) || permits(old);
    let hosts = ["a.test", "x.a.test", "b", "10.0.0.1", "10.0.0.3", "8.8.8.8"];
    no_more(&|policy| policy.is_path_readable_in(path, place))
        && no_more(&|policy| policy.is_path_writable_in(path, place))
        && no_more(&SandboxPolicy::has_full_network_access)
        && no_more(&SandboxPolicy::has_full_disk_write_access)
        && hosts.iter().all(|host| {
            [443, 22, 80]
                .iter()
                .all(|port| no_more(&|policy| policy.is_network_allowed(host, *port)))
        })
}

proptest! {
    #[test]
    fn reflexive(policy in arb_policy()) {
        prop_assert_eq!(policy.widening_over(&policy, &place()), None);
    }

    #[test]
    fn transitive(
        (a, b) in arb_related(), donor in arb_policy(), take in arb_take(),
    ) {
        let c = graft(&b, &donor, take);
        for [x, y, z] in [[&a, &b, &c], [&b, &a, &c], [&a, &c, &b], [&c, &b, &a], [&c, &a, &b], [&b, &c, &a]] {
            if at_most(x, y) && at_most(y, z) {
                prop_assert!(at_most(x, z), "{:?}", x.widening_over(z, &place()));
            }
        }
    }

    #[test]
    fn antisymmetric_up_to_what_is_permitted(
        (a, b) in arb_related(), paths in proptest::collection::vec(arb_path(), 8),
    ) {
        if at_most(&a, &b) && at_most(&b, &a) {
            for path in &paths {
                prop_assert!(permits_no_more(&a, &b, path, &place()));
                prop_assert!(permits_no_more(&b, &a, path, &place()));
            }
            prop_assert_eq!(a.resource_limits().effective_timeout_secs(), b.resource_limits().effective_timeout_secs());
        }
    }

    #[test]
    fn never_widening(
        (old, new) in arb_related(), paths in proptest::collection::vec(arb_path(), 12),
    ) {
        if old.can_set_in(&new, &place()).is_ok() {
            for path in &paths {
                prop_assert!(permits_no_more(&new, &old, path, &place()), "{:?}", path);
            }
        }
    }

    /// The answer holds wherever later commands start, but for protected names; see the module.
    #[test]
    fn never_widening_elsewhere(
        (old, new) in arb_related(), cwd in select(PATHS),
        paths in proptest::collection::vec(arb_path(), 12),
    ) {
        let elsewhere = Surroundings { cwd: abs(cwd), ..place() };
        let protected = |path: &Path| {
            path.components().any(|part| [".git", ".codex"].iter().any(|name| part.as_os_str() == *name))
        };
        if old.can_set_in(&new, &place()).is_ok() {
            for path in paths.iter().filter(|path| !protected(path)) {
                prop_assert!(permits_no_more(&new, &old, path, &elsewhere), "{:?}", path);
            }
        }
    }

    /// The check is not vacuous: taking things away is accepted.
    #[test]
    fn taking_away_is_narrowing(policy in arb_policy(), entry in arb_sensitive()) {
        let mut narrower = policy.clone();
        match &mut narrower {
            SandboxPolicy::ReadOnly { network, sensitive_paths, readable_paths, .. }
            | SandboxPolicy::WorkspaceWrite { network, sensitive_paths, readable_paths, .. } => {
                *network = Network::Off;
                readable_paths.clear();
                sensitive_paths.get_or_insert_with(default_sensitive_paths).push(entry);
            }
            SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => {}
        }
        let widening = narrower.widening_over(&policy, &place());
        // Stating the default list gives it the rank of what the user states, which may win a tie
        // that it lost before; that is narrowing as well.
        prop_assert_eq!(widening, None);
    }

    #[test]
    fn a_grant_adds_only_what_it_names(
        policy in arb_policy(), granted in select(PATHS), path in arb_path(), write in any::<bool>(),
    ) {
        let list = vec![PathBuf::from(granted)];
        let extra = if write {
            AdditionalPermissions { fs_write: list, ..Default::default() }
        } else {
            AdditionalPermissions { fs_read: list, ..Default::default() }
        };
        let wider = policy.with_additional_permissions(&extra, &place()).unwrap();
        let named = AbsPath::new(&path).unwrap().is_within(&abs(granted));
        let place = place();
        if wider.is_path_writable_in(&path, &place) {
            prop_assert!((write && named) || policy.is_path_writable_in(&path, &place));
        }
        if wider.is_path_readable_in(&path, &place) {
            prop_assert!(named || policy.is_path_readable_in(&path, &place));
        }
        prop_assert_eq!(wider.network(), policy.network());
    }

    #[test]
    fn json_round_trips(policy in arb_policy()) {
        let json = policy.to_json().unwrap();
        match SandboxPolicy::from_json(json.as_bytes()) {
            Ok(back) => {
                prop_assert!(at_most(&back, &policy), "{:?}", back.widening_over(&policy, &place()));
                prop_assert!(at_most(&policy, &back), "{:?}", policy.widening_over(&back, &place()));
            }
            // Code can hold entries that documents may not.
            Err(_) => prop_assert!(policy.network_allowlist().iter().any(|e| e.pattern().is_err())),
        }
    }

    #[test]
    fn no_document_panics(document in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = SandboxPolicy::from_json(&document);
    }
}
