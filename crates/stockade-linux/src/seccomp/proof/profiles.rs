//! What the profiles must refuse and must let pass, written down by hand.

use super::*;

const EPERM: Action = Action::Errno(1);
const EBUSY: Action = Action::Errno(16);
const ENOSYS: Action = Action::Errno(38);
const EPROTONOSUPPORT: Action = Action::Errno(93);
const EAFNOSUPPORT: Action = Action::Errno(97);
use Action::{Allow, KillProcess, Log, Notify};

const BOTH: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];
/// A bit that the kernel does not look at in an `int`.
const HIGH: u64 = 1 << 40;

struct Filter {
    spec: FilterSpec,
    program: Program,
}

impl Filter {
    fn new(arch: Arch, options: &ProfileOptions) -> Self {
        let spec = options.filter(arch).unwrap();
        let program = compile(&spec).unwrap();
        Self { spec, program }
    }

    fn action(&self, name: &str, args: &[u64]) -> Action {
        emulate(&self.program, &call(self.spec.arch, name, args))
            .unwrap()
            .action
    }

    #[track_caller]
    fn expect(&self, name: &str, args: &[u64], action: Action) {
        if self.spec.arch.number(name).is_some() {
            assert_eq!(
                self.action(name, args),
                action,
                "{name} {args:x?} {:?}",
                self.spec.arch
            );
        }
    }
}

/// `BLOCKED_SYSCALLS` and what such lists tend to leave out, with the arguments of an attack where arguments matter.
#[test]
fn every_call_of_the_published_lists_is_refused() {
    let strict = ProfileOptions::shared_namespaces();
    for arch in BOTH {
        let filter = Filter::new(arch, &strict);
        for name in "ptrace mount umount umount2 init_module finit_module delete_module kexec_load \
             kexec_file_load bpf perf_event_open userfaultfd process_vm_readv process_vm_writev \
             reboot swapon swapoff settimeofday clock_settime adjtimex add_key request_key keyctl \
             ioperm iopl acct quotactl setns fsopen fsconfig fsmount fspick move_mount open_tree \
             open_tree_attr mount_setattr pivot_root chroot open_by_handle_at name_to_handle_at \
             io_uring_setup io_uring_enter io_uring_register pidfd_getfd process_madvise kcmp \
             syslog clock_adjtime modify_ldt quotactl_fd vhangup nfsservctl lookup_dcookie \
             fanotify_init sethostname setdomainname move_pages migrate_pages"
            .split(' ')
        {
            filter.expect(name, &[], EPERM);
            filter.expect(name, &[u64::MAX; 6], EPERM);
        }
        filter.expect("clone3", &[], ENOSYS);
    }
}

#[test]
fn namespaces_are_refused_and_threads_are_not() {
    const THREAD: u64 = 0x003d_0f00; // what the C library's thread start asks for
    let flags = [
        0x2_0000u64,
        0x200_0000,
        0x400_0000,
        0x800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ];
    for arch in BOTH {
        let filter = Filter::new(arch, &ProfileOptions::native());
        let nested = Filter::new(
            arch,
            &ProfileOptions {
                allow_namespaces: true,
                ..ProfileOptions::native()
            },
        );
        for flag in flags {
            for args in [flag, flag | 0x11, flag | THREAD, flag | HIGH] {
                filter.expect("clone", &[args], EPERM);
                filter.expect("unshare", &[args], EPERM);
                nested.expect("clone", &[args], Allow);
                nested.expect("unshare", &[args], Allow);
            }
        }
        filter.expect("unshare", &[0x80], EPERM); // CLONE_NEWTIME
        filter.expect("unshare", &[0x10_0000], EPERM); // flags of kernels to come
        filter.expect("unshare", &[0x600], Allow); // CLONE_FILES | CLONE_FS
        filter.expect("clone", &[17], Allow); // fork
        filter.expect("clone", &[0x11 | HIGH], Allow); // the kernel ignores the upper half
        filter.expect("clone", &[THREAD], Allow);
        filter.expect("clone", &[0x4111], Allow); // vfork: CLONE_VM | CLONE_VFORK | SIGCHLD
        filter.expect("vfork", &[], Allow);
        nested.expect("clone3", &[], Allow);
        nested.expect("setns", &[], Allow);
        nested.expect("mount", &[], EPERM);
    }
}

