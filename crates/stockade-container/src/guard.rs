//! The guard: a process that removes a container when its launcher is gone.
//!
//! A container belongs to the engine and would outlive a launcher that is killed. The launcher
//! starts the guard first, with a pipe as its input; a byte there means that all is well, the end
//! without one means that the launcher is dead. It needs nothing but the engine's socket, so that
//! it starts at once and stays small.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The first argument that makes a program act as the guard.
pub const MARKER: &str = "--stockade-internal-container-guard";

const REMOVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether this program was started as the guard.
pub fn is_requested() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == MARKER)
}

/// Waits for the launcher to end, in whatever way; returns the exit code. Arguments: the engine's socket, the container's
/// name, and files and empty directories to remove.
pub fn main() -> u8 {
    let mut words = std::env::args_os().skip(2);
    let (Some(socket), Some(name)) = (words.next(), words.next()) else {
        return 2;
    };
    let mut word = [0];
    let all_is_well = io::stdin().read(&mut word).is_ok_and(|length| length > 0);
    if all_is_well {
        return 0;
    }
    let removed = remove(Path::new(&socket), &name.to_string_lossy());
    for file in words {
        // It may never have been made.
        crate::entry::remove(Path::new(&file));
    }
    match removed {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

/// HTTP/1.0, so that the answer ends with the connection.
fn remove(socket: &Path, name: &str) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(REMOVAL_TIMEOUT))?;
    let request =
        format!("DELETE /containers/{name}?force=true&v=true HTTP/1.0\r\nHost: docker\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(64 * 1024).read_to_end(&mut answer)?;
    Ok(())
}

/// A guard that watches over this process.
#[derive(Debug)]
pub(crate) struct Guard(Option<Child>);

impl Guard {
    /// Starts it; `program` is one whose `main` begins with [`main`] when [`is_requested`].
    pub(crate) fn start(
        program: &Path,
        socket: &Path,
        name: &str,
        files: &[PathBuf],
    ) -> io::Result<Self> {
        let child = Command::new(program)
            .arg(MARKER)
            .arg(socket)
            .arg(name)
            .args(files)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self(Some(child)))
    }

    /// Nothing is left to guard.
    pub(crate) fn dismiss(&mut self) {
        let Some(mut child) = self.0.take() else {
            return;
        };
        if let Some(mut input) = child.stdin.take() {
            let _ = input.write_all(b"d");
        }
        let _ = child.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The pipe closes without a word: it does its work.
        if let Some(mut child) = self.0.take() {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
