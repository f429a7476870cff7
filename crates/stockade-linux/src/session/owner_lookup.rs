//! The question which command a socket of the sandbox's network belongs to, and its answer.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};

use crate::commands::Commands;
use crate::socket_owners::{ClientSocket, CommandId, MAX_ENCODED_BYTES};

/// Asks the supervisor of a session which command a socket belongs to.
#[derive(Debug)]
pub struct OwnerLookup(Mutex<Option<OwnedFd>>);

/// The supervisor's first thread waits for nothing inside. A longer silence means that it is
/// stopped; whoever asks has clients to serve.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// No command has this number.
const NO_COMMAND: CommandId = 0;

impl OwnerLookup {
    pub(super) fn new(line: OwnedFd) -> Self {
        Self(Mutex::new(Some(line)))
    }

    /// The command that connected or bound a socket. `None`: no command that is known, or the
    /// session has ended.
    pub fn owner(&self, socket: ClientSocket) -> Option<CommandId> {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = ask(line.as_ref()?, socket);
        if answer.is_err() {
            // A late answer would be taken for that to the next question.
            *line = None;
        }
        answer.ok().filter(|id| *id != NO_COMMAND)
    }
}

fn ask(line: &OwnedFd, socket: ClientSocket) -> io::Result<CommandId> {
    rustix::net::send(line, &socket.encode(), SendFlags::NOSIGNAL)?;
    let mut watched = [PollFd::new(line, PollFlags::IN)];
    let limit = Timespec::try_from(ANSWER_TIMEOUT).map_err(io::Error::other)?;
    if poll(&mut watched, Some(&limit))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut id = NO_COMMAND.to_ne_bytes();
    let (length, _) = rustix::net::recv(line, &mut id, RecvFlags::DONTWAIT)?;
    if length != id.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(CommandId::from_ne_bytes(id))
}

/// As the supervisor: answers one question; false when there will be no more.
pub(crate) fn answer_owner(line: BorrowedFd<'_>, commands: &Commands) -> bool {
    let mut question = [0; MAX_ENCODED_BYTES];
    let Ok((length, _)) = rustix::net::recv(line, &mut question, RecvFlags::DONTWAIT) else {
        return false;
    };
    if length == 0 {
        return false;
    }
    let socket = question.get(..length).and_then(ClientSocket::decode);
    let command = socket.and_then(|socket| commands.of_socket(socket));
    let id = command.map_or(NO_COMMAND, |command| command.id);
    rustix::net::send(
        line,
        &id.to_ne_bytes(),
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    )
    .is_ok()
}
