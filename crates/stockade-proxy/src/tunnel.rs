//! A client and the host it asked for, joined: what it speaks is looked at once, then bytes are
//! moved as they come, each direction for itself, until both have ended.

#[cfg(not(target_os = "linux"))]
mod copy;
mod mismatch;
#[cfg(target_os = "linux")]
mod splice;
pub(crate) mod stream;
mod watch;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use stockade_policy::host::Host;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::config::ProxyLimits;
use crate::dial::Server;
use crate::first_bytes::{self, First};
use crate::gate::{Gate, Opening, reset};
use crate::http;
use crate::idle_timeout::idle_timeout;
use crate::ledger::{Protocol, Session};
use crate::server::Permit;
use crate::shutdown::ShutdownSignal;
use crate::text;

use self::mismatch::Mismatch;
use self::watch::Watch;

#[cfg(not(target_os = "linux"))]
use self::copy::{keep_short, one_way};
#[cfg(target_os = "linux")]
use self::splice::{keep_short, one_way};

/// A client, and what was read from it that belongs to the host.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) early: Bytes,
}

impl Client {
    pub(crate) fn new(stream: TcpStream, early: Bytes) -> Self {
        let _ = stream.set_nodelay(true);
        Self { stream, early }
    }
}

/// Which of both is in the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// How long bytes are moved.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) limits: ProxyLimits,
    pub(crate) ending: ShutdownSignal,
    pub(crate) inside: Side,
}

impl Terms {
    /// Those of a client inside.
    pub(crate) fn of(gate: &Gate) -> Self {
        Self {
            limits: gate.limits,
            ending: gate.ending.clone(),
            inside: Side::Client,
        }
    }
}

/// Joins both, if what the client speaks agrees with what it asked for.
///
/// Boxed, because HTTP in a tunnel can lead to a tunnel.
pub(crate) fn run(
    gate: &Arc<Gate>,
    opening: Opening,
    client: Client,
    server: Server,
    permit: Permit,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let gate = Arc::clone(gate);
    Box::pin(async move { join(gate, opening, client, server, permit).await })
}

async fn join(
    gate: Arc<Gate>,
    mut opening: Opening,
    mut client: Client,
    server: Server,
    permit: Permit,
) {
    let first = first_bytes::look(&mut client, &server, &gate.limits).await;
    let watch = matches!(first, Ok(First::Other)).then(Watch::default);
    let mismatch = match first {
        Ok(First::Http) => {
            http::serve_known(gate, client, opening.target, server, permit).await;
            return;
        }
        Ok(First::Tls { name, encrypted }) => {
            if opening.ask.protocol == Protocol::Tcp {
                opening.as_protocol(Protocol::Tls);
            }
            let opened = gate.opens(&opening.target).is_some();
            // Opened, it ends here, and no name in it leads anywhere else.
            let hidden = encrypted && !opened;
            match contradiction(&gate, &opening, name.as_deref(), hidden) {
                None if opened => {
                    return http::serve_opened(gate, opening, client, server, permit).await;
                }
                None if gate
                    .check_unreadable(&opening, "TLS that is not opened")
                    .is_err() =>
                {
                    return refuse_tls(client.stream).await;
                }
                mismatch => mismatch,
            }
        }
        Ok(First::Malformed(reason)) => Some(Mismatch::tls(format!("malformed TLS: {reason}"))),
        Ok(First::Http2) => {
            let what = "HTTP/2 without TLS";
            if gate.check_unreadable(&opening, what).is_err() {
                return reset(client.stream);
            }
            let reason = "HTTP/2 without TLS hides the host of each request";
            if let Some(mismatch) = hides_name(&gate, &opening, reason) {
                gate.deny(opening.ask, mismatch.denial(&opening.target));
                return reset(client.stream);
            }
            None
        }
        Ok(First::Other) => {
            let what = "a protocol other than HTTP";
            if gate.check_unreadable(&opening, what).is_err() {
                return reset(client.stream);
            }
            None
        }
        Err(error) => {
            gate.ledger.fail(
                opening.ask.clone(),
                &opening.target,
                None,
                error.to_string(),
            );
            return;
        }
    };
    if let Some(mismatch) = mismatch {
        gate.deny(opening.ask, mismatch.denial(&opening.target));
        refuse_tls(client.stream).await;
        return;
    }
    let session = gate.begin(&opening);
    let terms = Terms::of(&gate);
    let bytes = move_bytes(&terms, &session, client, server, watch.as_ref());
    // However it ends, both sides are closed now, and the session says how much there was.
    let _ = idle_timeout(bytes, terms.limits.idle, || session.progress()).await;
    if let Some(reason) = watch.and_then(|watch| watch.refused()) {
        let mismatch = Mismatch::http(reason.to_owned());
        gate.deny(opening.ask, mismatch.denial(&opening.target));
    }
    drop(permit);
}

