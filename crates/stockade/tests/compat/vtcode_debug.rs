//! VT Code's functions that try a sandbox, and its death signal.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use stockade::compat::vtcode::{
    DebugSubcommand, NetworkAllowlistEntry, SandboxDebugResult, SandboxPolicy, SandboxType,
    Verdict, debug_sandbox, sandbox_capabilities_summary, setup_parent_death_signal,
    test_network_blocked, test_path_writable,
};

use crate::{PART, Test, dir, own_path, print, run_part};

pub(crate) const TESTS: &[Test] = &[
    ("command", command),
    ("network", network),
    ("parent_death", parent_death),
    ("path", path),
    ("subcommands", subcommands),
    ("summary", summary),
];

pub(crate) const PARTS: &[Test] = &[("orphan", orphan), ("parent", parent)];

fn helper() -> (tempfile::TempDir, PathBuf) {
    let place = dir();
    let path = place.path().join("helper");
    fs::copy(own_path(), &path).unwrap();
    (place, path)
}

fn listed() -> SandboxPolicy {
    let hosts = vec![NetworkAllowlistEntry::https("example.org")];
    SandboxPolicy::workspace_write_with_network(vec![], hosts)
}

fn command() {
    let (place, helper) = (dir(), own_path());
    let cwd = place.path();
    let landlock = SandboxType::LinuxLandlock;
    for policy in [SandboxPolicy::workspace_write(vec![]), listed()] {
        let words = ["sh", "-c", "echo out; exit 3"];
        let result = debug_sandbox(landlock, &policy, &words, cwd, Some(&helper)).unwrap();
        let SandboxDebugResult {
            success,
            exit_code,
            stdout,
            sandbox_active,
            ..
        } = result;
        assert_eq!((exit_code, stdout.as_str()), (Some(3), "out\n"));
        assert!(!success && sandbox_active);
    }
}

fn network() {
    let (place, (_kept, helper)) = (dir(), helper());
    for (policy, blocked) in [
        (SandboxPolicy::read_only(), true),
        (listed(), true),
        (SandboxPolicy::read_only_with_full_network(), false),
    ] {
        let test = test_network_blocked(&policy, place.path(), Some(&helper)).unwrap();
        let found = (test.verdict, test.observed);
        assert_eq!(found, (Verdict::Enforced, Some(blocked)), "{test:?}");
    }
}

fn path() {
    let (place, outside, (_kept, helper)) = (dir(), dir(), helper());
    let cwd = place.path();
    for policy in [SandboxPolicy::workspace_write(vec![]), listed()] {
        for (path, writable) in [(cwd, true), (outside.path(), false)] {
            let test = test_path_writable(&policy, path, cwd, Some(&helper)).unwrap();
            let found = (test.verdict, test.observed);
            assert_eq!(found, (Verdict::Enforced, Some(writable)), "{test:?}");
        }
    }
}

fn subcommands() {
    let kind = DebugSubcommand::sandbox_type;
    assert_eq!(kind(DebugSubcommand::Landlock), SandboxType::LinuxLandlock);
    assert_eq!(kind(DebugSubcommand::Seatbelt), SandboxType::MacosSeatbelt);
    assert_eq!(
        kind(DebugSubcommand::Capabilities),
        SandboxType::platform_default()
    );
}

fn summary() {
    let text = sandbox_capabilities_summary(&own_path());
    for word in ["landlock", "seccomp", "read-only access"] {
        assert!(text.contains(word), "{text}");
    }
}

/// Waits for input that never comes, unless the kernel ends it with its parent.
fn orphan() {
    setup_parent_death_signal().unwrap();
    print("ready");
    loop {
        std::thread::park();
    }
}

/// Starts the orphan, prints its id when it is ready, and ends.
#[expect(clippy::zombie_processes, reason = "it is to outlive its parent")]
fn parent() {
    use std::io::Read;
    let child = Command::new(own_path())
        .args([PART, "orphan"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id();
    let mut ready = [0; 6];
    child.stdout.unwrap().read_exact(&mut ready).unwrap();
    print(&id.to_string());
}

fn parent_death() {
    let id = run_part("parent");
    let id = rustix::process::Pid::from_raw(id.trim().parse().unwrap()).unwrap();
    // Either it is gone, or it is about to be: then its descriptor becomes readable.
    let opened = rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty());
    if let Ok(pidfd) = opened {
        let mut watched = [rustix::event::PollFd::new(
            &pidfd,
            rustix::event::PollFlags::IN,
        )];
        let limit = rustix::event::Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        let ready = rustix::event::poll(&mut watched, Some(&limit)).unwrap();
        assert_eq!(ready, 1, "setup_parent_death_signal had no effect");
    }
}
