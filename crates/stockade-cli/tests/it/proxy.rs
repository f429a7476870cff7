//! `stockade proxy` with real clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::context::Context;

/// A proxy that is ended with the test.
struct Proxy {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Proxy {
    fn start(context: &Context, args: &[&str]) -> Self {
        let mut child = context
            .command(["proxy"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap()
            .to_owned();
        Self {
            child,
            output,
            address,
        }
    }

    /// SIGTERM, and what it printed since.
    fn end(mut self) -> (i32, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code().unwrap_or(-1), text)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A host that says `hello` to every request.
fn host() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

fn curl(proxy: &str, args: &[&str]) -> (i32, String) {
    let output = Command::new("curl")
        .args(["-sS", "-m", "10", "--noproxy", "", "-x", proxy])
        .args(args)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap_or(-1), text)
}

#[test]
fn curl_reaches_what_is_listed_and_nothing_else() {
    let context = Context::new();
    let port = host();
    let log = context.project().join("log.jsonl");
    let proxy = Proxy::start(
        &context,
        &[
            "--no-upstream",
            "--allow",
            &format!("a.test:{port}"),
            "--resolve",
            "a.test=127.0.0.1",
            "--log",
            log.to_str().unwrap(),
            "--watch",
        ],
    );
    let http = format!("http://{}", proxy.address);
    let socks = format!("socks5h://{}", proxy.address);
    let good = format!("http://a.test:{port}/");
    let bad = format!("http://b.test:{port}/");
    assert_eq!(curl(&http, &[&good]), (0, "hello".to_owned()));
    assert_eq!(curl(&http, &["-p", &good]), (0, "hello".to_owned()));
    assert_eq!(curl(&socks, &[&good]), (0, "hello".to_owned()));
    let (_, text) = curl(&http, &["-w", "%{http_code}", &bad]);
    assert!(
        text.contains("b.test") && text.contains("--allow b.test"),
        "{text}"
    );
    assert!(text.ends_with("403"), "{text}");
    // 97: the SOCKS proxy refused.
    assert_eq!(curl(&socks, &[&bad]).0, 97);
    assert_eq!(curl(&http, &["-H", "Host: evil.test", "-f", &good]).0, 22);
    let (code, shown) = proxy.end();
    assert_eq!(code, 0);
    assert!(
        shown.contains("blocked") && shown.contains("b.test"),
        "{shown}"
    );
    let lines: Vec<Value> = std::fs::read_to_string(log)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let allowed = lines.iter().filter(|line| line["allowed"] == true).count();
    assert_eq!((lines.len(), allowed), (6, 3), "{lines:#?}");
}

#[test]
fn what_makes_no_sense_is_an_error() {
    let context = Context::new();
    let first = Proxy::start(&context, &["--no-upstream"]);
    let second = context.stockade(["proxy", "--no-upstream", "--listen", &first.address]);
    assert_eq!(second.code, 125);
    assert!(
        second.stderr.contains("can't listen on"),
        "{}",
        second.stderr
    );
    let wide = context.stockade(["proxy", "--allow", "*.com"]);
    assert_eq!(wide.code, 2);
    let bad = context.stockade(["proxy", "--upstream", "socks5://x:1"]);
    assert_eq!(bad.code, 2);
}
