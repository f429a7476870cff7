//! Collecting what a command writes.

use std::fs::File;
use std::io::{self, Read};

use super::{Child, Finished, RunError};

/// What a finished command wrote, and how it ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Output {
    /// How it ended.
    pub finished: Finished,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// Reads both pipes at once: a command that fills one while we read the other would hang.
pub(super) fn collect(child: &mut Child) -> Result<Output, RunError> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (finished, stdout, stderr) = std::thread::scope(|scope| {
        let stdout = scope.spawn(|| read_all(stdout));
        let stderr = scope.spawn(|| read_all(stderr));
        let finished = child.wait();
        let joined = |thread: std::thread::ScopedJoinHandle<'_, io::Result<Vec<u8>>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the reader panicked")))
        };
        (finished, joined(stdout), joined(stderr))
    });
    let failed = |source| RunError::Io {
        act: "read the command's output",
        source,
    };
    Ok(Output {
        finished: finished?,
        stdout: stdout.map_err(failed)?,
        stderr: stderr.map_err(failed)?,
    })
}

fn read_all(pipe: Option<File>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
