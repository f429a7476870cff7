//! Reading tasks.

use std::collections::{BTreeMap, HashSet};
use std::io::BufRead;

use serde::Deserialize;
use serde_json::Value;
use stockade_serve::api::{Bytes, Open};
use stockade_serve::{Line, LineReader, MAX_LINE_BYTES};

/// A command and the sandbox that it runs in.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// Names the task in its result; unique in a batch.
    pub(super) id: String,
    /// Program and arguments.
    pub(super) argv: Vec<String>,
    /// Where the command starts, relative to the workspace.
    #[serde(default)]
    pub(super) cwd: Option<String>,
    /// What the command reads; nothing by default.
    #[serde(default)]
    pub(super) stdin: Option<Bytes>,
    /// Files of a workspace that is made for this task.
    #[serde(default)]
    pub(super) files: BTreeMap<String, Bytes>,
    /// The policy; its fields are those of `open` in docs/protocol.md.
    #[serde(default)]
    pub(super) policy: Open,
}

/// A line of the input.
pub(super) enum Input {
    /// A task, and the same as it was written.
    Task(Box<Task>, Value),
    /// The line with this number is no task.
    Malformed { line: u64, message: String },
}

/// Tasks, one a line.
pub(super) struct Tasks {
    lines: LineReader<Box<dyn BufRead + Send>>,
    number: u64,
    ids: HashSet<String>,
}

impl Tasks {
    pub(super) fn new(input: Box<dyn BufRead + Send>) -> Self {
        Self {
            lines: LineReader::new(input),
            number: 0,
            ids: HashSet::new(),
        }
    }

    /// The next task; none at the end.
    pub(super) fn next(&mut self) -> std::io::Result<Option<Input>> {
        let Some(line) = self.lines.next_line()? else {
            return Ok(None);
        };
        self.number += 1;
        let parsed = match line {
            Line::Complete(bytes) => parse(bytes),
            Line::TooLong => Err(format!("the task is longer than {MAX_LINE_BYTES} bytes")),
        };
        let checked = parsed.and_then(|(task, value)| {
            if self.ids.insert(task.id.clone()) {
                Ok((task, value))
            } else {
                Err(format!("another task has the id `{}`", task.id))
            }
        });
        Ok(Some(match checked {
            Ok((task, value)) => Input::Task(Box::new(task), value),
            Err(message) => Input::Malformed {
                line: self.number,
                message,
            },
        }))
    }
}

fn parse(bytes: &[u8]) -> Result<(Task, Value), String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let task = Task::deserialize(&value).map_err(|error| error.to_string())?;
    if task.argv.is_empty() {
        return Err("`argv` is empty".to_owned());
    }
    if !task.files.is_empty() && task.policy.workspace.is_some() {
        return Err("`files` make a workspace of their own: leave `workspace` out".to_owned());
    }
    Ok((task, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Vec<String> {
        let mut tasks = Tasks::new(Box::new(text.as_bytes()));
        let mut found = Vec::new();
        while let Some(input) = tasks.next().unwrap() {
            found.push(match input {
                Input::Task(task, _) => task.id,
                Input::Malformed { line, message } => format!("{line}: {message}"),
            });
        }
        found
    }

    #[test]
    fn a_bad_line_spoils_no_other() {
        let found = read(concat!(
            "{\"id\": \"a\", \"argv\": [\"true\"]}\n\n",
            "no JSON\n",
            "{\"id\": \"a\", \"argv\": [\"true\"]}\n",
            "{\"id\": \"b\", \"argv\": []}\n",
            "{\"id\": \"c\", \"argv\": [\"x\"], \"surprise\": 1}\n",
            "{\"id\": \"d\", \"argv\": [\"x\"], \"policy\": {\"allow\": [\"h\"]}}",
        ));
        assert_eq!(found[0], "a");
        assert!(found[1].starts_with("2: "), "{found:?}");
        assert_eq!(found[2], "3: another task has the id `a`");
        assert_eq!(found[3], "4: `argv` is empty");
        assert!(found[4].contains("surprise"), "{found:?}");
        assert_eq!(found[5], "d");
    }
}
