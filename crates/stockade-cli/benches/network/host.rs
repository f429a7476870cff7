//! Hosts on loopback, each on a thread of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

fn each(serve: impl Fn(TcpStream) + Send + Sync + Clone + 'static) -> u16 {
    let Ok(listener) = TcpListener::bind(("127.0.0.1", 0)) else {
        return 0;
    };
    let port = listener.local_addr().map_or(0, |address| address.port());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            let _ = thread::Builder::new()
                .stack_size(64 * 1024)
                .spawn(move || serve(stream));
        }
    });
    port
}

/// Sends so many bytes to whoever says a word.
pub(crate) fn source(bytes: u64) -> u16 {
    each(move |mut stream| {
        let chunk = vec![7; 256 * 1024];
        let mut left = bytes;
        if stream.read(&mut [0; 1]).is_err() {
            return;
        }
        while left > 0 && stream.write_all(&chunk).is_ok() {
            left = left.saturating_sub(chunk.len() as u64);
        }
    })
}

/// Answers requests with a few bytes.
pub(crate) fn web() -> u16 {
    each(|stream| {
        let _ = stream.set_nodelay(true);
        let Ok(mut writer) = stream.try_clone() else {
            return;
        };
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        loop {
            line.clear();
            match reader.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim_end().is_empty() => {
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
                    if writer.write_all(answer).is_err() {
                        return;
                    }
                }
                Ok(_) => {}
            }
        }
    })
}

/// Sends back what it gets.
pub(crate) fn echo() -> u16 {
    each(|mut stream| {
        let mut byte = [0; 16];
        while let Ok(length @ 1..) = stream.read(&mut byte) {
            if stream.write_all(&byte[..length]).is_err() {
                return;
            }
        }
    })
}
