//! Keeps values out of what others can get of this process's memory.

/// From now on a crash leaves no core dump, and other processes of the same user can't read this
/// one's memory or environment (`PR_SET_DUMPABLE`, prctl(2)).
#[cfg(target_os = "linux")]
pub(crate) fn hide() -> std::io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(Into::into)
}

/// Elsewhere nothing of the kind is known.
#[cfg(not(target_os = "linux"))]
pub(crate) fn hide() -> std::io::Result<()> {
    Ok(())
}
