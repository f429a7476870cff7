//! U: no capability, no set-id program, nothing left behind that would grant either.

use stockade_test::case::Control;
use stockade_test::sign::Scene;
use stockade_test::stage::Role;
use stockade_test::{Case, Need, attack, closure, host, prints};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        attack("U01", "new privileges through execve")
            .sh("grep NoNewPrivs /proc/self/status")
            .leak(prints("NoNewPrivs:\t0"))
            .boxed(prints("NoNewPrivs:\t1")),
        attack("U02", "capabilities")
            .sh("grep ^Cap /proc/self/status")
            .leak(closure("a capability in some set", has_capability))
            .boxed(prints("CapEff:\t0000000000000000")),
        attack("U02b", "no system call filter")
            .sh("grep Seccomp: /proc/self/status")
            .leak(prints("Seccomp:\t0"))
            .boxed(prints("Seccomp:\t2")),
        attack("U03", "a set-user-id program")
            .only(Role::User, "root is root already")
            .root_setup("cp /usr/bin/id @W@/suid-id; chown 0:0 @W@/suid-id; chmod 4755 @W@/suid-id")
            .sh("echo euid-$(@W@/suid-id -u)")
            .leak(prints("euid-0")),
        attack("U03b", "become another user")
            .only(Role::Root, "nobody else may change identity")
            .needs(Need::Tool("setpriv"))
            .sh(
                "setpriv --reuid 65534 --clear-groups sh -c 'echo became-$(id -u)'
                 su -s /bin/sh nobody -c 'echo su-$(id -u)'",
            )
            .leak(prints("became-65534"))
            .leak(prints("su-65534")),
        attack("U04", "leave a set-user-id program in the project")
            .python(
                r"
import shutil
for name in 'abc': shutil.copy('/bin/true', name)
trying('chmod', lambda: os.chmod('a', 0o4755))
trying('fchmod', lambda: os.fchmod(os.open('b', os.O_RDONLY), 0o4755))
trying('fchmodat', lambda: os.chmod('c', 0o6755, dir_fd=os.open('.', os.O_RDONLY)))
trying('open', lambda: os.open('d', os.O_CREAT | os.O_WRONLY, 0o4755))
how = struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0)
attempt('openat2', AT_FDCWD, b'e', how, 24)
attempt('mknodat', AT_FDCWD, b'f', stat.S_IFREG | 0o4755, 0)
tell('fchmodat2', call(452, AT_FDCWD, b'a', 0o4711, 0))
",
            )
            .leak(host("find . -perm /6000 | grep -q .")),
        attack("U04b", "leave a set-user-id program with everyday tools")
            .needs(Need::Tool("tar"))
            .setup(
                "mkdir from && cp /bin/true from/program && chmod 6755 from/program
                 tar -C from -cf from.tar program",
            )
            .sh("mkdir out
                 cp -p from/program out/cp
                 install -m 4755 /bin/true out/install
                 tar -C out -xpf from.tar
                 cp /bin/true out/chmod; chmod u+s out/chmod
                 cp /bin/true out/group; chmod g+s out/group")
            .leak(host("find out -type f -perm /6000 | grep -q .")),
        attack("U05", "give a file a capability")
            .python(
                r"
import shutil
shutil.copy('/bin/true', 'f')
# VFS_CAP_REVISION_2 with the effective bit, CAP_NET_RAW permitted.
value = struct.pack('<IIIII', 0x02000001, 1 << 13, 0, 0, 0)
trying('setxattr', lambda: os.setxattr('f', 'security.capability', value))
",
            )
            .leak(prints("setxattr=OK"))
            .control(Control::RootOnly(
                "nobody else may set file capabilities",
                None,
            )),
        attack("U06", "take more than a fair share of the processor")
            .only(Role::Root, "nobody else may raise a priority")
            .python(
                r"
trying('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -5))
",
            )
            .leak(prints("nice=OK")),
    ]
}

fn has_capability(scene: &Scene<'_>) -> bool {
    scene.outcomes[0]
        .out()
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .any(|set| set.bytes().any(|digit| digit != b'0'))
}