#[test]
fn sockets_by_family_type_and_protocol() {
    const CLOEXEC: u64 = 0o2_000_000;
    const NONBLOCK: u64 = 0o4000;
    let rows: &[(&[u64], Action)] = &[
        (&[1, 1, 0], Allow),
        (&[1, 1 | CLOEXEC | NONBLOCK, 0], Allow),
        (&[1, 5, 0], Allow),
        (&[1, 2, 0], EPERM),
        (&[1, 2 | CLOEXEC, 0], EPERM),
        (&[0x1 | HIGH, 0x2 | HIGH, 0], EPERM),
        (&[1, 3, 0], EPERM), // SOCK_RAW is SOCK_DGRAM to AF_UNIX
        (&[2, 1, 0], Allow),
        (&[2, 1 | NONBLOCK, 6], Allow),
        (&[10, 2, 17], Allow),
        (&[2, 2, 1], Allow), // ping
        (&[10, 2, 58], Allow),
        (&[2, 1, 262], EPROTONOSUPPORT), // MPTCP
        (&[2, 1, 256], EPROTONOSUPPORT), // SMC
        (&[2, 1, 132], EPROTONOSUPPORT), // SCTP
        (&[2, 3, 1], EPERM),
        (&[10, 3, 255], EPERM),
        (&[2 | HIGH, 3 | HIGH, 6], EPERM),
        (&[2, 10, 0x300], EPROTONOSUPPORT), // SOCK_PACKET turns AF_INET into AF_PACKET
        (&[16, 3, 0], Allow),               // netlink route
        (&[16, 3 | CLOEXEC, 0], Allow),
        (&[16, 3, 15], EPROTONOSUPPORT), // uevents
        (&[16, 2, 9], EPROTONOSUPPORT),  // audit
        (&[16, 2, 12], EPROTONOSUPPORT), // netfilter
        (&[17, 3, 768], EAFNOSUPPORT),   // packet
        (&[40, 1, 0], EAFNOSUPPORT),     // vsock
        (&[0x28 | HIGH, 1, 0], EAFNOSUPPORT),
        (&[31, 3, 1], EAFNOSUPPORT), // bluetooth
        (&[38, 5, 0], EAFNOSUPPORT), // alg
        (&[44, 3, 0], EAFNOSUPPORT), // xdp
        (&[43, 1, 0], EAFNOSUPPORT), // smc
        (&[30, 1, 0], EAFNOSUPPORT), // tipc
        (&[0, 1, 0], EAFNOSUPPORT),
        (&[u64::MAX, 1, 0], EAFNOSUPPORT),
    ];
    for arch in BOTH {
        let filter = Filter::new(arch, &ProfileOptions::native());
        for (args, action) in rows {
            filter.expect("socket", args, *action);
        }
        for kind in [1, 5] {
            filter.expect("socketpair", &[1, kind | CLOEXEC, 0], Allow);
        }
        filter.expect("socketpair", &[1, 2, 0], EPERM);
        filter.expect("socketpair", &[1, 3, 0], EPERM);
        filter.expect("socketpair", &[30, 1, 0], EAFNOSUPPORT);
        let offline = Filter::new(arch, &ProfileOptions::shared_namespaces());
        for family in [2, 10] {
            for kind in [1, 2, 3] {
                offline.expect("socket", &[family, kind, 0], EPERM);
            }
        }
        offline.expect("socket", &[1, 1, 0], Allow);
        let free = ProfileOptions {
            unix_datagrams: UnixDatagrams::Allow,
            ..ProfileOptions::native()
        };
        let free = Filter::new(arch, &free);
        free.expect("socket", &[1, 2, 0], Allow);
        free.expect("socketpair", &[1, 2, 0], Allow);
    }
}

