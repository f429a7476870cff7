//! The judges of git's files against the git that is installed here.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

mod attacks;
mod keys;
mod parser;
mod redirects;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory with nothing of the user's configuration around it.
struct Git {
    directory: tempfile::TempDir,
}

impl Git {
    /// `None`, with a message, where there is no git and nobody requires it.
    fn find(test: &str) -> Option<Self> {
        let version = Command::new("git").arg("--version").output();
        if version.is_ok_and(|output| output.status.success()) {
            let directory = tempfile::tempdir().unwrap();
            return Some(Self { directory });
        }
        let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
        let mut words = required.split(',').map(str::trim);
        assert!(
            !words.any(|word| matches!(word, "all" | "tool:git")),
            "{test} needs git"
        );
        let _ = writeln!(std::io::stderr(), "skipped: {test}: needs git");
        None
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let home = self.directory.path();
        let mut command = Command::new("git");
        command
            .args(arguments)
            .current_dir(home)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", home)
            .env("GIT_EDITOR", "true")
            .env("GIT_TERMINAL_PROMPT", "0");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "n");
            command.env(format!("GIT_{who}_EMAIL"), "n@h.test");
        }
        command
    }

    fn run(&self, directory: &Path, arguments: &[&str]) -> Output {
        self.command(arguments)
            .current_dir(directory)
            .output()
            .unwrap()
    }
}
