//! Names that a resolver outside answers: a network and a resolver of the test's own.

use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::context::{Context, STOCKADE};
use crate::hint_list::Hints;
use crate::proxy::{self, Proxy};

/// A resolver on port 53 that writes down every name, and hosts for what it answers with.
const RESOLVER: &str = r#"
import socket, sys, threading
answers = {"public.test": ["203.0.114.5"], "meta.test": ["169.254.169.254"], "loop.test": ["127.0.0.1"],
           "lan.test": ["10.0.0.1"], "many.test": ["10.0.0.%d" % n for n in range(1, 60)], "none.test": [],
           "crowd.test": ["203.0.%d.%d" % (114 + n // 250, 1 + n % 250) for n in range(500)]}
log = open(sys.argv[1], "w", buffering=1)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("127.0.0.1", 53))
web = socket.create_server(("", 80))
def serve():
    while True:
        c = web.accept()[0]; c.recv(4096)
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\npublic"); c.close()
def answer(message, room):
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode().lower()); at += 1 + message[at]
    name, question = ".".join(labels), message[12:at + 5]
    log.write(name + "\n")
    found = answers.get(name) if message[at + 2] == 1 else []
    code = 0x8183 if name not in answers else 0x8180
    records = b"".join(b"\xc0\x0c\0\x01\0\x01\0\0\0\x05\0\x04" + socket.inet_aton(a) for a in found or [])
    count = len(found or [])
    if len(records) > room:
        code, count, records = code | 0x200, 0, b""
    return message[:2] + code.to_bytes(2, "big") + b"\0\x01" + count.to_bytes(2, "big") + b"\0\0\0\0" + question + records
# What does not fit into a datagram is asked for again over a connection.
tcp = socket.create_server(("127.0.0.1", 53))
def streams():
    while True:
        c = tcp.accept()[0]
        while length := c.recv(2):
            message = answer(c.recv(int.from_bytes(length, "big")), 65535)
            c.sendall(len(message).to_bytes(2, "big") + message)
        c.close()
threading.Thread(target=serve, daemon=True).start()
threading.Thread(target=streams, daemon=True).start()
print("ready", flush=True)
while True:
    message, peer = udp.recvfrom(4096)
    udp.sendto(answer(message, 1200), peer)
"#;

#[test]
fn only_listed_names_are_asked_for_and_private_answers_are_refused() {
    let context = Context::new();
    let resolver = context.file("resolver.py", RESOLVER);
    let config = context.file("resolv.conf", "nameserver 127.0.0.1\nsearch corp.test\n");
    let log = context.project().join("asked");
    let ready = context.project().join("ready");
    let names = ["public", "meta", "loop", "lan", "many", "none", "crowd"];
    let allow = names.map(|name| format!(" --allow {name}.test")).concat();
    let script = format!(
        "set -e; ip link set lo up; ip address add 203.0.114.5/23 dev lo; mount --bind '{config}' /etc/resolv.conf
         python3 '{resolver}' '{log}' > '{ready}' & trap 'kill %1' EXIT
         for i in $(seq 600); do grep -q ready '{ready}' && break; sleep 0.1; done
         {STOCKADE} run -q{allow} -- sh -c '
            for name in public meta loop lan many none crowd secret123.evil; do
                echo \"$name: $(curl -s -m 60 http://$name.test/ | head -1) $(curl -s -m 60 --noproxy \"*\" http://$name.test/ | head -1)\"
            done'",
        config = config.display(),
        resolver = resolver.display(),
        log = log.display(),
        ready = ready.display(),
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["-rnm", "bash", "-c", &script]);
    context.place(&mut unshare);
    let output = unshare.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 8, "{text}{complaint}");
    assert_eq!(lines[0], "public: public public", "{complaint}");
    for (line, words) in [
        (lines[1], "a cloud metadata address"),
        (lines[2], "a loopback address"),
        (lines[3], "a private address"),
        (lines[4], "a private address"),
    ] {
        assert_eq!(line.matches(words).count(), 2, "{text}");
    }
    assert!(lines[5].contains("none.test"), "{text}");
    // Five hundred addresses: some of them are tried.
    assert_eq!(lines[6], "crowd: public public", "{complaint}");
    assert!(lines[7].contains("no rule allows the host"), "{text}");
    let asked = std::fs::read_to_string(&log).unwrap();
    assert!(asked.contains("public.test"), "{asked}");
    assert!(
        !asked.contains("evil") && !asked.contains("corp"),
        "{asked}"
    );
}