#[test]
fn arguments_of_ioctl_prctl_personality_and_seccomp() {
    for arch in BOTH {
        let filter = Filter::new(arch, &ProfileOptions::native());
        for request in [0x5412, 0x541c, 0x541d, 0x5423, 0xaa00] {
            filter.expect("ioctl", &[0, request], EPERM);
            filter.expect("ioctl", &[0, request | HIGH], EPERM);
            filter.expect("ioctl", &[request, request ^ 1 << 16], Allow);
        }
        // TCGETS, TIOCGWINSZ, TIOCSCTTY, FIONREAD, FICLONE
        for request in [0x5401, 0x5413, 0x540e, 0x541b, 0x4004_9409] {
            filter.expect("ioctl", &[0, request], Allow);
        }
        for operation in [28, 33, 35, 57] {
            filter.expect("prctl", &[operation], EPERM);
            filter.expect("prctl", &[operation | HIGH], EPERM);
        }
        // PDEATHSIG, DUMPABLE, NAME, SECCOMP, SUBREAPER, NO_NEW_PRIVS, PTRACER
        for operation in [1, 4, 15, 22, 36, 38, 0x5961_6d61] {
            filter.expect("prctl", &[operation], Allow);
        }
        for persona in [0, 0x8, 0x4_0000, 0x4_0008, 0xffff_ffff, u64::MAX] {
            filter.expect("personality", &[persona], Allow);
        }
        // READ_IMPLIES_EXEC, MMAP_PAGE_ZERO, PER_SVR4
        for persona in [
            0x40_0000,
            0x10_0000,
            0x44_0000,
            1 | 0x10_0000,
            0x40_0000 | HIGH,
        ] {
            filter.expect("personality", &[persona], EPERM);
        }
        filter.expect("seccomp", &[1, 0], Allow);
        filter.expect("seccomp", &[1, 1], Allow);
        filter.expect("seccomp", &[1, 8], EBUSY);
        filter.expect("seccomp", &[1 | HIGH, 8 | 32 | HIGH], EBUSY);
        filter.expect("seccomp", &[2, 0], Allow);
        let shared = Filter::new(arch, &ProfileOptions::shared_namespaces());
        shared.expect("personality", &[0x4_0000], EPERM);
        shared.expect("personality", &[0xffff_ffff], Allow);
    }
}

#[test]
fn a_debugger_works_where_it_reaches_only_the_sandbox() {
    for arch in BOTH {
        let native = Filter::new(arch, &ProfileOptions::native());
        let shared = Filter::new(arch, &ProfileOptions::shared_namespaces());
        for name in ["ptrace", "process_vm_readv", "process_vm_writev"] {
            native.expect(name, &[], Allow);
            shared.expect(name, &[], EPERM);
        }
        native.expect("pidfd_getfd", &[], EPERM);
    }
}

#[test]
fn ordinary_work_is_allowed() {
    for (_, options) in option_sets().iter().take(5) {
        for arch in BOTH {
            let filter = Filter::new(arch, options);
            for name in
                "read write openat close mmap mprotect execve fork futex rt_sigaction wait4 \
                 waitid getdents64 statx mkdir mkdirat renameat2 unlinkat fchmodat fchmodat2 \
                 connect bind sendto sendmsg sendmmsg recvmsg epoll_wait pipe2 memfd_create \
                 memfd_secret landlock_create_ruleset landlock_restrict_self rseq set_robust_list \
                 sched_setaffinity mbind set_mempolicy setrlimit prlimit64 setsid kill pidfd_open \
                 pidfd_send_signal inotify_init1 semget shmget msgget mq_open timer_create \
                 clock_gettime restart_syscall uretprobe uprobe mseal statmount mknodat"
                    .split(' ')
            {
                filter.expect(name, &[], Allow);
            }
        }
    }
}

#[test]
fn the_permissive_profile_keeps_the_other_locks() {
    let options = ProfileOptions {
        kind: ProfileKind::Permissive,
        allow_debug: false,
        ..ProfileOptions::native()
    };
    for arch in BOTH {
        let filter = Filter::new(arch, &options);
        for name in
            "ptrace kexec_load kexec_file_load reboot mount open_tree chroot io_uring_setup \
             open_by_handle_at keyctl bpf init_module setns"
                .split(' ')
        {
            filter.expect(name, &[], EPERM);
        }
        filter.expect("clone3", &[], ENOSYS);
        filter.expect("unshare", &[0x1000_0000], EPERM);
        filter.expect("ioctl", &[0, 0x5412], EPERM);
        filter.expect("socket", &[40, 1, 0], EAFNOSUPPORT);
        for name in [
            "perf_event_open",
            "userfaultfd",
            "syslog",
            "adjtimex",
            "kcmp",
        ] {
            filter.expect(name, &[], Allow);
        }
        filter.expect("personality", &[0x40_0000], Allow);
    }
}

