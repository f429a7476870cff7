//! Directories to start commands in: an empty one, and one as large as a monorepo.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use tempfile::TempDir;

/// How many files the large tree has, and how many of them the glob names.
pub(crate) const FILES: usize = 300_000;
pub(crate) const NAMED: usize = 20_000;
pub(crate) const GLOB: &str = "**/*.secret";
pub(crate) const DENIED: usize = 500;

const PER_DIRECTORY: usize = 1000;

/// Removed when it is dropped.
pub(crate) struct Trees {
    dir: TempDir,
}

impl Trees {
    /// Not below /tmp, which is private inside the sandbox.
    pub(crate) fn make() -> io::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix("stockade-bench-")
            .tempdir_in("/var/tmp")?;
        let trees = Self { dir };
        fs::create_dir(trees.empty())?;
        fs::create_dir(trees.large())?;
        for group in 0..FILES / PER_DIRECTORY {
            let below = trees.large().join(format!("d{group}"));
            fs::create_dir(&below)?;
            for number in 0..PER_DIRECTORY {
                let kind = if group * PER_DIRECTORY + number < NAMED {
                    "secret"
                } else {
                    "txt"
                };
                File::create(below.join(format!("f{number}.{kind}")))?;
            }
        }
        trees.write_denied()?;
        Ok(trees)
    }

    pub(crate) fn empty(&self) -> PathBuf {
        self.dir.path().join("empty")
    }

    pub(crate) fn large(&self) -> PathBuf {
        self.dir.path().join("large")
    }

    /// A profile that denies [`DENIED`] files, which exist.
    pub(crate) fn denied(&self) -> PathBuf {
        self.dir.path().join("denied.toml")
    }

    fn write_denied(&self) -> io::Result<()> {
        let below = self.large().join(format!("d{}", FILES / PER_DIRECTORY - 1));
        let paths: Vec<String> = (0..DENIED)
            .map(|number| format!("\"{}/f{number}.txt\"", below.display()))
            .collect();
        let profile = format!(
            "version = 1\n[filesystem]\ndeny_read = [{}]\n",
            paths.join(",")
        );
        fs::write(self.denied(), profile)
    }
}
