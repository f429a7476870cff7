//! Absolute-form, `CONNECT`, and what of a request reaches the host.

use std::io::{BufReader, Read, Write};
use std::time::Duration;

use crate::{client, config, exchange, host, log_until, proxy_to, read_head, started, tunnel};

#[test]
fn a_request_is_forwarded_without_what_is_for_the_proxy() {
    let (port, heads) = host::http();
    let (proxy, address) = proxy_to(port);
    let answer = exchange(
        address,
        &format!(
            "GET http://A.test.:{port}/x?y=1 HTTP/1.1\r\nHost: a.test:{port}\r\nX-Keep: 1\r\n\
             Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n\
             Connection: close, X-Drop\r\nX-Drop: 1\r\n\r\n"
        ),
    );
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("request 1, 0 bytes"), "{answer}");
    assert!(!answer.contains("X-Hop"), "{answer}");
    let head = heads.recv().unwrap();
    assert_eq!(head[0], "GET /x?y=1 HTTP/1.1");
    let lower: Vec<String> = head[1..].iter().map(|line| line.to_lowercase()).collect();
    assert!(lower.contains(&format!("host: a.test:{port}")), "{lower:?}");
    assert!(lower.contains(&"x-keep: 1".to_owned()), "{lower:?}");
    for gone in ["proxy-", "x-drop", "connection"] {
        assert!(
            !lower.iter().any(|line| line.starts_with(gone)),
            "{lower:?}"
        );
    }
    let log = log_until(&proxy, |log| log.first().is_some_and(|entry| !entry.open));
    assert_eq!(log[0].host, "a.test");
    assert_eq!(log[0].method, "GET");
    assert_eq!(log[0].received, 18);
    assert_eq!(log[0].rule, Some(format!("allow a.test:{port}")));
}

#[test]
fn one_connection_serves_many_requests_each_of_them_judged() {
    let (port, _heads) = host::http();
    let (proxy, address) = proxy_to(port);
    let mut stream = client(address);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut ask = |host: &str| {
        let body = "0123456789";
        write!(
            stream,
            "POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nContent-Length: 10\r\n\r\n{body}"
        )
        .unwrap();
        let head = read_head(&mut reader);
        let length = head.iter().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        let mut body = vec![0; length.unwrap()];
        reader.read_exact(&mut body).unwrap();
        (head[0].clone(), String::from_utf8(body).unwrap())
    };
    let own = format!("a.test:{port}");
    assert_eq!(ask(&own).1, "request 1, 10 bytes");
    assert_eq!(ask(&own).1, "request 2, 10 bytes");
    let (line, text) = ask(&format!("b.test:{port}"));
    assert!(line.contains("403"), "{line}");
    assert!(
        text.contains("b.test") && text.contains("--allow b.test"),
        "{text}"
    );
    assert!(ask(&own).0.contains("200"));
    let stats = proxy.get_stats();
    assert_eq!((stats.allowed_requests, stats.blocked_requests), (3, 1));
    assert_eq!(stats.unique_hosts["a.test"], 3);
    assert!(stats.total_bytes >= 3 * (10 + 18), "{stats:?}");
}

#[test]
fn a_kept_connection_that_the_host_closed_is_made_again() {
    let port = host::each(|stream| {
        let mut writer = stream.try_clone().unwrap();
        let head = read_head(&mut BufReader::new(stream));
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        if !head.is_empty() {
            let _ = writer.write_all(answer.as_bytes());
        }
    });
    let (_proxy, address) = proxy_to(port);
    let mut stream = client(address);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..5 {
        write!(
            stream,
            "GET http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\n\r\n"
        )
        .unwrap();
        let head = read_head(&mut reader);
        assert!(head[0].contains("200"), "{head:?}");
        let mut body = [0; 2];
        reader.read_exact(&mut body).unwrap();
    }
}

#[test]
fn the_host_header_must_be_the_host_that_is_asked_for() {
    let (port, heads) = host::http();
    let (proxy, address) = proxy_to(port);
    for text in [
        format!("GET http://a.test:{port}/ HTTP/1.1\r\nHost: b.test\r\n\r\n"),
        format!("GET http://a.test:{port}/ HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n"),
        format!("GET http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:1\r\n\r\n"),
        format!("CONNECT a.test:{port} HTTP/1.1\r\nHost: b.test:{port}\r\n\r\n"),
    ] {
        let answer = exchange(
            address,
            &text.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"),
        );
        assert!(answer.starts_with("HTTP/1.1 403"), "{text} -> {answer}");
    }
    assert!(heads.try_recv().is_err());
    assert_eq!(proxy.get_stats().blocked_requests, 4);
}

#[test]
fn plain_requests_in_a_tunnel_are_judged_too() {
    let (port, heads) = host::http();
    let (proxy, address) = proxy_to(port);
    let place = format!("a.test:{port}");
    let mut inside = tunnel(address, &place);
    write!(inside.get_mut(), "GET / HTTP/1.1\r\nHost: {place}\r\n\r\n").unwrap();
    assert!(read_head(&mut inside)[0].contains("200"));
    assert_eq!(heads.recv().unwrap()[0], "GET / HTTP/1.1");
    let mut inside = tunnel(address, &place);
    write!(
        inside.get_mut(),
        "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    )
    .unwrap();
    assert!(read_head(&mut inside)[0].contains("403"));
    assert!(heads.try_recv().is_err());
    let log = log_until(&proxy, |log| log.iter().any(|entry| !entry.allowed));
    let denied = log.iter().find(|entry| !entry.allowed).unwrap();
    assert!(denied.reason.contains("evil.test"), "{denied:?}");
}

#[test]
fn a_websocket_goes_through() {
    let port = host::each(|stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        let head = read_head(&mut reader);
        assert!(
            head.iter()
                .any(|line| line.eq_ignore_ascii_case("upgrade: echo")),
            "{head:?}"
        );
        writer
            .write_all(
                b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nearly ",
            )
            .unwrap();
        let _ = std::io::copy(&mut reader, &mut writer);
    });
    let (_proxy, address) = proxy_to(port);
    let mut stream = client(address);
    write!(
        stream,
        "GET http://a.test:{port}/ws HTTP/1.1\r\nHost: a.test:{port}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
    )
    .unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let head = read_head(&mut reader);
    assert!(head[0].contains("101"), "{head:?}");
    stream.write_all(b"ping").unwrap();
    let mut answer = [0; 10];
    reader.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"early ping");
}

#[test]
fn a_host_that_never_answers_is_given_up() {
    let port = host::silent();
    let mut config = config(&[&format!("a.test:{port}")]);
    config.limits.answer = Duration::from_millis(500);
    let (proxy, address) = started(config);
    let answer = exchange(
        address,
        &format!(
            "GET http://a.test:{port}/ HTTP/1.1\r\nHost: a.test:{port}\r\nConnection: close\r\n\r\n"
        ),
    );
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    let log = log_until(&proxy, |log| log.iter().any(|entry| entry.error.is_some()));
    assert!(log.iter().all(|entry| entry.allowed));
}