#[test]
fn logging_refuses_nothing_and_logs_all_of_strict() {
    let strict = ProfileOptions::native();
    let logging = ProfileOptions {
        kind: ProfileKind::Logging,
        ..strict.clone()
    };
    assert!(strict.enforces() && !logging.enforces());
    let (strict, logging) = (
        strict.filter(Arch::X86_64).unwrap(),
        logging.filter(Arch::X86_64).unwrap(),
    );
    assert!(
        logging
            .actions()
            .all(|action| matches!(action, Allow | Log))
    );
    for (name, _) in Arch::X86_64.table() {
        for args in [
            [0; 6],
            [1, 2, 0, 0, 0, 0],
            [u64::MAX; 6],
            [0, 0x5412, 0, 0, 0, 0],
        ] {
            let data = call(Arch::X86_64, name, &args);
            let expected = if strict.verdict(&data).refuses() {
                Log
            } else {
                Allow
            };
            assert_eq!(logging.verdict(&data), expected, "{name} {args:x?}");
        }
    }
}

#[test]
fn a_list_of_the_callers_own() {
    let options = ProfileOptions {
        blocked: Some(vec![
            "iopl".into(),
            "iopl".into(),
            "umount".into(),
            "mkdir".into(),
        ]),
        extra_blocked: vec!["clone".into()],
        ..ProfileOptions::native()
    };
    for arch in BOTH {
        let filter = Filter::new(arch, &options);
        filter.expect("mkdir", &[], EPERM);
        filter.expect("iopl", &[], EPERM);
        filter.expect("clone", &[17], EPERM);
        filter.expect("mount", &[], Allow);
        filter.expect("personality", &[0x40_0000], Allow);
        filter.expect("unshare", &[0x1000_0000], EPERM);
        filter.expect("ioctl", &[0, 0x5412], EPERM);
        let empty = ProfileOptions {
            blocked: Some(Vec::new()),
            ..ProfileOptions::native()
        };
        Filter::new(arch, &empty).expect("reboot", &[], Allow);
    }
    for list in ["ptraec", "", "PTRACE", "sys_ptrace", "pt\0race"] {
        let typo = ProfileOptions {
            blocked: Some(vec![list.into()]),
            ..ProfileOptions::native()
        };
        assert_eq!(
            typo.filter(Arch::X86_64),
            Err(SpecError::UnknownSyscall(list.into()))
        );
        let typo = ProfileOptions {
            extra_blocked: vec![list.into()],
            ..ProfileOptions::native()
        };
        assert_eq!(
            typo.filter(Arch::Aarch64),
            Err(SpecError::UnknownSyscall(list.into()))
        );
    }
}

#[test]
fn other_entries_than_the_native_one() {
    for (name, options) in option_sets() {
        let logs = name == "logging";
        let filter = Filter::new(Arch::X86_64, &options);
        let action = |data: &SyscallData| emulate(&filter.program, data).unwrap().action;
        for (name, _) in Arch::I386.table() {
            assert_eq!(
                action(&call(Arch::I386, name, &[])),
                if logs { Log } else { KillProcess },
                "{name}"
            );
        }
        for (name, _) in Arch::X32.table() {
            assert_eq!(
                action(&call(Arch::X32, name, &[])),
                if logs { Log } else { ENOSYS },
                "{name}"
            );
        }
        for number in [337, 423, 470, 472, 512, 547, 1023, 0x3fff_ffff] {
            let data = SyscallData {
                number,
                arch: Arch::X86_64.audit(),
                args: [0; 6],
            };
            assert_eq!(action(&data), if logs { Log } else { ENOSYS }, "{number}");
        }
    }
}

