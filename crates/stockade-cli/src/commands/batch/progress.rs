//! How far a batch has come, on a terminal.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::outcome::Tally;
use crate::args::BatchArgs;
use crate::failure::Failure;
use crate::output::{self, Format};

pub(super) struct Progress {
    started: Instant,
    is_shown: bool,
    is_quiet: bool,
    /// Number of tasks, if they are in a file.
    total: Option<u64>,
}

impl Progress {
    pub(super) fn new(args: &BatchArgs) -> Result<Self, Failure> {
        let is_shown = !args.quiet && !args.output.json && std::io::stderr().is_terminal();
        let file = args.file.as_deref().filter(|file| file.is_file());
        Ok(Self {
            started: Instant::now(),
            is_shown,
            is_quiet: args.quiet,
            total: file.filter(|_| is_shown).map(count_lines).transpose()?,
        })
    }

    pub(super) fn show(&self, tally: Tally) {
        if !self.is_shown {
            return;
        }
        let done = tally.done();
        let rate = self.rate(tally);
        let line = match self.total {
            Some(total) if rate > 0.0 => {
                #[expect(clippy::cast_precision_loss, reason = "an estimate")]
                let seconds = total.saturating_sub(done) as f64 / rate;
                let left = Duration::try_from_secs_f64(seconds).unwrap_or_default();
                let left = left.as_secs();
                format!("{done} of {total} tasks, {rate:.1}/s, {left} s left")
            }
            Some(total) => format!("{done} of {total} tasks"),
            None => format!("{done} tasks, {rate:.1}/s"),
        };
        // Nowhere to report that the terminal is gone.
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    }

    /// Removes the line.
    pub(super) fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    pub(super) fn summarise(&self, tally: Tally, format: Format) {
        if self.is_quiet || format == Format::Json {
            return;
        }
        let mut text = format!("{} tasks run", tally.ran);
        if tally.ran > 0 {
            let _ = write!(text, ", {:.1}/s", self.rate(tally));
        }
        if tally.resumed > 0 {
            let _ = write!(text, "; {} taken from the journal", tally.resumed);
        }
        if tally.errors > 0 {
            let _ = write!(text, "; {} could not be run", tally.errors);
        }
        output::note(&text);
    }

    /// Tasks a second, without those of the journal.
    fn rate(&self, tally: Tally) -> f64 {
        let seconds = self.started.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let ran = (tally.ran + tally.errors) as f64;
        if seconds > 0.0 { ran / seconds } else { 0.0 }
    }
}

fn count_lines(path: &Path) -> Result<u64, Failure> {
    let mut file = File::open(path)?;
    let mut chunk = [0; 1 << 13];
    let mut lines = 0;
    loop {
        let length = file.read(&mut chunk)?;
        if length == 0 {
            return Ok(lines);
        }
        lines += chunk[..length]
            .iter()
            .map(|byte| u64::from(*byte == b'\n'))
            .sum::<u64>();
    }
}
