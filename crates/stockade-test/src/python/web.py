"""Hosts for clients in a sandbox: HTTP, HTTPS and an echo, each on a port of its own.

Writes the certificate that its own is signed with to `ca.pem` in the directory that is its argument.
Prints the ports, then `ready`, then every request, so that the suite can tell what arrived. `/echo`
answers with the headers that it got, in a header and in the body; `/raw` with `Authorization` as it
came; `/upgrade` leaves HTTP, and then says what it got.
"""
import base64
import http.server
import os
import socket
import ssl
import subprocess
import sys
import threading


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def tell_headers(self):
        told = []
        for name in ("Authorization", "X-Token", "X-HTTP-Method-Override"):
            value = self.headers.get(name)
            if value and value.startswith("Basic "):
                value = "Basic " + base64.b64decode(value[6:]).decode()
            if value:
                told.append(f"{name}: {value}")
        for line in told:
            say(f"header {self.path} {line}")
        return ", ".join(told)

    def answer(self):
        headers = self.tell_headers()
        if self.path == "/upgrade" and self.headers.get("Upgrade"):
            self.leave(headers)
            return
        body = self.read_body()
        say(f"request {self.command} {self.path} {self.headers.get('Host')} {len(body)}")
        text = f"hello {self.command} {len(body)}\n".encode()
        self.send_response(200)
        if self.path == "/echo":
            text = f"you sent {headers}\n".encode()
            self.send_header("X-Echo", headers)
        if self.path == "/raw":
            text = (self.headers.get("Authorization") or "").encode()
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def read_body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def leave(self, headers):
        say(f"request {self.command} {self.path} {self.headers.get('Host')} 0")
        self.send_response(101)
        self.send_header("Connection", "upgrade")
        self.send_header("Upgrade", self.headers["Upgrade"])
        self.end_headers()
        if headers:
            self.wfile.write(f"you sent {headers}\n".encode())
        data = self.rfile.readline()
        say(f"upgraded {data.decode().strip()}")
        self.wfile.write(data)
        self.close_connection = True

    def __getattr__(self, name):
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def send_error(self, code, *args, **more):
        say(f"bad {self.raw_requestline[:40]!r}")
        super().send_error(code, *args, **more)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, address):
        pass


def start(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def echo():
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(stream):
        say("echo connected")
        with stream:
            while data := stream.recv(65536):
                say(f"echo got {data[:40]!r}")
                stream.sendall(data)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def tls():
    directory = sys.argv[1]
    ca, key, certificate = (os.path.join(directory, name) for name in ("ca.pem", "key", "leaf"))
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    names = "subjectAltName=DNS:a.test,DNS:x.a.test,DNS:c.test,DNS:up.test"
    plain = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", names]
    for command in (
        ["-subj", "/CN=authority of the suite", "-keyout", key + ".ca", "-out", ca],
        ["-subj", "/CN=a.test", "-keyout", key, "-out", certificate, "-CA", ca, "-CAkey", key + ".ca", *plain],
    ):
        subprocess.run(["openssl", "req", "-x509", *curve, *command], check=True, capture_output=True)
    os.chmod(ca, 0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    for name in (key, key + ".ca", certificate):
        os.unlink(name)
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


say(f"HTTP {start(Server(('127.0.0.1', 0), Handler))}")
say(f"HTTPS {start(tls())}")
say(f"ECHO {echo()}")
say("ready")
sys.stdin.read()