/// What a host got from each client, once it has ended.
fn sink() -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut got = Vec::new();
            let _ = stream.read_to_end(&mut got);
            if sender.send(got).is_err() {
                return;
            }
        }
    });
    (port, receiver)
}

/// A command that sends something and is gone, as itself and by the proxy.
const LAST_WORDS: &str = r#"
import os, socket, sys
kind, port = sys.argv[1], sys.argv[2]
if kind == "connect":
    s = socket.create_connection(("198.18.0.1", 3128))
    s.sendall(("CONNECT a.test:%s HTTP/1.1\r\n\r\n" % port).encode())
    while b"\r\n\r\n" not in s.recv(4096): pass
else:
    s = socket.create_connection(("a.test", int(port)))
s.sendall(b"\0" + b"x" * 2999999)
os._exit(0)
"#;

#[test]
fn what_a_command_sent_last_arrives_and_is_in_the_report() {
    let context = Context::new();
    let (port, got) = sink();
    context.file("last.py", LAST_WORDS);
    let allow = format!("a.test:{port}");
    for (kind, protocol) in [("plain", "tcp"), ("connect", "connect")] {
        context
            .stockade([
                "run",
                "--allow",
                &allow,
                "--resolve",
                "a.test=127.0.0.1",
                "--report",
                "report.json",
                "--",
                "python3",
                "last.py",
                kind,
                &port.to_string(),
            ])
            .ends_with(0);
        assert_eq!(got.recv().unwrap().len(), 3_000_000, "{kind}");
        let report = std::fs::read(context.project().join("report.json")).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        let records = report["network"].as_array().unwrap();
        let record = records.iter().find(|record| record["protocol"] == protocol);
        assert_eq!(record.unwrap()["sent"], 3_000_000, "{records:#?}");
    }
}

