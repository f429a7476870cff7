//! `stockade proxy` with real clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::context::{Context, has};

/// A proxy that is ended with the test.
pub(crate) struct Proxy {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    pub(crate) address: String,
}

impl Proxy {
    pub(crate) fn start(context: &Context, args: &[&str]) -> Self {
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
pub(crate) fn host() -> u16 {
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
        .args(["-sS", "-m", "100", "--noproxy", "", "-x", proxy])
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

#[test]
fn the_development_list_is_what_the_tools_are_configured_to_use() {
    let mut context = Context::new();
    let port = host();
    // Each of them has a private mirror; what is not installed is left out.
    context.set("PIP_INDEX_URL", format!("http://pip.test:{port}/simple"));
    context.set("npm_config_registry", format!("http://npm.test:{port}/"));
    context.set(
        "GOPROXY",
        format!("http://go.test:{port},https://user:pw@go2.test:{port}|direct"),
    );
    context.set("GOSUMDB", "off");
    context.set("CARGO_HOME", context.project().join("cargo"));
    context.file(
        "cargo/config.toml",
        &format!("[source.mirror]\nregistry = \"sparse+http://cargo.test:{port}/index/\"\n"),
    );
    for args in [
        &["init", "-q"][..],
        &[
            "remote",
            "add",
            "origin",
            &format!("http://git.test:{port}/r.git"),
        ],
    ] {
        let words = [&["git"], args].concat();
        context.other(&words).ends_with(0);
    }
    let mut args = vec!["--no-upstream".to_owned(), "--dev".to_owned()];
    let names = ["pip", "npm", "go", "go2", "cargo", "git", "other"];
    for name in names {
        args.extend(["--resolve".to_owned(), format!("{name}.test=127.0.0.1")]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let proxy = Proxy::start(&context, &args);
    let http = format!("http://{}", proxy.address);
    for name in names {
        let tool = name.trim_end_matches('2');
        let there = |tool| {
            has(
                "the development list",
                &format!("tool:{tool}"),
                &[tool, "--version"],
            )
        };
        // Go spells it without dashes, and pip and cargo are asked otherwise.
        let expected = match tool {
            "pip" | "cargo" => true,
            "go" => has("the development list", "tool:go", &["go", "version"]),
            "npm" | "git" => there(tool),
            _ => false,
        };
        let (_, text) = curl(&http, &[&format!("http://{name}.test:{port}/")]);
        assert_eq!(text == "hello", expected, "{name}: {text}");
    }
}

#[test]
fn what_is_refused_costs_no_memory() {
    let context = Context::new();
    let proxy = Proxy::start(&context, &["--no-upstream", "--allow", "a.test"]);
    let ask = |count: usize| {
        let mut stream = TcpStream::connect(&proxy.address).unwrap();
        let mut answers = BufReader::new(stream.try_clone().unwrap());
        for batch in 0..count / BATCH {
            // Always another name; many at once, so that nobody waits for the other side.
            let requests = (0..BATCH).map(|number| {
                let host = format!("n{}.test", batch * BATCH + number);
                format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")
            });
            let requests: String = requests.collect();
            stream.write_all(requests.as_bytes()).unwrap();
            for _ in 0..BATCH {
                skip_answer(&mut answers);
            }
        }
    };
    // The log and the hosts fill up to their limits first.
    ask(12_000);
    let before = resident(proxy.child.id());
    ask(12_000);
    let after = resident(proxy.child.id());
    assert!(after < before + 2_000, "{before} KiB, then {after} KiB");
}

const BATCH: usize = 50;

fn skip_answer(answers: &mut impl BufRead) {
    let mut length = 0;
    loop {
        let mut line = String::new();
        assert_ne!(answers.read_line(&mut line).unwrap(), 0);
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    answers.read_exact(&mut vec![0; length]).unwrap();
}

/// Of a process, in KiB.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let mut words = line.unwrap().split_whitespace();
    words.nth(1).unwrap().parse().unwrap()
}
