//! F: what may be read and written. The longest path wins, deny wins a tie.

use stockade_test::stage::Role;
use stockade_test::{
    Base, Case, Flag, Need, allowed, attack, exits, host, not, prints, stdout_is, touched,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = basic();
    cases.extend(deny_and_reopen());
    cases.extend(base());
    cases.extend(globs());
    cases.extend(odd_paths());
    cases
}

fn write(path: &str) -> Flag {
    Flag::Write(path.into())
}

fn deny_read(path: &str) -> Flag {
    Flag::DenyRead(path.into())
}

fn basic() -> Vec<Case> {
    vec![
        allowed("F01", "list system programs")
            .sh("ls -l /bin > /dev/null")
            .works(exits(0)),
        attack("F02", "write outside the grants")
            .sh("echo x > /var/tmp/@ID@")
            .leak(host("test -e /var/tmp/@ID@"))
            .boxed(not(exits(0)))
            .cleanup("rm -f /var/tmp/@ID@"),
        attack("F02b", "leave the project, then write a relative path")
            .sh("cd @OUT@ && echo x > t; cd ../home && echo x > t; cd / && cd -; echo x > ../t")
            .leak(host("test -e @OUT@/t"))
            .leak(host("test -e @HOME@/t"))
            .leak(host("test -e @BASE@/t")),
        attack("F02c", "change what exists outside, each way there is")
            .setup("cd @OUT@ && for f in a b c d e f g; do echo old > $f; done; mkdir sub")
            .python(
                r"
os.chdir('@OUT@')
trying('append', lambda: open('a', 'a').write('x'))
trying('truncate', lambda: os.truncate('b', 0))
trying('unlink', lambda: os.unlink('c'))
trying('rename', lambda: os.rename('d', 'dd'))
trying('chmod', lambda: os.chmod('e', 0o600))
trying('utime', lambda: os.utime('f', (1, 1)))
trying('link', lambda: os.link('g', 'gg'))
trying('rmdir', lambda: os.rmdir('sub'))
trying('mkdir', lambda: os.mkdir('new'))
trying('symlink', lambda: os.symlink('x', 'soft'))
trying('fifo', lambda: os.mkfifo('pipe'))
",
            )
            .leak(prints("append=OK"))
            .leak(prints("truncate=OK"))
            .leak(prints("unlink=OK"))
            .leak(prints("rename=OK"))
            .leak(prints("chmod=OK"))
            .leak(prints("utime=OK"))
            .leak(prints("link=OK"))
            .leak(prints("rmdir=OK"))
            .leak(prints("mkdir=OK"))
            .leak(prints("symlink=OK"))
            .leak(prints("fifo=OK"))
            .leak(touched()),
        // By itself: a file system in memory has such attributes since Linux 6.6 only.
        attack("F02e", "an extended attribute of what exists outside")
            .setup("echo old > @OUT@/f")
            .python("trying('xattr', lambda: os.setxattr('@OUT@/f', 'user.x', b'y'))")
            .leak(prints("xattr=OK")),
        attack(
            "F02d",
            "bring a file out of the project by rename and by link",
        )
        .sh("echo x > f; mv f @OUT@/moved; echo x > g; ln g @OUT@/linked")
        .leak(host("test -e @OUT@/moved"))
        .leak(host("test -e @OUT@/linked")),
        allowed("F03", "write in the project")
            .sh("echo x > f; cat f")
            .works(stdout_is("x"))
            .works(host("grep -qx x f")),
        allowed("F03b", "a project below /tmp, which is otherwise private")
            .setup("mkdir -p /tmp/@ID@/proj")
            .cwd("/tmp/@ID@/proj")
            .sh("echo x > f; cat f")
            .works(stdout_is("x"))
            .works(host("grep -qx x /tmp/@ID@/proj/f"))
            .cleanup("rm -rf /tmp/@ID@"),
        attack(
            "F03e",
            "write in a project below /tmp that is only to be read",
        )
        .setup("mkdir -p /tmp/@ID@/proj && echo old > /tmp/@ID@/proj/f")
        .cwd("/tmp/@ID@/proj")
        .flag(Flag::ReadOnly)
        .sh("echo x > new; echo x > f; rm f; cd /tmp/@ID@ && mv proj other")
        .leak(host("test -e /tmp/@ID@/*/new"))
        .leak(not(host("grep -qx old /tmp/@ID@/proj/f")))
        .cleanup("rm -rf /tmp/@ID@"),
        attack("F03f", "write below /tmp what was granted to be read")
            .setup("mkdir -p /tmp/@ID@/data && echo old > /tmp/@ID@/data/f")
            .flag(Flag::Read("/tmp/@ID@/data".into()))
            .sh("echo x > /tmp/@ID@/data/new; echo x > /tmp/@ID@/data/f")
            .leak(host("test -e /tmp/@ID@/data/new"))
            .leak(not(host("grep -qx old /tmp/@ID@/data/f")))
            .cleanup("rm -rf /tmp/@ID@"),
        attack(
            "F03g",
            "write to the host's /tmp, which was granted to be read",
        )
        .flag(Flag::Read("/tmp".into()))
        .sh("echo x > /tmp/@ID@")
        .leak(host("test -e /tmp/@ID@"))
        .cleanup("rm -f /tmp/@ID@"),
        allowed("F03c", "a file made inside has the caller's owner and mode")
            .sh("umask 027; echo x > f; mkdir d")
            .works(host("test \"$(stat -c %u:%a f)\" = @UID@:640"))
            .works(host("test \"$(stat -c %u:%a d)\" = @UID@:750")),
        allowed(
            "F03d",
            "a umask that changes, also in a thread, also for a child",
        )
        .needs(Need::Tool("python3"))
        .sh(r#"/usr/bin/python3 - <<'EOF'
import os, threading
def make(name):
    os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o777))
    print("%o" % (os.stat(name).st_mode & 0o777), end=" ", flush=True)
def other():
    make("e"); os.umask(0); make("f")
os.umask(0o022); make("a"); make("b")
os.umask(0o077); make("c"); make("d")
thread = threading.Thread(target=other); thread.start(); thread.join(); make("g")
if os.fork() == 0:
    make("h"); os.umask(0o070); make("i"); os._exit(0)
os.wait(); make("j")
EOF"#)
        .works(stdout_is("755 755 700 700 700 777 777 777 707 777")),
        allowed("F04", "read what anybody may read")
            .sh("cat /etc/hostname > /dev/null")
            .works(exits(0)),
        attack("F05", "write under a read-only policy")
            .flag(Flag::ReadOnly)
            .sh("touch @P@/f; echo x >> old")
            .setup("echo old > old")
            .leak(host("test -e f"))
            .leak(host("grep -q x old")),
        allowed("F06", "a grant of what does not exist")
            .flag(write("@P@"))
            .flag(write("@P@/nope"))
            .sh("printf ok")
            .works(stdout_is("ok"))
            .boxed(host("test ! -e nope")),
        attack("F07", "grant of one file")
            .flag(Flag::ReadOnly)
            .flag(write("@P@/one.txt"))
            .setup("echo old > one.txt; echo old > two.txt")
            .sh("echo new > one.txt; echo new > two.txt")
            .works(host("grep -qx new one.txt"))
            .leak(host("grep -qx new two.txt")),
        allowed("F20", "grant with a trailing slash")
            .flag(Flag::ReadOnly)
            .flag(write("@P@/"))
            .sh("echo x > f")
            .works(host("grep -qx x f")),
        attack(
            "F20b",
            "relative and dotted grants mean what they resolve to",
        )
        .flag(Flag::ReadOnly)
        .flag(write("a/../b/."))
        .setup("mkdir a b")
        .sh("echo x > b/f; echo x > a/f")
        .works(host("grep -qx x b/f"))
        .leak(host("test -e a/f")),
    ]
}

