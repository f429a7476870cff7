//! What backends say of themselves: the enforcement of a plan, clause by clause.

use std::collections::BTreeMap;

use super::{Cell, Column, Matrix, clauses_of};
use crate::Failure;
use crate::case::BOUND;
use crate::exec::{Invocation, run};
use crate::flag::Flag;
use crate::runner::Runner;
use crate::stage::{Actor, Stage};
use crate::world::World;

/// Who asks, and how.
pub(super) struct Asking<'a> {
    pub(super) stage: &'a Stage,
    pub(super) runner: &'a Runner,
    pub(super) actor: &'a Actor,
    pub(super) env: &'a [(&'static str, &'static str)],
}

impl Asking<'_> {
    /// How far each clause of a policy would hold: `full`, `partial` or `none`.
    pub(super) fn claims(
        &self,
        name: &str,
        flags: &[Flag],
    ) -> Result<BTreeMap<String, String>, Failure> {
        let world = World::new(self.stage, self.actor, "plan")?;
        let mut flags = flags.to_vec();
        flags.extend([Flag::DryRun, Flag::Json]);
        let mut argv = self.runner.prefix(name, &flags, &world)?;
        argv.push("/bin/true".to_owned());
        let mut env = world.environment();
        let given = self.env.iter();
        env.extend(given.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let invocation = Invocation {
            argv,
            cwd: world.project(),
            env,
            stdin: None,
            capture: world.witness().join("plan"),
            bound: BOUND,
        };
        let outcome = run(&invocation, self.actor)?;
        let plan: serde_json::Value = serde_json::from_str(&outcome.out())
            .map_err(|error| format!("no plan: {error}: {}", outcome.err()))?;
        let reports = plan["enforcement"].as_array().cloned().unwrap_or_default();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let claims = reports
            .iter()
            .map(|report| (text(&report["clause"]), text(&report["enforcement"])));
        Ok(claims.collect())
    }
}

/// What was claimed, by clause and backend.
pub(super) type Claimed = BTreeMap<(String, &'static str), String>;

/// What each column claims about a policy without any flag.
pub(super) fn all(columns: &[&Column], asking: &Asking<'_>) -> Result<Claimed, Failure> {
    let mut claimed = Claimed::new();
    for column in columns {
        let mut flags = vec![Flag::Backend(column.backend.into())];
        flags.extend(column.flags.iter().cloned());
        for (clause, claim) in asking.claims(column.backend, &flags)? {
            claimed.insert((clause, column.backend), claim);
        }
    }
    Ok(claimed)
}

/// A claim of less than everything shows in a row that leaks.
pub(super) fn shown(
    matrix: &Matrix,
    claimed: &Claimed,
    cells: &BTreeMap<(String, &'static str), Cell>,
) -> Result<(), Failure> {
    let mut odd = Vec::new();
    for ((clause, backend), claim) in claimed {
        let leaking: Vec<&str> = cells
            .iter()
            .filter(|((row, column), cell)| {
                column == backend
                    && matches!(cell.word, "partial" | "not")
                    && clauses_of(matrix.clauses, row).contains(&clause.as_str())
            })
            .map(|((row, _), _)| row.as_str())
            .collect();
        let excused = matrix
            .unshown
            .iter()
            .any(|(other, about, _)| other == backend && about == clause);
        match (claim == "full", !leaking.is_empty(), excused) {
            (false, false, false) => odd.push(format!(
                "{backend} says that `{clause}` holds in part, and every row about it holds"
            )),
            (false, true, true) => odd.push(format!(
                "{backend}: `{clause}` is said not to show in any row, and it does in {leaking:?}"
            )),
            (true, _, true) => odd.push(format!(
                "{backend}: `{clause}` is said not to show in any row, and it is claimed in full"
            )),
            _ => {}
        }
    }
    if odd.is_empty() {
        Ok(())
    } else {
        Err(format!("claims and rows differ: {odd:#?}"))
    }
}