#[test]
fn a_host_that_takes_nothing_does_not_hold_up_the_end() {
    let context = Context::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    context.file("last.py", LAST_WORDS);
    let script = format!("timeout 1 python3 last.py plain {port}; exit 7");
    let words = [
        "run",
        "--allow",
        &format!("a.test:{port}"),
        "--resolve",
        "a.test=127.0.0.1",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let mut run = context.command(words).spawn().unwrap();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = run.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > Duration::from_secs(120) {
            run.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(7));
}

#[test]
fn everything_goes_through_the_other_proxy_and_the_list_still_holds() {
    let mut context = Context::new();
    let port = proxy::host();
    let log = context.project().join("parent.jsonl");
    let args = [
        "--no-upstream",
        "--danger-allow",
        &format!("*:{port}"),
        "--resolve",
        "c.test=127.0.0.1",
    ];
    let parent = Proxy::start(
        &context,
        &[&args[..], &["--log", log.to_str().unwrap()]].concat(),
    );
    let url = format!("http://{}", parent.address);
    let get = format!(
        "for h in c b; do curl -s -m 60 http://$h.test:{port}/ | tr -d '\\n'; echo;          curl -s -m 60 --noproxy '*' http://$h.test:{port}/ | tr -d '\\n'; echo; done;          curl -s -m 60 -p http://c.test:{port}/; echo"
    );
    let allow = format!("c.test:{port}");
    let flagged = [
        "run",
        "-q",
        "--allow",
        &allow,
        "--upstream",
        &url,
        "--",
        "sh",
        "-c",
        &get,
    ];
    let ran = context.stockade(flagged).ends_with(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!([lines[0], lines[1], lines[4]], ["hello"; 3], "{ran:#?}");
    assert!(
        lines[2].contains("no rule allows") || lines[2].contains("b.test"),
        "{ran:#?}"
    );
    assert_eq!(lines[3], "", "{ran:#?}");
    // The same by the environment, and not at all: the name exists in the other proxy alone.
    context.set("https_proxy", &url);
    let by_environment = ["run", "-q", "--allow", &allow, "--", "sh", "-c", &get];
    let ran = context.stockade(by_environment).ends_with(0);
    assert!(ran.stdout.starts_with("hello\nhello\n"), "{ran:#?}");
    let without = [
        "run",
        "-q",
        "--allow",
        &allow,
        "--no-upstream",
        "--",
        "sh",
        "-c",
        &get,
    ];
    let ran = context.stockade(without).ends_with(0);
    assert!(!ran.stdout.contains("hello"), "{ran:#?}");
    let asked = std::fs::read_to_string(&log).unwrap();
    assert_eq!(asked.matches("c.test").count(), 6, "{asked}");
    assert!(!asked.contains("b.test"), "{asked}");
}

#[test]
fn a_wide_list_must_be_asked_for_and_an_upstream_needs_a_list() {
    let context = Context::new();
    let port = proxy::host();
    context
        .stockade(["run", "--allow", "*", "--", "true"])
        .ends_with(2);
    context
        .stockade(["run", "--allow", "*.com", "--", "true"])
        .ends_with(2);
    let wide = format!("*:{port}");
    let url = format!("http://any.test:{port}/");
    let words = [
        "run",
        "-q",
        "--danger-allow",
        &wide,
        "--resolve",
        "any.test=127.0.0.1",
        "--",
    ];
    for client in [
        &["curl", "-sS", &url][..],
        &["curl", "-sS", "--noproxy", "*", &url],
    ] {
        let ran = context.stockade([&words[..], client].concat()).ends_with(0);
        assert_eq!(ran.stdout, "hello");
    }
    // As wide as it is, loopback by its address is not in it.
    let local = format!("http://127.0.0.1:{port}/");
    let ran = context.stockade([&words[..], &["curl", "-sS", "--noproxy", "", &local]].concat());
    assert!(!ran.stdout.contains("hello"), "{ran:#?}");
    let ran = context.stockade(["run", "--upstream", "http://p.test:1", "--", "true"]);
    let ran = ran.ends_with(2);
    assert!(ran.stderr.contains("--upstream"), "{ran:#?}");
    let ran = context.stockade(["run", "--net", "open", "--danger-allow", "*", "--", "true"]);
    ran.ends_with(2);
}

/// The password is in the wrong place, in a scheme that is none, or behind a port that is none.
#[test]
fn an_upstream_that_can_not_be_read_keeps_its_password() {
    let context = Context::new();
    for url in [
        "http://me:s3cr3t@",
        "http://me:s3cr3t@host:99999",
        "socks5://me:s3cr3t@host:1",
        "http://me:s3cr3t",
        "me:s3cr3t@ho st:1",
    ] {
        for command in [
            &["run", "--allow", "a.test", "--upstream", url, "--", "true"][..],
            &["proxy", "--allow", "a.test", "--upstream", url],
            &[
                "run",
                "--json",
                "--allow",
                "a.test",
                "--upstream",
                url,
                "--",
                "true",
            ],
        ] {
            let ran = context.stockade(command);
            assert_ne!(ran.code, 0, "{command:?}");
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!said.contains("s3cr3t"), "{said}");
        }
    }
}

/// A client says "could not connect" or "no such host"; Stockade says why.
#[test]
fn who_tries_to_leave_a_network_that_is_off_is_told() {
    let context = Context::new();
    let script = "import socket
for kind, place in [(socket.SOCK_STREAM, ('192.0.2.1', 443)), (socket.SOCK_DGRAM, ('192.0.2.53', 53))]:
    try: socket.socket(socket.AF_INET, kind).connect(place)
    except OSError as error: print(error.strerror)
server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname())
print('loopback'); raise SystemExit(3)";
    let args = ["run", "--report", "r.json", "--", "python3", "-c", script];
    let ran = context.stockade(args).ends_with(3);
    let unreachable = "Network is unreachable\n";
    assert_eq!(ran.stdout, format!("{unreachable}{unreachable}loopback\n"));
    for told in [
        "reach `192.0.2.1:443`: the network is off; allow with: --allow 192.0.2.1:443",
        "reach `192.0.2.53:53`: the network is off; allow with: --allow HOST",
    ] {
        assert!(ran.stderr.contains(told), "{ran:#?}");
    }
    let report = std::fs::read_to_string(context.project().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let denials = report["denials"].as_array().unwrap();
    assert_eq!(denials.len(), 2, "{report:#}");
    assert_eq!(denials[0]["operation"], "reach");
    assert_eq!(denials[0]["port"], 443);
}

/// The question itself is answered, so the name is known.
#[test]
fn a_name_that_is_asked_for_while_the_network_is_off_is_told() {
    if !has_resolver() {
        return;
    }
    let context = Context::new();
    let script = "import socket
try: socket.getaddrinfo('packages.stockade.test', 443)
except socket.gaierror as error: raise SystemExit(0 if error.errno == socket.EAI_NONAME else 3)";
    let told = "reach `packages.stockade.test`: the network is off; allow with: --allow packages.stockade.test";
    let ran = context
        .stockade(["run", "--", "python3", "-c", script])
        .ends_with(0);
    assert!(ran.stderr.contains(told), "{ran:#?}");
}

/// Whether programs here ask a resolver at all.
fn has_resolver() -> bool {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let found = text
        .lines()
        .any(|line| line.trim_start().starts_with("nameserver"));
    if !found {
        // Not through the print macros, whose output the harness keeps to itself.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: /etc/resolv.conf names no resolver"
        );
    }
    found
}

