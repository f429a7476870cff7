//! From cases to tests: one for each case and user, with the names `F02/user` and `F02/root`.
//!
//! `cargo test -p stockade-cli --test contract -- F02` runs one row; libtest's usual flags work.
//! Environment: `STOCKADE_BIN` (program under test), `STOCKADE_DRIVER` (go through the library
//! with this driver instead), `STOCKADE_REQUIRE` (needs that must be met), `STOCKADE_TEST_DIR`
//! (where fixtures go), `STOCKADE_TEST_CONTROLS` (only the controls: do the attacks work here?).

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::Failure;
use crate::case::Case;
use crate::census;
use crate::judge::judge;
use crate::need::{Prober, is_required};
use crate::runner::Runner;
use crate::stage::{Actor, Role, Stage, is_root, user_remains};

/// Drives a pseudo-terminal from scripts; `@PTY@` in a launcher script.
const PTY: &str = include_str!("python/terminal.py");

/// A test of the suite itself, for instance against the ledger.
pub type Check = fn(&[Case]) -> Result<(), Failure>;

/// What one test program is about.
#[derive(Debug)]
pub struct Suite {
    /// The program under test, usually `env!("CARGO_BIN_EXE_stockade")`.
    pub program: PathBuf,
    /// Its cases.
    pub cases: Vec<Case>,
    /// Prepares what all fixtures share in a directory of the stage, and names it: words for
    /// scripts, and needs by [`Need::Shared`](crate::Need::Shared).
    pub prepare: fn(&std::path::Path) -> Vec<(&'static str, String)>,
    /// Checks that need no sandbox, by name.
    pub checks: Vec<(&'static str, Check)>,
}

/// Runs the suite with the arguments of the process.
pub fn main(suite: Suite) -> ExitCode {
    let arguments = Arguments::from_args();
    match conduct(suite, &arguments) {
        Ok(code) => code,
        Err(reason) => {
            say(&format!("the suite failed: {reason}"));
            ExitCode::FAILURE
        }
    }
}

fn conduct(suite: Suite, arguments: &Arguments) -> Result<ExitCode, Failure> {
    let duplicates = duplicate_ids(&suite.cases);
    if !duplicates.is_empty() {
        return Err(format!("two cases have the same id: {duplicates:?}"));
    }
    if arguments.list {
        return Ok(libtest_mimic::run(arguments, listing(&suite)).exit_code());
    }
    let mut stage = Stage::set()?;
    stage.shared = (suite.prepare)(&stage.dir);
    let stage = Arc::new(stage);
    let runner = Arc::new(choose_runner(&suite.program, &stage)?);
    let path = stage.dir.join("terminal.py");
    fs::write(&path, PTY).map_err(|e| format!("{}: {e}", path.display()))?;
    let before = Traces::now();

    let cases: Arc<Vec<Case>> = Arc::new(suite.cases);
    let mut trials = Vec::new();
    for (name, check) in suite.checks {
        let cases = Arc::clone(&cases);
        trials.push(Trial::test(name, move || {
            check(&cases).map_err(Failed::from)
        }));
    }
    let skips = add_trials(&mut trials, &cases, &stage, &runner, arguments);
    let conclusion = libtest_mimic::run(arguments, trials);
    for skip in skips {
        say(&skip);
    }
    let dir = stage.dir.clone();
    let strays = census::members(&dir, &format!("stkmark{}x", std::process::id()));
    let mut left: Vec<String> = strays.iter().map(census::Member::describe).collect();
    census::end(strays);
    drop(runner);
    match Arc::try_unwrap(stage) {
        Ok(stage) => drop(stage),
        Err(_) => left.push("a test still holds the stage".to_owned()),
    }
    left.extend(Traces::now().beyond(&before));
    if dir.exists() {
        left.push(format!("directory {}", dir.display()));
    }
    if user_remains() {
        left.push("the ordinary user".to_owned());
    }
    if left.is_empty() {
        return Ok(conclusion.exit_code());
    }
    Err(format!("left behind on the host: {left:#?}"))
}

fn choose_runner(program: &std::path::Path, stage: &Stage) -> Result<Runner, Failure> {
    if let Some(driver) = std::env::var_os("STOCKADE_DRIVER") {
        return Ok(Runner::Library {
            driver: stage.install(driver.as_ref())?,
        });
    }
    let program = std::env::var_os("STOCKADE_BIN").map_or(program.to_owned(), PathBuf::from);
    Ok(Runner::Cli {
        program: stage.install(&program)?,
    })
}

/// Adds a trial for each case and user; returns one line for each that is skipped.
fn add_trials(
    trials: &mut Vec<Trial>,
    cases: &Arc<Vec<Case>>,
    stage: &Arc<Stage>,
    runner: &Arc<Runner>,
    arguments: &Arguments,
) -> Vec<String> {
    let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
    let mut prober = Prober::new(stage, runner);
    let mut skips = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        for actor in &stage.actors {
            let name = name(case, actor.role);
            if is_filtered_out(arguments, &name) {
                continue;
            }
            let trial = match unmet(case, actor, &mut prober, runner, &required) {
                Verdict::Try => {
                    let (cases, stage) = (Arc::clone(cases), Arc::clone(stage));
                    let (runner, actor) = (Arc::clone(runner), actor.clone());
                    Trial::test(name, move || {
                        judge(&cases[index], &actor, &stage, &runner).map_err(Failed::from)
                    })
                }
                Verdict::Skip(reason) => {
                    skips.push(format!("ignored {name}: {reason}"));
                    Trial::test(name, move || Err(Failed::from(reason))).with_ignored_flag(true)
                }
                Verdict::Fail(reason) => Trial::test(name, move || Err(Failed::from(reason))),
            };
            trials.push(trial);
        }
    }
    skips
}

enum Verdict {
    Try,
    Skip(String),
    Fail(String),
}

fn unmet(
    case: &Case,
    actor: &Actor,
    prober: &mut Prober<'_>,
    runner: &Runner,
    required: &str,
) -> Verdict {
    if let Some((role, reason)) = case.role.filter(|(role, _)| *role != actor.role) {
        return Verdict::Skip(format!("only as {}: {reason}", role.label()));
    }
    if let Some(reason) = case.cli_only.filter(|_| !runner.is_cli()) {
        return Verdict::Skip(format!("only through the command line: {reason}"));
    }
    for &need in &case.needs {
        if let Err(reason) = prober.check(need, actor) {
            return if is_required(need, required) {
                Verdict::Fail(format!("STOCKADE_REQUIRE has {need}, but: {reason}"))
            } else {
                Verdict::Skip(format!("needs {need}: {reason}"))
            };
        }
    }
    Verdict::Try
}

fn name(case: &Case, role: Role) -> String {
    format!("{}/{}", case.id, role.label())
}

fn listing(suite: &Suite) -> Vec<Trial> {
    let roles: &[Role] = if is_root() {
        &[Role::User, Role::Root]
    } else {
        &[Role::User]
    };
    let checks = suite.checks.iter().map(|(name, _)| (*name).to_owned());
    let cases = suite
        .cases
        .iter()
        .flat_map(|case| roles.iter().map(move |role| name(case, *role)));
    checks
        .chain(cases)
        .map(|name| Trial::test(name, || Ok(())))
        .collect()
}

/// Needs of tests that will not run are not worth probing.
fn is_filtered_out(arguments: &Arguments, name: &str) -> bool {
    let matches = |pattern: &String| {
        if arguments.exact {
            name == pattern
        } else {
            name.contains(pattern.as_str())
        }
    };
    arguments
        .filter
        .as_ref()
        .is_some_and(|filter| !matches(filter))
        || arguments.skip.iter().any(matches)
}

fn duplicate_ids(cases: &[Case]) -> Vec<&'static str> {
    let mut ids: Vec<_> = cases.iter().map(Case::id).collect();
    ids.sort_unstable();
    ids.windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
        .collect()
}

