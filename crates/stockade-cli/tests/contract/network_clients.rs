//! W, with clients that people use: packages from a registry that the test serves, repositories.
//!
//! Each client first gets what it asks the listed host for, then asks a host that is not listed,
//! where the very same registry would answer, and must fail.

use std::time::Duration;

use stockade_test::case::Control;
use stockade_test::stage::Role;
use stockade_test::{Case, Flag, HostSide, Need, allowed, heard, host, not, prints};

const ONLY_INSIDE: Control = Control::Absent("the name exists inside alone");

const REGISTRY: &str = concat!(
    "cat > @W@/registry.py <<'EOF'\n",
    include_str!("registry.py"),
    "\nEOF\nmkdir @W@/files; mkfifo @W@/ready"
);

/// A client of the registry, which is `reg.test` inside.
fn client(id: &'static str, title: &'static str, script: &str) -> Case {
    let words = script.replace('\'', r"'\''");
    allowed(id, title)
        .needs(Need::Allowlist)
        .needs(Need::Tool("python3"))
        .side(HostSide::FreePort)
        .flag(Flag::Resolve("reg.test=127.0.0.1".into()))
        .flag(Flag::Resolve("other.test=127.0.0.1".into()))
        .flag(Flag::Allow("reg.test:@FREE@".into()))
        .setup(REGISTRY)
        .launcher(format!(
            "/usr/bin/python3 @W@/registry.py @FREE@ @W@/files > @W@/ready 2> @W@/asked & registry=$!
             read line < @W@/ready
             @RUN@ /bin/sh -c 'echo @MARK@; {words}'
             kill $registry; wait $registry 2> /dev/null; true"
        ))
        .control(ONLY_INSIDE)
        .cli_only("a launcher of its own")
        .bound(Duration::from_secs(300))
        .boxed(host("grep -q ^reg.test: @W@/asked"))
        .boxed(not(host("grep -q other.test @W@/asked")))
        .boxed(prints("refused"))
}

const UNAWARE: &str = "unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = registries();
    cases.push(ssh_on_its_own_port());
    cases.extend(parents());
    cases
}

