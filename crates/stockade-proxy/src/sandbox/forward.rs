//! Single ports from one side to the other: a port of the host's loopback inside, and a port
//! inside on the host's loopback.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use stockade_policy::host::Host;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::sync::Mutex;

use crate::dial::{self, Server};
use crate::gate::{Gate, Target, reset};
use crate::ledger::{Ask, Protocol};
use crate::server::Permit;
use crate::tunnel::{self, Client, Side, Terms};

const LOOPBACKS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// Takes the ports on the host's loopback; a port that is taken is an error.
pub(super) fn listen(ports: &[u16]) -> io::Result<Vec<(u16, std::net::TcpListener)>> {
    let mut listeners = Vec::new();
    for port in ports {
        let named = |error: io::Error| {
            let text = format!("can't listen on port {port} of the host's loopback: {error}");
            io::Error::new(error.kind(), text)
        };
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).map_err(named)?;
        listener.set_nonblocking(true)?;
        listeners.push((*port, listener));
        // A host without IPv6 has one door less.
        if let Ok(listener) = std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, *port)) {
            listener.set_nonblocking(true)?;
            listeners.push((*port, listener));
        }
    }
    Ok(listeners)
}

/// From inside to a port of the host.
pub(super) async fn outwards(gate: Arc<Gate>, port: u16, stream: TcpStream, permit: Permit) {
    let places = LOOPBACKS.map(|ip| SocketAddr::new(ip, port));
    match dial::first(&places, gate.limits.connect).await {
        Ok(server) => join(&gate, Side::Client, port, stream, server).await,
        Err(_) => reset(stream),
    }
    drop(permit);
}

/// From the host to a port inside.
pub(super) async fn inwards(
    gate: Arc<Gate>,
    connector: Arc<Connector>,
    port: u16,
    stream: TcpStream,
    permit: Permit,
) {
    match connector.connect(port).await {
        Ok(server) => join(&gate, Side::Server, port, stream, server).await,
        Err(_) => reset(stream),
    }
    drop(permit);
}

async fn join(gate: &Gate, inside: Side, port: u16, client: TcpStream, server: TcpStream) {
    let flag = match inside {
        Side::Client => "host-port",
        Side::Server => "expose",
    };
    let target = Target {
        host: Host::Ip(LOOPBACKS[0]),
        port,
    };
    let rule = Some(format!("{flag} {port}"));
    let session = gate
        .ledger
        .open(Ask::new(Protocol::Forward, flag), &target, rule);
    let client = Client::new(client, Bytes::new());
    let terms = Terms {
        inside,
        ..Terms::of(gate)
    };
    tunnel::carry(&terms, &session, client, Server::new(server)).await;
}

/// The line to the sandbox's first process, which makes sockets in its network: whoever connects
/// with one connects from there.
#[derive(Debug)]
pub(super) struct Connector(Mutex<UnixStream>);

impl Connector {
    pub(super) fn new(line: OwnedFd) -> io::Result<Self> {
        let line = std::os::unix::net::UnixStream::from(line);
        line.set_nonblocking(true)?;
        Ok(Self(Mutex::new(UnixStream::from_std(line)?)))
    }

    async fn connect(&self, port: u16) -> io::Result<TcpStream> {
        let mut last = None;
        for ip in LOOPBACKS {
            let family = if ip.is_ipv4() { b"4" } else { b"6" };
            let socket = std::net::TcpStream::from(self.socket(family).await?);
            let socket = TcpSocket::from_std_stream(socket);
            match socket.connect(SocketAddr::new(ip, port)).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::ConnectionRefused.into()))
    }

    async fn socket(&self, family: &[u8; 1]) -> io::Result<OwnedFd> {
        // One question at a time, so that each answer is to its own.
        let mut line = self.0.lock().await;
        line.write_all(family).await?;
        line.async_io(tokio::io::Interest::READABLE, || {
            let mut byte = [0; 1];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut slices = [IoSliceMut::new(&mut byte)];
            recvmsg(&*line, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
            let found = ancillary.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
                _ => None,
            });
            found.ok_or_else(|| io::Error::other("the sandbox has ended"))
        })
        .await
    }
}
