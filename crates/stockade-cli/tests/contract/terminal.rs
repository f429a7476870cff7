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
        allowed("L13g", "an interpreter's prompt")
            .launcher("@PTY@ 'expect:>>> ' 'send:print(6*7)\\n' expect:42 'expect:>>> ' 'send:\\x04' -- @RUN@ sh -c 'echo @MARK@; exec /usr/bin/python3 -q'")
            .works(prints("42"))
            .works(exits(0)),
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
