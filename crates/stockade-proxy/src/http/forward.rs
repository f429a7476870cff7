//! A request on its way to the host, over a connection that is kept for the next one.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::http::uri::{Authority, PathAndQuery, Scheme, Uri};
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::body::{Counted, Way};
use super::client_of;
use super::mask::{Masks, Scrubber};
use super::reply::Reply;
use crate::dial::Server;
use crate::error::Unreachable;
use crate::gate::{Gate, Opening, Refusal, Target};
use crate::headers;
use crate::ledger::Session;
use crate::patience::while_moving;
use crate::rewind::Rewind;
use crate::server::Permit;
use crate::tunnel::{self, Terms};
use crate::upstream::Upstream;

type Sent = Either<Counted, Full<Bytes>>;

/// The connection to the host that was asked for last. Requests of one client come one after the
/// other, so there is never a need for two.
#[derive(Default)]
pub(crate) struct Link(Mutex<Option<Kept>>);

struct Kept {
    target: Target,
    sender: SendRequest<Sent>,
}

impl Link {
    /// Over a connection that is there already.
    pub(crate) async fn over(target: &Target, server: Server) -> hyper::Result<Self> {
        let kept = Kept {
            target: target.clone(),
            sender: handshake(server).await?,
        };
        Ok(Self(Mutex::new(Some(kept))))
    }

    pub(crate) async fn forward(
        &self,
        gate: &Gate,
        opening: Opening,
        mut request: Request<Incoming>,
        permit: &Permit,
    ) -> Result<Response<Reply>, Refusal> {
        let client_side = hyper::upgrade::on(&mut request);
        let upstream = gate.upstream_for(&opening.target);
        let (mut kept, mut reused) = self.connection(gate, &opening, upstream).await?;
        let session = gate.begin(&opening);
        let masks = Masks::of(gate, &opening.target);
        let (mut message, upgrade) =
            rewrite(gate, request, &opening.target, upstream, &session, &masks);
        let response = loop {
            let answer = kept.sender.try_send_request(message);
            let after = gate.limits.answer;
            let to = || opening.target.to_string();
            match while_moving(answer, after, || session.progress()).await {
                Ok(Ok(response)) => break response,
                Ok(Err(mut error)) => match error.take_message() {
                    // The host closed a connection that was kept; nothing of this was sent.
                    Some(unsent) if reused => {
                        message = unsent;
                        (kept, reused) = (fresh(gate, &opening, upstream).await?, false);
                    }
                    _ => {
                        let source = error.into_error();
                        return Err(gate.fail(&opening, Unreachable::Broken { to: to(), source }));
                    }
                },
                Err(_) => return Err(gate.fail(&opening, Unreachable::Silent { to: to(), after })),
            }
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if upgrade.is_none() {
                let to = opening.target.to_string();
                return Err(gate.fail(&opening, Unreachable::Unasked { to }));
            }
            return Ok(switch(
                gate,
                upgrade,
                client_side,
                response,
                session,
                permit,
                &masks,
            ));
        }
        self.keep(kept);
        let (mut parts, body) = response.into_parts();
        headers::strip(&mut parts.headers);
        masks.clean(&mut parts);
        // The client's own version decides how it is framed.
        parts.version = Version::HTTP_11;
        let body = Counted::new(body, session, Way::ToClient).scrubbed(Scrubber::new(&masks));
        Ok(Response::from_parts(parts, Either::Left(body)))
    }

    /// The kept connection, if it is to this host and still good, or a new one.
    async fn connection(
        &self,
        gate: &Gate,
        opening: &Opening,
        upstream: Option<&Upstream>,
    ) -> Result<(Kept, bool), Refusal> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut kept) = kept
            && kept.target == opening.target
            && kept.sender.ready().await.is_ok()
        {
            return Ok((kept, true));
        }
        Ok((fresh(gate, opening, upstream).await?, false))
    }

    fn keep(&self, kept: Kept) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }
}

