//! Which start of the machine this is: what was not synced is there as long as it runs.

use std::fs;

/// The kernel's name for it (random(4)). None where `/proc` does not tell.
pub(crate) fn current() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim_end().to_owned())
}
