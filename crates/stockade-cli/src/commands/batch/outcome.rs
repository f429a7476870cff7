//! Results: one line each, first in the journal, then on standard output.

use serde::Serialize;
use serde_json::Value;
use stockade_serve::api;

use super::journal::Journal;
use crate::failure::{Failure, FailureRecord};
use crate::output;

/// What became of a task.
#[derive(Debug, Serialize)]
pub(super) struct Outcome<'a> {
    pub(super) id: &'a str,
    /// How often the task was started.
    pub(super) attempts: u32,
    #[serde(flatten)]
    pub(super) result: TaskResult<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum TaskResult<'a> {
    Ran(Box<Ran>),
    Failed { error: FailureRecord<'a> },
}

/// A command that ran to its end.
#[derive(Debug, Serialize)]
pub(super) struct Ran {
    #[serde(flatten)]
    pub(super) ended: api::Waited,
    pub(super) stdout: api::Bytes,
    pub(super) stderr: api::Bytes,
    /// Whether one of the streams was longer than a result keeps.
    pub(super) truncated: bool,
    /// What the command changed, if the task has an overlay or files of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) changes: Option<Vec<api::Change>>,
    pub(super) backend: String,
    /// What was enforced, clause by clause.
    pub(super) enforcement: Vec<api::Clause>,
}

/// A line that is no task.
#[derive(Debug, Serialize)]
struct Malformed<'a> {
    line: u64,
    error: FailureRecord<'a>,
}

/// How many tasks came to which end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) ran: u64,
    /// Taken from the journal.
    pub(super) resumed: u64,
    /// Could not be run.
    pub(super) errors: u64,
}

impl Tally {
    pub(super) fn done(self) -> u64 {
        self.ran + self.resumed + self.errors
    }
}

/// Where results go.
pub(super) struct Results {
    journal: Option<Journal>,
    pub(super) tally: Tally,
    /// Why no more results can be written.
    pub(super) failure: Option<Failure>,
}

impl Results {
    pub(super) fn new(journal: Option<Journal>) -> Self {
        Self {
            journal,
            tally: Tally::default(),
            failure: None,
        }
    }

    /// Writes the result that the journal has of this task; false if it has none.
    pub(super) fn resume(&mut self, id: &str, task: &Value) -> Result<bool, Failure> {
        let Some(journal) = &mut self.journal else {
            return Ok(false);
        };
        let Some(result) = journal.take(id, task)? else {
            return Ok(false);
        };
        let is_error = result.get("error").is_some();
        output::raw(format!("{result}\n").as_bytes())?;
        self.tally.resumed += u64::from(!is_error);
        self.tally.errors += u64::from(is_error);
        Ok(true)
    }

    pub(super) fn put(&mut self, task: &Value, outcome: &Outcome<'_>) -> Result<(), Failure> {
        let line = output::versioned(outcome)?;
        if let Some(journal) = &mut self.journal {
            journal.append(task, &line)?;
        }
        output::raw(format!("{line}\n").as_bytes())?;
        let is_error = matches!(outcome.result, TaskResult::Failed { .. });
        self.tally.ran += u64::from(!is_error);
        self.tally.errors += u64::from(is_error);
        Ok(())
    }

    pub(super) fn put_malformed(&mut self, line: u64, failure: &Failure) -> Result<(), Failure> {
        self.tally.errors += 1;
        output::json_line(Malformed {
            line,
            error: failure.record(),
        })
    }
}
