//! A command that runs in a session: one thread moves its input and output until it has ended.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::termios::tcsetwinsize;
use stockade::{Child, Finished};

use crate::api::{Size, Stream};
use crate::error::{Failure, Kind};

/// Bytes that wait to be read by one command.
pub(crate) const MAX_INPUT_BYTES: usize = 1 << 20;

/// What is read of an output at once.
const CHUNK_BYTES: usize = 32 << 10;

/// Where the output of a command goes.
pub trait OutputSink: Send {
    /// Takes some output; while this waits the command's pipe fills up, and the command waits too.
    ///
    /// # Errors
    /// If nobody takes output any more; the rest is dropped.
    fn write(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()>;
}

/// How a command ended.
pub type Ended = Result<Arc<Finished>, Failure>;

/// Called with how something ended.
type Callback<T> = Box<dyn FnOnce(T) + Send>;

/// A command that was started in a session.
#[derive(Clone, Debug)]
pub struct Command(Arc<Shared>);

/// What the thread of a command and its users share.
#[derive(Debug)]
struct Shared {
    control: Mutex<Control>,
    ended: Condvar,
    /// Readable when `control` has something new.
    wake: OwnedFd,
}

/// What users want of a command, and how it ended.
#[derive(Default)]
pub struct Control {
    /// Bytes of output that may be sent; none if there is no limit.
    credit: Option<u64>,
    input: VecDeque<Input>,
    input_bytes: usize,
    is_input_open: bool,
    has_terminal: bool,
    signals: Vec<i32>,
    kill: bool,
    size: Option<Size>,
    waiters: Vec<Callback<Ended>>,
    end: Option<Ended>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control")
            .field("credit", &self.credit)
            .field("input_bytes", &self.input_bytes)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

/// Bytes for a command, and who wants to know when it has taken them.
struct Input {
    bytes: Vec<u8>,
    written: usize,
    is_last: bool,
    done: Option<Callback<Result<(), Failure>>>,
}

impl Command {
    /// Takes care of a command that was started, in a thread of its own. The command's standard
    /// input must be a pipe or a terminal if `stdin` is open.
    pub(crate) fn attend(
        mut child: Child,
        credit: Option<u64>,
        sink: Box<dyn OutputSink>,
    ) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let terminal = child.take_terminal().map(File::from);
        let stdin = child.stdin.take();
        if let Some(input) = terminal.as_ref().or(stdin.as_ref()) {
            rustix::io::ioctl_fionbio(input, true)?;
        }
        let shared = Arc::new(Shared {
            control: Mutex::new(Control {
                credit,
                is_input_open: terminal.is_some() || stdin.is_some(),
                has_terminal: terminal.is_some(),
                ..Control::default()
            }),
            ended: Condvar::new(),
            wake,
        });
        let outputs = match terminal {
            Some(terminal) => [Some((Stream::Terminal, terminal)), None],
            None => [
                child.stdout.take().map(|file| (Stream::Stdout, file)),
                child.stderr.take().map(|file| (Stream::Stderr, file)),
            ],
        };
        let attendant = Attendant {
            shared: Arc::clone(&shared),
            child,
            stdin,
            outputs,
            sink: Some(sink),
            input: None,
        };
        let builder = std::thread::Builder::new().name("command".to_owned());
        builder.spawn(move || attendant.run())?;
        Ok(Self(shared))
    }

    /// Hands bytes to the command; `done` hears when the command's pipe has taken them.
    pub fn input(
        &self,
        bytes: Vec<u8>,
        is_last: bool,
        done: impl FnOnce(Result<(), Failure>) + Send + 'static,
    ) {
        let mut control = self.lock();
        let refusal = if !control.is_input_open || control.end.is_some() {
            Some(Failure::new(Kind::Ended, "the command's input is closed"))
        } else if control.input_bytes + bytes.len() > MAX_INPUT_BYTES {
            let text = format!("{MAX_INPUT_BYTES} bytes wait to be read by the command already");
            Some(Failure::new(Kind::LimitReached, text))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            drop(control);
            return done(Err(refusal));
        }
        control.input_bytes += bytes.len();
        control.is_input_open = !is_last || control.has_terminal;
        control.input.push_back(Input {
            bytes,
            written: 0,
            is_last,
            done: Some(Box::new(done)),
        });
        drop(control);
        self.wake();
    }

