//! Giving up capabilities (`capabilities(7)`), for root as for anyone else.
//!
//! The bounding set goes too, and root's special treatment at `execve(2)` is locked off, so that
//! a process with user id 0 stays without capabilities after it executes a program.

use std::io;

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    set_capabilities, set_capabilities_secure_bits,
};

/// Makes sure that no program gets a capability by being executed, for good.
///
/// Whoever lacks `CAP_SETPCAP` (a user without a namespace, root in a container) can't change the
/// bounding set nor the secure bits; `no_new_privs`, which is set next, keeps `execve(2)` from
/// raising what is dropped later (security/commoncap.c, `cap_bprm_creds_from_file`).
pub(crate) fn lock() -> io::Result<()> {
    let held = rustix::thread::capabilities(None)?.effective;
    if held.contains(CapabilitySet::SETPCAP) {
        lock_root()?;
    }
    clear_ambient_capability_set()?;
    Ok(())
}

/// Drops every capability of the calling thread.
pub(crate) fn drop_all() -> io::Result<()> {
    keep_at_most(CapabilitySet::empty())
}

/// Drops every capability of the calling thread but the one that lets the mediator read the
/// memory and take descriptors of callers that are not dumpable (`ptrace(2)`). It counts in the
/// sandbox's own user namespace only.
pub(crate) fn keep_tracing() -> io::Result<()> {
    keep_at_most(CapabilitySet::SYS_PTRACE)
}

fn keep_at_most(wanted: CapabilitySet) -> io::Result<()> {
    let held = rustix::thread::capabilities(None)?.permitted & wanted;
    set_capabilities(
        None,
        CapabilitySets {
            effective: held,
            permitted: held,
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}

/// Gives up changing the owner of files, for programs that keep the rest because they build the
/// sandbox: `runsc` gives the standard streams to `nobody` when root starts it, and they are the
/// caller's (a log file, a terminal, `/dev/null` itself). It goes on where it can't.
pub(crate) fn keep_owners() -> io::Result<()> {
    let held = rustix::thread::capabilities(None)?.effective;
    if held.contains(CapabilitySet::SETPCAP) {
        rustix::thread::remove_capability_from_bounding_set(CapabilitySet::CHOWN)?;
    }
    Ok(())
}

/// No program gets capabilities for being executed by root, or for being marked.
fn lock_root() -> io::Result<()> {
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED,
    )?;
    for capability in CapabilitySet::all().iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // The kernel is older than the capability.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
