# A registry of packages for pip, npm, go and cargo, and a repository for git, on a port of loopback.
# Every request is a line on standard error: the Host header and the path.
import base64, hashlib, http.server, io, json, os, sys, tarfile, zipfile

def zipped(files):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
    return packed.getvalue()

info = "pkg-1.0.dist-info"
wheel = zipped({
    "pkg/__init__.py": "def answer(): return 42\n",
    info + "/METADATA": "Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n",
    info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    info + "/RECORD": "pkg/__init__.py,,\n%s/METADATA,,\n%s/WHEEL,,\n%s/RECORD,,\n" % (info, info, info),
})
mod = "module go.test/mod\n"
module = zipped({"go.test/mod@v1.0.0/go.mod": mod, "go.test/mod@v1.0.0/m.go": "package mod\n"})
def tarred(directory, files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as t:
        for name, text in files.items():
            member = tarfile.TarInfo(directory + "/" + name); member.size = len(text)
            t.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()

tgz = tarred("package", {"package.json": '{"name":"pkg","version":"1.0.0"}', "index.js": "module.exports = 42\n"})
crate = tarred("pkg-1.0.0", {
    "Cargo.toml": '[package]\nname = "pkg"\nversion = "1.0.0"\nedition = "2021"\n',
    "src/lib.rs": "pub fn answer() -> u32 { 42 }\n",
})
listing = json.dumps({
    "name": "pkg", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
    "cksum": hashlib.sha256(crate).hexdigest(),
})

def document(host):
    sum = "sha512-" + base64.b64encode(hashlib.sha512(tgz).digest()).decode()
    dist = {"tarball": "http://%s/npm/pkg/-/pkg-1.0.0.tgz" % host, "integrity": sum}
    version = {"name": "pkg", "version": "1.0.0", "dist": dist}
    return json.dumps({"name": "pkg", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}})

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        host, path = self.headers.get("Host", "-"), self.path.split("?")[0]
        print(host, path, file=sys.stderr, flush=True)
        known = {
            "/simple/pkg/": '<a href="/files/pkg-1.0-py3-none-any.whl">pkg-1.0-py3-none-any.whl</a>',
            "/files/pkg-1.0-py3-none-any.whl": wheel,
            "/cargo/config.json": json.dumps({"dl": "http://%s/cargo/dl" % host}),
            "/cargo/3/p/pkg": listing,
            "/cargo/dl/pkg/1.0.0/download": crate,
            "/npm/pkg": document(host),
            "/npm/pkg/-/pkg-1.0.0.tgz": tgz,
            "/go/go.test/mod/@v/list": "v1.0.0\n",
            "/go/go.test/mod/@v/v1.0.0.info": '{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}',
            "/go/go.test/mod/@v/v1.0.0.mod": mod,
            "/go/go.test/mod/@v/v1.0.0.zip": module,
        }
        if path not in known:
            return super().do_GET()
        body = known[path]
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(200)
        kinds = {"/simple/": "text/html", "/npm/pkg": "application/json"}
        kind = next((kinds[k] for k in kinds if path.startswith(k) and not path.endswith("gz")), "application/octet-stream")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass

os.chdir(sys.argv[2])
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("ready", flush=True)
server.serve_forever()
