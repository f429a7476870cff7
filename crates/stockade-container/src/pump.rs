//! A container that runs one command: its streams are pumped by a thread of its own, which is
//! told what to do and says when the container has ended.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bollard::Docker;
use bollard::container::{AttachContainerResults, LogOutput};
use bollard::query_parameters::{
    InspectContainerOptions, KillContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    ResizeContainerTTYOptionsBuilder, WaitContainerOptionsBuilder,
};
use futures_util::StreamExt;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use stockade_engine::RunError;
use stockade_engine::backend::RunningSandbox;
use stockade_engine::network::NetworkGuard;
use stockade_linux::{Denial, Outcome, Usage};
use stockade_policy::profile::Backend as Name;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

use crate::engine::chain;
use crate::guard::Guard;
use crate::usage;

/// What the command has left to say when its container has ended is not waited for longer.
const DRAIN: Duration = Duration::from_secs(5);

const CHUNK: usize = 64 * 1024;

#[derive(Debug)]
enum Order {
    Kill,
    Resize(u16, u16),
    Signal(i32),
}

/// A container that was started.
pub(crate) struct Started {
    pub(crate) runtime: Runtime,
    pub(crate) client: Docker,
    pub(crate) name: String,
    pub(crate) streams: AttachContainerResults,
    /// Input, output and errors of the command.
    pub(crate) standard: [OwnedFd; 3],
    pub(crate) guard: Option<Guard>,
    /// What was made for the run and goes with it.
    pub(crate) files: Vec<std::path::PathBuf>,
    /// Who answers in the container's network.
    pub(crate) network: Option<Box<dyn NetworkGuard>>,
}

/// How a container ended.
#[derive(Debug)]
struct End {
    code: i64,
    /// Whether the kernel killed a process in it for want of memory.
    memory_limit: bool,
}

/// The launcher's handle of a container.
#[derive(Debug)]
pub(crate) struct ContainerRun {
    backend: Name,
    orders: UnboundedSender<Order>,
    /// Hangs up when the container is gone.
    done: OwnedFd,
    end: Arc<Mutex<Option<Result<End, String>>>>,
    usage: Arc<Mutex<Usage>>,
    thread: Option<JoinHandle<()>>,
    terminal: Option<OwnedFd>,
    network: Option<Box<dyn NetworkGuard>>,
}

impl ContainerRun {
    pub(crate) fn new(
        backend: Name,
        mut started: Started,
        terminal: Option<OwnedFd>,
    ) -> io::Result<Self> {
        let network = started.network.take();
        let (done, done_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stop, stop_end) = pipe_with(PipeFlags::CLOEXEC)?;
        let (orders, given) = unbounded_channel();
        let end = Arc::new(Mutex::new(None));
        let result = Arc::clone(&end);
        let usage = Arc::new(Mutex::new(Usage::default()));
        let used = Arc::clone(&usage);
        let thread = std::thread::Builder::new()
            .name("stockade-container".to_owned())
            .spawn(move || {
                let outcome = pump(started, given, stop, stop_end, used);
                if let Ok(mut result) = result.lock() {
                    *result = Some(outcome);
                }
                drop(done_end);
            })?;
        Ok(Self {
            backend,
            orders,
            done,
            end,
            usage,
            thread: Some(thread),
            terminal,
            network,
        })
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A thread that panicked left no result, which is told as such.
            let _ = thread.join();
        }
    }
}

impl RunningSandbox for ContainerRun {
    fn kill(&mut self) {
        // If nobody listens any more the container is gone.
        let _ = self.orders.send(Order::Kill);
    }

    fn killer(&self) -> Box<dyn FnOnce() + Send> {
        let orders = self.orders.clone();
        // If nobody listens any more the container is gone.
        Box::new(move || drop(orders.send(Order::Kill)))
    }

    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    fn take_network(&mut self) -> Option<Box<dyn NetworkGuard>> {
        self.network.take()
    }

