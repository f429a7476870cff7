//! Z: bad input. A clear refusal or correct work; never a run without the sandbox.

use stockade_test::case::Control;
use stockade_test::stage::Role;
use stockade_test::{Case, Flag, Sign, allowed, attack, closure, exits, host, prints};

/// What every case tries: if the sandbox is lost on the way, this shows.
const ESCAPE: &str = "echo x > @OUT@/t";

pub(crate) fn cases() -> Vec<Case> {
    let lost = || host("test -e @OUT@/t");
    vec![
        attack("Z01", "a symlink loop in a grant")
            .setup("ln -s b a; ln -s a b")
            .flag(Flag::Write("@P@/a".into()))
            .flag(Flag::DenyRead("@P@/b/c".into()))
            .sh(ESCAPE)
            .may_refuse()
            .leak(lost())
            .boxed(sound()),
        attack("Z02", "a working directory that is gone")
            .launcher(format!(
                "mkdir gone; cd gone; rmdir @P@/gone; @RUN@ sh -c 'echo @MARK@; {ESCAPE}'"
            ))
            .may_refuse()
            .leak(lost())
            .boxed(sound()),
        attack("Z03", "rules below a directory that can't be read")
            .only(Role::User, "root can read it")
            .setup("mkdir -p locked/s; echo @SECRET@ > locked/s/k; chmod 000 locked")
            .flag(Flag::DenyRead("@P@/locked/s".into()))
            .flag(Flag::Write("@P@/locked/t".into()))
            .sh(format!("{ESCAPE}; chmod 755 locked && cat locked/s/k"))
            .may_refuse()
            .leak(lost())
            .leak(prints("@SECRET@"))
            .boxed(sound()),
        attack("Z03b", "a project that can't be written")
            .only(Role::User, "root can write it")
            .setup("chmod 555 @P@")
            .sh(format!("{ESCAPE}; echo read-only-works"))
            .works(prints("read-only-works"))
            .leak(lost())
            .cleanup("chmod 755 @P@"),
        attack("Z04", "a report that can't be written")
            .flag(Flag::Report("@W@/no/such/dir/report.json".into()))
            .sh(ESCAPE)
            .may_refuse()
            .leak(lost())
            .boxed(closure("said so", |scene| {
                scene.outcomes[0].err().contains("report.json") || scene.outcomes[0].code == 125
            })),
        attack("Z04b", "standard output on a full device")
            .launcher(format!("@RUN@ sh -c 'echo @MARK@ >&2; {ESCAPE}; echo lost; exit 7' > /dev/full"))
            .works(exits(7))
            .leak(lost()),
        attack("Z05", "closed standard streams")
            .launcher(format!("@RUN@ sh -c 'echo @MARK@ > f; {ESCAPE}' <&- >&- 2>&-; cat f"))
            .works(prints("@MARK@"))
            .leak(lost()),
        attack("Z06", "twenty descriptors")
            .launcher(format!("ulimit -n 20; @RUN@ sh -c 'echo @MARK@; {ESCAPE}'"))
            .may_refuse()
            .leak(lost())
            .boxed(sound()),
        attack("Z06b", "no process to spare")
            .only(Role::User, "root is not bound by it")
            .launcher(format!("ulimit -u 1; exec @RUN@ sh -c 'echo @MARK@; {ESCAPE}'"))
            .may_refuse()
            .leak(lost())
            .boxed(sound()),
        attack("Z07", "paths that are not UTF-8, or 4,000 bytes long")
            .setup("mkdir \"$(printf 'n\\377n')\"; echo @SECRET@ > \"$(printf 'n\\377n')/k\"")
            .launcher(format!(
                "set -- @RUN@
                 odd=$(printf '@P@/n\\377n'); long=@P@/$(head -c 4000 /dev/zero | tr '\\0' x)
                 if [ $# -gt 0 ]; then set -- @BIN@ run --deny-read \"$odd\" --; fi
                 \"$@\" sh -c 'echo @MARK@; {ESCAPE}; cat \"$0/k\"' \"$odd\"
                 if [ $# -gt 0 ]; then set -- @BIN@ run --write \"$long\" --deny \"$long/y\" --; fi
                 \"$@\" sh -c 'echo @MARK@; {ESCAPE}'; echo second-$?"
            ))
            .cli_only("the driver's file is text")
            .leak(prints("@SECRET@"))
            .leak(lost()),
        attack("Z08", "five hundred open descriptors and a large environment")
            .launcher(format!(
                "cat > @W@/many.py <<'EOF'
import os, sys
os.environ.update({{f'VARIABLE_{{i}}': 'x' * 1000 for i in range(800)}})
for _ in range(500): os.set_inheritable(os.open('/dev/null', os.O_RDONLY), True)
os.execvp(sys.argv[1], sys.argv[1:])
EOF
ulimit -n 1024; /usr/bin/python3 @W@/many.py @RUN@ sh -c 'echo @MARK@; {ESCAPE}; exit 5'"
            ))
            .works(exits(5))
            .leak(lost()),
        allowed("Z09", "no command")
            .launcher("@RUN@; echo code-$?; echo @MARK@")
            .control(Control::Absent("the launcher's own answer is under test"))
            .boxed(prints("code-2"))
            .cli_only("a library call always has a program"),
        attack("Z10", "grants of the whole host, a file as a directory, an empty path")
            .launcher(format!(
                "set -- @RUN@
                 for flags in '--write=' '--deny-read=/etc/hostname/x' '--read=/proc/self/fd/99' '--limit=mem=0' \\
                     '--limit=pids=-1' '--timeout=never' '--env==x' '--pass-fd=999' '--allow=*' '--allow=a b'
                 do if [ $# -gt 0 ]; then set -- @BIN@ run \"$flags\" --; fi
                    \"$@\" sh -c 'echo @MARK@; {ESCAPE}'; echo \"$flags code-$?\"; done; echo @MARK@"
            ))
            .cli_only("flags as text")
            .leak(lost())
            .boxed(closure("codes 0, 1, 2 or 125 only", |scene| {
                let out = scene.outcomes[0].out();
                out.lines()
                    .filter_map(|line| line.rsplit_once("code-"))
                    .all(|(_, code)| matches!(code, "0" | "1" | "2" | "125"))
            })),
    ]
}

/// Worked, or was refused with the code for that; nothing in between.
fn sound() -> Sign {
    closure("a refusal with 125 or 2, or a run", |scene| {
        let outcome = &scene.outcomes[0];
        let mark = scene.world.expand("@MARK@");
        let begun = outcome.out().contains(&mark) || outcome.err().contains(&mark);
        begun || matches!(outcome.code, 2 | 125)
    })
}
