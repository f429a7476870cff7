//! The process that owns a session: it opens the sandbox, serves clients at a socket, and closes
//! the sandbox when it is told to, when nobody has used it for long, or when it has ended.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use stockade_engine::{Child, CountedOutput, Ending, Session, SessionSpec, Spec};
use stockade_linux::{Builder, Channel, ChannelListener, Signals};
use stockade_policy::profile::{BasePolicy, Profile};
use stockade_workspace::Overlay;

use super::directory::Directory;
use super::protocol::{Answer, Description, Exec, Request, receive, send};
use crate::args::SessionOpenArgs;
use crate::commands::backends;
use crate::commands::run::confined::{SHOWS_ALL, THIS, exit_of, network, remarks, run_failure};
use crate::commands::run::overlay;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::resolve::Place;

pub(super) fn run(args: &SessionOpenArgs) -> Result<Exit, Failure> {
    // Away from the caller's terminal and its Ctrl-C.
    rustix::process::setsid().map_err(|error| failed("start a new session", error))?;
    let caught = [Signal::HUP, Signal::INT, Signal::TERM].map(Signal::as_raw);
    let signals = Signals::catch(&caught).map_err(|error| failed("catch signals", error))?;
    let started_in = std::env::current_dir()?;
    let place = Place::enter(args.policy.cwd.as_deref())?;
    let profile = place.profile(&args.policy)?;
    let directory = Directory::open()?;
    let (name, listener) = take_name(args.wanted_name(), &directory)?;
    let sandbox = SandboxSource {
        args,
        place,
        profile,
        started_in,
    };
    let opened = sandbox
        .open(Builder::Copy)
        .inspect_err(|_| directory.remove(&name))?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let owner = Owner {
        name,
        description: opened.describe(),
        sandbox,
        open: RwLock::new(Some(opened)),
        changed: eventfd(0, flags).map_err(|error| failed("make an event", error))?,
        directory,
        idle_timeout: args.idle_timeout,
        opened: Instant::now(),
        state: Mutex::new(State {
            commands: 0,
            idle_since: Instant::now(),
            is_let_go: false,
            is_closing: false,
            closers: Vec::new(),
        }),
    };
    owner.detach()?;
    owner.serve(&listener, &signals);
    owner.close(listener);
    Ok(Exit::Success)
}

fn take_name(
    name: Option<&str>,
    directory: &Directory,
) -> Result<(String, ChannelListener), Failure> {
    let bind = |name: &str| {
        let what = format!(
            "make the socket of the session in `{}`",
            directory.path().display()
        );
        directory.bind(name).map_err(|error| failed(&what, error))
    };
    if let Some(name) = name {
        let taken = || {
            let text = format!("there is a session `{name}` already");
            Failure::text(Exit::NotSetUp, text).hint(format!("stockade session close {name}"))
        };
        return Ok((name.to_owned(), bind(name)?.ok_or_else(taken)?));
    }
    for number in 1u32.. {
        let name = format!("s{number}");
        if let Some(listener) = bind(&name)? {
            return Ok((name, listener));
        }
    }
    Err(Failure::text(Exit::NotSetUp, "every name is taken"))
}

/// What the sandbox is built from, and built again.
struct SandboxSource<'a> {
    args: &'a SessionOpenArgs,
    place: Place,
    profile: Profile,
    /// The caller's directory, from which the flags are meant.
    started_in: PathBuf,
}

/// A sandbox that stands.
struct Opened {
    // Before the overlay: everything inside is dead when the overlay is let go.
    session: Session,
    overlay: Option<Overlay>,
}

/// What does not change when the sandbox is built again.
struct Described {
    directory: String,
    backend: String,
    overlay: Option<String>,
}

impl Opened {
    fn describe(&self) -> Described {
        let plan = self.session.plan();
        let overlay = self.overlay.as_ref();
        Described {
            directory: plan.linux.command.cwd.to_string(),
            backend: plan.backend.to_string(),
            overlay: overlay.map(|overlay| overlay.name().to_string()),
        }
    }

