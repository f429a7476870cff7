//! Calls that a mediator answers in place of the kernel.
//!
//! Mounts and Landlock protect what exists and what has a fixed name. A name that does not exist
//! yet, a pattern, or one Unix socket among many is protected by looking at each call that could
//! touch it. The filter hands over as few calls as it can tell apart: an open that can only read
//! costs nothing, because the flags are in a register.
//!
//! One merged filter, not a second one on top: the kernel runs *every* filter of a process on
//! every call, so a second program would repeat the architecture check and the search; the proof
//! by emulation covers what really runs; and where both have a rule about a call the stricter
//! action wins, as the kernel would have it ([`FilterSpec::add`]): a refused call never reaches
//! the mediator.
//!
//! What is handed over:
//!
//! | group | calls | handed over |
//! |---|---|---|
//! | content | opens that can write, create or truncate; `creat`, `openat2` (flags behind a pointer), `truncate` | [`Mediation::files`] |
//! | names | `mkdir`, `mknod`, `rename`, `symlink`, `unlink`, `rmdir` and their `*at` forms | [`Mediation::files`] |
//! | second names | `link`, `linkat`, which in an overlay may give a copy | yes |
//! | state | `umask`, and what gives a thread a umask of its own, to know when it changes | yes |
//! | reading | every open but `O_PATH` | [`Mediation::reads`] |
//! | attributes | mode, owner, extended attributes, by path *and* by descriptor | [`Mediation::attributes`] |
//! | owner by descriptor | `fchown` | [`Mediation::owners`] |
//! | times | `utimensat` and its elders | [`Mediation::times`] |
//! | Unix sockets | `connect`, `bind` (the family lies behind a pointer, so those of the internet too) | [`Mediation::unix_sockets`] |
//! | datagrams | `sendto` with an address, `sendmsg`, `sendmmsg` | [`UnixDatagrams::Mediate`] |
//!
//! What is not, and why that is enough: calls on a descriptor that is open for writing (its open
//! was mediated), `O_PATH` opens (such a handle reads and writes nothing, and opening it through
//! `/proc/self/fd` is an open like any other), timestamps where mounts keep them (they
//! are neither a name nor content). `fchmod` and
//! its like are in the group of attributes because a descriptor opened for reading is enough for
//! them. Over an overlay no content and no other name is mediated: nothing reaches the host before a
//! commit judges it. The kernel itself writes `core` files: set `RLIMIT_CORE` to 0.
//!
//! A mediator is only as good as the lack of ways around it, so with mediation on, calls that open
//! or rename without these calls, or change what a path means, are refused even where the profile
//! would let them pass or only log them.

use serde::{Deserialize, Serialize};

use super::filter::{Action, Case, Condition, FilterSpec, Rule};
use super::profile::{ENOSYS, EPERM, HANDLES, MOUNTS, RINGS, UnixDatagrams};

/// Which groups of calls go to the mediator. By default content and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "options; callers fill them in")]
#[expect(clippy::struct_excessive_bools, reason = "independent groups of calls")]
pub struct Mediation {
    /// Content and names. Without them neither reads, attributes, owners nor times are mediated:
    /// whoever may rename a file gets around a rule about its name.
    pub files: bool,
    /// Also opens that only read, for patterns whose reading is denied.
    pub reads: bool,
    /// Also changes of mode, owner and extended attributes.
    pub attributes: bool,
    /// Also changes of owner by descriptor, where no user namespace makes them void.
    pub owners: bool,
    /// Also changes of times, where no read-only mount keeps them.
    pub times: bool,
    /// Also `connect` and `bind`.
    pub unix_sockets: bool,
}

impl Default for Mediation {
    fn default() -> Self {
        Self {
            files: true,
            reads: false,
            attributes: false,
            owners: false,
            times: false,
            unix_sockets: false,
        }
    }
}

