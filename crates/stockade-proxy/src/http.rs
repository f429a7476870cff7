//! HTTP/1.1: `CONNECT`, absolute-form, and requests of clients that know of no proxy.
//!
//! Heads are read and written by hyper alone: two programs that disagree about where a message
//! ends are how requests get smuggled past a filter. Every request is judged, also the hundredth
//! on one connection; `Host` must be the host that was asked for.

mod body;
mod forward;
mod mask;
mod methods;
#[cfg(target_os = "linux")]
mod refuse;
mod reply;
mod switch;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use stockade_policy::host::Host;

use self::forward::Link;
#[cfg(target_os = "linux")]
pub(crate) use self::mask::Scrubber;
pub(crate) use self::refuse::refuse;
use self::reply::Reply;
use crate::attribution::ClientAddress;
use crate::dial::Server;
use crate::error::Unreachable;
use crate::gate::{Denial, Gate, Opening, Refusal, Target};
use crate::ledger::{Ask, Protocol};
use crate::rewind::Rewind;
use crate::server::Permit;
use crate::text;
use crate::tunnel::{self, Client};
use crate::upstream::split_port;
use crate::wire::Wire;

/// Heads beyond this are refused with 431.
const MAX_HEAD: usize = 64 * 1024;
const MAX_HEADERS: usize = 128;

/// One client's connection.
struct Front {
    gate: Arc<Gate>,
    /// The host that the client is connected to, if it does not know that this is a proxy.
    known: Option<Target>,
    link: Link,
    permit: Permit,
    client: Option<ClientAddress>,
}

/// Serves a client that knows this is a proxy.
pub(crate) async fn serve(gate: Arc<Gate>, client: Client, permit: Permit) {
    let front = Front {
        client: gate.attribution.address_of(&client.stream),
        gate,
        known: None,
        link: Link::default(),
        permit,
    };
    front.run(client.into()).await;
}

/// Serves a client that believes it talks to `target`, where `server` is its connection.
pub(crate) async fn serve_known(
    gate: Arc<Gate>,
    client: Client,
    target: Target,
    server: Server,
    permit: Permit,
) {
    let front = Front {
        client: gate.attribution.address_of(&client.stream),
        gate,
        known: Some(target),
        link: Link::over(server, None),
        permit,
    };
    front.run(client.into()).await;
}

/// Serves a client that speaks TLS to the host that `opening` is about, where `server` is its
/// connection: TLS is opened, and what is in it goes on in TLS to the host.
pub(crate) async fn serve_opened(
    gate: Arc<Gate>,
    mut opening: Opening,
    client: Client,
    server: Server,
    permit: Permit,
) {
    let Some(inspector) = gate.opens(&opening.target).map(Arc::clone) else {
        return;
    };
    let limit = gate.limits.head;
    let accepted = inspector.accept(&opening.target.host, client.into(), limit);
    let client = match accepted.await {
        Ok(client) => client,
        Err(source) => {
            opening.as_protocol(Protocol::Https);
            gate.fail(&opening, Unreachable::Client { source });
            return;
        }
    };
    let front = Front {
        gate,
        known: Some(opening.target),
        link: Link::over(server, Some(inspector)),
        permit,
        client: opening.ask.client,
    };
    front.run(client.into()).await;
}