    /// Ends the sandbox and lets go of the overlay.
    fn close(self) -> Result<(), Failure> {
        self.session.close().map_err(run_failure)?;
        self.overlay.as_ref().map_or(Ok(()), overlay::leave)
    }
}

impl SandboxSource<'_> {
    fn open(&self, builder: Builder<'_>) -> Result<Opened, Failure> {
        let Self {
            args,
            place,
            profile,
            ..
        } = self;
        if profile.base_policy.value == BasePolicy::DangerFullAccess {
            let text = "a session needs a sandbox, and `--danger-full-access` is none";
            return Err(Failure::text(Exit::NotSetUp, text).hint("stockade session open"));
        }
        if !args.policy.pass_fd.is_empty() {
            let text = "`--pass-fd` needs a command, and a session has none yet";
            return Err(Failure::text(Exit::Usage, text));
        }
        let spec = Spec {
            env: std::env::vars_os().collect(),
            overlay: args.wanted_overlay().is_some(),
            ..Session::spec()
        };
        let backends = backends(None);
        let mut choice = backends.choose(profile, Path::new(THIS))?;
        let mut plan = choice.next(&spec)?;
        let network = network(&args.upstream, &plan)?;
        let overlay = match args.wanted_overlay() {
            Some(name) => Some(overlay::enter(name, place, None, &mut plan)?),
            None => None,
        };
        if !args.quiet {
            for warning in &plan.warnings {
                output::warn(warning, Format::of(args.output.json));
            }
        }
        let session = Session::open(plan, builder, network.as_deref()).map_err(run_failure)?;
        Ok(Opened { session, overlay })
    }

    /// Opens a session over another overlay, in a process of its own; answers with its name.
    fn fork(&self, name: Option<&str>, overlay: &str) -> Result<String, Failure> {
        let cannot = |error: io::Error| failed("start the owner of the session", error);
        let mut command = Command::new(THIS);
        command
            .arg0("stockade")
            .args(std::env::args_os().skip(1))
            .args(["--quiet", "--fork-overlay", overlay])
            .current_dir(&self.started_in)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(name) = name {
            command.args(["--fork-name", name]);
        }
        let mut owner = command.spawn().map_err(cannot)?;
        let mut line = String::new();
        if let Some(stdout) = owner.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(cannot)?;
        }
        if let Some(name) = line.strip_suffix('\n') {
            // Nobody waits for it: it is told to close like any other.
            std::thread::spawn(move || owner.wait());
            return Ok(name.to_owned());
        }
        let ended = owner.wait_with_output().map_err(cannot)?;
        let reason = String::from_utf8_lossy(&ended.stderr);
        let reason = reason.trim().trim_start_matches("error: ").to_owned();
        Err(Failure::text(Exit::NotSetUp, reason))
    }
}

/// A session and who uses it.
struct Owner<'a> {
    name: String,
    description: Described,
    sandbox: SandboxSource<'a>,
    /// `None` while a client works on the overlay.
    open: RwLock<Option<Opened>>,
    /// Readable when `open` or `State::is_closing` has changed.
    changed: OwnedFd,
    directory: Directory,
    idle_timeout: Option<Duration>,
    opened: Instant,
    state: Mutex<State>,
}

struct State {
    /// Commands that run now.
    commands: usize,
    /// When the last command ended.
    idle_since: Instant,
    /// Whether a client works on the overlay.
    is_let_go: bool,
    /// Whether the session is to end.
    is_closing: bool,
    /// Clients that wait for the session to be gone.
    closers: Vec<Channel>,
}

/// A client that connects says at once what it wants.
const FIRST_MESSAGE_TIMEOUT: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

/// How soon a client that works on the overlay notices that the session is to end.
const CLOSING_CHECK_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