    /// Lets the command send more output.
    pub fn add_credit(&self, bytes: u64) {
        let mut control = self.lock();
        control.credit = control.credit.map(|credit| credit.saturating_add(bytes));
        drop(control);
        self.wake();
    }

    /// Sends a signal to the command's process group.
    pub fn signal(&self, signal: i32) {
        self.lock().signals.push(signal);
        self.wake();
    }

    /// Kills the command and what it started.
    pub fn kill(&self) {
        self.lock().kill = true;
        self.wake();
    }

    /// Changes the size of the command's terminal.
    ///
    /// # Errors
    /// If it has no terminal.
    pub fn resize(&self, size: Size) -> Result<(), Failure> {
        let mut control = self.lock();
        if !control.has_terminal {
            return Err(Failure::new(
                Kind::Unsupported,
                "the command has no terminal",
            ));
        }
        control.size = Some(size);
        drop(control);
        self.wake();
        Ok(())
    }

    /// Calls back when the command has ended and its output was taken.
    pub fn on_end(&self, callback: impl FnOnce(Ended) + Send + 'static) {
        let mut control = self.lock();
        match control.end.clone() {
            None => control.waiters.push(Box::new(callback)),
            Some(ended) => {
                drop(control);
                callback(ended);
            }
        }
    }

