//! Watching commands that were left running, and typing to them.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use stockade_workspace::{Input, WorkspaceName};

use super::{Context, name, refused};
use crate::args::ws::{LogsArgs, NameArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

/// How often a file is looked at that somebody else writes.
const EVERY: Duration = Duration::from_millis(50);

pub(super) fn logs(context: &Context, args: &LogsArgs) -> Result<Exit, Failure> {
    let stop = AtomicBool::new(!args.follow);
    show(context, &name(&args.name)?, &stop)
}

pub(super) fn attach(context: &Context, args: &NameArgs) -> Result<Exit, Failure> {
    let name = name(&args.name)?;
    let state = context.manager.show(&name).map_err(refused)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut alive = state.processes.iter().filter(|process| process.is_alive());
    if let Some(path) = alive.next_back().and_then(|process| process.input.as_ref()) {
        send(&Input::at(path), Arc::clone(&stop))?;
    }
    show(context, &name, &stop)
}

/// Hands on what is typed, beside what else is done. Who is at a terminal and ends their input
/// wants to leave.
fn send(input: &Input, stop: Arc<AtomicBool>) -> Result<(), Failure> {
    let Some(mut writer) = input.writer().map_err(refused)? else {
        return Ok(());
    };
    let hand_on = move || {
        let stdin = std::io::stdin();
        let whole = std::io::copy(&mut stdin.lock(), &mut writer).is_ok();
        if whole && stdin.is_terminal() {
            stop.store(true, Ordering::Relaxed);
        }
    };
    std::thread::Builder::new().spawn(hand_on)?;
    Ok(())
}

/// Prints the log until nothing runs any more, or it is to stop.
fn show(context: &Context, name: &WorkspaceName, stop: &AtomicBool) -> Result<Exit, Failure> {
    let mut state = context.manager.show(name).map_err(refused)?;
    let path = context.manager.log_file(name);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Exit::Success),
        Err(error) => {
            let what = format!("can't read `{}`", path.display());
            return Err(Failure::new(
                Exit::Negative,
                anyhow::Error::new(error).context(what),
            ));
        }
    };
    let mut log = Log {
        format: context.format,
        line: Vec::new(),
    };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let alive = !stop.load(Ordering::Relaxed) && state.is_alive();
        // To the end of what was there when it was looked at: nothing is lost if it ended since.
        loop {
            let got = file.read(&mut buffer)?;
            if got == 0 {
                break;
            }
            log.print(&buffer[..got])?;
        }
        if !alive {
            log.end()?;
            return Ok(Exit::Success);
        }
        std::thread::sleep(EVERY);
        state = context.manager.show(name).map_err(refused)?;
    }
}

/// Longer lines become several records.
const MAX_LINE_BYTES: usize = 1 << 20;

/// What a command wrote, as it is or as a record for each line.
struct Log {
    format: Format,
    /// The beginning of a line whose end is yet to come.
    line: Vec<u8>,
}

impl Log {
    fn print(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.format == Format::Text {
            return output::raw(bytes);
        }
        let mut lines = bytes.split(|byte| *byte == b'\n');
        // What follows the last end of a line is the beginning of the next.
        let rest = lines.next_back().unwrap_or_default();
        for line in lines {
            self.line.extend_from_slice(line);
            self.record()?;
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > MAX_LINE_BYTES {
            self.record()?;
        }
        Ok(())
    }

    fn end(mut self) -> Result<(), Failure> {
        if self.line.is_empty() {
            return Ok(());
        }
        self.record()
    }

    fn record(&mut self) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Record<'a> {
            line: &'a str,
        }
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        output::json_line(Record { line: &line })
    }
}
