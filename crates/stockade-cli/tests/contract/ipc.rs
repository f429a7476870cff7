//! I: sockets of the host are out of reach; sockets made inside work.

use stockade_test::{Case, Flag, HostSide, Need, allowed, attack, heard, prints};

/// Connects to each path and sends it its own word.
const CONNECT: &str = r"
def say(path, word):
    def go():
        s = socket.socket(socket.AF_UNIX); s.connect(path); s.send(word.encode()); s.close()
    trying(word, go)
";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = pathname();
    cases.extend(granted_and_inside());
    cases
}

fn connect(source: &str) -> String {
    format!("{CONNECT}{source}")
}

fn pathname() -> Vec<Case> {
    vec![
        attack("I01", "connect to a socket of the host")
            .side(HostSide::UnixStream("@OUT@/s.sock"))
            .python(connect("say('@OUT@/s.sock', 'hello')"))
            .leak(heard("connected")),
        attack("I01b", "connect to a socket of the host inside the project")
            .side(HostSide::UnixStream("@P@/s.sock"))
            .python(connect("say('s.sock', 'hello'); say('@P@/s.sock', 'again')"))
            .leak(heard("connected")),
        attack("I02", "send a datagram to a socket of the host")
            .side(HostSide::UnixDatagram("@OUT@/d.sock"))
            .python(
                r"
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
trying('sendmsg', lambda: s.sendmsg([b'by-sendmsg'], [], 0, '@OUT@/d.sock'))
trying('sendto', lambda: s.sendto(b'by-sendto', '@OUT@/d.sock'))
trying('connect', lambda: (s.connect('@OUT@/d.sock'), s.send(b'by-connect')))
# sendmmsg is no method of a socket: build the message by hand.
name = struct.pack('H', 1) + b'@OUT@/d.sock\0'
address, data = ctypes.create_string_buffer(name), ctypes.create_string_buffer(b'by-sendmmsg')
vector = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(data), 11))
header = struct.pack('QIxxxxQQQQi4xI4x', ctypes.addressof(address), len(name), ctypes.addressof(vector), 1, 0, 0, 0, 0)
fresh = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
tell('sendmmsg', call(307 if _X86 else 269, fresh.fileno(), header, 1, 0))
",
            )
            .leak(heard("by-sendmsg"))
            .leak(heard("by-sendto"))
            .leak(heard("by-connect"))
            .leak(heard("by-sendmmsg")),
        attack("I02b", "reconnect one end of a datagram pair to a socket of the host")
            .side(HostSide::UnixDatagram("@OUT@/d.sock"))
            .python(
                r"
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
trying('sendto', lambda: a.sendto(b'pair-sendto', '@OUT@/d.sock'))
trying('sendmsg', lambda: a.sendmsg([b'pair-sendmsg'], [], 0, '@OUT@/d.sock'))
trying('connect', lambda: (a.connect('@OUT@/d.sock'), a.send(b'pair-connect')))
",
            )
            .leak(heard("pair-connect")),
        attack("I03", "reach a socket of the host by other spellings of its path")
            .side(HostSide::UnixStream("@OUT@/s.sock"))
            .setup("ln -s @OUT@ dir; ln -s @OUT@/s.sock link")
            .python(connect(
                r"
say('../out/s.sock', 'relative'); say('dir/s.sock', 'directory'); say('link', 'link')
say('/proc/self/cwd/../out/s.sock', 'cwd'); say('/proc/self/root@OUT@/s.sock', 'root')
fd = os.open('@OUT@', os.O_PATH | os.O_DIRECTORY); say(f'/proc/self/fd/{fd}/s.sock', 'descriptor')
os.chdir('@OUT@'); say('s.sock', 'chdir')
",
            ))
            .leak(heard("relative"))
            .leak(heard("directory"))
            .leak(heard("link"))
            .leak(heard("cwd"))
            .leak(heard("root"))
            .leak(heard("descriptor"))
            .leak(heard("chdir")),
        attack("I03b", "change the address in memory while it is being judged")
            .side(HostSide::UnixStream("@OUT@/s.sock"))
            .python(
                r"
import mmap
# A server of one's own at a path of the same length: allowed, and then it is not that path.
os.mkdir('/tmp/@ID@'); outside = b'@OUT@/s.sock'
inside = b'/tmp/@ID@/'; inside += b's' * (len(outside) - len(inside))
server = socket.socket(socket.AF_UNIX); server.bind(inside); server.listen(4096)
page, size = mmap.mmap(-1, 4096), 2 + len(inside) + 1
page[0:size] = struct.pack('H', 1) + inside + b'\0'
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
pid = os.fork()
if pid == 0:
    while True:
        page[2:size - 1] = outside; page[2:size - 1] = inside
end = time.monotonic() + @RACE@
reached = inside
while reached != outside and time.monotonic() < end:
    with socket.socket(socket.AF_UNIX) as s:
        s.setblocking(False)
        if _libc.connect(s.fileno(), ctypes.c_void_p(address), size) == 0:
            reached = os.fsencode(s.getpeername())
os.kill(pid, 9); os.waitpid(pid, 0)
import shutil; shutil.rmtree('/tmp/@ID@')
",
            )
            .leak(heard("connected")),
        attack("I04", "connect to an abstract socket of the host")
            .side(HostSide::Abstract("@ID@"))
            .python(connect(r"say('\0@ID@', 'hello')"))
            .leak(heard("connected")),
        attack("I09", "the container engine's socket in /run")
            .root_setup("mkdir /run/@ID@; chmod 755 /run/@ID@")
            .side(HostSide::UnixStream("/run/@ID@/docker.sock"))
            .python(connect("say('/run/@ID@/docker.sock', 'hello'); say('/var/run/@ID@/docker.sock', 'again')"))
            .cleanup("rm -rf /run/@ID@")
            .leak(heard("connected")),
        attack("I09b", "a socket of the host in a project below /tmp")
            .setup("mkdir -m 755 /tmp/@ID@")
            .cwd("/tmp/@ID@")
            .side(HostSide::UnixStream("/tmp/@ID@/s.sock"))
            .python(connect("say('/tmp/@ID@/s.sock', 'whole'); say('s.sock', 'relative')"))
            .cleanup("rm -rf /tmp/@ID@")
            .leak(heard("connected")),
        attack("I09c", "a socket of the host below /tmp, which was granted")
            .setup("mkdir -m 755 /tmp/@ID@")
            .flag(Flag::Write("/tmp".into()))
            .side(HostSide::UnixStream("/tmp/@ID@/s.sock"))
            .python(connect("say('/tmp/@ID@/s.sock', 'hello')"))
            .cleanup("rm -rf /tmp/@ID@")
            .leak(heard("connected")),
        attack("I10", "the key agent and the session bus named by the environment")
            .setup("mkdir -m 755 /tmp/@ID@")
            .side(HostSide::UnixStream("/tmp/@ID@/agent"))
            .env("SSH_AUTH_SOCK", "/tmp/@ID@/agent")
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/tmp/@ID@/agent")
            .python(connect(
                "say(os.environ.get('SSH_AUTH_SOCK', '/tmp/@ID@/agent'), 'agent')
print(os.environ.get('DBUS_SESSION_BUS_ADDRESS', 'no bus'))",
            ))
            .cleanup("rm -rf /tmp/@ID@")
            .leak(heard("connected"))
            .leak(prints("unix:path")),
    ]
}

