//! From options to a [`FilterSpec`]: which calls a sandboxed program may not make.
//!
//! Protects the kernel, and the other locks of the sandbox, from the program inside: calls that
//! would undo a mount, a namespace or a descriptor that was never handed over, calls that work
//! around the filter itself (`io_uring`, another architecture), and parts of the kernel with a long
//! record of local root bugs and no use in ordinary work. It does not decide about files or hosts:
//! it sees numbers, not names. Everything not refused is allowed, except numbers without a name
//! ([`FilterSpec::unknown`]).
//!
//! | entry | answer | why |
//! |---|---|---|
//! | another architecture (`int 0x80`) | the process is killed | its numbers mean other calls, so no answer would be about the call that was made; no 64-bit program does this by accident |
//! | x32 bit | `ENOSYS` | what a kernel without x32 (most are) answers; a program that probes lives on |
//! | a number without a name | `ENOSYS` | what an older kernel answers; programs fall back |
//! | a refused call | `EPERM` | what the kernel answers those without privilege |
//! | `clone3` | `ENOSYS` | its flags lie behind a pointer; the C libraries fall back to `clone` on this errno alone |
//!
//! A debugger on one's own child is ordinary work: `ptrace` and `process_vm_*` follow
//! [`ProfileOptions::allow_debug`]. In a pid namespace they reach nothing but the sandbox, its
//! pid 1 is non-dumpable, and a tracer can't step around the filter, which runs after the tracer's
//! stop (Linux 4.8). Without that namespace they reach every process of the user.

use serde::{Deserialize, Serialize};

use super::arguments;
use super::error::SpecError;
use super::filter::{Action, FilterSpec, Rule, check_names};
use super::mediation::Mediation;
use super::set_id;
use super::table::Arch;

pub(super) const EPERM: Action = Action::Errno(1);
pub(super) const ENOSYS: Action = Action::Errno(38);

/// What a filter is to refuse, and what it leaves to a mediator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::exhaustive_structs,
    reason = "options; callers start from a constructor"
)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub struct ProfileOptions {
    /// How much is refused, and whether refusals are only logged.
    pub kind: ProfileKind,
    /// A list of names that replaces the built-in one. The rules about arguments stay.
    pub blocked: Option<Vec<String>>,
    /// Names refused in addition.
    pub extra_blocked: Vec<String>,
    /// Leaves `unshare`, `setns`, `clone3` and the namespace flags of `clone` alone.
    pub allow_namespaces: bool,
    /// Leaves `ptrace` and `process_vm_*` out of the built-in list, and lets a debugger switch
    /// address randomisation off. A list of the caller's own is taken at its word.
    pub allow_debug: bool,
    /// Whether sockets of IPv4 and IPv6 may be made at all. True with a network namespace of one's
    /// own, which is the better lock and keeps the loopback.
    pub inet: bool,
    /// Refuses modes with set-id bits, where no mediator judges them.
    pub refuse_set_id: bool,
    /// What becomes of Unix datagram sockets.
    pub unix_datagrams: UnixDatagrams,
    /// Calls handed to a mediator.
    pub mediation: Option<Mediation>,
}

/// How much a profile refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProfileKind {
    /// The rules of `Strict`, none of them enforced: the kernel logs what they would refuse.
    /// What a mediator needs stays enforced.
    Logging,
    /// Refuses what would undo another lock of the sandbox; leaves the rest of the kernel open.
    Permissive,
    /// Refuses everything on the lists of this module.
    Strict,
}

/// What becomes of Unix sockets whose every message can name another receiver.
///
/// The address of `connect` and `bind` can be judged when it is used. A datagram socket needs
/// neither: each `sendto`, `sendmsg` or `sendmmsg` may carry an address, and a connected pair from
/// `socketpair` takes one as well. The filter can't see that address (it lies behind a pointer) nor
/// the kind of socket (a descriptor is a number), but it sees the *kind at creation*. Stream and
/// sequenced-packet sockets refuse or ignore an address in `sendmsg`, so where no Unix datagram
/// socket was ever made, `connect` and `bind` are the only doors and sending costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UnixDatagrams {
    /// Made and used freely. Sound where no socket of the host has a name inside.
    Allow,
    /// Made freely, every send that may carry an address is the mediator's. Each costs a round
    /// trip, for sockets of every family, and the mediator has to send in the caller's stead:
    /// letting the call continue would let another thread change the address first.
    Mediate,
    /// Not made at all, neither alone nor as a pair: `EPERM`. Sound, free, and what few programs
    /// notice (`syslog(3)` and `sd_notify(3)` carry on without).
    Refuse,
}

impl ProfileOptions {
    /// For a sandbox with namespaces of its own.
    pub fn native() -> Self {
        Self {
            kind: ProfileKind::Strict,
            blocked: None,
            extra_blocked: Vec::new(),
            allow_namespaces: false,
            allow_debug: true,
            inet: true,
            refuse_set_id: false,
            unix_datagrams: UnixDatagrams::Refuse,
            mediation: None,
        }
    }

    /// For a sandbox with namespaces of its own and no mediator.
    pub fn unmediated() -> Self {
        Self {
            refuse_set_id: true,
            ..Self::native()
        }
    }

