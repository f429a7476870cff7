//! L30–L34, X30, I11, I12, I14, N12: the process that performs calls for the command can't be stopped,
//! limited or misled by it.

use std::time::Duration;

use stockade_test::case::Control;
use stockade_test::stage::Role;
use stockade_test::{
    Case, Flag, HostSide, Need, allowed, attack, closure, exits, heard, host, prints, survives,
};

/// Compiles `programs/block.c` into the project as `block`.
const BLOCK: &str = concat!(
    "cat > @W@/block.c <<'SOURCE'\n",
    include_str!("programs/block.c"),
    "SOURCE\ncc -O1 -pthread -o block @W@/block.c"
);

/// Compiles `programs/bind_race.c` into the project as `bind_race`.
const BIND_RACE: &str = concat!(
    "cat > @W@/bind_race.c <<'SOURCE'\n",
    include_str!("programs/bind_race.c"),
    "SOURCE\ncc -O1 -pthread -o bind_race @W@/bind_race.c"
);

/// The three calls that can wait in the kernel: ids of the rows end in these letters.
const WAYS: [(&str, &str); 3] = [("", "connect"), ("b", "lease"), ("c", "fifo")];

/// Against hanging; a run that has been told to end needs a second of it.
const HANGS: Duration = Duration::from_secs(60);

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = blocked();
    cases.extend(limited());
    cases.extend(misled());
    cases
}

