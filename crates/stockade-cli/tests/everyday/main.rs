//! Ordinary commands on trees with repositories and dot files: inside they end as they do outside.
//!
//! Each command runs bare, as `stockade run -- …` and as `stockade run --overlay --commit -- …` (its
//! name then ends in `-overlay`) in the same small project; exit code and the resulting tree must be
//! the same. What differs for a reason is in [`DIFFERENT`] and [`DIFFERENT_OVER_OVERLAY`], and must
//! still differ. `cargo test -p stockade-cli --test everyday -- clone` runs the commands named so.

mod commands;
mod tree;

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use commands::COMMANDS;
use stockade_test::sign::Scene;
use stockade_test::{Case, Flag, Need, Sign, Suite, allowed, closure};

/// Names of commands, with `/user` or `/root` behind them for one user only, and reasons.
type Exceptions = &'static [(&'static str, &'static str)];

/// Commands whose end differs inside, and why; README lists the same.
const DIFFERENT: Exceptions = &[
    ("setuid-file", SET_ID),
    ("setgid-file", SET_ID),
    ("install-setuid", SET_ID),
    (
        "rebase-exec",
        "a rebase that is left in progress would run its commands on the host",
    ),
    (
        "unix-datagram",
        "a datagram socket can name a receiver in each message, which no filter sees",
    ),
];

/// The same over an overlay that is committed at the end.
const DIFFERENT_OVER_OVERLAY: Exceptions = &[
    ("setuid-file", SET_ID),
    ("setgid-file", SET_ID),
    ("install-setuid", SET_ID),
    (
        "unix-datagram",
        "a datagram socket can name a receiver in each message, which no filter sees",
    ),
    (
        "clone-again",
        "a file of the host that has a second name, which the same run removes, counts as changed there",
    ),
    (
        "make-existing",
        "removing what does not exist outside the workspace gives EROFS instead of ENOENT",
    ),
    (
        "chown-other/user",
        "an owner that the sandbox does not have gives EINVAL instead of EPERM",
    ),
];

const SET_ID: &str = "a file with a set-id bit could be executed by somebody else on the host";

/// A project with history, a remote, clones, a dependency that ships dot files.
const PROJECT: &str = "
git config --global user.email a@b.test; git config --global user.name n; git config --global init.defaultBranch main
git config --global protocol.file.allow always; git config --global maintenance.auto false
commit() { git add -A; git commit -qm \"$1\"; }
git init -q .; echo a > a; commit one; echo b >> a; commit two
git init -q editors; cd editors; mkdir .vscode .idea; echo '{}' > .vscode/settings.json; echo x > .idea/w.xml; echo e > e; commit e; cd ..
git init -q plain; cd plain; echo c > c; mkdir d; echo d > d/d; commit plain; cd ..
git clone -q --bare plain remote.git; git clone -q plain clone
mkdir -p node_modules/p/.vscode tree/sub; echo '{}' > node_modules/p/.vscode/settings.json; echo '# rc' > node_modules/p/.bashrc
echo 1 > node_modules/p/index.js; tar czf package.tgz -C node_modules p; echo t > tree/f; echo u > tree/sub/g";

fn main() -> ExitCode {
    let ways = [("", DIFFERENT), ("-overlay", DIFFERENT_OVER_OVERLAY)];
    let cases = ways.into_iter().flat_map(|(ending, different)| {
        COMMANDS.iter().map(move |command| {
            // Said once for each command; a suite lives as long as the program.
            let name: &'static str = format!("{}{ending}", command.name).leak();
            let case = allowed(name, "ends inside as it does outside")
                .setup(PROJECT)
                .sh(command.script)
                .works(same(name, command.name, different))
                .needs(Need::Tool("git"))
                .bound(Duration::from_secs(120));
            let case = if ending.is_empty() {
                case
            } else {
                case.flags([Flag::Overlay, Flag::Commit])
                    .needs(Need::Userns)
            };
            let tools = command.tools.iter();
            tools.fold(case, |case, tool| case.needs(Need::Tool(tool)))
        })
    });
    stockade_test::main(Suite {
        program: env!("CARGO_BIN_EXE_stockade").into(),
        cases: cases.collect(),
        prepare: |_| Vec::new(),
        checks: vec![("exceptions", every_exception_is_a_command)],
        library: None,
    })
}

/// How each command ended bare, by name and user.
static BARE: LazyLock<Mutex<HashMap<String, String>>> = LazyLock::new(Mutex::default);

/// Shows if the command ended as it did bare, or differently where that is known. The control is
/// the bare run, which comes first.
fn same(name: &'static str, command: &'static str, different: Exceptions) -> Sign {
    closure(
        "same exit code and tree, or the documented difference",
        move |scene| {
            let end = end(scene);
            let role = scene.world.actor.role.label();
            let key = format!("{name}/{role}");
            let Ok(mut bare) = BARE.lock() else {
                return false;
            };
            if scene.world.base.to_string_lossy().ends_with("-control") {
                bare.insert(key, end);
                return true;
            }
            let Some(wanted) = bare.get(&key) else {
                return false;
            };
            let for_role = format!("{command}/{role}");
            let differs = different
                .iter()
                .any(|(known, _)| *known == command || *known == for_role);
            if *wanted != end && !differs {
                tree::explain(&key, wanted, &end);
            }
            (*wanted == end) != differs
        },
    )
}

/// Exit code and what lies in the project, without what git keeps for itself.
fn end(scene: &Scene<'_>) -> String {
    let code = scene.outcomes.last().map_or(-1, |outcome| outcome.code);
    format!(
        "exit code {code}\n{}",
        tree::listing(&scene.world.project())
    )
}

fn every_exception_is_a_command(cases: &[Case]) -> Result<(), String> {
    for (name, _) in DIFFERENT.iter().chain(DIFFERENT_OVER_OVERLAY) {
        let name = name.split('/').next().unwrap_or_default();
        if !cases.iter().any(|case| case.id() == name) {
            return Err(format!("there is no command {name} any more"));
        }
    }
    Ok(())
}
