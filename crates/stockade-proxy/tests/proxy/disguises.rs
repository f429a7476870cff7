//! Clients that hide which host they are for, or which method they use.
//!
//! Each attack is first made on the host itself, where it must arrive.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use stockade_policy::host::Methods;
use stockade_proxy::ProxyConfig;

use crate::tunnels::hello;
use crate::{client, config, exchange, host, log_until, proxy_to, started, tunnel};

/// A host that gives out everything that it gets on a connection, once that has ended.
fn recorder() -> (u16, Receiver<Vec<u8>>) {
    let (sender, seen) = channel();
    let port = host::each(move |mut stream| {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    (port, seen)
}

/// Sends pieces, each after the other has arrived, and ends.
fn send(stream: &mut TcpStream, pieces: &[&[u8]]) {
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        // It may be cut off already.
        let _ = stream.write_all(piece);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

/// What arrives at the host without and with the proxy.
fn arrives(config: impl Fn(u16) -> ProxyConfig, pieces: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
    let (port, seen) = recorder();
    let mut bare = TcpStream::connect(("127.0.0.1", port)).unwrap();
    send(&mut bare, pieces);
    let control = seen.recv().unwrap();
    let (_proxy, address) = started(config(port));
    let mut inside = tunnel(address, &format!("a.test:{port}"));
    send(inside.get_mut(), pieces);
    drop(inside);
    (control, seen.recv().unwrap())
}

fn listed(port: u16) -> ProxyConfig {
    config(&[&format!("a.test:{port}")])
}

#[test]
fn nothing_before_a_client_hello_hides_its_name() {
    let evil = hello("evil.test");
    let hidden: &[&[u8]] = &[
        &[21, 3, 1, 0, 2, 1, 0],
        &[21, 3, 3, 0, 2, 1, 90],
        &[20, 3, 3, 0, 1, 1],
        &[23, 3, 3, 0, 1, 0],
        &[24, 3, 3, 0, 1, 0],
        &[22, 3, 1, 0, 0],
        &[22, 3, 1, 0, 4, 0, 0, 0, 0],
        &[22, 2, 0, 0, 4, 0, 0, 0, 0],
        &[0x80, 0x03, 1, 3, 1],
    ];
    for first in hidden {
        for pieces in [
            vec![[first, &evil[..]].concat()],
            vec![first.to_vec(), evil.clone()],
        ] {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let (control, got) = arrives(listed, &pieces);
            assert_eq!(control, [first, &evil[..]].concat());
            assert_eq!(got, b"", "{first:?}");
        }
    }
}

/// A `ClientHello` with one more extension.
fn hello_with(name: &str, extension: [u8; 2]) -> Vec<u8> {
    let mut bytes = hello(name);
    bytes.extend(extension);
    bytes.extend([0, 1, 0]);
    // Of the record, the message (three bytes) and the extensions, which begin behind 50 bytes.
    for at in [3, 7, 50] {
        let length = u16::from_be_bytes([bytes[at], bytes[at + 1]]) + 5;
        bytes[at..at + 2].copy_from_slice(&length.to_be_bytes());
    }
    bytes
}

#[test]
fn names_that_are_hidden_pass_only_if_the_user_says_so() {
    let danger = |port| ProxyConfig {
        danger_hidden_names: true,
        ..listed(port)
    };
    let two = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    for bytes in [
        hello(""),
        hello_with("a.test", [0xfe, 0x0d]),
        hello_with("a.test", [0xff, 0xce]),
        two,
    ] {
        assert_eq!(arrives(listed, &[&bytes]).1, b"", "{bytes:?}");
        assert_eq!(arrives(danger, &[&bytes]).1, bytes);
    }
    // Others are not touched, and another name is refused all the same.
    let other = hello_with("a.test", [0xfe, 0x0e]);
    assert_eq!(arrives(listed, &[&other]).1, other);
    assert_eq!(arrives(danger, &[&hello("evil.test")]).1, b"");
    let (port, _seen) = recorder();
    let (proxy, address) = proxy_to(port);
    let mut inside = tunnel(address, &format!("a.test:{port}"));
    send(inside.get_mut(), &[&hello("")]);
    let log = log_until(&proxy, |log| log.iter().any(|entry| !entry.allowed));
    let denied = log.iter().find(|entry| !entry.allowed).unwrap();
    assert_eq!(denied.grant.as_deref(), Some("--danger-hidden-names"));
}

#[test]
fn no_spelling_of_a_request_skips_its_host() {
    let requests = [
        "get / HTTP/1.1",
        "G3T / HTTP/1.1",
        "M-SEARCH* / HTTP/1.1",
        "VERY-LONG-METHOD-THAT-NOBODY-USES / HTTP/1.1",
        " GET / HTTP/1.1",
        "GET\x0b/ HTTP/1.1",
        "GET / http/1.1",
        "GET / HTTP/1.10",
        "\r\n\0 get / HTTP/1.1",
    ];
    for line in requests {
        let text = format!("{line}\r\nHost: evil.test\r\n\r\n");
        for cut in [text.len(), 1, 2, 3, 4, line.len() - 3, line.len()] {
            let (first, rest) = text.as_bytes().split_at(cut);
            let (control, got) = arrives(listed, &[first, rest]);
            assert_eq!(control, text.as_bytes());
            let got = String::from_utf8_lossy(&got).into_owned();
            assert!(!got.contains("evil"), "{line:?} at {cut}: {got:?}");
        }
    }
    // A host that is the right one is served, whatever the method.
    let (port, heads) = host::http();
    let (_proxy, address) = proxy_to(port);
    let mut inside = tunnel(address, &format!("a.test:{port}"));
    write!(
        inside.get_mut(),
        "g3t / HTTP/1.1\r\nHost: a.test:{port}\r\n\r\n"
    )
    .unwrap();
    assert_eq!(heads.recv().unwrap()[0], "g3t / HTTP/1.1");
}

#[test]
fn what_is_no_request_passes_as_it_comes() {
    for pieces in [
        &[&b"hello"[..], b" world", b"\nGET / HTTP/1.1\n"][..],
        &[b"\0\0\0\x08\x04\xd2\x16\x2f"],
        &[b"\x80\0\0\x28rpc"],
        &[b"p", b"ing\n"],
    ] {
        let (control, got) = arrives(listed, pieces);
        assert_eq!(control, got);
    }
}

/// A host that expects no body after GET, and reads it as the next request.
fn careless() -> (u16, Receiver<String>) {
    let (sender, seen) = channel();
    let port = host::each(move |stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        loop {
            let head = crate::read_head(&mut reader);
            if head.is_empty() {
                return;
            }
            let _ = sender.send(head.join("\n"));
            if writer
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .is_err()
            {
                return;
            }
        }
    });
    (port, seen)
}

fn read_only(port: u16) -> ProxyConfig {
    ProxyConfig {
        methods: Methods::ReadOnly,
        ..listed(port)
    }
}

#[test]
fn no_method_hides_in_the_body_of_another() {
    let smuggled = "DELETE /all HTTP/1.1\r\nHost: a.test\r\n\r\n";
    for (method, framing, body) in [
        (
            "GET",
            format!("Content-Length: {}", smuggled.len()),
            smuggled.to_owned(),
        ),
        (
            "HEAD",
            "Transfer-Encoding: chunked".to_owned(),
            format!("{:x}\r\n{smuggled}\r\n0\r\n\r\n", smuggled.len()),
        ),
        (
            "OPTIONS",
            format!("Content-Length: {}", smuggled.len()),
            smuggled.to_owned(),
        ),
    ] {
        let ask = |address: SocketAddr, target: &str, port: u16| {
            exchange(
                address,
                &format!(
                    "{method} {target} HTTP/1.1\r\nHost: a.test:{port}\r\n{framing}\r\n\
                     Connection: close\r\n\r\n{body}"
                ),
            )
        };
        // Without the proxy the host is fooled.
        let (port, seen) = careless();
        let mut bare = client(SocketAddr::from(([127, 0, 0, 1], port)));
        write!(bare, "{method} / HTTP/1.1\r\n{framing}\r\n\r\n{body}").unwrap();
        assert!(seen.recv().unwrap().starts_with(method));
        assert!(seen.recv().unwrap().contains("DELETE"));
        drop(bare);
        let (port, seen) = careless();
        let (proxy, address) = started(read_only(port));
        let answer = ask(address, &format!("http://a.test:{port}/"), port);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        drop(proxy);
        assert!(seen.try_recv().is_err());
    }
}

#[test]
fn each_request_has_a_connection_of_its_own_where_methods_are_limited() {
    let (port, heads) = host::http();
    let (_proxy, address) = started(read_only(port));
    let place = format!("a.test:{port}");
    let mut stream = client(address);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..3 {
        write!(
            stream,
            "GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n\r\n"
        )
        .unwrap();
        assert!(crate::read_head(&mut reader)[0].contains("200"));
        let mut body = vec![0; "request 1, 0 bytes".len()];
        reader.read_exact(&mut body).unwrap();
        assert_eq!(body, b"request 1, 0 bytes");
        let head = heads.recv().unwrap().join("\n").to_lowercase();
        assert!(head.contains("connection: close"), "{head}");
    }
}

#[test]
fn a_body_of_unknown_length_arrives_whatever_the_method() {
    for method in ["GET", "HEAD", "POST", "DELETE"] {
        let (sender, seen) = channel();
        let port = host::each(move |mut stream| {
            let mut got = Vec::new();
            let mut buffer = [0; 4096];
            while !got.ends_with(b"0\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(taken) => got.extend_from_slice(&buffer[..taken]),
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            let _ = sender.send(String::from_utf8(got));
        });
        let (_proxy, address) = proxy_to(port);
        let request = format!(
            "{method} http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\n\
             Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        );
        let answer = exchange(address, &request);
        assert!(answer.starts_with("HTTP/1.1 200"), "{method}: {answer}");
        let got = seen.recv().unwrap().unwrap();
        assert!(got.ends_with("5\r\nhello\r\n0\r\n\r\n"), "{method}: {got}");
    }
}

#[test]
fn thousands_of_long_hosts_take_little_memory() {
    let (port, _heads) = host::http();
    let (proxy, address) = proxy_to(port);
    let mut stream = client(address);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let long = "x".repeat(60_000);
    for number in 0..200 {
        write!(
            stream,
            "GET http://a.test:{port}/ HTTP/1.1\r\nHost: {number}{long}\r\n\r\n"
        )
        .unwrap();
        let head = crate::read_head(&mut reader);
        assert!(head[0].contains("403"), "{head:?}");
        let length: usize = head
            .iter()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
            .unwrap();
        assert!(length < 2000, "{length}");
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
    }
    let kept = format!("{:?} {:?}", proxy.get_log(), proxy.get_stats());
    assert!(kept.len() < 200 * 3000, "{}", kept.len());
}
