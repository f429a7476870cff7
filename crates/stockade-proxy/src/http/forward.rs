//! A request on its way to the host, over a connection that is kept for the next one.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, PROXY_AUTHORIZATION, TRANSFER_ENCODING,
};
use hyper::http::uri::{Authority, PathAndQuery, Scheme, Uri};
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;

use super::body::{Counted, Way};
use super::mask::Masks;
use super::reply::Reply;
use super::switch::{Switch, switched};
use crate::dial::Server;
use crate::error::Unreachable;
use crate::gate::{Gate, Opening, Refusal, Target};
use crate::headers;
use crate::idle_timeout::idle_timeout;
use crate::ledger::{Protocol, Session};
use crate::server::Permit;
use crate::tls::Inspector;
use crate::tunnel::Terms;
use crate::upstream::Upstream;
use crate::wire::Wire;

type Sent = Either<Counted, Full<Bytes>>;

/// The connection to the host that was asked for last. Requests of one client come one after the
/// other, so there is never a need for two.
#[derive(Default)]
pub(crate) struct Link {
    kept: Mutex<Option<Kept>>,
    /// Whether the host itself is at the other end, by a tunnel if another proxy is in between:
    /// then nothing on it is for that proxy, least of all its password.
    tunnelled: bool,
    /// A connection that nothing was sent on yet.
    spare: Mutex<Option<Server>>,
    /// Who speaks TLS with the host, if that is what the client does.
    inspector: Option<Arc<Inspector>>,
}

struct Kept {
    target: Target,
    sender: SendRequest<Sent>,
}

impl Link {
    /// Over a connection that is there already; in TLS, if somebody is to speak it.
    pub(crate) fn over(server: Server, inspector: Option<Arc<Inspector>>) -> Self {
        Self {
            kept: Mutex::default(),
            tunnelled: true,
            spare: Mutex::new(Some(server)),
            inspector,
        }
    }

