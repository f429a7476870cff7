//! L13 and X11: a real terminal, and no way to type at the host's.

use stockade_test::case::Control;
use stockade_test::{Case, Flag, Limit, Need, allowed, attack, closure, exits, host, not, prints};

/// Types into whatever standard input is, then says how each call went.
const TYPE: &str = r"cat > @W@/type.py <<'EOF'
import ctypes, errno, sys
print('@MARK@')
libc = ctypes.CDLL(None, use_errno=True)
def ioctl(name, request, argument):
    result = libc.ioctl(0, ctypes.c_ulong(request), argument)
    print(f'{name}=' + ('OK' if result >= 0 else errno.errorcode[ctypes.get_errno()]), flush=True)
for byte in b'touch @OUT@/typed\n':
    ioctl('sti', 0x5412, ctypes.byref(ctypes.c_char(byte)))
    ioctl('upper', 0x5412 | (1 << 32), ctypes.byref(ctypes.c_char(byte)))
ioctl('linux', 0x541C, ctypes.byref(ctypes.c_char(b'\x03')))
EOF
cat > @W@/job.sh <<'EOF'
@RUN@ /usr/bin/python3 @W@/type.py
bash -c 'read -t 0 && echo typed-yes || echo typed-no'
EOF
@PTY@ expect:typed- -- sh @W@/job.sh";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = work();
    cases.push(
        attack("X11", "type at the terminal of the host")
            .needs(Need::Sysctl("dev/tty/legacy_tiocsti", "1"))
            .launcher(TYPE)
            .leak(prints("sti=OK"))
            .leak(prints("upper=OK"))
            .leak(prints("typed-yes"))
            .boxed(prints("typed-no")),
    );
    cases.push(
        allowed("X11b", "console calls are refused, not merely inapplicable")
            .launcher(TYPE)
            .control(Control::Absent("they would need a console"))
            .boxed(prints("linux=EPERM")),
    );
    cases.push(
        attack("X11d", "the terminal of the host, where only one standard descriptor is one")
            .launcher(
                r"cat > @W@/hold.py <<'EOF'
import os, sys, termios
print('@MARK@', file=sys.stderr, flush=True)
own = os.open('@W@/tty', os.O_RDONLY); host = os.read(own, 99).decode().strip()
for fd in (0, 1, 2):
    if not os.isatty(fd): continue
    with open('@P@/held', 'a') as out: print(fd, 'host' if '%d %d' % (os.fstat(fd).st_dev, os.fstat(fd).st_rdev) == host else 'own', file=out)
    modes = termios.tcgetattr(fd); modes[3] &= ~(termios.ECHO | termios.ICANON); termios.tcsetattr(fd, termios.TCSANOW, modes)
EOF
cat > @W@/job.sh <<'EOF'
python3 -c 'import os; print(os.fstat(0).st_dev, os.fstat(0).st_rdev)' > @W@/tty
@RUN@ /usr/bin/python3 @W@/hold.py > @W@/one 2>&1; stty -a | grep -q -w -e -icanon && echo raw-after; stty sane
@RUN@ /usr/bin/python3 @W@/hold.py < /dev/null 2> @W@/two; stty -a | grep -q -w -e -icanon && echo raw-after; stty sane
@RUN@ /usr/bin/python3 @W@/hold.py < /dev/null > @W@/three; stty -a | grep -q -w -e -icanon && echo raw-after; stty sane
cat @W@/one; echo judged
EOF
@PTY@ expect:judged -- sh @W@/job.sh",
            )
            .leak(host("grep -q host held"))
            .leak(prints("raw-after"))
            .boxed(host("test $(grep -c own held) = 3")),
    );
    cases.push(
        attack("R05c", "more output than allowed, on a terminal and a pipe together")
            .flag(Flag::Limit(Limit::Output("128K".into())))
            .launcher(
                "cat > @W@/job.sh <<'EOF'
@RUN@ sh -c 'head -c 100K /dev/zero; echo @MARK@ >&2; head -c 100K /dev/zero >&2; head -c 1M /dev/zero' > @W@/piped
echo judged
EOF
@PTY@ expect:judged -- sh @W@/job.sh",
            )
            .leak(closure("more than 128 KiB and a little arrived", |scene| {
                let piped = std::fs::metadata(scene.world.witness().join("piped"));
                piped.map_or(0, |data| data.len()) + scene.outcomes[0].stdout.len() as u64 > 192 << 10
            }))
            .boxed(prints("too much output")),
    );
    cases.push(
        attack("R05b", "more output than allowed, on a terminal")
            .flag(Flag::Limit(Limit::Output("128K".into())))
            .launcher("@PTY@ -- @RUN@ sh -c 'echo @MARK@; head -c 2M /dev/zero'")
            .leak(closure("more than 128 KiB and a little arrived", |scene| {
                scene.outcomes[0].stdout.len() > 192 << 10
            }))
            .boxed(prints("too much output")),
    );
    cases
        .into_iter()
        .map(|case| {
            case.needs(Need::Tty)
                .needs(Need::Tool("python3"))
                .cli_only("a terminal is relayed by run_in_foreground, as the command line does")
        })
        .collect()
}

