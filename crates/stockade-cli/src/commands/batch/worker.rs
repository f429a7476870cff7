//! A thread that runs one task after the other.

use std::io::{self, PipeReader, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::Value;
use stockade::{Child, Ending, Error, Finished, RunError, Stdio};
use stockade_linux::{SpawnError, Stage};
use stockade_serve::api::{self, Bytes};

use super::outcome::{Outcome, Ran, Results, TaskResult};
use super::task::{Input, Task, Tasks};
use super::workplace::{Workplace, Workplaces};
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Clone)]
pub(super) struct Worker {
    pub(super) tasks: Arc<Mutex<Tasks>>,
    pub(super) results: Arc<Mutex<Results>>,
    /// Becomes readable when the batch is stopped.
    pub(super) stopped: Arc<PipeReader>,
    pub(super) workplaces: Arc<Workplaces>,
    pub(super) retries: u32,
    pub(super) max_output: usize,
}

/// Why an attempt has no result.
enum Fault {
    /// The task itself can't be run.
    Task(Failure),
    /// The sandbox failed, and another attempt may succeed.
    Machine(Failure),
    /// The batch was stopped.
    Stopped,
}

impl Worker {
    /// Works until there is no task left, the batch is stopped, or a result can't be written.
    pub(super) fn work(&self) {
        loop {
            let next = {
                let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
                tasks.next()
            };
            // The input ends in the middle of a line then.
            if self.is_stopped() {
                return;
            }
            let done = match next {
                Ok(Some(Input::Task(task, written))) => self.finish(&task, &written),
                Ok(Some(Input::Malformed { line, message })) => {
                    let failure = Failure::text(Exit::Usage, message);
                    self.results().put_malformed(line, &failure)
                }
                Ok(None) => return,
                Err(error) => Err(error.into()),
            };
            if let Err(failure) = done {
                self.results().failure.get_or_insert(failure);
            }
        }
    }

    fn results(&self) -> std::sync::MutexGuard<'_, Results> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        let mut watched = [PollFd::new(&*self.stopped, PollFlags::IN)];
        let at_once = rustix::event::Timespec::default();
        poll(&mut watched, Some(&at_once)).is_ok_and(|ready| ready > 0)
            || self.results().failure.is_some()
    }

    /// Runs a task, again if the machine fails, and writes its result.
    fn finish(&self, task: &Task, written: &Value) -> Result<(), Failure> {
        if self.results().resume(&task.id, written)? {
            return Ok(());
        }
        let mut attempts = 0;
        loop {
            attempts += 1;
            let failure = match self.attempt(task) {
                Ok(ran) => {
                    let result = TaskResult::Ran(Box::new(ran));
                    return self.put(task, written, attempts, result);
                }
                Err(Fault::Stopped) => return Ok(()),
                Err(Fault::Machine(_)) if attempts <= self.retries => continue,
                Err(Fault::Machine(failure) | Fault::Task(failure)) => failure,
            };
            let error = failure.record();
            return self.put(task, written, attempts, TaskResult::Failed { error });
        }
    }

    fn put(
        &self,
        task: &Task,
        written: &Value,
        attempts: u32,
        result: TaskResult<'_>,
    ) -> Result<(), Failure> {
        let outcome = Outcome {
            id: &task.id,
            attempts,
            result,
        };
        self.results().put(written, &outcome)
    }

    fn attempt(&self, task: &Task) -> Result<Ran, Fault> {
        let workplace = self.workplaces.get().map_err(machine)?;
        let (sandbox, has_overlay) = build(task, &workplace)?;
        let input = match task.stdin.clone().map(Bytes::decode) {
            Some(None) => {
                let text = "the input is not base64";
                return Err(Fault::Task(Failure::text(Exit::Usage, text)));
            }
            Some(input) => input,
            None => None,
        };
        let mut command = sandbox.command(&task.argv[0]);
        command.args(&task.argv[1..]);
        if let Some(cwd) = &task.cwd {
            command.current_dir(cwd);
        }
        command.stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(fault)?;
        let (finished, [stdout, stderr]) = self.collect(&mut child, input)?;
        // The batch did not kill it: something else on this machine did.
        if matches!(finished.report.ending, Ending::Killed | Ending::Lost) {
            let text = "the sandbox ended before the command did";
            return Err(Fault::Machine(Failure::text(Exit::NotSetUp, text)));
        }
        let changes = has_overlay.then(|| changes(&sandbox)).transpose()?;
        let report = &finished.report;
        Ok(Ran {
            ended: api::Waited::from(&finished),
            truncated: stdout.is_truncated || stderr.is_truncated,
            stdout: Bytes::new(&stdout.bytes),
            stderr: Bytes::new(&stderr.bytes),
            changes,
            backend: report.backend.to_string(),
            enforcement: report.enforcement.iter().map(Into::into).collect(),
        })
    }

    /// Feeds the command and takes what it writes until it has ended.
    fn collect(
        &self,
        child: &mut Child,
        input: Option<Vec<u8>>,
    ) -> Result<(Finished, [Stream; 2]), Fault> {
        let streams = [child.stdout.take(), child.stderr.take()];
        let stdin = child.stdin.take();
        thread::scope(|scope| {
            scope.spawn(move || {
                if let (Some(mut stdin), Some(input)) = (stdin, input) {
                    // The command need not read it all.
                    let _ = stdin.write_all(&input);
                }
            });
            let readers = streams.map(|stream| {
                scope.spawn(|| stream.map_or_else(Stream::default, |file| self.read(file)))
            });
            let finished = self.wait(child);
            let streams = readers.map(|reader| reader.join().unwrap_or_default());
            finished.map(|finished| (finished, streams))
        })
    }

    fn wait(&self, child: &mut Child) -> Result<Finished, Fault> {
        loop {
            let (is_heard, is_stopped) = {
                let mut watched = [
                    PollFd::from_borrowed_fd(child.messages(), PollFlags::IN),
                    PollFd::new(&*self.stopped, PollFlags::IN),
                ];
                match poll(&mut watched, None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(machine(io::Error::from(error))),
                }
                let [messages, stopped] = watched.map(|fd| !fd.revents().is_empty());
                (messages, stopped)
            };
            if is_stopped {
                child.kill();
                // How it ended no longer matters.
                let _ = child.wait();
                return Err(Fault::Stopped);
            }
            if is_heard && !child.hear().map_err(fault)? {
                return child.wait().map_err(fault);
            }
        }
    }

    /// Reads a stream to its end and keeps the beginning.
    fn read(&self, mut file: std::fs::File) -> Stream {
        let mut stream = Stream::default();
        let limit = u64::try_from(self.max_output).unwrap_or(u64::MAX);
        // A stream that can't be read has ended.
        let _ = Read::take(&mut file, limit).read_to_end(&mut stream.bytes);
        let rest = io::copy(&mut file, &mut io::sink());
        stream.is_truncated = rest.is_ok_and(|length| length > 0);
        stream
    }
}

