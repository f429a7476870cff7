//! What the work is done on: a repository with two branches, and a small package.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

const FILES: usize = 20_000;
/// How many of them differ between the branches.
const DIFFERENT: usize = 10_000;
const PER_DIRECTORY: usize = 200;

/// Removed when it is dropped.
pub(crate) struct Project {
    dir: TempDir,
    repository: PathBuf,
    package: PathBuf,
}

impl Project {
    /// Not below /tmp, which is private inside the sandbox.
    pub(crate) fn make() -> Result<Self, Box<dyn Error>> {
        let dir = tempfile::Builder::new()
            .prefix("stockade-bench-")
            .tempdir_in("/var/tmp")?;
        let project = Self {
            repository: dir.path().join("repository"),
            package: dir.path().join("package"),
            dir,
        };
        project.make_repository()?;
        project.make_package()?;
        Ok(project)
    }

    pub(crate) fn repository(&self) -> &Path {
        &self.repository
    }

    pub(crate) fn package(&self) -> &Path {
        &self.package
    }

    /// A file some directories down.
    pub(crate) fn file(&self) -> String {
        self.repository.join(name(0)).display().to_string()
    }

    /// Builds the package from nothing, and leaves nothing.
    pub(crate) fn build_script(&self) -> String {
        let cargo = Path::new(env!("CARGO"));
        let toolchain = cargo.parent().unwrap_or(Path::new("/usr/bin")).display();
        let home = self.package.join("home");
        format!(
            "export PATH={toolchain}:$PATH CARGO_HOME={}; cargo build --quiet --offline; rm -r target",
            home.display()
        )
    }

    fn make_repository(&self) -> Result<(), Box<dyn Error>> {
        fs::create_dir(&self.repository)?;
        self.git(&["init", "-q", "-b", "main"])?;
        self.write(0..FILES, "one")?;
        self.commit()?;
        self.git(&["checkout", "-q", "-b", "other"])?;
        self.write(0..DIFFERENT, "another")?;
        self.commit()?;
        self.git(&["checkout", "-q", "main"])
    }

    fn write(&self, numbers: std::ops::Range<usize>, text: &str) -> Result<(), Box<dyn Error>> {
        for number in numbers {
            let path = self.repository.join(name(number));
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(path, format!("{text} {number}\n"))?;
        }
        Ok(())
    }

    fn commit(&self) -> Result<(), Box<dyn Error>> {
        self.git(&["add", "-A"])?;
        let identity = [
            "-c",
            "user.name=bench",
            "-c",
            "user.email=bench@example.org",
        ];
        self.git(&[&identity[..], &["commit", "-q", "-m", "files"]].concat())
    }

    fn git(&self, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(&self.repository);
        let status = command.status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!(
                "git {arguments:?} in {}: {status}",
                self.dir.path().display()
            )
            .into())
        }
    }

    fn make_package(&self) -> Result<(), Box<dyn Error>> {
        fs::create_dir_all(self.package.join("src"))?;
        fs::write(
            self.package.join("Cargo.toml"),
            "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        )?;
        let mut main = String::from("fn main() {\n");
        for number in 0..40 {
            let module = format!(
                "pub fn work() -> String {{ (0..{number}).map(|n: u64| n.to_string()).collect() }}\n"
            );
            fs::write(self.package.join(format!("src/m{number}.rs")), module)?;
            writeln!(main, "    println!(\"{{}}\", m{number}::work());")?;
            main.insert_str(0, &format!("mod m{number};\n"));
        }
        main.push_str("}\n");
        fs::write(self.package.join("src/main.rs"), main)?;
        Ok(())
    }
}

fn name(number: usize) -> String {
    format!("d{}/e/f{number}.txt", number / PER_DIRECTORY)
}