/// Moves bytes until both sides have ended, or nothing moves any more.
pub(crate) async fn carry(terms: &Terms, session: &Session, client: Client, server: Server) {
    let bytes = move_bytes(terms, session, client, server, None);
    let moved = idle_timeout(bytes, terms.limits.idle, || session.progress());
    // However it ends, both sides are closed now, and the session says how much there was.
    let _ = moved.await;
}

async fn move_bytes(
    terms: &Terms,
    session: &Session,
    mut client: Client,
    mut server: Server,
    watch: Option<&Watch>,
) -> io::Result<()> {
    if !client.early.is_empty() {
        watch.map_or(Ok(()), |watch| watch.read(&client.early))?;
        server.stream.write_all(&client.early).await?;
        session.sent(client.early.len() as u64);
        client.early = Bytes::new();
    }
    if !server.early.is_empty() {
        client.stream.write_all(&server.early).await?;
        session.received(server.early.len() as u64);
        server.early = Bytes::new();
    }
    for (side, stream) in [
        (Side::Client, &client.stream),
        (Side::Server, &server.stream),
    ] {
        let inside = terms.ending.is_armed() && side == terms.inside;
        if inside || is_near(stream) {
            keep_short(stream);
        }
    }
    let (from_client, to_client) = client.stream.split();
    let (from_server, mut to_server) = server.stream.split();
    let up = async {
        if let Some(watch) = watch {
            watch
                .pass(&from_client, &mut to_server, |bytes| session.sent(bytes))
                .await?;
        }
        one_way(from_client, to_server, |bytes| session.sent(bytes)).await
    };
    let down = one_way(from_server, to_client, |bytes| session.received(bytes));
    match terms.inside {
        Side::Client => both_ways(up, down, &terms.ending).await,
        Side::Server => both_ways(down, up, &terms.ending).await,
    }
}

fn is_near(stream: &TcpStream) -> bool {
    stream
        .peer_addr()
        .is_ok_and(|peer| peer.ip().to_canonical().is_loopback())
}

/// Until both have ended. When the sandbox has, its own side is all that is waited for.
async fn both_ways(
    from_inside: impl Future<Output = io::Result<()>>,
    to_inside: impl Future<Output = io::Result<()>>,
    ending: &ShutdownSignal,
) -> io::Result<()> {
    tokio::pin!(from_inside, to_inside);
    tokio::select! {
        done = &mut to_inside => {
            done?;
            from_inside.await
        }
        done = &mut from_inside => {
            done?;
            tokio::select! {
                done = to_inside => done,
                () = ending.wait() => Ok(()),
            }
        }
    }
}

/// What is wrong with the name in TLS, if anything is.
fn contradiction(
    gate: &Gate,
    opening: &Opening,
    name: Option<&str>,
    hidden: bool,
) -> Option<Mismatch> {
    match (&opening.target.host, name) {
        (Host::Name(_), None) => hides_name(gate, opening, "the TLS client names no server"),
        (Host::Ip(_), None) => None,
        (asked, Some(text)) => match Host::parse(text) {
            Ok(host) if host == *asked && hidden => hides_name(
                gate,
                opening,
                "the TLS client may name another server in an encrypted ClientHello",
            ),
            Ok(host) if host == *asked => None,
            _ => Some(Mismatch::tls(format!(
                "TLS asks for `{}`, and `{asked}` was asked for",
                text::shown(text)
            ))),
        },
    }
}

/// Refuses what does not show which name it is for, unless the user lets it pass. Who asks for an
/// address may say any name.
fn hides_name(gate: &Gate, opening: &Opening, reason: &str) -> Option<Mismatch> {
    let named = matches!(opening.target.host, Host::Name(_));
    (named && !gate.egress.get().rules.danger_hidden_names).then(|| Mismatch::hidden(reason))
}

/// A fatal alert, so that the client says what it is about: `access_denied` (RFC 8446 section 6).
pub(crate) const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

async fn refuse_tls(mut stream: TcpStream) {
    if stream.write_all(&ACCESS_DENIED).await.is_ok() {
        let _ = stream.shutdown().await;
    } else {
        reset(stream);
    }
}
