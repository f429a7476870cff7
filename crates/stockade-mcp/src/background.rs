//! Commands that go on while the model does something else.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stockade_serve::{Command, Failure, Kind};

use crate::output::Output;

/// As many as a session has at most, ended ones that were not read included.
const MAX_COMMANDS: usize = 64;

/// A command in the background.
#[derive(Clone, Debug)]
pub(crate) struct Background {
    pub(crate) command: Command,
    pub(crate) output: Output,
}

/// All of them, by name.
#[derive(Debug, Default)]
pub(crate) struct Backgrounds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    count: u64,
    commands: BTreeMap<String, Background>,
}

impl Backgrounds {
    /// Keeps a command that `start` starts, and names it.
    pub(crate) fn add(
        &self,
        start: impl FnOnce() -> Result<Background, Failure>,
    ) -> Result<String, Failure> {
        let mut state = self.lock();
        if state.commands.len() >= MAX_COMMANDS {
            let text = format!("{MAX_COMMANDS} commands run in the background; stop one");
            return Err(Failure::new(Kind::LimitReached, text));
        }
        let background = start()?;
        state.count += 1;
        let name = format!("b{}", state.count);
        state.commands.insert(name.clone(), background);
        Ok(name)
    }

    pub(crate) fn get(&self, name: &str) -> Result<Background, Failure> {
        self.lock().commands.get(name).cloned().ok_or_else(|| {
            let text = format!("there is no command `{name}` in the background");
            Failure::new(Kind::NoSuchCommand, text)
        })
    }

    /// Forgets a command that has ended.
    pub(crate) fn remove(&self, name: &str) {
        self.lock().commands.remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
