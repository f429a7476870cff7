//! The launcher's side: starts the helper and hears what becomes of the command.

use std::ffi::CString;
use std::fmt;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Serialize;

use crate::control::{Report, Request};
use crate::heard::Heard;
use crate::helper;
use crate::mediator::Denial;
use crate::plan::{LinuxPlan, Network};
use crate::stage::{Failure, Stage};
use crate::sys;
use crate::sys::process::Fork;

/// A sandbox that has been started. Dropping it ends the sandbox.
#[derive(Debug)]
pub struct Running {
    helper: Pid,
    pidfd: OwnedFd,
    control: OwnedFd,
    /// Closing it is how the sandbox is ended: the helper watches the other end.
    life: Lifeline,
    heard: Heard,
    /// Whether the helper is the supervisor itself.
    direct: bool,
    /// Sockets in the sandbox's network, as they arrive.
    sockets: Vec<OwnedFd>,
    /// Whether it is known to be gone.
    gone: bool,
}

/// What keeps a sandbox alive.
#[derive(Clone, Debug)]
pub struct Lifeline(Arc<Mutex<Option<OwnedFd>>>);

impl Lifeline {
    /// Ends the sandbox: everything in it is killed.
    pub fn cut(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn is_cut(&self) -> bool {
        let life = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        life.is_none()
    }
}

/// How a sandbox ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The command's wait status (`wait(2)`); none if the sandbox was ended before the command.
    pub status: Option<i32>,
    /// Whether the limit of CPU time ended the command itself; one of its children that it ended is
    /// only the command's to tell.
    pub cpu_limit: bool,
    /// Whether the kernel killed a process inside because the memory of the sandbox's control group
    /// was used up.
    pub memory_limit: bool,
    /// What it used.
    pub usage: Usage,
}

impl Outcome {
    /// Of a sandbox that could not be waited for.
    pub const UNKNOWN: Self = Self {
        status: None,
        cpu_limit: false,
        memory_limit: false,
        usage: Usage {
            user_micros: 0,
            system_micros: 0,
            peak_kib: 0,
            scope: UsageScope::All,
        },
    };
}

/// What a sandbox used in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in user mode, microseconds.
    pub user_micros: u64,
    /// CPU time in the kernel, microseconds.
    pub system_micros: u64,
    /// The largest resident size of any one process, KiB.
    pub peak_kib: u64,
    /// Whose CPU time it is.
    pub scope: UsageScope,
}

/// The processes whose CPU time was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the kernel counts in these two ways"
)]
pub enum UsageScope {
    /// Every process of the sandbox, or of the control group of a session's command.
    #[default]
    All,
    /// The first process of a session's command, and those of its descendants that were waited for
    /// (`RUSAGE_CHILDREN`, `getrusage(2)`).
    Waited,
}

/// Why a sandbox could not be started. Nothing of the command has run.
#[derive(Debug)]
#[non_exhaustive]
pub enum SpawnError {
    /// The plan or the channels to the helper could not be made.
    Channels(io::Error),
    /// The helper could not be executed.
    Helper {
        /// Where it was looked for.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The calling process could not be copied.
    Fork(io::Error),
    /// The helper exited without answering.
    Lost,
    /// Nobody answers on the sockets in the sandbox's network.
    Network(io::Error),
    /// A step failed in the helper.
    Stage {
        /// Which step.
        stage: Stage,
        /// The path or name concerned.
        subject: Option<PathBuf>,
        /// Why.
        source: io::Error,
    },
}

/// Which process builds the sandbox.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "there are two ways to make a process"
)]
pub enum Builder<'a> {
    /// The program at this path, whose `main` begins with [`helper::main`] when
    /// [`helper::is_requested`]; it is never looked up. The caller is not forked: this is safe in
    /// a process with threads and costs the same in a large one.
    Program(&'a Path),
    /// A copy of the calling process, which must have a single thread. In a small one this is
    /// faster than executing anything, and the plan need not travel.
    Copy,
}

/// A copy of a descriptor that this program inherited, for handing it on to a command.
///
/// # Errors
/// If there is no such descriptor.
pub fn inherited_descriptor(number: i32) -> io::Result<OwnedFd> {
    sys::process::inherited_descriptor(number)
}

/// Has programs that this process executes from now on get none of the descriptors above 2: one that
/// outlives it would hold what its caller meant for itself, such as a lock or the end of a pipe.
///
/// # Errors
/// If the kernel is older than Linux 5.11.
pub fn keep_descriptors_to_oneself() -> io::Result<()> {
    sys::process::keep_descriptors_to_oneself()
}

