//! One fixture: a project, a home, a directory outside, and the words that name them in scripts.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;

use crate::Failure;
use crate::exec::PATH;
use crate::stage::{Actor, Stage};

/// How the tokens of this suite begin.
pub(crate) fn mark() -> String {
    format!("stkmark{}x", std::process::id())
}

/// A fresh fixture, owned by the actor. Removed when dropped.
#[derive(Debug)]
pub struct World {
    /// The directory all the others are in.
    pub base: PathBuf,
    /// Who owns it.
    pub actor: Actor,
    /// A word that occurs nowhere else on the machine; marks processes.
    pub token: String,
    words: BTreeMap<&'static str, String>,
}

impl World {
    /// Makes the directories.
    ///
    /// # Errors
    /// If one can't be made.
    pub fn new(stage: &Stage, actor: &Actor, name: &str) -> Result<Self, Failure> {
        let number = stage.next();
        let base = stage
            .dir
            .join(format!("{number}-{}", name.replace('/', "-")));
        // Ends in a letter: the first must not be found in the tenth.
        let token = format!("{}{number}z", mark());
        let mut words = BTreeMap::from([
            ("MARK", format!("begun-{token}")),
            ("SECRET", format!("secret-{token}")),
            ("ID", token.clone()),
            ("UID", actor.uid.to_string()),
            ("USER", actor.name.clone()),
            (
                "PTY",
                format!("/usr/bin/python3 {}/terminal.py", stage.dir.display()),
            ),
        ]);
        words.extend(stage.shared.iter().cloned());
        for (word, sub) in [
            ("BASE", ""),
            ("P", "p"),
            ("HOME", "home"),
            ("OUT", "out"),
            ("W", "w"),
        ] {
            let dir = if sub.is_empty() {
                base.clone()
            } else {
                base.join(sub)
            };
            let told = |e| format!("can't make {}: {e}", dir.display());
            fs::create_dir(&dir).map_err(told)?;
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).map_err(told)?;
            chown(&dir, Some(actor.uid), Some(actor.gid)).map_err(told)?;
            words.insert(word, dir.display().to_string());
        }
        Ok(Self {
            base,
            actor: actor.clone(),
            token,
            words,
        })
    }

    /// The project directory.
    pub fn project(&self) -> PathBuf {
        self.base.join("p")
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    /// A directory that no policy mentions unless the case does.
    pub fn outside(&self) -> PathBuf {
        self.base.join("out")
    }

    /// Where the harness keeps captured output and reports.
    pub fn witness(&self) -> PathBuf {
        self.base.join("w")
    }

    /// Gives a word a meaning in scripts.
    pub fn define(&mut self, word: &'static str, meaning: String) {
        self.words.insert(word, meaning);
    }

    /// Replaces `@P@`, `@HOME@`, `@OUT@`, `@W@`, `@SECRET@`, `@MARK@`, `@ID@`, `@LONG@`, `@RACE@` and the
    /// words of the case's host side by what they mean in this fixture.
    ///
    /// `@LONG@` is for commands that the sandbox must end: seconds to wait, six in a control and
    /// longer than any bound inside. `@RACE@` is for attacks that have to win a race: seconds to
    /// try it in, two inside, and as many as it may take in a control, which ends when it has won.
    pub fn expand(&self, template: &str) -> String {
        self.words
            .iter()
            .fold(template.to_owned(), |text, (word, meaning)| {
                text.replace(&format!("@{word}@"), meaning)
            })
    }

    /// The environment of every program started on the host, launcher included.
    pub fn environment(&self) -> Vec<(String, String)> {
        let home = self.home().display().to_string();
        // Outside of what is compared: the launcher notes there what it refused.
        let state = self.base.join("state").display().to_string();
        [
            ("PATH", PATH),
            ("HOME", home.as_str()),
            ("XDG_STATE_HOME", &state),
            ("USER", &self.actor.name),
            ("LOGNAME", &self.actor.name),
            ("SHELL", "/bin/sh"),
            ("LANG", "C.UTF-8"),
            ("TERM", "xterm"),
            ("STOCKADE_TEST_MARK", &self.token),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .to_vec()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Odd modes may stop an ordinary user; the watcher sets them right when the suite ends.
        let _ = fs::remove_dir_all(&self.base);
    }
}
