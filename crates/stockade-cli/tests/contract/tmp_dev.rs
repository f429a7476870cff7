//! T and D: private temporary directories and a synthetic `/dev`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use stockade_test::case::Control;
use stockade_test::stage::Role;
use stockade_test::{Case, Flag, Need, allowed, attack, closure, exits, host, prints, stdout_is};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = tmp();
    cases.extend(dev());
    cases
}

fn tmp() -> Vec<Case> {
    vec![
        attack("T01", "/tmp is not the host's")
            .sh("echo x > /tmp/@ID@; cat /tmp/@ID@")
            .works(stdout_is("x"))
            .leak(host("test -e /tmp/@ID@"))
            .cleanup("rm -f /tmp/@ID@"),
        attack("T01b", "read what others left in /tmp")
            .setup("echo @SECRET@ > /tmp/@ID@")
            .sh("cat /tmp/@ID@; ls /tmp")
            .leak(prints("@SECRET@"))
            .leak(prints("@ID@\n"))
            .cleanup("rm -f /tmp/@ID@"),
        attack("T02", "/tmp is not shared between runs")
            .sh("echo x > /tmp/@ID@")
            .sh("ls /tmp")
            .leak(prints("@ID@"))
            .cleanup("rm -f /tmp/@ID@"),
        allowed("T04", "temporary files")
            .sh("f=$(mktemp) && echo x > $f && cat $f && rm $f")
            .works(stdout_is("x")),
        allowed("T04b", "temporary files although TMPDIR leads outside")
            .env("TMPDIR", "@OUT@")
            .sh("f=$(mktemp) && echo x > $f && cat $f && rm $f")
            .works(stdout_is("x")),
        allowed("T04c", "a program in /tmp can be executed")
            .sh("d=$(mktemp -d) && cp /bin/true $d/t && $d/t && rm -r $d")
            .works(exits(0)),
        allowed("T05", "shared memory for locks and pools")
            .needs(Need::Tool("python3"))
            .sh("cat > t.py <<'EOF'
import multiprocessing, concurrent.futures
from multiprocessing import shared_memory
def square(n): return n * n
if __name__ == '__main__':
    with multiprocessing.Lock(): pass
    with concurrent.futures.ProcessPoolExecutor(2) as pool: print(list(pool.map(square, [1, 2, 3])))
    m = shared_memory.SharedMemory(create=True, size=64); m.close(); m.unlink()
EOF
/usr/bin/python3 t.py")
            .works(stdout_is("[1, 4, 9]")),
        attack("T06", "/dev/shm is not the host's")
            .setup("echo @SECRET@ > /dev/shm/@ID@")
            .sh("cat /dev/shm/@ID@; echo x > /dev/shm/@ID@-new")
            .leak(prints("@SECRET@"))
            .leak(host("test -e /dev/shm/@ID@-new"))
            .cleanup("rm -f /dev/shm/@ID@ /dev/shm/@ID@-new"),
    ]
}

fn dev() -> Vec<Case> {
    vec![
        allowed("D01", "the device nodes that programs need")
            .sh("for d in null zero full random urandom tty; do test -c /dev/$d || exit 1; done
                 test -L /dev/fd && test -L /dev/stdin && test -L /dev/stdout && test -L /dev/stderr")
            .works(exits(0)),
        allowed("D01b", "they work")
            .sh("echo x > /dev/null && head -c 4 /dev/urandom | wc -c && head -c 4 /dev/zero | od -An -tx1 &&
                 ! echo x > /dev/full && echo via > /dev/stdout && cat < /dev/null")
            .works(prints("via"))
            .works(exits(0)),
        allowed("D01c", "a pseudo-terminal can be made inside")
            .python("import pty\nm, s = pty.openpty(); os.write(s, b'x'); print(os.read(m, 1), os.ttyname(s)[:9])")
            .works(stdout_is("b'x' /dev/pts/")),
        attack("D02", "/dev is not the host's")
            .sh("stat -c '%d %i' /dev; for d in /dev/*; do test -b $d && echo block-device; done; true")
            .leak(closure("the same directory as on the host", |scene| {
                let own = fs::metadata("/dev").map(|meta| format!("{} {}", meta.dev(), meta.ino()));
                own.is_ok_and(|own| scene.outcomes[0].out().lines().any(|line| line == own))
            }))
            .leak(prints("block-device")),
        attack("D02b", "kernel log and other devices open to all")
            .needs(Need::Device("/dev/kmsg"))
            .sh("test -e /dev/kmsg && echo kmsg; ls /dev | wc -l")
            .leak(prints("kmsg"))
            .boxed(closure("a handful of names in /dev", |scene| {
                let out = scene.outcomes[0].out();
                out.trim().parse::<u32>().is_ok_and(|names| names < 30)
            })),
        attack("D03", "a device without a grant")
            .needs(Need::Device("/dev/fuse"))
            .only(Role::Root, "the node belongs to root here")
            .sh("exec 3<> /dev/fuse && echo opened")
            .leak(prints("opened")),
        allowed("D03b", "a device with a grant")
            .needs(Need::Device("/dev/fuse"))
            .only(Role::Root, "the node belongs to root here")
            .flag(Flag::Device("/dev/fuse".into()))
            .sh("exec 3<> /dev/fuse && echo opened")
            .works(prints("opened")),
        attack("D04", "make a device node")
            .sh("mknod b b 8 0; mknod c c 1 1; mknod /tmp/@ID@ b 8 0 && echo in-tmp")
            .leak(host("test -b b"))
            .leak(host("test -c c"))
            .leak(prints("in-tmp"))
            .control(Control::RootOnly("nobody else may make device nodes", None))
            .cleanup("rm -f /tmp/@ID@"),
        allowed("D05", "a named pipe works, also through two processes")
            .sh("mkfifo q && (echo through > q &) && cat q")
            .works(stdout_is("through")),
    ]
}