/// Starts the command of `plan` in its sandbox and waits until it was executed.
///
/// `attach` gets the sockets of the plan's network, if it has any, before the command runs; if it
/// fails, the command does not run.
///
/// `kept` are the descriptors that the command is to have besides the standard three, with their
/// numbers there, which the plan lists too.
///
/// # Errors
/// If anything could not be set up; then nothing of the command has run.
pub fn spawn(
    plan: &LinuxPlan,
    builder: Builder<'_>,
    standard: [BorrowedFd<'_>; 3],
    kept: &[(BorrowedFd<'_>, i32)],
    attach: &mut dyn FnMut(Vec<OwnedFd>) -> io::Result<()>,
) -> Result<Running, SpawnError> {
    let (control, helper_control) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(|error| SpawnError::Channels(error.into()))?;
    let (helper_life, life) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|error| SpawnError::Channels(error.into()))?;
    let mut descriptors = Descriptors::new(standard, kept);
    let own = [
        descriptors.add(helper_control.as_fd()),
        descriptors.add(helper_life.as_fd()),
    ];
    let pid = match builder {
        Builder::Program(path) => execute(plan, path, descriptors, own)?,
        Builder::Copy if is_alone(plan) => {
            // Should the supervisor be killed, init is this process's to reap.
            let launcher = rustix::process::getpid();
            rustix::process::set_child_subreaper(Some(launcher))
                .map_err(|error| SpawnError::Channels(error.into()))?;
            helper::direct(plan, &descriptors.list, own).map_err(refused)?
        }
        Builder::Copy => copy(plan, &descriptors, own).map_err(SpawnError::Fork)?,
    };
    let pidfd =
        pidfd_open(pid, PidfdFlags::empty()).map_err(|error| SpawnError::Channels(error.into()))?;
    let mut running = Running {
        helper: pid,
        pidfd,
        control,
        life: Lifeline(Arc::new(Mutex::new(Some(life)))),
        heard: Heard::default(),
        direct: matches!(builder, Builder::Copy) && is_alone(plan),
        sockets: Vec::new(),
        gone: false,
    };
    drop((helper_control, helper_life));
    let expected = plan.network.as_ref().map(Network::count);
    running.await_start(expected, attach)?;
    Ok(running)
}

/// Whether the supervisor leaves nothing to tidy up outside when it ends.
fn is_alone(plan: &LinuxPlan) -> bool {
    plan.own_namespaces && plan.cgroup.is_none()
}

/// As the helper would have reported it.
fn refused(source: io::Error) -> SpawnError {
    SpawnError::Stage {
        stage: Stage::Unshare,
        subject: None,
        source,
    }
}

/// What the helper gets, and under which numbers.
struct Descriptors<'a> {
    list: Vec<(BorrowedFd<'a>, i32)>,
    /// The numbers that the command keeps besides the standard three.
    kept: Vec<i32>,
}

impl<'a> Descriptors<'a> {
    fn new(standard: [BorrowedFd<'a>; 3], kept: &[(BorrowedFd<'a>, i32)]) -> Self {
        let mut list: Vec<_> = standard.into_iter().zip(0..).collect();
        list.extend_from_slice(kept);
        Self {
            list,
            kept: kept.iter().map(|(_, number)| *number).collect(),
        }
    }

    /// One for the helper itself, under a number that is free.
    fn add(&mut self, fd: BorrowedFd<'a>) -> i32 {
        let is_free = |number: &i32| !self.list.iter().any(|(_, taken)| taken == number);
        let number = (3..i32::MAX).find(is_free).unwrap_or(i32::MAX);
        self.list.push((fd, number));
        number
    }
}

fn copy(plan: &LinuxPlan, descriptors: &Descriptors<'_>, own: [i32; 2]) -> io::Result<Pid> {
    match sys::process::fork()? {
        Fork::Parent(pid) => Ok(pid),
        Fork::Child => {
            let adopted = sys::process::place_descriptors(&descriptors.list)
                .and_then(|()| sys::process::adopt_descriptors(own, &descriptors.kept));
            let code = match adopted {
                Ok([control, life]) => helper::build(plan, &control, &life),
                // The launcher hears the socket hang up.
                Err(_) => helper::FAILED,
            };
            sys::process::exit_now(code)
        }
    }
}

fn execute(
    plan: &LinuxPlan,
    path: &Path,
    descriptors: Descriptors<'_>,
    own: [i32; 2],
) -> Result<Pid, SpawnError> {
    let failed = |source| SpawnError::Helper {
        path: path.to_owned(),
        source,
    };
    let sealed = sealed_plan(plan).map_err(SpawnError::Channels)?;
    // Shortens the lifetime to that of the plan's own descriptor.
    let mut descriptors: Descriptors<'_> = descriptors;
    let plan = descriptors.add(sealed.as_fd());
    let kept = descriptors.kept.iter().copied();
    let numbers = [plan].into_iter().chain(own).chain(kept);
    let mut argv = vec![c"stockade".to_owned(), constant(helper::MARKER)];
    argv.extend(numbers.map(|number| constant(&number.to_string())));
    let path =
        CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| failed(error.into()))?;
    sys::spawn::spawn(&path, &argv, &[], &descriptors.list).map_err(failed)
}

impl Running {
    /// Ends the sandbox: everything in it is killed. [`Running::wait`] tells when it is gone.
    pub fn kill(&mut self) {
        self.life.cut();
    }

    /// What ends the sandbox from another thread.
    pub fn lifeline(&self) -> Lifeline {
        self.life.clone()
    }

