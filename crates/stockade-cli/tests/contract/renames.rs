//! N: names that move. A rename must not free what a path protects, now or in the next run.

use stockade_test::{Case, Flag, allowed, attack, host, not, prints};

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
        attack("N07", "remove a nested repository")
            .setup(
                "mkdir -p nested/.git/hooks; echo '#!/bin/sh' > nested/.git/hooks/pre-commit
                 echo '[core]' > nested/.git/config; echo 'ref: refs/heads/main' > nested/.git/HEAD",
            )
            .sh("rm -rf nested")
            .leak(not(host("test -e nested/.git/hooks/pre-commit -a -e nested/.git/config"))),
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
