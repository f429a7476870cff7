//! Files as the sandbox sees them.
//!
//! The server never opens a path that a client names: a link that a command planted would lead it to
//! the host's files. A process inside the session does, confined as every command is.

mod inside;
mod program;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use stockade::Stdio;

use crate::api;
use crate::error::{Failure, Kind};
use crate::session::{ServedSession, opened};

pub use self::inside::{is_requested, main};

/// Bytes of one read or write.
pub const MAX_FILE_BYTES: usize = 4 << 20;

/// Entries of one list.
pub const MAX_LIST_ENTRIES: usize = 10_000;

/// A FIFO without a writer would wait for ever.
const TIMEOUT: Duration = Duration::from_secs(30);

/// More than the largest answer needs.
const MAX_ANSWER_BYTES: u64 = 16 << 20;

/// What the process inside is to do; the content of a write follows the line.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    Read {
        path: String,
        offset: u64,
        length: u64,
    },
    Write {
        path: String,
        append: bool,
        parents: bool,
        mode: Option<u32>,
        length: u64,
    },
    List {
        path: String,
    },
    Stat {
        path: String,
    },
}

/// What the process inside answers; the content of a read follows the line.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer<T> {
    Done(T),
    Failed { errno: i32, message: String },
}

impl ServedSession {
    /// Reads a part of a file; true if the file ends there.
    ///
    /// # Errors
    /// If the sandbox can't read it.
    pub fn read_file(
        &self,
        path: &str,
        offset: u64,
        length: Option<u64>,
    ) -> Result<(Vec<u8>, bool), Failure> {
        let length = length.unwrap_or(u64::MAX).min(MAX_FILE_BYTES as u64);
        let order = Order::Read {
            path: path.to_owned(),
            offset,
            length,
        };
        let (is_end, content): (bool, Vec<u8>) = self.ask(&order, &[])?;
        Ok((content, is_end))
    }

    /// Writes a file.
    ///
    /// # Errors
    /// If the sandbox can't write it.
    pub fn write_file(
        &self,
        path: &str,
        content: &[u8],
        append: bool,
        parents: bool,
        mode: Option<u32>,
    ) -> Result<(), Failure> {
        if content.len() > MAX_FILE_BYTES {
            let text = format!("a write has at most {MAX_FILE_BYTES} bytes; use `append` for more");
            return Err(Failure::new(Kind::LimitReached, text));
        }
        let length = content.len() as u64;
        let order = Order::Write {
            path: path.to_owned(),
            append,
            parents,
            mode,
            length,
        };
        self.ask(&order, content).map(|((), _)| ())
    }

    /// Lists a directory.
    ///
    /// # Errors
    /// If the sandbox can't.
    pub fn list_files(&self, path: &str) -> Result<api::FileList, Failure> {
        let order = Order::List {
            path: path.to_owned(),
        };
        self.ask(&order, &[]).map(|(list, _)| list)
    }

    /// Describes a file; a link is not followed.
    ///
    /// # Errors
    /// If the sandbox can't.
    pub fn stat_file(&self, path: &str) -> Result<api::FileStat, Failure> {
        let order = Order::Stat {
            path: path.to_owned(),
        };
        self.ask(&order, &[]).map(|(stat, _)| stat)
    }

    /// Has a process inside carry out an order. What it answers is not trusted: other commands of
    /// the session can have meddled with it.
    fn ask<T: DeserializeOwned>(
        &self,
        order: &Order,
        content: &[u8],
    ) -> Result<(T, Vec<u8>), Failure> {
        let (ours, theirs) = UnixStream::pair()?;
        let open = self.read();
        let mut command = opened(open.as_ref())?.session.command(program::PATH);
        command
            .arg(inside::MARKER)
            .stdin(program::sealed_copy()?)
            .stdout(OwnedFd::from(theirs))
            .stderr(Stdio::Null)
            .timeout(TIMEOUT);
        let mut child = command.spawn()?;
        // It holds the other end of the socket, whose closing is what is waited for below.
        drop(command);
        drop(open);
        let answer = exchange(ours, order, content);
        let finished = child.wait()?;
        let denials: Vec<api::Denial> = finished.report.denials.iter().map(Into::into).collect();
        let answer = answer.and_then(|bytes| {
            let at = bytes.iter().position(|byte| *byte == b'\n')?;
            let answer: Answer<T> = serde_json::from_slice(&bytes[..at]).ok()?;
            Some((answer, bytes[at + 1..].to_vec()))
        });
        match answer {
            Some((Answer::Done(value), rest)) => Ok((value, rest)),
            Some((Answer::Failed { errno, message }, _)) => {
                let is_denied = !denials.is_empty();
                let kind = if is_denied { Kind::Denied } else { Kind::Io };
                let mut failure = Failure::new(kind, message);
                failure.details.errno = Some(errno);
                failure.details.denials = denials;
                Err(failure)
            }
            None => {
                let text = "the process that works on files inside ended without an answer";
                Err(Failure::new(Kind::Io, text))
            }
        }
    }
}

/// Sends an order and takes the answer; none if there is no whole one.
fn exchange(mut line: UnixStream, order: &Order, content: &[u8]) -> Option<Vec<u8>> {
    let mut message = serde_json::to_vec(order).ok()?;
    message.push(b'\n');
    message.extend_from_slice(content);
    // Whoever does not read all of it can still answer.
    let _ = line.write_all(&message);
    let _ = line.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let mut bounded = (&line).take(MAX_ANSWER_BYTES);
    bounded.read_to_end(&mut answer).ok()?;
    Some(answer)
}
