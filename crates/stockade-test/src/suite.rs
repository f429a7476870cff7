//! From cases to tests: one for each case and user, with the names `F02/user` and `F02/root`, and
//! `F02/user/library` for the same case through the library.
//!
//! `cargo test -p stockade-cli --test contract -- F02` runs one row; libtest's usual flags work.
//! Environment: `STOCKADE_BIN` (program under test), `STOCKADE_DRIVER` (go through the library
//! with this driver instead), `STOCKADE_REQUIRE` (needs that must be met), `STOCKADE_TEST_DIR`
//! (where fixtures go), `STOCKADE_TEST_CONTROLS` (only the controls: do the attacks work here?).

use std::fs;
use std::io::Write as _;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::Failure;
use crate::case::Case;
use crate::judge::judge;
use crate::need::{Prober, is_required};
use crate::runner::Runner;
use crate::signals;
use crate::stage::{Actor, Role, Stage, is_root};
use crate::traces::Traces;

/// Drives a pseudo-terminal from scripts; `@PTY@` in a launcher script.
pub(crate) const PTY: &str = include_str!("python/terminal.py");

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
    /// A second pass over the cases, through the library.
    pub library: Option<LibraryPass>,
}

/// Which cases run through the library: those of the ordinary user, and some as root.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "suites fill it in")]
pub struct LibraryPass {
    /// Ids of the cases that run as root too.
    pub as_root: &'static [&'static str],
}

/// One way through the cases.
struct Pass {
    runner: Arc<Runner>,
    library: Option<LibraryPass>,
}

/// Runs the suite with the arguments of the process.
pub fn main(suite: Suite) -> ExitCode {
    signals::by_default();
    let arguments = arguments();
    match conduct(suite, &arguments) {
        Ok(code) => code,
        Err(reason) => {
            say(&format!("the suite failed: {reason}"));
            ExitCode::FAILURE
        }
    }
}

/// The arguments of the process. Rows mostly wait for programs that they started, so that twice as
/// many at a time as there are processors take half the time.
pub(crate) fn arguments() -> Arguments {
    let mut arguments = Arguments::from_args();
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    arguments.test_threads.get_or_insert(2 * processors);
    arguments
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
    let passes = choose_passes(&suite, &stage)?;
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
    let mut prober = Prober::new(&stage, &passes[0].runner);
    let mut skips = Vec::new();
    for pass in &passes {
        skips.extend(add_trials(
            &mut trials,
            &cases,
            &stage,
            pass,
            &mut prober,
            arguments,
        ));
    }
    let conclusion = libtest_mimic::run(arguments, trials);
    for skip in skips {
        say(&skip);
    }
    drop(passes);
    before.check(stage)?;
    Ok(conclusion.exit_code())
}

/// The command line and then, where the suite has it, the library.
fn choose_passes(suite: &Suite, stage: &Stage) -> Result<Vec<Pass>, Failure> {
    let alone = |runner| Pass {
        runner: Arc::new(runner),
        library: None,
    };
    if let Some(driver) = std::env::var_os("STOCKADE_DRIVER") {
        return Ok(vec![alone(Runner::Library {
            driver: stage.install(driver.as_ref())?,
            controls: true,
        })]);
    }
    let program = std::env::var_os("STOCKADE_BIN").map_or(suite.program.clone(), PathBuf::from);
    let mut passes = vec![alone(Runner::Cli {
        program: stage.install(&program)?,
    })];
    if suite.library.is_some() && std::env::var_os("STOCKADE_TEST_CONTROLS").is_none() {
        // The suite's own program is the driver; see `driver::dispatch`.
        let own = std::env::current_exe().map_err(|e| format!("the suite's own program: {e}"))?;
        passes.push(Pass {
            runner: Arc::new(Runner::Library {
                driver: stage.install(&own)?,
                controls: false,
            }),
            library: suite.library,
        });
    }
    Ok(passes)
}

/// Adds a trial for each case and user; returns one line for each that is skipped.
fn add_trials(
    trials: &mut Vec<Trial>,
    cases: &Arc<Vec<Case>>,
    stage: &Arc<Stage>,
    pass: &Pass,
    prober: &mut Prober<'_>,
    arguments: &Arguments,
) -> Vec<String> {
    let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
    let mut skips = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        for actor in &stage.actors {
            let name = name(case, actor.role, pass.library);
            if !has(pass.library, case, actor.role) || is_filtered_out(arguments, &name) {
                continue;
            }
            let trial = match unmet(case, actor, prober, &pass.runner, &required) {
                Verdict::Try => {
                    let (cases, stage) = (Arc::clone(cases), Arc::clone(stage));
                    let (runner, actor) = (Arc::clone(&pass.runner), actor.clone());
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
            return if is_required(need, actor.role, required) {
                Verdict::Fail(format!("STOCKADE_REQUIRE has {need}, but: {reason}"))
            } else {
                Verdict::Skip(format!("needs {need}: {reason}"))
            };
        }
    }
    Verdict::Try
}

fn name(case: &Case, role: Role, library: Option<LibraryPass>) -> String {
    let pass = if library.is_some() { "/library" } else { "" };
    format!("{}/{}{pass}", case.id, role.label())
}

/// Whether the pass has the case for this user.
fn has(library: Option<LibraryPass>, case: &Case, role: Role) -> bool {
    library.is_none_or(|pass| role == Role::User || pass.as_root.contains(&case.id))
}

fn listing(suite: &Suite) -> Vec<Trial> {
    let roles: &[Role] = if is_root() {
        &[Role::User, Role::Root]
    } else {
        &[Role::User]
    };
    let checks = suite.checks.iter().map(|(name, _)| (*name).to_owned());
    let passes = [Some(None), suite.library.map(Some)];
    let cases = passes.into_iter().flatten().flat_map(|pass| {
        suite.cases.iter().flat_map(move |case| {
            let roles = roles.iter().filter(move |role| has(pass, case, **role));
            roles.map(move |role| name(case, *role, pass))
        })
    });
    checks
        .chain(cases)
        .map(|name| Trial::test(name, || Ok(())))
        .collect()
}

/// Needs of tests that will not run are not worth probing.
pub(crate) fn is_filtered_out(arguments: &Arguments, name: &str) -> bool {
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

pub(crate) fn say(line: &str) {
    // Nowhere to report that standard error is closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}
