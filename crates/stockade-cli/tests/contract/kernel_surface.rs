//! X: the kernel's own doors: namespaces, mounts, tracing, odd system calls, other ABIs.

use stockade_test::case::Control;
use stockade_test::sign::Scene;
use stockade_test::stage::Role;
use stockade_test::{
    Case, Flag, HostSide, Need, allowed, attack, closure, exits, heard, host, prints, stdout_is,
};

/// Detach every overmount: a private copy of the mount tree in a new user namespace, another root,
/// the old one let go; a handle from before then sees what lay beneath. `before` runs first, `act`
/// at the end, with `handle` open on DIRECTORY. It is tried again for a while: the old mounts stay as
/// long as anybody reads the mount table of their namespace (`/proc/PID/mountinfo`), and the census
/// of another test does.
fn detach(directory: &str, act: &str) -> String {
    format!(
        r"
early = os.open('{directory}', os.O_PATH | os.O_DIRECTORY)
uid, gid = os.getuid(), os.getgid()
attempt('unshare', CLONE_NEWUSER | CLONE_NEWNS)
for name, text in (('setgroups', 'deny'), ('uid_map', f'0 {{uid}} 1'), ('gid_map', f'0 {{gid}} 1')):
    try:
        open('/proc/self/' + name, 'w').write(text)
    except OSError:
        pass
attempt('mount', b'none', b'/', None, MS_REC | MS_PRIVATE, None)
late = os.open('{directory}', os.O_PATH | os.O_DIRECTORY)
attempt('mount', b'tmpfs', b'/tmp', b'tmpfs', 0, None)
trying('mkdir', lambda: os.mkdir('/tmp/old'))
attempt('pivot_root', b'/tmp', b'/tmp/old')
os.chdir('/')
attempt('umount2', b'/old', MNT_DETACH)
import time
until, errors = time.monotonic() + @RACE@, ['not tried']
while errors:
    errors = []
    for handle in (early, late):
        try:
            {act}
            errors = []
            break
        except OSError as error:
            errors.append(error)
    if time.monotonic() > until:
        print(*errors)
        break
"
    )
}

const PLANT: &str =
    "os.write(os.open('hooks/pre-commit', os.O_CREAT | os.O_WRONLY, 0o755, dir_fd=handle), b'#!')";
const READ: &str = "print(os.read(os.open('.ssh/id_rsa', os.O_RDONLY, dir_fd=handle), 99))";

/// A shell as process 1 of new namespaces with a `/proc` of their own, so that attacks on process
/// 1 have a target that is not the host's.
const OWN_INIT: &str = "unshare -Urmpf --mount-proc --kill-child @W@/init";
const OWN_INIT_SETUP: &str =
    "printf '#!/bin/sh\\n\"$@\"\\nexit $?\\n' > @W@/init; chmod +x @W@/init";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = namespaces();
    cases.extend(processes());
    cases.extend(calls());
    cases.extend(foreign());
    cases.extend(pseudo_files());
    cases
}

