//! The files that the work is about.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// Compiled by the fixture.
const PROGRAMS: [(&str, &str); 2] = [
    ("stress.c", include_str!("stress.c")),
    ("floor.c", include_str!("floor.c")),
];

/// Makes `files.tar` with 20,000 files in 200 directories, and a repository whose branches differ in
/// 10,000 files.
const PREPARE: &str = "
mkdir home project; export HOME=$PWD/home GIT_CONFIG_NOSYSTEM=1
git config --global user.email a@b.test; git config --global user.name n; git config --global init.defaultBranch main
git config --global gc.auto 0; git config --global maintenance.auto false
mkdir made; cd made; mkdir tree
/usr/bin/python3 -c '
import os
for d in range(200):
    os.mkdir(f\"tree/d{d}\")
    for f in range(100): open(f\"tree/d{d}/f{f}\", \"w\").write(f\"{d} {f}\\n\" * 20)'
tar cf ../files.tar tree
mkdir ../repository; mv tree ../repository/; cd ../repository; rmdir ../made; git init -q .; git add -A; git commit -qm one
git checkout -qb other; for d in $(seq 0 99); do for f in tree/d$d/*; do echo changed >> $f; done; done
git commit -qam two; git checkout -q main; cd ..
cc -O1 -pthread -o stress stress.c; cc -O2 -o floor floor.c
";

/// A directory with everything, removed when dropped.
pub(crate) struct Fixture {
    dir: TempDir,
    has_mount: bool,
}

impl Fixture {
    pub(crate) fn make(on_tmpfs: bool) -> Result<Self, Box<dyn Error>> {
        let parent = env::var_os("STOCKADE_BENCH_DIR").map_or("/var/tmp".into(), PathBuf::from);
        let dir = tempfile::Builder::new()
            .prefix("stockade-bench-")
            .tempdir_in(parent)?;
        if on_tmpfs {
            let status = Command::new("mount")
                .args(["-t", "tmpfs", "-o", "mode=755", "bench"])
                .arg(dir.path())
                .status()?;
            if !status.success() {
                return Err("a tmpfs can't be mounted; set STOCKADE_BENCH_DIR".into());
            }
        }
        let fixture = Self {
            dir,
            has_mount: on_tmpfs,
        };
        for (name, source) in PROGRAMS {
            fs::write(fixture.dir.path().join(name), source)?;
        }
        run(PREPARE, fixture.dir.path().to_owned(), &fixture.home())?;
        Ok(fixture)
    }

    /// Where the work is done.
    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// The program that shows what mediation costs at least.
    pub(crate) fn floor(&self) -> PathBuf {
        self.dir.path().join("floor")
    }

    /// The home directory of every command; the store of overlays is there.
    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Runs a script in the project directory, bare.
    pub(crate) fn shell(&self, script: &str) -> Result<(), Box<dyn Error>> {
        run(script, self.project(), &self.home())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if self.has_mount {
            // The mount goes with the namespace in any case.
            let _ = Command::new("umount")
                .arg("-l")
                .arg(self.dir.path())
                .status();
        }
    }
}

fn run(script: &str, directory: PathBuf, home: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let output = Command::new("/bin/sh")
        .args(["-ec", script])
        .current_dir(directory)
        .env("HOME", home)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("preparing: {}: {text}", output.status).into())
}