fn blocked() -> Vec<Case> {
    let mut cases = Vec::new();
    for (index, (_, way)) in WAYS.into_iter().enumerate() {
        let id = |rows: [&'static str; 3]| rows[index];
        let until_blocked = format!(
            "mkfifo @W@/o; @RUN@ ./block {way} wait @LONG@ > @W@/o & pid=$!
             exec 4< @W@/o; until test \"$line\" = blocked; do read line <&4 || break; done; echo @MARK@"
        );
        cases.extend([
            attack(id(["L30", "L30b", "L30c"]), "run past the time limit while a call is held in the kernel")
                .flag(Flag::Timeout("10s".into()))
                .sh(format!("./block {way} wait @LONG@"))
                .leak(closure("it runs to its end or to the bound", |scene| {
                    let outcome = &scene.outcomes[0];
                    outcome.overran || outcome.out().contains("finished")
                }))
                .leak(survives())
                .boxed(exits(124)),
            attack(id(["L31", "L31b", "L31c"]), "outlive SIGTERM while a call is held in the kernel")
                .launcher(format!("{until_blocked}; kill -TERM $pid; wait $pid; echo code-$?"))
                .works(prints("code-143"))
                .leak(survives()),
            attack(id(["L32", "L32b", "L32c"]), "outlive Ctrl-C while a call is held in the kernel")
                .needs(Need::Tty)
                .launcher(format!(
                    "echo @MARK@; @PTY@ expect:blocked 'send:\\x03' -- @RUN@ ./block {way} wait @LONG@; echo code-$?"
                ))
                .cli_only("a terminal is relayed by run_in_foreground, as the command line does")
                .works(prints("code-130"))
                .leak(survives()),
            attack(id(["L33", "L33b", "L33c"]), "outlive SIGKILL of the launcher while a call is held in the kernel")
                .launcher(format!("{until_blocked}; kill -KILL $pid; wait $pid; echo code-$?"))
                .works(prints("code-137"))
                .leak(survives()),
            allowed(id(["L34", "L34b", "L34c"]), "others work on while a call is held in the kernel")
                .sh(format!("./block {way} work 0"))
                .works(prints("went-on"))
                .works(host("test -e directory/moved")),
        ]);
    }
    cases
        .into_iter()
        .map(|case| {
            case.needs(Need::Tool("cc"))
                .needs(Need::Tool("python3"))
                .setup(BLOCK)
                .bound(HANGS)
        })
        .collect()
}

fn limited() -> Vec<Case> {
    /// On the process `target`, each call that changes how another process is scheduled or limited.
    const LIMIT: &str = r"
import resource
PRIO_PROCESS, SCHED_BATCH, IOPRIO_WHO_PROCESS, IDLE = 0, 3, 1, 3 << 13
def libc(name, *arguments):
    ctypes.set_errno(0)
    if getattr(_libc, name)(*arguments) < 0: raise OSError(ctypes.get_errno(), name)
def limit(target):
    trying('prlimit', lambda: resource.prlimit(target, resource.RLIMIT_CORE, (0, 0)))
    trying('setpriority', lambda: os.setpriority(os.PRIO_PROCESS, target, 19))
    trying('affinity', lambda: os.sched_setaffinity(target, {min(os.sched_getaffinity(0))}))
    trying('scheduler', lambda: os.sched_setscheduler(target, SCHED_BATCH, os.sched_param(0)))
    tell('ioprio', call(251 if _X86 else 30, IOPRIO_WHO_PROCESS, target, IDLE))
";
    let leaks = |case: Case| {
        case.leak(prints("prlimit=OK"))
            .leak(prints("setpriority=OK"))
            .leak(prints("affinity=OK"))
            .leak(prints("scheduler=OK"))
            .leak(prints("ioprio=OK"))
    };
    vec![
        leaks(
            attack("X30b", "limit and slow down a process of the host")
                .side(HostSide::Process)
                .python(format!("{LIMIT}\nlimit(@PID@)")),
        ),
        attack("X30c", "slow down all processes of the user")
            .only(Role::User, "root's are those of the whole machine")
            .launcher(
                "sleep 600 & victim=$!; @RUN@ /usr/bin/python3 -c 'import os; print(\"@MARK@\"); os.setpriority(os.PRIO_USER, @UID@, 19)'
                 ps -o ni= -p $victim | sed 's/^ */nice-/'; kill $victim",
            )
            .needs(Need::Tool("ps"))
            .leak(prints("nice-19")),
        allowed("X30d", "limit and slow down one's own children")
            .python(format!(
                "{LIMIT}
child = os.fork()
if child == 0: time.sleep(600)
limit(child); limit(0); limit(os.getpid())
os.kill(child, 9); os.waitpid(child, 0)"
            ))
            .works(prints("prlimit=OK"))
            .works(prints("setpriority=OK"))
            .works(prints("affinity=OK"))
            .works(prints("scheduler=OK"))
            .works(prints("ioprio=OK")),
        attack("X30e", "see the process that performs calls, and signal everybody")
            .guarded()
            .needs(Need::Userns)
            .python(
                "
names = set()
for pid in filter(str.isdigit, os.listdir('/proc')):
    try: names.add(open(f'/proc/{pid}/comm').read().strip())
    except OSError: pass
print('seen', sorted(names))
# Whoever can be reached dies; the run goes on all the same.
for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL):
    trying('everybody', lambda: os.kill(-1, number))
for _ in range(20): os.close(os.open('z', os.O_CREAT | os.O_WRONLY)); os.unlink('z')
open('to-the-end', 'w').close()",
            )
            .control(Control::Absent("it would end every process of the user"))
            .leak(closure("the run ends before its time", |scene| {
                !scene.world.project().join("to-the-end").exists()
            })),
    ]
}

