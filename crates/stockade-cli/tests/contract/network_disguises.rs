//! W, with a list of hosts: connections that hide which host they are for, requests that hide their
//! method, clients that want the launcher's memory.

use stockade_test::case::Control;
use stockade_test::stage::Role;
use stockade_test::{
    Case, Flag, HostSide, Need, allowed, attack, closure, heard, host, prints, report,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = names();
    cases.extend(methods());
    cases.extend(memory());
    cases
}

fn listed() -> Vec<Flag> {
    let ports = ["@HTTP@", "@HTTPS@", "@ECHO@"];
    let allow = ports.map(|port| Flag::Allow(format!("a.test:{port}")));
    let pin = Flag::Resolve("a.test=127.0.0.1".into());
    std::iter::once(pin).chain(allow).collect()
}

fn on_stage(case: Case) -> Case {
    case.needs(Need::Allowlist)
        .needs(Need::Tool("openssl"))
        .needs(Need::Tool("python3"))
        .needs(Need::Tool("curl"))
        .side(HostSide::Web)
        .flags(listed())
}

/// Outside, where there is no `a.test`, the same host is reached by its address.
const DIAL: &str = r"
import struct
def place():
    try: return socket.gethostbyname('a.test')
    except OSError: return '127.0.0.1'
def send(port, *pieces):
    s = socket.create_connection((place(), port), 60); s.settimeout(60)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for piece in pieces: s.sendall(piece)
        s.shutdown(socket.SHUT_WR)
        while s.recv(65536): pass
    except OSError: pass
def vector(data): return struct.pack('>H', len(data)) + data
def hello(mark, name=None, extension=None):
    extensions = b''
    if name: extensions += b'\0\0' + vector(vector(b'\0' + vector(name)))
    if extension: extensions += struct.pack('>H', extension) + vector(b'x')
    body = b'\3\3' + mark.ljust(32, b'.') + b'\0' + vector(b'\x13\1') + b'\1\0' + vector(extensions)
    return b'\x16\3\1' + vector(b'\1\0' + vector(body))
";