impl Owner<'_> {
    /// Tells the caller the session's name and leaves its streams and directory.
    fn detach(&self) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{}", self.name)?;
        stdout.flush()?;
        let null = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        rustix::stdio::dup2_stdout(&null).map_err(io::Error::from)?;
        rustix::stdio::dup2_stderr(&null).map_err(io::Error::from)?;
        Ok(std::env::set_current_dir("/")?)
    }

    /// Serves clients until the session is to end.
    fn serve(&self, listener: &ChannelListener, signals: &Signals) {
        std::thread::scope(|scope| {
            while !self.is_idle_for_too_long() && !self.state().is_closing {
                let timeout = self.next_look();
                let open = self.read();
                let pidfd = open.as_ref().map(|open| open.session.pidfd());
                let pidfd = pidfd.and_then(|pidfd| pidfd.try_clone_to_owned().ok());
                drop(open);
                let mut watched = vec![
                    PollFd::new(listener, PollFlags::IN),
                    PollFd::new(signals, PollFlags::IN),
                    PollFd::new(&self.changed, PollFlags::IN),
                ];
                watched.extend(pidfd.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
                let waited = poll(&mut watched, timeout.as_ref());
                let is = |at: usize| {
                    let fd = watched.get(at);
                    waited.is_ok() && fd.is_some_and(|fd| !fd.revents().is_empty())
                };
                if is(1) || (is(3) && !self.state().is_let_go) {
                    break;
                }
                if is(2) {
                    let _ = rustix::io::read(&self.changed, &mut [0; 8]);
                }
                if is(0)
                    && let Ok(client) = listener.accept()
                {
                    let serve = || self.serve_client(client);
                    // A client that gets no thread hears the connection hang up.
                    let _ = std::thread::Builder::new().spawn_scoped(scope, serve);
                }
            }
            // The commands end, and with them the threads that serve their clients.
            self.end();
        });
    }

    /// Has the session end: everything in it is killed.
    fn end(&self) {
        self.state().is_closing = true;
        if let Some(open) = self.read().as_ref() {
            open.session.kill();
        }
        self.wake();
    }

    fn wake(&self) {
        let _ = rustix::io::write(&self.changed, &1u64.to_ne_bytes());
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<Opened>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_idle_for_too_long(&self) -> bool {
        let state = self.state();
        let is_over = |limit: Duration| state.idle_since.elapsed() >= limit;
        state.commands == 0 && self.idle_timeout.is_some_and(is_over)
    }

    /// How long to wait for somebody to use the session; none if for ever.
    fn next_look(&self) -> Option<Timespec> {
        let limit = self.idle_timeout?;
        let state = self.state();
        let left = match state.commands {
            0 => limit.saturating_sub(state.idle_since.elapsed()),
            // Whenever they end, this looks again before the session has been idle for too long.
            _ => limit,
        };
        Timespec::try_from(left).ok()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(self, listener: ChannelListener) {
        let state = self.state.into_inner();
        let open = self.open.into_inner();
        if let Some(open) = open.unwrap_or_else(PoisonError::into_inner) {
            // Whatever is left of it, this process ends now and nothing survives that.
            let _ = open.close();
        }
        self.directory.remove(&self.name);
        drop(listener);
        drop(state);
    }

    fn serve_client(&self, client: Channel) {
        let own = rustix::process::geteuid().as_raw();
        if !client.peer_uid().is_ok_and(|uid| uid == own) {
            return;
        }
        let mut watched = [PollFd::new(&client, PollFlags::IN)];
        if poll(&mut watched, Some(&FIRST_MESSAGE_TIMEOUT)) != Ok(1) {
            return;
        }
        match receive(&client) {
            Ok(Some((Request::Describe, _))) => {
                // A client that is gone needs no answer.
                let _ = send(&client, &Answer::Described(self.describe()), &[]);
            }
            Ok(Some((Request::Close, _))) => {
                self.state().closers.push(client);
                self.end();
            }
            Ok(Some((Request::Exec(exec), fds))) => {
                let mut state = self.state();
                if state.is_let_go {
                    drop(state);
                    let _ = send(
                        &client,
                        &refusal(&busy("its overlay is being changed")),
                        &[],
                    );
                    return;
                }
                state.commands += 1;
                drop(state);
                let answer = self.execute(&client, &exec, fds);
                let mut state = self.state();
                state.commands -= 1;
                state.idle_since = Instant::now();
                drop(state);
                let _ = send(&client, &answer, &[]);
            }
            Ok(Some((Request::LetGo, _))) => {
                let answer = match self.let_go(&client) {
                    Ok(answer) => answer,
                    Err(failure) => refusal(&failure),
                };
                let _ = send(&client, &answer, &[]);
            }
            // The client hears the connection hang up.
            Ok(Some((Request::Signal(_) | Request::Rebuild | Request::Fork { .. }, _)) | None)
            | Err(_) => {}
        }
    }

    /// Lets the client work on the overlay, and builds the sandbox again.
    fn let_go(&self, client: &Channel) -> Result<Answer, Failure> {
        let mut state = self.state();
        if state.commands > 0 {
            return Err(busy("a command runs in it"));
        }
        if state.is_let_go {
            return Err(busy("its overlay is being changed"));
        }
        state.is_let_go = true;
        drop(state);
        let taken = self.write().take();
        let wish = taken.map_or(Ok(()), Opened::close).map(|()| {
            // A client that is gone is noticed at once.
            let _ = send(client, &Answer::LetGo, &[]);
            self.next_wish(client)
        });
        // A process with threads can't be copied into a user namespace.
        let opened = self.sandbox.open(Builder::Program(Path::new(THIS)));
        let mut state = self.state();
        state.is_let_go = false;
        state.idle_since = Instant::now();
        // Without a sandbox there is no session.
        state.is_closing |= opened.is_err();
        drop(state);
        let failure = opened.map(|opened| *self.write() = Some(opened)).err();
        self.wake();
        match (wish?, failure) {
            (_, Some(failure)) => Err(failure),
            (Some(Request::Fork { name, overlay }), None) => self
                .sandbox
                .fork(name.as_deref(), &overlay)
                .map(Answer::Forked),
            (_, None) => Ok(Answer::Rebuilt),
        }
    }

    /// What the client wants when it has done its work; `None`: it is gone, or the session is to end.
    fn next_wish(&self, client: &Channel) -> Option<Request> {
        while !self.state().is_closing {
            let mut watched = [PollFd::new(client, PollFlags::IN)];
            if poll(&mut watched, Some(&CLOSING_CHECK_INTERVAL)) == Ok(1) {
                return receive(client).ok().flatten().map(|(request, _)| request);
            }
        }
        None
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<Opened>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self) -> Description {
        let Described {
            directory,
            backend,
            overlay,
        } = &self.description;
        Description {
            name: self.name.clone(),
            pid: std::process::id(),
            directory: directory.clone(),
            overlay: overlay.clone(),
            backend: backend.clone(),
            commands: self.state().commands,
            age_seconds: self.opened.elapsed().as_secs(),
        }
    }

    /// Runs a command to its end.
    fn execute(&self, client: &Channel, exec: &Exec, fds: Vec<OwnedFd>) -> Answer {
        let ran = self.start(exec, fds).and_then(|mut child| {
            attend(client, &mut child);
            child.wait().map_err(run_failure)
        });
        match ran {
            // Nobody but the client kills a single command, and the client is there.
            Ok(finished) if matches!(finished.report.ending, Ending::Killed | Ending::Lost) => {
                refusal(&super::gone(&self.name))
            }
            Ok(finished) => Answer::Ended {
                code: exit_of(&finished).code(),
                remarks: remarks(&finished, false, SHOWS_ALL),
            },
            Err(failure) => refusal(&failure),
        }
    }

    fn start(&self, exec: &Exec, fds: Vec<OwnedFd>) -> Result<Child, Failure> {
        let malformed = || Failure::text(Exit::Usage, "the request is malformed");
        let mut fds: [OwnedFd; 3] = fds.try_into().map_err(|_| malformed())?;
        let mut spec = SessionSpec {
            argv: exec
                .argv
                .iter()
                .map(|word| word.as_os_str().into())
                .collect(),
            cwd: exec
                .cwd
                .as_ref()
                .map_or_else(PathBuf::new, |cwd| cwd.as_os_str().into()),
            terminal: exec.terminal,
            timeout: exec.timeout,
            ..SessionSpec::default()
        };
        if spec.argv.is_empty() {
            return Err(malformed());
        }
        for entry in &exec.env {
            let bytes = entry.as_os_str().as_bytes();
            let at = bytes.iter().position(|byte| *byte == b'=');
            let (name, value) = bytes.split_at(at.ok_or_else(malformed)?);
            let [name, value] = [name, &value[1..]].map(|text| OsStr::from_bytes(text).to_owned());
            spec.env.push((name, value));
        }
        let open = self.read();
        let ended = || Failure::text(Exit::NotSetUp, "the session has ended");
        let session = &open.as_ref().ok_or_else(ended)?.session;
        let counted = match session.plan().output {
            Some(_) => count_outputs(&mut fds, exec.terminal)?,
            None => Vec::new(),
        };
        let standard = fds.each_ref().map(AsFd::as_fd);
        let mut child = session.start(&spec, standard).map_err(run_failure)?;
        child.keep_limits(counted).map_err(run_failure)?;
        Ok(child)
    }
}

/// Has both outputs go through pipes on which the bytes are counted.
fn count_outputs(
    fds: &mut [OwnedFd; 3],
    terminal: [bool; 3],
) -> Result<Vec<CountedOutput>, Failure> {
    let [_, stdout, stderr] = fds;
    let mut counted = Vec::new();
    for (fd, is_terminal) in [(stdout, terminal[1]), (stderr, terminal[2])] {
        if is_terminal {
            let text = "`--limit output` of the session can't be kept on a terminal";
            return Err(Failure::text(Exit::NotSetUp, text));
        }
        let (from, inner) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| failed("make a pipe for the output", error))?;
        counted.push(CountedOutput {
            from,
            to: std::mem::replace(fd, inner),
            drain: true,
        });
    }
    Ok(counted)
}

fn refusal(failure: &Failure) -> Answer {
    Answer::Failed {
        code: failure.exit.code(),
        message: failure.message(),
        hint: failure.next_step().map(str::to_owned),
    }
}

fn busy(why: &str) -> Failure {
    Failure::text(Exit::NotSetUp, format!("the session is busy: {why}"))
}

/// Passes on what the client and the command have to say to each other, until one of them has ended.
fn attend(client: &Channel, child: &mut Child) {
    let terminal = child.take_terminal();
    let fds: Vec<_> = terminal.iter().map(AsFd::as_fd).collect();
    // A client that is gone is noticed below.
    let _ = send(client, &Answer::Started, &fds);
    drop(terminal);
    loop {
        let mut watched = [
            PollFd::from_borrowed_fd(child.messages(), PollFlags::IN),
            PollFd::new(client, PollFlags::IN),
        ];
        match poll(&mut watched, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let [heard, asked] = watched.map(|fd| !fd.revents().is_empty());
        if asked {
            match receive(client) {
                // A command that has ended needs no signal.
                Ok(Some((Request::Signal(signal), _))) => drop(child.signal(signal)),
                // The client is gone: so is whoever wanted the command.
                _ => return child.kill(),
            }
        }
        if heard {
            match child.hear() {
                Ok(true) if child.take_stopped() => drop(send(client, &Answer::Stopped, &[])),
                Ok(true) => {}
                Ok(false) | Err(_) => return,
            }
        }
    }
}

fn failed(act: &str, error: impl Into<io::Error>) -> Failure {
    let error = anyhow::Error::new(error.into()).context(format!("can't {act}"));
    Failure::new(Exit::NotSetUp, error)
}
