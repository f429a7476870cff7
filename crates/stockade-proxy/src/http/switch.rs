//! After 101 a connection is no longer HTTP: a WebSocket, for instance.

use http_body_util::{Either, Full};
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;

use super::client_of;
use super::mask::{Masks, Scrubber};
use super::reply::Reply;
use crate::dial::Server;
use crate::headers;
use crate::ledger::Session;
use crate::rewind::Rewind;
use crate::server::Permit;
use crate::tunnel::{self, Terms};
use crate::wire::Wire;

/// How bytes are moved from now on.
pub(super) struct Switch {
    pub(super) terms: Terms,
    pub(super) session: Session,
    pub(super) permit: Permit,
    /// Whether both sides speak TLS with the proxy.
    pub(super) secured: bool,
    /// Takes values of masked variables out of what the host says.
    pub(super) scrubber: Option<Scrubber>,
}

impl Switch {
    /// Joins both sides, once the client has its answer.
    pub(super) fn begin(self, client: OnUpgrade, response: &mut Response<Incoming>) {
        let server = hyper::upgrade::on(response);
        tokio::spawn(async move {
            let Self {
                terms,
                session,
                permit,
                secured,
                scrubber,
            } = self;
            if secured || scrubber.is_some() {
                if let (Ok(client), Ok(server)) = (client.await, server.await) {
                    let (client, server) = (TokioIo::new(client), TokioIo::new(server));
                    tunnel::stream::carry(&terms, &session, client, server, scrubber).await;
                }
            } else if let Some(server) = server_of(server.await)
                && let Some(client) = client_of(client.await)
            {
                tunnel::carry(&terms, &session, client, server).await;
            }
            drop(permit);
        });
    }
}

/// The client's answer; `asked` is the protocol that it asked for.
pub(super) fn switched(
    response: Response<Incoming>,
    asked: HeaderValue,
    masks: &Masks,
) -> Response<Reply> {
    let (mut parts, _) = response.into_parts();
    let stated = headers::strip(&mut parts.headers);
    masks.clean(&mut parts);
    headers::ask_upgrade(&mut parts.headers, stated.unwrap_or(asked));
    Response::from_parts(parts, Either::Right(Full::default()))
}

/// The stream below an upgraded connection to a host.
fn server_of(upgraded: hyper::Result<Upgraded>) -> Option<Server> {
    let parts = upgraded.ok()?.downcast::<TokioIo<Wire>>().ok()?;
    let Wire::Plain(Rewind { stream, .. }) = parts.io.into_inner() else {
        return None;
    };
    Some(Server {
        stream,
        early: parts.read_buf,
    })
}
