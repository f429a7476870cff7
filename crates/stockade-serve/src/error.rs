//! Typed errors: a stable code and kind, a message, and what a program needs to act on it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stockade::{Error, RunError};
use stockade_linux::{SpawnError, Stage};
use stockade_workspace::Error as WorkspaceError;

use crate::api;

/// What went wrong. The number is the error's `code`; both are stable.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(i32)]
#[non_exhaustive]
pub enum Kind {
    /// The line is no JSON, or longer than the limit.
    Parse = -32700,
    /// The message is no JSON-RPC request.
    InvalidRequest = -32600,
    /// There is no such method.
    NoSuchMethod = -32601,
    /// The parameters are not those of the method.
    InvalidParams = -32602,
    /// The server itself failed.
    Internal = -32603,
    /// `initialize` must come first.
    NotInitialized = 1,
    /// The server does not speak this version of the protocol.
    UnsupportedVersion = 2,
    /// There is no such session.
    NoSuchSession = 3,
    /// There is no such command in the session.
    NoSuchCommand = 4,
    /// A limit of the server is reached: sessions, commands, requests or bytes.
    LimitReached = 5,
    /// A value of the policy can't be used.
    Policy = 6,
    /// The sandbox can't be built, or the policy can't be enforced here.
    NotEnforceable = 7,
    /// The program was not found or can't be executed.
    NotStarted = 8,
    /// The policy refused it; `denials` say by which rule and what would allow it.
    Denied = 9,
    /// A file operation failed inside; `errno` says why.
    Io = 10,
    /// Commands run, and this needs a session in which none runs.
    Busy = 11,
    /// The session has no overlay.
    NoOverlay = 12,
    /// The host changed files that were to be committed.
    Conflict = 13,
    /// This session can't do that.
    Unsupported = 14,
    /// The session has ended.
    Ended = 15,
    /// The overlay has no such snapshot.
    NoSuchSnapshot = 16,
}

/// An error, as it is answered.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct Failure {
    /// What went wrong.
    pub kind: Kind,
    /// The same for people.
    pub message: String,
    /// What a program needs to act on it.
    pub details: Box<Details>,
}

/// What a program needs to act on an error.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Details {
    /// What the user could do.
    pub hint: Option<String>,
    /// The error number inside.
    pub errno: Option<i32>,
    /// What the policy refused.
    pub denials: Vec<api::Denial>,
    /// Files that are in conflict.
    pub paths: Vec<String>,
}

impl Failure {
    /// An error with a message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: Box::default(),
        }
    }

    /// As the protocol has it.
    pub fn to_api(&self) -> api::ErrorObject {
        api::ErrorObject {
            code: self.kind as i32,
            message: self.message.clone(),
            data: api::ErrorData {
                kind: self.kind,
                hint: self.details.hint.clone(),
                errno: self.details.errno,
                denials: self.details.denials.clone(),
                paths: self.details.paths.clone(),
            },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut failure = Self::new(kind_of(&error), chain(&error));
        failure.details.hint = error.hint();
        if let Error::Overlay(WorkspaceError::HostChanged(paths)) = &error {
            let shown = paths.iter().map(|path| path.display().to_string());
            failure.details.paths = shown.collect();
        }
        failure
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::Internal, chain(&error))
    }
}

fn kind_of(error: &Error) -> Kind {
    match error {
        Error::Run(RunError::Spawn(SpawnError::Stage {
            stage: Stage::Find | Stage::Execute | Stage::WorkingDirectory,
            ..
        })) => Kind::NotStarted,
        Error::Run(RunError::Spawn(SpawnError::Lost)) => Kind::Ended,
        Error::Run(RunError::NoSessions(_)) => Kind::Unsupported,
        Error::Run(RunError::Io { .. } | RunError::Lost { .. }) => Kind::Internal,
        Error::Run(_) | Error::Select(_) => Kind::NotEnforceable,
        Error::NoOverlay | Error::NoStore => Kind::NoOverlay,
        Error::Overlay(WorkspaceError::HostChanged(_)) => Kind::Conflict,
        Error::SessionBusy
        | Error::Overlay(WorkspaceError::OverlayBusy(_) | WorkspaceError::Busy(_)) => Kind::Busy,
        Error::Overlay(WorkspaceError::NoChange { .. } | WorkspaceError::Name(_)) => {
            Kind::InvalidParams
        }
        Error::Overlay(WorkspaceError::NoOverlaySnapshot { .. }) => Kind::NoSuchSnapshot,
        Error::Overlay(WorkspaceError::TooMany(_) | WorkspaceError::TooManySnapshots { .. }) => {
            Kind::LimitReached
        }
        Error::Overlay(_) | Error::NoHelper | Error::RelativeHelper(_) => Kind::Internal,
        _ => Kind::Policy,
    }
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
