//! New namespaces and what belongs to each: id maps, the lock on further ones.
//!
//! All but two in one `clone(2)`. The pid namespace comes later, with its first process
//! ([`Init`](crate::sys::init_process::Init)): the mediator stays outside it. The network's takes
//! longer than all others together and is made beside ([`NewNetwork`](crate::sys::network_namespace::NewNetwork)).
//! Needs unprivileged user namespaces; root gets one as well, so that root inside has no power
//! over anything outside.

use std::fs;
use std::io;

use rustix::process::{getgid, getuid};
use rustix::thread::UnshareFlags;

/// The namespaces that the mediator shares with the command.
pub(crate) const KINDS: UnshareFlags = UnshareFlags::NEWUSER
    .union(UnshareFlags::NEWNS)
    .union(UnshareFlags::NEWIPC)
    .union(UnshareFlags::NEWUTS)
    .union(UnshareFlags::NEWCGROUP);

/// The user and the group that a sandbox is made for, as they are outside.
#[derive(Clone, Copy)]
pub(crate) struct Ids {
    user: u32,
    group: u32,
}

impl Ids {
    /// Those of the calling process, which is still outside.
    pub(crate) fn own() -> Self {
        Self {
            user: getuid().as_raw(),
            group: getgid().as_raw(),
        }
    }

    /// Maps them into the user namespace that the calling process is in.
    ///
    /// One user and one group, with the numbers they have outside: files look the same. The
    /// kernel allows a group map only after setgroups(2) is given up (`user_namespaces(7)`).
    pub(crate) fn map(self) -> io::Result<()> {
        let Self { user, group } = self;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
    }
}

/// Forbids user namespaces below this one; `/proc` must be mounted.
///
/// The limit belongs to this namespace and can be raised only with a capability in it, which
/// nobody has from here on.
pub(crate) fn forbid_nested() -> io::Result<()> {
    fs::write("/proc/sys/user/max_user_namespaces", "0")
}
