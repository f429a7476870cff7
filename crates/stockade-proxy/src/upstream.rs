//! Another proxy through which everything goes: `http://[user:password@]host:port`.
//!
//! The filter still applies: the list is asked before the other proxy is. It resolves the names,
//! so what a name resolves to can't be checked here; the log says that it went through it.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use stockade_policy::host::{Host, HostPattern};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::base64;
use crate::dial::Server;
use crate::error::Unreachable;
use crate::gate::Target;

/// Another proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Upstream {
    host: String,
    port: u16,
    /// `Basic …`, ready to be sent.
    authorization: Option<String>,
    direct: Vec<HostPattern>,
    all_direct: bool,
}

/// Why a text is no proxy's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// Another scheme than `http`.
    #[error("the upstream proxy has a scheme other than `http`")]
    Scheme,
    /// No host, or one that is none. It is not named: what is wrong with it may be that a password
    /// stands in its place.
    #[error("the upstream proxy has no usable host and port")]
    Authority,
}

/// What proxies listen on when nobody says.
const DEFAULT_PORT: u16 = 80;

impl Upstream {
    /// Reads `http://[user:password@]host[:port]`; the scheme may be left out.
    ///
    /// # Errors
    /// If it is something else.
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err(UpstreamError::Scheme),
            None => text,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = split_port(place).ok_or(UpstreamError::Authority)?;
        Host::parse(host).map_err(|_| UpstreamError::Authority)?;
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.unwrap_or(DEFAULT_PORT),
            authorization: user.map(|user| format!("Basic {}", base64::encode(&unescape(user)))),
            direct: Vec::new(),
            all_direct: false,
        })
    }

    /// The one that this program's own environment names, if it names one: `HTTPS_PROXY`,
    /// `HTTP_PROXY` or `ALL_PROXY` in either spelling, without what `NO_PROXY` lists.
    ///
    /// # Errors
    /// If what is named is no HTTP proxy.
    pub fn from_environment() -> Result<Option<Self>, UpstreamError> {
        let read = |name: &str| {
            let value = std::env::var(name.to_lowercase()).or_else(|_| std::env::var(name));
            value.ok().filter(|value| !value.is_empty())
        };
        let named = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"]
            .into_iter()
            .find_map(read);
        let upstream = named.map(|url| Self::parse(&url)).transpose()?;
        let no_proxy = read("NO_PROXY").unwrap_or_default();
        Ok(upstream.map(|upstream| upstream.without(&no_proxy)))
    }

    /// Hosts that are reached without it: the words of `NO_PROXY`, comma-separated names (with
    /// everything below them), addresses and CIDR blocks.
    #[must_use]
    pub fn without(mut self, no_proxy: &str) -> Self {
        for word in no_proxy.split(',').map(str::trim).filter(|w| !w.is_empty()) {
            if word == "*" {
                self.all_direct = true;
                continue;
            }
            let bare = word.trim_start_matches("*.").trim_start_matches('.');
            let below = format!("*.{bare}");
            let pattern = HostPattern::danger_parse(&below).or_else(|_| HostPattern::parse(bare));
            // What nobody can read names no host.
            self.direct.extend(pattern);
        }
        self
    }

    pub(crate) fn serves(&self, target: &Target) -> bool {
        let direct = |pattern: &HostPattern| {
            pattern.hosts().contains(&target.host)
                && pattern.port().is_none_or(|port| port == target.port)
        };
        !self.all_direct && !self.direct.iter().any(direct)
    }

    /// A connection to the proxy itself. The user named it, so its address needs no grant.
    pub(crate) async fn dial(&self, limit: Duration) -> Result<TcpStream, Unreachable> {
        let to = self.to_string();
        let connect = TcpStream::connect((self.host.as_str(), self.port));
        let stream = timeout(limit, connect)
            .await
            .map_err(|_| Unreachable::ConnectTimeout {
                to: to.clone(),
                after: limit,
            })?
            .map_err(|source| Unreachable::Connect { to, source })?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    /// A tunnel through it.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        limit: Duration,
    ) -> Result<Server, Unreachable> {
        let stream = self.dial(limit).await?;
        let tunnel = self.tunnel(stream, target);
        timeout(limit, tunnel)
            .await
            .map_err(|_| Unreachable::ConnectTimeout {
                to: format!("{target} through {self}"),
                after: limit,
            })?
    }

    async fn tunnel(&self, stream: TcpStream, target: &Target) -> Result<Server, Unreachable> {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::builder()
            .method(Method::CONNECT)
            .uri(target.to_string())
            .header(HOST, target.to_string())
            .body(Empty::<Bytes>::new())
            .map_err(|error| Unreachable::Connect {
                to: target.to_string(),
                source: std::io::Error::other(error),
            })?;
        if let Some(value) = self.authorization() {
            request.headers_mut().insert(PROXY_AUTHORIZATION, value);
        }
        let response = sender.send_request(request).await?;
        if !response.status().is_success() {
            return Err(Unreachable::Upstream(response.status()));
        }
        let upgraded = hyper::upgrade::on(response).await?;
        match upgraded.downcast::<TokioIo<TcpStream>>() {
            Ok(parts) => Ok(Server {
                stream: parts.io.into_inner(),
                early: parts.read_buf,
            }),
            Err(_) => Err(Unreachable::Connect {
                to: self.to_string(),
                source: std::io::Error::other("the connection was lost"),
            }),
        }
    }

    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(self.authorization.as_deref()?).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {}:{}", self.host, self.port)
    }
}

