//! F40–F63: a program inside gets from each call on names and sockets what the kernel gives outside.

use std::time::Duration;

use stockade_test::case::Control;
use stockade_test::{Case, Need, allowed, exits, host, not, prints, stdout_is};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = errors();
    cases.extend(callers());
    cases.extend(blocking());
    cases.extend(descriptors());
    cases.extend(arguments());
    cases
}

/// The order in which the kernel finds errors.
fn errors() -> Vec<Case> {
    vec![
        allowed("F40", "what exists outside the grants can't be made: EEXIST")
            .setup("mkdir @OUT@/d; echo x > @OUT@/f; ln -s f @OUT@/l")
            .python(
                r"
for name in ('/usr/lib', '/', '/proc', '/dev/null', '/tmp', '@OUT@/d', '@OUT@/f', '@OUT@/l', '.', '..', '@P@'):
    trying('mkdir', lambda: os.mkdir(name))
for name in ('/usr/lib', '@OUT@/d', '@OUT@/f', '@OUT@/l'):
    trying('symlink', lambda: os.symlink('x', name))
    trying('link', lambda: os.link('@OUT@/f', name))
    trying('mkfifo', lambda: os.mkfifo(name))
    trying('open', lambda: os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
",
            )
            .works(stdout_is(
                "mkdir=EEXIST\nmkdir=EEXIST\nmkdir=EEXIST\nmkdir=EEXIST\nmkdir=EEXIST\nmkdir=EEXIST\nmkdir=EEXIST\n\
                 mkdir=EEXIST\nmkdir=EEXIST\nmkdir=EEXIST\nmkdir=EEXIST\n\
                 symlink=EEXIST\nlink=EEXIST\nmkfifo=EEXIST\nopen=EEXIST\n\
                 symlink=EEXIST\nlink=EEXIST\nmkfifo=EEXIST\nopen=EEXIST\n\
                 symlink=EEXIST\nlink=EEXIST\nmkfifo=EEXIST\nopen=EEXIST\n\
                 symlink=EEXIST\nlink=EEXIST\nmkfifo=EEXIST\nopen=EEXIST",
            )),
        allowed("F40b", "what is missing outside the grants can't be removed: ENOENT")
            .python(
                r"
for top in ('/usr/lib', '@OUT@', '/usr/nope', '@P@'):
    trying('unlink', lambda: os.unlink(top + '/nope'))
    trying('rmdir', lambda: os.rmdir(top + '/nope'))
    trying('rename', lambda: os.rename(top + '/nope', '@P@/x'))
    trying('within', lambda: os.rename(top + '/nope', top + '/other'))
    trying('link', lambda: os.link(top + '/nope', top + '/other'))
    trying('chmod', lambda: os.chmod(top + '/nope', 0o600))
    trying('truncate', lambda: os.truncate(top + '/nope', 0))
    trying('open', lambda: os.open(top + '/nope/x', os.O_CREAT | os.O_WRONLY))
",
            )
            .works(prints("unlink=ENOENT"))
            .works(not(prints("=EACCES")))
            .works(not(prints("=EROFS")))
            .works(not(prints("=EPERM"))),
        allowed("F40c", "a rename to another file system is EXDEV before anything is judged")
            .setup("mkdir -p tree/.vscode; echo x > tree/f; mkdir .idea; echo x > .idea/w")
            .python(
                r"
for name in ('tree', 'tree/f', 'tree/.vscode', '.idea', '.idea/w'):
    trying('out', lambda: os.rename(name, '/dev/shm/@ID@'))
    trying('link', lambda: os.link(name, '/dev/shm/@ID@')) if os.path.isfile(name) else None
os.mkdir('/dev/shm/@ID@'); os.mkdir('/dev/shm/@ID@/.vscode')
for name in ('t', '.bashrc', '.vscode'): trying('in', lambda: os.rename('/dev/shm/@ID@', name))
trying('in', lambda: os.rename('/dev/shm/@ID@/.vscode', '.vscode'))
os.rmdir('/dev/shm/@ID@/.vscode'); os.rmdir('/dev/shm/@ID@')
",
            )
            .works(prints("out=EXDEV"))
            .works(prints("in=EXDEV"))
            .works(not(prints("=EACCES")))
            .works(not(prints("=OK"))),
        allowed("F40d", "directories move to /tmp and back")
            .setup("mkdir -p tree/sub; echo x > tree/sub/f")
            .sh("set -e; d=$(mktemp -d); mv tree $d/t; cat $d/t/sub/f; mv $d/t back; rmdir $d; cat back/sub/f")
            .works(exits(0))
            .works(host("test -e back/sub/f -a ! -e tree")),
        allowed("F40e", "removing what is not there, making what is there")
            .needs(Need::Tool("node"))
            .sh("set -e; rm -f /usr/lib/nope /usr/nope/x; mkdir -p /usr/lib @OUT@
                 /usr/bin/python3 -c 'import pathlib; pathlib.Path(\"/usr/lib/nope\").unlink(missing_ok=True)
pathlib.Path(\"/usr/lib\").mkdir(parents=True, exist_ok=True)'
                 node -e 'fs.mkdirSync(\"/usr/lib\", {recursive: true}); fs.rmSync(\"/usr/lib/nope\", {force: true})'")
            .works(exits(0)),
        allowed("F40f", "the kernel's errors for odd names")
            .setup("mkdir d; echo x > f; ln -s loop loop; mkdir d/full; echo x > d/full/x")
            .python(
                r"
trying('empty', lambda: os.mkdir(''))
trying('dot', lambda: os.rmdir('d/.'))
trying('dotdot', lambda: os.rmdir('d/..'))
trying('full', lambda: os.rmdir('d/full'))
trying('notdir', lambda: os.mkdir('f/x'))
trying('isdir', lambda: os.unlink('d'))
trying('rmfile', lambda: os.rmdir('f'))
trying('loop', lambda: os.mkdir('loop/x'))
trying('long', lambda: os.mkdir('n' * 256))
trying('ontodir', lambda: os.rename('f', 'd'))
trying('ontofile', lambda: os.rename('d', 'f'))
trying('below', lambda: os.rename('d', 'd/full/d'))
trying('slash', lambda: os.open('new/', os.O_CREAT | os.O_WRONLY))
trying('root', lambda: os.rmdir('/'))
trying('rename-dot', lambda: os.rename('d/.', 'e'))
",
            )
            .works(stdout_is(
                "empty=ENOENT\ndot=EINVAL\ndotdot=ENOTEMPTY\nfull=ENOTEMPTY\nnotdir=ENOTDIR\nisdir=EISDIR\nrmfile=ENOTDIR\n\
                 loop=ELOOP\nlong=ENAMETOOLONG\nontodir=EISDIR\nontofile=ENOTDIR\nbelow=EINVAL\nslash=EISDIR\nroot=EBUSY\n\
                 rename-dot=EBUSY",
            )),
    ]
}

/// Callers that are hard to look at.
fn callers() -> Vec<Case> {
    vec![
        // Before Linux 6.9 a descriptor can't be taken from a thread, only from its process.
        allowed("F64", "calls with descriptors by a second thread")
            .python(
                r"
import tempfile, threading
directory = os.open('.', os.O_RDONLY)
# In the sandbox's own /tmp a socket counts as made inside on file systems without birth times too.
place = tempfile.TemporaryDirectory()
def work():
    trying('open', lambda: os.open('made', os.O_CREAT | os.O_WRONLY, dir_fd=directory))
    trying('mkdir', lambda: os.mkdir('sub', dir_fd=directory))
    trying('fchmod', lambda: os.fchmod(os.open('made', os.O_RDONLY), 0o600))
    server = socket.socket(socket.AF_UNIX)
    trying('bind', lambda: server.bind(place.name + '/s'))
    server.listen(1)
    trying('connect', lambda: socket.socket(socket.AF_UNIX).connect(place.name + '/s'))
thread = threading.Thread(target=work)
thread.start(); thread.join()
",
            )
            .works(stdout_is("open=OK\nmkdir=OK\nfchmod=OK\nbind=OK\nconnect=OK")),
        allowed("F50", "a process that is not dumpable makes, renames and binds")
            .python(
                r"
PR_SET_DUMPABLE = 4
_libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
os.mkdir('nd'); os.chdir('nd'); open('f', 'w').write('x'); os.rename('f', 'g'); os.link('g', 'h'); os.symlink('g', 'l'); os.unlink('h')
d = os.open('.', os.O_RDONLY); os.close(os.open('by-descriptor', os.O_CREAT | os.O_WRONLY, dir_fd=d))
s = socket.socket(socket.AF_UNIX); s.bind('s'); s.listen()
c = socket.socket(socket.AF_UNIX); c.connect('s'); open('/dev/null', 'w').close(); os.chmod('g', 0o600); print('done')
",
            )
            .works(prints("done"))
            .works(host("test -e nd/g -a -L nd/l -a -S nd/s -a ! -e nd/h -a -e nd/by-descriptor")),
        allowed("F50b", "a program that can be executed but not read")
            .sh("set -e; cp /bin/mkdir m; cp /bin/touch t; chmod 0111 m t; ./m made; ./t made/f; ./m -p made/a/b")
            .works(exits(0))
            .works(host("test -d made/a/b -a -e made/f")),
        allowed("F50c", "key agents")
            .needs(Need::Tool("ssh-agent"))
            .sh("a=$(ssh-agent -s -a @P@/agent.sock) && eval \"$a\" > /dev/null && { ssh-add -l; test $? -le 1; } && ssh-agent -k > /dev/null")
            .works(exits(0)),
        allowed("F50d", "a key of GnuPG")
            .needs(Need::Tool("gpg"))
            .sh("export GNUPGHOME=@P@/g; mkdir -m 700 g; gpg --batch --quiet --passphrase '' --quick-gen-key a@b.test default default never
                 r=$?; gpgconf --kill all; exit $r")
            .works(exits(0)),
        allowed("F51", "signals whose handlers restart calls do not show in them")
            .python(
                r"
signal.signal(signal.SIGALRM, lambda *_: None); signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
OPENAT, MKDIRAT, UNLINKAT = (257, 258, 263) if _X86 else (56, 34, 35)
wrong = set(); end = time.monotonic() + 3
while time.monotonic() < end:
    fd = call(OPENAT, AT_FDCWD, b'e', os.O_CREAT | os.O_RDWR, 0o600); wrong.add(min(fd, 0)); fd >= 0 and os.close(fd)
    wrong.add(call(UNLINKAT, AT_FDCWD, b'e', 0)); wrong.add(call(MKDIRAT, AT_FDCWD, b'd', 0o755)); wrong.add(call(UNLINKAT, AT_FDCWD, b'd', 0x200))
signal.setitimer(signal.ITIMER_REAL, 0)
print('results', sorted(wrong))
",
            )
            .works(prints("results [0]")),
        allowed("F52", "callers that are killed leave nobody behind")
            .setup("mkfifo fifo")
            .python(
                r"
def started(path, flags):
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL); os.open(path, flags); os._exit(0)
    return pid
# Those of this session: without the sandbox the others are the whole machine's.
def threads():
    count = 0
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try: count += len(os.listdir(f'/proc/{pid}/task')) if os.getsid(int(pid)) == os.getsid(0) else 0
        except OSError: pass
    return count
before = threads()
for round in range(8):
    pids = [started('fifo', os.O_WRONLY) for _ in range(50)]
    time.sleep(0.05)
    for pid in pids: os.kill(pid, 9)
    for pid in pids: os.waitpid(pid, 0)
end = time.monotonic() + 30
# Counted once: bare, other rows start processes in this session at any moment.
left = threads() - before
while left > 0 and time.monotonic() < end: time.sleep(0.05); left = threads() - before
print('left', max(0, left))
# Nobody holds the FIFO: a writer that does not wait finds no reader.
trying('writer', lambda: os.open('fifo', os.O_WRONLY | os.O_NONBLOCK))
",
            )
            .works(prints("left 0"))
            .works(prints("writer=ENXIO")),
        allowed("F52b", "hundreds of callers that wait at once, and others that go on")
            .setup("for i in $(seq 300); do mkfifo f$i; done")
            .python(
                r"
pids = []
for number in range(1, 301):
    pid = os.fork()
    if pid == 0:
        open(f'f{number}', 'w').write('x'); os._exit(0)
    pids.append(pid)
open('others', 'w').close()
got = 0
for number in range(1, 301): got += len(open(f'f{number}').read())
for pid in pids: os.waitpid(pid, 0)
print('got', got)
",
            )
            .works(prints("got 300"))
            .works(host("test -e others")),
    ]
}

/// Calls that wait, and how their waiting ends.
fn blocking() -> Vec<Case> {
    vec![
        allowed("F53", "a signal ends the wait for the other end of a FIFO")
            .python(
                r"
OPENAT = 257 if _X86 else 56
os.mkfifo('f'); signal.signal(signal.SIGALRM, lambda *_: None); signal.siginterrupt(signal.SIGALRM, True)
for flags in (os.O_WRONLY, os.O_RDONLY):
    signal.alarm(1); tell('open', call(OPENAT, AT_FDCWD, b'f', flags, 0))
# With a handler that restarts, it goes on waiting until somebody comes.
signal.siginterrupt(signal.SIGALRM, False)
if os.fork() == 0:
    time.sleep(2); os.close(os.open('f', os.O_RDONLY)); os._exit(0)
signal.alarm(1); tell('restarted', call(OPENAT, AT_FDCWD, b'f', os.O_WRONLY, 0)); os.wait()
",
            )
            .works(stdout_is("open=EINTR\nopen=EINTR\nrestarted=OK")),
        allowed("F53b", "a writer that was killed while it waited is gone")
            .needs(Need::Tool("python3"))
            // A writer that was killed may count for some milliseconds more (docs/compatibility.md);
            // on a busy machine that is until a reader has seen it go.
            .sh("mkfifo f; timeout 0.5 sh -c 'echo stale > f'; echo code-$?
                 /usr/bin/python3 -c 'import os
fd = os.open(\"f\", os.O_RDONLY | os.O_NONBLOCK)
while True:
    try:
        if not os.read(fd, 9): break
    except BlockingIOError: pass'
                 (echo real > f) & cat f; wait")
            .works(prints("code-124"))
            .works(prints("real"))
            .works(not(prints("stale"))),
        allowed("F53c", "job control and termination reach who waits in a FIFO")
            .python(
                r"
os.mkfifo('f')
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT, signal.SIGKILL):
    pid = os.fork()
    if pid == 0:
        import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        os.open('f', os.O_WRONLY); os._exit(0)
    time.sleep(0.2); os.kill(pid, number)
    print(-os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == number)
pid = os.fork()
if pid == 0: os.open('f', os.O_WRONLY); os._exit(5)
time.sleep(0.2); os.kill(pid, signal.SIGSTOP); print(os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]))
os.kill(pid, signal.SIGCONT); fd = os.open('f', os.O_RDONLY); print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
",
            )
            .works(stdout_is("True\nTrue\nTrue\nTrue\nTrue\nTrue\n5")),
        allowed("F54", "twenty clients wait for a backlog of two")
            .python(
                r"
import threading
server = socket.socket(socket.AF_UNIX); server.bind('s'); server.listen(2)
errors, connected = [], []
def client():
    s = socket.socket(socket.AF_UNIX)
    try: s.connect('s'); connected.append(s)
    except OSError as error: errors.append(errno.errorcode[error.errno])
threads = [threading.Thread(target=client) for _ in range(20)]
[thread.start() for thread in threads]
accepted = [server.accept() for _ in range(20)]
[thread.join() for thread in threads]
print(len(connected), errors)
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
more = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) for _ in range(8)]
print({more_.connect_ex('s') for more_ in more} == {0, errno.EAGAIN})
",
            )
            .works(stdout_is("20 []\nTrue")),
        allowed("F54b", "a second connect, and a socket that has a time limit for sending")
            .python(
                r"
for server, name in ((socket.socket(), ('127.0.0.1', 0)), (socket.socket(socket.AF_UNIX), 's')):
    server.bind(name); server.listen(1)
    client = socket.socket(server.family); client.connect(server.getsockname())
    trying('again', lambda: client.connect(server.getsockname()))
full = socket.socket(socket.AF_UNIX); full.bind('full'); full.listen(0)
kept = []
for _ in range(4):
    s = socket.socket(socket.AF_UNIX); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, 200000)); kept.append(s)
    last = s.connect_ex('full')
print(errno.errorcode[last]); print(kept[0].getblocking(), os.get_blocking(kept[0].fileno()))
trying('missing', lambda: socket.socket(socket.AF_UNIX).connect('nope'))
trying('file', lambda: (open('file', 'w').close(), socket.socket(socket.AF_UNIX).connect('file')))
dead = socket.socket(socket.AF_UNIX); dead.bind('dead'); dead.close()
trying('dead', lambda: socket.socket(socket.AF_UNIX).connect('dead'))
trying('type', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect('s'))
trying('bound', lambda: socket.socket(socket.AF_UNIX).bind('s'))
",
            )
            .works(stdout_is(
                "again=EISCONN\nagain=EISCONN\nEAGAIN\nTrue True\nmissing=ENOENT\nfile=ECONNREFUSED\ndead=ECONNREFUSED\n\
                 type=EPROTOTYPE\nbound=EADDRINUSE",
            )),
        allowed("F54c", "who connects is seen by the server")
            .python(
                r"
server = socket.socket(socket.AF_UNIX); server.bind('s'); server.listen()
pid = os.fork()
if pid == 0:
    s = socket.socket(socket.AF_UNIX); s.connect('s'); s.recv(1); os._exit(0)
peer, _ = server.accept()
_, uid, _ = struct.unpack('3i', peer.getsockopt(socket.SOL_SOCKET, 17, 12))
print('uid', uid == os.getuid()); peer.send(b'x'); os.wait()
",
            )
            .works(prints("uid True")),
        allowed("F55", "a file on lease is opened when its holder lets go")
            .python(
                r"
import fcntl
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open('l', os.O_CREAT | os.O_RDWR, 0o644); fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
trying('now', lambda: os.open('l', os.O_WRONLY | os.O_NONBLOCK))
pid = os.fork()
if pid == 0:
    os.close(fd); os.write(os.open('l', os.O_WRONLY), b'x'); os._exit(7)
time.sleep(0.5); print(os.waitpid(pid, os.WNOHANG)[0])
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK); print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
",
            )
            .works(stdout_is("now=EAGAIN\n0\n7")),
    ]
}

