//! A project directory and a home of its own for each test, and the program to run in them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// The program under test.
pub(crate) const STOCKADE: &str = env!("CARGO_BIN_EXE_stockade");

/// Everything one test may touch. Removed when it is dropped, also when the test fails.
pub(crate) struct Context {
    dir: TempDir,
    env: BTreeMap<OsString, OsString>,
    /// The user that runs the program, if it is not the one that runs the test.
    user: Option<u32>,
}

/// A user that no file belongs to.
const ORDINARY_USER: u32 = 61_235;

/// What a run printed and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Context {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("stockade-it-")
            .tempdir()
            .unwrap();
        for name in ["home", "project", "tmp"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let mut context = Self {
            dir,
            env: BTreeMap::new(),
            user: None,
        };
        let home = context.home();
        context.set("HOME", home);
        let temporary = context.temporary();
        context.set("TMPDIR", temporary);
        context.set("PATH", std::env::var_os("PATH").unwrap_or_default());
        context
    }

    /// The same for each kind of user: the one that runs the test and, if that is root, an ordinary
    /// one with a copy of the program that he can execute.
    pub(crate) fn of_each_user() -> Vec<Self> {
        let own = Self::new();
        if !rustix::process::getuid().is_root() {
            return vec![own];
        }
        let mut ordinary = Self::new();
        ordinary.user = Some(ORDINARY_USER);
        let top = ordinary.dir.path();
        std::fs::set_permissions(top, Permissions::from_mode(0o755)).unwrap();
        std::fs::copy(STOCKADE, top.join("stockade")).unwrap();
        for directory in [ordinary.home(), ordinary.project(), ordinary.temporary()] {
            ordinary.give(&directory);
        }
        vec![own, ordinary]
    }

    /// Gives a file to the user that runs the program.
    pub(crate) fn give(&self, path: &Path) {
        std::os::unix::fs::chown(path, self.user, self.user).unwrap();
    }

    /// The directory commands start in.
    pub(crate) fn project(&self) -> PathBuf {
        // Rules are about landing paths; a temporary directory may itself be behind a link.
        real(self.dir.path()).join("project")
    }

    /// Where the program keeps temporary files.
    pub(crate) fn temporary(&self) -> PathBuf {
        real(self.dir.path()).join("tmp")
    }

    pub(crate) fn home(&self) -> PathBuf {
        real(self.dir.path()).join("home")
    }

    /// Sets a variable for every later run.
    pub(crate) fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.env.insert(name.into(), value.into());
    }

    /// Writes a file below the project.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        for made in path.ancestors().take_while(|made| *made != self.project()) {
            self.give(made);
        }
        path
    }

    /// The program with arguments, in the project, with nothing but the test's environment.
    pub(crate) fn command(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = match self.user {
            None => {
                // Another user may not be able to reach the directory of the build.
                let program = std::env::var_os("STOCKADE_BIN");
                Command::new(program.unwrap_or_else(|| STOCKADE.into()))
            }
            Some(user) => {
                let mut command = Command::new("setpriv");
                let [uid, gid] = ["--reuid", "--regid"].map(|word| format!("{word}={user}"));
                command.args([&uid, &gid, "--clear-groups", "--"]);
                command.arg(self.dir.path().join("stockade"));
                command
            }
        };
        command.args(args);
        self.place(&mut command);
        command
    }

    /// Runs the program with arguments.
    pub(crate) fn stockade(&self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        run(self.command(args))
    }

    /// Runs another program the same way.
    pub(crate) fn other(&self, argv: &[&str]) -> Ran {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]);
        self.place(&mut command);
        run(command)
    }

    pub(crate) fn place(&self, command: &mut Command) {
        command
            .current_dir(self.project())
            .env_clear()
            .envs(&self.env)
            .stdin(Stdio::null());
    }
}

impl Ran {
    /// Stdout as JSON of the version that is promised.
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {self:#?}"));
        assert_eq!(value["schema"], 1, "{self:#?}");
        value
    }

    /// The last line of stderr as JSON of the version that is promised.
    pub(crate) fn json_error(&self) -> Value {
        let line = self.stderr.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {self:#?}"));
        assert_eq!(value["schema"], 1, "{self:#?}");
        value["error"].clone()
    }

    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self.has_no_panic()
    }

    #[track_caller]
    fn has_no_panic(self) -> Self {
        assert!(!self.stderr.contains("panicked at"), "{self:#?}");
        self
    }
}

pub(crate) fn run(mut command: Command) -> Ran {
    use std::os::unix::process::ExitStatusExt;
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    Ran {
        code: status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Whether `need` is met by a command that succeeds. If not, the test is skipped and says so, or
/// fails where `STOCKADE_REQUIRE` lists the need.
pub(crate) fn has(test: &str, need: &str, attempt: &[&str]) -> bool {
    let works = Command::new(attempt[0])
        .args(&attempt[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
        let listed = required
            .split(',')
            .any(|word| word == need || word == "all");
        assert!(
            !listed,
            "{test} needs {need}, which STOCKADE_REQUIRE demands"
        );
        // Not through the print macros, whose output the harness keeps to itself.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {test}: needs {need}: `{}` does not work here",
            attempt.join(" ")
        );
    }
    works
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test's own directory, which nobody else changes"
)]
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap()
}
