//! What the running kernel lets *this* process do, tried by doing.
//!
//! Namespaces, filters and Landlock domains can't be taken back, and the library never forks its
//! host, so each attempt happens in a short-lived child: the helper program, started with
//! [`MARKER`] as its first argument. The child writes one line for each step, `name errno`, and
//! the caller reads them ([`Attempt::parse`]). Nothing on the host is changed: every mount and
//! every limit is made inside a namespace that ends with the child.
//!
//! Kernel requirement: none; an old kernel answers with an errno, which is the result.

pub mod access;
mod child;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};

use crate::sys::probe as sys;

/// First argument that turns the helper into a probe.
pub const MARKER: &str = "__stockade-probe";

/// What one child tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the caller starts one child for each"
)]
pub enum Subject {
    /// A Landlock domain without any right.
    Landlock,
    /// User, mount, pid, ipc, uts, cgroup and network namespaces, and mounts inside.
    Namespaces,
    /// A filter with a listener.
    Seccomp,
}

/// One thing that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "each step has its own words for people"
)]
pub enum Step {
    /// `unshare(CLONE_NEWCGROUP)`.
    CgroupNamespace,
    /// A filter that refuses one call really refuses it.
    FilterEffective,
    /// Writing `uid_map` and `gid_map`.
    IdentityMap,
    /// `unshare(CLONE_NEWIPC)`.
    IpcNamespace,
    /// A Landlock domain without rights really refuses to open a file.
    LandlockEffective,
    /// Entering a Landlock domain.
    LandlockRestrict,
    /// Installing a filter with a listener.
    Listener,
    /// `unshare(CLONE_NEWNS)`.
    MountNamespace,
    /// `user.max_user_namespaces` = 0 inside.
    NamespaceLimit,
    /// `unshare(CLONE_NEWNET)`.
    NetworkNamespace,
    /// Mounting an overlay and writing through it.
    Overlay,
    /// `unshare(CLONE_NEWPID)`.
    PidNamespace,
    /// Turning mount propagation off.
    PrivateMounts,
    /// Mounting a new `/proc` in a new pid namespace.
    Proc,
    /// The listener's wake-up on the caller's core.
    SyncWakeUp,
    /// Mounting a tmpfs.
    Tmpfs,
    /// `unshare(CLONE_NEWUSER)`.
    UserNamespace,
    /// `unshare(CLONE_NEWUTS)`.
    UtsNamespace,
}

/// A step and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair")]
pub struct Attempt {
    /// What was tried.
    pub step: Step,
    /// The error number; zero if it worked.
    pub errno: i32,
}

/// Runs the probe if the program was started as one; the value is the exit code.
///
/// Must be called first in `main`, while the process has one thread.
pub fn dispatch(mut args: impl Iterator<Item = OsString>) -> Option<u8> {
    if args.nth(1)? != MARKER {
        return None;
    }
    let word = args.next()?;
    if word == access::WORD {
        return access::run(args).then_some(0);
    }
    let mut out = io::stdout().lock();
    let mut report = |step: Step, errno: i32| {
        // A caller that went away needs no answer.
        let _ = writeln!(out, "{} {errno}", step.name());
    };
    match word.to_str()? {
        child::PROC => child::proc(args, &mut report),
        word => child::run(Subject::from_word(word)?, &mut report),
    }
    Some(0)
}

/// The Landlock ABI of the running kernel.
///
/// # Errors
/// `ENOSYS` where the kernel was built without it, `EOPNOTSUPP` where it was not enabled at boot.
pub fn landlock_abi() -> io::Result<u32> {
    sys::landlock_abi()
}

/// The mended errata of the running kernel's Landlock as a bit set; zero if it can't tell.
pub fn landlock_errata() -> u32 {
    sys::landlock_errata().unwrap_or(0)
}

impl Subject {
    /// The second argument of the child.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Namespaces => "namespaces",
            Self::Seccomp => "seccomp",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        [Self::Landlock, Self::Namespaces, Self::Seccomp]
            .into_iter()
            .find(|subject| subject.word() == word)
    }
}

impl Step {
    const ALL: [Self; 18] = [
        Self::CgroupNamespace,
        Self::FilterEffective,
        Self::IdentityMap,
        Self::IpcNamespace,
        Self::LandlockEffective,
        Self::LandlockRestrict,
        Self::Listener,
        Self::MountNamespace,
        Self::NamespaceLimit,
        Self::NetworkNamespace,
        Self::Overlay,
        Self::PidNamespace,
        Self::PrivateMounts,
        Self::Proc,
        Self::SyncWakeUp,
        Self::Tmpfs,
        Self::UserNamespace,
        Self::UtsNamespace,
    ];

    /// The name on the wire and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CgroupNamespace => "cgroup_namespace",
            Self::FilterEffective => "filter_effective",
            Self::IdentityMap => "identity_map",
            Self::IpcNamespace => "ipc_namespace",
            Self::LandlockEffective => "landlock_effective",
            Self::LandlockRestrict => "landlock_restrict",
            Self::Listener => "listener",
            Self::MountNamespace => "mount_namespace",
            Self::NamespaceLimit => "namespace_limit",
            Self::NetworkNamespace => "network_namespace",
            Self::Overlay => "overlay",
            Self::PidNamespace => "pid_namespace",
            Self::PrivateMounts => "private_mounts",
            Self::Proc => "proc",
            Self::SyncWakeUp => "sync_wake_up",
            Self::Tmpfs => "tmpfs",
            Self::UserNamespace => "user_namespace",
            Self::UtsNamespace => "uts_namespace",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Attempt {
    /// Reads one line of a child; none if it is not one.
    pub fn parse(line: &str) -> Option<Self> {
        let (name, errno) = line.split_once(' ')?;
        Some(Self {
            step: Step::ALL.into_iter().find(|step| step.name() == name)?,
            errno: errno.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_survives_the_wire() {
        for step in Step::ALL {
            let attempt = Attempt { step, errno: 13 };
            assert_eq!(Attempt::parse(&format!("{step} 13")), Some(attempt));
        }
        for line in ["", "proc", "proc x", "nonsense 0", "proc 0 1"] {
            assert_eq!(Attempt::parse(line), None, "{line}");
        }
    }

    #[test]
    fn other_programs_are_not_probes() {
        let dispatch = |words: &[&str]| dispatch(words.iter().map(OsString::from));
        assert_eq!(dispatch(&[]), None);
        assert_eq!(dispatch(&["stockade"]), None);
        assert_eq!(dispatch(&["stockade", "run", MARKER]), None);
        assert_eq!(dispatch(&["stockade", MARKER]), None);
        assert_eq!(dispatch(&["stockade", MARKER, "nonsense"]), None);
    }
}