/// What a descriptor is that was handed over.
fn descriptors() -> Vec<Case> {
    vec![
        allowed("F56", "locks, leases and executables are free as soon as a file is closed")
            .python(
                r"
import fcntl, subprocess
wrong = [0, 0, 0]
for number in range(300):
    fd = os.open('k', os.O_CREAT | os.O_RDWR, 0o644); fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB); os.close(fd)
    fd = os.open('k', os.O_RDONLY)
    try: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: wrong[0] += 1
    os.close(fd)
    fd = os.open(f'l{number}', os.O_CREAT | os.O_RDWR, 0o644)
    try: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError: wrong[1] += 1
    os.close(fd)
for number in range(60):
    with open(f'x{number}', 'w') as f: f.write('#!/bin/true\n')
    os.chmod(f'x{number}', 0o755)
    try: subprocess.run([f'./x{number}'], check=True)
    except OSError: wrong[2] += 1
print('wrong', wrong)
",
            )
            .works(prints("wrong [0, 0, 0]")),
        allowed("F57", "paths longer than PATH_MAX, by descriptors and by changing directory")
            .python(
                r"
fd = os.open('.', os.O_RDONLY)
for _ in range(40):
    os.mkdir('d' * 200, dir_fd=fd); below = os.open('d' * 200, os.O_RDONLY, dir_fd=fd); os.close(fd); fd = below
os.write(os.open('leaf', os.O_CREAT | os.O_WRONLY, dir_fd=fd), b'x'); os.rename('leaf', 'leaf2', src_dir_fd=fd, dst_dir_fd=fd)
os.link('leaf2', 'leaf3', src_dir_fd=fd, dst_dir_fd=fd); os.unlink('leaf2', dir_fd=fd); os.symlink('x', 'l', dir_fd=fd)
print('by-descriptor', sorted(os.listdir(fd)))
os.mkdir('e'); os.chdir('e')
for _ in range(40): os.mkdir('d' * 200); os.chdir('d' * 200)
open('f', 'w').close(); os.mkdir('g'); os.rename('f', 'g/f'); print('by-directory', os.listdir('g'))
",
            )
            .works(prints("by-descriptor ['l', 'leaf3']"))
            .works(prints("by-directory ['f']"))
            .cleanup("rm -rf e dddd*"),
        allowed("F58", "files without a name, opened again")
            .python(
                r"
m = os.memfd_create('a'); os.write(m, b'hello')
print(open(f'/proc/self/fd/{m}', 'rb+').read(), os.lseek(m, 0, 1))
with open(f'/proc/self/fd/{m}', 'w') as f: f.write('x')
print(os.pread(m, 9, 0))
f = open('u', 'w+b'); f.write(b'hello'); f.flush(); os.unlink('u')
print(open(f'/dev/fd/{f.fileno()}', 'r+b').read(), f.tell())
open(f'/proc/self/fd/{f.fileno()}', 'wb').close(); print(os.fstat(f.fileno()).st_size)
t = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600); os.write(t, b'hi'); print(open(f'/proc/thread-self/fd/{t}', 'r+b').read())
tell('linkat', call('linkat', AT_FDCWD, b'/proc/self/fd/%d' % t, AT_FDCWD, b'linked', 0x400)); print(open('linked').read())
ro = os.open('linked', os.O_RDONLY); print(os.write(os.open(f'/proc/self/fd/{ro}', os.O_WRONLY), b'yo'), open('linked').read())
r, w = os.pipe(); print(os.write(os.open(f'/proc/self/fd/{w}', os.O_WRONLY), b'p'), os.read(r, 9))
",
            )
            .works(stdout_is(
                "b'hello' 5\nb'x'\nb'hello' 5\n0\nb'hi'\nlinkat=OK\nhi\n2 yo\n1 b'p'",
            )),
        allowed("F59", "who watches a directory hears of its end")
            .python(
                r"
IN_DELETE_SELF, IN_IGNORED = 0x400, 0x8000
os.mkdir('d'); open('d/f', 'w').close(); os.rename('d/f', 'd/g'); os.mkdir('d/e')
fd = _libc.inotify_init1(os.O_NONBLOCK); _libc.inotify_add_watch(fd, b'd', IN_DELETE_SELF)
os.unlink('d/g'); os.rmdir('d/e'); os.rmdir('d')
import select
ready, _, _ = select.select([fd], [], [], 20)
mask = struct.unpack_from('iIII', os.read(fd, 4096))[1] if ready else 0
print('deleted', bool(mask & IN_DELETE_SELF))
",
            )
            .works(prints("deleted True")),
        allowed("F59b", "flags of a descriptor are those that were asked for")
            .python(
                r"
import fcntl
for flags in (os.O_CREAT | os.O_WRONLY, os.O_RDWR | os.O_APPEND, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW, os.O_WRONLY | os.O_SYNC, os.O_RDWR | os.O_NOATIME):
    fd = os.open('f', flags, 0o644)
    print(oct(fcntl.fcntl(fd, fcntl.F_GETFL) & ~0o100000), fcntl.fcntl(fd, fcntl.F_GETFD)); os.close(fd)
lowest = os.open('/dev/null', os.O_RDONLY); os.close(lowest); fd = os.open('g', os.O_CREAT | os.O_WRONLY); print(fd == lowest)
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (fd + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
trying('full', lambda: os.open('never', os.O_CREAT | os.O_WRONLY)); print(os.path.exists('never'))
",
            )
            .works(stdout_is(
                "0o1 1\n0o2002 1\n0o404002 1\n0o4010001 1\n0o1000002 1\nTrue\nfull=EMFILE\nFalse",
            )),
    ]
}