#[test]
fn the_mediator_gets_what_can_write_or_change_names() {
    const O_CLOEXEC: u64 = 0o2_000_000;
    const O_PATH: u64 = 0o10_000_000;
    let mediation = Mediation::default();
    let with = |mediation| ProfileOptions {
        mediation: Some(mediation),
        ..ProfileOptions::native()
    };
    for arch in BOTH {
        let filter = Filter::new(arch, &with(mediation));
        assert!(filter.spec.notifies());
        let reads = Filter::new(
            arch,
            &with(Mediation {
                reads: true,
                ..mediation
            }),
        );
        for (name, at) in [("open", 1), ("openat", 2)] {
            let args = |flags| {
                let mut args = [u64::MAX; 6];
                args[at] = flags;
                args
            };
            // O_WRONLY, O_RDWR, both, O_CREAT, O_TRUNC, O_APPEND | O_WRONLY, O_TMPFILE | O_RDWR
            for flags in [
                1,
                2,
                3,
                0o100,
                0o1000,
                0o2001,
                0o20_200_002,
                0o1_000_102,
                1 | HIGH,
            ] {
                filter.expect(name, &args(flags), Notify);
                reads.expect(name, &args(flags), Notify);
            }
            // O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_APPEND alone, bits the kernel can't see
            for flags in [0, O_CLOEXEC, 0o200_000, 0o400_000, 0o2000, HIGH] {
                filter.expect(name, &args(flags), Allow);
                reads.expect(name, &args(flags), Notify);
            }
            for flags in [O_PATH, O_PATH | O_CLOEXEC, O_PATH | 0o101] {
                filter.expect(name, &args(flags), Allow);
                reads.expect(name, &args(flags), Allow);
            }
        }
        for name in
            "creat openat2 truncate mkdir mkdirat mknod mknodat rename renameat renameat2 link \
             linkat symlink symlinkat unlink unlinkat rmdir"
                .split(' ')
        {
            filter.expect(name, &[0; 6], Notify);
        }
        let more = Mediation {
            attributes: true,
            owners: true,
            times: true,
            unix_sockets: true,
            ..mediation
        };
        let more = Filter::new(arch, &with(more));
        for name in
            "chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat setxattr lsetxattr \
             fsetxattr setxattrat removexattr file_setattr utime utimes futimesat utimensat \
             connect bind"
                .split(' ')
        {
            filter.expect(name, &[0; 6], Allow);
            more.expect(name, &[0; 6], Notify);
        }
        for name in "read write ftruncate sendmsg sendto accept4".split(' ') {
            more.expect(name, &[9; 6], Allow);
        }
    }
}

/// Over an overlay only sockets and links need the mediator, whatever else is set.
#[test]
fn without_files_the_mediator_gets_sockets_and_links() {
    let mediation = Mediation {
        files: false,
        reads: true,
        attributes: true,
        owners: true,
        times: true,
        unix_sockets: true,
    };
    let options = ProfileOptions {
        mediation: Some(mediation),
        ..ProfileOptions::native()
    };
    for arch in BOTH {
        let filter = Filter::new(arch, &options);
        for name in "creat openat2 truncate mkdirat mknodat renameat renameat2 symlinkat unlinkat \
             open openat fchmod fchmodat fchown fchownat setxattr utimensat"
            .split(' ')
        {
            filter.expect(name, &[0o102; 6], Allow);
        }
        for name in "bind connect link linkat umask".split(' ') {
            filter.expect(name, &[0; 6], Notify);
        }
        for name in "io_uring_setup open_by_handle_at mount pidfd_getfd".split(' ') {
            filter.expect(name, &[0; 6], EPERM);
        }
    }
}

#[test]
fn datagrams_by_the_mediator() {
    let options = ProfileOptions {
        unix_datagrams: UnixDatagrams::Mediate,
        mediation: Some(Mediation {
            unix_sockets: true,
            ..Mediation::default()
        }),
        ..ProfileOptions::native()
    };
    for arch in BOTH {
        let filter = Filter::new(arch, &options);
        filter.expect("socket", &[1, 2, 0], Allow);
        filter.expect("socketpair", &[1, 2, 0], Allow);
        filter.expect("sendto", &[3, 9, 9, 0, 0, 0], Allow);
        filter.expect("sendto", &[3, 9, 9, 0, 0, 16], Allow);
        filter.expect("sendto", &[3, 9, 9, 0, 1, 0], Notify);
        filter.expect("sendto", &[3, 9, 9, 0, 1 << 32, 16], Notify);
        filter.expect("sendmsg", &[3], Notify);
        filter.expect("sendmmsg", &[3], Notify);
    }
}

/// With a mediator, no profile leaves a way around it.
#[test]
fn the_mediator_can_not_be_gone_around() {
    for kind in [
        ProfileKind::Strict,
        ProfileKind::Permissive,
        ProfileKind::Logging,
    ] {
        let options = ProfileOptions {
            kind,
            blocked: Some(Vec::new()),
            allow_namespaces: true,
            mediation: Some(Mediation::default()),
            ..ProfileOptions::native()
        };
        for arch in BOTH {
            let filter = Filter::new(arch, &options);
            for name in
                "io_uring_setup io_uring_enter io_uring_register open_by_handle_at pidfd_getfd \
                 chroot pivot_root mount open_tree move_mount fsopen open_tree_attr mount_setattr"
                    .split(' ')
            {
                filter.expect(name, &[], EPERM);
            }
            filter.expect("mkdirat", &[], Notify);
            assert_eq!(
                (filter.spec.foreign, filter.spec.x32),
                (KillProcess, ENOSYS)
            );
            assert_eq!(filter.spec.unknown, ENOSYS);
        }
    }
    // What is refused is not the mediator's to allow.
    let options = ProfileOptions {
        extra_blocked: vec!["mkdirat".into(), "openat".into()],
        mediation: Some(Mediation::default()),
        ..ProfileOptions::native()
    };
    let filter = Filter::new(Arch::X86_64, &options);
    filter.expect("mkdirat", &[], EPERM);
    filter.expect("openat", &[], EPERM);
}

