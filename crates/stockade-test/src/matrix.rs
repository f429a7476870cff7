//! The same cases on every backend, in one table.
//!
//! A cell is what happened, not what was hoped for: *enforced* or *works*, *partial* (it leaked, and
//! the report of that very policy had said that the clause holds in part), *not* (it leaked, and the
//! report had said that the clause does not hold, or the ledger that nothing holds it anywhere),
//! *refused* (the launcher would not start it), *differs* (something else works otherwise). A leak
//! under a clause that the report calls full fails the suite at once.
//!
//! A second table is what each backend claims about an ordinary policy. A claim of less than
//! everything has to show in a row, or the suite says why it can't: so the tables say the same.
//! At the end both must equal those in the document, so that nothing changes unnoticed;
//! `STOCKADE_BLESS=1` writes them there instead.
//!
//! Controls are not run: the contract suite has shown that each attack works.

mod claims;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::Failure;
use crate::case::Case;
use crate::flag::Flag;
use crate::judge::{Inside, inside};
use crate::need::{Prober, is_required_word};
use crate::runner::Runner;
use crate::signals;
use crate::stage::{Actor, Role, Stage, is_root};
use crate::suite::{PTY, arguments, is_filtered_out, say};
use crate::traces::Traces;

/// What the test program is about.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "suites fill it in")]
pub struct Matrix {
    /// The program under test.
    pub program: PathBuf,
    /// The rows, made anew for each column.
    pub rows: fn() -> Vec<Case>,
    /// The columns.
    pub columns: Vec<Column>,
    /// Starts what the columns need in a directory of the stage; dropping it stops that.
    pub prepare: fn(&Path) -> Prepared,
    /// Clauses that a leak may fall under, by how the row's name begins; the longest wins.
    pub clauses: Clauses,
    /// Claims of less than everything that no row shows: backend, clause, and why not.
    pub unshown: &'static [(&'static str, &'static str, &'static str)],
    /// Where the table is.
    pub document: PathBuf,
}

/// Clauses by the beginning of a row's name.
pub type Clauses = &'static [(&'static str, &'static [&'static str])];

/// Those that a row is about.
fn clauses_of(clauses: Clauses, row: &str) -> &'static [&'static str] {
    let known = clauses.iter().filter(|(start, _)| row.starts_with(start));
    let best = known.max_by_key(|(start, _)| start.len());
    best.map_or(&[], |(_, clauses)| clauses)
}

/// One backend.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "suites fill it in")]
pub struct Column {
    /// Its name.
    pub backend: &'static str,
    /// Whether it works here, or why not.
    pub usable: fn(&Prepared) -> Result<(), String>,
    /// What else is on every command line.
    pub flags: Vec<Flag>,
    /// Whether the suite of the contract runs every row there, so that they need not run again.
    pub by_contract: bool,
    /// Rows that make no sense there, and why; a word that ends in `*` stands for all that begin
    /// so.
    pub without: &'static [(&'static str, &'static str)],
}

/// What was started for the columns.
#[derive(Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "suites fill it in")]
pub struct Prepared {
    /// Variables for every launcher.
    pub env: Vec<(&'static str, &'static str)>,
    /// Why something is missing, by name.
    pub missing: BTreeMap<&'static str, String>,
    /// Stops it all when dropped.
    pub guards: Vec<Box<dyn Guard>>,
}

/// Something that is stopped by being dropped.
pub trait Guard: std::fmt::Debug + Send + Sync {}

/// What became of one row on one backend.
struct Cell {
    word: &'static str,
    /// What was seen, where that is not just what the row asks for.
    why: String,
}

