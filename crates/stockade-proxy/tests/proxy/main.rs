//! The proxy from outside: real sockets, real hosts on loopback, and clients that misbehave.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

mod bad_input;
mod decisions;
mod disguises;
mod host;
mod http;
mod requests;
mod tunnels;
mod upstream;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use stockade_proxy::{NetworkProxy, ProxyConfig, ProxyLimits, ProxyLogEntry};

/// Longer than anything here takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(100);

/// A proxy that allows `a.test` on the port of `host`, and has it at loopback.
fn proxy_to(port: u16) -> (NetworkProxy, SocketAddr) {
    started(config(&[&format!("a.test:{port}")]))
}

fn config(allow: &[&str]) -> ProxyConfig {
    ProxyConfig {
        allowed_domains: allow.iter().map(|&text| text.to_owned()).collect(),
        resolve: vec![
            ("a.test".to_owned(), IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ("x.a.test".to_owned(), IpAddr::V4(Ipv4Addr::LOCALHOST)),
        ],
        limits: ProxyLimits {
            head: TEST_TIMEOUT,
            connect: TEST_TIMEOUT,
            answer: TEST_TIMEOUT,
            ..ProxyLimits::default()
        },
        ..ProxyConfig::default()
    }
}

fn started(config: ProxyConfig) -> (NetworkProxy, SocketAddr) {
    let mut proxy = NetworkProxy::new(config).unwrap();
    let address = proxy.start().unwrap();
    (proxy, address)
}

fn client(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// Sends a text and reads until the other side ends.
fn exchange(address: SocketAddr, text: &str) -> String {
    let mut stream = client(address);
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A reset after the answer is an end, too.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads one head; gives its lines.
fn read_head(stream: &mut impl BufRead) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 || line.trim_end().is_empty() {
            return lines;
        }
        lines.push(line.trim_end().to_owned());
    }
}

/// A tunnel through the proxy.
fn tunnel(address: SocketAddr, to: &str) -> BufReader<TcpStream> {
    let mut stream = client(address);
    write!(stream, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader);
    assert!(head[0].starts_with("HTTP/1.1 200"), "{head:?}");
    reader
}

/// The log, once it satisfies; what is over is noted a moment after the client sees it.
fn log_until(proxy: &NetworkProxy, done: impl Fn(&[ProxyLogEntry]) -> bool) -> Vec<ProxyLogEntry> {
    let started = Instant::now();
    loop {
        let log = proxy.get_log();
        if done(&log) {
            return log;
        }
        assert!(started.elapsed() < TEST_TIMEOUT, "{log:#?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
