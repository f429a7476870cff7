//! Everyday tools: archives, databases, debuggers, keys, a terminal multiplexer.

use stockade_test::{Case, host, prints};

use crate::workload;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = data();
    cases.extend(processes());
    cases
}

fn data() -> Vec<Case> {
    vec![
        workload(
            "sqlite3",
            "a database with a journal, a lock and a temporary table",
            &["sqlite3"],
            "sqlite3 a.db \"pragma journal_mode=wal; create table t(n); insert into t values(1),(2); create temp table u as select * from t;\" > /dev/null
             sqlite3 a.db 'select sum(n) from t; vacuum;'; sqlite3 a.db .dump | sqlite3 b.db",
        )
        .works(prints("3"))
        .works(host("test -s b.db")),
        workload(
            "archives",
            "tar, gzip, xz and zip there and back",
            &["tar", "gzip", "xz", "zip", "unzip"],
            "mkdir -p d/sub; echo x > d/f; echo y > d/sub/g; ln -s f d/l; chmod 750 d/sub
             tar czf a.tgz d; tar cJf a.txz d; zip -qry a.zip d
             for a in a.tgz a.txz; do mkdir o.$a; tar xf $a -C o.$a; diff -r d o.$a/d; done
             unzip -q a.zip -d z; diff -r d z/d; test \"$(stat -c %a z/d/sub)\" = 750",
        )
        .works(host("test -L o.a.tgz/d/l")),
        workload(
            "pipelines",
            "find, xargs, sort, awk, sed, diff, patch, split, tee",
            &["find", "xargs", "awk", "patch"],
            "for i in $(seq 300); do mkdir -p t/$((i % 10)); echo line $i > t/$((i % 10))/$i; done
             find t -type f -print0 | xargs -0 -P4 -n20 grep -l 'line' | sort -u | wc -l | tee count
             find t -type f -name '1*' -exec sed -i s/line/row/ {} +; cp -a t u; sed -i s/row/col/ u/1/11
             diff -ru t u > p || true; patch -s -p1 -d t < p; diff -r t u; sort -R count | split -l 1 - part.
             find t -type f -delete; find t -depth -type d -empty -delete; test ! -e t",
        )
        .works(prints("300")),
        workload(
            "jq",
            "JSON there and back",
            &["jq"],
            "echo '{\"a\":[1,2,3]}' > j; jq '.a | add' j; jq -c '.b = env.HOME' j > k; jq -e .b k > /dev/null",
        )
        .works(prints("6")),
        workload(
            "ssh-keygen",
            "make keys, sign and verify",
            &["ssh-keygen"],
            "ssh-keygen -q -t ed25519 -N '' -C me -f key; echo text > m
             ssh-keygen -q -Y sign -f key -n file m; echo \"me $(cat key.pub)\" > who
             ssh-keygen -Y verify -f who -I me -n file -s m.sig < m",
        )
        .works(host("test -s key.pub")),
        workload(
            "openssl",
            "a key, a certificate, a signature, encryption",
            &["openssl"],
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 1 -subj /CN=x 2> /dev/null
             echo text > m; openssl dgst -sha256 -sign k -out s m; openssl x509 -in c -pubkey -noout > pub
             openssl dgst -sha256 -verify pub -signature s m; openssl enc -aes-256-cbc -pbkdf2 -k p -in m -out e
             openssl enc -d -aes-256-cbc -pbkdf2 -k p -in e",
        )
        .works(prints("Verified OK")),
    ]
}

fn processes() -> Vec<Case> {
    vec![
        workload(
            "gdb",
            "a debugger on one's own child",
            &["gdb", "gcc"],
            "printf 'int f(int n) { return n * 2; } int main(void) { return f(21) == 42 ? 0 : 1; }\\n' > a.c; gcc -g -o a a.c
             gdb -nx -batch -ex 'break f' -ex run -ex 'print n' -ex finish -ex continue ./a < /dev/null 2>&1",
        )
        .works(prints("$1 = 21")),
        workload(
            "strace",
            "a tracer on one's own children",
            &["strace"],
            "strace -f -o trace sh -c 'cat /etc/hostname > copy; ls > /dev/null'; grep -c execve trace",
        )
        .works(host("grep -q hostname trace")),
        workload(
            "tmux",
            "a terminal multiplexer with a session of its own",
            &["tmux"],
            // The pane lives until the server is killed: a server whose last pane ends while a
            // client is just arriving can leave that client waiting for ever.
            "tmux -L stk-@ID@ -f /dev/null new-session -d -x 80 -y 24 'tty > out; stty size >> out; tmux -L stk-@ID@ wait-for -S done; cat'
             tmux -L stk-@ID@ wait-for done; cat out; tmux -L stk-@ID@ kill-server 2> /dev/null || true",
        )
        .works(prints("24 80"))
        .cleanup("rm -f /tmp/tmux-*/stk-@ID@"),
        workload(
            "job-control",
            "background jobs, wait, traps, process substitution, co-processes",
            &["bash"],
            "bash -c '
set -e; sleep 100 & kill %1; wait %1 || test $? = 143
(exit 4) & wait $! || test $? = 4
diff <(echo a) <(echo a); trap \"echo trapped\" EXIT
coproc cat; echo through >&${COPROC[1]}; read -r line <&${COPROC[0]}; echo $line; exec {COPROC[1]}>&-
for i in 1 2 3; do (echo $i > job.$i) & done; wait; cat job.*'",
        )
        .works(prints("through"))
        .works(prints("trapped")),
        workload(
            "flock-and-watch",
            "file locks between processes, and notice of changes",
            &["flock", "python3"],
            "exec 9> lock; flock 9; flock -n lock true && exit 1
             flock -u 9; flock -n lock true
             /usr/bin/python3 - <<'EOF'
import ctypes, os, select
libc = ctypes.CDLL(None); fd = libc.inotify_init(); assert fd >= 0
assert libc.inotify_add_watch(fd, b'.', 0x100) >= 0
open('new-file', 'w').close()
assert select.select([fd], [], [], 100)[0]; print('noticed', b'new-file' in os.read(fd, 4096))
EOF",
        )
        .works(prints("noticed True")),
        workload(
            "write-then-run",
            "programs executed the moment they are written, replaced or made executable",
            &["python3"],
            "/usr/bin/python3 - <<'EOF'
import os
program = open('/bin/true', 'rb').read()
def write(name, flags, mode):
    fd = os.open(name, os.O_WRONLY | flags, mode); os.write(fd, program); os.close(fd)
def run(name):
    child = os.posix_spawn(name, [name], os.environ); assert os.waitpid(child, 0)[1] == 0
for i in range(150):
    write('./made', os.O_CREAT | os.O_EXCL, 0o755); run('./made')
    write('./made', os.O_TRUNC, 0); run('./made'); os.unlink('./made')
    write('./plain', os.O_CREAT | os.O_EXCL, 0o644); os.chmod('./plain', 0o755); run('./plain')
    os.rename('./plain', './old'); write('./old', os.O_CREAT, 0o600); run('./old'); os.unlink('./old')
print('all ran')
EOF",
        )
        .works(prints("all ran")),
    ]
}
