//! Finished tasks in a file, so that a batch that was killed goes on where it was.
//!
//! A line has a task as it was written and its result. A task whose result was not written
//! completely is run again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Deserialize)]
struct Finished {
    task: Value,
    result: Value,
}

pub(super) struct Journal {
    path: PathBuf,
    file: File,
    finished: HashMap<String, Finished>,
}

impl Journal {
    /// Opens the journal, or makes it. No other batch can use it meanwhile.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let mut file = File::options()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| failed(path, error))?;
        if file.try_lock().is_err() {
            let text = format!("another batch uses the journal `{}`", path.display());
            return Err(Failure::text(Exit::Usage, text));
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text)
            .map_err(|error| failed(path, error))?;
        // What comes behind the last line end was not written completely.
        let length = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let mut finished = HashMap::new();
        for line in text[..length].split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            let line: Finished = serde_json::from_slice(line).map_err(|_| {
                let text = format!("`{}` is not the journal of a batch", path.display());
                Failure::text(Exit::Usage, text)
            })?;
            if let Some(id) = line.task.get("id").and_then(Value::as_str) {
                finished.insert(id.to_owned(), line);
            }
        }
        file.set_len(length as u64)
            .and_then(|()| file.seek(SeekFrom::End(0)))
            .map_err(|error| failed(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            finished,
        })
    }

    /// The result of a finished task.
    pub(super) fn take(&mut self, id: &str, task: &Value) -> Result<Option<Value>, Failure> {
        let Some(finished) = self.finished.remove(id) else {
            return Ok(None);
        };
        if finished.task != *task {
            let path = self.path.display();
            let text = format!("the journal `{path}` has another task with the id `{id}`");
            return Err(Failure::text(Exit::Usage, text));
        }
        Ok(Some(finished.result))
    }

    /// Adds a task and its result, which is JSON on one line.
    pub(super) fn append(&mut self, task: &Value, result: &str) -> Result<(), Failure> {
        let line = format!("{{\"task\":{task},\"result\":{result}}}\n");
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, error: std::io::Error) -> Failure {
    let text = format!("can't use the journal `{}`", path.display());
    Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(text))
}
