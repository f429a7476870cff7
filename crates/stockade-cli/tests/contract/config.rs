//! C: policy files, explanations, and what a weak host is told.

use stockade_test::case::Control;
use stockade_test::{
    Case, Flag, Need, Sign, allowed, attack, closure, exits, host, not, prints, stderr_has,
};

const NO_LAUNCHER: Control = Control::Absent("the launcher's own answer is under test");

/// Makes user namespaces impossible for what follows, as a hardened host does.
const WEAK: &str =
    "unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"' weak";

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = files();
    cases.extend(answers());
    cases.extend(weak_hosts());
    cases.push(guest_kernel());
    cases
}

/// Refused as a usage or set-up error, and the command did not start.
fn refused() -> Sign {
    closure(
        "refused with 2 or 125 before the command started",
        |scene| {
            let outcome = &scene.outcomes[0];
            matches!(outcome.code, 2 | 125)
                && !outcome.err().contains(&scene.world.expand("@MARK@"))
        },
    )
}

fn files() -> Vec<Case> {
    vec![
        allowed("C01", "a malformed policy file")
            .setup("printf 'version = 1\\nextends = \"workspace-write\"\\n[filesystem\\n' > @W@/bad.toml")
            .flag(Flag::Policy("@W@/bad.toml".into()))
            .sh("true")
            .control(NO_LAUNCHER)
            .may_refuse()
            .boxed(refused())
            .boxed(stderr_has("bad.toml"))
            .boxed(stderr_has("3")),
        allowed("C02", "an unknown key in a policy file")
            .setup("printf 'version = 1\\n[filesystem]\\nwirte = [\"x\"]\\n' > @W@/typo.toml")
            .flag(Flag::Policy("@W@/typo.toml".into()))
            .sh("true")
            .control(NO_LAUNCHER)
            .may_refuse()
            .boxed(refused())
            .boxed(stderr_has("wirte")),
        allowed("C02b", "a policy file that is not there")
            .flag(Flag::Policy("@W@/none.toml".into()))
            .sh("true")
            .control(NO_LAUNCHER)
            .may_refuse()
            .boxed(refused())
            .boxed(stderr_has("none.toml")),
        attack("C03", "a policy file grants and denies")
            .setup(
                "printf 'version = 1\\nextends = \"workspace-write\"\\n[filesystem]\\nwrite = [\"@OUT@/ok\"]\\ndeny_read = [\"@P@/s\"]\\n' > @W@/p.toml
                 mkdir @OUT@/ok; echo @SECRET@ > s",
            )
            .flag(Flag::Policy("@W@/p.toml".into()))
            .sh("echo x > @OUT@/ok/f; cat s; echo x > @OUT@/f")
            .works(host("test -e @OUT@/ok/f"))
            .leak(prints("@SECRET@"))
            .leak(host("test -e @OUT@/f")),
        attack("C08", "a project's own file widens the policy")
            .setup(
                "printf 'version = 1\\nextends = \"danger-full-access\"\\n[filesystem]\\nwrite = [\"@OUT@\"]\\n' > stockade.toml",
            )
            .sh("echo x > @OUT@/t")
            .may_refuse()
            .leak(host("test -e @OUT@/t")),
        attack("C08b", "a project's own file narrows the policy")
            .setup("printf 'version = 1\\n[filesystem]\\ndeny_read = [\"s\"]\\n' > stockade.toml; echo @SECRET@ > s")
            .sh("cat s; echo x > f")
            .works(host("test -e f"))
            .leak(prints("@SECRET@")),
        attack("C08c", "variables of the environment switch the sandbox off")
            .env("STOCKADE_LEVEL", "off")
            .env("STOCKADE_DISABLE", "1")
            .env("STOCKADE_SANDBOX_ACTIVE", "1")
            .env("STOCKADE_BACKEND", "none")
            .sh("echo x > @OUT@/t")
            .leak(host("test -e @OUT@/t"))
            .may_refuse(),
        attack("C09", "a dry run starts the command")
            .flag(Flag::DryRun)
            .argv(&["/bin/sh", "-c", "echo x > @P@/started"])
            .leak(host("test -e started"))
            .boxed(exits(0))
            .cli_only("a plan is a value in the library"),
        allowed("C11", "conflicting flags")
            .flag(Flag::ReadOnly)
            .flag(Flag::DangerFullAccess)
            .sh("true")
            .control(NO_LAUNCHER)
            .may_refuse()
            .boxed(refused())
            .cli_only("the library can't say both"),
        allowed("C12", "full access is what it says")
            .flag(Flag::DangerFullAccess)
            .sh("echo x > @OUT@/t; exit 3")
            .works(host("test -e @OUT@/t"))
            .works(exits(3)),
    ]
}

