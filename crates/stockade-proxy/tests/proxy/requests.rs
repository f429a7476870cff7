//! What is looked for in requests: methods, and values that are masked.

use std::ffi::OsStr;
use std::io::{BufReader, Write};

use stockade_policy::host::Methods;
use stockade_proxy::{ProxyConfig, ProxyLogEntry};

use crate::{config, exchange, host, read_head, started, tunnel};

const VALUE: &str = "value-that-nobody-may-see";

fn request(place: &str, method: &str, header: &str) -> String {
    format!(
        "{method} http://{place}/x HTTP/1.1\r\nHost: {place}\r\n{header}Content-Length: 0\r\n\
         Connection: close\r\n\r\n"
    )
}

fn read_only(port: u16) -> ProxyConfig {
    ProxyConfig {
        methods: Methods::ReadOnly,
        ..config(&[&format!("a.test:{port}")])
    }
}

#[test]
fn only_methods_that_ask_reach_the_host() {
    let (port, heads) = host::http();
    let (proxy, address) = started(read_only(port));
    let place = format!("a.test:{port}");
    for method in ["GET", "OPTIONS"] {
        let answer = exchange(address, &request(&place, method, ""));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(heads.recv().unwrap()[0].starts_with(method));
    }
    for method in ["POST", "DELETE", "get", "X"] {
        let answer = exchange(address, &request(&place, method, ""));
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(answer.contains(&format!("`{method}`")), "{answer}");
        assert!(answer.contains("--net-methods any"), "{answer}");
    }
    let mut inside = tunnel(address, &place);
    let text = format!("PUT / HTTP/1.1\r\nHost: {place}\r\nContent-Length: 0\r\n\r\n");
    inside.get_mut().write_all(text.as_bytes()).unwrap();
    assert!(read_head(&mut inside)[0].contains("403"));
    assert!(heads.try_recv().is_err());
    let refused = |entry: &&ProxyLogEntry| !entry.allowed;
    let log = proxy.get_log();
    assert_eq!(log.iter().filter(refused).count(), 5);
    let rule = Some("methods read-only".to_owned());
    assert!(log.iter().filter(refused).all(|entry| entry.rule == rule));
}

#[test]
fn a_host_that_switches_unasked_is_no_way_out() {
    let port = host::each(|stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        read_head(&mut reader);
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
        let _ = (&stream).write_all(answer.as_bytes());
    });
    let place = format!("a.test:{port}");
    for config in [read_only(port), config(&[&place])] {
        let (_proxy, address) = started(config);
        let answer = exchange(address, &request(&place, "GET", ""));
        assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
        assert!(answer.contains("nobody asked for"), "{answer}");
    }
    // An offer to switch that clients make by the way is not passed on.
    let (port, heads) = host::http();
    let (_proxy, address) = started(read_only(port));
    let offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n";
    exchange(address, &request(&format!("a.test:{port}"), "GET", offer));
    let head = heads.recv().unwrap().join("\n").to_lowercase();
    assert!(!head.contains("upgrade"), "{head}");
}

#[test]
fn a_masked_value_is_at_its_host_and_nowhere_else() {
    let (port, heads) = host::http();
    let mut config = config(&[&format!("a.test:{port}"), &format!("x.a.test:{port}")]);
    let value = Some(OsStr::new(VALUE));
    config.mask("TOKEN=a.test".parse().unwrap(), value).unwrap();
    let (proxy, address) = started(config.clone());
    let placeholder = proxy.env_vars()["TOKEN"].clone();
    assert!(!placeholder.contains(VALUE));
    let header = format!("X-Token: {placeholder}\r\n");
    exchange(address, &request(&format!("a.test:{port}"), "GET", &header));
    exchange(
        address,
        &request(&format!("x.a.test:{port}"), "GET", &header),
    );
    let got = |head: Vec<String>| head.iter().any(|line| line.ends_with(VALUE));
    assert!(got(heads.recv().unwrap()));
    assert!(!got(heads.recv().unwrap()));
    let shown = format!("{config:?} {proxy:?} {:?}", proxy.get_log());
    assert!(!shown.contains(VALUE));
    // No two runs have the same.
    let (other, _) = started({
        let mut again = crate::config(&["a.test"]);
        again.mask("TOKEN=a.test".parse().unwrap(), value).unwrap();
        again
    });
    assert_ne!(other.env_vars()["TOKEN"], placeholder);
    let unset = crate::config(&[]).mask("TOKEN=a.test".parse().unwrap(), None);
    assert!(unset.unwrap_err().to_string().contains("TOKEN"));
}
