//! Self-tests and trials of commands.

use std::fs;
use std::path::{Path, PathBuf};

use stockade::compat::vtcode::{
    DebugError, DebugSubcommand, SelfTest, Verdict, debug_sandbox, sandbox_capabilities_summary,
    test_network_blocked, test_path_writable,
};
use stockade_policy::{NetworkAllowlistEntry, SandboxPolicy, SandboxTransformError, SandboxType};

use crate::{Test, dir, own_path};

pub(crate) const TESTS: &[Test] = &[
    ("a_command_is_tried", command),
    ("network", network),
    ("nothing_is_left", nothing_is_left),
    ("paths", paths),
    ("the_summary_is_of_this_machine", summary),
    ("what_proves_nothing_is_inconclusive", inconclusive),
];

/// A copy of this program that every sandbox sees: the checkout may lie below /tmp.
struct Helper {
    _place: tempfile::TempDir,
    path: PathBuf,
}

impl Helper {
    fn new() -> Self {
        let place = dir();
        let path = place.path().join("helper");
        fs::copy(own_path(), &path).unwrap();
        Self {
            _place: place,
            path,
        }
    }

    fn writable(&self, policy: &SandboxPolicy, path: &Path, cwd: &Path) -> SelfTest {
        test_path_writable(policy, path, cwd, Some(&self.path)).unwrap()
    }

    fn blocked(&self, policy: &SandboxPolicy, cwd: &Path) -> SelfTest {
        test_network_blocked(policy, cwd, Some(&self.path)).unwrap()
    }
}

fn found(test: &SelfTest) -> (Verdict, Option<bool>) {
    (test.verdict, test.observed)
}

fn paths() {
    let (inside, outside, helper) = (dir(), dir(), Helper::new());
    let cwd = inside.path();
    let policy = SandboxPolicy::workspace_write(vec![]);
    let odd = cwd.join("it's \"odd\"; $(touch x)\n");
    fs::create_dir(&odd).unwrap();
    fs::create_dir_all(cwd.join(".git/hooks")).unwrap();
    fs::write(cwd.join("file"), "as it was").unwrap();
    fs::write(outside.path().join("file"), "as it was").unwrap();
    for path in [cwd, Path::new("."), &odd, &cwd.join("file")] {
        let test = helper.writable(&policy, path, cwd);
        assert_eq!(
            found(&test),
            (Verdict::Enforced, Some(true)),
            "{} {test:?}",
            path.display()
        );
    }
    for path in [
        outside.path(),
        &outside.path().join("file"),
        &cwd.join(".git/hooks"),
        // The host's; inside there is another one.
        Path::new("/tmp"),
    ] {
        let test = helper.writable(&policy, path, cwd);
        assert_eq!(
            found(&test),
            (Verdict::Enforced, Some(false)),
            "{} {test:?}",
            path.display()
        );
    }
    let test = helper.writable(&SandboxPolicy::read_only(), cwd, cwd);
    assert_eq!(found(&test), (Verdict::Enforced, Some(false)), "{test:?}");
    assert_eq!(fs::read(cwd.join("file")).unwrap(), b"as it was");
}

fn network() {
    let (place, helper) = (dir(), Helper::new());
    let blocked = |policy: &SandboxPolicy| helper.blocked(policy, place.path());
    let test = blocked(&SandboxPolicy::read_only());
    assert_eq!(found(&test), (Verdict::Enforced, Some(true)), "{test:?}");
    let test = blocked(&SandboxPolicy::read_only_with_full_network());
    assert_eq!(found(&test), (Verdict::Enforced, Some(false)), "{test:?}");
    // A list of hosts keeps everybody else away, and everything can be tried under it.
    let listed = vec![NetworkAllowlistEntry::https("example.org")];
    let listed = SandboxPolicy::workspace_write_with_network(vec![], listed);
    let test = blocked(&listed);
    assert_eq!(found(&test), (Verdict::Enforced, Some(true)), "{test:?}");
    let test = helper.writable(&listed, place.path(), place.path());
    assert_eq!(found(&test), (Verdict::Enforced, Some(true)), "{test:?}");
    let landlock = SandboxType::LinuxLandlock;
    let own = Some(helper.path.as_path());
    let tried = debug_sandbox(landlock, &listed, &["true"], place.path(), own).unwrap();
    assert!(tried.success && tried.sandbox_active, "{tried:?}");
    let test = blocked(&SandboxPolicy::full_access());
    assert_eq!(
        found(&test),
        (Verdict::NotEnforced, Some(false)),
        "{test:?}"
    );
}

