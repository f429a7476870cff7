//! W, with a list of hosts: what is listed is reached by clients of every kind, and nothing else.
//!
//! `a.test` exists inside alone, so most cases have no control of their own; those that deny have
//! one that reaches the same host without the sandbox.

use std::time::Duration;

use stockade_test::case::Control;
use stockade_test::report;
use stockade_test::{
    Case, Flag, HostSide, Need, allowed, attack, closure, exits, heard, not, prints, quiet,
    stderr_has, stdout_is,
};

const ONLY_INSIDE: Control = Control::Absent("the name exists inside alone");

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = clients();
    cases.extend(refusals());
    cases.extend(names());
    cases.extend(ports());
    cases.extend(reports());
    cases
}

/// The hosts of the suite as `a.test`.
fn listed(case: Case) -> Case {
    case.needs(Need::Allowlist)
        .needs(Need::Tool("openssl"))
        .needs(Need::Tool("python3"))
        .side(HostSide::Web)
        .flag(Flag::Resolve("a.test=127.0.0.1".into()))
        .flag(Flag::Allow("a.test:@HTTP@".into()))
        .flag(Flag::Allow("a.test:@HTTPS@".into()))
        .flag(Flag::Allow("a.test:@ECHO@".into()))
}

fn client(id: &'static str, title: &'static str, tool: &'static str) -> Case {
    listed(allowed(id, title))
        .needs(Need::Tool(tool))
        .control(ONLY_INSIDE)
}

const UNAWARE: &str = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY\n";