fn misled() -> Vec<Case> {
    vec![
        attack("I11", "have a socket of the host taken for one's own by a bind through a descriptor")
            .side(HostSide::UnixStream("@P@/host.sock"))
            .python(
                r"
def unix(how, path):
    s = socket.socket(socket.AF_UNIX); getattr(s, how)(path); return s
# Directories that whoever acts for the caller may hold open under the same numbers.
for number in range(14):
    os.mkdir(f'd{number}'); open(f'd{number}/x', 'w').close()
here = os.open('.', os.O_RDONLY | os.O_DIRECTORY)
kept = []
for number in range(10, 60):
    os.dup2(here, number)
    for path in (f'/proc/self/fd/{number}/host.sock', f'/proc/thread-self/fd/{number}/host.sock', f'/dev/fd/{number}/host.sock'):
        try: kept.append(unix('bind', path)); print('bound', path)
        except OSError: pass
trying('connect', lambda: unix('connect', 'host.sock').send(b'reached'))
",
            )
            .leak(heard("reached")),
        allowed("I11b", "bind through a descriptor, and connect to what was bound")
            .python(
                r"
os.mkdir('d'); number = os.open('d', os.O_RDONLY | os.O_DIRECTORY)
server = socket.socket(socket.AF_UNIX); server.bind(f'/proc/self/fd/{number}/own.sock'); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect('d/own.sock'); client.send(b'x'); print('got', server.accept()[0].recv(9))
",
            )
            .works(prints("got b'x'"))
            .works(host("test -S d/own.sock")),
        attack("I12", "have a socket of the host taken for one's own by the number of its inode")
            .setup("mkfifo @W@/in @W@/out")
            .launcher(
                r#"cat > @W@/inside.py <<'SOURCE'
import os, socket
print('@MARK@', flush=True)
names = [f's{number}' for number in range(400)]
for name in names:
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.close()
for name in names: os.unlink(name)
print('ready', flush=True); input()
reached = 0
for name in names:
    s = socket.socket(socket.AF_UNIX)
    try: s.connect('host-' + name); reached += 1
    except OSError as error: pass
print('reached', reached, flush=True)
SOURCE
cat > @W@/outside.py <<'SOURCE'
import os, socket, sys
kept = []
for number in range(400):
    s = socket.socket(socket.AF_UNIX); s.bind(f'@P@/host-s{number}'); os.chmod(f'@P@/host-s{number}', 0o777); s.listen(); s.setblocking(False); kept.append(s)
print('up', flush=True); sys.stdin.readline()
heard = 0
for s in kept:
    try: s.accept(); heard += 1
    except OSError: pass
open('@W@/heard', 'w').write(str(heard))
SOURCE
@RUN@ /usr/bin/python3 @W@/inside.py < @W@/in > @W@/out & run=$!
exec 3> @W@/in 4< @W@/out; read mark <&4; echo $mark; read ready <&4
mkfifo @W@/hin @W@/hout; /usr/bin/python3 @W@/outside.py < @W@/hin > @W@/hout & host=$!
exec 5> @W@/hin 6< @W@/hout; read up <&6; echo >&3; read reached <&4; echo "$reached"; wait $run; echo >&5; wait $host"#,
            )
            .needs(Need::Tool("python3"))
            .leak(host("test $(cat @W@/heard) -gt 0")),
        attack("I14", "have a socket of the host taken for one's own by exchanging directories during a bind")
            .needs(Need::Tool("cc"))
            .side(HostSide::UnixStream("@P@/host.sock"))
            .setup(BIND_RACE)
            .sh("./bind_race @RACE@")
            .leak(heard("connected")),
        allowed("N12", "a thread with a directory of its own that starts another program")
            .python(
                r"
import threading
CLONE_FS = 0x200
go, there = threading.Event(), threading.Event()
def away():
    call('unshare', CLONE_FS); os.chdir('newd'); there.set(); go.wait()
    os.execv('/usr/bin/python3', ['python3', '-c', 'import os; open(`made`, `w`).close(); print(os.getcwd())'.replace('`', chr(34))])
os.mkdir('newd')
threading.Thread(target=away).start(); there.wait()
for _ in range(5): os.close(os.open('warm', os.O_CREAT | os.O_WRONLY)); os.unlink('warm')
go.set()
while True: signal.pause()
",
            )
            .works(prints("/newd"))
            .works(host("test -e newd/made -a ! -e made")),
        allowed("N12b", "threads with directories and masks of their own")
            .python(
                r"
import threading
CLONE_FS = 0x200
def work(number):
    call('unshare', CLONE_FS); os.mkdir(f'd{number}'); os.chdir(f'd{number}'); os.umask(0o077 if number % 2 else 0o002)
    for name in 'abcdefgh': os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o666))
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
",
            )
            .works(host("test $(ls d? | grep -c '^[a-h]$') = 64 -a $(stat -c %a d1/* d3/* | sort -u) = 600 -a $(stat -c %a d0/* d2/* | sort -u) = 664")),
    ]
}
