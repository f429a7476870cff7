//! Names that a resolver outside answers: a network and a resolver of the test's own.

use std::process::Command;

use crate::context::{Context, STOCKADE};

/// A resolver on port 53 that writes down every name, and hosts for what it answers with.
const RESOLVER: &str = r#"
import socket, sys, threading
answers = {"public.test": ["203.0.114.5"], "meta.test": ["169.254.169.254"], "loop.test": ["127.0.0.1"],
           "lan.test": ["10.0.0.1"], "many.test": ["10.0.0.%d" % n for n in range(1, 60)], "none.test": []}
log = open(sys.argv[1], "w", buffering=1)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("127.0.0.1", 53))
web = socket.create_server(("203.0.114.5", 80))
def serve():
    while True:
        c = web.accept()[0]; c.recv(4096)
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\npublic"); c.close()
threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
while True:
    message, peer = udp.recvfrom(4096)
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode().lower()); at += 1 + message[at]
    name, question = ".".join(labels), message[12:at + 5]
    log.write(name + "\n")
    found = answers.get(name) if message[at + 2] == 1 else []
    code = 0x8183 if name not in answers else 0x8180
    records = b"".join(b"\xc0\x0c\0\x01\0\x01\0\0\0\x05\0\x04" + socket.inet_aton(a) for a in found or [])
    udp.sendto(message[:2] + code.to_bytes(2, "big") + b"\0\x01" + len(found or []).to_bytes(2, "big") + b"\0\0\0\0" + question + records, peer)
"#;

#[test]
fn only_listed_names_are_asked_for_and_private_answers_are_refused() {
    let context = Context::new();
    let resolver = context.file("resolver.py", RESOLVER);
    let config = context.file("resolv.conf", "nameserver 127.0.0.1\nsearch corp.test\n");
    let log = context.project().join("asked");
    let ready = context.project().join("ready");
    let mut allow = String::new();
    for name in ["public", "meta", "loop", "lan", "many", "none"] {
        allow.push_str(&format!(" --allow {name}.test"));
    }
    let script = format!(
        "set -e; ip link set lo up; ip address add 203.0.114.5/32 dev lo; mount --bind {config} /etc/resolv.conf
         python3 {resolver} {log} > {ready} & trap 'kill %1' EXIT
         for i in $(seq 100); do grep -q ready {ready} && break; sleep 0.05; done
         {STOCKADE} run -q{allow} -- sh -c '
            for name in public meta loop lan many none secret123.evil; do
                echo \"$name: $(curl -s -m 8 http://$name.test/ | head -1) $(curl -s -m 8 --noproxy \"*\" http://$name.test/ | head -1)\"
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
    assert_eq!(lines.len(), 7, "{text}{complaint}");
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
    assert!(lines[6].contains("no rule allows the host"), "{text}");
    let asked = std::fs::read_to_string(&log).unwrap();
    assert!(asked.contains("public.test"), "{asked}");
    assert!(
        !asked.contains("evil") && !asked.contains("corp"),
        "{asked}"
    );
}
