//! R: a greedy command hurts itself, not the host.

use std::time::Duration;

use stockade_test::{Case, Flag, Limit, Need, allowed, attack, closure, host, not, prints};

/// Three seconds of CPU time. In the shell, which starts in a small part of the limit where Python needs
/// all of it: on a processor that is emulated.
const SPIN: &str = "while :; do
    i=0; while test $i -lt 20000; do i=$((i + 1)); done
    times > spent; read user rest < spent
    case $user in 0m[012][.,]*) ;; *) break ;; esac
done";

pub(crate) fn cases() -> Vec<Case> {
    let limit = |limit: Limit| Flag::Limit(limit);
    vec![
        attack("R01", "more processes than allowed")
            .flag(limit(Limit::Pids(100)))
            .python(
                r"
import resource
children, error = [], None
for _ in range(300):
    try: pid = os.fork()
    except OSError as failure: error = failure; break
    if pid == 0: signal.pause()
    children.append(pid)
print('forked', len(children), error and errno.errorcode[error.errno])
for pid in children: os.kill(pid, 9)
",
            )
            .leak(prints("forked 300"))
            .boxed(prints("EAGAIN")),
        attack("R01b", "a fork bomb")
            .flag(limit(Limit::Pids(100)))
            // Bounded on purpose: the control runs on the host. 2^9 processes are five times the limit.
            .python(
                r"
import time
held, first, children = os.pipe(), os.getpid(), 0
for _ in range(9):
    try: pid = os.fork()
    except OSError: open('full', 'w').close(); break
    children = 0 if pid == 0 else children + 1
    if pid == 0 and first: os.close(held[1]); first = None
os.close(os.open(f'n{os.getpid()}', os.O_CREAT | os.O_WRONLY))
# Nobody ends before all are there, or one could not come: those that came one after the other
# would be no bomb.
if first:
    end = time.monotonic() + 90
    while time.monotonic() < end:
        found = os.listdir()
        if 'full' in found or len(found) >= 512: break
        time.sleep(0.01)
    os.close(held[1])
os.read(held[0], 1)
for _ in range(children): os.wait()
",
            )
            .leak(host("test $(ls | grep -c ^n) -ge 512")),
        attack("R02", "more memory than allowed")
            .flag(limit(Limit::Mem("256M".into())))
            .python(
                r"
block = bytearray()
for _ in range(16):
    block += b'x' * (64 << 20)
print('allocated', len(block) >> 20)
",
            )
            .leak(prints("allocated 1024"))
            .boxed(not(stockade_test::exits(0)))
            .bound(Duration::from_secs(300)),
        attack("R02b", "more memory than allowed, spread over children")
            .flag(limit(Limit::Mem("256M".into())))
            .needs(Need::Cgroup)
            .python(
                r"
children, pipes = [], []
for _ in range(6):
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        block = b'x' * (100 << 20); os.write(w, b'1'); signal.pause()
    os.close(w)
    children.append(pid); pipes.append(r)
# A child that is killed closes its pipe; all six only fit without a limit.
said = [os.read(r, 1) for r in pipes]
print('held', sum(word == b'1' and os.waitpid(pid, os.WNOHANG)[0] == 0 for word, pid in zip(said, children)))
for pid in children: os.kill(pid, 9)
",
            )
            .leak(prints("held 6")),
        allowed("R02d", "sanitizers reserve as much as they need")
            .needs(Need::Tool("gcc"))
            .setup("printf '#include <stdlib.h>\\nint main(void) { volatile char *p = malloc(9); p[0] = 1; free((void *)p); return 0; }\\n' > a.c
                    gcc -fsanitize=address a.c -o address && gcc -fsanitize=thread a.c -o thread")
            .sh("./address && ./thread && echo ran")
            .works(prints("ran")),
        allowed("R02e", "an address space of terabytes can be reserved")
            .python("import mmap; mmap.mmap(-1, 1 << 44, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000); print('reserved')")
            .works(prints("reserved")),
        allowed("R02c", "a command that used up its memory is told so")
            .flag(limit(Limit::Mem("64M".into())))
            .needs(Need::Cgroup)
            .sh("/usr/bin/python3 -c 'x = b\"x\" * (512 << 20)'; exit $?")
            .control(stockade_test::case::Control::Absent(
                "on the host nobody limits it",
            ))
            .boxed(stockade_test::exits(137))
            .boxed(stockade_test::stderr_has("out of memory"))
            .cli_only("the library tells it in the report"),
        attack("R03", "a file larger than allowed")
            .flag(limit(Limit::Fsize("1M".into())))
            .sh("head -c 8M /dev/zero > big; true")
            .leak(host("test $(stat -c %s big) -gt 1048576"))
            .works(host("test $(stat -c %s big) -ge 1048576")),
        attack("R03b", "more in /tmp than allowed")
            .flag(limit(Limit::Tmp("64M".into())))
            .sh("head -c 100M /dev/zero > /tmp/@ID@ && echo all-written; rm /tmp/@ID@")
            .leak(prints("all-written"))
            .cleanup("rm -f /tmp/@ID@"),
        attack("R03c", "more in /dev/shm and /tmp together than allowed")
            .flag(limit(Limit::Tmp("64M".into())))
            .sh("head -c 100M /dev/zero > /dev/shm/@ID@ && echo all-written; rm /dev/shm/@ID@")
            .leak(prints("all-written"))
            .cleanup("rm -f /dev/shm/@ID@"),
        attack("R09", "more disk space than allowed")
            .needs(Need::Userns)
            .needs(Need::Tool("fallocate"))
            .flag(limit(Limit::Disk("8M".into())))
            .setup("mkdir disk")
            // On a file system of its own: what others write or free counts, too. Space is taken
            // without writing, and the limit is looked at now and then.
            .launcher(
                "cat > @W@/job.sh <<'EOF'
mount -t tmpfs -o size=64m disk disk && cd disk || exit 9
@RUN@ sh -c 'echo @MARK@; i=0; while test $i -lt 16; do fallocate -l 2M f$i || exit 1; i=$((i + 1)); sleep 0.2; done; echo all-taken'
EOF
unshare -Urm sh @W@/job.sh",
            )
            .leak(prints("all-taken"))
            .boxed(stockade_test::stderr_has("too much disk space"))
            .cli_only("the library tells it in the report"),
        attack("R04", "more CPU time than allowed")
            .flag(limit(Limit::Cpu("1s".into())))
            .sh(format!("{SPIN}; echo spun"))
            .leak(prints("spun")),
        allowed("R04b", "a command whose CPU time is over is told to be")
            .flag(limit(Limit::Cpu("1s".into())))
            .sh(SPIN)
            .control(stockade_test::case::Control::Absent(
                "on the host nobody limits it",
            ))
            .boxed(stockade_test::exits(137))
            .boxed(stockade_test::stderr_has("the CPU time is over"))
            .cli_only("the library tells it in the report"),
        attack("R05", "more output than allowed")
            .flag(limit(Limit::Output("1M".into())))
            .sh("head -c 8M /dev/zero")
            .leak(closure("more than 1 MiB and a little arrived", |scene| {
                scene.outcomes[0].stdout.len() > (1 << 20) + 65_536
            })),
        allowed(
            "R06",
            "generous limits are on by default and let ordinary work pass",
        )
        .python(
            r"
import resource, threading
block = b'x' * (300 << 20)
threads = [threading.Thread(target=threading.Event().wait, args=(0.01,)) for _ in range(64)]
[t.start() for t in threads]; [t.join() for t in threads]
files = [open('/dev/null') for _ in range(200)]
print('fine')
",
        )
        .works(prints("fine")),
        attack("R07", "more open files than a process should have")
            .sh("ulimit -n unlimited 2> /dev/null; echo limit-$(ulimit -Hn); ulimit -c")
            .leak(prints("limit-unlimited"))
            .control(stockade_test::case::Control::Absent(
                "the host's own limit varies",
            )),
        allowed("R08", "no core file is left")
            .sh("ulimit -c unlimited 2> /dev/null; sh -c 'kill -SEGV $$'; ls")
            .control(stockade_test::case::Control::Absent(
                "where the host keeps core files varies",
            ))
            .boxed(not(prints("core"))),
    ]
}
