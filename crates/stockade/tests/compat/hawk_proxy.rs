//! Hawk's proxy, against a server on the loopback.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use stockade::compat::Context;
use stockade::compat::hawk::{
    NetworkProxy, ProxyConfig, ProxyLogEntry, ProxyMode, ProxyStats, default_development_config,
};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("cancellation", cancellation),
    ("development", development),
    ("serve", serve),
    ("settings", settings),
];

fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                request.extend(byte);
            }
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nanswered");
        }
    });
    address
}

fn ask(proxy: SocketAddr, host: &str, port: u16) -> String {
    let mut stream = TcpStream::connect(proxy).unwrap();
    let request = format!(
        "GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn config(port: u16) -> ProxyConfig {
    ProxyConfig {
        allowed_domains: vec![format!("api.test:{port}")],
        resolve: vec![("api.test".to_owned(), IpAddr::V4(Ipv4Addr::LOCALHOST))],
        ..ProxyConfig::default()
    }
}

fn serve() {
    let port = server().port();
    let mut proxy = NetworkProxy::new(config(port)).unwrap();
    assert!(proxy.env_vars().is_empty());
    let address = proxy.start(&Context::new()).unwrap();
    assert!(ask(address, "api.test", port).contains("answered"));
    assert!(ask(address, "other.test", port).contains(" 403 "));
    let value = format!("http://{address}");
    assert_eq!(proxy.env_vars()["HTTPS_PROXY"], value);
    let stats: ProxyStats = proxy.get_stats();
    assert_eq!((stats.allowed_requests, stats.blocked_requests), (1, 1));
    assert!(stats.total_bytes > 0 && stats.unique_hosts["api.test"] == 1);
    let log: Vec<ProxyLogEntry> = proxy.get_log();
    let refused = log.iter().find(|entry| !entry.allowed).unwrap();
    assert_eq!(
        (refused.host.as_str(), refused.method.as_str()),
        ("other.test", "GET")
    );
    assert!(!refused.reason.is_empty());
    assert!(refused.timestamp.elapsed().is_ok());
    proxy.stop();
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(proxy.get_stats().allowed_requests, 1);
}

fn cancellation() {
    let mut proxy = NetworkProxy::new(config(1)).unwrap();
    let (context, cancel) = Context::new().with_cancel();
    let address = proxy.start(&context).unwrap();
    assert!(TcpStream::connect(address).is_ok());
    cancel.cancel();
    assert!(TcpStream::connect(address).is_err());
    assert!(proxy.start(&context).is_err());
}

fn settings() {
    let config = ProxyConfig {
        allowed_domains: vec!["*.example.org".to_owned()],
        blocked_domains: vec!["bad.example.org".to_owned(), "10.0.0.0/8".to_owned()],
        mode: ProxyMode::Allowlist,
        log_requests: false,
        ..ProxyConfig::default()
    };
    let mut proxy = NetworkProxy::new(config.clone()).unwrap();
    assert_eq!(proxy.allowed_domains(), ["*.example.org"]);
    assert_eq!(proxy.blocked_domains(), ["bad.example.org", "10.0.0.0/8"]);
    assert!(!proxy.allow_all() && !proxy.block_all());
    assert_eq!(proxy.port(), 0);
    let address = proxy.start(&Context::new()).unwrap();
    assert_eq!(proxy.port(), address.port());
    assert!(proxy.is_allowed("api.example.org"));
    assert!(!proxy.is_allowed("bad.example.org") && !proxy.is_allowed("10.1.2.3"));
    ask(address, "other.test", 80);
    assert_eq!(proxy.get_log(), [], "requests are not logged");
    for (mode, open, closed) in [
        (ProxyMode::Open, true, false),
        (ProxyMode::Closed, false, true),
    ] {
        let proxy = NetworkProxy::new(ProxyConfig {
            mode,
            ..config.clone()
        });
        let proxy = proxy.unwrap();
        assert_eq!((proxy.allow_all(), proxy.block_all()), (open, closed));
        assert_eq!(proxy.is_allowed("other.test"), open);
        assert!(!proxy.is_allowed("bad.example.org"));
    }
    let odd = NetworkProxy::new(ProxyConfig {
        blocked_domains: vec!["10.*".to_owned()],
        ..config
    });
    let refused = odd.unwrap_err().to_string();
    assert!(refused.contains("10.0.0.0/8"), "{refused}");
}

fn development() {
    let config = default_development_config();
    assert_eq!(config.mode, ProxyMode::Allowlist);
    assert!(config.log_requests);
    let proxy = NetworkProxy::new(config).unwrap();
    assert!(!proxy.is_allowed("169.254.169.254") && !proxy.is_allowed("192.168.0.1"));
}
