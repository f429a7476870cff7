//! Tunnels: bytes, half-close, back-pressure, TLS that names its server.

use std::io::{BufRead, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

use crate::{client, host, log_until, proxy_to, tunnel};

#[test]
fn many_bytes_come_back_as_they_went() {
    const SIZE: usize = 20 << 20;
    let port = host::echo();
    let (proxy, address) = proxy_to(port);
    let mut inside = tunnel(address, &format!("a.test:{port}"));
    let mut writer = inside.get_ref().try_clone().unwrap();
    let byte = |at: usize| u8::try_from(at % 251).unwrap();
    let sender = thread::spawn(move || {
        let bytes: Vec<u8> = (0..SIZE).map(byte).collect();
        writer.write_all(&bytes).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::with_capacity(SIZE);
    inside.read_to_end(&mut back).unwrap();
    sender.join().unwrap();
    assert_eq!(back.len(), SIZE);
    assert!(
        back.iter()
            .enumerate()
            .all(|(at, found)| *found == byte(at))
    );
    let log = log_until(&proxy, |log| log.first().is_some_and(|entry| !entry.open));
    assert_eq!((log[0].sent, log[0].received), (SIZE as u64, SIZE as u64));
}

#[test]
fn a_client_that_does_not_read_holds_up_the_host_and_not_the_memory() {
    let port = host::each(|mut stream| {
        let chunk = vec![7; 65536];
        while stream.write_all(&chunk).is_ok() {}
    });
    let (proxy, address) = proxy_to(port);
    let inside = tunnel(address, &format!("a.test:{port}"));
    let mut other = tunnel(address, &format!("a.test:{port}"));
    // The other one is served all the time.
    let mut read = vec![0; 8 << 20];
    other.read_exact(&mut read).unwrap();
    let log = log_until(&proxy, |log| log.len() == 2);
    assert!(log[0].received < 64 << 20, "{log:?}");
    drop(inside);
}

#[test]
fn one_side_may_end_before_the_other() {
    let port = host::each(|mut stream| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        write!(stream, "got {} bytes", text.len()).unwrap();
    });
    let (_proxy, address) = proxy_to(port);
    let mut inside = tunnel(address, &format!("a.test:{port}"));
    inside.get_mut().write_all(b"*hello").unwrap();
    inside.get_ref().shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    inside.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "got 6 bytes");
}

#[test]
fn a_server_may_speak_first() {
    let port = host::greeter();
    let (_proxy, address) = proxy_to(port);
    let mut inside = tunnel(address, &format!("a.test:{port}"));
    let mut line = String::new();
    inside.read_line(&mut line).unwrap();
    assert_eq!(line, "220 hello\r\n");
    inside.get_mut().write_all(b"HELO me\r\n").unwrap();
    line.clear();
    inside.read_line(&mut line).unwrap();
    assert_eq!(line, "you said HELO me\r\n");
}

/// A `ClientHello` with this server name.
pub(crate) fn hello(name: &str) -> Vec<u8> {
    let long = |content: &[u8]| {
        let mut bytes = u16::try_from(content.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes
    };
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    let mut extensions = Vec::new();
    if !name.is_empty() {
        let entry = [&[0][..], &long(name.as_bytes())].concat();
        extensions = [&[0, 0][..], &long(&long(&entry))].concat();
    }
    body.extend(long(&extensions));
    let message = [&[1, 0][..], &long(&body)].concat();
    [&[22, 3, 1][..], &long(&message)].concat()
}

#[test]
fn the_name_in_tls_must_be_the_one_that_was_asked_for() {
    let port = host::echo();
    let (proxy, address) = proxy_to(port);
    let place = format!("a.test:{port}");
    let mut inside = tunnel(address, &place);
    let good = hello("A.TEST");
    // Also in small pieces.
    for piece in good.chunks(10) {
        inside.get_mut().write_all(piece).unwrap();
        inside.get_mut().flush().unwrap();
    }
    let mut back = vec![0; good.len()];
    inside.read_exact(&mut back).unwrap();
    assert_eq!(back, good);
    for bad in [
        hello("evil.test"),
        hello(""),
        hello("a.test\0"),
        hello("127.0.0.1"),
    ] {
        let mut inside = tunnel(address, &place);
        inside.get_mut().write_all(&bad).unwrap();
        let mut answer = Vec::new();
        inside.read_to_end(&mut answer).unwrap();
        // A fatal alert and the end.
        assert_eq!(answer[..5], [21, 3, 3, 0, 2], "{answer:?}");
    }
    let stats = proxy.get_stats();
    assert_eq!(stats.blocked_requests, 4);
}

pub(crate) fn socks(address: std::net::SocketAddr, name: &[u8], port: u16) -> (TcpStream, u8) {
    let mut stream = client(address);
    stream.write_all(&[5, 1, 0]).unwrap();
    let mut method = [0; 2];
    stream.read_exact(&mut method).unwrap();
    assert_eq!(method, [5, 0]);
    let mut request = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
    request.extend(name);
    request.extend(port.to_be_bytes());
    stream.write_all(&request).unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).unwrap();
    (stream, reply[1])
}

#[test]
fn socks_takes_names_and_refuses_what_is_not_listed() {
    let port = host::echo();
    let (proxy, address) = proxy_to(port);
    let (mut stream, reply) = socks(address, b"a.test", port);
    assert_eq!(reply, 0);
    stream.write_all(b"ping").unwrap();
    let mut back = [0; 4];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"ping");
    for bad in [
        &b"b.test"[..],
        b"a.test\0.b.test",
        b"127.0.0.1",
        b"x@a.test",
        b"\xff\xfe",
        b"",
    ] {
        assert_eq!(socks(address, bad, port).1, 2, "{bad:?}");
    }
    assert_eq!(proxy.get_stats().blocked_requests, 6);
}
