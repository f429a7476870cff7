//! Records of what was refused, sent to the launcher as it happens.

use std::ffi::OsStr;
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;
use serde::Serialize;
use stockade_rules::protected::ProtectedName;

use super::caller::Caller;
use super::locked;
use crate::commands::Commands;
use crate::control::Report;

/// One refused operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// What was tried.
    pub operation: Operation,
    /// On what, as an absolute real path.
    pub path: PathBuf,
    /// Which rule of the plan decided; none if no rule grants it.
    pub rule: Option<usize>,
    /// Why the name is protected, if that decided.
    pub protected: Option<String>,
    /// What the program was told.
    pub errno: i32,
    /// Who tried, by its id in the sandbox.
    pub pid: i32,
    /// What that program called itself.
    pub program: PathBuf,
}

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[repr(u8)]
pub enum Operation {
    /// Changing a file's mode, owner or extended attributes.
    ChangeAttribute = 12,
    /// Binding a Unix socket to a name.
    Bind = 1,
    /// Connecting to a Unix socket.
    Connect = 2,
    /// Creating a file.
    Create = 3,
    /// Changing git's configuration in a way that could run code.
    GitConfig = 4,
    /// Sending git to another repository's hooks and configuration.
    GitRedirect = 13,
    /// Making a directory.
    MakeDirectory = 5,
    /// Making a hard or symbolic link.
    MakeLink = 6,
    /// Making a FIFO, socket or device.
    MakeNode = 7,
    /// Opening a file that exists.
    Open = 8,
    /// Connecting to a host.
    Reach = 14,
    /// Opening a file for reading only.
    Read = 11,
    /// Removing a name.
    Remove = 9,
    /// Renaming.
    Rename = 10,
}

impl Operation {
    const ALL: [Self; 14] = [
        Self::Bind,
        Self::ChangeAttribute,
        Self::Connect,
        Self::Create,
        Self::GitConfig,
        Self::GitRedirect,
        Self::MakeDirectory,
        Self::MakeLink,
        Self::MakeNode,
        Self::Open,
        Self::Reach,
        Self::Read,
        Self::Remove,
        Self::Rename,
    ];

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operation| *operation as u8 == code)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bind => "bind",
            Self::ChangeAttribute => "change",
            Self::Connect => "connect",
            Self::Create => "create",
            Self::GitConfig => "git config",
            Self::GitRedirect => "git redirect",
            Self::MakeDirectory => "mkdir",
            Self::MakeLink => "link",
            Self::MakeNode => "mknod",
            Self::Open => "open",
            Self::Reach => "reach",
            Self::Read => "read",
            Self::Remove => "remove",
            Self::Rename => "rename",
        })
    }
}

/// What decided.
#[derive(Clone, Copy, Default)]
struct Why {
    rule: Option<usize>,
    reason: Option<&'static str>,
}

/// After so many, a run's records say nothing new.
const MAX_RECORDS: usize = 1000;

/// The denials that were reported already.
#[derive(Debug, Default)]
pub(crate) struct Reported(Vec<(Operation, PathBuf)>);

impl Reported {
    /// Notes a denial; whether it is a new one that is worth reporting.
    pub(crate) fn is_new(&mut self, operation: Operation, path: &Path) -> bool {
        let is_known = |(what, place): &(Operation, PathBuf)| *what == operation && place == path;
        if self.0.len() >= MAX_RECORDS || self.0.iter().any(is_known) {
            return false;
        }
        self.0.push((operation, path.to_owned()));
        true
    }
}

/// Sends records, each different one once.
pub(super) struct Records {
    control: OwnedFd,
    sent: Reported,
    /// The commands of a session.
    commands: Option<Arc<Commands>>,
}

impl Records {
    pub(super) fn new(control: OwnedFd, commands: Option<Arc<Commands>>) -> Self {
        Self {
            control,
            sent: Reported::default(),
            commands,
        }
    }

    /// Records a refusal and gives the error for it.
    pub(super) fn deny(
        &mut self,
        caller: &Caller,
        proc: BorrowedFd<'_>,
        operation: Operation,
        path: &Path,
        rule: Option<usize>,
    ) -> Errno {
        let why = Why { rule, reason: None };
        self.record(caller, proc, operation, path, why, Errno::ACCESS)
    }

    /// Records that a name is protected and gives the error for it.
    pub(super) fn deny_protected(
        &mut self,
        caller: &Caller,
        proc: &OwnedFd,
        operation: Operation,
        path: &Path,
        row: &'static ProtectedName,
    ) -> Errno {
        let why = Why {
            rule: None,
            reason: Some(row.reason),
        };
        self.record(caller, proc.as_fd(), operation, path, why, Errno::ACCESS)
    }

    /// Records that a host was not reached and gives the error for it.
    pub(super) fn deny_reach(
        &mut self,
        caller: &Caller,
        proc: BorrowedFd<'_>,
        place: SocketAddr,
        errno: Errno,
    ) -> Errno {
        let path = PathBuf::from(place.to_string());
        self.record(caller, proc, Operation::Reach, &path, Why::default(), errno)
    }

    fn record(
        &mut self,
        caller: &Caller,
        proc: BorrowedFd<'_>,
        operation: Operation,
        path: &Path,
        why: Why,
        errno: Errno,
    ) -> Errno {
        let commands = self.commands.as_ref();
        let command = commands.and_then(|commands| commands.of_process(caller.thread, proc));
        let mut denied = command.as_ref().map(|command| locked(&command.denied));
        let sent = denied.as_deref_mut().unwrap_or(&mut self.sent);
        if !sent.is_new(operation, path) {
            return errno;
        }
        let denial = Denial {
            operation,
            path: path.to_owned(),
            protected: why.reason.map(str::to_owned),
            rule: why.rule,
            errno: errno.raw_os_error(),
            // By its id inside; the caller may be gone by now.
            pid: caller.inner_ids(proc).map_or(0, |ids| ids.thread),
            program: PathBuf::from(OsStr::from_bytes(&caller.program(proc))),
        };
        // If the launcher is too slow to hear it, the program must not wait for that.
        let line = command
            .as_ref()
            .map_or(&self.control, |command| &command.line);
        let _ = Report::Denied(denial).send(line.as_fd());
        errno
    }
}
