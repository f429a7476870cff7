//! The ways a command is started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fixture::Fixture;

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bare,
    Bwrap,
    /// `floor.c`: receives, acts and answers, and decides nothing.
    Floor,
    Direct,
    Transaction,
}

/// The words before a command.
pub(crate) struct Way {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    prefix: Vec<String>,
    home: PathBuf,
}

const ALL: [(Kind, &str); 5] = [
    (Kind::Bare, "bare"),
    (Kind::Bwrap, "bwrap"),
    (Kind::Floor, "floor"),
    (Kind::Direct, "direct"),
    (Kind::Transaction, "transaction"),
];

impl Way {
    /// Those that start a command here; bare is the first.
    pub(crate) fn usable(stockade: &Path, fixture: &Fixture) -> Vec<Self> {
        ALL.into_iter()
            .map(|(kind, name)| Self {
                kind,
                name,
                prefix: prefix(kind, stockade, fixture),
                home: fixture.home(),
            })
            .filter(|way| way.starts(&fixture.project()))
            .collect()
    }

    /// Names of those that are not among `ways`.
    pub(crate) fn missing(ways: &[Self]) -> Vec<&'static str> {
        ALL.into_iter()
            .filter(|(kind, _)| ways.iter().all(|way| way.kind != *kind))
            .map(|(_, name)| name)
            .collect()
    }

    /// The command behind the words of this way.
    pub(crate) fn command(&self, argv: &[&str], directory: &Path) -> Command {
        let mut words = self
            .prefix
            .iter()
            .map(String::as_str)
            .chain(argv.iter().copied());
        let mut command = Command::new(words.next().unwrap_or("/bin/false"));
        command
            .args(words)
            .current_dir(directory)
            .env("HOME", &self.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null());
        command
    }

    fn starts(&self, directory: &Path) -> bool {
        let output = self.command(&["/bin/true"], directory).output();
        output.is_ok_and(|output| output.status.success())
    }
}

fn prefix(kind: Kind, stockade: &Path, fixture: &Fixture) -> Vec<String> {
    let (project, floor) = (fixture.project(), fixture.floor());
    let (stockade, project) = (stockade.display(), project.display());
    let words = match kind {
        Kind::Bare => String::new(),
        Kind::Bwrap => format!(
            "bwrap --unshare-all --die-with-parent --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp \
             --bind {project} {project} --"
        ),
        Kind::Floor => floor.display().to_string(),
        Kind::Direct => format!("{stockade} run -q --"),
        Kind::Transaction => format!("{stockade} run -q --overlay --commit=always --"),
    };
    words.split_whitespace().map(str::to_owned).collect()
}
