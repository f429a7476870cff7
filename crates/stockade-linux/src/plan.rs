//! The plan: everything one run will do, as plain data.
//!
//! It is printed by `stockade run --dry-run`, travels to the helper as JSON in a sealed memfd
//! (an argument would be visible to everyone in `/proc` and limited to 128 KiB), and is not
//! changed by anyone after it was made.

use std::ffi::{CString, OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};
use stockade_rules::{AbsPath, RuleSet};

use crate::seccomp::FilterSpec;

/// What one run does on Linux.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent yes-or-no facts of a printable plan"
)]
pub struct LinuxPlan {
    /// What to execute.
    pub command: Command,
    /// Whether the sandbox has namespaces of its own. Without, there are no mounts, and Landlock,
    /// the filter and the mediator hold everything.
    pub own_namespaces: bool,
    /// Directories of the run's own, made before it and removed after it; only without namespaces.
    pub scratch: Vec<AbsPath>,
    /// Whether the sandbox has a network namespace of its own, with only a loopback.
    pub own_network: bool,
    /// What the launcher answers on in that network.
    pub network: Option<Network>,
    /// Where programs look for a resolver, if the sandbox's network leads nowhere: there the
    /// supervisor says that no name exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolvers: Vec<IpAddr>,
    /// What the root directory is to begin with.
    pub root: Root,
    /// What lies where in the sandbox's file-system view; parents before children.
    pub mounts: Vec<Mount>,
    /// Files that only this sandbox has, which can't be changed there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<PlacedFile>,
    /// Files of the host that are seen as another text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<FileCopy>,
    /// Limits of single processes.
    pub rlimits: Vec<Rlimit>,
    /// Limits of the whole sandbox.
    pub cgroup: Option<Cgroup>,
    /// Landlock rules over the finished view; none where the kernel has no Landlock.
    pub landlock: Option<Landlock>,
    /// The system-call filter; its mediated calls go to `mediation`.
    pub seccomp: FilterSpec,
    /// What the mediator decides by; none where nothing is mediated.
    pub mediation: Option<Mediation>,
    /// Whether the command may make user namespaces of its own.
    pub nested_namespaces: bool,
    /// Descriptors of the launcher that the command keeps, by number.
    pub keep_descriptors: Vec<i32>,
    /// Whether the command gets a terminal of its own, relayed by the launcher.
    pub terminal: bool,
    /// Whether the sandbox stays open for commands that the launcher sends; `command` then has no
    /// arguments, and the environment and directory that those commands have by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub session: bool,
    /// Whether the command is a program that builds the sandbox itself: it is limited and
    /// supervised, but keeps its privileges and gets no filter, without which it could not.
    pub trusted: bool,
}

/// Sockets that are made in the sandbox's network and handed to the launcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// Whether every address there is leads back into the sandbox.
    pub answer_everywhere: bool,
    /// Addresses that the loopback then has.
    pub addresses: Vec<IpAddr>,
    /// The sockets; the launcher gets them in this order.
    pub sockets: Vec<Socket>,
    /// Whether the launcher also gets a line on which it can ask for sockets to connect with.
    pub connector: bool,
}

/// A socket that is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Socket {
    /// What it carries.
    pub kind: SocketKind,
    /// Where; `[::]` is every address of both families.
    pub address: SocketAddr,
}

/// What a socket carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the helper must handle every kind")]
pub enum SocketKind {
    /// UDP.
    Datagram,
    /// TCP; the socket listens.
    Stream,
}

/// What to execute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments; a program without a slash is looked up on the `PATH` in `env`.
    pub argv: Vec<Text>,
    /// The whole environment, `NAME=value` each.
    pub env: Vec<Text>,
    /// Where it starts, as seen inside.
    pub cwd: AbsPath,
}

/// What the root directory is to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the helper must handle every kind")]
pub enum Root {
    /// The host's tree, read-only.
    Host,
    /// An empty directory.
    Empty,
}

/// What lies at one path of the sandbox's view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The path, inside and (for host views) outside.
    pub path: AbsPath,
    /// What is seen there.
    pub view: View,
}

/// A file that only this sandbox has, over what the host has there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedFile {
    /// Where; what does not exist on the host must be on a file system of the sandbox's own.
    pub paths: Vec<AbsPath>,
    /// What is in it.
    pub content: String,
}

/// A file of the host that is seen as another text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCopy {
    /// Where.
    pub path: AbsPath,
    /// What is in it.
    pub content: String,
    /// Whether it is written through the private layer that it lies in, so that it can be changed
    /// there; else it lies over the host's file and can only be read.
    pub through_layer: bool,
}

/// What is seen at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the helper must handle every view")]
pub enum View {
    /// A fresh `/dev` with the harmless nodes and these of the host.
    Devices {
        /// Nodes of the host that the user granted.
        granted: Vec<AbsPath>,
        /// Size of `/dev/shm` in bytes.
        shared_memory: u64,
    },
    /// An empty directory that can be listed but not written: only what is mounted below shows.
    Empty,
    /// Nothing: neither readable nor listable.
    Hidden,
    /// The host's directory with a layer over it that takes every change.
    Overlay {
        /// A directory of the host with the directories `upper` and `work`, on one file system.
        layer: AbsPath,
    },
    /// The host's directory with a layer in memory over it that takes every change and is gone
    /// with the sandbox. It shares the memory of [`View::Temporary`].
    PrivateLayer {
        /// Size in bytes.
        size: u64,
    },
    /// The host's directory with a layer over it that takes every change and that earlier runs
    /// may have filled.
    KeptLayer {
        /// A directory of the host with the directories `upper` and `work`, on one file system.
        layer: AbsPath,
    },
    /// The pid namespace's own `/proc`.
    Proc,
    /// The host's file or directory, read-only.
    ReadOnly,
    /// A symbolic link with this target.
    Symlink(AbsPath),
    /// A private, empty, writable directory of at most this many bytes.
    Temporary {
        /// Size in bytes.
        size: u64,
    },
    /// The host's file or directory, writable.
    Writable,
}

