//! L: exit codes, signals, streams, descriptors; nothing outlives a run.

use std::time::Duration;

use stockade_test::case::Control;
use stockade_test::{
    Case, Flag, HostSide, Need, allowed, attack, closure, exits, host, prints, stdout_is, survives,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = codes();
    cases.extend(endings());
    cases.extend(streams());
    cases.extend(descriptors());
    cases.extend(first_process());
    cases
}

const NO_LAUNCHER: Control = Control::Absent("the launcher's own answer is under test");

/// Directories for a search path: one that can't be searched, an empty one, and two with a `tool`.
const CLOSED: &str = "mkdir closed empty plain good && chmod 0 closed
    echo data > plain/tool
    printf '#!/bin/sh\\necho good\\n' > good/tool && chmod +x good/tool";

fn codes() -> Vec<Case> {
    vec![
        allowed("L01", "the command's exit code")
            .sh("exit 42")
            .works(exits(42)),
        allowed("L01b", "exit codes that mean something to the launcher")
            .sh("exit 125")
            .works(exits(125)),
        allowed("L02", "death by signal")
            .sh("kill -TERM $$")
            .works(exits(143)),
        allowed("L02b", "death by another signal")
            .sh("kill -SEGV $$")
            .works(exits(139)),
        allowed("L02c", "death by SIGKILL")
            .sh("kill -KILL $$")
            .works(exits(137)),
        allowed("L03", "command not found")
            .argv(&["nosuchcmd-@ID@"])
            .control(NO_LAUNCHER)
            .boxed(exits(127)),
        allowed("L03b", "found but not executable")
            .setup("echo data > plain; chmod 644 plain")
            .argv(&["./plain"])
            .control(NO_LAUNCHER)
            .boxed(exits(126)),
        allowed("L03c", "a command that looks like a flag stays a command")
            .argv(&["--danger-full-access", "true"])
            .control(NO_LAUNCHER)
            .boxed(exits(127)),
        allowed("L03d", "a directory is not executable")
            .setup("mkdir d")
            .argv(&["./d"])
            .control(NO_LAUNCHER)
            .boxed(exits(126)),
        allowed("L03e", "a program by relative path and by search path")
            .setup("printf '#!/bin/sh\\necho own\\n' > prog; chmod +x prog")
            .sh("./prog && true")
            .argv(&["./prog"])
            .works(prints("own"))
            .works(exits(0)),
        attack(
            "L03f",
            "a program planted in the project in place of a system one",
        )
        .setup("printf '#!/bin/sh\\necho planted\\n' > ls; chmod +x ls")
        .env("PATH", ":/usr/bin:/bin")
        .argv(&["ls", "/"])
        .control(Control::Script("PATH=:/usr/bin:/bin; ls"))
        .leak(prints("planted"))
        .boxed(prints("bin"))
        .cli_only("a library caller names the program"),
        allowed(
            "L03g",
            "not found, and a directory of the search path is closed",
        )
        .setup(CLOSED)
        .env("PATH", "@P@/closed:@P@/empty:/usr/bin:/bin")
        .argv(&["nosuchcmd-@ID@"])
        .control(Control::Script("nosuchcmd-@ID@"))
        .works(exits(127)),
        allowed("L03h", "not executable in the search path")
            .setup(CLOSED)
            .env("PATH", "@P@/closed:@P@/plain:@P@/empty:/usr/bin:/bin")
            .argv(&["tool"])
            .control(NO_LAUNCHER)
            .boxed(exits(126)),
        allowed("L03i", "found behind one that is not executable")
            .setup(CLOSED)
            .env("PATH", "@P@/closed:@P@/plain:@P@/good:/usr/bin:/bin")
            .argv(&["tool"])
            .works(prints("good"))
            .works(exits(0)),
        allowed("L04", "a policy that can't be applied")
            .flag(Flag::Cwd("@P@/nope".into()))
            .flag(Flag::Json)
            .sh("true")
            .control(NO_LAUNCHER)
            .cli_only("the library's answer is a value")
            .refused(125)
            .boxed(closure("the reason as JSON that names the path", |scene| {
                let outcome = &scene.outcomes[0];
                [outcome.out(), outcome.err()].iter().any(|text| {
                    serde_json::from_str::<serde_json::Value>(text.trim())
                        .is_ok_and(|value| value.to_string().contains("nope"))
                })
            })),
        allowed("L17", "the working directory")
            .sh("pwd")
            .works(stdout_is("@P@")),
        allowed("L21", "arguments arrive as they are")
            .argv(&[
                "/usr/bin/printf",
                "<%s>",
                "",
                "a b",
                "*",
                "$HOME",
                "'\"",
                "-n",
                "--",
                "\u{e9}\n",
            ])
            .works(stdout_is("<><a b><*><$HOME><'\"><-n><--><\u{e9}\n>")),
        allowed("L22", "an argument of 120,000 bytes")
            .argv(&["/bin/sh", "-c", "echo ${#1}", "sh", LONG])
            .works(stdout_is("120000")),
    ]
}

