//! Builds and test suites of several languages.

use stockade_test::{Case, Need, host, prints};

use crate::workload;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = compiled();
    cases.extend(interpreted());
    cases
}

fn compiled() -> Vec<Case> {
    vec![
        workload(
            "cargo-build",
            "cargo new, build, test, run",
            &["cc"],
            "export PATH=@TOOLCHAIN@/bin:$PATH
             cargo new --quiet --vcs none app; cd app
             printf 'fn main() { println!(\"built-{}\", twice(21)); }\\nfn twice(n: u32) -> u32 { n * 2 }
             #[cfg(test)] mod tests { #[test] fn twice() { assert_eq!(super::twice(2), 4); } }\\n' > src/main.rs
             cargo build --quiet --offline; cargo test --quiet --offline; cargo run --quiet --offline",
        )
        .needs(Need::Shared("TOOLCHAIN"))
        .works(prints("built-42")),
        workload(
            "cargo-workspace",
            "cargo new with its repository, a workspace with a build script, in parallel",
            &["cc", "git"],
            "export PATH=@TOOLCHAIN@/bin:$PATH
             cargo new --quiet --lib core; cargo new --quiet app
             printf '[workspace]\\nmembers = [\"core\", \"app\"]\\nresolver = \"3\"\\n' > Cargo.toml
             printf 'core2 = { package = \"core\", path = \"../core\" }\\n' >> app/Cargo.toml
             printf 'fn main() { std::fs::write(std::env::var(\"OUT_DIR\").unwrap() + \"/x\", \"y\").unwrap(); }\\n' > app/build.rs
             cargo build --quiet --offline -j2; cargo test --quiet --offline --workspace; cargo clean --quiet",
        )
        .needs(Need::Shared("TOOLCHAIN")),
        workload(
            "make-gcc",
            "make -j with gcc, a static library and a test",
            &["make", "gcc", "ar"],
            "printf 'int add(int a, int b) { return a + b; }\\n' > add.c
             printf 'int add(int, int); int main(void) { return add(2, 2) == 4 ? 0 : 1; }\\n' > main.c
             printf 'all: app\\n\\t./app\\napp: main.o libadd.a\\n\\tgcc -o $@ main.o -L. -ladd\\nlibadd.a: add.o\\n\\tar rcs $@ $<\\n' > Makefile
             make -j2 > log; touch add.c; make -j2 >> log; make -n",
        )
        .works(host("test -x app")),
        workload(
            "go-build",
            "go build and go test",
            &["go"],
            "export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local
             printf 'module app\\n\\ngo 1.19\\n' > go.mod
             printf 'package main\\n\\nimport \"fmt\"\\n\\nfunc main() { fmt.Println(\"built\", twice(21)) }\\n\\nfunc twice(n int) int { return n * 2 }\\n' > main.go
             printf 'package main\\n\\nimport \"testing\"\\n\\nfunc TestTwice(t *testing.T) { if twice(2) != 4 { t.Fail() } }\\n' > main_test.go
             go build -o app . && ./app && go test ./...",
        )
        .works(prints("built 42")),
        workload(
            "java",
            "javac and java with threads",
            &["java", "javac"],
            "printf 'public class A { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println(\"thread\")); t.start(); t.join(); System.out.println(\"done\"); } }\\n' > A.java
             javac A.java; java -cp . A; jar cf a.jar A.class; java -cp a.jar A",
        )
        .cleanup("rmdir /tmp/hsperfdata_* 2> /dev/null || true")
        .works(prints("thread\ndone")),
    ]
}