#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    is_truncated: bool,
}

/// The sandbox of a task, and whether its changes go to an overlay.
fn build(task: &Task, workplace: &Workplace) -> Result<(stockade::Sandbox, bool), Fault> {
    let mut policy = task.policy.clone();
    if !task.files.is_empty() {
        let dir = workplace.write(task).map_err(|error| {
            if error.kind() == io::ErrorKind::InvalidInput {
                Fault::Task(Failure::new(Exit::Usage, error))
            } else {
                machine(error)
            }
        })?;
        policy.workspace = Some(dir.to_string_lossy().into_owned());
        policy.overlay = true;
    }
    let unusable = |failure| Fault::Task(Failure::new(Exit::Usage, failure));
    let mut builder = stockade_serve::builder(&policy).map_err(unusable)?;
    if policy.overlay {
        builder.overlay_in(workplace.store());
    }
    Ok((builder.build().map_err(fault)?, policy.overlay))
}

fn changes(sandbox: &stockade::Sandbox) -> Result<Vec<api::Change>, Fault> {
    let diff = sandbox.diff().map_err(fault)?;
    let changes = api::Changes::of(&diff, true).map_err(machine)?;
    Ok(changes.changes)
}

fn machine(error: impl Into<anyhow::Error>) -> Fault {
    Fault::Machine(Failure::new(Exit::NotSetUp, error))
}

/// Whose fault an error is: another attempt helps only against the machine's.
fn fault(error: Error) -> Fault {
    let hint = error.hint();
    let (exit, is_machine) = match &error {
        Error::Run(RunError::Spawn(SpawnError::Stage { stage, .. })) => match stage {
            Stage::Find => (Exit::NotFound, false),
            Stage::Execute => (Exit::NotExecutable, false),
            _ => (Exit::NotSetUp, true),
        },
        Error::Run(RunError::Plan(_)) => (Exit::NotSetUp, false),
        Error::Run(_) | Error::Overlay(_) => (Exit::NotSetUp, true),
        _ => (Exit::Usage, false),
    };
    let mut failure = Failure::new(exit, error);
    if let Some(hint) = hint {
        failure = failure.hint(hint);
    }
    if is_machine {
        Fault::Machine(failure)
    } else {
        Fault::Task(failure)
    }
}
