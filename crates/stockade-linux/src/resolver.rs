//! The resolver of a network that leads nowhere: no name exists, and the launcher is told which
//! were asked for.
//!
//! Without it the C library says "try again" and clients do, for a minute and more; and nobody could
//! tell which host a program wanted. The supervisor answers between its other work, without ever
//! waiting, on the addresses where the host's programs look for a resolver.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use stockade_rules::dns::{Answer, respond};

use crate::commands::Command;
use crate::control::Report;
use crate::mediator::{Denial, Operation};
use crate::network;
use crate::plan::{Socket, SocketKind};

/// The sockets on which questions arrive.
#[derive(Debug)]
pub(crate) struct Resolver {
    sockets: Vec<OwnedFd>,
    /// Names that the launcher has been told and that no command is known to have asked for.
    told: Vec<String>,
}

/// After so many names, another one says nothing new.
const MAX_NAMES: usize = 200;
/// How many questions are answered before the supervisor looks at its other work.
const MAX_QUESTIONS: usize = 64;
const DNS_PORT: u16 = 53;
const MAX_MESSAGE_BYTES: usize = 2048;

impl Resolver {
    /// Gives the loopback these addresses and listens on them; `own` is an address that makes the
    /// C library look names up at all (`AI_ADDRCONFIG` in getaddrinfo(3)). An address that can't be
    /// had, because it is listed twice or there is no IPv6, is left out: nothing depends on it.
    pub(crate) fn start(resolvers: &[IpAddr], own: IpAddr) -> Self {
        let _ = network::add_addresses(&[own]);
        let listen = |address: &IpAddr| {
            if !address.is_loopback() {
                network::add_addresses(&[*address]).ok()?;
            }
            let socket = Socket {
                kind: SocketKind::Datagram,
                address: SocketAddr::new(*address, DNS_PORT),
            };
            network::make(&socket).ok()
        };
        Self {
            sockets: resolvers.iter().filter_map(listen).collect(),
            told: Vec::new(),
        }
    }

    /// What to wait for.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(AsFd::as_fd)
    }

    /// Answers what has been asked by now. A command of a session is told about its names, which
    /// `command_of` finds by the address of the client; `control` is told about the others.
    pub(crate) fn answer(
        &mut self,
        control: BorrowedFd<'_>,
        command_of: impl Fn(SocketAddr) -> Option<Arc<Command>>,
    ) {
        for socket in &self.sockets {
            for _ in 0..MAX_QUESTIONS {
                let mut message = [0; MAX_MESSAGE_BYTES];
                let received = rustix::net::recvfrom(socket, &mut message[..], RecvFlags::DONTWAIT);
                // An error is one that an earlier answer met, or there is nothing more.
                let Ok((length, _, Some(from))) = received else {
                    break;
                };
                let mut asked = None;
                let mut no_name = |name: &str| {
                    asked = Some(name.to_ascii_lowercase());
                    Answer::NoName
                };
                let message = &message[..length.min(MAX_MESSAGE_BYTES)];
                if let Some(answer) = respond(message, &mut no_name) {
                    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                    let _ = rustix::net::sendto(socket, &answer, flags, &from);
                }
                let Some(name) = asked else { continue };
                let from = SocketAddr::try_from(from).ok();
                match from.and_then(&command_of) {
                    Some(command) => tell_command(&command, &name),
                    None => tell(&mut self.told, name, control),
                }
            }
        }
    }
}

/// Tells a command's launcher about a name, once.
fn tell_command(command: &Command, name: &str) {
    let denial = denial(name);
    let denied = &mut command
        .denied
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if !is_address(name) && denied.is_new(denial.operation, &denial.path) {
        // If the launcher is too slow to hear it, nobody waits for that.
        let _ = Report::Denied(denial).send(command.line.as_fd());
    }
}

/// Tells the launcher about a name, once.
fn tell(told: &mut Vec<String>, name: String, control: BorrowedFd<'_>) {
    if is_address(&name) || told.contains(&name) || told.len() >= MAX_NAMES {
        return;
    }
    // As above.
    let _ = Report::Denied(denial(&name)).send(control);
    told.push(name);
}

/// Whether a name stands for an address: nobody wants to reach that.
fn is_address(name: &str) -> bool {
    name.rsplit('.').next() == Some("arpa")
}

fn denial(name: &str) -> Denial {
    Denial {
        operation: Operation::Reach,
        path: PathBuf::from(name),
        rule: None,
        protected: None,
        errno: Errno::NETUNREACH.raw_os_error(),
        pid: 0,
        program: PathBuf::new(),
    }
}