fn registries() -> Vec<Case> {
    vec![
        // The wheel of pip that Debian makes virtual environments from runs as it is.
        client(
            "W06p",
            "pip install from an index",
            "pip=$(ls /usr/share/python-wheels/pip-*.whl | head -n 1)/pip
             get() { /usr/bin/python3 $pip install -q --no-cache-dir --disable-pip-version-check --retries 0 --timeout 60 \
                     --trusted-host $1 --index-url http://$1:@FREE@/simple/ --target $2 pkg; }
             get reg.test a && PYTHONPATH=a /usr/bin/python3 -c \"import pkg; print('by the proxy', pkg.answer())\"
             get other.test b 2> err || echo refused
             unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
             get reg.test c && PYTHONPATH=c /usr/bin/python3 -c \"import pkg; print('without', pkg.answer())\"
             get other.test d 2> err || echo refused",
        )
        .boxed(prints("by the proxy 42\nrefused\nwithout 42\nrefused")),
        client(
            "W06n",
            "npm install from a registry",
            "export npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false npm_config_fetch_retries=0
             export npm_config_cache=$PWD/cache
             get() { mkdir $2; (cd $2; npm install --silent --registry http://$1:@FREE@/npm/ pkg) > log.$2 2>&1; }
             get reg.test a && node -e \"console.log('got', require('./a/node_modules/pkg'))\"
             rm -rf cache; get other.test b || echo refused",
        )
        .needs(Need::Tool("npm"))
        .needs(Need::Tool("node"))
        .boxed(prints("got 42\nrefused")),
        client(
            "W06g",
            "go, by the proxy and without it",
            &format!(
                "export GOFLAGS=-mod=mod GONOSUMDB='*' GONOSUMCHECK=1 GOSUMDB=off GOPATH=$PWD/go GOCACHE=$PWD/cache GOTOOLCHAIN=local
                 printf 'module here\\ngo 1.19\\n' > go.mod
                 get() {{ GOPROXY=http://$1:@FREE@/go go mod download go.test/mod@v1.0.0; }}
                 get reg.test && test -f go/pkg/mod/go.test/mod@v1.0.0/m.go && echo by the proxy
                 go clean -modcache; get other.test 2> err || echo refused
                 {UNAWARE}
                 get reg.test && echo without; go clean -modcache; get other.test 2> err || echo refused"
            ),
        )
        .needs(Need::Tool("go"))
        .boxed(prints("by the proxy\nrefused\nwithout\nrefused")),
        client(
            "W06r",
            "cargo, with a dependency from a registry",
            &format!(
                "export PATH=@TOOLCHAIN@/bin:$PATH
                 mkdir -p app/src app/.cargo; cd app
                 printf '[package]\\nname = \"app\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n[dependencies]\\npkg = \"1\"\\n' > Cargo.toml
                 echo 'fn main() {{ println!(\"built {{}}\", pkg::answer()); }}' > src/main.rs
                 get() {{ rm -rf home Cargo.lock; export CARGO_HOME=$PWD/home CARGO_NET_RETRY=0 CARGO_HTTP_TIMEOUT=60
                 printf '[source.crates-io]\\nreplace-with = \"own\"\\n[source.own]\\nregistry = \"sparse+http://%s:@FREE@/cargo/\"\\n' $1 > .cargo/config.toml
                 cargo $2 -q; }}
                 get reg.test run; get other.test fetch 2> err || echo refused
                 {UNAWARE}
                 get reg.test fetch && echo without; get other.test fetch 2> err || echo refused"
            ),
        )
        .needs(Need::Tool("cc"))
        .needs(Need::Shared("TOOLCHAIN"))
        .boxed(prints("built 42\nrefused\nwithout\nrefused")),
        client(
            "W06h",
            "git over http, by the proxy and without it",
            &format!(
                "get() {{ git -c http.lowSpeedTime=20 ls-remote http://$1:@FREE@/r.git; }}
                 get reg.test; get other.test 2> err || echo refused
                 {UNAWARE}
                 get reg.test | grep -c main; get other.test 2> err || echo refused"
            ),
        )
        .needs(Need::Tool("git"))
        .setup(
            "cd @W@ && git init -q --bare files/r.git && git -C files/r.git symbolic-ref HEAD refs/heads/main && git init -q src \
             && git -C src -c user.name=a -c user.email=a@b commit -q --allow-empty -m x \
             && git -C src push -q @W@/files/r.git HEAD:refs/heads/main && git -C files/r.git update-server-info",
        )
        .boxed(prints("refs/heads/main"))
        .boxed(prints("refused\n1\nrefused")),
        client(
            "W06w",
            "wget and node's fetch, allowed and refused",
            "echo page > page
             wget -q -O- http://reg.test:@FREE@/simple/pkg/ | grep -c whl
             wget -q -O- http://other.test:@FREE@/simple/pkg/ || echo refused
             fetch() { node -e \"fetch(process.argv[1]).then(r => r.text()).then(t => console.log('node', t.includes('whl') || 'refused'), () => console.log('node refused'))\" $1; }
             fetch http://reg.test:@FREE@/simple/pkg/
             fetch http://other.test:@FREE@/simple/pkg/",
        )
        .needs(Need::Tool("wget"))
        .needs(Need::Tool("node"))
        .boxed(prints("1\nrefused\nnode true\nnode refused")),
    ]
}

/// In a network of the test's own, where port 22 is free.
fn ssh_on_its_own_port() -> Case {
    allowed("W24b", "ssh and git to port 22, and to a host that is not listed")
        .needs(Need::Allowlist)
        .needs(Need::Tool("git"))
        .needs(Need::Tool("ssh"))
        .needs(Need::Tool("ip"))
        .needs(Need::Tool("/usr/sbin/sshd"))
        .flag(Flag::Resolve("git.test=127.0.0.1".into()))
        .flag(Flag::Resolve("other.test=127.0.0.1".into()))
        .flag(Flag::Allow("git.test:22".into()))
        .setup(
            "cd @W@ && ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f @P@/id \
             && cp @P@/id.pub keys && chmod 600 keys && git init -q --bare r.git && git -C r.git symbolic-ref HEAD refs/heads/main \
             && git init -q src && git -C src -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git -C src push -q @W@/r.git HEAD:refs/heads/main \
             && printf '%s\\n' '#!/bin/sh' 'exec ssh -F /dev/null -i @P@/id -o IdentitiesOnly=yes -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=60 \"$@\"' > @P@/to \
             && chmod 755 @P@/to",
        )
        .launcher(
            "mkdir -p /run/sshd 2>/dev/null
             cat > @W@/run <<'EOF'
ip link set lo up
/usr/sbin/sshd -D -e -p 22 -o ListenAddress=127.0.0.1 -o HostKey=@W@/host -o AuthorizedKeysFile=@W@/keys \
 -o StrictModes=no -o UsePAM=no -o PidFile=none -f /dev/null 2> @W@/sshd.log & sshd=$!
for i in $(seq 600); do grep -q listening @W@/sshd.log && break; sleep 0.1; done
@RUN@ /bin/sh -c 'echo @MARK@; @P@/to @USER@@git.test echo said 2> err
export GIT_SSH_COMMAND=@P@/to; git ls-remote @USER@@git.test:@W@/r.git 2> err
@P@/to @USER@@other.test echo leaked 2> err || echo refused
@P@/to -p 23 @USER@@git.test echo leaked 2> err || echo refused'
kill $sshd; wait $sshd 2> /dev/null
true
EOF
             unshare -n /bin/sh @W@/run",
        )
        .only(Role::Root, "port 22 is root's")
        .control(ONLY_INSIDE)
        .cli_only("a launcher of its own")
        .boxed(prints("said\n"))
        .boxed(prints("refs/heads/main\nrefused\nrefused"))
        .boxed(not(prints("leaked")))
}

/// Other people's proxies in between: squid knows `up.test` by a file of its own, tinyproxy knows
/// what the host knows.
fn parents() -> Vec<Case> {
    let parent = |id, title, start: &str, name: &'static str, script: &str| {
        let words = script.replace('\'', r"'\''");
        allowed(id, title)
            .needs(Need::Allowlist)
            .needs(Need::Tool("curl"))
            .needs(Need::Tool("openssl"))
            .needs(Need::Tool("python3"))
            .side(HostSide::Web)
            .side(HostSide::FreePort)
            .flag(Flag::Allow(format!("{name}:@HTTP@")))
            .flag(Flag::Allow(format!("{name}:@HTTPS@")))
            .flag(Flag::Upstream("http://127.0.0.1:@FREE@".into()))
            .env("SSL_CERT_FILE", "@W@/ca.pem")
            .launcher(format!(
                "chmod 777 @W@; {start} > @W@/out 2>&1 & parent=$!
                 for i in $(seq 600); do curl -s -o /dev/null --noproxy '*' http://127.0.0.1:@FREE@/ && break; kill -0 $parent || break; sleep 0.1; done
                 @RUN@ /bin/sh -c 'echo @MARK@; {words}'
                 kill $parent; wait $parent 2> /dev/null; true"
            ))
            .control(ONLY_INSIDE)
            .cli_only("a launcher of its own")
            .bound(Duration::from_secs(300))
            .boxed(not(host("grep -q other.test @W@/log")))
    };
    let squid = "printf '%s\\n' 'http_port 127.0.0.1:@FREE@' 'http_access allow all' 'cache deny all' 'hosts_file @W@/hosts' \
                 'access_log stdio:@W@/log' 'cache_log @W@/cache.log' 'pid_filename none' 'coredump_dir @W@' 'visible_hostname localhost' \
                 'shutdown_lifetime 0 seconds' 'pinger_enable off' > @W@/conf; echo '127.0.0.1 up.test' > @W@/hosts; exec squid -N -n @ID@ -f @W@/conf";
    let squid = format!("/bin/sh -c {}", quoted(squid));
    let tiny = "printf '%s\\n' 'Port @FREE@' 'Listen 127.0.0.1' 'Timeout 60' 'LogFile \"@W@/log\"' 'LogLevel Connect' > @W@/conf; exec tinyproxy -d -c @W@/conf";
    let tiny = format!("/bin/sh -c {}", quoted(tiny));
    vec![
        parent(
            "W25b",
            "through squid, as it is and in tunnels",
            &squid,
            "up.test",
            "curl -sS http://up.test:@HTTP@/plain; curl -sSk https://up.test:@HTTPS@/tunnel; curl -sS --noproxy '*' http://up.test:@HTTP@/free
             curl -s -o /dev/null -w '%{http_code}\\n' http://other.test:@HTTP@/; curl -sk https://other.test:@HTTPS@/ || echo refused",
        )
        .needs(Need::Tool("squid"))
        .boxed(prints("hello GET 0\nhello GET 0\nhello GET 0\n403\nrefused"))
        .boxed(host("grep -q 'GET http://up.test:@HTTP@/plain' @W@/log"))
        .boxed(host("grep -q 'CONNECT up.test:@HTTPS@' @W@/log"))
        .boxed(host("grep -q 'CONNECT up.test:@HTTP@' @W@/log")),
        parent(
            "W25c",
            "through squid, with TLS that is opened",
            &squid,
            "up.test",
            "curl -sS https://up.test:@HTTPS@/asked; curl -sS -d x https://up.test:@HTTPS@/changed; curl -sS -d x http://up.test:@HTTP@/changed
             curl -sS -d x https://other.test:@HTTPS@/changed",
        )
        .needs(Need::Tool("squid"))
        .flag(Flag::NetMethods("read-only".into()))
        .boxed(prints("hello GET 0"))
        .boxed(heard("request GET /asked"))
        .boxed(not(heard("/changed")))
        .boxed(host("grep -q 'CONNECT up.test:@HTTPS@' @W@/log")),
        parent(
            "W25d",
            "through tinyproxy, as it is and in tunnels",
            &tiny,
            "localhost",
            "curl -sS --noproxy '' http://localhost:@HTTP@/plain; curl -sSk --noproxy '' https://localhost:@HTTPS@/tunnel
             curl -s -o /dev/null -w '%{http_code}\\n' http://other.test:@HTTP@/; curl -sk https://other.test:@HTTPS@/ || echo refused",
        )
        .needs(Need::Tool("tinyproxy"))
        .boxed(prints("hello GET 0\nhello GET 0\n403\nrefused"))
        .boxed(host("grep -q 'GET http://localhost:@HTTP@/plain' @W@/log"))
        .boxed(host("grep -q 'CONNECT localhost:@HTTPS@' @W@/log")),
    ]
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
