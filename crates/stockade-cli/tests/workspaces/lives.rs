//! K: a workspace from outside. Root has control groups to freeze with; the ordinary user has
//! none, and everything is stopped by a signal.

use std::time::Duration;

use stockade_test::case::Control;
use stockade_test::stage::Role;
use stockade_test::{Case, Need, allowed, exits, host, prints};

/// Lines of every script: the program by itself, and a way to see that it came to its end.
const BEGIN: &str = "set -eu; run() { echo @RUN@; }; s=$(set -- @RUN@; echo $1); \
                     trap '$s ws rm w --force >/dev/null 2>&1 || :' EXIT; ";

/// Serves one response in pieces, until it is told that there are enough, and says where.
const SERVER: &str = r"
import os, socket, time
server = socket.create_server(('127.0.0.1', 0))
open('port.new', 'w').write(str(server.getsockname()[1]))
os.rename('port.new', 'port')
client, _ = server.accept()
client.recv(4096)
client.sendall(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n')
piece = 0
while not os.path.exists('enough'):
    client.sendall(b'%099d\n' % piece)
    piece += 1
    time.sleep(0.05)
client.sendall(b'end of %d\n' % piece)
client.close()
";

/// Reads a part of the response, pauses, sees that nothing comes, resumes, reads the rest.
const CLIENT: &str = r"
import os, socket, subprocess, sys, time
program = sys.argv[1]
end = time.monotonic() + 100
while not os.path.exists('port') and time.monotonic() < end: time.sleep(0.01)
client = socket.create_connection(('127.0.0.1', int(open('port').read())), timeout=100)
client.sendall(b'GET / HTTP/1.1\r\nHost: x\r\n\r\n')
got = b''
while got.count(b'\n') < 8: got += client.recv(100)
subprocess.run([program, 'ws', 'pause', 'w'], check=True)
client.settimeout(0.5)
try:
    while True: got += client.recv(4096)
except TimeoutError:
    pass
# Frozen: what was on its way has come, and ten pieces' time brings none.
before = len(got)
try:
    got += client.recv(4096)
except TimeoutError:
    print('stood-still')
assert len(got) == before, 'it went on'
subprocess.run([program, 'ws', 'resume', 'w'], check=True)
client.settimeout(100)
got += client.recv(4096)
assert len(got) > before, 'it did not go on'
open('enough', 'w').close()
while data := client.recv(4096): got += data
head, _, body = got.partition(b'\r\n\r\n')
count = body.count(b'\n') - 1
assert body == b''.join(b'%099d\n' % piece for piece in range(count)) + b'end of %d\n' % count, body
print('whole-response')
";

pub(crate) fn cases() -> Vec<Case> {
    let cases = vec![
        life(
            "K01",
            "what an overlay holds is shown, committed in part, and discarded",
            "mkdir d; echo one > a; echo two > b; echo three > d/c
             $s run -q --overlay -- sh -c 'echo @MARK@ >&2; echo more >> a; rm b; echo new > d/n; chmod 750 d/c; ln -s a l; mv d/c d/e'
             grep -qx two b
             $s ws diff --summary
             $s ws commit \"$($s ws list --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[\"workspaces\"][0][\"name\"])')\" a d
             test -e b -a ! -e l -a -e d/n -a ! -e d/c; test $(stat -c %a d/e) = 750; test $(wc -l < a) = 2
             $s ws commit
             test ! -e b -a -L l
             $s run -q --overlay -- rm -r d
             $s ws discard
             test -e d/n && echo to-the-end",
        )
        .needs(Need::Userns)
        .boxed(prints("M a"))
        .boxed(prints("D b"))
        .boxed(prints("R d/c -> d/e")),
        life(
            "K02",
            "a snapshot is restored with all its attributes",
            "echo @MARK@
             mkdir -p d/.hidden e; echo one > a; ln a a2; ln -s / root; mkfifo f; truncate -s 1M sparse
             chmod 640 a; touch -d '2001-02-03 04:05:06.789012345' a d
             all() { find . -printf '%p %y %m %U %G %s %T@ %n %l\\n' | sort; }
             all > @W@/before
             $s ws create w --dir . ; id=$($s ws snapshot w -m text)
             rm -r d a2 root; echo two > a; echo x > extra; chmod 777 e; $s ws diff w --summary
             $s ws restore w $id
             all > @W@/after; diff @W@/before @W@/after
             $s ws fsck && echo to-the-end",
        )
        .boxed(prints("M a")),
        life(
            "K03",
            "a server that is paused in the middle of a response ends it when it goes on",
            "echo @MARK@
             cat > @W@/server.py <<'EOF'
@SERVER@EOF
             cat > @W@/client.py <<'EOF'
@CLIENT@EOF
             $s ws create w --dir .
             $s ws run w -d --net open -- python3 -c \"$(cat @W@/server.py)\"
             $s ws show w --json | grep freezer
             python3 @W@/client.py $s && echo to-the-end",
        )
        .needs(Need::Userns)
        .bound(Duration::from_secs(300))
        .boxed(prints("stood-still"))
        .boxed(prints("whole-response")),
        life(
            "K03b",
            "the same where no control group can be made",
            "echo @MARK@
             cat > @W@/server.py <<'EOF'
@SERVER@EOF
             cat > @W@/client.py <<'EOF'
@CLIENT@EOF
             $s ws create w --dir .
             $s ws run w -d --net open -- python3 -c \"$(cat @W@/server.py)\"
             $s ws show w --json | grep '\"freezer\": *null' && echo by-signal
             python3 @W@/client.py $s && echo to-the-end",
        )
        .needs(Need::Userns)
        .only(Role::User, "root has control groups")
        .bound(Duration::from_secs(300))
        .boxed(prints("by-signal"))
        .boxed(prints("whole-response")),
        life(
            "K04",
            "what is left running is typed to",
            "echo @MARK@
             $s ws create w --dir .
             $s ws run w -d -- sh -c 'while read line && test $line != end; do echo line-$line; done; echo done'
             printf 'a\\nb\\n' | $s ws attach w > @W@/seen & attached=$!
             until grep -q line-b @W@/seen; do sleep 0.05; done
             kill $attached; wait $attached || :
             printf 'c\\nend\\n' | $s ws attach w
             test -z \"$(find @HOME@ -name 'input-*')\" && echo to-the-end",
        )
        .needs(Need::Userns)
        .boxed(prints("line-a\nline-b\nline-c\ndone\n")),
        life(
            "K05",
            "Ctrl-D at a terminal leaves, and the command goes on",
            "echo @MARK@
             $s ws create w --dir .
             $s ws run w -d -- sh -c 'echo ready; read one; echo got-$one; read two; echo got-$two'
             @PTY@ expect:ready 'send:one\\n' expect:got-one 'send:\\x04' -- $s ws attach w
             $s ws show w | grep -q process
             echo two | $s ws attach w
             echo to-the-end",
        )
        .needs(Need::Userns)
        .needs(Need::Tty)
        .boxed(prints("got-one"))
        .boxed(prints("got-two")),
        life(
            "K06",
            "differences in colours and through a pager, on a terminal only",
            "echo @MARK@
             echo one > a; $s ws create w --dir .; echo two > a
             @PTY@ expect:two -- env PAGER=cat $s ws diff w > @W@/coloured
             @PTY@ expect:two -- env NO_COLOR=1 PAGER=cat $s ws diff w > @W@/plain
             printf '#!/bin/sh\\necho through-the-pager; exec cat\\n' > @W@/pager; chmod 755 @W@/pager
             @PTY@ expect:through-the-pager expect:two -- env PAGER=@W@/pager $s ws diff w
             PAGER=@W@/pager $s ws diff w > @W@/file
             grep -q \"$(printf '\\033\\[')\" @W@/coloured
             ! grep -q \"$(printf '\\033\\[')\" @W@/plain
             ! grep -q \"$(printf '\\033\\[')\" @W@/file
             ! grep -q pager @W@/file
             echo to-the-end",
        )
        .needs(Need::Tty)
        .boxed(prints("through-the-pager")),
    ];
    cases
        .into_iter()
        .map(|case| case.needs(Need::Tool("python3")))
        .collect()
}

/// A script that must come to its end.
fn life(id: &'static str, title: &'static str, script: &str) -> Case {
    let script = script
        .replace("@SERVER@", SERVER)
        .replace("@CLIENT@", CLIENT);
    allowed(id, title)
        .launcher(format!("{BEGIN}\n{script}"))
        .control(Control::Absent("there is no workspace without the program"))
        .boxed(prints("to-the-end"))
        .boxed(exits(0))
        .boxed(host("test -d @HOME@/.local/share/stockade"))
}
