//! Tests of this suite once more, as an ordinary user.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use crate::context::{STOCKADE, run};

/// No file of the machine belongs to this user.
const ORDINARY_USER: u32 = 54_322;

/// Modules whose tests need nothing that only root has.
const MODULES: [&str; 7] = [
    "batch::",
    "ws_differences::",
    "ws_guarded::",
    "ws_hints::",
    "ws_imports::",
    "ws_places::",
    "ws_transactions::",
];

#[test]
fn an_ordinary_user_gets_the_same_as_root() {
    if !rustix::process::getuid().is_root() {
        // Not through the print macros, whose output the harness keeps to itself.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: an ordinary user runs the suite"
        );
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let [program, suite, temporary] = ["stockade", "it", "tmp"].map(|name| dir.path().join(name));
    // The directory of the build may be closed to other users.
    fs::copy(STOCKADE, &program).unwrap();
    fs::copy(std::env::current_exe().unwrap(), &suite).unwrap();
    fs::create_dir(&temporary).unwrap();
    let user = Some(ORDINARY_USER);
    std::os::unix::fs::chown(&temporary, user, user).unwrap();
    let mut command = Command::new("setpriv");
    let [uid, gid] = ["--reuid", "--regid"].map(|word| format!("{word}={ORDINARY_USER}"));
    command
        .args([&uid, &gid, "--clear-groups", "--"])
        .arg(&suite)
        .args(MODULES)
        .env("STOCKADE_BIN", &program)
        .env("TMPDIR", &temporary)
        .env("HOME", &temporary)
        .env_remove("XDG_RUNTIME_DIR")
        .current_dir(&temporary)
        .stdin(Stdio::null());
    let ran = run(command).ends_with(0);
    for module in MODULES {
        let test = format!("test {module}");
        assert!(ran.stdout.contains(&test), "no test of {module}: {ran:#?}");
    }
}
