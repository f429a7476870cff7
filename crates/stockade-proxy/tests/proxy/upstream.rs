//! Another proxy in between: the filter still applies, and everything else goes through it.

use std::io::{BufReader, Read, Write};
use std::sync::mpsc::channel;

use stockade_proxy::{ProxyConfig, Upstream};

use crate::{config, exchange, host, read_head, started, tunnel};

#[test]
fn what_is_allowed_goes_through_the_other_proxy() {
    let (port, heads) = host::http();
    let place = format!("a.test:{port}");
    let (parent, parent_address) = started(config(&[&place]));
    let (child, address) = started(ProxyConfig {
        allowed_domains: vec![place.clone(), format!("other.test:{port}")],
        upstream: Some(Upstream::parse(&format!("http://me:pw@{parent_address}")).unwrap()),
        ..ProxyConfig::default()
    });
    let mut inside = tunnel(address, &place);
    inside.get_mut().write_all(b"\0ping").unwrap();
    let answer = exchange(
        address,
        &format!("GET http://{place}/x HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n"),
    );
    assert!(answer.ends_with("request 1, 0 bytes"), "{answer}");
    let head = heads.recv().unwrap();
    assert!(
        !head
            .iter()
            .any(|line| line.to_lowercase().starts_with("proxy-")),
        "{head:?}"
    );
    let blocked = exchange(
        address,
        "CONNECT b.test:443 HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    assert!(
        blocked.contains("403") && blocked.contains("b.test"),
        "{blocked}"
    );
    // The other one has the last word about its own.
    let refused = exchange(
        address,
        &format!("CONNECT other.test:{port} HTTP/1.1\r\nConnection: close\r\n\r\n"),
    );
    assert!(refused.starts_with("HTTP/1.1 502"), "{refused}");
    assert_eq!(child.get_stats().blocked_requests, 1);
    assert_eq!(parent.get_stats().unique_hosts.get("b.test"), None);
    assert_eq!(parent.get_stats().blocked_requests, 1);
}

#[test]
fn some_hosts_go_around_it() {
    let port = host::echo();
    let mut config = config(&[&format!("a.test:{port}"), &format!("127.0.0.1:{port}")]);
    // Nobody listens there.
    let upstream = Upstream::parse("127.0.0.1:1").unwrap();
    config.upstream = Some(upstream.without("127.0.0.0/8"));
    let (_proxy, address) = started(config);
    for place in [format!("a.test:{port}"), format!("127.0.0.1:{port}")] {
        let mut inside = tunnel(address, &place);
        inside.get_mut().write_all(b"\0").unwrap();
        inside.read_exact(&mut [0]).unwrap();
    }
}

/// In a tunnel the next who reads is the host, and the other proxy's password is not its business.
#[test]
fn the_password_is_for_the_other_proxy_alone() {
    let (heads, seen) = channel();
    let parent = host::each(move |stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        for answer in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"] {
            let _ = heads.send(read_head(&mut reader));
            let _ = writer.write_all(answer.as_bytes());
        }
    });
    let (_proxy, address) = started(ProxyConfig {
        allowed_domains: vec!["far.test".to_owned()],
        upstream: Some(Upstream::parse(&format!("http://me:pw@127.0.0.1:{parent}")).unwrap()),
        ..ProxyConfig::default()
    });
    let mut inside = tunnel(address, "far.test:80");
    let request = b"GET /x HTTP/1.1\r\nHost: far.test\r\n\r\n";
    inside.get_mut().write_all(request).unwrap();
    assert!(read_head(&mut inside)[0].contains("204"));
    let has_password = |head: &[String]| {
        let mut lines = head.iter().map(|line| line.to_lowercase());
        lines.any(|line| line.starts_with("proxy-authorization"))
    };
    let to_parent = seen.recv().unwrap();
    assert!(has_password(&to_parent), "{to_parent:?}");
    let to_host = seen.recv().unwrap();
    assert_eq!(to_host[0], "GET /x HTTP/1.1");
    assert!(!has_password(&to_host), "{to_host:?}");
}