/// The hosts come from what the user has configured, never from the project.
#[test]
fn presets_name_the_hosts_of_the_installed_client() {
    let hints = Hints::of("network::presets_name_the_hosts_of_the_installed_client");
    let mut context = Context::new();
    let cargo = context.home().join(".cargo");
    std::fs::create_dir(&cargo).unwrap();
    let config = "[source.mirror]\nregistry = \"sparse+https://user:pw@mirror.test:8443/index/\"\n";
    std::fs::write(cargo.join("config.toml"), config).unwrap();
    context.file(
        ".cargo/config.toml",
        "[source.x]\nregistry = \"https://evil.test/\"\n",
    );
    context.set("CARGO_HOME", &cargo);
    let hosts = |context: &Context, flags: &[&str]| -> Vec<String> {
        let args = [&["policy", "show", "--json"], flags].concat();
        let shown: Value =
            serde_json::from_str(&context.stockade(args).ends_with(0).stdout).unwrap();
        let allow = shown["profile"]["network"]["allow"]
            .as_array()
            .unwrap()
            .iter();
        allow
            .map(|entry| entry["value"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        hosts(&context, &["--allow", "@crates"]),
        ["mirror.test:8443"]
    );
    let github = hosts(&context, &["--allow", "@github", "--allow", "a.test"]);
    assert!(
        github.contains(&"a.test".to_owned()) && github.len() > 1,
        "{github:?}"
    );
    // A profile takes the same words.
    let profile = context.file("p.toml", "version = 1\n[network]\nallow = [\"@crates\"]\n");
    let profile = profile.to_str().unwrap();
    assert_eq!(
        hosts(&context, &["--policy", profile]),
        ["mirror.test:8443"]
    );
    // A program of the project is not asked, also if the search path leads there.
    let fake = context.file(
        "bin/npm",
        "#!/bin/sh\ntouch \"$0.ran\"; echo https://evil.test/\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&fake, mode).unwrap();
    context.set("PATH", fake.parent().unwrap());
    let refused = context.stockade(["policy", "show", "--allow", "@npm"]);
    assert!(!fake.with_extension("ran").exists());
    let hint = hints.in_refusal(&refused);
    let words = hint.split('`').nth(1).unwrap().replace("HOST", "a.test");
    let words: Vec<&str> = words.split(' ').collect();
    assert_eq!(hosts(&context, &words), ["a.test"]);
    let unknown = context.stockade(["policy", "show", "--allow", "@none"]);
    assert!(
        unknown.code == 2 && unknown.stderr.contains("@pypi"),
        "{unknown:#?}"
    );
}