fn clients() -> Vec<Case> {
    vec![
        client("W06", "curl by the proxy, http and https", "curl")
            .sh("curl -sS http://a.test:@HTTP@/x && curl -sSk https://a.test:@HTTPS@/y")
            .boxed(stdout_is("hello GET 0\nhello GET 0"))
            .boxed(heard("request GET /x a.test:@HTTP@ 0"))
            .boxed(heard("request GET /y a.test:@HTTPS@ 0")),
        client("W06b", "wget and python's urllib by the proxy", "wget")
            .sh("wget -q -O- http://a.test:@HTTP@/ && wget -q -O- --no-check-certificate https://a.test:@HTTPS@/ \
                 && python3 -c 'import urllib.request as u; print(u.urlopen(\"http://a.test:@HTTP@/\").read().decode())'")
            .boxed(stdout_is("hello GET 0\nhello GET 0\nhello GET 0")),
        client("W06c", "an upload of a megabyte", "curl")
            .sh("head -c 1000000 /dev/zero > f; curl -sS --data-binary @f http://a.test:@HTTP@/; \
                 curl -sSk -T f https://a.test:@HTTPS@/")
            .boxed(stdout_is("hello POST 1000000\nhello PUT 1000000")),
        client("W20", "curl that ignores the proxy", "curl")
            .sh("curl -sS --noproxy '*' http://a.test:@HTTP@/ && curl -sSk --noproxy '*' https://a.test:@HTTPS@/ \
                 && curl -6 -sS --noproxy '*' http://a.test:@HTTP@/")
            .boxed(stdout_is("hello GET 0\nhello GET 0\nhello GET 0")),
        client("W21", "a raw socket and getaddrinfo", "python3")
            .python(
                "
for family in (socket.AF_INET, socket.AF_INET6):
    place = socket.getaddrinfo('a.test', @ECHO@, family, socket.SOCK_STREAM)[0][4]
    s = socket.create_connection(place[:2], 5); s.sendall(b'ping'); print(s.recv(4).decode())
import ssl
context = ssl._create_unverified_context()
s = context.wrap_socket(socket.create_connection(('a.test', @HTTPS@), 5), server_hostname='a.test')
s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(s.recv(12).decode())",
            )
            .boxed(stdout_is("ping\nping\nHTTP/1.1 200")),
        client("W21b", "node's fetch, which knows of no proxy", "node")
            .sh("node -e 'fetch(\"http://a.test:@HTTP@/\").then(r => r.text()).then(t => console.log(t))'")
            .boxed(stdout_is("hello GET 0")),
        client("W21c", "java, which knows of no proxy", "java")
            .setup(
                "printf '%s\\n' 'public class Get { public static void main(String[] a) throws Exception {' \
                 'System.out.print(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }' > Get.java",
            )
            .bound(Duration::from_secs(300))
            .cleanup("rmdir /tmp/hsperfdata_* 2> /dev/null || true")
            .sh("java Get.java http://a.test:@HTTP@/ 2>/dev/null")
            .boxed(stdout_is("hello GET 0")),
        listed(allowed("W24", "git over ssh"))
            .needs(Need::Tool("git"))
            .needs(Need::Tool("ssh"))
            .needs(Need::Tool("/usr/sbin/sshd"))
            .side(HostSide::FreePort)
            .flag(Flag::Resolve("git.test=127.0.0.1".into()))
            .flag(Flag::Allow("git.test:@FREE@".into()))
            .setup(
                "cd @W@ && ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f @P@/id \
                 && cp @P@/id.pub keys && chmod 600 keys && git init -q --bare r.git && git -C r.git symbolic-ref HEAD refs/heads/main \
                 && git init -q src && git -C src -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git -C src push -q @W@/r.git HEAD:refs/heads/main",
            )
            .launcher(
                "mkdir -p /run/sshd 2>/dev/null; /usr/sbin/sshd -D -e -p @FREE@ -o ListenAddress=127.0.0.1 -o HostKey=@W@/host \
                 -o AuthorizedKeysFile=@W@/keys -o StrictModes=no -o UsePAM=no -o PidFile=none -f /dev/null 2> @W@/sshd.log & sshd=$!
                 for i in $(seq 600); do grep -q listening @W@/sshd.log && break; sleep 0.1; done
                 export GIT_SSH_COMMAND
                 @RUN@ /bin/sh -c 'echo @MARK@; host=git.test; getent hosts $host > /dev/null || host=127.0.0.1
                 GIT_SSH_COMMAND=\"ssh -F /dev/null -i @P@/id -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=60\" \
                 git ls-remote ssh://@USER@@$host:@FREE@@W@/r.git'
                 kill $sshd; wait $sshd 2>/dev/null; true",
            )
            .works(prints("refs/heads/main")),
        client("W21e", "an answer is not a leak: a server inside is still reached", "curl")
            .sh("python3 -m http.server 8123 --bind 127.0.0.1 > /dev/null 2>&1 & \
                 for i in $(seq 300); do curl -sS -o /dev/null -w '%{http_code}' http://127.0.0.1:8123/ 2>/dev/null && break; sleep 0.2; done")
            .boxed(prints("200")),
    ]
}