    fn hear(&mut self) -> io::Result<bool> {
        Ok(rustix::io::read(&self.done, &mut [0; 1])? > 0)
    }

    fn take_stopped(&mut self) -> bool {
        false
    }

    fn messages(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }

    fn pidfd(&self) -> BorrowedFd<'_> {
        self.done.as_fd()
    }

    fn denials(&self) -> &[Denial] {
        &[]
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        let gone = |_| io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error());
        self.orders.send(Order::Signal(signal)).map_err(gone)
    }

    fn resize(&self, rows: u16, columns: u16) {
        let _ = self.orders.send(Order::Resize(rows, columns));
    }

    fn wait(&mut self) -> Result<Outcome, RunError> {
        self.join();
        let end = self.end.lock().ok().and_then(|mut end| end.take());
        let failed = |reason: String| RunError::Lost {
            backend: self.backend,
            reason,
        };
        let End { code, memory_limit } = end
            .unwrap_or_else(|| Err("its end is not known".to_owned()))
            .map_err(failed)?;
        // As `wait(2)` tells it; a signal is 128 and more by the engine's own process 1.
        let status = i32::try_from(code & 0xff).unwrap_or(0) << 8;
        Ok(Outcome {
            status: Some(status),
            // The engine does not say.
            cpu_limit: false,
            memory_limit,
            usage: self.usage.lock().map(|usage| *usage).unwrap_or_default(),
        })
    }
}

impl Drop for ContainerRun {
    fn drop(&mut self) {
        self.kill();
        self.join();
    }
}

/// Runs until the container has ended and is removed; how it ended, or why that is not known.
fn pump(
    started: Started,
    orders: UnboundedReceiver<Order>,
    stop: OwnedFd,
    stop_end: OwnedFd,
    usage: Arc<Mutex<Usage>>,
) -> Result<End, String> {
    let Started {
        runtime,
        client,
        name,
        streams,
        standard,
        mut guard,
        files,
        network: _,
    } = started;
    let followed = usage::follow(client.clone(), name.clone(), usage);
    let followed = runtime.spawn(followed);
    let outcome = runtime.block_on(relay(&client, &name, streams, standard, orders, stop));
    drop(stop_end);
    let memory_limit = runtime.block_on(was_out_of_memory(&client, &name));
    followed.abort();
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    let removed = runtime.block_on(client.remove_container(&name, Some(options)));
    for file in files {
        let _ = std::fs::remove_file(file);
    }
    match removed {
        // Left to the guard otherwise, which tries again.
        Ok(()) => guard.iter_mut().for_each(Guard::dismiss),
        Err(error) if crate::engine::is_gone(&error) => {
            guard.iter_mut().for_each(Guard::dismiss);
        }
        Err(_) => {}
    }
    // Whoever still reads the launcher's input must not keep the thread.
    runtime.shutdown_background();
    outcome.map(|code| End { code, memory_limit })
}

/// What the engine noted about a container that has ended.
async fn was_out_of_memory(client: &Docker, name: &str) -> bool {
    let inspected = client.inspect_container(name, None::<InspectContainerOptions>);
    let state = inspected.await.ok().and_then(|found| found.state);
    state.is_some_and(|state| state.oom_killed == Some(true))
}