    /// Takes the launcher's end of the command's terminal, if the plan asked for one.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.heard.terminal.take()
    }

    /// Waits for the sandbox to end; everything in it is gone when this returns.
    ///
    /// # Errors
    /// If the helper can't be heard or reaped.
    pub fn wait(&mut self) -> io::Result<Outcome> {
        if self.direct && self.life.is_cut() {
            self.insist();
        }
        while self.hear()? {}
        self.reap();
        self.gone = true;
        Ok(self.heard.outcome())
    }

    /// Hears one message; false when the helper has no more to say.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn hear(&mut self) -> io::Result<bool> {
        self.heard.hear(self.control.as_fd())
    }

    /// Whether the command was stopped (Ctrl-Z) since this was last asked.
    pub fn take_stopped(&mut self) -> bool {
        std::mem::take(&mut self.heard.stopped)
    }

    /// Becomes readable when [`Running::hear`] has something to hear.
    pub fn messages(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Becomes readable when the helper has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// What the mediator refused so far.
    pub fn denials(&self) -> &[Denial] {
        &self.heard.denials
    }

    /// Passes a signal on to the command's process group.
    ///
    /// # Errors
    /// If the sandbox has ended.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        Request::Signal(signal).send(self.control.as_fd())
    }

    fn await_start(
        &mut self,
        expected: Option<usize>,
        attach: &mut dyn FnMut(Vec<OwnedFd>) -> io::Result<()>,
    ) -> Result<(), SpawnError> {
        loop {
            match Report::receive(self.control.as_fd()).map_err(SpawnError::Channels)? {
                Some(Report::Started(_)) => return Ok(()),
                Some(Report::Sockets(some)) => {
                    self.sockets.extend(some);
                    if Some(self.sockets.len()) == expected {
                        attach(std::mem::take(&mut self.sockets)).map_err(SpawnError::Network)?;
                        Request::Proceed
                            .send(self.control.as_fd())
                            .map_err(SpawnError::Channels)?;
                    }
                }
                Some(Report::Failed(failure)) => {
                    // Its last steps leave nothing behind; they are worth waiting for.
                    while let Ok(true) = self.hear() {}
                    return Err(failure.into());
                }
                Some(other) => self.heard.take(other),
                None => return Err(SpawnError::Lost),
            }
        }
    }

    /// The supervisor was told to end the sandbox and gets a moment for that; then it is killed,
    /// init ends with it, and the kernel kills the rest (`pid_namespaces(7)`).
    fn insist(&self) {
        let mut watched = [PollFd::new(&self.pidfd, PollFlags::IN)];
        if poll(&mut watched, Some(&helper::MOMENT)) != Ok(1) {
            // If it has ended meanwhile, all the better.
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
    }

    fn reap(&mut self) {
        let reaped = sys::process::wait(self.helper.as_raw_nonzero().get(), true);
        // Whoever reaped it before us (a host that waits for any child) did no harm.
        if let Ok(Some(used)) = reaped
            && self.direct
        {
            if used.is_killed() {
                // What it leaves comes to this process, and is dying.
                while sys::process::wait(-1, true).is_ok() {}
            }
            self.heard.used = Usage {
                user_micros: used.user_micros,
                system_micros: used.system_micros,
                peak_kib: used.peak_kib,
                scope: UsageScope::All,
            };
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.gone {
            self.kill();
            // There is nobody to tell.
            let _ = self.wait();
        }
    }
}

impl From<Failure> for SpawnError {
    fn from(failure: Failure) -> Self {
        use std::os::unix::ffi::OsStringExt;
        let subject = PathBuf::from(std::ffi::OsString::from_vec(failure.subject));
        Self::Stage {
            stage: failure.stage,
            subject: (!subject.as_os_str().is_empty()).then_some(subject),
            source: io::Error::from_raw_os_error(failure.errno),
        }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channels(_) => write!(f, "could not reach the helper"),
            Self::Helper { path, .. } => {
                write!(f, "could not start the helper `{}`", path.display())
            }
            Self::Fork(_) => write!(f, "could not make a process"),
            Self::Lost => write!(
                f,
                "the helper is not Stockade's: it exited without answering"
            ),
            Self::Network(_) => write!(f, "could not serve the sandbox's network"),
            Self::Stage {
                stage,
                subject: Some(subject),
                ..
            } => {
                write!(f, "could not {stage} `{}`", subject.display())
            }
            Self::Stage {
                stage,
                subject: None,
                ..
            } => write!(f, "could not {stage}"),
        }
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Channels(source)
            | Self::Fork(source)
            | Self::Helper { source, .. }
            | Self::Network(source)
            | Self::Stage { source, .. } => Some(source),
            Self::Lost => None,
        }
    }
}

/// The plan in memory that nobody can change any more.
fn sealed_plan(plan: &LinuxPlan) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("stockade-plan", flags)?);
    let text = serde_json::to_vec(plan)?;
    file.write_all(&text)?;
    file.rewind()?;
    rustix::fs::fcntl_add_seals(
        &file,
        SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL,
    )?;
    Ok(file)
}

/// For texts that are known to have no NUL byte.
fn constant(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}
