//! Entry point of containers whose network the launcher serves: it makes the sockets there,
//! hands them to the launcher, and becomes the command.
//!
//! A container's network namespace belongs to the engine, and the launcher may be anybody: it
//! can't enter. Whoever is inside can make sockets without any capability, as long as no address
//! but the loopback's is needed and ports below 1024 are free for all
//! (`net.ipv4.ip_unprivileged_port_start`). Nothing of this stays when the command runs: the line
//! is closed with `execve(2)`, and nobody listens at its other end any more.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::{command, supervisor, tell};
use crate::plan::{Network, Text};
use crate::stage::{At, Failure, Stage};
use crate::{network, sys};

/// The first argument that makes a program act as the entry.
pub(crate) const MARKER: &str = "--stockade-internal-entry";

/// The arguments are the launcher's socket, the network in JSON, and the command. Returns only if
/// the command was not executed; none if the arguments are nonsense.
pub(super) fn main(mut arguments: impl Iterator<Item = OsString>) -> Option<i32> {
    let line = arguments.next()?;
    let network: Network = serde_json::from_slice(arguments.next()?.as_bytes()).ok()?;
    let argv: Vec<Text> = arguments.map(Text::new).collect::<Option<_>>()?;
    let env = std::env::vars_os().map(|(name, value)| {
        let mut entry = name;
        entry.push("=");
        entry.push(value);
        Text::new(entry)
    });
    let env: Vec<Text> = env.collect::<Option<_>>()?;
    let line = connect(line.as_bytes()).ok()?;
    let failure = match prepare(&network, line.as_fd()) {
        Ok(()) => command::execute(&argv, &env),
        Err(failure) => failure,
    };
    Some(tell(failure, line.as_fd()))
}

fn prepare(network: &Network, line: BorrowedFd<'_>) -> Result<(), Failure> {
    network::prepare(Some(network), line)?;
    supervisor::await_proxy(line).at(Stage::AwaitProxy)?;
    // What the language's own start-up has changed (SIGPIPE).
    sys::signal::restore_defaults().at(Stage::Signals)
}

fn connect(path: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let line = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::connect(&line, &SocketAddrUnix::new(path)?)?;
    Ok(line)
}
