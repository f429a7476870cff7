//! Files that the proxy writes, in directories that a sandbox may have written to before.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Opens a file to append to. Nothing is written through a link, nor into a pipe that somebody put
/// in its place.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    checked(OpenOptions::new().append(true).create(true), path)
}

/// Makes a file with this content.
pub(crate) fn write(path: &Path, content: &str) -> io::Result<()> {
    let mut file = checked(OpenOptions::new().write(true).create(true), path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(content.as_bytes())
}

#[cfg(target_os = "linux")]
fn checked(_: &mut OpenOptions, path: &Path) -> io::Result<File> {
    stockade_engine::open_output(path, &[])
}

#[cfg(not(target_os = "linux"))]
fn checked(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    if path.symlink_metadata().is_ok_and(|data| data.is_symlink()) {
        return Err(io::Error::other("it is a link"));
    }
    options.open(path)
}