/// One limit of `setrlimit(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimit {
    /// Which.
    pub resource: Resource,
    /// Soft and hard limit alike.
    pub value: u64,
}

/// The resources that `setrlimit(2)` limits here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the helper must handle every resource"
)]
pub enum Resource {
    /// Size of a core dump.
    Core,
    /// CPU seconds of one process.
    Cpu,
    /// Private writable memory of one process.
    Data,
    /// Size of a file that is written.
    FileSize,
    /// Open descriptors.
    OpenFiles,
    /// Processes of this user in this user namespace (Linux 5.14 counts them per namespace).
    Processes,
}

/// A control group made for the run and removed after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// The directories to make, one for each hierarchy.
    pub groups: Vec<CgroupDir>,
    /// Which of them each command of a session gets a group of its own in.
    pub commands: Option<AbsPath>,
}

/// One directory in a control-group hierarchy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupDir {
    /// The directory to make; its parent exists.
    pub path: AbsPath,
    /// The group that the helper is in before, and returns to.
    pub origin: AbsPath,
    /// Controllers that the parent does not hand down to its children yet (version 2).
    pub enable: Vec<String>,
    /// Files in it and what to write to them before anything runs there.
    pub settings: Vec<(String, String)>,
}

/// Landlock rules: what may be done below which paths; everything else is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landlock {
    /// The ABI that the kernel offers; rights beyond it are left out.
    pub abi: u32,
    /// Paths below which directories may be listed.
    pub listable: Vec<AbsPath>,
    /// Paths below which everything may be read, listed and executed.
    pub readable: Vec<AbsPath>,
    /// Paths, as seen inside, below which writing is allowed.
    pub writable: Vec<AbsPath>,
    /// Paths below which device ioctls are allowed (ABI 5).
    pub devices: Vec<AbsPath>,
}

/// What the mediator decides by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mediation {
    /// Every rule about paths, as they are inside.
    pub rules: RuleSet,
    /// Sockets of the host that may be connected to.
    pub unix_sockets: Vec<AbsPath>,
    /// Directories that only this sandbox has: whatever socket is there was made inside.
    pub private: Vec<AbsPath>,
    /// Directories that are another one for those who name them: nothing may be made or read
    /// through the first, and programs know no other name.
    pub aliases: Vec<(AbsPath, AbsPath)>,
    /// Whether abstract sockets may be connected to: the network namespace or a Landlock scope
    /// keeps those of the host apart.
    pub abstract_sockets: bool,
    /// Whether what `/proc` says about processes outside is withheld. Needs a Landlock scope, by
    /// which they are told apart.
    pub hide_processes: bool,
    /// Where a proxy of the launcher answers, if it does.
    pub inet: Option<Inet>,
    /// Whether the sandbox's network has nothing but its loopback: whoever tries to reach more is
    /// recorded, so that somebody can be told why it failed.
    pub cut_off: bool,
    /// Where names are protected that make code run on the host later; none where no such name
    /// reaches the host (`stockade_rules::protected`).
    pub protection: Option<Protection>,
}

/// Where names are protected that make code run on the host later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// Directories of the host that may be written.
    pub roots: Vec<AbsPath>,
    /// The workspace and the home directory, in which the files of editors, agents and shells
    /// count.
    pub anchors: Vec<AbsPath>,
    /// The root of the working tree that the workspace belongs to, if it belongs to one.
    #[serde(default)]
    pub own_root: Option<AbsPath>,
    /// The git directories of the repository that the workspace belongs to: hooks and
    /// configuration there can't be removed either.
    pub own_git: Vec<AbsPath>,
    /// Whether the user allowed any change of git's configuration.
    pub git_config_allowed: bool,
}

impl Network {
    /// How many descriptors the launcher gets.
    pub(crate) fn count(&self) -> usize {
        self.sockets.len() + usize::from(self.connector)
    }
}

/// Where in the sandbox's network a proxy of the launcher answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inet {
    /// The ports.
    pub ports: Vec<u16>,
    /// The addresses for which it does something, as networks with the lengths of their prefixes;
    /// it would turn all others down.
    pub networks: Vec<(IpAddr, u8)>,
}

/// Bytes without NUL: an argument or an environment entry. Text in JSON where it is UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "TextWire", try_from = "TextWire")]
pub struct Text(CString);

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum TextWire {
    Text(String),
    Bytes(Vec<u8>),
}

impl Text {
    /// Takes an argument; none if it contains a NUL byte.
    pub fn new(text: impl Into<OsString>) -> Option<Self> {
        Self::from_bytes(text.into().into_vec())
    }

    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        CString::new(bytes).ok().map(Self)
    }

    /// As the system call wants it.
    pub fn as_c_str(&self) -> &CString {
        &self.0
    }

    /// As the standard library has it.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(self.0.as_bytes())
    }
}

impl From<Text> for TextWire {
    fn from(text: Text) -> Self {
        match text.0.into_string() {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Bytes(error.into_cstring().into_bytes()),
        }
    }
}

impl TryFrom<TextWire> for Text {
    type Error = std::ffi::NulError;

    fn try_from(wire: TextWire) -> Result<Self, Self::Error> {
        let bytes = match wire {
            TextWire::Text(text) => text.into_bytes(),
            TextWire::Bytes(bytes) => bytes,
        };
        CString::new(bytes).map(Self)
    }
}
