//! Stockade inside another sandbox: what is left holds with `--best-effort`, and without it the
//! refusal says so.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::context::{Context, Ran, STOCKADE, has};
use crate::doctor::FILTERED;

/// A command that writes in the project and tries to write in the home.
const SCRIPT: &str = "echo x > made; echo y > \"$HOME/planted\" 2> /dev/null; exit 7";

/// Runs the inner Stockade behind `outer`, in a project and a home that `outer` leaves writable.
fn inner(context: &Context, outer: &[&str], flags: &[&str]) -> Ran {
    let mut words: Vec<&str> = outer.to_vec();
    words.extend([STOCKADE, "run", "--report", "r.json"]);
    words.extend(flags);
    words.extend(["--", "sh", "-c", SCRIPT]);
    context.other(&words)
}

/// What the outer sandbox alone lets the command do: both writes, or the inner one proves nothing.
fn control(context: &Context, outer: &[&str]) {
    let mut words: Vec<&str> = outer.to_vec();
    words.extend(["/bin/sh", "-c", SCRIPT]);
    context.other(&words).ends_with(7);
    let planted = context.home().join("planted");
    assert!(planted.exists(), "the outer sandbox denies it already");
    fs::remove_file(planted).unwrap();
    fs::remove_file(context.project().join("made")).unwrap();
}

fn report(project: &Path) -> Value {
    serde_json::from_slice(&fs::read(project.join("r.json")).unwrap()).unwrap()
}

/// The outer one opens files for writing on the command's behalf, which the inner one can't bind;
/// what the inner one denies to read, and its network, hold.
#[test]
fn stockade_in_stockade() {
    let context = Context::new();
    let secret = context.home().join("secret");
    fs::write(&secret, "content-of-secret").unwrap();
    let secret = secret.display().to_string();
    let script = "cat \"$0\"; echo x > made; exit 7";
    let home = context.home().display().to_string();
    // The program may lie below /tmp, which is another one inside.
    let outer = [
        STOCKADE, "run", "-q", "--read", &home, "--read", STOCKADE, "--",
    ];
    let bare = [&outer[..], &["sh", "-c", script, &secret]].concat();
    let seen = context.other(&bare).ends_with(7);
    assert!(seen.stdout.contains("content-of-secret"), "{seen:#?}");
    fs::remove_file(context.project().join("made")).unwrap();

    let inner = |flags: &[&str]| {
        let inner = [
            STOCKADE,
            "run",
            "--report",
            "r.json",
            "--deny-read",
            &secret,
        ];
        let command = ["--", "sh", "-c", script, &secret];
        context.other(&[&outer[..], &inner, flags, &command].concat())
    };
    let refused = inner(&[]).ends_with(125);
    assert!(!context.project().join("made").exists(), "{refused:#?}");
    let hint = "hint: --best-effort runs it";
    assert!(refused.stderr.contains(hint), "{refused:#?}");

    let ran = inner(&["--best-effort"]).ends_with(7);
    assert!(context.project().join("made").exists(), "{ran:#?}");
    assert!(!ran.stdout.contains("content-of-secret"), "{ran:#?}");
    let said = "the sandbox around this one still holds: the policy of another Stockade";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    let report = report(&context.project());
    assert_eq!(report["backend"], "landlock", "{report:#}");
    let clauses = report["enforcement"].as_array().unwrap();
    let lost = clauses
        .iter()
        .filter(|clause| clause["enforcement"] == "none");
    let lost: Vec<&str> = lost
        .filter_map(|clause| clause["clause"].as_str())
        .collect();
    assert_eq!(lost, ["fs-write", "names"], "{report:#}");
}

const BWRAP: [&str; 5] = ["bwrap", "--dev-bind", "/", "/", "--unshare-user"];

/// As the sandboxes of agents are made: a pid namespace, and a `/proc` of which parts are masked.
const WITH_PROC: [&str; 3] = ["--unshare-pid", "--proc", "/proc"];

fn can_bwrap(test: &str) -> bool {
    let mut attempt = BWRAP.to_vec();
    attempt.push("true");
    has(test, "tool:bwrap", &attempt)
}

