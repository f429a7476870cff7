//! The process that owns a session: it opens the sandbox, serves clients at a socket, and closes
//! the sandbox when it is told to, when nobody has used it for long, or when it has ended.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use stockade_engine::{Child, Session, SessionSpec, Spec};
use stockade_linux::{Builder, Channel, ChannelListener, Signals};
use stockade_policy::profile::{BasePolicy, Profile};
use stockade_workspace::Overlay;

use super::directory::Directory;
use super::protocol::{Answer, Description, Exec, Request, receive, send};
use crate::args::SessionOpenArgs;
use crate::commands::backends;
use crate::commands::run::confined::{THIS, exit_of, network, remarks, run_failure};
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
    let place = Place::enter(args.policy.cwd.as_deref())?;
    let profile = place.profile(&args.policy)?;
    let directory = Directory::open()?;
    let (name, listener) = take_name(args.name.as_deref(), &directory)?;
    let opened = open(args, &place, &profile);
    let (session, overlay) = opened.inspect_err(|_| directory.remove(&name))?;
    let owner = Owner {
        name,
        session,
        directory,
        idle_timeout: args.idle_timeout,
        opened: Instant::now(),
        state: Mutex::new(State {
            commands: 0,
            idle_since: Instant::now(),
            closers: Vec::new(),
        }),
    };
    owner.detach()?;
    owner.serve(&listener, &signals);
    owner.close(listener);
    // There is nobody left to tell.
    let _ = overlay.as_ref().map_or(Ok(()), overlay::leave);
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

/// Opens the sandbox.
fn open(
    args: &SessionOpenArgs,
    place: &Place,
    profile: &Profile,
) -> Result<(Session, Option<Overlay>), Failure> {
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
        overlay: args.overlay.is_some(),
        ..Session::spec()
    };
    let backends = backends(None);
    let mut choice = backends.choose(profile, Path::new(THIS))?;
    let mut plan = choice.next(&spec)?;
    if plan.output.is_some() {
        let text = "`--limit output` can't be kept in a session: its commands write to descriptors of their own";
        return Err(Failure::text(Exit::NotSetUp, text).hint("stockade session open"));
    }
    let network = network(&args.upstream, &plan)?;
    let overlay = match &args.overlay {
        Some(name) => Some(overlay::enter(name.as_deref(), place, None, &mut plan)?),
        None => None,
    };
    if !args.quiet {
        for warning in &plan.warnings {
            output::warn(warning, Format::of(args.output.json));
        }
    }
    let session = Session::open(plan, Builder::Copy, network.as_deref()).map_err(run_failure)?;
    Ok((session, overlay))
}

/// A session and who uses it.
struct Owner {
    name: String,
    session: Session,
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
    /// Clients that wait for the session to be gone.
    closers: Vec<Channel>,
}

/// A client that connects says at once what it wants.
const FIRST_MESSAGE_TIMEOUT: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};

impl Owner {
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
            while !self.is_idle_for_too_long() {
                let timeout = self.next_look();
                let pidfd = self.session.pidfd();
                let mut watched = [
                    PollFd::new(listener, PollFlags::IN),
                    PollFd::from_borrowed_fd(pidfd, PollFlags::IN),
                    PollFd::new(signals, PollFlags::IN),
                ];
                let waited = poll(&mut watched, timeout.as_ref());
                let is = |at: usize| waited.is_ok() && !watched[at].revents().is_empty();
                if is(1) || is(2) {
                    break;
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
            self.session.kill();
        });
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
        // Whatever is left of it, this process ends now and nothing survives that.
        let _ = self.session.close();
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
                self.session.kill();
            }
            Ok(Some((Request::Exec(exec), fds))) => {
                self.state().commands += 1;
                let answer = self.execute(&client, &exec, fds);
                let mut state = self.state();
                state.commands -= 1;
                state.idle_since = Instant::now();
                drop(state);
                let _ = send(&client, &answer, &[]);
            }
            // The client hears the connection hang up.
            Ok(Some((Request::Signal(_), _)) | None) | Err(_) => {}
        }
    }

    fn describe(&self) -> Description {
        let plan = self.session.plan();
        Description {
            name: self.name.clone(),
            pid: std::process::id(),
            directory: plan.linux.command.cwd.to_string(),
            backend: plan.backend.to_string(),
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
            Ok(finished) => Answer::Ended {
                code: exit_of(&finished).code(),
                remarks: remarks(&finished, false),
            },
            Err(failure) => Answer::Failed {
                code: failure.exit.code(),
                message: failure.message(),
                hint: failure.next_step().map(str::to_owned),
            },
        }
    }

    fn start(&self, exec: &Exec, fds: Vec<OwnedFd>) -> Result<Child, Failure> {
        let malformed = || Failure::text(Exit::Usage, "the request is malformed");
        let fds: [OwnedFd; 3] = fds.try_into().map_err(|_| malformed())?;
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
        let standard = fds.each_ref().map(AsFd::as_fd);
        let mut child = self.session.start(&spec, standard).map_err(run_failure)?;
        child.keep_limits(Vec::new()).map_err(run_failure)?;
        Ok(child)
    }
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
