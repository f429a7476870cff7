//! Records of what was refused, sent to the launcher as it happens.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::Serialize;
use stockade_rules::{PathRule, RuleSet};

use super::caller::{Caller, open_directory};
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

/// After so many, a run's records say nothing new.
const MAX_RECORDS: usize = 1000;

/// Sends records, each different one once.
pub(super) struct Records<'a> {
    control: BorrowedFd<'a>,
    rules: &'a RuleSet,
    sent: Vec<(Operation, PathBuf)>,
}

impl<'a> Records<'a> {
    pub(super) fn new(control: BorrowedFd<'a>, rules: &'a RuleSet) -> Self {
        Self {
            control,
            rules,
            sent: Vec::new(),
        }
    }

    /// Records a refusal and gives the error for it.
    pub(super) fn deny(
        &mut self,
        caller: &Caller,
        operation: Operation,
        path: &Path,
        rule: Option<&PathRule>,
    ) -> Errno {
        let pid = caller.thread.as_raw_nonzero().get();
        self.record(operation, path, rule, (Errno::ACCESS, pid), || {
            program(caller)
        })
    }

    /// Records that a host was not reached and gives the error for it.
    pub(super) fn deny_reach(&mut self, caller: &Caller, place: SocketAddr, errno: Errno) -> Errno {
        let pid = caller.thread.as_raw_nonzero().get();
        let path = PathBuf::from(place.to_string());
        let who = (errno, pid);
        self.record(Operation::Reach, &path, None, who, || program(caller))
    }

    /// Records what was refused when its maker was already gone.
    pub(super) fn deny_afterwards(&mut self, operation: Operation, path: &Path) {
        self.record(operation, path, None, (Errno::ACCESS, 0), Vec::new);
    }

    fn record(
        &mut self,
        operation: Operation,
        path: &Path,
        rule: Option<&PathRule>,
        (errno, pid): (Errno, i32),
        program: impl FnOnce() -> Vec<u8>,
    ) -> Errno {
        let known = self
            .sent
            .iter()
            .any(|(what, place)| *what == operation && place == path);
        if known || self.sent.len() >= MAX_RECORDS {
            return errno;
        }
        self.sent.push((operation, path.to_owned()));
        let denial = Denial {
            operation,
            path: path.to_owned(),
            rule: rule.and_then(|rule| {
                self.rules
                    .iter()
                    .position(|candidate| std::ptr::eq(candidate, rule))
            }),
            errno: errno.raw_os_error(),
            pid,
            program: PathBuf::from(std::ffi::OsStr::from_bytes(&program())),
        };
        // If the launcher is too slow to hear it, the program must not wait for that.
        let _ = Report::Denied(denial).send(self.control);
        errno
    }
}

/// What the caller's program called itself.
fn program(caller: &Caller) -> Vec<u8> {
    open_directory("/proc")
        .map(|proc| caller.program(std::os::fd::AsFd::as_fd(&proc)))
        .unwrap_or_default()
}