/// What a sandbox could leave on the host outside every fixture.
struct Traces {
    mounts: Vec<String>,
    names: Vec<PathBuf>,
}

impl Traces {
    fn now() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut names = Vec::new();
        for dir in ["/tmp", "/run", "/dev/shm", "/dev/mqueue", "/var/tmp"] {
            names.extend(ours(dir.as_ref()));
        }
        for group in list("/sys/fs/cgroup".as_ref()) {
            names.extend(ours(&group));
        }
        Self {
            mounts: mounts.lines().map(str::to_owned).collect(),
            names,
        }
    }

    fn beyond(self, earlier: &Self) -> Vec<String> {
        let own = format!("stk-test-{}", std::process::id());
        let mounts = self
            .mounts
            .into_iter()
            .filter(|m| m.contains(&own))
            .map(|m| format!("mount {m}"));
        let names = self
            .names
            .into_iter()
            .filter(|name| !earlier.names.contains(name) && name.exists() && is_idle(name))
            .map(|name| format!("{}", name.display()));
        mounts.chain(names).collect()
    }
}

fn list(dir: &std::path::Path) -> Vec<PathBuf> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// Names that the product or this suite would use; other suites may run at the same time.
fn ours(dir: &std::path::Path) -> Vec<PathBuf> {
    let own = std::process::id().to_string();
    let mine = |path: &PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        name.contains("stockade") || (name.contains("stkmark") && name.contains(&own))
    };
    list(dir).into_iter().filter(mine).collect()
}

/// A control group that still has processes belongs to a sandbox that runs now, not to us.
fn is_idle(path: &std::path::Path) -> bool {
    fs::read_to_string(path.join("cgroup.procs")).map_or(true, |procs| procs.trim().is_empty())
}

fn say(line: &str) {
    // Nowhere to report that standard error is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}