/// Every call that can make a file with a set-id bit, and the same calls without one. A log of
/// refusals does not open a way around.
#[test]
fn set_id_modes_are_refused_without_a_mediator() {
    const CREATE: u64 = 0o101;
    const TEMPORARY: u64 = 0o20_200_002;
    for kind in [
        ProfileKind::Strict,
        ProfileKind::Permissive,
        ProfileKind::Logging,
    ] {
        let options = ProfileOptions {
            kind,
            blocked: Some(Vec::new()),
            ..ProfileOptions::unmediated()
        };
        for arch in BOTH {
            let filter = Filter::new(arch, &options);
            for mode in [0o4755, 0o2755, 0o6777, 0o104_755, 0o4755 | HIGH] {
                for name in ["chmod", "creat", "fchmod", "mknod"] {
                    filter.expect(name, &[7, mode], EPERM);
                }
                for name in ["fchmodat", "fchmodat2", "mknodat"] {
                    filter.expect(name, &[7, 7, mode], EPERM);
                }
                for flags in [CREATE, TEMPORARY, CREATE | HIGH] {
                    filter.expect("open", &[7, flags, mode], EPERM);
                    filter.expect("openat", &[7, 7, flags, mode], EPERM);
                }
                // Without a file to make, what is in the register means nothing.
                filter.expect("open", &[7, 0o2, mode], Allow);
                filter.expect("openat", &[7, 7, 0, mode], Allow);
                filter.expect("mkdir", &[7, mode], Allow);
            }
            for mode in [0o755, 0o1777, 0o100_644] {
                filter.expect("chmod", &[7, mode], Allow);
                filter.expect("fchmodat", &[7, 7, mode], Allow);
                filter.expect("mknodat", &[7, 7, mode], Allow);
                filter.expect("openat", &[7, 7, CREATE, mode], Allow);
            }
            filter.expect("openat2", &[], ENOSYS);
            filter.expect("io_uring_setup", &[], EPERM);
            assert_eq!(
                (filter.spec.foreign, filter.spec.x32, filter.spec.unknown),
                (KillProcess, ENOSYS, ENOSYS)
            );
        }
    }
}

/// Length and depth, so that a change for the worse is seen. The kernel skips the program for
/// calls that are allowed without looking at arguments; those that remain are short.
#[test]
fn the_cost_of_a_filter() {
    for (name, options) in option_sets() {
        for arch in BOTH {
            let filter = Filter::new(arch, &options);
            let length = filter.program.instructions().len();
            let cost = |name: &str, args: &[u64]| {
                emulate(&filter.program, &call(arch, name, args)).unwrap()
            };
            let read = cost("read", &[0; 6]);
            let open = cost("openat", &[0; 6]);
            println!(
                "{name} {arch:?}: {length} instructions; read {}, openat {}, ioctl(TCGETS) {}, \
                 clone {}, socket(inet) {}",
                read.steps,
                open.steps,
                cost("ioctl", &[0, 0x5401]).steps,
                cost("clone", &[17]).steps,
                cost("socket", &[2, 1, 0]).steps,
            );
            assert!(length <= 450, "{name} {arch:?}: {length} instructions");
            assert!(
                read.steps <= 14 && !read.reads_arguments,
                "{name}: {read:?}"
            );
            assert!(open.steps <= 17, "{name}: {open:?}");
            for (name, _) in arch.table() {
                let ran = cost(name, &[0; 6]);
                assert!(
                    !ran.reads_arguments
                        || filter
                            .spec
                            .rule(name)
                            .is_some_and(|rule| !rule.cases.is_empty()),
                    "{name} looks at arguments without need"
                );
            }
        }
    }
}