/// Arguments that only few programs pass.
fn arguments() -> Vec<Case> {
    vec![
        allowed("F60", "attributes of links and of files behind them")
            .setup("echo x > a; ln -s a l")
            .python(
                r"
os.setxattr('a', 'user.t', b'1', follow_symlinks=False); print(os.getxattr('a', 'user.t'))
os.setxattr('l', 'user.u', b'2'); print(os.getxattr('a', 'user.u'))
trying('link', lambda: os.setxattr('l', 'user.t', b'1', follow_symlinks=False))
os.removexattr('a', 'user.t', follow_symlinks=False); os.removexattr('l', 'user.u'); print(os.listxattr('a'))
trying('missing', lambda: os.removexattr('a', 'user.t', follow_symlinks=False))
",
            )
            .works(stdout_is("b'1'\nb'2'\nlink=EPERM\n[]\nmissing=ENODATA")),
        allowed("F61", "a path of 4,096 bytes is too long, one of 4,095 is not")
            .python(
                r"
os.mkdir('d')
fits, long = './' * 2046 + 'abc', './' * 2047 + 'zz'
print(len(fits), len(long))
trying('fits', lambda: os.close(os.open(fits, os.O_CREAT | os.O_WRONLY)))
for name, function in (('open', lambda p: os.open(p, os.O_CREAT | os.O_WRONLY)), ('mkdir', os.mkdir), ('unlink', os.unlink), ('rename', lambda p: os.rename('d', p)), ('symlink', lambda p: os.symlink('x', p))):
    trying(name, lambda: function(long))
trying('target', lambda: os.symlink('x' * 4096, 'l'))
",
            )
            .works(stdout_is(
                "4095 4096\nfits=OK\nopen=ENAMETOOLONG\nmkdir=ENAMETOOLONG\nunlink=ENAMETOOLONG\nrename=ENAMETOOLONG\n\
                 symlink=ENAMETOOLONG\ntarget=ENAMETOOLONG",
            )),
        allowed("F62", "flags that do not exist, or not together")
            .setup("echo x > a; echo y > b")
            .python(
                r"
UNLINKAT, FCHMODAT2 = (263, 452) if _X86 else (35, 452)
for flags in (3, 8, 1 << 30): tell('rename', call('renameat2', AT_FDCWD, b'a', AT_FDCWD, b'b', flags))
tell('noreplace', call('renameat2', AT_FDCWD, b'a', AT_FDCWD, b'b', 1))
tell('unlink', call(UNLINKAT, AT_FDCWD, b'a', 0x400))
tell('link', call('linkat', AT_FDCWD, b'a', AT_FDCWD, b'c', 0x100))
tell('chmod', call(FCHMODAT2, AT_FDCWD, b'a', 0o600, 0x2000))
tell('mknod', call('mknodat', AT_FDCWD, b'n', 0o170000, 0))
tell('openat2', call('openat2', AT_FDCWD, b'a', struct.pack('QQQ', 1 << 40, 0, 0), 24))
tell('size', call('openat2', AT_FDCWD, b'a', struct.pack('QQQ', 0, 0, 0), 8))
tell('badfd', call('renameat2', 999, b'a', AT_FDCWD, b'c', 0))
tell('notdir', call('mknodat', os.open('a', os.O_RDONLY), b'n', 0o10644, 0))
tell('fault', call('renameat2', AT_FDCWD, 1, AT_FDCWD, b'c', 0))
",
            )
            .works(stdout_is(
                "rename=EINVAL\nrename=EINVAL\nrename=EINVAL\nnoreplace=EEXIST\nunlink=EINVAL\nlink=EINVAL\nchmod=EINVAL\n\
                 mknod=EINVAL\nopenat2=EINVAL\nsize=EINVAL\nbadfd=EBADF\nnotdir=ENOTDIR\nfault=EFAULT",
            )),
        allowed("F63", "an owner that does not exist inside is refused as one that may not be given")
            .setup("echo x > a")
            .python(
                "for uid, gid in ((65533, -1), (-1, 65533), (4000000, 4000000)): trying('chown', lambda: os.chown('a', uid, gid))
trying('own', lambda: os.chown('a', os.getuid(), os.getgid()))",
            )
            .control(Control::Absent("root may give files away outside"))
            .boxed(stdout_is("chown=EPERM\nchown=EPERM\nchown=EPERM\nown=OK")),
    ]
    .into_iter()
    .map(|case| case.bound(Duration::from_secs(120)))
    .collect()
}