fn answers() -> Vec<Case> {
    let ask = |case: Case| case.control(NO_LAUNCHER).cli_only("a command of its own");
    vec![
        ask(allowed("C04", "explain a protected path")
            .setup("git init -q .")
            .needs(Need::Tool("git"))
            .launcher("@BIN@ explain @P@/.git/hooks/pre-commit; echo @MARK@"))
        .boxed(closure("a refusal and the path", |scene| {
            let out = scene.outcomes[0].out().to_lowercase();
            out.contains("den") && out.contains("hooks")
        })),
        ask(allowed("C04b", "explain a path that may be written")
            .launcher("@BIN@ explain @P@/f; echo @MARK@"))
        .boxed(closure("an allowance", |scene| {
            scene.outcomes[0].out().to_lowercase().contains("allow")
        })),
        ask(allowed("C05", "doctor tries what it reports").launcher("@BIN@ doctor; echo @MARK@"))
            .boxed(closure(
                "Landlock, namespaces, seccomp and cgroups",
                |scene| {
                    let out = scene.outcomes[0].out().to_lowercase();
                    ["landlock", "namespace", "seccomp", "cgroup"]
                        .iter()
                        .all(|word| out.contains(word))
                },
            )),
    ]
}

fn weak_hosts() -> Vec<Case> {
    let weak = |case: Case| case.needs(Need::Userns).control(NO_LAUNCHER);
    vec![
        weak(
            allowed("C05b", "doctor on a host without user namespaces")
                .launcher(format!("{WEAK} @BIN@ doctor; echo @MARK@"))
                .cli_only("a command of its own"),
        )
        .boxed(closure("user namespaces are reported missing", |scene| {
            scene.outcomes[0].out().to_lowercase().lines().any(|line| {
                line.contains("user namespace")
                    && [
                        "no",
                        "refused",
                        "denied",
                        "fail",
                        "missing",
                        "unavailable",
                        "not",
                    ]
                    .iter()
                    .any(|word| line.contains(word))
            })
        })),
        weak(
            allowed("C06", "a clause that can't be enforced here is required")
                .flag(Flag::Require("processes".into()))
                .launcher(format!("{WEAK} @RUN@ sh -c 'echo @MARK@; echo x > f'")),
        )
        .refused(125)
        .boxed(stderr_has("processes"))
        .boxed(not(host("test -e f"))),
        weak(
            attack(
                "C06b",
                "a host without user namespaces still confines, and says how well",
            )
            .needs(Need::Landlock(1))
            .launcher(format!(
                "{WEAK} @RUN@ sh -c 'echo @MARK@ >&2; echo x > f; echo x > @OUT@/t'"
            )),
        )
        .control(Control::Bare)
        .works(host("test -e f"))
        .leak(host("test -e @OUT@/t"))
        .boxed(stderr_has("landlock")),
    ]
}

/// As root it is in the table of the backends; here it is started by anybody.
fn guest_kernel() -> Case {
    attack("C07", "a kernel of its own, for every user")
        .needs(Need::Tool("runsc"))
        .needs(Need::Userns)
        .flag(Flag::Backend("gvisor".into()))
        .flag(Flag::DenyRead("@P@/closed".into()))
        .setup("echo deep-down > closed; chmod 0 closed")
        .sh("dmesg | head -n 3; echo x > f; echo x > @OUT@/t; chmod 644 closed; cat closed")
        .works(host("test -e f"))
        .leak(host("test -e @OUT@/t"))
        .leak(prints("deep-down"))
        .boxed(prints("gVisor"))
}
