//! Cases that a sandbox which does not hold must fail; run by `tests/doomed.rs`.

use std::process::ExitCode;

use stockade_test::case::Control;
use stockade_test::stage::Role;
use stockade_test::{
    Flag, Need, Suite, allowed, attack, exits, host, main as conduct, prints, survives,
};

fn main() -> ExitCode {
    conduct(Suite {
        program: "/bin/true".into(),
        cases: vec![
            attack("holds", "write outside")
                .sh("echo x > @OUT@/t")
                .leak(host("test -e @OUT@/t")),
            attack("vacuous", "an attack that never works")
                .sh("true")
                .leak(prints("x")),
            allowed("works", "ordinary work")
                .sh("exit 7")
                .works(exits(7)),
            allowed("driven", "ordinary work through the library's driver")
                .flag(Flag::Write("@OUT@".into()))
                .sh("exit 7")
                .works(exits(7)),
            allowed("unmet", "something this machine lacks")
                .needs(Need::Tool("no-such-tool"))
                .sh("true")
                .works(exits(0)),
            attack("orphan", "leave a process")
                .sh("sleep 1000 & true")
                .leak(survives()),
            allowed("litter", "leave something where no fixture is")
                .only(Role::User, "once is enough")
                .control(Control::Absent("once is enough"))
                .sh("mkdir -p /dev/shm/@ID@/inside")
                .boxed(exits(0)),
            allowed("signals", "die of an interrupt")
                .sh("sh -c 'kill -INT $$'; test $? = 130 && sh -c 'kill -HUP $$'; exit $?")
                .works(exits(129)),
            attack("gap", "a hole that is on record")
                .sh("echo x > @OUT@/t")
                .leak(host("test -e @OUT@/t"))
                .known_gap("docs/attacks.md"),
        ],
        prepare: |_| Vec::new(),
        checks: Vec::new(),
        library: None,
    })
}
