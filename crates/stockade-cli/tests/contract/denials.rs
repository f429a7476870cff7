//! V: every refusal that a person would ask about is on record, and nothing else.

use stockade_test::case::Control;
use stockade_test::report::{self, Denial};
use stockade_test::stage::Role;
use stockade_test::{Case, Flag, HostSide, Need, Sign, allowed, closure, exits, stderr_has};

const NO_REPORT: Control = Control::Absent("there is no report without the launcher");

pub(crate) fn cases() -> Vec<Case> {
    let report = || Flag::Report(report::FILE.into());
    vec![
        allowed("V01", "a write that was refused")
            .flag(report())
            .sh("echo x > @OUT@/x")
            .control(NO_REPORT)
            .boxed(record(
                "write of @OUT@/x with grant, errno, process and program",
                |denial, expand| {
                    denial.path == expand("@OUT@/x")
                        && (denial.operation.contains("write")
                            || denial.operation.contains("creat"))
                        && denial.grant.contains("--write")
                        && denial.errno != 0
                        && denial.pid > 1
                        && denial.argv0.ends_with("sh")
                },
            )),
        allowed("V01b", "a protected name that was refused")
            .flag(report())
            .sh("echo x > .bashrc; mv nothing .zshrc; mkdir sub; echo x > sub/../.mcp.json")
            .control(NO_REPORT)
            .boxed(record(
                "write of .bashrc, with its rule",
                |denial, expand| {
                    denial.path == expand("@P@/.bashrc") && denial.rule.contains(".bashrc")
                },
            ))
            .boxed(record("the real path of .mcp.json", |denial, expand| {
                denial.path == expand("@P@/.mcp.json")
            })),
        allowed(
            "V01c",
            "a permission that the policy did not refuse is no record",
        )
        .only(Role::User, "root is refused nothing by file modes")
        .flag(report())
        .setup("echo x > mine; chmod 444 mine")
        .sh("echo y > mine; echo z > /etc/@ID@/nope; cat /nonexistent")
        .control(NO_REPORT)
        .boxed(closure("no record of it", |scene| {
            report::read(&scene.world.witness()).is_some_and(|report| {
                report::denials(&report)
                    .iter()
                    .all(|denial| !denial.path.ends_with("/mine"))
            })
        })),
        allowed("V02", "a read that was refused")
            .flag(report())
            .flag(Flag::Explain)
            .flag(Flag::DenyRead("@P@/s".into()))
            .setup("mkdir s; echo x > s/k")
            .sh("cat s/k")
            .control(NO_REPORT)
            .boxed(record("read of s or s/k", |denial, expand| {
                denial.operation.contains("read") && denial.path.starts_with(&expand("@P@/s"))
            })),
        allowed("V03", "a connection that was refused")
            .needs(Need::Allowlist)
            .needs(Need::Tool("curl"))
            .flag(report())
            .flag(Flag::Allow("a.test".into()))
            .sh("curl -sS -m 60 https://b.test/")
            .control(NO_REPORT)
            .boxed(record("b.test:443", |denial, _| {
                denial.host == "b.test" && denial.port == 443 && !denial.rule.is_empty()
            })),
        allowed("V04", "a Unix socket that was refused")
            .flag(report())
            .side(HostSide::UnixStream("@OUT@/s.sock"))
            .python("trying('x', lambda: socket.socket(socket.AF_UNIX).connect('@OUT@/s.sock'))")
            .control(NO_REPORT)
            .boxed(record(
                "connect to the socket, with --unix as the grant",
                |denial, expand| {
                    denial.path == expand("@OUT@/s.sock") && denial.grant.contains("--unix")
                },
            )),
        allowed("V06", "git configuration that was refused names its opt-in")
            .needs(Need::Tool("git"))
            .flag(report())
            .setup("git init -q .")
            .sh("git config core.hooksPath x")
            .control(NO_REPORT)
            .boxed(record("--git-config as the grant", |denial, expand| {
                denial.path.starts_with(&expand("@P@/.git/config"))
                    && denial.grant.contains("--git-config")
            })),
        allowed("V07", "a flood of refusals is counted, not kept")
            .flag(report())
            .sh("i=0; while [ $i -lt 5000 ]; do : > .bashrc; i=$((i + 1)); done 2> /dev/null; true")
            .control(NO_REPORT)
            .boxed(closure("a bounded report", |scene| {
                report::read(&scene.world.witness()).is_some_and(|report| {
                    let count = report::denials(&report).len();
                    (1..2000).contains(&count)
                })
            })),
        allowed(
            "V10",
            "a command that succeeded is told in one line what was refused",
        )
        .sh("touch .bashrc .profile 2> /dev/null; true")
        .control(NO_REPORT)
        .boxed(exits(0))
        .boxed(stderr_has("refused: create"))
        .boxed(stderr_has("1 more; `stockade log` shows all"))
        .cli_only("the library prints nothing"),
        allowed("V08", "programs that probe are quiet")
            .flag(report())
            .needs(Need::Tool("python3"))
            .sh("/usr/bin/python3 -c 1")
            .control(NO_REPORT)
            .boxed(closure("at most two records", |scene| {
                report::read(&scene.world.witness())
                    .is_some_and(|report| report::denials(&report).len() <= 2)
            })),
        allowed(
            "V09",
            "the report says what was enforced, by what, and what it cost",
        )
        .flag(report())
        .sh("true")
        .control(NO_REPORT)
        .boxed(closure("backend, clauses, exit and usage", |scene| {
            report::read(&scene.world.witness()).is_some_and(|report| {
                let text = report.to_string();
                ["backend", "fs-read", "fs-write", "wall", "cpu", "exit"]
                    .iter()
                    .all(|word| text.contains(word))
            })
        })),
    ]
}

/// Some record of the report fits.
fn record(
    label: &'static str,
    fits: impl Fn(&Denial, &dyn Fn(&str) -> String) -> bool + Send + Sync + 'static,
) -> Sign {
    closure(format!("a record: {label}"), move |scene| {
        let Some(report) = report::read(&scene.world.witness()) else {
            return false;
        };
        let expand = |text: &str| scene.world.expand(text);
        report::denials(&report)
            .iter()
            .any(|denial| fits(denial, &expand))
    })
}
