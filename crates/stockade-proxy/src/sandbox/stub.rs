//! The resolver inside a sandbox: allowed names have an address that stands for them, others do
//! not exist. Nothing that is asked here ever leaves the machine.

use std::io;
use std::sync::Arc;

use stockade_policy::host::dns::{self, Answer};
use stockade_policy::host::{Host, HostName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::names::Names;
use crate::attribution::ClientAddress;
use crate::gate::{Denial, Gate, Target};
use crate::ledger::{Ask, Protocol};
use crate::server::Permit;

/// No question is longer.
const MAX_MESSAGE: usize = 2048;

/// Answers datagrams for ever.
pub(super) async fn serve(gate: Arc<Gate>, names: Arc<Names>, socket: UdpSocket) {
    let mut buffer = vec![0; MAX_MESSAGE];
    loop {
        // An error is one that an earlier answer met: its asker is gone.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
            continue;
        };
        let client = Some(ClientAddress::Datagram(from));
        if let Some(answer) = respond(&gate, &names, client, &buffer[..length]) {
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

/// Answers the questions of one connection.
pub(super) async fn serve_stream(
    gate: Arc<Gate>,
    names: Arc<Names>,
    mut stream: TcpStream,
    permit: Permit,
) {
    let limit = gate.limits.head;
    // However it ends, the client has what it got.
    while let Ok(Ok(true)) = timeout(limit, answer_one(&gate, &names, &mut stream)).await {}
    drop(permit);
}

async fn answer_one(gate: &Gate, names: &Names, stream: &mut TcpStream) -> io::Result<bool> {
    let length = usize::from(stream.read_u16().await?);
    if length > MAX_MESSAGE {
        return Ok(false);
    }
    let mut question = vec![0; length];
    stream.read_exact(&mut question).await?;
    let client = gate.attribution.address_of(stream);
    let Some(answer) = respond(gate, names, client, &question) else {
        return Ok(false);
    };
    let mut message = u16::try_from(answer.len())
        .unwrap_or(0)
        .to_be_bytes()
        .to_vec();
    message.extend(answer);
    stream.write_all(&message).await?;
    Ok(true)
}

fn respond(
    gate: &Gate,
    names: &Names,
    client: Option<ClientAddress>,
    question: &[u8],
) -> Option<Vec<u8>> {
    dns::respond(question, &mut |text| look_up(gate, names, client, text))
}

fn look_up(gate: &Gate, names: &Names, client: Option<ClientAddress>, text: &str) -> Answer {
    let ask = || Ask::new(Protocol::Dns, "query").by(client);
    let name = match Host::parse(text) {
        Ok(Host::Name(name)) => name,
        Ok(Host::Ip(_)) => return Answer::NoName,
        Err(error) => {
            gate.refuse_text(ask(), text, 0, error.to_string());
            return Answer::NoName;
        }
    };
    let decision = gate.egress.get().decide_name(&name);
    if !decision.is_allowed() {
        if !is_search(gate, name.as_str()) {
            let target = Target {
                host: Host::Name(name),
                port: 0,
            };
            gate.deny(ask(), Denial::new(&target, decision));
        }
        return Answer::NoName;
    }
    if let Some((v4, v6)) = names.addresses_of(&name) {
        return Answer::Addresses(v4, v6);
    }
    gate.refuse_text(ask(), name.as_str(), 0, "too many names".to_owned());
    Answer::Full
}

/// Whether this is an allowed name with something behind it: resolvers try the domains of their
/// search list by themselves, and nobody meant those, or a question about an address.
fn is_search(gate: &Gate, name: &str) -> bool {
    if name.rsplit('.').next() == Some("arpa") {
        return true;
    }
    let shorter = name.match_indices('.').map(|(at, _)| &name[..at]);
    shorter
        .filter_map(|prefix| HostName::parse(prefix).ok())
        .any(|prefix| gate.egress.get().decide_name(&prefix).is_allowed())
}
