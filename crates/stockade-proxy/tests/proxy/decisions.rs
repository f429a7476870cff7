//! Which host passes, in which mode, and what the client hears.

use std::net::{IpAddr, SocketAddr};

use stockade_proxy::{NetworkProxy, ProxyConfig, ProxyMode};

use crate::{config, exchange, host, started};

fn status(address: SocketAddr, to: &str) -> String {
    let answer = exchange(
        address,
        &format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n"),
    );
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn lists_wildcards_ports_and_blocks() {
    let port = host::silent();
    let mut config = config(&[&format!("*.a.test:{port}")]);
    config.blocked_domains = vec!["x.a.test".to_owned()];
    let (proxy, address) = started(config);
    assert!(proxy.is_allowed(&format!("y.a.test:{port}")));
    assert!(!proxy.is_allowed("y.a.test"));
    for (to, expected) in [
        (format!("x.a.test:{port}"), "403"),
        (format!("xa.test:{port}"), "403"),
        ("a.test:1".to_owned(), "403"),
        (format!("127.0.0.1:{port}"), "403"),
        (format!("[::ffff:127.0.0.1]:{port}"), "403"),
        (format!("localhost:{port}"), "403"),
        ("a.test".to_owned(), "400"),
        (format!("u@a.test:{port}"), "400"),
        (format!("127.1:{port}"), "400"),
        ("a.test:99999".to_owned(), "400"),
    ] {
        assert_eq!(status(address, &to), expected, "{to}");
    }
}

#[test]
fn a_name_that_leads_to_a_special_address_is_refused() {
    let port = host::silent();
    // `localhost` is in every hosts file.
    let (proxy, address) = started(config(&[&format!("localhost:{port}")]));
    assert_eq!(status(address, &format!("localhost:{port}")), "403");
    let entry = &proxy.get_log()[0];
    assert!(entry.reason.contains("loopback"), "{entry:?}");
    assert!(
        entry
            .grant
            .as_deref()
            .unwrap()
            .starts_with("--resolve localhost=")
    );
}

#[test]
fn an_address_may_be_allowed_by_itself() {
    let port = host::silent();
    let (_proxy, address) = started(config(&[&format!("127.0.0.0/8:{port}")]));
    let to = format!("127.0.0.1:{port}");
    let mut stream = crate::client(address);
    std::io::Write::write_all(
        &mut stream,
        format!("CONNECT {to} HTTP/1.1\r\n\r\n").as_bytes(),
    )
    .unwrap();
    let head = crate::read_head(&mut std::io::BufReader::new(stream));
    assert!(head[0].contains("200"), "{head:?}");
}

#[test]
fn the_modes_differ() {
    let decide = |mode, host: &str| {
        let proxy = NetworkProxy::new(ProxyConfig {
            allowed_domains: vec!["a.test".to_owned()],
            blocked_domains: vec!["b.test".to_owned()],
            mode,
            ..ProxyConfig::default()
        });
        proxy.unwrap().is_allowed(host)
    };
    let hosts = ["a.test", "b.test", "c.test", "10.0.0.1"];
    for (mode, expected) in [
        (ProxyMode::Allowlist, [true, false, false, false]),
        (ProxyMode::Blocklist, [true, false, true, false]),
        (ProxyMode::Closed, [false, false, false, false]),
        (ProxyMode::Open, [true, false, true, true]),
    ] {
        assert_eq!(hosts.map(|host| decide(mode, host)), expected, "{mode}");
    }
}

#[test]
fn wide_patterns_need_to_be_asked_for() {
    for pattern in ["*", "*.com", "0.0.0.0/0"] {
        let config = |danger| ProxyConfig {
            allowed_domains: vec![pattern.to_owned()],
            danger_wide_patterns: danger,
            ..ProxyConfig::default()
        };
        assert!(NetworkProxy::new(config(false)).is_err(), "{pattern}");
        assert!(NetworkProxy::new(config(true)).is_ok(), "{pattern}");
    }
}

#[test]
fn the_variables_name_the_proxy_in_both_spellings() {
    let (mut proxy, address) = started(ProxyConfig::default());
    let env = proxy.env_vars();
    for name in ["HTTP_PROXY", "https_proxy"] {
        assert_eq!(env[name], format!("http://{address}"));
    }
    assert_eq!(env["all_proxy"], format!("socks5h://{address}"));
    assert!(env["no_proxy"].contains("127.0.0.1"));
    assert_eq!(env.len(), 8);
    proxy.stop();
    assert!(proxy.env_vars().is_empty());
    assert!(std::net::TcpStream::connect(address).is_err());
    // It can be started again.
    let address = proxy.start().unwrap();
    assert_eq!(status(address, "b.test:443"), "403");
}

#[test]
fn a_port_that_is_taken_is_an_error() {
    let (_first, address) = started(ProxyConfig::default());
    let mut second = NetworkProxy::new(ProxyConfig {
        listen: address,
        ..ProxyConfig::default()
    })
    .unwrap();
    let error = second.start().unwrap_err();
    assert_eq!(error.to_string(), format!("can't listen on {address}"));
}

#[test]
fn addresses_that_are_pinned_are_tried_in_turn() {
    let port = host::silent();
    let mut config = config(&[&format!("b.test:{port}")]);
    config.resolve = vec![
        ("b.test".to_owned(), "127.0.0.9".parse::<IpAddr>().unwrap()),
        ("b.test".to_owned(), "127.0.0.1".parse::<IpAddr>().unwrap()),
    ];
    let (_proxy, address) = started(config);
    drop(crate::tunnel(address, &format!("b.test:{port}")));
}
