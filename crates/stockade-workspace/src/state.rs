//! What is known about a workspace, and which states follow which.

use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::id::SnapshotId;
use crate::identity::{self, Identity};
use crate::name::WorkspaceName;

/// What a workspace is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the state machine has three states"
)]
pub enum Status {
    /// Its processes, if it has any, run.
    Running,
    /// Its processes are frozen.
    Paused,
    /// Its processes were ended for good; its history remains.
    Terminated,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Terminated => "terminated",
        })
    }
}

/// A step from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transition {
    /// Freeze.
    Pause,
    /// Go on.
    Resume,
    /// End for good.
    Terminate,
}

impl Status {
    /// Where a step leads; none if it can't be taken from here.
    pub const fn after(self, step: Transition) -> Option<Self> {
        match (self, step) {
            (Self::Running, Transition::Pause) => Some(Self::Paused),
            (Self::Paused, Transition::Resume) => Some(Self::Running),
            (Self::Running | Self::Paused, Transition::Terminate) => Some(Self::Terminated),
            (Self::Running, Transition::Resume)
            | (Self::Paused | Self::Terminated, Transition::Pause)
            | (Self::Terminated, Transition::Resume | Transition::Terminate) => None,
        }
    }
}

/// A process that was started in a workspace and left running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Process {
    /// The one that watches over it.
    pub supervisor: u32,
    /// When that was started, in clock ticks since the machine was: with the number it is told
    /// from any later process.
    pub started_ticks: u64,
    /// This start of the machine.
    pub boot: String,
    /// What was started.
    pub command: Vec<String>,
    /// When, in milliseconds since 1970.
    pub started_ms: u64,
    /// The control group that freezes it; none where there is none.
    pub freezer: Option<PathBuf>,
    /// The way to its standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PathBuf>,
}

impl Process {
    /// A process as it is now.
    pub fn new(supervisor: u32, started_ticks: u64, boot: String, command: Vec<String>) -> Self {
        Self {
            supervisor,
            started_ticks,
            boot,
            command,
            started_ms: now_ms(),
            freezer: None,
            input: None,
        }
    }
}

/// All that is kept about a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkspaceState {
    /// The version of this shape.
    pub schema: u32,
    /// Its name.
    pub name: WorkspaceName,
    /// The directory.
    #[serde(with = "path")]
    pub dir: PathBuf,
    /// Which directory that was when the workspace was made or bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Variables for what runs in it. Names that look like secrets are not kept.
    pub env: BTreeMap<String, String>,
    /// What is not part of it, as in `.gitignore`.
    pub excludes: Vec<String>,
    /// Whether extended attributes are part of snapshots.
    pub xattrs: bool,
    /// What it is doing.
    pub status: Status,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it was used last.
    pub used_ms: u64,
    /// When it was paused last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_ms: Option<u64>,
    /// When it was resumed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_ms: Option<u64>,
    /// The snapshot that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<SnapshotId>,
    /// What runs in it.
    #[serde(default)]
    pub processes: Vec<Process>,
}

/// The version of the state's shape.
pub(crate) const SCHEMA: u32 = 1;

impl WorkspaceState {
    /// Opens the directory, if it is the one that was recorded.
    pub(crate) fn open_dir(&self) -> Result<OwnedFd, Error> {
        identity::open(&self.dir, self.identity.as_ref())
    }

    /// Whether something may be started in it.
    ///
    /// # Errors
    /// If it is paused or terminated: what is started would not be.
    pub fn check_runs(&self) -> Result<(), Error> {
        if self.status == Status::Running {
            return Ok(());
        }
        Err(Error::State {
            workspace: self.name.clone(),
            status: self.status,
            act: "run in",
        })
    }

    /// Whether nothing in it can write meanwhile.
    pub(crate) fn check_quiet(&self) -> Result<(), Error> {
        if self.status == Status::Running && self.is_alive() {
            return Err(Error::Busy(self.name.clone()));
        }
        Ok(())
    }

    /// Takes a step, or says why it can't be taken.
    pub(crate) fn step(&mut self, step: Transition) -> Result<(), Error> {
        let act = match step {
            Transition::Pause => "paused",
            Transition::Resume => "resumed",
            Transition::Terminate => "terminated",
        };
        let next = self.status.after(step).ok_or_else(|| Error::State {
            workspace: self.name.clone(),
            status: self.status,
            act,
        })?;
        self.status = next;
        match step {
            Transition::Pause => self.paused_ms = Some(now_ms()),
            Transition::Resume => self.resumed_ms = Some(now_ms()),
            Transition::Terminate => {}
        }
        Ok(())
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| {
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Whether a variable's name says that its value is nobody's business.
pub fn is_secret_name(name: &str) -> bool {
    const SIGNS: &[&str] = &[
        "AUTH",
        "COOKIE",
        "CREDENTIAL",
        "KEY",
        "PASSPHRASE",
        "PASSWD",
        "PASSWORD",
        "PRIVATE",
        "SECRET",
        "SESSION",
        "TOKEN",
    ];
    let name = name.to_ascii_uppercase();
    SIGNS.iter().any(|sign| name.contains(sign))
}

/// Paths as text where they are, as a list of bytes where not.
pub(crate) mod path {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Wire {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => text.serialize(to),
            None => Wire::Bytes(path.as_os_str().as_bytes().to_vec()).serialize(to),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Wire::deserialize(from)? {
            Wire::Text(text) => PathBuf::from(text),
            Wire::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        })
    }
}

/// The same for paths that are kept as bytes.
pub(crate) mod bytes {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::{Path, PathBuf};

    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &[u8], to: S) -> Result<S::Ok, S::Error> {
        super::path::serialize(Path::new(OsStr::from_bytes(path)), to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        super::path::deserialize(from)
            .map(PathBuf::into_os_string)
            .map(OsString::into_vec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_between_states() {
        use Status::{Paused, Running, Terminated};
        use Transition::{Pause, Resume, Terminate};
        let ways = [
            (Running, Pause, Some(Paused)),
            (Running, Resume, None),
            (Running, Terminate, Some(Terminated)),
            (Paused, Pause, None),
            (Paused, Resume, Some(Running)),
            (Paused, Terminate, Some(Terminated)),
            (Terminated, Pause, None),
            (Terminated, Resume, None),
            (Terminated, Terminate, None),
        ];
        for (from, step, to) in ways {
            assert_eq!(from.after(step), to, "{from} {step:?}");
        }
    }

    #[test]
    fn secrets_are_known_by_name() {
        for name in [
            "GITHUB_TOKEN",
            "aws_secret_access_key",
            "DB_PASSWORD",
            "API_KEY",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PATH", "LANG", "RUST_LOG", "EDITOR"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
