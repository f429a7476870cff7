//! Clients that misbehave: each is refused with a reason, and the proxy serves the next one.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use crate::{TEST_TIMEOUT, client, config, exchange, host, log_until, started, tunnel, tunnels};

#[test]
fn malformed_requests_are_refused_and_noted() {
    let port = host::silent();
    let mut config = config(&[&format!("a.test:{port}")]);
    // One of them looks as if more would come.
    config.limits.head = Duration::from_secs(2);
    let (proxy, address) = started(config);
    let long = "x".repeat(100_000);
    let many = "A: b\r\n".repeat(200);
    for text in [
        "GET\r\n\r\n".to_owned(),
        "\u{1}\u{2}\u{3}\r\n\r\n".to_owned(),
        "GET http://a.test/ HTTP/9.9\r\n\r\n".to_owned(),
        format!("GET http://a.test/{long} HTTP/1.1\r\n\r\n"),
        format!("GET http://a.test/ HTTP/1.1\r\nX: {long}\r\n\r\n"),
        format!("GET http://a.test/ HTTP/1.1\r\n{many}\r\n"),
        "GET http://a.test/ HTTP/1.1\r\nA b\r\n\r\n".to_owned(),
        "GET http://a.te\0st/ HTTP/1.1\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n".to_owned(),
        "GET https://a.test/ HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
        "GET ftp://a.test/ HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(),
    ] {
        let before = proxy.get_stats().blocked_requests;
        let answer = exchange(address, &text);
        let start = answer.get(..12).unwrap_or_default();
        assert!(
            start.starts_with("HTTP/1.1 4"),
            "{text:.40} -> {answer:.100}"
        );
        log_until(&proxy, |log| {
            log.iter().filter(|entry| !entry.allowed).count() as u64 == before + 1
        });
    }
    drop(tunnel(address, &format!("a.test:{port}")));
}

#[test]
fn a_slow_head_is_given_up() {
    let mut config = config(&[]);
    config.limits.head = Duration::from_millis(500);
    let (_proxy, address) = started(config);
    for start in [&b"GET http://a.test/ HT"[..], b"\x05", b"\x05\x01\x00", b""] {
        let mut stream = client(address);
        stream.write_all(start).unwrap();
        assert!(is_ended(&mut stream), "{start:?}");
    }
}

/// Whether the proxy ends the connection while its client still waits.
fn is_ended(stream: &mut impl Read) -> bool {
    let ended = stream.read_to_end(&mut Vec::new());
    ended.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true)
}

#[test]
fn a_hello_that_never_ends_is_given_up() {
    let port = host::silent();
    let place = format!("a.test:{port}");
    let mut config = config(&[&place]);
    config.limits.head = Duration::from_secs(2);
    let (_proxy, address) = started(config);
    let mut inside = tunnel(address, &place);
    inside.get_mut().write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    assert!(is_ended(&mut inside));
}

#[test]
fn as_many_clients_as_the_limit_says() {
    let port = host::echo();
    let mut config = config(&[&format!("a.test:{port}")]);
    config.limits.connections = 2;
    let (_proxy, address) = started(config);
    let place = format!("a.test:{port}");
    let first = tunnel(address, &place);
    let second = tunnel(address, &place);
    // The third one waits until there is room.
    let mut third = client(address);
    write!(third, "CONNECT {place} HTTP/1.1\r\n\r\n").unwrap();
    third
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    assert!(third.read(&mut [0; 1]).is_err());
    drop(first);
    third.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut answer = [0; 12];
    third.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    drop(second);
}

#[test]
fn names_that_are_none_are_refused_and_noted() {
    let (proxy, address) = started(config(&["a.test", "*.a.test"]));
    let endless = [b'a'; 255];
    let names: [&[u8]; 11] = [
        b"a\0.a.test",
        b"a\r\nb.a.test",
        b"me@a.test",
        b"a%2ea.test",
        b"a..a.test",
        b"",
        b"a.test ",
        b"-a.a.test/",
        b"\xff\xfe.a.test",
        b"[::1",
        &endless,
    ];
    for name in names {
        let before = proxy.get_stats().blocked_requests;
        let (_stream, code) = tunnels::socks(address, name, 443);
        assert_eq!(code, 2, "{}", name.escape_ascii());
        let log = log_until(&proxy, |log| log.len() as u64 > before);
        let entry = log.last().unwrap();
        assert!(!entry.allowed && !entry.reason.is_empty(), "{entry:?}");
        assert!(!entry.host.contains(['\0', '\r', '\n']), "{entry:?}");
    }
    for text in [
        "me@a.test:443",
        "a%00.a.test:443",
        "a.test:443@b.test:443",
        "a.test:0",
        "a.test:99999",
        ":443",
    ] {
        let answer = exchange(
            address,
            &format!("CONNECT {text} HTTP/1.1\r\nConnection: close\r\n\r\n"),
        );
        assert!(answer.starts_with("HTTP/1.1 4"), "{text} -> {answer:.100}");
    }
    assert_eq!(proxy.get_stats().allowed_requests, 0);
}
