//! The harness must fail when it should, and leave nothing behind either way.

#![expect(clippy::unwrap_used, reason = "a test ends where its own set-up fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// Runs a command as it is: a sandbox that holds nothing. Stands in for a broken product.
const SIEVE: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n";
/// Starts nothing: denies everything and proves nothing.
const WALL: &str = "#!/bin/sh\nexit 0\n";
/// A read-only view in namespaces of its own: holds against writing.
const CRATE: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift\n\
    exec unshare -Urmpf --kill-child sh -c 'mount -o remount,bind,ro / && exec \"$@\"' sh \"$@\"\n";

/// A driver that insists on the description it is promised.
const DRIVER: &str = "#!/bin/sh\n[ \"$1 $3\" = '--case --' ] || exit 99\n\
    grep -q '\"flag\":\"write\",\"value\":\"/.*/out\"' \"$2\" || exit 98\nshift 3; exec \"$@\"\n";

/// Runs one case with a stand-in for the product.
fn try_case(case: &str, sandbox: &str) -> Output {
    try_with(case, sandbox, "STOCKADE_BIN", "")
}

/// The same, with the variable that names the stand-in and a list of required needs.
fn try_with(case: &str, sandbox: &str, variable: &str, required: &str) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("stand-in");
    fs::write(&program, sandbox).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Command::new(env!("CARGO_BIN_EXE_stockade-test-doomed"))
        .args([case, "--test-threads=1"])
        .env_remove("STOCKADE_BIN")
        .env_remove("STOCKADE_DRIVER")
        .env(variable, &program)
        .env("STOCKADE_REQUIRE", required)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_leak_fails_the_suite() {
    let output = try_case("holds", SIEVE);
    assert!(
        !output.status.success() && text(&output).contains("LEAK"),
        "{}",
        text(&output)
    );
}

#[test]
fn a_command_that_never_started_fails_the_suite() {
    let output = try_case("holds", WALL);
    assert!(!output.status.success() && text(&output).contains("never started"));
}

#[test]
fn a_control_that_does_not_leak_fails_the_suite() {
    let output = try_case("vacuous", CRATE);
    assert!(!output.status.success() && text(&output).contains("control did not leak"));
}

#[test]
fn broken_work_fails_the_suite() {
    let output = try_case("works", WALL);
    assert!(!output.status.success() && text(&output).contains("missing inside: exit code 7"));
}

#[test]
fn an_orphan_fails_the_suite() {
    let output = try_case("orphan", SIEVE);
    assert!(!output.status.success() && text(&output).contains("outlives the run"));
}

#[test]
fn a_leftover_is_named() {
    let output = try_case("litter", SIEVE);
    let told = text(&output);
    let begin = "left behind on the host:\n/dev/shm/stkmark";
    let place = told.split_once(begin).map(|(_, rest)| rest);
    let place = place.and_then(|rest| rest.split(':').next());
    if let Some(place) = place {
        fs::remove_dir_all(format!("/dev/shm/stkmark{place}")).unwrap();
    }
    assert!(
        !output.status.success() && told.contains("with [\"inside\"]"),
        "{told}"
    );
}

#[test]
fn a_gap_that_closed_fails_the_suite() {
    assert!(try_case("gap", SIEVE).status.success());
    let closed = try_case("gap", CRATE);
    assert!(
        !closed.status.success() && text(&closed).contains("holds now"),
        "{}",
        text(&closed)
    );
}

#[test]
fn a_sandbox_that_holds_passes() {
    for case in ["holds", "works", "orphan"] {
        let output = try_case(case, CRATE);
        assert!(output.status.success(), "{case}: {}", text(&output));
    }
}

#[test]
fn the_library_s_driver_gets_the_case() {
    let output = try_with("driven", DRIVER, "STOCKADE_DRIVER", "");
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn an_unmet_need_is_told_or_fails() {
    let skipped = try_with("unmet", SIEVE, "STOCKADE_BIN", "");
    assert!(skipped.status.success() && text(&skipped).contains("needs tool:no-such-tool"));
    let required = try_with("unmet", SIEVE, "STOCKADE_BIN", "userns,tool:no-such-tool");
    assert!(!required.status.success() && text(&required).contains("STOCKADE_REQUIRE has tool:"));
}

/// A suite that was started with signals ignored starts its cases without.
#[test]
fn signals_are_not_ignored_by_inheritance() {
    let output = Command::new("env")
        .args(["--ignore-signal=INT,HUP"])
        .arg(env!("CARGO_BIN_EXE_stockade-test-doomed"))
        .args(["signals", "--test-threads=1"])
        .env("STOCKADE_TEST_CONTROLS", "1")
        .env_remove("STOCKADE_REQUIRE")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn a_killed_suite_leaves_nothing() {
    use std::io::Read as _;
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("stand-in");
    // The sandbox never returns, so the suite is in the middle of a case when it is killed.
    let flag = dir.path().join("reached");
    Command::new("mkfifo")
        .args(["-m", "666"])
        .arg(&flag)
        .status()
        .unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!("#!/bin/sh\necho > '{}'\nexec sleep 3600\n", flag.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut suite = Command::new(env!("CARGO_BIN_EXE_stockade-test-doomed"))
        .args(["holds/user", "--test-threads=1"])
        .env("STOCKADE_BIN", &program)
        .env("STOCKADE_TEST_DIR", dir.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    fs::File::open(&flag).unwrap().read_exact(&mut [0]).unwrap();
    let stage = dir.path().join(format!("stk-test-{}", suite.id()));
    assert!(stage.exists());
    suite.kill().unwrap();
    suite.wait().unwrap();
    wait_for_removal(&stage);
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    assert!(!passwd.contains(&format!("stk-test-{}:", suite.id())));
}

/// Blocks on the directory's parent until the stage is gone, at most two minutes.
fn wait_for_removal(stage: &Path) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify;
    let watch = inotify::init(inotify::CreateFlags::empty()).unwrap();
    inotify::add_watch(&watch, stage.parent().unwrap(), inotify::WatchFlags::DELETE).unwrap();
    if stage.exists() {
        let timeout = Timespec {
            tv_sec: 120,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&timeout)).unwrap();
    }
    assert!(!stage.exists());
}
