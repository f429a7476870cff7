//! Rules about calls that are ordinary or dangerous by their arguments.
//!
//! Each argument is compared as wide as the kernel reads it. Where a list of what may pass is
//! short, it is a list of what may pass: flags and families that later kernels add stay out.

use super::filter::{Action, Case, Condition, Rule};
use super::profile::{ENOSYS, EPERM, ProfileKind, ProfileOptions, UnixDatagrams};

const EBUSY: Action = Action::Errno(16);
const EPROTONOSUPPORT: Action = Action::Errno(93);
const EAFNOSUPPORT: Action = Action::Errno(97);

/// Every argument rule that a profile asks for.
pub(super) fn rules(options: &ProfileOptions) -> Vec<Rule> {
    let mut rules = vec![
        ioctl(),
        prctl(),
        seccomp(),
        socket(options.inet, options.unix_datagrams),
        socketpair(options.unix_datagrams),
    ];
    if !options.allow_namespaces {
        rules.extend(namespaces());
    }
    if options.blocked.is_none() && options.kind != ProfileKind::Permissive {
        rules.push(personality(options.allow_debug));
    }
    rules
}

/// New or other namespaces: the way to privileges over mounts and network (see the module
/// documentation of [`super::profile`] for `clone3`).
fn namespaces() -> [Rule; 4] {
    // CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. `clone` reads its flags
    // from the low word (kernel/fork.c); CLONE_NEWTIME is part of its signal number there.
    const NEW_NAMESPACE: u32 = 0x7e02_0000;
    // CLONE_VM, FS, FILES, SIGHAND, THREAD, SYSVSEM: what a process may stop sharing.
    const UNSHARE: u64 = 0x0005_0f00;
    [
        Rule::cases(
            &["clone"],
            vec![Case::when(
                Condition::int_masked(0, NEW_NAMESPACE, 0),
                Action::Allow,
            )],
            EPERM,
        ),
        Rule::always(&["clone3"], ENOSYS),
        Rule::always(&["setns"], EPERM),
        Rule::cases(
            &["unshare"],
            vec![Case::when(
                Condition::long_masked(0, !UNSHARE, 0),
                Action::Allow,
            )],
            EPERM,
        ),
    ]
}

/// Terminal controls that act on whoever else uses the terminal, and other doors to what is
/// refused by name. Landlock has no say over an ioctl on an inherited descriptor.
fn ioctl() -> Rule {
    const TIOCSTI: u32 = 0x5412; // types into the terminal (CVE-2017-5226)
    const TIOCLINUX: u32 = 0x541c; // pastes into a virtual console (CVE-2023-28100)
    const TIOCCONS: u32 = 0x541d; // takes over the console's output
    const TIOCSETD: u32 = 0x5423; // loads a line discipline (CVE-2017-2636)
    const USERFAULTFD_IOC_NEW: u32 = 0xaa00; // `userfaultfd` by another name (Linux 6.1)
    refuse_ints(
        "ioctl",
        1,
        &[TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, USERFAULTFD_IOC_NEW],
    )
}

/// Operations on oneself that deceive others or touch the machine. What debuggers
/// (`PR_SET_PTRACER`), inner sandboxes (`PR_SET_SECCOMP`) and supervisors need passes.
fn prctl() -> Rule {
    const PR_SET_SECUREBITS: u32 = 28; // turns root's loss of capabilities off
    const PR_MCE_KILL: u32 = 33; // what the machine does on broken memory
    const PR_SET_MM: u32 = 35; // forges /proc/self/exe, arguments and the memory map
    const PR_SET_IO_FLUSHER: u32 = 57; // eats the memory reserve
    refuse_ints(
        "prctl",
        0,
        &[PR_SET_SECUREBITS, PR_MCE_KILL, PR_SET_MM, PR_SET_IO_FLUSHER],
    )
}

/// Inner filters are welcome: they only narrow, since the strictest filter wins. A second
/// *listener* is not: the kernel allows one for a chain of filters and answers `EBUSY` to the next.
/// Answering so always makes a program behave alike whether this sandbox has a mediator or not.
fn seccomp() -> Rule {
    const SET_MODE_FILTER: u32 = 1;
    const NEW_LISTENER: u32 = 1 << 3;
    Rule::cases(
        &["seccomp"],
        vec![Case::both(
            Condition::int_is(0, SET_MODE_FILTER),
            Condition::int_masked(1, NEW_LISTENER, NEW_LISTENER),
            EBUSY,
        )],
        Action::Allow,
    )
}