fn deny_and_reopen() -> Vec<Case> {
    let blocked = "mkdir blocked; echo @SECRET@ > blocked/secret";
    vec![
        attack("F08", "write below a denied read")
            .flag(deny_read("@P@/blocked"))
            .setup("mkdir blocked")
            .sh("echo x > blocked/s")
            .leak(host("test -e blocked/s"))
            .boxed(not(exits(0))),
        attack("F09", "read a denied directory")
            .flag(deny_read("@P@/blocked"))
            .setup(blocked)
            .sh("cat blocked/secret")
            .leak(prints("@SECRET@"))
            .boxed(not(exits(0))),
        attack("F09b", "read a denied directory with other tools")
            .flag(deny_read("@P@/blocked"))
            .setup(blocked)
            .sh("grep -r . blocked; tar cf - blocked; cp -r blocked copy; cat copy/*; dd if=blocked/secret")
            .leak(prints("@SECRET@")),
        attack("F09c", "list a denied directory")
            .flag(deny_read("@P@/blocked"))
            .setup("mkdir blocked; echo > blocked/name-@ID@")
            .sh("ls blocked; echo blocked/*; find . -name 'name-*'; stat -c found-%n blocked/name-@ID@")
            .leak(prints("found-blocked/name-@ID@"))
            .leak(prints("./blocked/name-@ID@")),
        attack("F09d", "delete or replace a denied directory")
            .flag(deny_read("@P@/blocked"))
            .setup(blocked)
            .sh("rm -rf blocked; mv blocked gone; mkdir blocked; echo fake > blocked/secret")
            .leak(not(host("grep -q @SECRET@ blocked/secret"))),
        attack("F10", "read a denied file")
            .flag(deny_read("@P@/.env"))
            .setup("echo @SECRET@ > .env")
            .sh("cat .env")
            .leak(prints("@SECRET@"))
            .boxed(not(exits(0))),
        attack("F11", "reopen a directory below a deny")
            .flag(deny_read("@P@/b"))
            .flag(write("@P@/b/ok"))
            .setup("mkdir -p b/ok; echo @SECRET@ > b/other-@ID@")
            .sh("echo n > b/ok/n && cat b/ok/n; ls b; cat b/other-@ID@")
            .works(prints("n"))
            .works(host("grep -qx n b/ok/n"))
            .leak(prints("other-@ID@"))
            .leak(prints("@SECRET@")),
        attack("F12", "reopen a file below a deny")
            .flag(deny_read("@P@/b"))
            .flag(write("@P@/b/ok.txt"))
            .setup("mkdir b; echo old > b/ok.txt; echo @SECRET@ > b/other")
            .sh("echo new > b/ok.txt; cat b/other")
            .works(host("grep -qx new b/ok.txt"))
            .leak(prints("@SECRET@")),
        attack("F13", "deny, allow, deny again")
            .flag(deny_read("@P@/a"))
            .flag(write("@P@/a/b"))
            .flag(deny_read("@P@/a/b/c"))
            .setup("mkdir -p a/b/c; echo outer-@SECRET@ > a/x; echo inner-@SECRET@ > a/b/c/z")
            .sh("cat a/x; echo y > a/b/y; cat a/b/c/z")
            .works(host("grep -qx y a/b/y"))
            .leak(prints("outer-@SECRET@"))
            .leak(prints("inner-@SECRET@")),
        attack("F15", "the same path allowed and denied, in both orders")
            .setup("mkdir @HOME@/p; echo @SECRET@ > @HOME@/s")
            .sh("echo t > @HOME@/p/one; cat @HOME@/s")
            .with_flags([
                deny_read("@HOME@"),
                Flag::Read("@HOME@".into()),
                write("@HOME@/p"),
            ])
            .sh("echo t > @HOME@/p/two; cat @HOME@/s")
            .with_flags([
                write("@HOME@/p"),
                Flag::Read("@HOME@".into()),
                deny_read("@HOME@"),
            ])
            .works(host("test -e @HOME@/p/one -a -e @HOME@/p/two"))
            .leak(prints("@SECRET@")),
        attack("F27", "five hundred denied directories")
            .setup("for i in $(seq 500); do mkdir d$i; echo @SECRET@ > d$i/s; done")
            .sh("cat d1/s d250/s d500/s; echo alive")
            .works(prints("alive"))
            .leak(prints("@SECRET@"))
            .flags((1..=500).map(|i| deny_read(&format!("@P@/d{i}")))),
        attack("F27b", "five hundred denied files")
            .setup("mkdir d; for i in $(seq 500); do echo @SECRET@ > d/f$i; done; echo fine > d/other")
            .sh("cat d/*; cp d/f499 x && cat x; cat /proc/self/root@P@/d/f497; cd d; cat < f300; cat other")
            .works(prints("fine"))
            .leak(prints("@SECRET@"))
            .flags((1..=500).map(|i| deny_read(&format!("@P@/d/f{i}")))),
        attack("F27c", "links to and renames of five hundred denied files")
            .setup("mkdir d; for i in $(seq 500); do echo @SECRET@ > d/f$i; done")
            .sh("for i in $(seq 5 55 500); do ln d/f$i a$i && cat a$i; ln -s d/f$i b$i; cat b$i; mv d/f$i c$i && cat c$i; done; mv d e && cat e/*")
            .leak(prints("@SECRET@"))
            .flags((1..=500).map(|i| deny_read(&format!("@P@/d/f{i}")))),
        attack("F27d", "execute one of five hundred denied files")
            .setup(
                "mkdir d; for i in $(seq 500); do cp /bin/echo d/f$i; done; chmod -x d/f3*; chmod 711 d/f299",
            )
            .sh("for f in d/f7 d/f288 d/f299 d/f499; do $f ran-$f; done; chmod +x d/f300; d/f300 ran-it")
            .leak(prints("ran-"))
            .flags((1..=500).map(|i| deny_read(&format!("@P@/d/f{i}")))),
        attack("F28", "a path denied for reading and writing")
            .flag(Flag::Deny("@P@/k".into()))
            .setup("echo @SECRET@ > k")
            .sh("cat k; echo x > k")
            .leak(prints("@SECRET@"))
            .leak(host("grep -qx x k")),
        attack("F31", "a path denied for writing stays readable")
            .flag(Flag::DenyWrite("@P@/keep".into()))
            .setup("mkdir keep; echo kept > keep/f")
            .sh("cat keep/f; echo x > keep/f; echo x > keep/g; rm keep/f")
            .works(prints("kept"))
            .leak(not(host("grep -qx kept keep/f")))
            .leak(host("test -e keep/g")),
    ]
}