    /// How requests are called in the log.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.inspector {
            None => Protocol::Http,
            Some(_) => Protocol::Https,
        }
    }

    /// The scheme of requests on it, and the port that goes without saying.
    pub(crate) fn scheme(&self) -> (&'static str, u16) {
        match self.inspector {
            None => ("http", 80),
            Some(_) => ("https", 443),
        }
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
        let upstream = upstream.filter(|_| !self.tunnelled);
        let (mut kept, mut reused) = self.connection(gate, &opening, upstream).await?;
        let session = gate.begin(&opening);
        let mut masks = Masks::of(gate, &opening.target);
        let (mut message, upgrade) = self.rewrite(
            gate,
            request,
            &opening.target,
            upstream,
            &session,
            &mut masks,
        );
        let mut response = loop {
            let answer = kept.sender.try_send_request(message);
            let after = gate.limits.answer;
            let to = || opening.target.to_string();
            match idle_timeout(answer, after, || session.progress()).await {
                Ok(Ok(response)) => break response,
                Ok(Err(mut error)) => match error.take_message() {
                    // The host closed a connection that was kept; nothing of this was sent.
                    Some(unsent) if reused => {
                        message = unsent;
                        let new = self.fresh(gate, &opening, upstream, None).await?;
                        (kept, reused) = (new, false);
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
            let Some(protocol) = upgrade else {
                let to = opening.target.to_string();
                return Err(gate.fail(&opening, Unreachable::Unasked { to }));
            };
            let switch = Switch {
                terms: Terms::of(gate),
                session,
                permit: permit.clone(),
                secured: self.inspector.is_some(),
                scrubber: masks.stream_scrubber(),
            };
            switch.begin(client_side, &mut response);
            return Ok(switched(response, protocol, &masks));
        }
        if !gate.is_read_only() {
            self.keep(kept);
        }
        let (mut parts, body) = response.into_parts();
        headers::strip(&mut parts.headers);
        masks.clean(&mut parts);
        // The client's own version decides how it is framed.
        parts.version = Version::HTTP_11;
        let body = Counted::new(body, session, Way::ToClient).scrubbed(masks.scrubber());
        Ok(Response::from_parts(parts, Either::Left(body)))
    }

    /// The kept connection, if it is to this host and still good, or a new one.
    async fn connection(
        &self,
        gate: &Gate,
        opening: &Opening,
        upstream: Option<&Upstream>,
    ) -> Result<(Kept, bool), Refusal> {
        let kept = take(&self.kept);
        if let Some(mut kept) = kept
            && kept.target == opening.target
            && kept.sender.ready().await.is_ok()
        {
            return Ok((kept, true));
        }
        let spare = take(&self.spare);
        let reused = spare.is_some();
        let kept = self.fresh(gate, opening, upstream, spare).await?;
        Ok((kept, reused))
    }

    fn keep(&self, kept: Kept) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    /// A connection that no request was sent on; `spare`, if there is one.
    async fn fresh(
        &self,
        gate: &Gate,
        opening: &Opening,
        upstream: Option<&Upstream>,
        spare: Option<Server>,
    ) -> Result<Kept, Refusal> {
        let fail = |error| gate.fail(opening, error);
        let limit = gate.limits.connect;
        let server = match (spare, upstream) {
            (Some(spare), _) => spare,
            // A plain request goes to another proxy as it is; CONNECT is often for port 443 alone
            // there.
            (None, Some(upstream)) => upstream.dial(limit).await.map(Server::new).map_err(fail)?,
            (None, None) => gate.connect(opening).await?,
        };
        let wire = match &self.inspector {
            None => Wire::from(server),
            Some(inspector) => {
                let secured = inspector.connect(&opening.target, server.into(), limit);
                Wire::from(secured.await.map_err(fail)?)
            }
        };
        let sender = handshake(wire).await.map_err(|error| fail(error.into()))?;
        Ok(Kept {
            target: opening.target.clone(),
            sender,
        })
    }

    /// The request as the next hop gets it, and the upgrade that it asks for.
    fn rewrite(
        &self,
        gate: &Gate,
        request: Request<Incoming>,
        target: &Target,
        upstream: Option<&Upstream>,
        session: &Session,
        masks: &mut Masks,
    ) -> (Request<Sent>, Option<HeaderValue>) {
        let (mut parts, body) = request.into_parts();
        // Where methods are read, HTTP is not left.
        let upgrade = headers::strip(&mut parts.headers).filter(|_| !gate.is_read_only());
        let upgrade = upgrade.and_then(|offered| {
            // What it leads to is not read: a host named there would not be compared.
            if gate.egress.get().rules.danger_hidden_names {
                Some(offered)
            } else {
                headers::without_names(&offered)
            }
        });
        if let Some(protocol) = upgrade.clone() {
            headers::ask_upgrade(&mut parts.headers, protocol);
        }
        if gate.is_read_only() {
            // One request for each connection: nothing can be behind it that the host would read.
            parts.headers.remove(CONTENT_LENGTH);
            parts
                .headers
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if body.size_hint().exact().is_none() {
            // Unasked, hyper sends no body with GET and HEAD whose length it does not know.
            parts
                .headers
                .insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        masks.put_in(&mut parts.headers);
        let mut authority = target.to_string();
        let (_, own_port) = self.scheme();
        if target.port == own_port {
            // All but the port, which goes without saying.
            authority.truncate(authority.rfind(':').unwrap_or(authority.len()));
        }
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
}

async fn handshake(wire: Wire) -> hyper::Result<SendRequest<Sent>> {
    let (sender, connection) = http1::Builder::new()
        .preserve_header_case(true)
        .handshake(TokioIo::new(wire))
        .await?;
    tokio::spawn(connection.with_upgrades());
    Ok(sender)
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn absolute(authority: &str, path: Option<PathAndQuery>) -> Option<Uri> {
    let mut parts = hyper::http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(authority.parse::<Authority>().ok()?);
    parts.path_and_query = Some(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    Uri::from_parts(parts).ok()
}