/// Execution domains: the plain ones and the query pass, and for debuggers the switch that stops
/// address randomisation. Those that map page zero or make all memory executable do not.
fn personality(allow_debug: bool) -> Rule {
    const PER_LINUX32: u32 = 0x8;
    const UNAME26: u32 = 0x2_0000;
    const ADDR_NO_RANDOMIZE: u32 = 0x4_0000;
    const QUERY: u32 = u32::MAX;
    let harmless = PER_LINUX32 | UNAME26 | if allow_debug { ADDR_NO_RANDOMIZE } else { 0 };
    Rule::cases(
        &["personality"],
        vec![
            Case::when(Condition::int_masked(0, !harmless, 0), Action::Allow),
            Case::when(Condition::int_is(0, QUERY), Action::Allow),
        ],
        EPERM,
    )
}

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;

const SOCK_STREAM: u32 = 1;
const SOCK_DGRAM: u32 = 2;
const SOCK_RAW: u32 = 3;
const SOCK_SEQPACKET: u32 = 5;

/// Sockets by family, type and protocol; all other families (vsock reaches the hypervisor's host,
/// packet and raw sockets the wire, `AF_ALG` and the rest a row of past kernel bugs) are refused.
///
/// The errnos are what a kernel without the feature answers, which callers know how to take:
/// libaudit, for one, goes on without its netlink socket on `EPROTONOSUPPORT` and gives up on
/// `EPERM`. MPTCP and SMC stay out because Landlock's rules about TCP ports do not see them.
fn socket(inet: bool, datagrams: UnixDatagrams) -> Rule {
    const NETLINK_ROUTE: u32 = 0;
    const IPPROTO_ICMP: u32 = 1;
    const IPPROTO_TCP: u32 = 6;
    const IPPROTO_UDP: u32 = 17;
    const IPPROTO_ICMPV6: u32 = 58;
    let mut cases = unix_sockets(datagrams);
    for (family, ping) in [(AF_INET, IPPROTO_ICMP), (AF_INET6, IPPROTO_ICMPV6)] {
        let family = Condition::int_is(0, family);
        if inet {
            let passes = |kind, protocol| Case {
                when: vec![family, socket_type(kind), Condition::int_is(2, protocol)],
                then: Action::Allow,
            };
            cases.extend([
                passes(SOCK_STREAM, 0),
                passes(SOCK_STREAM, IPPROTO_TCP),
                passes(SOCK_DGRAM, 0),
                passes(SOCK_DGRAM, IPPROTO_UDP),
                passes(SOCK_DGRAM, ping),
                Case::both(family, socket_type(SOCK_RAW), EPERM),
                Case::when(family, EPROTONOSUPPORT),
            ]);
        } else {
            cases.push(Case::when(family, EPERM));
        }
    }
    let netlink = Condition::int_is(0, AF_NETLINK);
    cases.extend([
        Case::both(netlink, Condition::int_is(2, NETLINK_ROUTE), Action::Allow),
        Case::when(netlink, EPROTONOSUPPORT),
    ]);
    Rule::cases(&["socket"], cases, EAFNOSUPPORT)
}

/// Pairs: Unix only (TIPC knows them too).
fn socketpair(datagrams: UnixDatagrams) -> Rule {
    Rule::cases(&["socketpair"], unix_sockets(datagrams), EAFNOSUPPORT)
}

fn unix_sockets(datagrams: UnixDatagrams) -> Vec<Case> {
    let unix = Condition::int_is(0, AF_UNIX);
    match datagrams {
        UnixDatagrams::Allow | UnixDatagrams::Mediate => vec![Case::when(unix, Action::Allow)],
        // SOCK_RAW is a second name of SOCK_DGRAM here (net/unix/af_unix.c).
        UnixDatagrams::Refuse => vec![
            Case::both(unix, socket_type(SOCK_STREAM), Action::Allow),
            Case::both(unix, socket_type(SOCK_SEQPACKET), Action::Allow),
            Case::when(unix, EPERM),
        ],
    }
}

/// The type of a socket without `SOCK_NONBLOCK` and `SOCK_CLOEXEC` (`SOCK_TYPE_MASK` in net.h).
const fn socket_type(kind: u32) -> Condition {
    Condition::int_masked(1, 0xf, kind)
}

fn refuse_ints(syscall: &str, arg: u8, values: &[u32]) -> Rule {
    let cases = values
        .iter()
        .map(|&value| Case::when(Condition::int_is(arg, value), EPERM))
        .collect();
    Rule::cases(&[syscall], cases, Action::Allow)
}
