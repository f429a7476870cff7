//! W, as far as it needs no proxy: without network nothing leaves, and loopback is private.

use stockade_test::case::Control;
use stockade_test::{
    Case, Flag, HostSide, Need, allowed, attack, exits, heard, not, prints, stderr_has, stdout_is,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = clients();
    cases.extend(loopback());
    cases.extend(families());
    cases
}

/// A client that tries to reach the host's own address, and is told at once that it can't. None of
/// them may give up waiting for a connection by itself before the case's time is up, so one that
/// has to wait shows however quick or slow the machine is. They do give up waiting for an answer:
/// nobody answers the control.
fn client(id: &'static str, title: &'static str, tool: &'static str, script: &'static str) -> Case {
    attack(id, title)
        .needs(Need::Lan)
        .needs(Need::Tool(tool))
        .side(HostSide::Tcp)
        .sh(script)
        .leak(heard("connected"))
        .boxed(not(exits(0)))
}

fn clients() -> Vec<Case> {
    vec![
        client("W01", "curl", "curl", "curl -sS --speed-limit 1 --speed-time 1 http://@LAN@:@PORT@/"),
        client("W01b", "wget", "wget", "wget -q --connect-timeout=600 --read-timeout=1 -t 1 -O- http://@LAN@:@PORT@/"),
        client("W01c", "nc", "nc", "nc -z -w 600 @LAN@ @PORT@"),
        client("W01d", "bash and /dev/tcp", "bash", "bash -c 'echo hello > /dev/tcp/@LAN@/@PORT@'"),
        client("W01e", "ssh", "ssh", "ssh -o ConnectTimeout=1 -o BatchMode=yes -p @PORT@ @LAN@ true")
            // It has one patience for connection and answer, and says when that has run out.
            .boxed(not(stderr_has("timed out"))),
        client("W01f", "socat", "socat", "echo hello | socat -t 1 - TCP:@LAN@:@PORT@,connect-timeout=600"),
        attack("W01g", "a datagram")
            .needs(Need::Lan)
            .side(HostSide::Udp)
            .python(
                "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
trying('lan', lambda: s.sendto(b'to-lan', ('@LAN@', @UDPPORT@)))
trying('loopback', lambda: s.sendto(b'to-loopback', ('127.0.0.1', @UDPPORT@)))",
            )
            .leak(heard("to-lan"))
            .leak(heard("to-loopback")),
        attack("W01h", "raw sockets")
            .python("trying('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))")
            .leak(prints("raw=OK"))
            .control(Control::RootOnly("nobody else may make them", None)),
        allowed("W02", "a name lookup fails at once")
            // One question that nobody answers would take longer than the case may.
            .sh("export RES_OPTIONS='timeout:30 attempts:5'; getent hosts example.com; getent ahosts stockade.test; true")
            .control(Control::Absent("this machine may have no resolver; W01g shows that no packet leaves"))
            .boxed(stdout_is("")),
        allowed("W02b", "localhost is still a name")
            .sh("getent hosts localhost > /dev/null")
            .works(exits(0)),
        attack("W31", "an empty list of hosts")
            .needs(Need::Lan)
            .needs(Need::Tool("curl"))
            .setup(
                "printf 'version = 1\\nextends = \"workspace-write\"\\n[network]\\nallow = []\\n' > @W@/empty.toml",
            )
            .flag(Flag::Policy("@W@/empty.toml".into()))
            .side(HostSide::Tcp)
            .sh("curl -sS --speed-limit 1 --speed-time 1 http://@LAN@:@PORT@/; curl -sS --speed-limit 1 --speed-time 1 http://127.0.0.1:@PORT@/")
            .leak(heard("connected")),
    ]
}

