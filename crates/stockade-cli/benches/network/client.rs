//! The clients: this program again, with other words.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitCode};
use std::thread;
use std::time::Instant;

/// Acts as a client if it was started as one.
pub(crate) fn dispatch() -> Option<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (client, rest) = words.split_first()?;
    if client != "--client" {
        return None;
    }
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let figure = match rest[..] {
        ["read", proxy, host, port] => read(proxy, host, port),
        ["get", proxy, host, port, clients, requests] => Some(get(
            proxy,
            &format!("{host}:{port}"),
            clients.parse().unwrap_or(1),
            requests.parse().unwrap_or(1),
        )),
        _ => None,
    };
    let _ = writeln!(std::io::stdout(), "{}", figure.unwrap_or(0.0));
    Some(ExitCode::SUCCESS)
}

/// The proxy: none, the one in the environment, or the one that is named.
fn proxy_address(proxy: &str) -> Option<String> {
    match proxy {
        "-" => None,
        "env" => {
            let url = std::env::var("http_proxy").ok()?;
            Some(url.trim_start_matches("http://").to_owned())
        }
        address => Some(address.to_owned()),
    }
}

fn connect(proxy: &str, place: &str) -> Option<TcpStream> {
    let Some(proxy) = proxy_address(proxy) else {
        return TcpStream::connect(place).ok();
    };
    let mut stream = TcpStream::connect(proxy).ok()?;
    write!(stream, "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n").ok()?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    head.starts_with(b"HTTP/1.").then_some(stream)
}

/// Megabytes per second.
fn read(proxy: &str, host: &str, port: &str) -> Option<f64> {
    let mut stream = connect(proxy, &format!("{host}:{port}"))?;
    stream.write_all(b"\0").ok()?;
    let started = Instant::now();
    let mut buffer = vec![0; 256 * 1024];
    let mut total = 0u64;
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        total += length as u64;
    }
    Some(total as f64 / 1e6 / started.elapsed().as_secs_f64())
}

/// Requests per second.
fn get(proxy: &str, place: &str, clients: usize, requests: usize) -> f64 {
    let started = Instant::now();
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            let (proxy, place) = (proxy.to_owned(), place.to_owned());
            thread::spawn(move || get_many(&proxy, &place, requests))
        })
        .collect();
    let done: usize = threads
        .into_iter()
        .filter_map(|thread| thread.join().ok().flatten())
        .sum();
    done as f64 / started.elapsed().as_secs_f64()
}

fn get_many(proxy: &str, place: &str, requests: usize) -> Option<usize> {
    let proxy = proxy_address(proxy);
    let stream = TcpStream::connect(proxy.as_deref().unwrap_or(place)).ok()?;
    stream.set_nodelay(true).ok()?;
    let request = match proxy {
        Some(_) => format!("GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n\r\n"),
        None => format!("GET / HTTP/1.1\r\nHost: {place}\r\n\r\n"),
    };
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    for done in 0..requests {
        writer.write_all(request.as_bytes()).ok()?;
        line.clear();
        reader.read_line(&mut line).ok()?;
        if !line.contains(" 200 ") {
            return Some(done);
        }
        let mut length = 0;
        loop {
            line.clear();
            reader.read_line(&mut line).ok()?;
            let text = line.trim_end().to_ascii_lowercase();
            if text.is_empty() {
                break;
            }
            if let Some(value) = text.strip_prefix("content-length: ") {
                length = value.parse().ok()?;
            }
        }
        reader.read_exact(&mut vec![0; length]).ok()?;
    }
    Some(requests)
}

/// Opens tunnels through a proxy that was just started, each used once, and keeps them.
pub(crate) fn hold(proxy: &mut Child, port: u16, count: usize) -> Vec<TcpStream> {
    let mut line = String::new();
    if let Some(output) = proxy.stdout.take() {
        let _ = BufReader::new(output).read_line(&mut line);
    }
    let address = line.trim().trim_start_matches("listening on ").to_owned();
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        let Some(mut stream) = connect(&address, &format!("a.test:{port}")) else {
            break;
        };
        let mut byte = [0];
        if stream.write_all(b"\0").is_err() || stream.read_exact(&mut byte).is_err() {
            break;
        }
        held.push(stream);
    }
    held
}
