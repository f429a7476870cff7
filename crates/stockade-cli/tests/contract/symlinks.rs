//! S: links, in grants and planted inside. What counts is where an access lands.

use stockade_test::case::Control;
use stockade_test::{
    Case, Flag, HostSide, Need, allowed, attack, exits, host, not, prints, stdout_is, touched,
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = grants();
    cases.extend(planted());
    cases.extend(proc_links());
    cases
}

fn grants() -> Vec<Case> {
    vec![
        attack("S01", "a granted symlink that leads outside")
            .flag(Flag::Write("@P@/evil".into()))
            .setup("ln -s @OUT@ evil; echo old > @OUT@/f")
            .sh("echo x > evil/s; echo x > evil/f")
            .leak(host("test -e @OUT@/s"))
            .leak(host("grep -qx x @OUT@/f"))
            .may_refuse(),
        attack("S02", "a granted symlink that leads to /etc")
            .flag(Flag::Write("@P@/src".into()))
            .setup("ln -s /etc src")
            .sh("echo x > src/@ID@")
            .leak(host("test -e /etc/@ID@"))
            .control(Control::RootOnly("nobody else may write in /etc", None))
            .cleanup("rm -f /etc/@ID@")
            .may_refuse(),
        attack("S03", "a granted symlink to the parent")
            .flag(Flag::Write("@P@/up".into()))
            .setup("ln -s .. up")
            .sh("echo x > up/x")
            .leak(host("test -e @BASE@/x"))
            .may_refuse(),
        allowed("S05", "a granted symlink that dangles")
            .flag(Flag::Write("@P@/broken".into()))
            .setup("ln -s nowhere broken")
            .sh("true")
            .works(exits(0)),
        allowed("S07", "the project is entered through an alias")
            .setup("ln -s @P@ @BASE@/alias")
            .launcher("cd @BASE@/alias && @RUN@ sh -c 'echo @MARK@ >&2; echo x > f'")
            .works(host("grep -qx x @P@/f")),
        allowed("S07b", "the project is named by an alias")
            .flag(Flag::Cwd("@BASE@/alias".into()))
            .cwd("@BASE@/alias")
            .setup("ln -s @P@ @BASE@/alias")
            .sh("echo x > f")
            .works(host("grep -qx x @P@/f")),
        allowed("S08", "the real path of the project is the host's")
            .sh("pwd -P; touch f")
            .works(stdout_is("@P@"))
            .works(host("test -e f")),
        attack("S17", "a report or a log that is a link, planted by an earlier run")
            .cli_only("the command line writes them")
            .setup("echo old > @OUT@/victim; echo old > @OUT@/second; ln -s @OUT@/victim r; ln -s @OUT@ d; mkfifo pipe
                    ln -s @OUT@/second l; ln @OUT@/second hard")
            .control(Control::Script("for f in r d/new l hard; do echo new > $f; done"))
            .launcher(
                "@RUN@ echo @MARK@; stockade=$(echo \"@RUN@\" | cut -d\"'\" -f2)
                 for f in r d/new pipe hard; do $stockade run --report $f -- true; echo \"$f $?\"; done
                 for f in l d/new; do timeout 5 $stockade proxy --log $f; echo \"log $f $?\"; done
                 $stockade run --report fresh -- true; echo \"fresh $?\"; $stockade run --report /dev/stderr -- true; echo \"device $?\"",
            )
            .leak(host("! grep -qx old @OUT@/victim"))
            .leak(host("! grep -qx old @OUT@/second"))
            .leak(host("test -e @OUT@/new"))
            .boxed(prints("r 125\nd/new 125\npipe 125\nhard 125\nlog l 125\nlog d/new 125\nfresh 0\ndevice 0"))
            .boxed(host("test -s fresh")),
        attack("S16", "climb out of a granted directory")
            .flag(Flag::ReadOnly)
            .flag(Flag::Write("@P@/sub".into()))
            .setup("mkdir sub")
            .sh("echo x > sub/../f; cd sub && echo x > ../g; echo x > h")
            .works(host("grep -qx x sub/h"))
            .leak(host("test -e f"))
            .leak(host("test -e g")),
    ]
}

fn planted() -> Vec<Case> {
    vec![
        attack("S06", "plant a link to a file outside and write to it")
            .sh("ln -s @OUT@/x l; echo y > l; ln -s @OUT@/made m; touch m")
            .leak(host("test -e @OUT@/x"))
            .leak(host("test -e @OUT@/made")),
        attack(
            "S06b",
            "plant a link to a directory outside and write below it",
        )
        .sh("ln -s @OUT@ d; echo y > d/x; mkdir d/sub; mv d/old d/new")
        .setup("echo > @OUT@/old")
        .leak(host("test -e @OUT@/x"))
        .leak(host("test -e @OUT@/sub"))
        .leak(host("test -e @OUT@/new")),
        attack("S06c", "swap a file for a link while it is being opened")
            .setup("echo old > @OUT@/target; mkdir r")
            .python(
                r"
os.chdir('@P@/r')
open('file', 'w').close(); os.symlink('@OUT@/target', 'link')
pid = os.fork()
if pid == 0:
    # Exchange the two names over and over: what one opens may be either.
    while True:
        call('renameat2', AT_FDCWD, b'file', AT_FDCWD, b'link', 2)
end = time.monotonic() + @RACE@
while time.monotonic() < end and os.stat('@OUT@/target').st_size == 4:
    try:
        with open('file', 'w') as f:
            f.write('overwritten')
    except OSError:
        pass
os.kill(pid, 9); os.waitpid(pid, 0)
",
            )
            .leak(host("grep -q overwritten @OUT@/target")),
        attack(
            "S06d",
            "swap a directory for a link while a file below it is made",
        )
        .setup("mkdir r")
        .python(
            r"
os.chdir('@P@/r')
os.mkdir('dir'); os.symlink('@OUT@', 'link')
pid = os.fork()
if pid == 0:
    while True:
        call('renameat2', AT_FDCWD, b'dir', AT_FDCWD, b'link', 2)
end = time.monotonic() + @RACE@
while time.monotonic() < end and not os.path.exists('@OUT@/f'):
    try:
        os.close(os.open('dir/f', os.O_CREAT | os.O_WRONLY))
    except OSError:
        pass
os.kill(pid, 9); os.waitpid(pid, 0)
",
        )
        .leak(host("test -e @OUT@/f")),
        attack("S10", "a protected directory that is a link")
            .setup("mkdir decoy; ln -s decoy .codex")
            .sh("echo c > .codex/config.toml")
            .leak(host("test -e decoy/config.toml"))
            .may_refuse(),
        attack(
            "S11",
            "links planted where a launcher would make mount points",
        )
        .setup(
            "mkdir @OUT@/git; ln -s @OUT@/git .git; ln -s @OUT@/vscode .vscode
                 ln -s @OUT@/rc .bashrc; ln -s @OUT@/mcp .mcp.json; mkdir .claude
                 ln -s @OUT@/commands .claude/commands",
        )
        .flag(Flag::DenyRead("@P@/.vscode".into()))
        .flag(Flag::DenyWrite("@P@/.bashrc".into()))
        .sh("true")
        .control(Control::Script(
            "echo > .bashrc; mkdir @OUT@/vscode; echo > .git/x",
        ))
        .leak(touched())
        .may_refuse(),
        attack("S15", "hard link out of a denied directory")
            .flag(Flag::DenyRead("@P@/s".into()))
            .setup("mkdir s; echo @SECRET@ > s/k")
            .sh("ln s/k k2; cat k2")
            .leak(prints("@SECRET@")),
        attack(
            "S15b",
            "hard link to a secret elsewhere on the same file system",
        )
        .flag(Flag::DenyRead("@OUT@/k".into()))
        .setup("echo @SECRET@ > @OUT@/k")
        .sh("ln @OUT@/k k2; cat k2")
        .leak(prints("@SECRET@")),
    ]
}

fn proc_links() -> Vec<Case> {
    vec![
        attack("S14", "around a denied directory through /proc/self")
            .flag(Flag::DenyRead("@P@/s".into()))
            .setup("mkdir s; echo @SECRET@ > s/k")
            .sh("cat /proc/self/root/@P@/s/k; cat /proc/self/cwd/s/k; cat /proc/$$/root@P@/s/k
                 exec 7< .; cat /proc/self/fd/7/s/k; cat /proc/thread-self/root@P@/s/k")
            .leak(prints("@SECRET@")),
        attack("S14b", "around a denied directory through the root of process 1")
            .flag(Flag::DenyRead("@P@/s".into()))
            .setup("mkdir s; echo @SECRET@ > s/k")
            .sh("cat /proc/1/root@P@/s/k /proc/1/cwd/s/k /proc/1/cwd@P@/s/k")
            .leak(prints("@SECRET@"))
            .setup("printf '#!/bin/sh\\n\"$@\"\\nexit $?\\n' > @W@/init; chmod +x @W@/init")
            .needs(Need::Userns)
            .control(Control::Behind("unshare -Urmpf --mount-proc --kill-child @W@/init")),
        attack("S14c", "open standard input again, for writing")
            .setup("echo old > @OUT@/in")
            .stdin("@OUT@/in")
            .sh("echo x > /proc/self/fd/0; echo x > /dev/stdin; echo x > /dev/fd/0")
            .leak(host("grep -q x @OUT@/in")),
        attack("S14d", "climb from a directory that is standard input")
            .setup("mkdir @OUT@/sub; echo @SECRET@ > @OUT@/k")
            .flag(Flag::DenyRead("@OUT@/k".into()))
            .stdin("@OUT@/sub")
            .sh("cat /proc/self/fd/0/../k; echo x > /proc/self/fd/0/../made; cd /dev/fd/0 && cat ../k")
            .leak(prints("@SECRET@"))
            .leak(host("test -e @OUT@/made")),
        attack("S14e", "the launcher opens nothing in the project before the command")
            .side(HostSide::Watch("@P@/sub"))
            .setup("mkdir sub; echo > sub/f")
            .sh("true")
            .control(Control::Script("find . > /dev/null"))
            .leak(not(stockade_test::quiet())),
    ]
}