fn interpreted() -> Vec<Case> {
    vec![
        workload(
            "npm-test",
            "npm test of a local package",
            &["node", "npm"],
            "printf '{\"name\":\"a\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node --test\"}}\\n' > package.json
             printf 'const t = require(\"node:test\"); t(\"adds\", () => { if (1 + 1 !== 2) throw new Error(); });\\n' > a.test.js
             npm test --silent; npm pack --silent",
        )
        .works(host("test -e a-1.0.0.tgz")),
        workload(
            "node-workers",
            "node worker threads, child processes and a pipe server",
            &["node"],
            "cat > w.js <<'EOF'
const { Worker, isMainThread, parentPort } = require('node:worker_threads');
const { execFileSync, fork } = require('node:child_process');
const net = require('node:net');
if (!isMainThread) { parentPort.postMessage('worker'); } else {
  new Worker(__filename).on('message', (m) => {
    console.log(m, execFileSync('echo', ['child']).toString().trim());
    const server = net.createServer((c) => { c.end('pipe'); server.close(); }).listen('./s.sock', () => {
      net.connect('./s.sock').on('data', (d) => console.log(d.toString()));
    });
  });
}
EOF
node w.js",
        )
        .works(prints("worker child"))
        .works(prints("pipe")),
        workload(
            "python-venv",
            "a virtual environment and pip install of a local wheel",
            &["python3", "zip"],
            "mkdir -p w/pkg w/pkg-1.0.dist-info; echo 'def answer(): return 42' > w/pkg/__init__.py; cd w
             printf 'Metadata-Version: 2.1\\nName: pkg\\nVersion: 1.0\\n' > pkg-1.0.dist-info/METADATA
             printf 'Wheel-Version: 1.0\\nGenerator: hand\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > pkg-1.0.dist-info/WHEEL
             printf 'pkg/__init__.py,,\\npkg-1.0.dist-info/METADATA,,\\npkg-1.0.dist-info/WHEEL,,\\npkg-1.0.dist-info/RECORD,,\\n' > pkg-1.0.dist-info/RECORD
             zip -qr ../pkg-1.0-py3-none-any.whl .; cd ..
             /usr/bin/python3 -m venv v; v/bin/pip install -q --no-index --disable-pip-version-check ./pkg-1.0-py3-none-any.whl
             v/bin/python -c 'import pkg; print(\"wheel\", pkg.answer())'",
        )
        .works(prints("wheel 42")),
        workload(
            "python-parallel-tests",
            "a test run spread over worker processes, by fork, spawn and forkserver",
            &["python3"],
            "cat > test_a.py <<'EOF'
import multiprocessing, tempfile, unittest
from concurrent.futures import ProcessPoolExecutor

def work(n):
    with tempfile.NamedTemporaryFile() as f:
        f.write(b'x' * n); f.flush()
    return n * n

class Parallel(unittest.TestCase):
    def test_methods(self):
        for method in ('fork', 'spawn', 'forkserver'):
            context = multiprocessing.get_context(method)
            with ProcessPoolExecutor(3, mp_context=context) as pool:
                self.assertEqual(list(pool.map(work, range(6))), [n * n for n in range(6)])
    def test_shared(self):
        with multiprocessing.Manager() as manager:
            d = manager.dict(); d['k'] = 1
            queue = multiprocessing.Queue(); queue.put(d['k']); self.assertEqual(queue.get(timeout=100), 1)
EOF
/usr/bin/python3 -m unittest -q test_a; /usr/bin/python3 -m compileall -q .",
        ),
        workload(
            "http-loopback",
            "a local test server and a client",
            &["python3", "curl"],
            "mkdir www; echo page > www/f; mkfifo ready
             /usr/bin/python3 -u -c '
import http.server, functools
h = functools.partial(http.server.SimpleHTTPRequestHandler, directory=\"www\")
s = http.server.ThreadingHTTPServer((\"127.0.0.1\", 0), h)
open(\"ready\", \"w\").write(str(s.server_port) + \"\\n\"); s.serve_forever()' 2> /dev/null & pid=$!
             read port < ready; curl -sSf http://127.0.0.1:$port/f; curl -sSf http://localhost:$port/f; kill $pid",
        )
        .works(prints("page\npage")),
        workload(
            "perl",
            "perl with modules, pipes and fork",
            &["perl"],
            "perl -MFile::Temp=tempfile -MData::Dumper -e '
my ($fh, $name) = tempfile(); print $fh \"x\"; close $fh; unlink $name;
open(my $p, \"-|\", \"echo\", \"piped\") or die; print <$p>; close $p;
my $pid = fork // die; if (!$pid) { exit 3 } waitpid($pid, 0); print \"child \", $? >> 8, \"\\n\";'",
        )
        .works(prints("piped\nchild 3")),
    ]
}