fn inconclusive() {
    let (place, helper) = (dir(), Helper::new());
    let policy = SandboxPolicy::read_only();
    let test = helper.writable(&policy, Path::new("gone"), place.path());
    assert_eq!(found(&test), (Verdict::Inconclusive, None), "{test:?}");
    // The helper is not to be seen inside, so nothing can be tried there.
    let hidden = SandboxPolicy::workspace_write_with_sensitive_paths(
        vec![],
        vec![stockade_policy::SensitivePath::new(helper.path.clone())],
    );
    let test = helper.writable(&hidden, place.path(), place.path());
    assert_eq!(found(&test), (Verdict::Inconclusive, None), "{test:?}");
    let test = helper.blocked(&hidden, place.path());
    assert_eq!(found(&test), (Verdict::Inconclusive, None), "{test:?}");
    let none = test_network_blocked(&policy, place.path(), None);
    assert!(matches!(
        none,
        Err(DebugError::Transform(
            SandboxTransformError::MissingSandboxExecutable
        ))
    ));
    let test = helper.writable(&SandboxPolicy::full_access(), place.path(), place.path());
    assert_eq!(found(&test), (Verdict::NotEnforced, Some(true)), "{test:?}");
}

fn command() {
    let place = dir();
    let helper = own_path();
    let run = |policy: &SandboxPolicy, words: &[&str]| {
        debug_sandbox(
            SandboxType::LinuxLandlock,
            policy,
            words,
            place.path(),
            Some(&helper),
        )
    };
    let words = [
        "/bin/sh",
        "-c",
        "echo out; echo err >&2; echo x > f; exit 4",
    ];
    let result = run(&SandboxPolicy::workspace_write(vec![]), &words).unwrap();
    assert_eq!(result.exit_code, Some(4));
    assert_eq!(
        (result.stdout.as_str(), result.stderr.as_str()),
        ("out\n", "err\n")
    );
    assert!(result.sandbox_active && !result.success);
    assert!(place.path().join("f").exists());
    let result = run(&SandboxPolicy::full_access(), &["pwd"]).unwrap();
    assert!(result.success && !result.sandbox_active);
    assert_eq!(Path::new(result.stdout.trim_end()), place.path());
    assert!(matches!(
        run(&SandboxPolicy::read_only(), &[]),
        Err(DebugError::Empty)
    ));
    let seatbelt = DebugSubcommand::Seatbelt.sandbox_type();
    let policy = SandboxPolicy::read_only();
    let nothing: &[&str] = &[];
    let result = debug_sandbox(seatbelt, &policy, nothing, place.path(), None).unwrap();
    assert!(!result.success && result.stderr.contains("MacosSeatbelt"));
}

fn summary() {
    let text = sandbox_capabilities_summary(&own_path());
    assert!(text.contains("tier: native"), "{text}");
    assert!(text.contains("landlock: yes"), "{text}");
    // A helper that tries nothing can't make anything available.
    let text = sandbox_capabilities_summary(Path::new("/bin/true"));
    assert!(text.contains("tier: none"), "{text}");
}

fn nothing_is_left() {
    let place = dir();
    let policy = SandboxPolicy::workspace_write(vec![]);
    Helper::new().writable(&policy, place.path(), place.path());
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    let ours = format!(".stockade-self-test-{}-", std::process::id());
    let temporary = fs::read_dir(std::env::temp_dir()).unwrap();
    let left: Vec<_> = temporary
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(&ours))
        // Those of other tests are in use, and empty when they are done.
        .filter(|path| path.is_file())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
