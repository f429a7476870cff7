//! What a command has written, up to a bound.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stockade_serve::OutputSink;
use stockade_serve::api::Stream;

/// More is counted and dropped: a model can't read it anyway.
const MAX_BYTES: usize = 256 << 10;

/// What a command has written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output(Arc<Mutex<Written>>);

/// Each stream, and how much was dropped.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) dropped_bytes: usize,
}

impl Output {
    /// What was written since this was last asked.
    pub(crate) fn take(&self) -> Written {
        std::mem::take(&mut *self.lock())
    }

    /// The last line, to show that a command makes progress.
    pub(crate) fn last_line(&self) -> Option<String> {
        let written = self.lock();
        let text = String::from_utf8_lossy(&written.stdout);
        let last = text.lines().rfind(|line| !line.trim().is_empty())?;
        Some(
            last.chars()
                .filter(|letter| !letter.is_control())
                .take(200)
                .collect(),
        )
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputSink for Output {
    fn write(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let mut written = self.lock();
        let room = MAX_BYTES.saturating_sub(written.stdout.len() + written.stderr.len());
        let (kept, dropped) = bytes.split_at(bytes.len().min(room));
        match stream {
            Stream::Stderr => written.stderr.extend_from_slice(kept),
            Stream::Stdout | Stream::Terminal => written.stdout.extend_from_slice(kept),
        }
        written.dropped_bytes += dropped.len();
        Ok(())
    }
}
