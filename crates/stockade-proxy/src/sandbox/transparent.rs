//! Connections of clients that know of no proxy.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use stockade_policy::host::Host;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::names::Names;
use crate::first_bytes::{self, First};
use crate::gate::{Denial, Gate, Refusal, Target, reset};
use crate::http;
use crate::ledger::{Ask, Protocol};
use crate::server::Permit;
use crate::tunnel::{self, ACCESS_DENIED, Client};

/// A refused client is given so long to show what it speaks, to be told in its own words: it may
/// have to wait for its turn on a busy machine.
const MOMENT: Duration = Duration::from_secs(1);
/// And so long to hear it.
const TOLD: Duration = Duration::from_secs(5);

pub(super) async fn serve(gate: Arc<Gate>, names: Arc<Names>, stream: TcpStream, permit: Permit) {
    // The address that the client connected to is this side's own.
    let Ok(meant) = stream.local_addr() else {
        return;
    };
    let target = target(&names, meant);
    let client = gate.attribution.address_of(&stream);
    let ask = Ask::new(Protocol::Tcp, "connect").by(client);
    let opening = match gate.check(target, ask) {
        Ok(opening) => opening,
        Err(denial) => return refuse(stream, &denial).await,
    };
    match gate.connect(&opening).await {
        Ok(server) => {
            let client = Client::new(stream, Bytes::new());
            tunnel::run(&gate, opening, client, server, permit).await;
        }
        Err(Refusal::Denied(denial)) => refuse(stream, &denial).await,
        Err(Refusal::Unreachable(_)) => reset(stream),
    }
}

/// What the client meant: the name that the address stands for, or the address itself.
fn target(names: &Names, meant: SocketAddr) -> Target {
    let ip = match meant.ip() {
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
        v4 @ IpAddr::V4(_) => v4,
    };
    let host = names.name_of(ip).map_or(Host::Ip(ip), Host::Name);
    Target {
        host,
        port: meant.port(),
    }
}

/// Ends the connection at once; who speaks HTTP is told why, who speaks TLS gets an alert.
async fn refuse(mut stream: TcpStream, denial: &Denial) {
    let mut first = [0; 512];
    let spoken = match timeout(MOMENT, stream.peek(&mut first)).await {
        Ok(Ok(length)) => first_bytes::guess(&first[..length]),
        _ => First::Other,
    };
    let told = async {
        match spoken {
            First::Http => {
                let Some(rest) = http::refuse(stream, denial).await else {
                    return Ok(());
                };
                stream = rest;
            }
            First::Tls { .. } | First::Malformed(_) => stream.write_all(&ACCESS_DENIED).await?,
            First::Http2 | First::Other => {
                reset(stream);
                return Ok(());
            }
        }
        stream.shutdown().await?;
        // Closing with bytes unread would send a reset, which takes the answer with it.
        let mut sink = [0; 4096];
        loop {
            stream.readable().await?;
            match stream.try_read(&mut sink) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    };
    // Told or not, it is over.
    let _: Result<std::io::Result<()>, _> = timeout(TOLD, told).await;
}