/// As long as one argument may be, nearly.
const LONG: &str = match std::str::from_utf8(&[b'x'; 120_000]) {
    Ok(text) => text,
    Err(_) => "",
};

fn endings() -> Vec<Case> {
    // Daemons of every kind, then a word, then waiting.
    let tree = "setsid sh -c \"sleep 300 & sleep 301 & wait\" & (sleep 302 &) ; echo @MARK@; exec sleep 303";
    let kill = |signal: &str| {
        format!(
            "mkfifo @W@/o; @RUN@ sh -c '{tree}' > @W@/o & pid=$!
             read line < @W@/o; echo $line; kill -{signal} $pid; wait $pid; echo code-$?"
        )
    };
    vec![
        attack("L06", "outlive a launcher that is killed")
            .launcher(kill("KILL"))
            .works(prints("code-137"))
            .leak(survives()),
        attack("L06b", "outlive a launcher that is asked to end")
            .launcher(kill("TERM"))
            .works(prints("code-143"))
            .leak(survives()),
        attack("L07", "leave a background child")
            // A launcher that waited for it would not be back within the bound.
            .sh("sleep 3600 & exit 5")
            .works(exits(5))
            .leak(survives()),
        attack("L07b", "leave a daemon: double fork, own session, signals ignored")
            .python(
                r"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 32):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        os.closerange(0, 64)
        os.execv('/bin/sleep', ['sleep', '3600'])
    os._exit(0)
os.wait()
",
            )
            .leak(survives()),
        attack("L12", "run past the wall-time limit")
            .flag(Flag::Timeout("5s".into()))
            .sh("(trap '' TERM INT HUP; sleep @LONG@; echo finished > late) & wait; echo finished")
            .leak(closure("it runs to its end or to the bound", |scene| {
                let outcome = &scene.outcomes[0];
                outcome.overran || outcome.out().contains("finished")
            }))
            .leak(host("test -e late"))
            .boxed(exits(124)),
        allowed("L15", "signals reach the command")
            .launcher(
                "for sig in TERM INT HUP QUIT USR1 USR2; do mkfifo @W@/o.$sig
                 @RUN@ /usr/bin/python3 -c '
import signal, sys
wanted = getattr(signal, \"SIG\" + sys.argv[1]); signal.pthread_sigmask(signal.SIG_BLOCK, [wanted])
print(\"@MARK@\", flush=True); signal.sigwait([wanted]); sys.exit(60)' $sig > @W@/o.$sig & pid=$!
                 read line < @W@/o.$sig; echo $line; kill -$sig $pid; wait $pid; echo $sig-$?; done",
            )
            .needs(Need::Tool("python3"))
            .cli_only("signals are the host program's to handle; it has Child::signal")
            .works(prints("TERM-60"))
            .works(prints("INT-60"))
            .works(prints("HUP-60"))
            .works(prints("QUIT-60"))
            .works(prints("USR1-60"))
            .works(prints("USR2-60")),
        allowed("L16", "orphans are reaped while the command runs")
            .python(
                r"
for _ in range(50):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
def zombies():
    count = 0
    for name in os.listdir('/proc'):
        if name.isdigit():
            try: count += open(f'/proc/{name}/stat').read().rsplit(') ', 1)[1].startswith('Z')
            except OSError: pass
    return count
# Reaping is another process's work, which has to get its turn first.
import time
end = time.monotonic() + 20
while zombies() and time.monotonic() < end: time.sleep(0.01)
print('zombies', zombies())
",
            )
            .control(Control::Absent("the host's own zombies are not ours to count"))
            .boxed(prints("zombies 0")),
        allowed("L18", "twenty at once")
            .launcher(
                "n=0; while [ $n -lt 20 ]; do @RUN@ sh -c 'echo @MARK@; echo x > $0' f$n & n=$((n + 1)); done; wait",
            )
            .works(host("test $(ls f* | wc -l) = 20")),
        allowed("L19", "the launcher's own limits on files do not matter")
            .launcher("ulimit -n 64; @RUN@ sh -c 'echo @MARK@; exit 6'")
            .works(exits(6)),
    ]
}

fn streams() -> Vec<Case> {
    vec![
        allowed("L09", "one GiB through a pipe")
            .launcher("head -c 1G /dev/zero | @RUN@ sh -c 'echo @MARK@ >&2; exec cat' | wc -c")
            .works(stdout_is("1073741824"))
            .bound(Duration::from_secs(600)),
        allowed("L09b", "every byte as it was")
            .needs(Need::Tool("openssl"))
            .launcher(
                "openssl enc -aes-128-ctr -K 00 -iv 00 -in /dev/zero 2> /dev/null | head -c 64M > @W@/in
                 @RUN@ sh -c 'echo @MARK@ >&2; exec cat' < @W@/in > @W@/copy; cmp @W@/in @W@/copy && echo same",
            )
            .works(prints("same")),
        allowed("L09c", "output and errors stay apart")
            .sh("echo out; echo err >&2")
            .works(stdout_is("out"))
            .works(stockade_test::stderr_has("err")),
        allowed("L20", "a reader that goes away ends the writer")
            .launcher("@RUN@ sh -c 'echo @MARK@ >&2; yes' | head -n 1")
            .works(stdout_is("y")),
        allowed("L20b", "standard input at its end")
            .sh("wc -c; read line; echo status-$?")
            .works(prints("status-1")),
    ]
}

fn descriptors() -> Vec<Case> {
    vec![
        attack("L14", "a descriptor inherited from the launcher's caller")
            .setup("echo @SECRET@ > @OUT@/k")
            .flag(Flag::DenyRead("@OUT@/k".into()))
            .launcher("exec 9< @OUT@/k; @RUN@ sh -c 'echo @MARK@ >&2; cat <&9; cat /proc/self/fd/9; ls /proc/self/fd'")
            .leak(prints("@SECRET@")),
        allowed("L14b", "a descriptor that is passed on purpose")
            .setup("echo passed > @OUT@/k")
            .flag(Flag::PassFd(9))
            .launcher("exec 9< @OUT@/k; @RUN@ sh -c 'echo @MARK@ >&2; cat <&9'")
            .works(stdout_is("passed"))
            .cli_only("a library caller passes descriptors in its own way"),
        attack("L14c", "a directory inherited from the launcher's caller")
            .launcher(
                "exec 9< @OUT@; @RUN@ /usr/bin/python3 -c '
import os, sys
print(\"@MARK@\", file=sys.stderr)
os.open(\"t\", os.O_CREAT | os.O_WRONLY, dir_fd=9)'",
            )
            .leak(host("test -e @OUT@/t")),
        allowed("L14d", "only the three standard descriptors are open")
            .sh("ls /proc/self/fd | wc -l")
            // ls itself holds the directory open.
            .control(Control::Absent("what the harness leaves open is not the point"))
            .boxed(stdout_is("4")),
        attack("L14e", "a connected socket inherited from the launcher's caller")
            .side(HostSide::UnixStream("@OUT@/s.sock"))
            .launcher(
                "cat > @W@/pass.py <<'EOF'
import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.connect('@OUT@/s.sock'); os.dup2(s.fileno(), 9)
os.execvp(sys.argv[1], sys.argv[1:])
EOF
/usr/bin/python3 @W@/pass.py @RUN@ sh -c 'echo @MARK@ >&2; echo smuggled >&9'",
            )
            .leak(stockade_test::heard("smuggled")),
    ]
}

fn first_process() -> Vec<Case> {
    const OWN: Control = Control::Absent("outside, the first process is the machine's");
    vec![
        allowed("L23", "signals to the first process end nothing")
            .sh("i=1; while [ $i -le 64 ]; do kill -$i 1; i=$((i + 1)); done 2> /dev/null
                 /usr/bin/python3 -c 'import os, signal
for number in signal.valid_signals():
    try: os.kill(1, number)
    except OSError: pass'; echo alive")
            .control(OWN)
            .boxed(stdout_is("alive"))
            .boxed(exits(0)),
        allowed("L23b", "the first process shows nothing of the launcher")
            .sh("tr -d '\\0' < /proc/1/cmdline; echo; cat /proc/1/comm; grep -c stockade /proc/1/cmdline")
            .control(OWN)
            .boxed(stdout_is("init\ninit\n0")),
    ]
}