fn names() -> Vec<Case> {
    vec![
        on_stage(attack(
            "W36",
            "TLS to another name behind what servers skip, without a name, with an encrypted one",
        ))
        .python(format!(
            r"{DIAL}
evil = hello(b'EVIL', b'evil.test')
send(@ECHO@, b'\x15\3\1\0\2\1\0' + evil)
send(@ECHO@, b'\x15\3\3\0\2\1\0', evil)
send(@ECHO@, b'\x14\3\3\0\1\1' + evil)
send(@ECHO@, b'\x80\x2e\1\3\1' + b'SSL2' * 10)
send(@ECHO@, hello(b'NONAME'))
send(@ECHO@, hello(b'ENCRYPTED', b'a.test', 0xfe0d))
send(@ECHO@, b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
send(@ECHO@, hello(b'GOOD', b'a.test'))"
        ))
        .leak(heard("echo got b'\\x15"))
        .leak(heard("echo got b'\\x14"))
        .leak(heard("SSL2"))
        .leak(heard("EVIL"))
        .leak(heard("NONAME"))
        .leak(heard("ENCRYPTED"))
        .leak(heard("PRI * HTTP/2"))
        .works(heard("GOOD")),
        on_stage(attack(
            "W36b",
            "another `Host` behind a method that is none of HTTP, whole and in pieces",
        ))
        .python(format!(
            r"{DIAL}
for line in (b'get /lower', b'G3T /digit', b' GET /space', b'GET\x0b/tab', b'g\xe4t /letter'):
    text = line + b' HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n'
    send(@HTTP@, text); send(@HTTP@, text[:3], text[3:])
send(@HTTP@, b'GeT /good HTTP/1.1\r\nHost: a.test:@HTTP@\r\nConnection: close\r\n\r\n')"
        ))
        .leak(heard("/lower evil.test"))
        .leak(heard("/digit evil.test"))
        .leak(heard("/space evil.test"))
        .leak(heard("/tab evil.test"))
        .leak(heard("/letter evil.test"))
        .works(heard("request GeT /good")),
        on_stage(attack(
            "W36c",
            "another `Host` behind a line that some servers skip, or in a request of another name",
        ))
        .python(format!(
            r"{DIAL}
request = b'GET /behind HTTP/1.1\r\nHost: evil.test\r\n\r\n'
send(@ECHO@, b'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n' + request)
send(@ECHO@, b'PR', b'OX', b'Y UNKNOWN\r\n' + request)
send(@ECHO@, b'\r\n\r\n\0\r\nQUIT\n\x20\0\0\0' + request)
send(@ECHO@, b'GET /old\r\n\r\n' + request)
send(@ECHO@, b'GET /stream RTSP/1.0\r\nHost: evil.test\r\n\r\n')
send(@ECHO@, b'SOURCE /radio ICE/1.0\r\nHost: evil.test\r\n\r\n')
send(@ECHO@, b'SSH-2.0-other\r\n')"
        ))
        .leak(heard("PROXY TCP4"))
        .leak(heard("UNKNOWN"))
        .leak(heard("QUIT"))
        .leak(heard("/old"))
        .leak(heard("/stream"))
        .leak(heard("/radio"))
        .works(heard("SSH-2.0-other")),
        on_stage(attack(
            "W36d",
            "a host that is named after an upgrade to another protocol",
        ))
        .python(format!(
            r"{DIAL}
def upgrade(protocol, mark):
    s = socket.create_connection((place(), @HTTP@), 60)
    s.sendall(b'GET /upgrade HTTP/1.1\r\nHost: a.test:@HTTP@\r\nConnection: Upgrade\r\nUpgrade: ' + protocol + b'\r\n\r\n')
    s.recv(65536)
    try: s.sendall(mark + b'\n'); s.shutdown(socket.SHUT_WR); s.recv(65536)
    except OSError: pass
upgrade(b'h2c', b'PRI-h2c'); upgrade(b'TLS/1.2', b'hello-tls'); upgrade(b'websocket, h2c', b'frame')"
        ))
        .leak(heard("upgraded PRI-h2c"))
        .leak(heard("upgraded hello-tls"))
        .works(heard("upgraded frame")),
    ]
}

fn methods() -> Vec<Case> {
    let read_only = |case| {
        on_stage(case)
            .flag(Flag::NetMethods("read-only".into()))
            .control(Control::Confined(listed()))
    };
    vec![
        read_only(attack("W34m", "another method in the body of one that passes"))
            .sh("b='DELETE /smuggled HTTP/1.1'; curl -sS -X GET -d \"$b\" http://a.test:@HTTP@/length
                 curl -sS -X GET -H 'Transfer-Encoding: chunked' -d \"$b\" http://a.test:@HTTP@/chunked
                 curl -sS -X OPTIONS -d \"$b\" http://a.test:@HTTP@/options; curl -sS http://a.test:@HTTP@/plain")
            .leak(heard("/length"))
            .leak(heard("/chunked"))
            .leak(heard("/options"))
            .works(heard("GET /plain"))
            .boxed(prints("a request with a body")),
        read_only(attack("W34n", "another method in headers of every spelling"))
            .sh("for h in X_HTTP_Method_Override X-Original-Method x-http-method _method X-HTTP-Verb; do
                 curl -sS -H \"$h: DELETE\" http://a.test:@HTTP@/$h; done
                 curl -sS -X OPTIONS -H 'Access-Control-Request-Method: DELETE' http://a.test:@HTTP@/preflight")
            .leak(heard("/X_HTTP_Method_Override"))
            .leak(heard("/X-Original-Method"))
            .leak(heard("/x-http-method"))
            .leak(heard("/_method"))
            .leak(heard("/X-HTTP-Verb"))
            .works(heard("OPTIONS /preflight")),
    ]
}

const TOKEN: (&str, &str) = ("TOKEN", "real-@SECRET@-value");

fn memory() -> Vec<Case> {
    let mut kept = listed();
    kept.push(Flag::KeepEnv("TOKEN".into()));
    vec![
        on_stage(attack("W35n", "a token that the proxy encoded, sent back by the host"))
            .env(TOKEN.0, TOKEN.1)
            .flag(Flag::Mask("TOKEN=a.test".into()))
            .control(Control::Confined(kept.clone()))
            .sh("curl -sS -u \"me:$TOKEN\" http://a.test:@HTTP@/raw | cut -d' ' -f2 | base64 -d")
            .leak(prints("me:real-@SECRET@-value"))
            .works(heard("header /raw Authorization: Basic me:real-@SECRET@-value"))
            .boxed(prints("me:")),
        on_stage(attack("W35p", "a token that the host sends back after HTTP was left"))
            .env(TOKEN.0, TOKEN.1)
            .env("SSL_CERT_FILE", "@W@/ca.pem")
            .flag(Flag::Mask("TOKEN=a.test".into()))
            .control(Control::Confined(kept))
            .python(
                r"
import ssl
ca = os.environ.get('SSL_CERT_FILE', '@W@/ca.pem')
token = os.environ['TOKEN']
def talk(port, secure):
    s = socket.create_connection(('a.test', port), 60)
    if secure: s = ssl.create_default_context(cafile=ca).wrap_socket(s, server_hostname='a.test')
    s.sendall(f'GET /upgrade HTTP/1.1\r\nHost: a.test:{port}\r\nConnection: Upgrade\r\nUpgrade: other\r\nX-Token: {token}\r\n\r\n'.encode())
    f = s.makefile('rb')
    while f.readline().strip(): pass
    print(port, f.readline().decode().strip()); s.sendall(b'any-real\n'); print(f.readline().decode().strip())
talk(@HTTP@, False)
talk(@HTTPS@, True)",
            )
            .leak(prints("@HTTP@ you sent X-Token: real-@SECRET@-value"))
            .leak(prints("@HTTPS@ you sent X-Token: real-@SECRET@-value"))
            .works(prints("any-real\n@HTTPS@ you sent X-Token: "))
            .works(heard("header /upgrade X-Token: real-@SECRET@-value")),
        on_stage(attack("W35o", "a core dump of the launcher, which knows a masked value"))
            .needs(Need::Sysctl("kernel/core_pattern", "core"))
            .env(TOKEN.0, TOKEN.1)
            .flag(Flag::Mask("TOKEN=a.test".into()))
            .cli_only("the launcher is the command line's")
            .control(Control::Confined(listed()))
            .launcher(
                "ulimit -c unlimited; mkfifo up down; @RUN@ sh -c 'echo @MARK@; echo up > up; cat down' & pid=$!
                 read line < up; kill -ABRT $pid; wait $pid 2> /dev/null
                 for f in core*; do test ! -e $f || mv $f @W@/core; done; rm -f up down",
            )
            .leak(host("grep -q real-@SECRET@-value @W@/core"))
            .boxed(host("test ! -e @W@/core")),
        on_stage(allowed("W37", "the launcher's memory, by thousands of long hosts"))
            .flag(Flag::Report(report::FILE.into()))
            .control(Control::Absent("without the proxy there is nothing that remembers"))
            .cli_only("the launcher is the command line's")
            .only(Role::User, "one is enough: it takes a while")
            .launcher(
                "cat > flood.py << 'EOF'
import os, socket
s = socket.create_connection(tuple(os.environ['http_proxy'].split('/')[2].split(':')), 60); f = s.makefile('rb')
for n in range(6000):
    s.sendall(b'GET http://a.test:@HTTP@/ HTTP/1.1\\r\\nHost: ' + str(n).encode() + b'x' * 60000 + b'\\r\\n\\r\\n')
    length = 0
    while (line := f.readline().strip()):
        if line.lower().startswith(b'content-length:'): length = int(line.split()[1])
    f.read(length)
print('@MARK@')
EOF
                 cat > peak.py << 'EOF'
import resource, subprocess, sys
subprocess.run(['sh', '-c', sys.argv[1]])
print('peak', 'small' if resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 200000 else 'large')
EOF
                 python3 peak.py \"@RUN@ python3 flood.py\"",
            )
            .boxed(prints("peak small"))
            .boxed(closure("the report is short and counts all", |scene| {
                let path = scene.world.witness().join("report.json");
                let records = report::read(&scene.world.witness());
                let records = records.and_then(|report| report.get("network")?.as_array().cloned());
                let counts = records.iter().flatten();
                let counts = counts.filter_map(|record| record["count"].as_u64());
                std::fs::metadata(path).is_ok_and(|data| data.len() < 4_000_000)
                    && counts.sum::<u64>() >= 6000
            })),
    ]
}