/// Without the password.
impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("direct", &self.direct)
            .finish_non_exhaustive()
    }
}

/// `host`, `host:port`, `[v6]` or `[v6]:port`; none if the port is no number.
pub(crate) fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let after_bracket = text.rfind(']').map_or(0, |at| at + 1);
    match text[after_bracket..].rfind(':') {
        None => Some((text, None)),
        // A bare IPv6 address has colons of its own.
        Some(_) if after_bracket == 0 && text.parse::<IpAddr>().is_ok() => Some((text, None)),
        Some(at) => {
            let (host, port) = text.split_at(after_bracket + at);
            let digits = &port[1..];
            let number = digits.bytes().all(|byte| byte.is_ascii_digit());
            let port = number.then(|| digits.parse().ok()).flatten()?;
            Some((host, Some(port)))
        }
    }
}

/// `%40` and its like, in a user's name or password.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = text
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(escaped.unwrap_or(bytes[at]));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_proxies_are_read() {
        let upstream = Upstream::parse("http://me:p%40ss@proxy.test:3128/").unwrap();
        assert_eq!(
            (upstream.host.as_str(), upstream.port),
            ("proxy.test", 3128)
        );
        // printf me:p@ss | base64
        assert_eq!(
            upstream.authorization.as_deref(),
            Some("Basic bWU6cEBzcw==")
        );
        assert!(!format!("{upstream:?} {upstream}").contains("bWU6"));
        assert_eq!(Upstream::parse("[::1]:8080").unwrap().port, 8080);
        assert_eq!(Upstream::parse("http://p.test").unwrap().port, 80);
        for text in [
            "https://p.test:1",
            "socks5://p.test:1",
            "",
            "p.test:x",
            "a b:1",
            "http://me:hunter2/x@p.test:1",
            "http://me:hunter2@p.test:x",
            "me:hunter2:p.test",
        ] {
            let error = Upstream::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn some_hosts_go_around_it() {
        let upstream = Upstream::parse("p.test:1")
            .unwrap()
            .without("localhost, .corp.test,10.0.0.0/8,::1,direct.test:8080");
        let serves = |host: &str, port| upstream.serves(&Target::parse(host, port).unwrap());
        assert!(serves("a.test", 443));
        assert!(!serves("x.corp.test", 443));
        assert!(!serves("corp.test", 80));
        assert!(!serves("10.1.2.3", 80));
        assert!(!serves("::1", 80));
        assert!(!serves("localhost", 80));
        assert!(serves("direct.test", 80));
        assert!(!serves("direct.test", 8080));
        assert!(
            !upstream
                .clone()
                .without("*")
                .serves(&Target::parse("a.test", 1).unwrap())
        );
    }
}