type Cells = Arc<Mutex<BTreeMap<(String, &'static str), Cell>>>;

/// Runs it with the arguments of the process.
pub fn main(matrix: &Matrix) -> ExitCode {
    signals::by_default();
    let arguments = arguments();
    match conduct(matrix, &arguments) {
        Ok(code) => code,
        Err(reason) => {
            say(&format!("the suite failed: {reason}"));
            ExitCode::FAILURE
        }
    }
}

fn conduct(matrix: &Matrix, arguments: &Arguments) -> Result<ExitCode, Failure> {
    if arguments.list || !is_root() {
        return Ok(listed(matrix, arguments));
    }
    let stage = Arc::new(Stage::set()?);
    let prepared = (matrix.prepare)(&stage.dir);
    let program =
        std::env::var_os("STOCKADE_BIN").map_or_else(|| matrix.program.clone(), PathBuf::from);
    let runner = Arc::new(Runner::Cli {
        program: stage.install(&program)?,
    });
    let terminal = stage.dir.join("terminal.py");
    fs::write(&terminal, PTY).map_err(|e| format!("{}: {e}", terminal.display()))?;
    let before = Traces::now();
    let root = stage.actors.iter().find(|actor| actor.role == Role::Root);
    let root = root.cloned().ok_or("no root among the actors")?;

    let cells: Cells = Cells::default();
    let mut trials = Vec::new();
    let mut alone = Vec::new();
    let mut columns = Vec::new();
    let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
    let mut prober = Prober::new(&stage, &runner);
    for column in &matrix.columns {
        if let Err(reason) = (column.usable)(&prepared) {
            let need = format!("backend:{}", column.backend);
            if is_required_word(&need, &required) {
                return Err(format!("STOCKADE_REQUIRE has {need}, but: {reason}"));
            }
            say(&format!("ignored {}: {reason}", column.backend));
            continue;
        }
        columns.push(column);
        for case in (matrix.rows)() {
            let name = name(column, &case);
            if is_filtered_out(arguments, &name) {
                continue;
            }
            let tried = tried(column, &case, &root, &mut prober);
            let key = (case.id().to_owned(), column.backend);
            if let Err(why) = tried {
                let told = why.clone();
                record(&cells, key, Cell { word: "–", why });
                trials.push(
                    Trial::test(name, move || Err(Failed::from(told))).with_ignored_flag(true),
                );
                continue;
            }
            if column.by_contract {
                let why = String::new();
                let word = promised(&case);
                record(&cells, key, Cell { word, why });
                continue;
            }
            let trial = Attempt {
                case: on(case, column, &prepared),
                clauses: matrix.clauses,
                stage: Arc::clone(&stage),
                runner: Arc::clone(&runner),
                actor: root.clone(),
                env: prepared.env.clone(),
            };
            let cells = Arc::clone(&cells);
            let turn = if trial.case.alone {
                &mut alone
            } else {
                &mut trials
            };
            turn.push(Trial::test(name, move || {
                record(&cells, key, trial.cell()?);
                Ok(())
            }));
        }
    }
    let conclusions = [
        libtest_mimic::run(arguments, trials),
        libtest_mimic::run(&one_by_one(arguments), alone),
    ];
    let is_whole = arguments.filter.is_none() && arguments.skip.is_empty();
    let failed = conclusions
        .iter()
        .find(|conclusion| conclusion.has_failed());
    let outcome = if is_whole && failed.is_none() {
        let asking = claims::Asking {
            stage: &stage,
            runner: &runner,
            actor: &root,
            env: &prepared.env,
        };
        compare(matrix, &columns, &cells, &asking)
    } else {
        Ok(())
    };
    drop(prepared);
    let left = before.check(stage);
    outcome?;
    left?;
    Ok(failed.map_or(ExitCode::SUCCESS, libtest_mimic::Conclusion::exit_code))
}

/// Names every cell and tries none.
fn listed(matrix: &Matrix, arguments: &Arguments) -> ExitCode {
    if !is_root() {
        say("ignored all: only as root: containers and their engine need it");
    }
    let names = matrix.columns.iter().flat_map(|column| {
        let rows = (matrix.rows)().into_iter();
        rows.map(|case| Trial::test(name(column, &case), || Ok(())).with_ignored_flag(true))
    });
    libtest_mimic::run(arguments, names.collect()).exit_code()
}

fn one_by_one(arguments: &Arguments) -> Arguments {
    Arguments {
        test_threads: Some(1),
        ..arguments.clone()
    }
}

fn name(column: &Column, case: &Case) -> String {
    format!("{}/{}", column.backend, case.id())
}

/// Whether the case can be tried there.
fn tried(
    column: &Column,
    case: &Case,
    actor: &Actor,
    prober: &mut Prober<'_>,
) -> Result<(), String> {
    let speaks_of = |word: &str| match word.strip_suffix('*') {
        Some(start) => case.id().starts_with(start),
        None => case.id() == word,
    };
    if let Some((_, why)) = column.without.iter().find(|(word, _)| speaks_of(word)) {
        return Err((*why).to_owned());
    }
    if let Some((role, reason)) = case.role.filter(|(role, _)| *role != actor.role) {
        return Err(format!("only as {}: {reason}", role.label()));
    }
    for &need in &case.needs {
        prober
            .check(need, actor)
            .map_err(|reason| format!("needs {need}: {reason}"))?;
    }
    Ok(())
}

/// What the suite of the contract fails without.
fn promised(case: &Case) -> &'static str {
    match (case.gap, case.denies()) {
        (Some(_), _) => "not",
        (None, true) => "enforced",
        (None, false) => "works",
    }
}

