//! `stockade batch`: many tasks, each in a sandbox of its own.

mod input;
mod journal;
mod outcome;
mod progress;
mod task;
mod worker;
mod workplace;

use std::io::{self, BufReader, PipeReader, PipeWriter};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stockade_linux::Signals;

use self::input::Input;
use self::journal::Journal;
use self::outcome::{Results, Tally};
use self::progress::Progress;
use self::task::Tasks;
use self::worker::Worker;
use self::workplace::Workplaces;
use crate::args::BatchArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// How often progress is shown.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &BatchArgs) -> Result<Exit, Failure> {
    let progress = Progress::new(args)?;
    // Dropping `stop` ends every worker; `ended` closes when the last of them has ended.
    let (stopped, stop) = io::pipe()?;
    let (ended, running) = io::pipe()?;
    let stopped = Arc::new(stopped);
    let input = Input::open(args.file.as_deref(), Arc::clone(&stopped))?;
    let journal = args.journal.as_deref().map(Journal::open).transpose()?;
    let workplaces = Workplaces::new()?;
    let count = match args.parallel {
        Some(count) => count.get(),
        None => thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    // Before there are threads: they inherit the mask.
    let signals = Signals::catch(&[SIGHUP, SIGINT, SIGTERM])?;
    let worker = Worker {
        tasks: Arc::new(Mutex::new(Tasks::new(Box::new(BufReader::new(input))))),
        results: Arc::new(Mutex::new(Results::new(journal))),
        stopped,
        workplaces: Arc::new(workplaces),
        retries: args.retries,
        max_output: usize::try_from(args.max_output).unwrap_or(usize::MAX),
    };
    let results = Arc::clone(&worker.results);
    let workplaces = Arc::clone(&worker.workplaces);
    for _ in 0..count {
        let (worker, running) = (worker.clone(), running.try_clone()?);
        thread::Builder::new().spawn(move || {
            worker.work();
            drop(running);
        })?;
    }
    drop((worker, running));
    let signal = wait(&signals, stop, &ended, || progress.show(tally(&results)))?;
    progress.clear();
    workplaces.remove();
    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = results.failure.take() {
        return Err(failure);
    }
    let tally = results.tally;
    if let Some(signal) = signal {
        let format = Format::of(args.output.json);
        output::warn(&stopped_text(args, tally), format);
        return Ok(Exit::Signal(u8::try_from(signal).unwrap_or(u8::MAX)));
    }
    progress.summarise(tally, Format::of(args.output.json));
    Ok(if tally.errors == 0 {
        Exit::Success
    } else {
        Exit::Negative
    })
}

fn stopped_text(args: &BatchArgs, tally: Tally) -> String {
    let done = tally.done();
    match &args.journal {
        Some(_) => format!("stopped after {done} tasks; the same command goes on with the others"),
        None => format!("stopped after {done} tasks; with --journal FILE a batch can go on"),
    }
}

fn tally(results: &Mutex<Results>) -> Tally {
    let results = results.lock().unwrap_or_else(PoisonError::into_inner);
    results.tally
}

/// Waits until every worker has ended. A signal has them stop; the answer is its number.
fn wait(
    signals: &Signals,
    stop: PipeWriter,
    ended: &PipeReader,
    mut tick: impl FnMut(),
) -> Result<Option<i32>, Failure> {
    let interval = Timespec::try_from(PROGRESS_INTERVAL).map_err(io::Error::other)?;
    let mut stop = Some(stop);
    let mut signal = None;
    loop {
        let mut watched = [
            PollFd::new(ended, PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
        ];
        match poll(&mut watched, Some(&interval)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(io::Error::from(error).into()),
        }
        if !watched[0].revents().is_empty() {
            return Ok(signal);
        }
        if let Some(caught) = signals.next()? {
            signal = Some(caught);
            drop(stop.take());
        }
        tick();
    }
}
