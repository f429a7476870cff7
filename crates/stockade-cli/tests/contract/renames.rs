//! N: names that move. A rename must not free what a path protects, now or in the next run.

use stockade_test::{Case, Flag, allowed, attack, exits, host, not, prints};

pub(crate) fn cases() -> Vec<Case> {
    let config = "mkdir -p sub/.git; echo good > sub/.git/config";
    vec![
        attack("N01", "rename an ancestor of a protected file, then make a new one")
            .flag(Flag::DenyWrite("@P@/sub/.git/config".into()))
            .setup(config)
            .sh("mv sub s2; mkdir -p sub/.git; echo evil > sub/.git/config")
            .leak(not(host("grep -qx good sub/.git/config"))),
        attack("N01b", "rename an ancestor away and back around a change")
            .flag(Flag::DenyWrite("@P@/sub/.git/config".into()))
            .setup(config)
            .sh("mv sub s2; echo evil > s2/.git/config; mv s2 sub")
            .leak(not(host("grep -qx good sub/.git/config"))),
        attack("N02", "rename an ancestor of a secret, read it in the next run")
            .flag(Flag::DenyRead("@P@/a/b/sec".into()))
            .setup("mkdir -p a/b/sec; echo @SECRET@ > a/b/sec/k")
            .sh("mv a a2; mv a/b a/b2; true")
            .sh("cat a2/b/sec/k a/b2/sec/k a2/b2/sec/k")
            .leak(prints("@SECRET@")),
        attack("N03", "rename a denied file")
            .flag(Flag::DenyRead("@P@/k".into()))
            .setup("echo @SECRET@ > k")
            .sh("mv k z; cat z")
            .leak(prints("@SECRET@")),
        attack("N03b", "rename a denied file, read it in the next run")
            .flag(Flag::DenyRead("@P@/k".into()))
            .setup("echo @SECRET@ > k")
            .sh("mv k z; true")
            .sh("cat z")
            .leak(prints("@SECRET@")),
        attack("N04", "exchange a secret with an open file")
            .flag(Flag::DenyRead("@P@/k".into()))
            .flag(Flag::DenyRead("@P@/d".into()))
            .setup("echo file-@SECRET@ > k; echo > z; mkdir d e; echo dir-@SECRET@ > d/k")
            .python(
                "
attempt('renameat2', AT_FDCWD, b'k', AT_FDCWD, b'z', 2)
attempt('renameat2', AT_FDCWD, b'd', AT_FDCWD, b'e', 2)
trying('file', lambda: print(open('z').read()))
trying('dir', lambda: print(open('e/k').read()))",
            )
            .leak(prints("file-@SECRET@"))
            .leak(prints("dir-@SECRET@")),
        attack("N06", "put another file in place of a protected one")
            .flag(Flag::DenyWrite("@P@/c".into()))
            .setup("echo good > c")
            .sh("echo evil > t; mv -f t c; echo evil > u; ln -f u c; rm -f c; cp --remove-destination u c")
            .leak(not(host("grep -qx good c"))),
        allowed("N07", "remove a nested repository")
            .setup(
                "mkdir -p nested/.git/hooks; echo '#!/bin/sh' > nested/.git/hooks/pre-commit
                 echo '[core]' > nested/.git/config; echo 'ref: refs/heads/main' > nested/.git/HEAD",
            )
            .sh("rm -rf nested")
            .works(exits(0))
            .works(not(host("test -e nested"))),
        attack("N07b", "lead a way that was just taken to a protected directory")
            .setup(
                "mkdir -p d w/hooks nested/.git/hooks; echo '[core]' > nested/.git/config
                 echo 'ref: refs/heads/main' > nested/.git/HEAD",
            )
            .python(
                "
def evil(name, **how):
    for attempt in range(3):
        trying(name, lambda: os.close(os.open(name, os.O_WRONLY | os.O_CREAT, 0o755, **how)))
open('d/first', 'w').close()
trying('move', lambda: os.rename('d', 'away'))
trying('link', lambda: os.symlink('nested/.git/hooks', 'd'))
evil('d/pre-commit')
os.chdir('w'); open('hooks/first', 'w').close()
os.chdir('../nested/.git'); evil('hooks/pre-push')
os.chdir('../..'); start = os.open('w', os.O_RDONLY)
os.close(os.open('hooks/second', os.O_WRONLY | os.O_CREAT, dir_fd=start))
other = os.open('nested/.git', os.O_RDONLY); os.dup2(other, start)
evil('hooks/post-merge', dir_fd=start)",
            )
            .works(host("test -e away/first -a -e w/hooks/first -a -e w/hooks/second"))
            .leak(host("ls nested/.git/hooks | grep -q .")),
        allowed("N08", "ordinary renames and links in one tree")
            .setup("mkdir a b; echo x > a/f")
            .python(
                "trying('rename', lambda: os.rename('a/f', 'b/f'))
trying('link', lambda: os.link('b/f', 'c'))
trying('replace', lambda: (open('n', 'w').close(), os.replace('n', 'a/n')))
trying('directory', lambda: os.rename('a', 'b/a'))",
            )
            .works(prints("rename=OK"))
            .works(prints("link=OK"))
            .works(prints("replace=OK"))
            .works(prints("directory=OK"))
            .works(host("test -e b/f -a -e c -a -e b/a/n")),
        allowed("N08b", "ordinary renames beside a denied directory")
            .flag(Flag::DenyRead("@P@/secret".into()))
            .flag(Flag::DenyWrite("@P@/keep".into()))
            .setup("mkdir a b secret keep; echo x > a/f")
            .python(
                "trying('rename', lambda: os.rename('a/f', 'b/f'))
trying('link', lambda: os.link('b/f', 'c'))
trying('directory', lambda: os.rename('a', 'b/a'))",
            )
            .works(prints("rename=OK"))
            .works(prints("link=OK"))
            .works(prints("directory=OK")),
        allowed("N08c", "directories that come and go under one name")
            .python(
                "
import shutil
def write(path): open(path, 'x').close()
for number in range(3):
    os.mkdir('d'); write('d/f'); os.rename('d', f'd{number}')
trying('moved', lambda: write('d/f'))
os.symlink('d0', 'current'); write('current/g')
os.unlink('current'); os.symlink('d1', 'current'); write('current/g')
shutil.rmtree('d2'); trying('removed', lambda: write('d2/f'))
os.mkdir('d2'); write('d2/h')
os.chdir('d0'); write('k'); os.chdir('../d1'); write('k')
os.mkdir('../gone'); os.chdir('../gone'); write('f'); os.unlink('f'); os.rmdir('../gone')
trying('nowhere', lambda: write('f'))
os.chdir('@P@/d2'); write('k')",
            )
            .works(prints("moved=ENOENT"))
            .works(prints("removed=ENOENT"))
            .works(prints("nowhere=ENOENT"))
            .works(host("test -e d0/f -a -e d0/g -a -e d0/k -a -e d1/f -a -e d1/g -a -e d1/k"))
            .works(host("test $(ls d0 d1 d2 | grep -c '^.$') = 8 -a -e d2/h -a -e d2/k")),
        allowed("N08e", "one thread changes directory and umask of all")
            .python(
                "
import queue, threading
orders, done = queue.Queue(), queue.Queue()
def obey():
    while order := orders.get(): order(); done.put(None)
threading.Thread(target=obey).start()
def elsewhere(order): orders.put(order); done.get()
def write(path): os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
for name in 'abc': os.mkdir(name)
os.umask(0o077); write('f'); elsewhere(lambda: os.chdir('a')); write('f')
elsewhere(lambda: os.umask(0o022)); write('g'); elsewhere(lambda: write('../b/f'))
there = os.open('../b', os.O_RDONLY); elsewhere(lambda: os.fchdir(there)); write('g')
os.chdir('../c'); elsewhere(lambda: write('f')); write('g'); orders.put(None)",
            )
            .works(host("test \"$(stat -c %n=%a f a/* b/* c/* | tr '\\n' ' ')\" = 'f=600 a/f=600 a/g=644 b/f=644 b/g=644 c/f=644 c/g=644 '")),
        allowed("N08d", "somebody outside puts another directory in place")
            .launcher(
                "mkdir d; mkfifo @W@/in @W@/out
                 @RUN@ sh -c 'echo 1 > d/one; echo @MARK@; read line; echo 2 > d/two' < @W@/in > @W@/out &
                 exec 3> @W@/in; read line < @W@/out; echo $line
                 mv d old; mkdir d; echo >&3; wait $!",
            )
            .works(host("test -e old/one -a -e d/two -a ! -e old/two")),
        attack("N09", "write to a protected file through a hard link")
            .flag(Flag::DenyWrite("@P@/c".into()))
            .setup("echo good > c")
            .sh("ln c d; echo evil > d")
            .leak(not(host("grep -qx good c"))),
        attack("N10", "move a repository's directory away and put another in place")
            .setup("mkdir -p .git/hooks; echo '[core]' > .git/config; echo 'ref: refs/heads/m' > .git/HEAD")
            .sh("mv .git g2; mkdir -p .git; printf '[core]\\nfsmonitor = evil\\n' > .git/config")
            .leak(host("grep -q fsmonitor .git/config")),
        attack("N11", "change a protected file through directory descriptors")
            .flag(Flag::DenyWrite("@P@/sub/c".into()))
            .setup("mkdir sub; echo good > sub/c")
            .python(
                "
sub = os.open('sub', os.O_PATH | os.O_DIRECTORY); here = os.open('.', os.O_PATH | os.O_DIRECTORY)
trying('rename', lambda: os.rename('sub', 'gone', src_dir_fd=here, dst_dir_fd=here))
def change():
    fd = os.open('c', os.O_WRONLY | os.O_TRUNC, dir_fd=sub); os.write(fd, b'evil')
trying('write', change)
trying('unlink', lambda: os.unlink('c', dir_fd=sub))",
            )
            .leak(prints("write=OK"))
            .leak(prints("unlink=OK"))
            .leak(prints("rename=OK")),
    ]
}