fn on(case: Case, column: &Column, prepared: &Prepared) -> Case {
    let backend = Flag::Backend(column.backend.into());
    let mut case = case.everywhere(&backend);
    for flag in &column.flags {
        case = case.everywhere(flag);
    }
    for (name, value) in &prepared.env {
        case = case.env(name, value);
    }
    case
}

fn record(cells: &Cells, key: (String, &'static str), cell: Cell) {
    if let Ok(mut cells) = cells.lock() {
        cells.insert(key, cell);
    }
}

/// One case on one backend.
struct Attempt {
    case: Case,
    clauses: Clauses,
    stage: Arc<Stage>,
    runner: Arc<Runner>,
    actor: Actor,
    env: Vec<(&'static str, &'static str)>,
}

impl Attempt {
    fn cell(&self) -> Result<Cell, Failure> {
        let (word, why) = match inside(&self.case, &self.actor, &self.stage, &self.runner) {
            Inside::Holds if self.case.denies() => ("enforced", String::new()),
            Inside::Holds => ("works", String::new()),
            Inside::Refuses(text) => ("refused", text),
            Inside::Breaks(text) => {
                say(&format!("{} differs: {text}", self.case.id()));
                ("differs", text)
            }
            // On the ledger: nothing stops it anywhere.
            Inside::Leaks(text) if self.case.gap.is_some() => ("not", text),
            Inside::Leaks(text) => match self.admission()? {
                Some(word) => (word, text),
                None => return Err(format!("it leaks, and the report calls it full\n{text}")),
            },
        };
        Ok(Cell { word, why })
    }

    /// What the report of this policy says about the clauses which the row is about, if it does
    /// not say that they hold in full.
    fn admission(&self) -> Result<Option<&'static str>, Failure> {
        let asking = claims::Asking {
            stage: &self.stage,
            runner: &self.runner,
            actor: &self.actor,
            env: &self.env,
        };
        let claims = asking.claims(self.case.id(), &self.case.flags)?;
        let about = clauses_of(self.clauses, self.case.id());
        let said = |word: &str| {
            let mut about = about.iter();
            about.any(|clause| claims.get(*clause).is_some_and(|claim| claim == word))
        };
        Ok(match (said("partial"), said("none")) {
            (true, _) => Some("partial"),
            (false, true) => Some("not"),
            (false, false) => None,
        })
    }
}

/// The tables must be those in the document, as far as their columns could be tried here.
fn compare(
    matrix: &Matrix,
    columns: &[&Column],
    cells: &Cells,
    asking: &claims::Asking<'_>,
) -> Result<(), Failure> {
    let told = |error: std::io::Error| format!("{}: {error}", matrix.document.display());
    let text = fs::read_to_string(&matrix.document).map_err(told)?;
    let cells = cells.lock().map_err(|_| "a test died")?;
    let claimed = claims::all(columns, asking)?;
    claims::shown(matrix, &claimed, &cells)?;

    let rows = (matrix.rows)();
    let rows = rows.iter().map(|case| (case.id(), case.title()));
    let found = |row: &str, backend: &'static str| {
        let cell = cells.get(&(row.to_owned(), backend));
        cell.map_or_else(String::new, |cell| cell.word.to_owned())
    };
    let why = |row: &str, backend: &'static str| {
        let cell = cells.get(&(row.to_owned(), backend));
        cell.map_or("", |cell| &cell.why)
    };
    let mut differences = Vec::new();
    let table = table::Table {
        name: "table",
        heads: "| row | case |",
        columns,
        all: &matrix.columns,
    };
    let text = table.put(&text, rows, found, why, &mut differences)?;
    let clauses = claimed.keys().map(|(clause, _)| clause.as_str());
    let clauses: std::collections::BTreeSet<&str> = clauses.collect();
    let said = |clause: &str, backend: &'static str| {
        let claim = claimed.get(&(clause.to_owned(), backend));
        claim.cloned().unwrap_or_default()
    };
    let table = table::Table {
        name: "claims",
        heads: "| clause |",
        ..table
    };
    let rows = clauses.into_iter().map(|clause| (clause, ""));
    let text = table.put(&text, rows, said, |_, _| "", &mut differences)?;
    if differences.is_empty() {
        return Ok(());
    }
    if std::env::var_os("STOCKADE_BLESS").is_some() {
        return fs::write(&matrix.document, text).map_err(told);
    }
    Err(format!(
        "{} is not what happened (STOCKADE_BLESS=1 rewrites it):\n{}",
        matrix.document.display(),
        differences.join("\n")
    ))
}
