//! What the process that owns a session and its clients tell each other: one message, one JSON
//! document, with descriptors beside it.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stockade_linux::Channel;
use stockade_linux::plan::Text;

use crate::exit::Exit;
use crate::failure::Failure;

/// From a client to the owner.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// End the session; the owner hangs up when everything in it is gone.
    Close,
    /// Answer with [`Answer::Described`].
    Describe,
    /// Run a command; the standard three descriptors come along.
    Exec(Exec),
    /// Open a session over this overlay, a copy, and build the sandbox again; after
    /// [`Request::LetGo`].
    Fork {
        name: Option<String>,
        overlay: String,
    },
    /// End the sandbox and let go of its overlay, until the client hangs up or says what to do.
    LetGo,
    /// Build the sandbox again, after [`Request::LetGo`].
    Rebuild,
    /// Pass a signal on to the command.
    Signal(i32),
}

/// A command to run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Exec {
    pub(super) argv: Vec<Text>,
    /// Variables to set, `NAME=value` each.
    pub(super) env: Vec<Text>,
    pub(super) cwd: Option<Text>,
    /// Which of the standard three are a new terminal.
    pub(super) terminal: [bool; 3],
    pub(super) timeout: Option<Duration>,
}

/// From the owner to a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Described(Description),
    /// The command has ended.
    Ended {
        /// The exit code for whoever waits.
        code: u8,
        /// What the user should know.
        remarks: Vec<String>,
    },
    /// The session over the copy is open.
    Forked(String),
    /// The command was not started, or the request can't be carried out.
    Failed {
        code: u8,
        message: String,
        hint: Option<String>,
    },
    /// The sandbox is gone, and its overlay can be changed.
    LetGo,
    /// The sandbox was built again.
    Rebuilt,
    /// The command runs; the other end of its terminal comes along.
    Started,
    /// The command was stopped, as by Ctrl-Z.
    Stopped,
}

impl Answer {
    /// What the owner refused; any other answer comes back.
    pub(super) fn or_refusal(self) -> Result<Self, Failure> {
        let Self::Failed {
            code,
            message,
            hint,
        } = self
        else {
            return Ok(self);
        };
        let failure = Failure::text(Exit::Command(code), message);
        Err(match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        })
    }
}

/// An open session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) name: String,
    /// The process that owns it.
    pub(super) pid: u32,
    pub(super) directory: String,
    /// The name under which `stockade ws` knows its overlay, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) overlay: Option<String>,
    pub(super) backend: String,
    /// Commands that run now.
    pub(super) commands: usize,
    /// How long it has been open, in seconds.
    pub(super) age_seconds: u64,
}

pub(super) fn send(
    channel: &Channel,
    message: &impl Serialize,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    channel.send(&serde_json::to_vec(message)?, fds)
}

/// Waits for a message. `None`: the other side is gone.
pub(super) fn receive<T: DeserializeOwned>(
    channel: &Channel,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let Some((bytes, fds)) = channel.receive()? else {
        return Ok(None);
    };
    Ok(Some((serde_json::from_slice(&bytes)?, fds)))
}