    /// For a process in the namespaces of its host: no debugger, since it would reach the user's
    /// other processes, and no internet sockets, since nothing else stops them.
    pub fn shared_namespaces() -> Self {
        Self {
            allow_debug: false,
            inet: false,
            ..Self::native()
        }
    }

    /// Whether refusals are real.
    pub fn enforces(&self) -> bool {
        self.kind != ProfileKind::Logging
    }

    /// The filter for these options.
    pub fn filter(&self, arch: Arch) -> Result<FilterSpec, SpecError> {
        // The built-in lists are right; a test says so for each of them.
        let given = self.blocked.iter().flatten().chain(&self.extra_blocked);
        check_names(arch, given.map(String::as_str))?;
        let mut spec = FilterSpec {
            arch,
            foreign: Action::KillProcess,
            x32: ENOSYS,
            unknown: ENOSYS,
            default: Action::Allow,
            rules: Vec::new(),
        };
        spec.add(Rule {
            syscalls: self.names(),
            cases: Vec::new(),
            otherwise: EPERM,
        });
        for rule in arguments::rules(self) {
            spec.add(rule);
        }
        if !self.enforces() {
            log_only(&mut spec);
        }
        if self.refuse_set_id {
            set_id::apply(&mut spec);
        }
        if let Some(mediation) = &self.mediation {
            mediation.apply(self.unix_datagrams, &mut spec);
        }
        Ok(spec)
    }

    /// The names that are refused whatever their arguments.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = match &self.blocked {
            Some(names) => names.clone(),
            None => self.built_in().into_iter().map(str::to_owned).collect(),
        };
        names.extend(self.extra_blocked.iter().cloned());
        names.sort_unstable();
        names.dedup();
        names
    }

    fn built_in(&self) -> Vec<&'static str> {
        let mut groups = vec![MOUNTS, HANDLES, RINGS, KERNEL, KEYS];
        if !self.allow_debug {
            groups.push(DEBUG);
        }
        if self.kind != ProfileKind::Permissive {
            groups.extend([OTHERS, CLOCK, MACHINE, RELICS]);
        }
        groups.concat()
    }
}

/// Turns every refusal into a line in the kernel's log.
fn log_only(spec: &mut FilterSpec) {
    let soften = |action: &mut Action| {
        if action.refuses() {
            *action = Action::Log;
        }
    };
    [&mut spec.foreign, &mut spec.x32, &mut spec.unknown]
        .into_iter()
        .for_each(soften);
    for rule in &mut spec.rules {
        soften(&mut rule.otherwise);
        rule.cases
            .iter_mut()
            .for_each(|case| soften(&mut case.then));
    }
}

/// Changes what a path means. Unprivileged processes get here through a user namespace; the new
/// mount calls (Linux 5.2 on) do everything `mount` does.
pub(super) const MOUNTS: &[&str] = &[
    "chroot",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "open_tree_attr",
    "pivot_root",
    "umount",
    "umount2",
];

/// Opens files by number, past every path rule (the "shocker" escape from Docker 0.11), or takes
/// an open file from another process.
pub(super) const HANDLES: &[&str] = &["name_to_handle_at", "open_by_handle_at", "pidfd_getfd"];

/// Does what other calls do, without making them: no filter sees the socket or the open.
pub(super) const RINGS: &[&str] = &["io_uring_enter", "io_uring_register", "io_uring_setup"];

/// Replaces the kernel, or programs it.
const KERNEL: &[&str] = &[
    "bpf",
    "create_module",
    "delete_module",
    "finit_module",
    "get_kernel_syms",
    "init_module",
    "kexec_file_load",
    "kexec_load",
    "query_module",
    "reboot",
];

/// The user's keyrings: shared with the host's sessions, in no namespace of the sandbox.
const KEYS: &[&str] = &["add_key", "keyctl", "request_key"];

/// Reads and writes other processes.
const DEBUG: &[&str] = &["process_vm_readv", "process_vm_writev", "ptrace"];

/// Looks into or meddles with other processes and the kernel's doings; a favourite tool for
/// turning a kernel bug into an exploit (`userfaultfd`, `perf_event_open`).
const OTHERS: &[&str] = &[
    "fanotify_init",
    "kcmp",
    "lookup_dcookie",
    "migrate_pages",
    "move_pages",
    "perf_event_open",
    "process_madvise",
    "syslog",
    "userfaultfd",
];

/// The machine's clock. Reading it takes other calls.
const CLOCK: &[&str] = &[
    "adjtimex",
    "clock_adjtime",
    "clock_adjtime64",
    "clock_settime",
    "clock_settime64",
    "settimeofday",
    "stime",
];

/// The machine's set-up, needing privileges that nobody inside has.
const MACHINE: &[&str] = &[
    "acct",
    "ioperm",
    "iopl",
    "quotactl",
    "quotactl_fd",
    "setdomainname",
    "sethostname",
    "swapoff",
    "swapon",
    "vhangup",
];

/// Old doors that hardly any program knocks on: 16-bit segments, virtual 8086 mode, system calls
/// that were removed or are only kept for programs of the nineties.
const RELICS: &[&str] = &[
    "_sysctl",
    "modify_ldt",
    "nfsservctl",
    "sysfs",
    "uselib",
    "ustat",
    "vm86",
    "vm86old",
];
