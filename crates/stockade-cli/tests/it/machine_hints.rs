//! Hints about the machine, from `doctor` and from backends: each is executed where it changes
//! nothing but a namespace of the test's own.

use serde_json::Value;
use stockade_test::dockerd::Dockerd;

use crate::context::{Context, Ran, STOCKADE, has};
use crate::doctor::FILTERED;
use crate::hint_list::Hints;

/// Every hint of `doctor --json`.
pub(crate) fn fixes(document: &Value) -> Vec<&str> {
    match document {
        Value::Object(fields) => {
            let own = fields.get("fix").and_then(Value::as_str);
            own.into_iter()
                .chain(fields.values().flat_map(fixes))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(fixes).collect(),
        _ => Vec::new(),
    }
}

/// Two documents of `doctor`: the first has the hint, the second, after it was followed, has not.
#[track_caller]
fn is_followed(hints: &Hints, ran: &Ran, start: &str) {
    let documents = serde_json::Deserializer::from_str(&ran.stdout).into_iter::<Value>();
    let documents: Vec<Value> = documents.map(Result::unwrap).collect();
    let [before, after] = &documents[..] else {
        panic!("{ran:#?}");
    };
    let fix = fixes(before).into_iter().find(|fix| fix.starts_with(start));
    let fix = fix.unwrap_or_else(|| panic!("no hint `{start}`: {before:#}"));
    hints.note(fix);
    assert!(!fixes(after).contains(&fix), "{fix}: {after:#}");
}

/// The command between the first backticks of the hint that begins so, from a first `doctor`.
const FOLLOW: &str = r#"
first=$("$0" doctor --json) && echo "$first"
command=$(echo "$first" | grep -o "\"$START.*" | cut -d'`' -f2 | head -n 1)
"#;

#[test]
fn a_limit_of_user_namespaces() {
    let test = "machine_hints::a_limit_of_user_namespaces";
    if !has(test, "userns", &["unshare", "-r", "true"]) {
        return;
    }
    let hints = Hints::of(test);
    let context = Context::new();
    let in_namespace =
        |script: &str| context.other(&["unshare", "-r", "sh", "-c", script, STOCKADE]);
    // The limit is of the namespace that `unshare` made.
    let none = format!(
        "echo 0 > /proc/sys/user/max_user_namespaces; START='.sysctl user'; {FOLLOW}
         $command > /dev/null; exec \"$0\" doctor --json"
    );
    is_followed(&hints, &in_namespace(&none), "`sysctl user");
    let used_up = "echo 1 > /proc/sys/user/max_user_namespaces
         mkfifo held; unshare -U sh -c 'echo > held; read line < held' & echo > /dev/null
         read line < held; \"$0\" doctor --json
         echo 100 > /proc/sys/user/max_user_namespaces; \"$0\" doctor --json; echo > held; wait";
    is_followed(
        &hints,
        &in_namespace(used_up),
        "raise user.max_user_namespaces",
    );
    // Without namespaces there is no overlay, and the way to learn why is named.
    let run = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" run -q --overlay -- true";
    let hint = hints.in_refusal(&in_namespace(run));
    assert_eq!(hint.split('`').nth(1), Some("stockade doctor"));
    let asked = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\" doctor";
    let told = in_namespace(asked).ends_with(0).stdout;
    assert!(
        told.contains("hint: `sysctl user.max_user_namespaces=15000`"),
        "{told}"
    );
}

#[test]
fn no_control_groups() {
    let test = "machine_hints::no_control_groups";
    if !has(
        test,
        "root",
        &["unshare", "-m", "umount", "-R", "/sys/fs/cgroup"],
    ) {
        return;
    }
    let hints = Hints::of(test);
    let script = "umount -R /sys/fs/cgroup; \"$0\" doctor --json
                  mount -t cgroup2 cgroup2 /sys/fs/cgroup; exec \"$0\" doctor --json";
    let context = Context::new();
    let ran = context.other(&["unshare", "-m", "sh", "-c", script, STOCKADE]);
    is_followed(&hints, &ran, "mount cgroup2");
}

#[test]
fn another_supervisor() {
    let hints = Hints::of("machine_hints::another_supervisor");
    let context = Context::new();
    let script = "\"$0\" run -q --read \"$0\" -- \"$0\" doctor --json; exec \"$0\" doctor --json";
    let ran = context.other(&["sh", "-c", script, STOCKADE]);
    is_followed(&hints, &ran, "start Stockade outside");
}

/// Kernels that lack something, as a filter makes this one look: to follow the hint is to take the
/// filter away.
#[test]
fn a_kernel_that_lacks_something() {
    let test = "machine_hints::a_kernel_that_lacks_something";
    if !has(test, "tool:python3", &["python3", "-c", ""]) {
        return;
    }
    let hints = Hints::of(test);
    let context = Context::new();
    let script = "python3 -c \"$1\" 0 \"$2\" \"$0\" doctor --json; exec \"$0\" doctor --json";
    for (denied, hint) in [
        ("unshare:1", "in a container: `--security-opt seccomp"),
        ("unshare:22", "use a kernel with CONFIG_USER_NS"),
        ("landlock_create_ruleset:95", "add `landlock` to"),
        ("landlock_create_ruleset:38", "use Linux 5.13 or later; in"),
        ("seccomp:22", "use Linux 5.0 or later"),
        ("seccomp:38", "use a kernel with CONFIG_SECCOMP_FILTER"),
    ] {
        let ran = context.other(&["sh", "-c", script, STOCKADE, FILTERED, denied]);
        is_followed(&hints, &ran, hint);
    }
}

/// The switch of Ubuntu's kernel, as a file of that name makes this one look; the filter refuses what
/// that kernel would. What the hint names is executed.
#[test]
fn a_kernel_with_restricted_namespaces() {
    let test = "machine_hints::a_kernel_with_restricted_namespaces";
    let can_mount = [
        "unshare",
        "-rm",
        "mount",
        "-t",
        "tmpfs",
        "none",
        "/proc/sys/kernel",
    ];
    if !has(test, "userns", &can_mount) {
        return;
    }
    let hints = Hints::of(test);
    let script = "mount -t tmpfs none /proc/sys/kernel
        echo 1 > /proc/sys/kernel/apparmor_restrict_unprivileged_userns
        as_user() { unshare -U python3 -c \"$1\" 0 unshare:1 \"$0\" doctor --json; }
        first=$(as_user \"$1\"); echo \"$first\"
        command=$(echo \"$first\" | grep -o 'install an AppArmor.*' | cut -d'`' -f4 | head -n 1)
        $command > /dev/null; as_user \"$1\"";
    let context = Context::new();
    let words = ["unshare", "-rm", "sh", "-c", script, STOCKADE, FILTERED];
    is_followed(&hints, &context.other(&words), "install an AppArmor");
}

/// A container whose `/proc` is masked: the option leaves the masks out.
#[test]
fn a_masked_proc() {
    let test = "machine_hints::a_masked_proc";
    let mask = [
        "unshare",
        "-m",
        "mount",
        "--bind",
        "/dev/null",
        "/proc/interrupts",
    ];
    if !has(test, "root", &mask) {
        return;
    }
    let hints = Hints::of(test);
    let script = "mount --bind /dev/null /proc/interrupts; \"$0\" doctor --json
                  umount /proc/interrupts; exec \"$0\" doctor --json";
    let context = Context::new();
    let ran = context.other(&["unshare", "-m", "sh", "-c", script, STOCKADE]);
    is_followed(&hints, &ran, "in a container: `--security-opt systempaths");
}

/// A tree that is entered by chroot(2), and then as the hint says.
#[test]
fn a_chroot() {
    let test = "machine_hints::a_chroot";
    if !has(
        test,
        "root",
        &["unshare", "-m", "mount", "--rbind", "/", "/"],
    ) {
        return;
    }
    let hints = Hints::of(test);
    let script = "set -e; mkdir ../tree; cd ../tree; mount --make-rprivate /
        for path in /*; do
            if test -L $path; then cp -P $path .; elif test -d $path; then mkdir .$path; mount --rbind $path .$path; fi
        done
        chroot . \"$0\" doctor --json; mount --rbind . .; cd .; cd \"$PWD\"
        mkdir old; pivot_root . old; cd /; exec \"$0\" doctor --json";
    let context = Context::new();
    let ran = context.other(&["unshare", "-m", "sh", "-c", script, STOCKADE]);
    is_followed(&hints, &ran, "use pivot_root");
}

#[test]
fn no_temporary_directory() {
    let test = "machine_hints::no_temporary_directory";
    let mut context = Context::new();
    let run = ["run", "-q", "--level", "maximum", "--", "true"];
    if !has(
        test,
        "backend:gvisor",
        &[STOCKADE, "run", "-q", "--level", "maximum", "--", "true"],
    ) {
        return;
    }
    let hints = Hints::of(test);
    context.set("TMPDIR", "relative");
    let hint = hints.in_refusal(&context.stockade(run));
    context.set(hint.split(' ').nth(1).unwrap(), "/tmp");
    context.stockade(run).ends_with(0);
}

#[test]
fn a_package_that_is_not_installed() {
    let test = "machine_hints::a_package_that_is_not_installed";
    if !has(test, "tool:bwrap", &["dpkg", "-S", "/usr/bin/bwrap"]) {
        return;
    }
    let hints = Hints::of(test);
    let mut context = Context::new();
    context.set("PATH", "/nonexistent");
    let refusal =
        |flags: &[&str]| context.stockade([&["run"], flags, &["--", "/bin/true"]].concat());
    let by_name = hints.in_refusal(&refusal(&["--backend", "bwrap"]));
    let gaps = context.stockade(["doctor", "--json"]).json();
    let fix = gaps["bwrap"]["gaps"][0]["fix"].as_str().unwrap();
    for hint in [by_name, hints.note(fix)] {
        let package = hint.split('`').nth(1).unwrap().to_owned();
        let listed = std::process::Command::new("dpkg")
            .args(["-L", &package])
            .output();
        let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
        assert!(listed.contains("/usr/bin/bwrap\n"), "{hint}");
    }
    let named = hints.in_refusal(&refusal(&["--backend", "nsjail"]));
    assert!(named.ends_with("or name another backend"), "{named}");
    assert_eq!(refusal(&["--backend", "native"]).code, 0);
    hints.in_refusal(&refusal(&["--level", "maximum"]));
    for (tool, flag) in [("nsjail", "--backend"), ("runsc", "--level")] {
        let fix = gaps[tool]["gaps"][0]["fix"].as_str().unwrap();
        // What it says that the program is needed for is what asks for it.
        let needed = hints.note(fix);
        let needed: Vec<&str> = needed.split('`').nth(1).unwrap().split(' ').collect();
        assert_eq!(needed[0], flag);
        let refused = refusal(&needed);
        assert!(
            refused.stderr.contains(&format!("`{tool}` is not")),
            "{refused:#?}"
        );
    }
}

#[test]
fn an_engine_that_does_not_answer() {
    let test = "machine_hints::an_engine_that_does_not_answer";
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let Ok(engine) = Dockerd::start(dir.path()) else {
        assert!(!has(test, "backend:docker", &["false"]));
        return;
    };
    let hints = Hints::of(test);
    let mut context = Context::new();
    context.set("DOCKER_HOST", "unix:///nonexistent");
    let list = hints.in_refusal(&context.stockade(["image", "list"]));
    assert!(
        list.ends_with("set DOCKER_HOST to unix:// and its socket"),
        "{list}"
    );
    let without = context.stockade(["doctor", "--json"]);
    let contained = ["run", "--level", "container", "--", "true"];
    let nothing = hints.in_refusal(&context.stockade(contained));
    assert!(nothing.starts_with("`stockade doctor`"), "{nothing}");
    let socket = format!("unix://{}", engine.socket().display());
    context.set("DOCKER_HOST", socket);
    context.stockade(["image", "list"]).ends_with(0);
    let with = context.stockade(["doctor", "--json"]);
    let both = Ran {
        code: 0,
        stdout: without.stdout + &with.stdout,
        stderr: String::new(),
    };
    is_followed(&hints, &both, "start the daemon");
    context.stockade(contained).ends_with(0);
}