/// Nobody has to wait for a refusal: no client gives up by itself before the case's time is up.
fn refusals() -> Vec<Case> {
    vec![
        listed(attack("W07", "a host that is not listed"))
            .needs(Need::Tool("curl"))
            .sh("curl -sS --resolve b.test:@HTTP@:127.0.0.1 http://b.test:@HTTP@/leak; curl -sS http://b.test:@HTTP@/leak")
            .leak(heard("/leak"))
            .boxed(prints("b.test"))
            .boxed(prints("--allow b.test:@HTTP@")),
        listed(attack("W08", "plain HTTP is filtered like HTTPS"))
            .needs(Need::Tool("curl"))
            .sh("curl -sS --resolve b.test:@HTTP@:127.0.0.1 http://b.test:@HTTP@/leak; \
                 curl -sSk --resolve b.test:@HTTPS@:127.0.0.1 https://b.test:@HTTPS@/leak")
            .leak(heard("/leak"))
            .boxed(stderr_has("403")),
        listed(attack("W20b", "a host that is not listed, without the proxy"))
            .needs(Need::Tool("curl"))
            .sh("test -z \"$http_proxy\" || export RES_OPTIONS='timeout:30 attempts:5'
                 curl -sS --noproxy '*' --resolve b.test:@HTTP@:127.0.0.1 http://b.test:@HTTP@/leak; \
                 curl -sS --noproxy '*' http://b.test:@HTTP@/leak")
            .leak(heard("/leak"))
            .boxed(not(exits(0))),
        listed(attack("W22", "an address that nobody listed"))
            .needs(Need::Lan)
            .side(HostSide::Tcp)
            .python(
                "
def dial(place):
    s = socket.create_connection(place, 60); s.sendall(b'x'); return s
trying('lan', lambda: dial(('@LAN@', @PORT@)))
trying('listed port', lambda: dial(('203.0.113.9', @HTTP@)))
trying('six', lambda: dial(('2001:db8::1', @HTTP@)))",
            )
            .leak(heard("connected"))
            .boxed(prints("lan=ECONNREFUSED"))
            .boxed(prints("listed port=ECONNREFUSED"))
            .boxed(prints("six=ECONNREFUSED")),
        listed(attack("W22b", "datagrams to anywhere"))
            .needs(Need::Lan)
            .side(HostSide::Udp)
            .python(
                "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
trying('lan', lambda: s.sendto(b'to-lan', ('@LAN@', @UDPPORT@)))
trying('loopback', lambda: s.sendto(b'to-loopback', ('127.0.0.1', @UDPPORT@)))",
            )
            .leak(heard("to-lan"))
            .leak(heard("to-loopback")),
        listed(attack("W04c", "the host's loopback, with a list"))
            .side(HostSide::Tcp)
            .python("trying('x', lambda: socket.create_connection(('127.0.0.1', @PORT@), 60).sendall(b'x'))")
            .leak(heard("connected")),
        listed(attack("W18", "another Host than the one that was asked for"))
            .needs(Need::Tool("curl"))
            .control(Control::Script(
                "curl -sS -H 'Host: evil.test' http://127.0.0.1:@HTTP@/leak",
            ))
            .sh("curl -sS -H 'Host: evil.test' http://a.test:@HTTP@/leak; \
                 curl -sS -p -H 'Host: evil.test' http://a.test:@HTTP@/leak; \
                 curl -sS --noproxy '*' -H 'Host: evil.test' http://a.test:@HTTP@/leak")
            .leak(heard("/leak"))
            .boxed(prints("evil.test")),
        listed(attack("W18b", "another name in TLS than the one that was asked for"))
            .control(Control::Script(
                "printf 'GET /leak HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -connect 127.0.0.1:@HTTPS@ -servername evil.test",
            ))
            .sh("printf 'GET /leak HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -connect a.test:@HTTPS@ -servername evil.test; \
                 printf 'GET /leak HTTP/1.0\\r\\n\\r\\n' | openssl s_client -quiet -proxy ${http_proxy#http://} -connect a.test:@HTTPS@ -servername evil.test")
            .leak(heard("/leak")),
        listed(attack("W15", "an allowed name that leads to loopback"))
            .needs(Need::Tool("curl"))
            .flag(Flag::Allow("localhost:@HTTP@".into()))
            .sh("curl -sS --noproxy '' http://localhost:@HTTP@/leak")
            .leak(heard("/leak"))
            .boxed(prints("loopback"))
            .boxed(prints("--resolve localhost=")),
        listed(attack("W15b", "addresses in every disguise"))
            .needs(Need::Tool("curl"))
            .sh("for h in 127.0.0.1 '[::ffff:127.0.0.1]' 127.1 0x7f.1 2130706433 0177.0.0.1 '[::1]'; do \
                 curl -gsS -m 60 --noproxy '' http://$h:@HTTP@/leak; done; true")
            .leak(heard("/leak")),
        listed(attack("W11", "a port that is not listed"))
            .needs(Need::Lan)
            .needs(Need::Tool("curl"))
            .side(HostSide::Tcp)
            .sh("curl -sS --speed-limit 1 --speed-time 1 --resolve a.test:@PORT@:127.0.0.1 http://a.test:@PORT@/; \
                 curl -sS --speed-limit 1 --speed-time 1 http://a.test:@PORT@/; curl -sS --speed-limit 1 --speed-time 1 --noproxy '*' http://a.test:@PORT@/")
            .leak(heard("connected"))
            .boxed(prints("--allow a.test:@PORT@")),
    ]
}

fn names() -> Vec<Case> {
    let try_all = "for h in x.a.test a.test y.x.a.test xa.test; do printf '%s ' $h; \
                   curl -s -o /dev/null -w '%{http_code}\\n' http://$h:@HTTP@/; done";
    let wild = |case: Case| {
        let case = case.needs(Need::Allowlist).needs(Need::Tool("openssl"));
        let pins = ["a.test", "x.a.test", "y.x.a.test", "xa.test"];
        pins.into_iter().fold(
            case.side(HostSide::Web)
                .flag(Flag::Allow("*.a.test:@HTTP@".into())),
            |case, name| case.flag(Flag::Resolve(format!("{name}=127.0.0.1"))),
        )
    };
    vec![
        wild(allowed("W09", "a wildcard"))
            .needs(Need::Tool("curl"))
            .sh(try_all)
            .control(ONLY_INSIDE)
            .boxed(stdout_is("x.a.test 200\na.test 200\ny.x.a.test 200\nxa.test 403")),
        wild(allowed("W10", "a block wins"))
            .needs(Need::Tool("curl"))
            .flag(Flag::Block("x.a.test".into()))
            .sh(try_all)
            .control(ONLY_INSIDE)
            .boxed(stdout_is("x.a.test 403\na.test 200\ny.x.a.test 200\nxa.test 403")),
        listed(allowed("W17", "names that are not listed do not exist inside"))
            .sh("export RES_OPTIONS='timeout:30 attempts:5'; getent hosts secret123.evil.test || echo none; getent ahostsv4 a.test | head -1 | cut -d' ' -f1")
            .control(ONLY_INSIDE)
            .boxed(prints("none"))
            .boxed(prints("198.18.")),
        listed(allowed("W17b", "questions over connections, and malformed ones"))
            .python(
                "
def ask(message):
    s = socket.create_connection(('127.0.0.1', 53), 60)
    s.sendall(len(message).to_bytes(2, 'big') + message)
    answer = s.recv(512); return answer[2:]
question = b'\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x01a\\x04test\\0\\0\\x01\\0\\x01'
print(ask(question)[-4:][:2] == bytes([198, 18]), ask(question[:20])[3] & 15)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(60)
for junk in (b'', b'x', b'\\xff' * 600, question[:15]):
    u.sendto(junk, ('127.0.0.1', 53))
u.sendto(question, ('127.0.0.1', 53))
print(any(u.recv(512)[-4:-2] == bytes([198, 18]) for _ in range(3)))",
            )
            .control(ONLY_INSIDE)
            .boxed(stdout_is("True 1\nTrue")),
    ]
}

fn ports() -> Vec<Case> {
    vec![
        allowed("W33", "a port of the host's loopback")
            .needs(Need::Allowlist)
            .needs(Need::Tool("openssl"))
            .side(HostSide::Web)
            .flag(Flag::HostPort("@ECHO@".into()))
            .python(
                "
def ask(host, port):
    s = socket.create_connection((host, port), 5); s.sendall(b'ping'); return s.recv(4)
trying('asked', lambda: ask('127.0.0.1', @ECHO@))
trying('name', lambda: ask('localhost', @ECHO@))",
            )
            .works(prints("asked=OK"))
            .works(prints("name=OK")),
        attack("W33b", "another port of the host's loopback")
            .needs(Need::Allowlist)
            .needs(Need::Tool("openssl"))
            .side(HostSide::Web)
            .side(HostSide::Tcp)
            .flag(Flag::HostPort("@ECHO@".into()))
            .python("trying('other', lambda: socket.create_connection(('127.0.0.1', @PORT@), 60).sendall(b'x'))")
            .leak(heard("connected: x"))
            .boxed(prints("other=ECONNREFUSED")),
        allowed("W32", "a port inside on the host's loopback")
            .needs(Need::Allowlist)
            .side(HostSide::FreePort)
            .flag(Flag::Expose("@FREE@".into()))
            .launcher(
                "mkfifo @W@/o; @RUN@ /usr/bin/python3 -c '
import socket
s = socket.create_server((\"127.0.0.1\", @FREE@))
print(\"@MARK@\", flush=True)
while True:
    c = s.accept()[0]; c.sendall(c.recv(4)); c.close()' > @W@/o & pid=$!
                 read mark < @W@/o; echo $mark
                 /usr/bin/python3 -c \"
import socket
for round in range(3):
    s = socket.create_connection(('127.0.0.1', @FREE@), 5); s.sendall(b'ping'); print(s.recv(4).decode(), flush=True); s.close()\"
                 kill $pid; wait $pid; true",
            )
            .works(prints("ping\nping\nping")),
        attack("W32b", "a port of the host that is taken")
            .needs(Need::Allowlist)
            .side(HostSide::Tcp)
            .flag(Flag::Expose("@PORT@".into()))
            .sh("echo ran > @P@/ran")
            .leak(stockade_test::host("test -e @P@/ran"))
            .refused(125),
    ]
}

fn reports() -> Vec<Case> {
    let field = |name: &'static str, check: fn(&serde_json::Value) -> bool| {
        closure(name, move |scene| {
            let report = report::read(&scene.world.witness());
            let records = report.and_then(|report| report.get("network")?.as_array().cloned());
            records.is_some_and(|records| records.iter().any(check))
        })
    };
    vec![
        listed(allowed("W40", "every connection is in the report"))
            .needs(Need::Tool("curl"))
            .flag(Flag::Report(report::FILE.into()))
            .sh(format!(
                "curl -sSo /dev/null --data 0123456789 http://a.test:@HTTP@/; curl -s http://b.test:@HTTP@/ > /dev/null; \
                 {UNAWARE} curl -sSko /dev/null https://a.test:@HTTPS@/; getent hosts c.test; true"
            ))
            .control(ONLY_INSIDE)
            .boxed(field("an allowed request with its bytes", |record| {
                record["host"] == "a.test"
                    && record["protocol"] == "http"
                    && record["allowed"] == true
                    && record["sent"] == 10
                    && record["received"] == 14
                    && record["rule"].as_str().is_some_and(|rule| rule.starts_with("allow a.test:"))
            }))
            .boxed(field("a refused one with its grant", |record| {
                record["host"] == "b.test"
                    && record["allowed"] == false
                    && record["grant"].as_str().is_some_and(|grant| grant.starts_with("--allow b.test:"))
            }))
            .boxed(field("TLS of a client that knows of no proxy", |record| {
                record["host"] == "a.test" && record["protocol"] == "tls" && record["received"].as_u64() > Some(100)
            }))
            .boxed(field("a question about a name", |record| {
                record["host"] == "c.test" && record["protocol"] == "dns" && record["allowed"] == false
            })),
        listed(attack("W30", "a proxy that can't start"))
            .needs(Need::Tool("curl"))
            .cli_only("the variable is the launcher's")
            .env("HTTPS_PROXY", "socks5://127.0.0.1:1")
            .sh("echo ran > @P@/ran")
            .leak(stockade_test::host("test -e @P@/ran"))
            .refused(125),
        listed(attack("W25", "another proxy in between that nobody answers on"))
            .needs(Need::Tool("curl"))
            .cli_only("the variable is the launcher's")
            .env("HTTPS_PROXY", "http://127.0.0.1:1")
            .flag(Flag::Allow("c.test:@HTTP@".into()))
            .sh("curl -sS --resolve c.test:@HTTP@:127.0.0.1 --noproxy c.test http://c.test:@HTTP@/leak; \
                 curl -s -o /dev/null -w '%{http_code}' http://c.test:@HTTP@/")
            .leak(heard("/leak"))
            .boxed(prints("502")),
        listed(allowed("W16", "nothing is asked of a host that is not asked for"))
            .sh("true")
            .control(ONLY_INSIDE)
            .boxed(quiet())
            .boxed(exits(0)),
    ]
}