/// Nobody listens in these, so that the mediator works and best effort is not needed.
fn holds_in_full_but_for(context: &Context, outer: &[&str], backend: &str) {
    control(context, outer);
    let ran = inner(context, outer, &[]).ends_with(7);
    assert!(context.project().join("made").exists(), "{ran:#?}");
    assert!(!context.home().join("planted").exists(), "{ran:#?}");
    assert_eq!(report(&context.project())["backend"], backend, "{ran:#?}");
}

#[test]
fn stockade_in_bwrap() {
    if can_bwrap("stockade_in_bwrap") {
        holds_in_full_but_for(&Context::new(), &BWRAP, "native");
    }
}

#[test]
fn stockade_in_bwrap_without_namespaces() {
    if can_bwrap("stockade_in_bwrap_without_namespaces") {
        for outer in [&WITH_PROC[..], &["--disable-userns"]] {
            let outer = [&BWRAP[..], outer].concat();
            holds_in_full_but_for(&Context::new(), &outer, "landlock");
        }
    }
}

/// A filter that denies namespaces and the network, as agents' own sandboxes have one.
#[test]
fn stockade_in_bwrap_with_a_filter() {
    let test = "stockade_in_bwrap_with_a_filter";
    if !can_bwrap(test) || !has(test, "tool:python3", &["python3", "-c", ""]) {
        return;
    }
    let denied = "unshare:1,socket:1,connect:1";
    let filter = ["python3", "-c", FILTERED, "0", denied];
    let outer = [&BWRAP[..], &WITH_PROC, &filter].concat();
    holds_in_full_but_for(&Context::new(), &outer, "landlock");
}

/// A pid namespace with the `/proc` of another: the mediator could not tell its callers.
#[test]
fn stockade_in_bwrap_with_the_proc_of_others() {
    if !can_bwrap("stockade_in_bwrap_with_the_proc_of_others") {
        return;
    }
    let context = Context::new();
    let outer = [&BWRAP[..], &["--unshare-pid"]].concat();
    control(&context, &outer);
    let refused = inner(&context, &outer, &[]).ends_with(125);
    assert!(!context.project().join("made").exists(), "{refused:#?}");
    let hint = "hint: --best-effort runs it";
    assert!(refused.stderr.contains(hint), "{refused:#?}");

    // Without a mediator the filter refuses set-id modes.
    let set_id = ["sh", "-c", "touch set-id; chmod 4755 set-id"];
    let is_set = || {
        let path = context.project().join("set-id");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        fs::remove_file(path).unwrap();
        mode & 0o4000 != 0
    };
    context.other(&[&outer[..], &set_id].concat()).ends_with(0);
    assert!(is_set(), "the outer sandbox denies it already");
    let boxed = [STOCKADE, "run", "-q", "--best-effort", "--"];
    context.other(&[&outer[..], &boxed, &set_id].concat());
    assert!(!is_set());

    let ran = inner(&context, &outer, &["--best-effort"]).ends_with(7);
    assert!(context.project().join("made").exists(), "{ran:#?}");
    assert!(!context.home().join("planted").exists(), "{ran:#?}");
    assert_eq!(report(&context.project())["backend"], "landlock");
}

/// `/proc` names a process by its number in the sandbox, whatever number it has in a pid namespace
/// of its own.
#[test]
fn a_process_in_a_pid_namespace_of_its_own_is_itself_in_proc() {
    let script = "echo renamed > /proc/self/comm; read -r name < /proc/self/comm; echo $name";
    let nested = ["unshare", "-Upf", "sh", "-c", script];
    for context in Context::of_each_user() {
        let bare = context.other(&nested).ends_with(0);
        assert_eq!(bare.stdout, "renamed\n", "{bare:#?}");
        let flags = ["run", "-q", "--danger-nested-namespaces", "--"];
        let line = [&flags[..], &nested].concat();
        let inside = context.stockade(line).ends_with(0);
        assert_eq!(inside.stdout, "renamed\n", "{inside:#?}");
    }
}