fn loopback() -> Vec<Case> {
    vec![
        allowed("W03", "a server on loopback, reached from inside")
            .needs(Need::Tool("curl"))
            .python(
                r"
import http.server, subprocess, threading
os.mkdir('www'); open('www/f', 'w').write('page'); os.chdir('www')
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f'http://127.0.0.1:{server.server_port}/f'
print(subprocess.run(['curl', '-sS', '-m', '60', '-w', ' %{http_code}', url], capture_output=True, text=True).stdout)
",
            )
            .works(stdout_is("page 200")),
        allowed("W03b", "loopback by name and over IPv6, and datagrams")
            .python(
                r"
def round_trip(family, host, kind):
    server = socket.socket(family, kind); server.bind((host, 0)); port = server.getsockname()[1]
    client = socket.socket(family, kind)
    if kind == socket.SOCK_DGRAM:
        client.sendto(b'x', (host, port)); return server.recv(1)
    server.listen(1); client.connect((host, port)); peer, _ = server.accept(); client.send(b'x'); return peer.recv(1)
trying('name', lambda: round_trip(socket.AF_INET, 'localhost', socket.SOCK_STREAM))
trying('six', lambda: round_trip(socket.AF_INET6, '::1', socket.SOCK_STREAM))
trying('datagram', lambda: round_trip(socket.AF_INET, '127.0.0.1', socket.SOCK_DGRAM))
trying('any', lambda: round_trip(socket.AF_INET, '0.0.0.0', socket.SOCK_STREAM))
",
            )
            .works(prints("name=OK"))
            .works(prints("six=OK"))
            .works(prints("datagram=OK"))
            .works(prints("any=OK")),
        attack("W04", "the host's loopback")
            .needs(Need::Tool("curl"))
            .side(HostSide::Tcp)
            .sh("curl -sS --speed-limit 1 --speed-time 1 http://127.0.0.1:@PORT@/")
            .leak(heard("connected"))
            .boxed(exits(7)),
        attack("W04b", "a server inside is not on the host's loopback")
            .launcher(
                "mkfifo @W@/o; @RUN@ /usr/bin/python3 -c '
import socket, sys
s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(1)
print(\"@MARK@\", s.getsockname()[1], flush=True)
s.settimeout(100)
try: s.accept()
except OSError: pass' > @W@/o & pid=$!
                 read mark port < @W@/o; echo $mark
                 /usr/bin/python3 -c \"import socket; socket.create_connection(('127.0.0.1', $port), 60)\" && echo reached
                 kill $pid; wait $pid",
            )
            .leak(prints("reached")),
    ]
}

fn families() -> Vec<Case> {
    vec![
        attack("W05", "other socket families")
            .python(
                r"
trying('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))
trying('uevent', lambda: socket.socket(16, socket.SOCK_DGRAM, 15))
trying('generic', lambda: socket.socket(16, socket.SOCK_RAW, 16))
trying('audit', lambda: socket.socket(16, socket.SOCK_RAW, 9))
for name, family in (('bluetooth', 31), ('alg', 38), ('can', 29), ('tipc', 30), ('rds', 21), ('nfc', 39), ('xdp', 44)):
    trying(name, lambda: socket.socket(family, socket.SOCK_RAW))
",
            )
            .leak(prints("vsock=OK"))
            .leak(prints("uevent=OK"))
            .leak(prints("generic=OK"))
            .leak(prints("audit=OK"))
            .boxed(not(prints("=OK"))),
        attack("W05b", "packet sockets")
            .python(
                "trying('packet', lambda: socket.socket(17, socket.SOCK_RAW))
trying('dgram', lambda: socket.socket(17, socket.SOCK_DGRAM))",
            )
            .leak(prints("packet=OK"))
            .leak(prints("dgram=OK"))
            .control(Control::RootOnly("nobody else may make them", None)),
        attack("W05c", "a refused family hidden by the upper half of the register")
            .python("tell('vsock', call('socket', (1 << 32) | 40, 1, 0))")
            .leak(prints("vsock=OK")),
        allowed("W05d", "interfaces can be listed")
            .python("print(socket.if_nameindex()[0][1]); socket.socket(16, socket.SOCK_RAW, 0)")
            .works(stdout_is("lo")),
    ]
}