impl Front {
    async fn run(self, client: Wire) {
        let front = Arc::new(self);
        let service = {
            let front = Arc::clone(&front);
            service_fn(move |request| {
                let front = Arc::clone(&front);
                async move { Ok::<_, Infallible>(front.answer(request).await) }
            })
        };
        let stream = TokioIo::new(client);
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(front.gate.limits.head)
            .max_buf_size(MAX_HEAD)
            .max_headers(MAX_HEADERS)
            .preserve_header_case(true)
            .half_close(true)
            .serve_connection(stream, service)
            .with_upgrades()
            .await;
        if let Err(error) = served
            && (error.is_parse() || error.is_parse_too_large())
        {
            let ask = Ask::new(front.link.protocol(), "-").by(front.client);
            let (host, port) = match &front.known {
                Some(target) => (target.host.to_string(), target.port),
                None => ("-".to_owned(), 0),
            };
            let reason = format!("malformed request: {error}");
            front.gate.refuse_text(ask, &host, port, reason);
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Reply> {
        let outcome = match (&self.known, request.method()) {
            (None, &Method::CONNECT) => self.connect(request).await,
            _ => self.pass_on(request).await,
        };
        outcome.unwrap_or_else(Refused::response)
    }

    async fn connect(&self, request: Request<Incoming>) -> Result<Response<Reply>, Refused> {
        let ask = Ask::new(Protocol::Connect, "CONNECT").by(self.client);
        let authority = request.uri().authority().map_or("", |a| a.as_str());
        let target = self.target(&ask, authority, None)?;
        self.check_host(&ask, &request, &target)?;
        let opening = self.gate.check(target, ask)?;
        let server = self.gate.connect(&opening).await?;
        let gate = Arc::clone(&self.gate);
        let permit = self.permit.clone();
        tokio::spawn(async move { enter_tunnel(gate, opening, request, server, permit).await });
        Ok(reply::established())
    }

    async fn pass_on(&self, request: Request<Incoming>) -> Result<Response<Reply>, Refused> {
        let ask = Ask::new(self.link.protocol(), request.method().as_str()).by(self.client);
        let (own_scheme, own_port) = self.link.scheme();
        let uri = request.uri();
        let target = match (&self.known, uri.scheme_str()) {
            (Some(target), None) if *request.method() != Method::CONNECT => target.clone(),
            (known, Some(scheme)) => {
                let authority = uri.authority().map_or("", |a| a.as_str());
                if scheme != own_scheme {
                    let reason = format!("`{}` is asked for with CONNECT", text::shown(scheme));
                    return Err(self.bad_request(ask, authority, reason));
                }
                let target = self.target(&ask, authority, Some(own_port))?;
                if known.as_ref().is_some_and(|known| *known != target) {
                    let reason = "the request is for another host than the connection".to_owned();
                    return Err(self.mismatch(ask, &target, reason));
                }
                target
            }
            (_, None) => {
                let reason = "this is a proxy: the request names no host".to_owned();
                return Err(self.bad_request(ask, "-", reason));
            }
        };
        self.check_host(&ask, &request, &target)?;
        let opening = self.gate.check(target, ask)?;
        let decision = methods::decide(&self.gate.egress.get().rules, &request);
        if !decision.is_allowed() {
            let denial = Denial::new(&opening.target, decision);
            return Err(self.gate.deny(opening.ask, denial).into());
        }
        self.link
            .forward(&self.gate, opening, request, &self.permit)
            .await
            .map_err(Refused::from)
    }

    /// Reads `host[:port]`.
    fn target(&self, ask: &Ask, text: &str, default: Option<u16>) -> Result<Target, Refused> {
        let (host, port) = match split_port(text) {
            Some((host, port)) => (host, port.or(default)),
            None => (text, None),
        };
        let Some(port) = port.filter(|port| *port != 0) else {
            return Err(self.bad_request(ask.clone(), text, "there is no port".to_owned()));
        };
        Target::parse(host, port)
            .map_err(|error| self.bad_request(ask.clone(), text, error.to_string()))
    }

    /// `Host`, if it is there, must name the same host once; a port in it must be the same.
    fn check_host(
        &self,
        ask: &Ask,
        request: &Request<Incoming>,
        target: &Target,
    ) -> Result<(), Refused> {
        let mut stated = request.headers().get_all(HOST).iter();
        let (first, more) = (stated.next(), stated.next());
        let Some(first) = first else {
            return Ok(());
        };
        let agrees = first
            .to_str()
            .ok()
            .and_then(split_port)
            .is_some_and(|(host, port)| {
                Host::parse(host).as_ref() == Ok(&target.host)
                    && port.is_none_or(|port| port == target.port)
            });
        if agrees && more.is_none() {
            return Ok(());
        }
        let text = text::shown(&String::from_utf8_lossy(first.as_bytes()));
        let reason = format!("`Host: {text}` is not the host that was asked for");
        Err(self.mismatch(ask.clone(), target, reason))
    }

    fn mismatch(&self, ask: Ask, target: &Target, reason: String) -> Refused {
        let denial = Denial {
            host: target.host.to_string(),
            port: target.port,
            rule: Some("`Host` must be the host that was asked for".to_owned()),
            reason,
            grant: None,
        };
        Refused::Denied(self.gate.deny(ask, denial))
    }

    fn bad_request(&self, ask: Ask, host: &str, reason: String) -> Refused {
        Refused::Malformed(self.gate.refuse_text(ask, host, 0, reason))
    }
}

/// The client's own connection, once its answer is out.
async fn enter_tunnel(
    gate: Arc<Gate>,
    opening: Opening,
    request: Request<Incoming>,
    server: Server,
    permit: Permit,
) {
    if let Some(client) = client_of(hyper::upgrade::on(request).await) {
        tunnel::run(&gate, opening, client, server, permit).await;
    }
}

/// The stream below an upgraded connection of a client.
fn client_of(upgraded: hyper::Result<hyper::upgrade::Upgraded>) -> Option<Client> {
    let parts = upgraded.ok()?.downcast::<TokioIo<Wire>>().ok()?;
    let Wire::Plain(Rewind { early, stream }) = parts.io.into_inner() else {
        return None;
    };
    // What hyper read last comes after what it was given first.
    let early = if early.is_empty() {
        parts.read_buf
    } else {
        Bytes::from([&parts.read_buf[..], &early[..]].concat())
    };
    Some(Client::new(stream, early))
}

/// Why a request gets no answer of the host.
enum Refused {
    Denied(Denial),
    Malformed(Denial),
    Unreachable(StatusCode, String),
}

impl From<Denial> for Refused {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Denied(denial) => Self::Denied(denial),
            Refusal::Unreachable(error) => Self::Unreachable(error.status(), error.to_string()),
        }
    }
}

impl Refused {
    fn response(self) -> Response<Reply> {
        match self {
            Self::Denied(denial) => reply::text(StatusCode::FORBIDDEN, denial.text()),
            Self::Malformed(denial) => {
                let text = format!("stockade: the request makes no sense: {}\n", denial.reason);
                reply::text(StatusCode::BAD_REQUEST, text)
            }
            Self::Unreachable(status, reason) => {
                reply::text(status, format!("stockade: {reason}\n"))
            }
        }
    }
}
