//! What a tunnel carries, by its first bytes: TLS names its server, plain HTTP names its host, and
//! both must be the name that was asked for.
//!
//! Servers read more kindly than standards allow: `OpenSSL` takes an alert or an `SSLv2` message before
//! the `ClientHello`, HTTP servers take any word as a method and any white space around it, and some a
//! line of the PROXY protocol before it. So what
//! could be TLS or HTTP to any server is TLS or HTTP here, and the strict parsers behind refuse it.

mod first_line;

use std::io;

use bytes::BytesMut;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::client_hello::{self, ClientHello, MAX_HELLO};
use crate::config::ProxyLimits;
use crate::dial::Server;
use crate::tunnel::Client;

pub(crate) use self::first_line::FirstLine;

/// What a client speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// HTTP/1: a request line.
    Http,
    /// HTTP/2 without TLS, whose hosts are in compressed headers.
    Http2,
    /// Something else, or the server spoke first.
    Other,
    /// TLS.
    Tls {
        /// The server that it is for.
        name: Option<String>,
        /// Whether another name may be encrypted in it.
        encrypted: bool,
    },
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
            Ok(Ok(0)) if read.first().is_some_and(|kind| may_be_tls(*kind)) => {
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

/// The record types of TLS: change of cipher, alert, handshake, data, heartbeat.
const RECORDS: std::ops::RangeInclusive<u8> = 20..=24;
/// The first bit of a message of `SSLv2`; its third byte is its type, of which this is the first.
const SSL2: u8 = 0x80;
const SSL2_CLIENT_HELLO: u8 = 1;
/// The greatest major version of a record. `GnuTLS` takes smaller ones as well.
const MAX_MAJOR: u8 = 3;

fn may_be_tls(first: u8) -> bool {
    RECORDS.contains(&first) || first >= SSL2
}

/// Whether this is the beginning of TLS to any server that takes it; none if more bytes are needed.
pub(crate) fn is_tls(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [kind] if RECORDS.contains(kind) => None,
        [kind, major, ..] if RECORDS.contains(kind) => Some(*major <= MAX_MAJOR),
        [SSL2..=u8::MAX, _, kind, ..] => Some(*kind == SSL2_CLIENT_HELLO),
        [] | [SSL2..=u8::MAX, ..] => None,
        _ => Some(false),
    }
}

/// What it is by the bytes that are there; what is not finished is what it began as.
#[cfg(target_os = "linux")]
pub(crate) fn guess(bytes: &[u8]) -> First {
    match (classify(bytes), bytes.first()) {
        (Some(first), _) => first,
        (None, None) => First::Other,
        (None, Some(kind)) if may_be_tls(*kind) => First::Malformed("the ClientHello is cut off"),
        (None, Some(_)) => First::Http,
    }
}

/// None if more bytes are needed.
fn classify(bytes: &[u8]) -> Option<First> {
    if !is_tls(bytes)? {
        return classify_line(bytes);
    }
    if bytes[0] >= SSL2 {
        return Some(First::Malformed("a message of SSLv2 names no server"));
    }
    match client_hello::read(bytes) {
        ClientHello::Complete { name, encrypted } => Some(First::Tls { name, encrypted }),
        ClientHello::Malformed(reason) => Some(First::Malformed(reason)),
        // Each byte may come in a record of its own.
        ClientHello::Incomplete if bytes.len() > 6 * MAX_HELLO => {
            Some(First::Malformed("the ClientHello is too long"))
        }
        ClientHello::Incomplete => None,
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
    "PRI",
    "PROPFIND",
    "PROPPATCH",
    "PROXY",
    "PUT",
    "REPORT",
    "SEARCH",
    "TRACE",
    "UNLOCK",
];

/// How HTTP/2 begins where both sides know that it is spoken (RFC 9113 section 3.4).
const HTTP_2: &[u8] = b"PRI * HTTP/2";

/// Whether this begins with a line that a server could take as a request.
fn classify_line(bytes: &[u8]) -> Option<First> {
    // Empty lines before a request are skipped by servers (RFC 9112 section 2.2).
    let empty = bytes
        .iter()
        .take_while(|byte| matches!(byte, b'\r' | b'\n'))
        .count();
    let line = &bytes[empty..];
    if line.starts_with(HTTP_2) {
        return Some(First::Http2);
    }
    let mut first_line = FirstLine::default();
    first_line.read(bytes);
    match first_line.is_request() {
        Some(true) => return Some(First::Http),
        Some(false) => return Some(First::Other),
        None => {}
    }
    // Without its end a line is held only if nearly all that begins like it is HTTP: clients of
    // other protocols wait for their answer. What is not held and becomes a request is cut off.
    match line.is_empty() || is_held(line) {
        true if bytes.len() > MAX_LINE => Some(First::Http),
        true => None,
        false => Some(First::Other),
    }
}

/// Whether a line that has not ended begins as those of HTTP do.
fn is_held(line: &[u8]) -> bool {
    let is_method = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_');
    let length = line.iter().take_while(|byte| is_method(byte)).count();
    let (method, rest) = line.split_at(length);
    match rest.first() {
        None => METHODS
            .iter()
            .any(|known| known.as_bytes().starts_with(method)),
        Some(b' ' | b'\t') => (1..=MAX_METHOD).contains(&length),
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn malformed(text: &[u8]) -> bool {
        matches!(classify(text), Some(First::Malformed(_)))
    }

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
            ("PRI * HTTP/2.0\r\n\r\nSM", Some(First::Http2)),
            ("PRI * H", None),
            ("PING\r\n", Some(First::Other)),
            ("SSH-2.0-OpenSSH_9.6\r\n", Some(First::Other)),
            ("USER root\r\n", Some(First::Other)),
            ("hello world", Some(First::Other)),
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
        let empty = "\r\n".repeat(MAX_LINE);
        assert_eq!(classify(empty.as_bytes()), Some(First::Http));
    }

    #[test]
    fn what_a_kind_server_takes_as_a_request_is_one() {
        for text in [
            "get / HTTP/1.1\r\n",
            "G3T / HTTP/1.1\r\n",
            "G!T / HTTP/1.1",
            " GET / HTTP/1.1\r\n",
            "\tGET\x0b/\x0cHTTP/1.1\r\n",
            "GET / http/1.1\r\n",
            "GET / HTTP/1.1 \r\n",
            "GET / HTTP/01.1\r\n",
            "GET / HTTP/9.9\r\n",
            "\r\n\n\0get / HTTP/1.1\r\n",
            "VERY-LONG-METHOD-THAT-NOBODY-USES / HTTP/1.1\r\n",
        ] {
            assert_eq!(classify(text.as_bytes()), Some(First::Http), "{text:?}");
        }
    }

    #[test]
    fn what_may_come_before_a_client_hello_is_refused() {
        for kind in [20, 21, 23, 24] {
            assert_eq!(classify(&[kind]), None);
            assert!(malformed(&[kind, 3, 1, 0, 2, 1, 0]), "{kind}");
        }
        for major in [0, 2] {
            assert!(malformed(&[22, major, 1, 0, 4, 1, 0, 0, 0]), "{major}");
        }
        assert_eq!(classify(&[0x80, 0x2e]), None);
        assert!(malformed(&[0x80, 0x2e, 1, 3, 1]));
        assert_eq!(classify(&[0x80, 0, 0, 40]), Some(First::Other));
    }
}