fn work() -> Vec<Case> {
    vec![
        allowed("L13", "size and name of the terminal")
            .launcher("@PTY@ expect:@MARK@ -- @RUN@ sh -c 'stty size; tty; test -t 0 && echo is-tty; echo @MARK@; exit 4'")
            .works(prints("24 80"))
            .works(prints("/dev/pts/"))
            .works(prints("is-tty"))
            .works(exits(4)),
        allowed("L13b", "Ctrl-C reaches the command")
            .launcher(
                "@PTY@ expect:@MARK@ 'send:\\x03' expect:interrupted -- @RUN@ /usr/bin/python3 -c '
import signal, sys
try:
    print(\"@MARK@\", flush=True); signal.pause()
except KeyboardInterrupt:
    print(\"interrupted\", flush=True); sys.exit(3)'",
            )
            .works(prints("interrupted"))
            .works(exits(3)),
        allowed("L13c", "Ctrl-Z stops it, fg goes on")
            .needs(Need::Tool("bash"))
            .launcher(
                "cat > @W@/ask.py <<'EOF'
import sys
print('@MARK@', flush=True)
print('after-' + sys.stdin.readline(), flush=True)
EOF
cat > @W@/job.sh <<'EOF'
exec @RUN@ /usr/bin/python3 @W@/ask.py
EOF
@PTY@ 'send:sh @W@/job.sh\\n' expect:@MARK@ 'send:\\x1a' expect:Stopped 'send:fg\\n' 'send:hello\\n' \\
    expect:after-hello expect:bash- 'send:exit 8\\n' -- bash --norc --noprofile -i",
            )
            .works(prints("after-hello"))
            .works(exits(8)),
        allowed("L13d", "a new size is told")
            .launcher(
                "@PTY@ expect:@MARK@ resize:40x100 expect:now-40x100 -- @RUN@ /usr/bin/python3 -c '
import os, signal
signal.signal(signal.SIGWINCH, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
print(\"@MARK@\", flush=True); signal.sigwait([signal.SIGWINCH])
size = os.get_terminal_size(0); print(f\"now-{size.lines}x{size.columns}\", flush=True)'",
            )
            .works(prints("now-40x100")),
        allowed("L13e", "a full-screen editor")
            .needs(Need::Tool("vim"))
            .launcher(
                "@PTY@ 'expect:[New]' 'send:ihello\\x1b:wq\\n' -- @RUN@ sh -c 'echo @MARK@; exec vim -u NONE -N note.txt'",
            )
            .works(host("grep -qx hello note.txt"))
            .works(exits(0)),
        allowed("L13f", "raw mode is given back when the command dies in it")
            .needs(Need::Tool("stty"))
            .launcher(
                "cat > @W@/job.sh <<'EOF'
@RUN@ sh -c 'echo @MARK@; stty raw -echo; kill -KILL $$'
stty -a | grep -q -w icanon && echo cooked-again; echo judged
EOF
@PTY@ expect:judged -- sh @W@/job.sh",
            )
            .control(Control::Absent("without a relay the terminal stays raw"))
            .boxed(prints("cooked-again")),
        allowed("L13k", "raw mode is given back when the launcher is told to end")
            .needs(Need::Tool("stty"))
            .launcher(
                "cat > @W@/box.sh <<'EOF'
echo $$ > @W@/pid
exec @RUN@ sh -c 'echo @MARK@; touch up; exec sleep @LONG@'
EOF
cat > @W@/job.sh <<'EOF'
(while test ! -e @P@/up; do sleep 0.05; done; kill -TERM $(cat @W@/pid)) &
sh @W@/box.sh; echo ended-$?
stty -a | grep -q -w icanon && echo cooked-again; echo judged
EOF
@PTY@ expect:judged -- sh @W@/job.sh",
            )
            .works(prints("ended-143"))
            .works(prints("cooked-again")),
        allowed("L13g", "an interpreter's prompt")
            .launcher("@PTY@ 'expect:>>> ' 'send:print(6*7)\\n' expect:42 'expect:>>> ' 'send:\\x04' -- @RUN@ sh -c 'echo @MARK@; exec /usr/bin/python3 -q'")
            .works(prints("42"))
            .works(exits(0)),
        allowed("L13i", "a job in the background goes on, and takes keys when it is in the foreground")
            .needs(Need::Tool("bash"))
            .launcher(
                "cat > @W@/ask.py <<'EOF'
import os, sys
print('@MARK@', flush=True)
while not os.path.exists('@P@/go'): pass
print('in-background', flush=True)
print('after-' + sys.stdin.readline(), flush=True)
EOF
cat > @W@/job.sh <<'EOF'
exec @RUN@ /usr/bin/python3 @W@/ask.py
EOF
@PTY@ 'send:sh @W@/job.sh &\\n' expect:@MARK@ 'send:touch @P@/go\\n' expect:in-background 'send:echo shell-$((40+2))\\n' expect:shell-42 'send:jobs\\n' \\
    expect:Running 'expect:job.sh &' 'send:fg\\n' expect:job.sh 'send:hello\\n' expect:after-hello expect:bash- 'send:exit 8\\n' -- bash --norc --noprofile -i",
            )
            .control(Control::Absent("bare, reading from the background stops the job"))
            .boxed(prints("after-hello"))
            .boxed(exits(8)),
        allowed("L13j", "input from a pipe, output to a terminal")
            .launcher(
                "cat > @W@/job.sh <<'EOF'
echo piped-in | @RUN@ sh -c 'echo @MARK@; cat; test -t 0 || echo no-tty-0; test -t 1 && echo tty-1; stty size < /dev/tty'
stty -a | grep -q -w icanon && echo cooked-after; echo judged
EOF
@PTY@ expect:judged -- sh @W@/job.sh",
            )
            .works(prints("piped-in"))
            .works(prints("no-tty-0"))
            .works(prints("tty-1"))
            .works(prints("24 80"))
            .works(prints("cooked-after")),
        allowed("L13h", "output to a pipe while input is a terminal")
            .launcher(
                "cat > @W@/job.sh <<'EOF'
@RUN@ sh -c 'echo @MARK@ >&2; test -t 1 || echo not-a-tty' | cat > @W@/piped
EOF
@PTY@ -- sh @W@/job.sh",
            )
            .works(host("grep -qx not-a-tty @W@/piped"))
            .boxed(not(closure("a carriage return in the pipe", |scene| {
                std::fs::read(scene.world.witness().join("piped")).is_ok_and(|bytes| bytes.contains(&b'\r'))
            }))),
    ]
}