impl Mediation {
    /// Adds the rules of this mediation to a filter.
    pub(super) fn apply(self, datagrams: UnixDatagrams, spec: &mut FilterSpec) {
        spec.foreign = Action::KillProcess;
        spec.x32 = ENOSYS;
        spec.unknown = ENOSYS;
        for around in [MOUNTS, HANDLES, RINGS] {
            spec.add(Rule::always(around, EPERM));
        }
        for rule in self.notified(datagrams) {
            spec.add(rule);
        }
    }

    fn notified(self, datagrams: UnixDatagrams) -> Vec<Rule> {
        let mut rules = vec![
            Rule::always(&["umask"], Action::Notify),
            Rule::always(LINKS, Action::Notify),
            Rule::cases(&["unshare"], vec![own_files(0)], Action::Allow),
            Rule::cases(&["clone"], odd_threads().to_vec(), Action::Allow),
        ];
        if self.files {
            rules.extend(self.notified_files());
        }
        if self.unix_sockets {
            rules.push(Rule::always(&["bind", "connect"], Action::Notify));
        }
        if datagrams == UnixDatagrams::Mediate {
            let no_address = Condition::long_masked(4, u64::MAX, 0);
            rules.push(Rule::always(&["sendmmsg", "sendmsg"], Action::Notify));
            rules.push(Rule::cases(
                &["sendto"],
                vec![Case::when(no_address, Action::Allow)],
                Action::Notify,
            ));
        }
        rules
    }

    fn notified_files(self) -> Vec<Rule> {
        let mut rules = vec![
            Rule::always(CONTENT, Action::Notify),
            Rule::always(NAMES, Action::Notify),
            Rule::cases(&["open"], self.opens(1), Action::Notify),
            Rule::cases(&["openat"], self.opens(2), Action::Notify),
        ];
        if self.attributes {
            rules.push(Rule::always(ATTRIBUTES, Action::Notify));
            if self.owners {
                rules.push(Rule::always(&["fchown"], Action::Notify));
            }
        }
        if self.times {
            rules.push(Rule::always(TIMES, Action::Notify));
        }
        rules
    }

    /// The opens that pass, by their flags (an `int`; these bits are the same on all
    /// architectures here).
    fn opens(self, flags: u8) -> Vec<Case> {
        // O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | __O_TMPFILE. `O_RDONLY | O_TRUNC` truncates.
        const WRITES: u32 = 0o3 | 0o100 | 0o1000 | 0o20_000_000;
        // With O_PATH the kernel drops every flag that could write (fs/open.c, build_open_how).
        const O_PATH: u32 = 0o10_000_000;
        let passes =
            |mask, value| Case::when(Condition::int_masked(flags, mask, value), Action::Allow);
        let mut cases = vec![passes(O_PATH, O_PATH)];
        if !self.reads {
            cases.insert(0, passes(WRITES, 0));
        }
        cases
    }
}

const CONTENT: &[&str] = &["creat", "openat2", "truncate"];

const CLONE_FS: u64 = 0x200;
const CLONE_THREAD: u64 = 0x1_0000;

/// `unshare(CLONE_FS)`, which may be one of several flags.
fn own_files(flags: u8) -> Case {
    Case::when(
        Condition::long_masked(flags, CLONE_FS, CLONE_FS),
        Action::Notify,
    )
}

/// Threads with a directory and umask of their own, and processes that share them. Other threads
/// share them, and other processes don't.
fn odd_threads() -> [Case; 2] {
    let both = CLONE_FS | CLONE_THREAD;
    [CLONE_FS, CLONE_THREAD]
        .map(|one| Case::when(Condition::long_masked(0, both, one), Action::Notify))
}

const LINKS: &[&str] = &["link", "linkat"];

const NAMES: &[&str] = &[
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
];

const ATTRIBUTES: &[&str] = &[
    "chmod",
    "chown",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchownat",
    "file_setattr",
    "fremovexattr",
    "fsetxattr",
    "lchown",
    "lremovexattr",
    "lsetxattr",
    "removexattr",
    "removexattrat",
    "setxattr",
    "setxattrat",
];

const TIMES: &[&str] = &["futimesat", "utime", "utimensat", "utimes"];