fn base() -> Vec<Case> {
    vec![
        attack("F17", "home and other people's files under the minimal base")
            .flag(Flag::Base(Base::Minimal))
            .setup("mkdir @HOME@/.ssh; echo @SECRET@ > @HOME@/.ssh/id_rsa; echo @SECRET@2 > @OUT@/f")
            .sh("cat @HOME@/.ssh/id_rsa; cat @OUT@/f; ls /home && echo listed")
            .leak(prints("@SECRET@"))
            .leak(prints("@SECRET@2"))
            .leak(prints("listed")),
        attack("F17b", "credential stores under the default base")
            .setup(
                "cd @HOME@; mkdir -p .ssh .aws .config/gh .config/gcloud .docker .kube .gnupg .cargo
                 for f in .ssh/id_ed25519 .aws/credentials .config/gh/hosts.yml \
                     .config/gcloud/credentials.db .docker/config.json .kube/config .gnupg/key \
                     .cargo/credentials.toml .npmrc .pypirc .netrc .git-credentials .vault-token
                 do echo \"$f @SECRET@\" > $f; done",
            )
            .sh("cd @HOME@; find . -type f | xargs cat")
            .leak(prints(".ssh/id_ed25519 @SECRET@"))
            .leak(prints(".aws/credentials @SECRET@"))
            .leak(prints(".config/gh/hosts.yml @SECRET@"))
            .leak(prints(".config/gcloud/credentials.db @SECRET@"))
            .leak(prints(".docker/config.json @SECRET@"))
            .leak(prints(".kube/config @SECRET@"))
            .leak(prints(".gnupg/key @SECRET@"))
            .leak(prints(".cargo/credentials.toml @SECRET@"))
            .leak(prints(".npmrc @SECRET@"))
            .leak(prints(".pypirc @SECRET@"))
            .leak(prints(".netrc @SECRET@"))
            .leak(prints(".git-credentials @SECRET@"))
            .leak(prints(".vault-token @SECRET@")),
        attack("F17c", "plant a key in a credential store that does not exist yet")
            .flag(write("@HOME@"))
            .sh("mkdir -p @HOME@/.ssh && echo key > @HOME@/.ssh/authorized_keys; echo ok > @HOME@/f")
            .works(host("grep -qx ok @HOME@/f"))
            .leak(host("test -s @HOME@/.ssh/authorized_keys")),
        attack("F17e", "credentials in another home, as root")
            .alone()
            .only(Role::Root, "nobody else can read them to begin with")
            .root_setup("mkdir -p /home/@ID@/.ssh /home/@ID@/.config/gh; echo key-@SECRET@ > /home/@ID@/.ssh/id_rsa
                         echo gh-@SECRET@ > /home/@ID@/.config/gh/hosts.yml; echo plain > /home/@ID@/notes")
            .cleanup("rm -rf /home/@ID@")
            .sh("cat /home/@ID@/.ssh/id_rsa /home/@ID@/.config/gh/hosts.yml; cat /home/@ID@/notes")
            .leak(prints("key-@SECRET@"))
            .leak(prints("gh-@SECRET@"))
            .works(prints("plain")),
        attack("F17d", "password hashes, as root")
            .only(Role::Root, "nobody else can read them to begin with")
            .sh("grep -c '^root:' /etc/shadow && echo shadow-read")
            .leak(prints("shadow-read")),
        allowed("F18", "the minimal base runs tools")
            .needs(Need::Tool("python3"))
            .needs(Need::Tool("git"))
            .needs(Need::Tool("cc"))
            .flag(Flag::Base(Base::Minimal))
            .sh("/usr/bin/python3 -c 'import ssl,json' && git --version && cc --version")
            .works(exits(0)),
        allowed("F18b", "the minimal base compiles and runs a program")
            .needs(Need::Tool("cc"))
            .flag(Flag::Base(Base::Minimal))
            .sh("echo 'int main(void){return 9;}' > a.c && cc -o a a.c && ./a")
            .works(exits(9)),
    ]
}

fn globs() -> Vec<Case> {
    let glob = || deny_read("@P@/**/*.env");
    vec![
        attack("F22", "read what a glob denies")
            .flag(glob())
            .setup("mkdir -p a/b; echo @SECRET@ > a/b/prod.env; echo top-@SECRET@ > top.env")
            .sh("cat a/b/prod.env; cat top.env")
            .leak(prints("@SECRET@"))
            .leak(prints("top-@SECRET@")),
        attack("F23", "make a file that a glob denies, then read it")
            .flag(glob())
            .sh("echo @SECRET@ > new.env; cat new.env")
            .leak(prints("@SECRET@")),
        attack(
            "F23b",
            "rename a file to a name that a glob denies, then read it",
        )
        .flag(glob())
        .sh("echo @SECRET@ > x; mv x new.env && cat new.env")
        .leak(prints("@SECRET@")),
        attack("F24", "read what a glob denies through a symlink")
            .flag(glob())
            .setup("echo @SECRET@ > prod.env; ln -s prod.env pub")
            .sh("cat pub")
            .leak(prints("@SECRET@")),
        attack("F24b", "read what a glob denies through a hard link")
            .flag(glob())
            .setup("echo @SECRET@ > prod.env")
            .sh("ln prod.env pub && cat pub; mv prod.env open.txt && cat open.txt")
            .leak(prints("@SECRET@")),
        attack(
            "F24c",
            "read what a glob denies after renaming its directory",
        )
        .flag(glob())
        .setup("mkdir a; echo @SECRET@ > a/prod.env")
        .sh("mv a b; cat b/prod.env")
        .leak(prints("@SECRET@")),
        attack(
            "F25",
            "a glob that denies writing holds for files made later",
        )
        .flag(Flag::DenyWrite("@P@/**/*.lock".into()))
        .setup("mkdir d; echo old > d/a.lock")
        .sh("echo new > d/a.lock; echo new > d/b.lock; echo new > d/c.txt")
        .works(host("grep -qx new d/c.txt"))
        .leak(host("grep -qx new d/a.lock"))
        .leak(host("test -e d/b.lock")),
    ]
}

fn odd_paths() -> Vec<Case> {
    vec![
        allowed("F29", "a grant with spaces, quotes and a newline")
            .flag(write("@OUT@/a 'b\" $c\nd"))
            .setup("mkdir \"@OUT@/a 'b\\\" \\$c\nd\"")
            .python("open('@OUT@/a \\'b\" $c\\nd/f', 'w').write('x')")
            .works(exits(0)),
        allowed("F30", "names that are not UTF-8")
            .python(
                "open(b'caf\\xe9', 'w').write('x'); os.mkdir(b'\\xff'); print(len(os.listdir(b'.')))",
            )
            .works(stdout_is("2"))
            .works(host("test \"$(ls | wc -l)\" = 2")),
        attack("F32", "deny a name that is not plain text: spaces and a newline")
            .flag(deny_read("@P@/a b\nc"))
            .setup("mkdir \"a b\nc\"; echo @SECRET@ > \"a b\nc/k\"")
            .sh("cat a*/k")
            .leak(prints("@SECRET@")),
        allowed("F33", "a path of four thousand bytes inside")
            .python(
                "
for _ in range(20):
    os.mkdir('d' * 200); os.chdir('d' * 200)
open('f', 'w').write('x'); print(open('f').read())",
            )
            .works(stdout_is("x")),
        allowed("F34", "random operations end inside as they do outside")
            .only(Role::User, "root inside lacks the capabilities that root has outside")
            .needs(Need::Tool("python3"))
            .setup(concat!(
                "cat > operations.py <<'EOF'\n",
                include_str!("random_operations.py"),
                "\nEOF\npython3 operations.py tree 1 8 1500 > expected; chmod -R u+rwx tree; rm -rf tree"
            ))
            .sh("python3 operations.py tree 1 8 1500 > found")
            .works(host("test $(wc -l < expected) -gt 12000 && diff expected found"))
            .works(host("chmod -R u+rwx tree && rm -rf tree")),
    ]
}