    /// Waits until the command has ended and its output was taken.
    ///
    /// # Errors
    /// If its end can't be known.
    pub fn wait(&self) -> Ended {
        let mut control = self.lock();
        loop {
            if let Some(ended) = control.end.clone() {
                return ended;
            }
            let waited = self.0.ended.wait(control);
            control = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether the command has ended and its output was taken.
    pub fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Control> {
        self.0.lock()
    }

    fn wake(&self) {
        // It is readable already if it can't be written.
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread of one command.
struct Attendant {
    shared: Arc<Shared>,
    child: Child,
    /// None for a terminal, whose output is its input too.
    stdin: Option<File>,
    outputs: [Option<(Stream, File)>; 2],
    /// None when nobody takes output any more.
    sink: Option<Box<dyn OutputSink>>,
    /// What is being written.
    input: Option<Input>,
}

/// What became ready.
#[derive(Default)]
struct Ready {
    heard: bool,
    outputs: [bool; 2],
    input: bool,
}

const AT_ONCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

impl Attendant {
    fn run(mut self) {
        let ended = match self.work() {
            Ok(()) => self.child.wait().map(Arc::new).map_err(Failure::from),
            Err(error) => {
                self.child.kill();
                Err(Failure::new(Kind::Internal, error.to_string()))
            }
        };
        let mut control = self.shared.lock();
        control.end = Some(ended.clone());
        let waiters = std::mem::take(&mut control.waiters);
        let inputs = std::mem::take(&mut control.input);
        drop(control);
        for input in self.input.take().into_iter().chain(inputs) {
            if let Some(done) = input.done {
                done(Err(Failure::new(Kind::Ended, "the command has ended")));
            }
        }
        self.shared.ended.notify_all();
        for waiter in waiters {
            waiter(ended.clone());
        }
    }

    /// Until the command has ended and its output was taken.
    fn work(&mut self) -> io::Result<()> {
        let mut is_running = true;
        loop {
            let is_killed = self.obey();
            self.next_input();
            if !is_running && (is_killed || !self.has_output()) {
                return Ok(());
            }
            let ready = self.wait_for_something(is_running)?;
            if ready.input {
                self.write_input();
            }
            for (at, is_ready) in ready.outputs.into_iter().enumerate() {
                if is_ready {
                    self.read_output(at);
                }
            }
            if ready.heard {
                is_running = self.child.hear().map_err(io::Error::other)?;
            }
        }
    }

    /// Does what users asked for; true if the command is to be killed.
    fn obey(&mut self) -> bool {
        let mut control = self.shared.lock();
        let signals = std::mem::take(&mut control.signals);
        let size = control.size.take();
        let kill = control.kill;
        drop(control);
        for signal in signals {
            // A command that has ended needs no signal.
            let _ = self.child.signal(signal);
        }
        if let (Some(size), Some((Stream::Terminal, terminal))) = (size, &self.outputs[0]) {
            // A terminal that is gone has no size.
            let _ = tcsetwinsize(terminal, size.into());
        }
        if kill {
            self.child.kill();
        }
        kill
    }

    fn next_input(&mut self) {
        if self.input.is_none() {
            self.input = self.shared.lock().input.pop_front();
        }
    }

    /// How much output may be read now.
    fn credit(&self) -> usize {
        match self.shared.lock().credit {
            None => CHUNK_BYTES,
            Some(left) => usize::try_from(left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES)),
        }
    }

    fn wait_for_something(&self, is_running: bool) -> io::Result<Ready> {
        let mut watched = vec![PollFd::new(&self.shared.wake, PollFlags::IN)];
        let mut what: Vec<fn(&mut Ready)> = vec![|_| {}];
        if is_running {
            let messages = self.child.messages();
            watched.push(PollFd::from_borrowed_fd(messages, PollFlags::IN));
            what.push(|ready| ready.heard = true);
        }
        if self.credit() > 0 {
            let set: [fn(&mut Ready); 2] = [|r| r.outputs[0] = true, |r| r.outputs[1] = true];
            for (output, set) in self.outputs.iter().zip(set) {
                if let Some((_, file)) = output {
                    watched.push(PollFd::new(file, PollFlags::IN));
                    what.push(set);
                }
            }
        }
        if let (Some(_), Some(file)) = (&self.input, self.input_file()) {
            watched.push(PollFd::from_borrowed_fd(file, PollFlags::OUT));
            what.push(|ready| ready.input = true);
        }
        match poll(&mut watched, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = Ready::default();
        for (fd, set) in watched.iter().zip(what) {
            if !fd.revents().is_empty() {
                set(&mut ready);
            }
        }
        // The count of the event is of no interest.
        let _ = rustix::io::read(&self.shared.wake, &mut [0; 8]);
        Ok(ready)
    }

    fn input_file(&self) -> Option<BorrowedFd<'_>> {
        match (&self.stdin, &self.outputs[0]) {
            (Some(stdin), _) => Some(stdin.as_fd()),
            (None, Some((Stream::Terminal, terminal))) => Some(terminal.as_fd()),
            _ => None,
        }
    }

    fn write_input(&mut self) {
        let Some(mut input) = self.input.take() else {
            return;
        };
        let rest = &input.bytes[input.written..];
        let written = match (&mut self.stdin, &mut self.outputs[0]) {
            (Some(stdin), _) if !rest.is_empty() => stdin.write(rest),
            (None, Some((Stream::Terminal, terminal))) if !rest.is_empty() => terminal.write(rest),
            _ => Ok(0),
        };
        let outcome = match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(_) => Err(Failure::new(Kind::Ended, "the command closed its input")),
            Ok(count) => {
                input.written += count;
                self.shared.lock().input_bytes -= count;
                Ok(())
            }
        };
        if outcome.is_ok() && input.written < input.bytes.len() {
            self.input = Some(input);
            return;
        }
        if outcome.is_err() {
            self.shared.lock().input_bytes -= input.bytes.len() - input.written;
        }
        if input.is_last {
            match &mut self.outputs[0] {
                // The character that means the end of input to a terminal (VEOF, termios(3)).
                Some((Stream::Terminal, terminal)) => drop(terminal.write(&[4])),
                _ => self.stdin = None,
            }
        }
        if let Some(done) = input.done {
            done(outcome);
        }
    }

    /// Whether output can be read at once, or could be with more credit.
    fn has_output(&mut self) -> bool {
        let files = self.outputs.iter().flatten();
        let mut watched: Vec<_> = files
            .map(|(_, file)| PollFd::new(file, PollFlags::IN))
            .collect();
        if poll(&mut watched, Some(&AT_ONCE)).is_err() {
            return false;
        }
        let ready = watched.iter().map(PollFd::revents);
        // At the end of a pipe there is nothing to wait for credit for.
        ready
            .into_iter()
            .any(|events| events.contains(PollFlags::IN))
    }

    fn read_output(&mut self, at: usize) {
        let mut chunk = vec![0; CHUNK_BYTES];
        let credit = self.credit();
        let Some((stream, file)) = &mut self.outputs[at] else {
            return;
        };
        if credit == 0 {
            return;
        }
        match file.read(&mut chunk[..credit]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A terminal whose last user is gone answers with EIO.
            Ok(0) | Err(_) => self.outputs[at] = None,
            Ok(length) => {
                let stream = *stream;
                let mut control = self.shared.lock();
                control.credit = control.credit.map(|credit| credit - length as u64);
                drop(control);
                let sink = self.sink.as_mut();
                let taken = sink.map(|sink| sink.write(stream, &chunk[..length]));
                if let Some(Err(_)) = taken {
                    self.sink = None;
                }
            }
        }
    }
}
