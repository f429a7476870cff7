//! A Rust toolchain that the ordinary user can execute.
//!
//! rustup keeps toolchains in a home directory, which is often closed to others. Hard links make
//! the same files reachable from the stage without copying them.

use std::path::Path;
use std::process::Command;

/// Links the toolchain that built this test into the stage and names it `TOOLCHAIN`.
pub(crate) fn share(dir: &Path) -> Vec<(&'static str, String)> {
    // `cargo test` names the very program of the toolchain, not rustup's proxy.
    let Some(sysroot) = Path::new(env!("CARGO")).parent().and_then(Path::parent) else {
        return Vec::new();
    };
    let toolchain = dir.join("toolchain");
    if std::fs::create_dir(&toolchain).is_err() {
        return Vec::new();
    }
    let linked = Command::new("cp")
        .arg("-al")
        .args([sysroot.join("bin"), sysroot.join("lib")])
        .arg(&toolchain)
        .output();
    // Another file system, or a protection against hard links: then there is none to share.
    match linked {
        Ok(output) if output.status.success() => {
            vec![("TOOLCHAIN", toolchain.display().to_string())]
        }
        _ => Vec::new(),
    }
}