fn granted_and_inside() -> Vec<Case> {
    vec![
        allowed("I05", "servers made inside, in the project and in /tmp")
            .python(
                r"
import threading
def serve(path, kind):
    server = socket.socket(socket.AF_UNIX, kind); server.bind(path)
    server.listen(1)
    client = socket.socket(socket.AF_UNIX, kind); client.connect(path)
    peer, _ = server.accept(); client.send(b'x'); return peer.recv(9)
os.mkdir('/tmp/@ID@')
for name, path, kind in (('project', 's.sock', 1), ('tmp', '/tmp/@ID@/s', 1), ('abstract', '\0@ID@', 1), ('packets', 'd.sock', socket.SOCK_SEQPACKET)):
    trying(name, lambda: serve(path, kind))
a, b = socket.socketpair(); a.send(b'x'); print('pair', b.recv(1))
import shutil; shutil.rmtree('/tmp/@ID@')
",
            )
            .works(prints("project=OK"))
            .works(prints("tmp=OK"))
            .works(prints("abstract=OK"))
            .works(prints("packets=OK"))
            .works(prints("pair b'x'")),
        allowed("I05b", "descriptors pass through a socket made inside")
            .python(
                r"
import array
a, b = socket.socketpair()
r, w = os.pipe()
socket.send_fds(a, [b'x'], [w]); _, fds, _, _ = socket.recv_fds(b, 9, 1)
os.write(fds[0], b'passed'); print(os.read(r, 9))
",
            )
            .works(prints("passed")),
        attack("I07", "one socket granted, its neighbour not")
            .flag(Flag::Unix("@OUT@/a.sock".into()))
            .side(HostSide::UnixStream("@OUT@/a.sock"))
            .side(HostSide::UnixStream("@OUT@/b.sock"))
            .python(connect("say('@OUT@/a.sock', 'to-a'); say('@OUT@/b.sock', 'to-b')"))
            .works(heard("to-a"))
            .leak(heard("to-b")),
        attack("I07c", "a granted socket that is a link, planted by an earlier run")
            .flag(Flag::Unix("@P@/evil.sock".into()))
            .side(HostSide::UnixStream("@OUT@/s.sock"))
            .setup("ln -s @OUT@/s.sock evil.sock")
            .python(connect("say('@P@/evil.sock', 'planted'); say('@OUT@/s.sock', 'direct')"))
            .leak(heard("planted"))
            .leak(heard("direct"))
            .may_refuse(),
        attack("I07b", "a granted socket in /run, its neighbour not")
            .root_setup("mkdir /run/@ID@; chmod 755 /run/@ID@")
            .needs(Need::Root)
            .flag(Flag::Unix("/run/@ID@/a.sock".into()))
            .side(HostSide::UnixStream("/run/@ID@/a.sock"))
            .side(HostSide::UnixStream("/run/@ID@/b.sock"))
            .python(connect("say('/run/@ID@/a.sock', 'to-a'); say('/run/@ID@/b.sock', 'to-b')"))
            .cleanup("rm -rf /run/@ID@")
            .works(heard("to-a"))
            .leak(heard("to-b")),
    ]
}
