//! Which system calls are refused, as data; the filter is compiled elsewhere.

use serde::{Deserialize, Serialize};

/// Calls that a strict profile refuses, as the seeds list them, without the repetition.
///
/// Some exist on one architecture only (`iopl`, `umount`); the compiler skips those that the
/// running architecture does not have.
pub const BLOCKED_SYSCALLS: &[&str] = &[
    "ptrace",
    "mount",
    "umount",
    "umount2",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "process_vm_readv",
    "process_vm_writev",
    "reboot",
    "swapon",
    "swapoff",
    "settimeofday",
    "clock_settime",
    "adjtimex",
    "add_key",
    "request_key",
    "keyctl",
    "ioperm",
    "iopl",
    "acct",
    "quotactl",
    "unshare",
    "setns",
    "personality",
];

/// Calls that a strict profile refuses beyond [`BLOCKED_SYSCALLS`]: later ways to the same ends.
pub const MORE_BLOCKED_SYSCALLS: &[&str] = &[
    // The mount API of Linux 5.2 and later, and what changes the root.
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "move_mount",
    "open_tree",
    "open_tree_attr",
    "mount_setattr",
    "pivot_root",
    "chroot",
    // Opening by handle goes around every path rule (CVE-2014-9357 and its kin).
    "open_by_handle_at",
    "name_to_handle_at",
    // io_uring does I/O that no filter sees.
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    // Other processes' memory and descriptors.
    "pidfd_getfd",
    "process_madvise",
    "kcmp",
    // The kernel's own state.
    "syslog",
    "clock_adjtime",
    "clock_settime64",
    "clock_adjtime64",
    "quotactl_fd",
    "modify_ldt",
    "vm86",
    "vm86old",
    "lookup_dcookie",
    "nfsservctl",
    "sethostname",
    "setdomainname",
];

/// Calls whose arguments are judged: new namespaces, dangerous ioctls and prctls, socket families.
pub const FILTERED_SYSCALLS: &[&str] = &["clone", "clone3", "ioctl", "prctl", "socket"];

/// Calls that make or enter namespaces; refused unless the profile allows namespaces.
const NAMESPACE_SYSCALLS: &[&str] = &["unshare", "setns"];

/// A system-call filter, by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeccompProfile {
    /// Calls to refuse. In JSON, a missing list is the strict one; an empty list refuses nothing.
    pub blocked_syscalls: Vec<String>,
    /// Whether new namespaces may be made inside.
    pub allow_namespaces: bool,
    /// Whether sockets that leave the sandbox may be made.
    ///
    /// [`SandboxPolicy::seccomp_profile`](super::SandboxPolicy::seccomp_profile) derives it from
    /// the policy's network, so that the two can't contradict each other.
    pub allow_network_sockets: bool,
    /// Whether refusals are only logged. Such a filter enforces nothing, and reports say so.
    pub log_only: bool,
}

impl SeccompProfile {
    /// Everything that is known to be dangerous is refused.
    pub fn strict() -> Self {
        Self {
            blocked_syscalls: BLOCKED_SYSCALLS
                .iter()
                .chain(MORE_BLOCKED_SYSCALLS)
                .map(|name| (*name).to_owned())
                .collect(),
            allow_namespaces: false,
            allow_network_sockets: false,
            log_only: false,
        }
    }

    /// Only what could take the machine down, or reach into other processes.
    pub fn permissive() -> Self {
        Self {
            blocked_syscalls: ["ptrace", "kexec_load", "kexec_file_load", "reboot"]
                .map(str::to_owned)
                .into(),
            allow_network_sockets: true,
            ..Self::strict()
        }
    }

    /// Like strict, but refusals are only logged.
    pub fn logging() -> Self {
        Self::strict().with_logging()
    }

    /// Refuses one more call.
    #[must_use]
    pub fn block_syscall(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        if !self.blocked_syscalls.contains(&name) {
            self.blocked_syscalls.push(name);
        }
        self
    }

