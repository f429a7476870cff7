//! The steps of building a sandbox, by name: a failure report is one of these and an errno.

use std::fmt;

macro_rules! stages {
    ($($(#[$doc:meta])* $name:ident = $code:literal => $text:literal,)+) => {
        /// A step at which building the sandbox can fail.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        #[non_exhaustive]
        pub enum Stage { $($(#[$doc])* $name = $code,)+ }

        impl Stage {
            pub(crate) fn from_code(code: u16) -> Option<Self> {
                match code { $($code => Some(Self::$name),)+ _ => None }
            }
        }

        /// What was being tried.
        impl fmt::Display for Stage {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text,)+ })
            }
        }
    };
}

stages! {
    /// Reading the plan.
    ReadPlan = 1 => "read the plan",
    /// `prctl(PR_SET_PDEATHSIG)`.
    DieWithParent = 2 => "tie the sandbox's life to the launcher's",
    /// `close_range(2)`.
    CloseDescriptors = 3 => "close inherited descriptors",
    /// `setsid(2)`.
    NewSession = 4 => "start a new session",
    /// Making the control group.
    MakeCgroup = 5 => "make a control group",
    /// Writing a limit into the control group.
    LimitCgroup = 6 => "set a control group's limit",
    /// Entering the control group.
    EnterCgroup = 7 => "enter the control group",
    /// `unshare(2)`.
    Unshare = 8 => "make the namespaces",
    /// `/proc/self/setgroups`, `uid_map`, `gid_map`.
    MapIds = 9 => "map the user into the user namespace",
    /// Forking init or the supervisor.
    ForkInit = 10 => "fork the sandbox's first process",
    /// A network namespace with its loopback up.
    Network = 11 => "make a network of its own",
    /// The tmpfs that everything is staged on.
    StageMount = 12 => "mount the staging area",
    /// Cloning the host's root.
    CloneRoot = 13 => "clone the root file system",
    /// Attaching the new root.
    AttachRoot = 14 => "attach the new root",
    /// Opening a path of the host.
    OpenSource = 15 => "open a path of the policy",
    /// Cloning a path of the host as a mount.
    CloneSource = 16 => "clone a path of the policy as a mount",
    /// Setting mount attributes.
    MountAttributes = 17 => "set mount attributes",
    /// Finding or making the place for a mount.
    MountTarget = 18 => "find the place for a mount",
    /// Attaching a mount.
    AttachMount = 19 => "attach a mount",
    /// A private tmpfs.
    TemporaryMount = 20 => "mount a private tmpfs",
    /// `/dev`.
    DeviceMount = 21 => "build /dev",
    /// `/proc`.
    ProcMount = 22 => "mount /proc",
    /// `pivot_root(2)`.
    PivotRoot = 23 => "change to the new root",
    /// Detaching the old root.
    DetachOldRoot = 24 => "detach the old root",
    /// Entering the working directory.
    WorkingDirectory = 25 => "enter the working directory",
    /// Setting a resource limit.
    Rlimit = 26 => "set a resource limit",
    /// `user.max_user_namespaces`.
    LockNamespaces = 27 => "forbid further user namespaces",
    /// Dropping capabilities.
    DropCapabilities = 28 => "drop capabilities",
    /// `PR_SET_NO_NEW_PRIVS`.
    NoNewPrivileges = 29 => "forbid new privileges",
    /// Landlock.
    Landlock = 30 => "enforce Landlock rules",
    /// The pseudo-terminal.
    Terminal = 31 => "make a terminal",
    /// Forking the command.
    ForkCommand = 32 => "fork the command",
    /// Signal set-up.
    Signals = 33 => "set up signals",
    /// seccomp.
    Seccomp = 34 => "install the system-call filter",
    /// `execve(2)`.
    Execute = 35 => "execute the command",
    /// The program was not found on PATH.
    Find = 36 => "find the command",
    /// The run's own directory for temporary files.
    Scratch = 37 => "make the directory for temporary files",
    /// A route.
    Route = 38 => "make every address lead back into the sandbox",
    /// A socket for the launcher.
    Listen = 39 => "listen in the sandbox's network on",
    /// The launcher's proxy.
    AwaitProxy = 40 => "wait for the proxy",
    /// A copy-on-write view.
    OverlayMount = 60 => "mount a copy-on-write view",
    /// The home directory's layer.
    HomeLayer = 63 => "put a layer over the home directory",
    /// Starting the mediator.
    Mediator = 61 => "start the mediator",
    /// Looking for this process in `/proc`, which may show another pid namespace.
    OwnProc = 62 => "find this process in /proc",
}

/// A failed step, as it travels from the helper to the launcher.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) stage: Stage,
    pub(crate) errno: i32,
    /// The path or name concerned, if the step had one.
    pub(crate) subject: Vec<u8>,
}

/// A path is at most this long.
const MAX_SUBJECT: usize = 4096;

impl Failure {
    pub(crate) fn encode(&self, message: &mut Vec<u8>) {
        message.extend((self.stage as u16).to_ne_bytes());
        message.extend(self.errno.to_ne_bytes());
        message.extend(self.subject.iter().take(MAX_SUBJECT));
    }

    pub(crate) fn decode(mut message: &[u8]) -> Option<Self> {
        Some(Self {
            stage: Stage::from_code(u16::from_ne_bytes(take(&mut message)?))?,
            errno: i32::from_ne_bytes(take(&mut message)?),
            subject: message.to_vec(),
        })
    }
}

/// The next `N` bytes of a message.
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

/// Attaches a stage to an I/O result.
pub(crate) trait At<T> {
    fn at(self, stage: Stage) -> Result<T, Failure>;
    fn at_path(self, stage: Stage, path: &std::path::Path) -> Result<T, Failure>;
}

impl<T, E: Into<std::io::Error>> At<T> for Result<T, E> {
    fn at(self, stage: Stage) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            stage,
            errno: errno(&error.into()),
            subject: Vec::new(),
        })
    }

    fn at_path(self, stage: Stage, path: &std::path::Path) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            stage,
            errno: errno(&error.into()),
            subject: path.as_os_str().as_encoded_bytes().to_vec(),
        })
    }
}

fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