fn namespaces() -> Vec<Case> {
    let hooks = || Flag::DenyWrite("@P@/.git/hooks".into());
    let ssh = || Flag::DenyRead("@HOME@/.ssh".into());
    let ssh_setup = "mkdir @HOME@/.ssh; echo @SECRET@ > @HOME@/.ssh/id_rsa";
    vec![
        attack("X01", "detach overmounts from a nested user namespace, then write")
            .guarded()
            .needs(Need::Userns)
            .flag(hooks())
            .setup("mkdir -p .git/hooks")
            .python(detach("@P@/.git", PLANT))
            .leak(prints("unshare=OK"))
            .leak(host("test -e .git/hooks/pre-commit")),
        attack("X01b", "the same, known to pass through a sandbox made of mounts alone")
            .guarded()
            .needs(Need::Userns)
            .needs(Need::Tool("bwrap"))
            .flag(hooks())
            .setup("mkdir -p .git/hooks")
            .python(detach("@P@/.git", PLANT))
            .control(Control::Behind("bwrap --dev-bind / / --ro-bind @P@/.git/hooks @P@/.git/hooks --"))
            .leak(host("test -e .git/hooks/pre-commit")),
        attack("X02", "detach overmounts from a nested user namespace, then read")
            .guarded()
            .needs(Need::Userns)
            .flag(ssh())
            .setup(ssh_setup)
            .python(detach("@HOME@", READ))
            .leak(prints("@SECRET@")),
        attack("X02b", "the same, known to pass through a sandbox made of mounts alone")
            .guarded()
            .needs(Need::Userns)
            .needs(Need::Tool("bwrap"))
            .flag(ssh())
            .setup(ssh_setup)
            .python(detach("@HOME@", READ))
            .control(Control::Behind("bwrap --dev-bind / / --tmpfs @HOME@/.ssh --"))
            .leak(prints("@SECRET@")),
        attack("X04", "the calls that change mounts")
            .guarded()
            .needs(Need::Userns)
            .setup("mkdir mnt")
            .python(
                r"
target = b'@P@/mnt'
attempt('fsopen', b'tmpfs', 0)
tree = attempt('open_tree', AT_FDCWD, b'/', 0x8001)
attempt('mount', b'tmpfs', target, b'tmpfs', 0, None)
trying('mkdir', lambda: (os.mkdir('mnt/old'), os.mkdir('mnt/at')))
attempt('move_mount', tree, b'', AT_FDCWD, b'@P@/mnt/at', 4)
attempt('fspick', AT_FDCWD, target, 0)
attempt('umount2', b'@P@/mnt/at', MNT_DETACH)
attempt('chroot', b'/')
attempt('pivot_root', target, target + b'/old')
",
            )
            .control(Control::Behind("unshare -Urm"))
            .leak(prints("fsopen=OK"))
            .leak(prints("open_tree=OK"))
            .leak(prints("\nmount=OK"))
            .leak(prints("move_mount=OK"))
            .leak(prints("fspick=OK"))
            .leak(prints("umount2=OK"))
            .leak(prints("chroot=OK"))
            .leak(prints("pivot_root=OK"))
            .boxed(prints("\nmount=EPERM"))
            .boxed(prints("umount2=EPERM"))
            .boxed(prints("pivot_root=EPERM"))
            .boxed(prints("open_tree=EPERM"))
            .boxed(prints("move_mount=EPERM"))
            .boxed(prints("fsopen=EPERM")),
        // By itself: the call came with Linux 5.12.
        attack("X04b", "the call that changes attributes of mounts")
            .guarded()
            .needs(Need::Userns)
            .setup("mkdir mnt")
            .python(
                r"
attempt('mount', b'tmpfs', b'@P@/mnt', b'tmpfs', 0, None)
attempt('mount_setattr', AT_FDCWD, b'@P@/mnt', 0, struct.pack('QQQQ', 2, 0, 0, 0), 32)
",
            )
            .control(Control::Behind("unshare -Urm"))
            .leak(prints("mount_setattr=OK"))
            .boxed(prints("mount_setattr=EPERM")),
        allowed("X05", "threads and children still start")
            .python(
                r"
import threading, subprocess
done = []
threads = [threading.Thread(target=done.append, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(len(done), subprocess.run(['/bin/echo', 'child'], capture_output=True).stdout.decode().strip())
",
            )
            .works(stdout_is("8 child")),
        attack("X06", "a user namespace of one's own")
            .needs(Need::Userns)
            .sh("unshare -Ur true && echo made-one")
            .leak(prints("made-one")),
        allowed("X06b", "a user namespace of one's own, with the opt-in and a warning")
            .only(
                Role::User,
                "mapping root takes CAP_SETFCAP in the parent namespace (user_namespaces(7))",
            )
            .needs(Need::Userns)
            .flag(Flag::NestedNamespaces)
            .sh("unshare -Ur true && echo made-one")
            .works(prints("made-one"))
            .boxed(closure("a warning about namespaces", |scene| {
                scene.outcomes[0].err().to_lowercase().contains("namespace")
            })),
        attack("X06c", "a user namespace by clone and clone3")
            .needs(Need::Userns)
            .python(
                r"
def clone():
    pid = call('clone', CLONE_NEWUSER | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    return pid
def clone3():
    args = struct.pack('Q' * 11, CLONE_NEWUSER, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    pid = call('clone3', args, len(args))
    if pid == 0: os._exit(0)
    return pid
tell('clone', clone()); tell('clone3', clone3())
# The kernel reads flags as an int in places: nothing may hide in the upper half.
tell('upper', call('unshare', CLONE_NEWUSER | (1 << 40)))
",
            )
            .leak(prints("clone=OK"))
            .leak(prints("clone3=OK"))
            .boxed(prints("upper=E")),
        attack("X06d", "join a namespace")
            .python("attempt('setns', os.open('/proc/self/ns/uts', os.O_RDONLY), 0)")
            .leak(prints("setns=OK"))
            .control(Control::RootOnly("nobody else may join the host's", None)),
        attack("X08", "unmount /proc")
            .guarded()
            .needs(Need::Userns)
            .setup(OWN_INIT_SETUP)
            .python("attempt('umount2', b'/proc', MNT_DETACH)")
            .control(Control::Behind(OWN_INIT))
            .leak(prints("umount2=OK"))
            .boxed(prints("umount2=EPERM")),
    ]
}

fn processes() -> Vec<Case> {
    vec![
        attack("X07", "trace and rewrite process 1")
            .guarded()
            .needs(Need::Userns)
            .setup(OWN_INIT_SETUP)
            .python(
                r"
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
tell('ptrace', call('ptrace', PTRACE_SEIZE, 1, 0, 0))
trying('mem', lambda: os.open('/proc/1/mem', os.O_RDWR))
trying('environ', lambda: open('/proc/1/environ', 'rb').read())
def overwrite():
    stack = [l for l in open('/proc/1/maps') if '[stack]' in l][0]
    top = int(stack.split('-')[1].split()[0], 16) - 64
    buffer = ctypes.create_string_buffer(8)
    local = struct.pack('QQ', ctypes.addressof(buffer), 8); remote = struct.pack('QQ', top, 8)
    if call('process_vm_readv', 1, local, 1, remote, 1, 0) != 8: raise OSError(1, 'read')
    if call('process_vm_writev', 1, local, 1, remote, 1, 0) != 8: raise OSError(1, 'write')
trying('overwrite', overwrite)
fd = tell('pidfd', call('pidfd_open', 1, 0))
tell('getfd', call('pidfd_getfd', fd, 0, 0))
",
            )
            .control(Control::Behind(OWN_INIT))
            .leak(prints("ptrace=OK"))
            .leak(prints("mem=OK"))
            .leak(prints("environ=OK"))
            .leak(prints("overwrite=OK"))
            .leak(prints("getfd=OK")),
        attack("X14", "see and kill a process of the host")
            .side(HostSide::Process)
            .sh("test -d /proc/@PID@ && echo seen; kill -0 @PID@ && echo reachable; kill -9 @PID@; true")
            .leak(prints("seen"))
            .leak(prints("reachable"))
            .leak(heard("host process ended")),
        attack("X14b", "read the command lines of the host's processes")
            .side(HostSide::Process)
            .sh("cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls /proc | grep -c '^[0-9]'")
            .leak(prints("/bin/sleep 600")),
        attack("X20", "rewrite the sandbox's own program")
            .setup("cp @BIN@ @OUT@/stockade; cp @BIN@ @W@/original")
            .launcher(
                "cat > @W@/attack.py <<'EOF'
import os, sys
print('@MARK@', file=sys.stderr)
for path in ['/proc/1/exe', '/proc/self/exe', '@OUT@/stockade']:
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):
        try:
            fd = os.open(path, flags); os.write(fd, b'#!/bin/evil'); print('rewrote', path)
        except OSError as error:
            print(path, error)
    try:
        os.rename('@OUT@/stockade', '@OUT@/stockade.old'); print('moved')
    except OSError as error:
        print(error)
EOF
set -- @RUN@
if [ $# -gt 0 ]; then shift; set -- @OUT@/stockade \"$@\"; fi
\"$@\" /usr/bin/python3 @W@/attack.py",
            )
            .cli_only("the driver is not the product")
            .leak(not_same()),
        allowed("X25", "trace one's own child")
            .python(
                r"
pid = os.fork()
if pid == 0:
    call('ptrace', 0, 0, 0, 0); os.kill(os.getpid(), signal.SIGSTOP); os._exit(7)
os.waitpid(pid, 0)
attempt('ptrace', 7, pid, 0, 0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
",
            )
            .works(prints("ptrace=OK"))
            .works(prints("7")),
    ]
}

fn not_same() -> stockade_test::Sign {
    host("! cmp -s @OUT@/stockade @W@/original")
}

fn calls() -> Vec<Case> {
    vec![
        attack("X09", "io_uring")
            .python(
                r"
params = ctypes.create_string_buffer(120)
ring = attempt('io_uring_setup', 4, params)
attempt('io_uring_enter', ring, 0, 0, 0, None, 0)
",
            )
            .leak(prints("io_uring_setup=OK"))
            .leak(prints("io_uring_enter=OK"))
            .boxed(prints("io_uring_setup=EPERM")),
        attack("X13", "kernel interfaces that any user may call")
            .python(
                r"
attempt('userfaultfd', 1)
attr = ctypes.create_string_buffer(128)
# A software event of this very process, user space only: allowed to all at paranoid level 2.
struct.pack_into('IIQ', attr, 0, 1, 128, 1); struct.pack_into('Q', attr, 40, 0x60)
attempt('perf_event_open', attr, 0, -1, -1, 0)
attempt('keyctl', 0, -3, 1)
attempt('add_key', b'user', b'@ID@', b'x', 1, -3)
",
            )
            .leak(prints("userfaultfd=OK"))
            .leak(prints("perf_event_open=OK"))
            .leak(prints("keyctl=OK"))
            .leak(prints("add_key=OK"))
            .boxed(closure("EPERM or ENOSYS for each", all_refused)),
        attack("X13b", "kernel interfaces that root may call")
            .python(
                r"
attr = ctypes.create_string_buffer(128)
struct.pack_into('IIII', attr, 0, 2, 4, 4, 4)
attempt('bpf', 0, attr, 128)
handle = ctypes.create_string_buffer(256); struct.pack_into('I', handle, 0, 128)
mount_id = ctypes.create_string_buffer(8)
call('name_to_handle_at', AT_FDCWD, b'@OUT@', handle, mount_id, 0)
attempt('open_by_handle_at', os.open('.', os.O_RDONLY), handle, 0)
attempt('fanotify_init', 0, 0)
attempt('syslog', 10, 0, 0)
",
            )
            .leak(prints("bpf=OK"))
            .leak(prints("open_by_handle_at=OK"))
            .leak(prints("fanotify_init=OK"))
            .leak(prints("syslog=OK"))
            .boxed(prints("bpf=EPERM"))
            .boxed(prints("open_by_handle_at=EPERM"))
            .control(Control::RootOnly("nobody else may call them to begin with", None)),
        attack("X13c", "kernel interfaces that would harm this machine")
            .python(
                r"
# Arguments that could not do harm even where the call is allowed.
for name, args in (('kexec_load', (0, 0, None, 0)), ('init_module', (None, 0, None)), ('finit_module', (-1, None, 0)),
                   ('delete_module', (b'@ID@', 0)), ('swapon', (b'@P@/nope', 0)), ('reboot', (0, 0, 0, None)),
                   ('acct', (b'@P@/nope',)), ('settimeofday', (None, None)), ('quotactl', (0, None, 0, None))):
    attempt(name, *args)
",
            )
            .leak(closure("one that was not refused", |scene| !all_refused(scene)))
            .control(Control::Absent("calls that succeed would harm the host")),
        attack("X17", "shared memory of the host")
            .setup("ipcmk -M 4096 | grep -o '[0-9]*$' > @W@/shm")
            .sh("ipcs -m | awk -v id=$(cat @W@/shm) '$2 == id { print \"visible\" }'")
            .cleanup("ipcrm -m $(cat @W@/shm)")
            .needs(Need::Tool("ipcmk"))
            .leak(prints("visible")),
        attack("X17b", "message queue of the host")
            .setup(
                "/usr/bin/python3 -c \"import ctypes; q = ctypes.CDLL('librt.so.1').mq_open(b'/@ID@', 0o102, 0o666, None); \
                 raise SystemExit(q < 0)\"",
            )
            .python("q = ctypes.CDLL('librt.so.1').mq_open(b'/@ID@', 2)\nprint('queue', 'open' if q >= 0 else 'closed')")
            .cleanup("/usr/bin/python3 -c \"import ctypes; ctypes.CDLL('librt.so.1').mq_unlink(b'/@ID@')\"")
            .leak(prints("queue open")),
        attack("X17c", "the host's name")
            .guarded()
            .needs(Need::Userns)
            .python("attempt('sethostname', b'evil', 4)")
            .control(Control::Behind("unshare -Uru"))
            .leak(prints("sethostname=OK")),
    ]
}

/// Each line of outcome is EPERM or ENOSYS.
fn all_refused(scene: &Scene<'_>) -> bool {
    let out = scene.outcomes[0].out();
    let mut words = out
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(_, word)| word);
    out.contains('=') && words.all(|word| word == "EPERM" || word == "ENOSYS")
}

fn foreign() -> Vec<Case> {
    vec![
        attack("X18", "system calls through the x32 ABI")
            .needs(Need::Arch("x86_64"))
            .python(
                r"
X32 = 0x40000000
for name, args in (('getpid', ()), ('unshare', (CLONE_NEWUSER,)), ('io_uring_setup', (4, ctypes.create_string_buffer(120)))):
    pid = os.fork()
    if pid == 0:
        tell('x32-' + name, call(X32 | _NR[name][0], *args)); os._exit(0)
    os.waitpid(pid, 0)
",
            )
            .leak(prints("=OK"))
            .control(Control::Absent("few kernels are built with the x32 ABI")),
        attack("X19", "system calls through the 32-bit ABI")
            .needs(Need::Arch("x86_64"))
            .python(
                r"
import mmap
# int 0x80 takes 32-bit addresses: code and path must lie low. MAP_32BIT is 0x40.
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
page = _libc.mmap(None, 4096, 7, 0x22 | 0x40, -1, 0)
def int80(number, b=0, c=0, d=0):
    code = b'\x53\xb8' + struct.pack('<I', number) + b'\xbb' + struct.pack('<I', b)
    code += b'\xb9' + struct.pack('<I', c) + b'\xba' + struct.pack('<I', d) + b'\xcd\x80\x5b\xc3'
    ctypes.memmove(page, code, len(code))
    return ctypes.CFUNCTYPE(ctypes.c_int)(page)()
def fenced(name, function):
    # In a child: a filter may kill.
    pid = os.fork()
    if pid == 0:
        tell(name, function()); os._exit(0)
    os.waitpid(pid, 0)
path = page + 2048
def opens(name):
    ctypes.memmove(path, name + b'\0', len(name) + 1)
    return int80(5, path, 0o101, 0o644)
fenced('getpid', lambda: int80(20))
fenced('open', lambda: opens(b'.bashrc'))
fenced('outside', lambda: opens(b'@OUT@/t'))
fenced('unshare', lambda: int80(310, CLONE_NEWUSER))
",
            )
            .leak(prints("getpid=OK"))
            .leak(prints("unshare=OK"))
            .leak(host("test -e .bashrc"))
            .leak(host("test -e @OUT@/t")),
    ]
}

fn pseudo_files() -> Vec<Case> {
    vec![
        attack("X15", "write to the kernel's files in /proc")
            .python(
                r"
for name in ('kernel/core_pattern', 'kernel/hostname', 'vm/overcommit_memory', 'fs/file-max', 'kernel/pid_max'):
    trying(name.split('/')[1], lambda: os.open('/proc/sys/' + name, os.O_WRONLY))
trying('sysrq', lambda: os.open('/proc/sysrq-trigger', os.O_WRONLY))
trying('kmsg', lambda: os.open('/proc/kmsg', os.O_RDONLY | os.O_NONBLOCK))
",
            )
            .leak(prints("core_pattern=OK"))
            .leak(prints("hostname=OK"))
            .leak(prints("overcommit_memory=OK"))
            .leak(prints("file-max=OK"))
            .leak(prints("pid_max=OK"))
            .leak(prints("kmsg=OK"))
            .control(Control::RootOnly("nobody else may open them to begin with", None)),
        attack("X16", "make a control group")
            .needs(Need::Root)
            .sh("for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/@ID@ && echo made-group; done; true")
            .leak(prints("made-group"))
            .control(Control::RootOnly("nobody else may make them here", None))
            .cleanup("for d in /sys/fs/cgroup /sys/fs/cgroup/*; do test -d $d/@ID@ && rmdir $d/@ID@; done"),
        attack("X16b", "write to /sys")
            .python(
                r"
def writable(top):
    for directory, _, files in os.walk(top):
        for name in files:
            try:
                os.close(os.open(os.path.join(directory, name), os.O_WRONLY)); return
            except OSError:
                pass
    raise PermissionError(1, 'nothing')
trying('sys', lambda: writable('/sys/kernel'))
",
            )
            .leak(prints("sys=OK"))
            .control(Control::RootOnly("nobody else may write there", None)),
        allowed("X27", "what programs read in /proc and /sys is there")
            .sh("head -c1 /proc/meminfo /proc/cpuinfo /proc/self/status /proc/stat /proc/uptime > /dev/null &&
                 nproc > /dev/null && uptime > /dev/null && free > /dev/null && ls /sys/devices/system/cpu > /dev/null &&
                 ps aux | grep -q ps")
            .works(exits(0)),
    ]
}