async fn fresh(
    gate: &Gate,
    opening: &Opening,
    upstream: Option<&Upstream>,
) -> Result<Kept, Refusal> {
    // A plain request goes to another proxy as it is; CONNECT is often for port 443 alone there.
    let server = match upstream {
        Some(upstream) => upstream
            .dial(gate.limits.connect)
            .await
            .map(Server::new)
            .map_err(|error| gate.fail(opening, error))?,
        None => gate.connect(opening).await?,
    };
    let sender = handshake(server)
        .await
        .map_err(|error| gate.fail(opening, error.into()))?;
    Ok(Kept {
        target: opening.target.clone(),
        sender,
    })
}

async fn handshake(server: Server) -> hyper::Result<SendRequest<Sent>> {
    let stream = TokioIo::new(Rewind {
        early: server.early,
        stream: server.stream,
    });
    let (sender, connection) = http1::Builder::new()
        .preserve_header_case(true)
        .handshake(stream)
        .await?;
    tokio::spawn(connection.with_upgrades());
    Ok(sender)
}

/// The request as the next hop gets it, and the upgrade that it asks for.
fn rewrite(
    gate: &Gate,
    request: Request<Incoming>,
    target: &Target,
    upstream: Option<&Upstream>,
    session: &Session,
    masks: &Masks,
) -> (Request<Sent>, Option<HeaderValue>) {
    let (mut parts, body) = request.into_parts();
    // Where methods are read, HTTP is not left.
    let upgrade = headers::strip(&mut parts.headers).filter(|_| !gate.is_read_only());
    if let Some(protocol) = upgrade.clone() {
        headers::ask_upgrade(&mut parts.headers, protocol);
    }
    masks.put_in(&mut parts.headers);
    let authority = if target.port == 80 {
        let text = target.to_string();
        text.strip_suffix(":80").map(str::to_owned).unwrap_or(text)
    } else {
        target.to_string()
    };
    if let Ok(value) = HeaderValue::from_str(&authority) {
        parts.headers.insert(HOST, value);
    }
    let path = parts.uri.path_and_query().cloned();
    parts.uri = match upstream {
        None => path.map_or_else(Uri::default, Uri::from),
        Some(upstream) => {
            if let Some(value) = upstream.authorization() {
                parts.headers.insert(PROXY_AUTHORIZATION, value);
            }
            absolute(&authority, path).unwrap_or_default()
        }
    };
    parts.version = Version::HTTP_11;
    let body = Counted::new(body, session.clone(), Way::ToHost);
    (Request::from_parts(parts, Either::Left(body)), upgrade)
}

fn absolute(authority: &str, path: Option<PathAndQuery>) -> Option<Uri> {
    let mut parts = hyper::http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(authority.parse::<Authority>().ok()?);
    parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    Uri::from_parts(parts).ok()
}

/// After 101 the connection is no longer HTTP: a WebSocket, for instance.
fn switch(
    gate: &Gate,
    upgrade: Option<HeaderValue>,
    client_side: hyper::upgrade::OnUpgrade,
    mut response: Response<Incoming>,
    session: Session,
    permit: &Permit,
    masks: &Masks,
) -> Response<Reply> {
    let server_side = hyper::upgrade::on(&mut response);
    let terms = Terms::of(gate);
    let permit = permit.clone();
    tokio::spawn(async move {
        let server = server_side.await.ok().and_then(|upgraded| {
            let parts = upgraded.downcast::<TokioIo<Rewind>>().ok()?;
            let stream: TcpStream = parts.io.into_inner().stream;
            Some(Server {
                stream,
                early: parts.read_buf,
            })
        });
        if let Some(server) = server
            && let Some(client) = client_of(client_side.await)
        {
            tunnel::carry(&terms, &session, client, server).await;
        }
        drop(permit);
    });
    let (mut parts, _) = response.into_parts();
    let stated = headers::strip(&mut parts.headers);
    masks.clean(&mut parts);
    if let Some(protocol) = stated.or(upgrade) {
        headers::ask_upgrade(&mut parts.headers, protocol);
    }
    Response::from_parts(parts, Either::Right(Full::default()))
}
