//! O: what happens over a directory does not happen to it.

use stockade_test::{Case, Flag, attack, host, not, prints};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        attack("O01", "change, remove, add, move and link files of the project")
            .setup("mkdir d; echo one > a; echo two > b; echo three > d/c; ln -s a l")
            .sh("echo more >> a; rm b; rm -r d; mkdir d; echo x > d/new; ln -sf b l; echo y > new")
            .leak(not(host("grep -qx one a && test $(wc -l < a) = 1")))
            .leak(not(host("grep -qx two b")))
            .leak(not(host("grep -qx three d/c")))
            .leak(host("test -e new -o -e d/new"))
            .leak(not(host("test $(readlink l) = a"))),
        attack("O02", "change attributes of the project's files")
            .setup("echo x > a; chmod 600 a; mkdir d; touch -d 2001-02-03 a d")
            .sh("chmod 777 a d; touch -d 2011-01-01 a d; chmod 700 .")
            .leak(not(host("test $(stat -c %a a) = 600")))
            .leak(not(host("test $(stat -c %Y a) = $(date -d 2001-02-03 +%s)")))
            .leak(not(host("test $(stat -c %Y d) = $(date -d 2001-02-03 +%s)")))
            .leak(not(host("test $(stat -c %a .) = 755"))),
        attack("O03", "write through a mapping, a truncation and a hard link")
            .setup("printf 'good data' > m; printf 'good data' > t; printf 'good data' > h; ln h h2")
            .python(
                "
import mmap
with open('m', 'r+b') as f:
    view = mmap.mmap(f.fileno(), 0); view[:4] = b'evil'; view.flush()
os.truncate('t', 2)
with open('h2', 'r+b') as f: f.write(b'evil')",
            )
            .leak(not(host("grep -q good m")))
            .leak(not(host("grep -q good t")))
            .leak(not(host("grep -q good h"))),
        attack("O04", "reach the layer or the store behind the view")
            .setup("echo good > a; mkdir -p @HOME@/.local/share/stockade/workspaces")
            .sh("for d in @HOME@/.local/share/stockade/workspaces; do
                   echo x > $d/stray && echo wrote-the-store
                   find $d -name upper | while read u; do echo x > $u/stray && echo wrote-a-layer; done
                 done")
            .leak(prints("wrote-the-store"))
            .leak(host("test -e @HOME@/.local/share/stockade/workspaces/stray")),
        attack("O05", "make a device in the view that is one on the host")
            .setup("echo good > a")
            .sh("mknod null c 0 0; mknod zero c 1 5; mkfifo fifo; rm a")
            .leak(host("test -e fifo"))
            .leak(not(host("grep -qx good a"))),
        attack("O06", "change a second root that was granted")
            .flag(Flag::Write("@OUT@".into()))
            .setup("echo good > @OUT@/a")
            .sh("echo evil > @OUT@/a; echo evil > @OUT@/b; mv @OUT@/a @OUT@/c")
            .leak(not(host("grep -qx good @OUT@/a")))
            .leak(host("test -e @OUT@/b -o -e @OUT@/c")),
        attack("O07", "rewrite a repository")
            .setup("git init -q .; git config user.email a@b; git config user.name a; echo one > f; git add f; git commit -qm one; git rev-parse HEAD > @W@/head")
            .sh("echo two > f; git -c user.email=a@b -c user.name=a commit -qam two; git log --oneline | wc -l; git checkout -qb other; git gc -q")
            .leak(not(host("test $(git -c safe.directory='*' rev-parse HEAD) = $(cat @W@/head)")))
            .leak(host("git -c safe.directory='*' rev-parse -q --verify other"))
            .works(prints("2")),
        attack("O08", "a second run over the first one's changes")
            .setup("echo good > a")
            .sh("echo evil > a; mkdir d; echo x > d/x")
            .sh("grep -qx evil a && echo seen; rm -r d; rm a; mkdir a; echo x > a/x")
            .leak(not(host("grep -qx good a")))
            .works(prints("seen")),
    ]
}
