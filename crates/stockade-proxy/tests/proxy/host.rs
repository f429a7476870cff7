//! Hosts on loopback, each with a thread that ends with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::read_head;

/// Runs `serve` for every connection; gives the port.
pub(crate) fn each(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// A host that answers each request with its head, and the number of its connection; the heads
/// come out as well.
pub(crate) fn http() -> (u16, Receiver<Vec<String>>) {
    let (heads, seen) = channel();
    let port = each(move |stream| {
        let mut writer = stream.try_clone().unwrap();
        let mut reader = BufReader::new(stream);
        let mut number = 0;
        loop {
            let head = read_head(&mut reader);
            if head.is_empty() {
                return;
            }
            let length = head.iter().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            number += 1;
            let text = format!("request {number}, {} bytes", body.len());
            let _ = heads.send(head);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-Hop: 1\r\nConnection: X-Hop\r\n\r\n{text}",
                text.len()
            );
            if writer.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    (port, seen)
}

/// A host that sends back whatever it gets, and ends when the client has ended.
pub(crate) fn echo() -> u16 {
    each(|mut stream| {
        let mut writer = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut stream, &mut writer);
        let _ = writer.shutdown(std::net::Shutdown::Write);
    })
}

/// A host that speaks first, as ssh and mail servers do.
pub(crate) fn greeter() -> u16 {
    each(|mut stream| {
        stream.write_all(b"220 hello\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap())
            .read_line(&mut line)
            .unwrap();
        let _ = write!(stream, "you said {line}");
    })
}

/// A host that takes the connection and never says a word.
pub(crate) fn silent() -> u16 {
    each(|stream| {
        let mut stream = stream;
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    })
}
