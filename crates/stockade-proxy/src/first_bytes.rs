//! What a tunnel carries, by its first bytes: TLS names its server, plain HTTP names its host, and
//! both must be the name that was asked for.

use std::io;

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::client_hello::{self, ClientHello, MAX_HELLO};
use crate::config::ProxyLimits;
use crate::dial::Server;
use crate::tunnel::Client;

/// What a client speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// HTTP/1: a request line.
    Http,
    /// Something else, or the server spoke first.
    Other,
    /// TLS to this server.
    Tls(Option<String>),
    /// TLS that contradicts itself.
    Malformed(&'static str),
}

/// A request line may be longer; then it is one without a doubt.
const MAX_LINE: usize = 8 * 1024;
/// Longer than any method in use.
const MAX_METHOD: usize = 24;

/// Reads until it is clear what the client speaks. Nothing is lost: it stays in `client.early`.
pub(crate) async fn look(
    client: &mut Client,
    server: &Server,
    limits: &ProxyLimits,
) -> io::Result<First> {
    if !server.early.is_empty() {
        return Ok(First::Other);
    }
    let mut read = BytesMut::from(&client.early[..]);
    let first = loop {
        if let Some(first) = classify(&read) {
            break first;
        }
        let more = if read.is_empty() {
            tokio::select! {
                biased;
                more = timeout(limits.idle, client.stream.read_buf(&mut read)) => more,
                _ = server.stream.readable() => break First::Other,
            }
        } else {
            timeout(limits.head, client.stream.read_buf(&mut read)).await
        };
        match more {
            Ok(Ok(0)) if read.first() == Some(&HANDSHAKE) => {
                break First::Malformed("the ClientHello ends too early");
            }
            Ok(Ok(0)) => break First::Other,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(error),
            // Half a request is nothing else, whoever sent it.
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    };
    client.early = read.freeze();
    Ok(first)
}

const HANDSHAKE: u8 = 22;

/// What it is by the bytes that are there; what is not finished is what it began as.
#[cfg(target_os = "linux")]
pub(crate) fn guess(bytes: &[u8]) -> First {
    match (classify(bytes), bytes.first()) {
        (Some(first), _) => first,
        (None, None) => First::Other,
        (None, Some(&HANDSHAKE)) => First::Tls(None),
        (None, Some(_)) => First::Http,
    }
}

/// None if more bytes are needed.
fn classify(bytes: &[u8]) -> Option<First> {
    match bytes {
        [] | [HANDSHAKE] => None,
        [HANDSHAKE, 3, ..] => match client_hello::read(bytes) {
            ClientHello::Complete(name) => Some(First::Tls(name)),
            ClientHello::Malformed(reason) => Some(First::Malformed(reason)),
            // Each byte may come in a record of its own.
            ClientHello::Incomplete if bytes.len() > 6 * MAX_HELLO => {
                Some(First::Malformed("the ClientHello is too long"))
            }
            ClientHello::Incomplete => None,
        },
        _ => classify_line(bytes),
    }
}

/// Methods that may come in pieces. Any other must come as a whole word, since the bytes may as well
/// be those of another protocol that waits for its answer.
const METHODS: &[&str] = &[
    "CONNECT",
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LOCK",
    "MKCOL",
    "MOVE",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PUT",
    "REPORT",
    "SEARCH",
    "TRACE",
    "UNLOCK",
];

/// Whether this is `METHOD target HTTP/1.x`.
fn classify_line(bytes: &[u8]) -> Option<First> {
    // Empty lines before a request are skipped by servers (RFC 9112 section 2.2).
    let start = bytes
        .iter()
        .position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let bytes = &bytes[start..];
    let is_method = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    let length = bytes.iter().take_while(|byte| is_method(byte)).count();
    let (method, rest) = bytes.split_at(length);
    match rest.first() {
        None => {
            let begun = METHODS
                .iter()
                .any(|known| known.as_bytes().starts_with(method));
            return if begun { None } else { Some(First::Other) };
        }
        Some(b' ' | b'\t') if (1..=MAX_METHOD).contains(&length) => {}
        Some(_) => return Some(First::Other),
    }
    match bytes.iter().position(|byte| *byte == b'\n') {
        None if bytes.len() > MAX_LINE => Some(First::Http),
        None => None,
        Some(end) => {
            let line = bytes[..end].trim_ascii_end();
            let version = line.len().checked_sub(b"HTTP/1.1".len());
            let is_http = version.is_some_and(|at| line[at..].starts_with(b"HTTP/1."));
            Some(if is_http { First::Http } else { First::Other })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_from_other_talk() {
        for (text, expected) in [
            ("", None),
            ("GE", None),
            ("GET / HTT", None),
            ("GET / HTTP/1.1\r\n", Some(First::Http)),
            ("\r\nGET http://x/ HTTP/1.0\n", Some(First::Http)),
            ("ping", Some(First::Other)),
            ("PING", Some(First::Other)),
            ("PROP", None),
            ("FOO / HTTP/1.1\n", Some(First::Http)),
            ("PRI * HTTP/2.0\r\n\r\nSM", Some(First::Other)),
            ("PING\r\n", Some(First::Other)),
            ("SSH-2.0-OpenSSH_9.6\r\n", Some(First::Other)),
            ("USER root\r\n", Some(First::Other)),
            ("*1\r\n$4\r\nPING\r\n", Some(First::Other)),
            ("\0\0\0\x08\x04R\x16\x2f", Some(First::Other)),
            ("\x16", None),
            ("\x16\x03\x01", None),
            ("\x16\x09", Some(First::Other)),
        ] {
            assert_eq!(classify(text.as_bytes()), expected, "{text:?}");
        }
        let long = format!("GET /{}", "x".repeat(MAX_LINE));
        assert_eq!(classify(long.as_bytes()), Some(First::Http));
    }
}