    /// Allows sockets that leave the sandbox.
    #[must_use]
    pub fn with_network(mut self) -> Self {
        self.allow_network_sockets = true;
        self
    }

    /// Only logs.
    #[must_use]
    pub fn with_logging(mut self) -> Self {
        self.log_only = true;
        self
    }

    /// Whether the call is refused, whatever its arguments.
    pub fn is_blocked(&self, name: &str) -> bool {
        let allowed = self.allow_namespaces && NAMESPACE_SYSCALLS.contains(&name);
        !allowed && self.blocked_syscalls.iter().any(|blocked| blocked == name)
    }

    /// The profile as JSON.
    ///
    /// # Errors
    /// Never in practice: the type holds nothing that JSON can't.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// What is wider here than in `other`.
    pub(super) fn wider_than(&self, other: &Self) -> Option<String> {
        let flags = [
            (
                "allow_namespaces",
                self.allow_namespaces,
                other.allow_namespaces,
            ),
            (
                "allow_network_sockets",
                self.allow_network_sockets,
                other.allow_network_sockets,
            ),
            ("log_only", self.log_only, other.log_only),
        ];
        if let Some((name, _, _)) = flags.into_iter().find(|(_, new, old)| *new && !*old) {
            return Some(name.to_owned());
        }
        let mut lost = other.blocked_syscalls.iter();
        lost.find(|name| other.is_blocked(name) && !self.is_blocked(name))
            .cloned()
    }
}

impl Default for SeccompProfile {
    fn default() -> Self {
        Self::strict()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets() {
        let strict = SeccompProfile::strict();
        assert_eq!(SeccompProfile::default(), strict);
        assert!(!strict.allow_namespaces && !strict.allow_network_sockets && !strict.log_only);
        assert!(BLOCKED_SYSCALLS.iter().all(|name| strict.is_blocked(name)));
        let permissive = SeccompProfile::permissive();
        assert!(permissive.allow_network_sockets && !permissive.allow_namespaces);
        assert_eq!(permissive.blocked_syscalls.len(), 4);
        assert_eq!(
            SeccompProfile::logging(),
            SeccompProfile {
                log_only: true,
                ..strict
            }
        );
    }

    #[test]
    fn the_list_has_thirty_distinct_names() {
        let mut names = BLOCKED_SYSCALLS.to_vec();
        assert_eq!(names.len(), 30);
        names.extend(MORE_BLOCKED_SYSCALLS);
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn item_29_later_ways_to_the_same_ends_are_refused() {
        let strict = SeccompProfile::strict();
        for name in [
            "fsopen",
            "fsmount",
            "move_mount",
            "open_tree",
            "mount_setattr",
            "pivot_root",
            "chroot",
            "open_by_handle_at",
            "name_to_handle_at",
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            "pidfd_getfd",
            "process_madvise",
            "kcmp",
            "syslog",
            "clock_adjtime",
            "modify_ldt",
        ] {
            assert!(strict.is_blocked(name), "{name}");
        }
    }

    #[test]
    fn json_defaults() {
        let parse = |text| serde_json::from_str::<SeccompProfile>(text);
        assert_eq!(parse("{}").unwrap(), SeccompProfile::strict());
        let empty = parse(r#"{"blocked_syscalls":[]}"#).unwrap();
        assert!(!empty.is_blocked("ptrace"));
        assert!(parse(r#"{"blocked":[]}"#).is_err());
        let json = SeccompProfile::permissive().to_json().unwrap();
        assert_eq!(parse(&json).unwrap(), SeccompProfile::permissive());
    }

    #[test]
    fn allowing_namespaces_is_not_contradicted_by_the_list() {
        let nested = SeccompProfile {
            allow_namespaces: true,
            ..SeccompProfile::strict()
        };
        assert!(!nested.is_blocked("unshare"));
        assert!(nested.is_blocked("mount"));
        assert_eq!(
            nested.wider_than(&SeccompProfile::strict()).as_deref(),
            Some("allow_namespaces")
        );
    }
}