async fn relay(
    client: &Docker,
    name: &str,
    streams: AttachContainerResults,
    standard: [OwnedFd; 3],
    mut orders: UnboundedReceiver<Order>,
    stop: OwnedFd,
) -> Result<i64, String> {
    let [input, output, errors] = standard.map(File::from);
    let feeding = tokio::spawn(feed(streams.input, input, stop));
    let mut showing = tokio::spawn(show(streams.output, output, errors));
    let options = WaitContainerOptionsBuilder::default()
        .condition("not-running")
        .build();
    let mut waiting = Box::pin(client.wait_container(name, Some(options)));
    let ended = loop {
        tokio::select! {
            ended = waiting.next() => break ended,
            Some(order) = orders.recv() => {
                if matches!(order, Order::Kill) {
                    // The engine ends no container whose output nobody reads.
                    tokio::spawn(abort_after(DRAIN, showing.abort_handle()));
                }
                obey(client, name, order).await;
            }
        }
    };
    let code = match ended {
        Some(Ok(answer)) => Ok(answer.status_code),
        // How this client tells a code other than 0.
        Some(Err(bollard::errors::Error::DockerContainerWaitError { code, error }))
            if error.is_empty() =>
        {
            Ok(code)
        }
        Some(Err(error)) => Err(format!("the engine went away: {}", chain(&error))),
        None => Err("the engine went away while the command ran".to_owned()),
    };
    if tokio::time::timeout(DRAIN, &mut showing).await.is_err() {
        showing.abort();
    }
    feeding.abort();
    code
}

async fn abort_after(delay: Duration, task: AbortHandle) {
    tokio::time::sleep(delay).await;
    task.abort();
}

async fn obey(client: &Docker, name: &str, order: Order) {
    // A container that has ended in this moment needs no order.
    let _ = match order {
        Order::Kill => signal(client, name, "KILL".to_owned()).await,
        Order::Signal(number) => signal(client, name, number.to_string()).await,
        Order::Resize(rows, columns) => {
            let options = ResizeContainerTTYOptionsBuilder::default()
                .h(i32::from(rows))
                .w(i32::from(columns))
                .build();
            client.resize_container_tty(name, options).await
        }
    };
}

async fn signal(client: &Docker, name: &str, signal: String) -> Result<(), bollard::errors::Error> {
    let options = KillContainerOptionsBuilder::default()
        .signal(&signal)
        .build();
    client.kill_container(name, Some(options)).await
}

/// From the launcher's input to the command's, until one of them ends or `stop` hangs up.
async fn feed(
    mut into: Pin<Box<dyn tokio::io::AsyncWrite + Send>>,
    from: File,
    stop: OwnedFd,
) -> io::Result<()> {
    let from = Arc::new(from);
    let stop = Arc::new(stop);
    loop {
        let (source, stop) = (Arc::clone(&from), Arc::clone(&stop));
        let read = tokio::task::spawn_blocking(move || read_unless(&source, &stop));
        let chunk = read.await.map_err(io::Error::other)??;
        if chunk.is_empty() {
            return into.shutdown().await;
        }
        into.write_all(&chunk).await?;
        into.flush().await?;
    }
}

/// Nothing at the end of the input, or when it is no longer wanted.
fn read_unless(source: &File, stop: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut watched = [
        PollFd::new(source, PollFlags::IN),
        PollFd::new(stop, PollFlags::IN),
    ];
    loop {
        match poll(&mut watched, None) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if !watched[1].revents().is_empty() {
        return Ok(Vec::new());
    }
    let mut chunk = vec![0; CHUNK];
    let mut source = source;
    let length = source.read(&mut chunk)?;
    chunk.truncate(length);
    Ok(chunk)
}

type Output =
    Pin<Box<dyn futures_util::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// From the command's output to the launcher's.
async fn show(mut from: Output, output: File, errors: File) {
    let output = Arc::new(output);
    let errors = Arc::new(errors);
    while let Some(Ok(chunk)) = from.next().await {
        let (message, into) = match chunk {
            LogOutput::StdErr { message } => (message, Arc::clone(&errors)),
            LogOutput::StdOut { message } | LogOutput::Console { message } => {
                (message, Arc::clone(&output))
            }
            LogOutput::StdIn { .. } => continue,
        };
        // A reader that is slow must not keep orders waiting.
        let written = tokio::task::spawn_blocking(move || (&*into).write_all(&message)).await;
        if !matches!(written, Ok(Ok(()))) {
            // Whoever read is gone; the command's own output is closed in turn.
            return;
        }
    }
}
