//! Workspaces in use: what is refused meanwhile, what counts as use, what is told about it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::SystemTime;

use serde_json::Value;

use crate::context::Context;
use crate::ws::{Left, context, has_overlay, sh};

fn create(context: &Context) {
    let project = context.project();
    let line = ["ws", "create", "w", "--dir", project.to_str().unwrap()];
    context.stockade(line).ends_with(0);
}

#[test]
fn an_overlay_in_use_is_not_removed() {
    if !has_overlay("an_overlay_in_use_is_not_removed") {
        return;
    }
    let context = context();
    let script = "echo ready; read line; echo $line > file";
    let mut command = context.command(["run", "-q", "--overlay=o", "--", "sh", "-c", script]);
    let mut run = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut output = BufReader::new(run.stdout.take().unwrap());
    output.read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let others = [
        vec!["ws", "rm", "o"],
        vec!["ws", "discard", "o"],
        vec!["ws", "commit", "o"],
        vec!["ws", "diff", "o"],
    ];
    let refused: Vec<_> = others.map(|line| context.stockade(line)).into();
    let cleaned = context.stockade(["ws", "cleanup", "--max-age", "0s", "--json"]);
    drop(run.stdin.take());
    assert!(run.wait().unwrap().success());
    for ran in refused {
        let ran = ran.ends_with(1);
        assert!(ran.stderr.contains("in use by another run"), "{ran:#?}");
    }
    assert_eq!(cleaned.json()["removed"].as_array().unwrap().len(), 0);
    context.stockade(["ws", "diff", "o"]).ends_with(0);
    context.stockade(["ws", "rm", "o"]).ends_with(0);
}

#[test]
fn a_run_over_an_overlay_is_use() {
    if !has_overlay("a_run_over_an_overlay_is_use") {
        return;
    }
    let context = context();
    sh(&context, &["--overlay=o"], "echo x > file").ends_with(0);
    let shown = context.stockade(["ws", "show", "o", "--json"]).json();
    assert_eq!(shown["overlay"], true);
    let place = context.home().join("store/workspaces/o");
    let path = place.join("state.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    state["used_ms"] = 0.into();
    fs::write(&path, state.to_string()).unwrap();
    let cleanup = || {
        let line = ["ws", "cleanup", "--max-age", "1h", "--json"];
        context.stockade(line).json()["removed"].clone()
    };
    assert_eq!(cleanup(), serde_json::json!([]));
    for layer in fs::read_dir(place.join("overlay")).unwrap() {
        let work = layer.unwrap().path().join("work");
        if let Ok(work) = File::open(work) {
            work.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
    }
    assert_eq!(cleanup(), serde_json::json!(["o"]));
}

#[test]
fn only_the_owner_reads_what_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let context = context();
    create(&context);
    let store = context.home().join("store");
    let mode = |name: &str| {
        let metadata = fs::metadata(store.join(name)).unwrap();
        metadata.permissions().mode() & 0o7777
    };
    for name in ["workspaces/w/state.json", "workspaces/w/cache"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    for name in ["", "packs", "workspaces", "workspaces/w"] {
        assert_eq!(mode(name), 0o700, "{name}");
    }
}

#[test]
fn nothing_is_started_in_a_paused_workspace() {
    let context = context();
    create(&context);
    context.stockade(["ws", "pause", "w"]).ends_with(0);
    let again = context.stockade(["ws", "pause", "w"]).ends_with(1);
    assert!(again.stderr.contains("is paused already"), "{again:#?}");
    for line in [
        &["ws", "run", "w", "--", "true"][..],
        &["ws", "run", "w", "-d", "--", "true"],
    ] {
        let refused = context.stockade(line).ends_with(1);
        assert!(refused.stderr.contains("can't be run in"), "{refused:#?}");
        assert!(refused.stderr.contains("ws resume"), "{refused:#?}");
    }
    context.stockade(["ws", "resume", "w"]).ends_with(0);
    context
        .stockade(["ws", "run", "w", "--", "true"])
        .ends_with(0);
}

#[test]
fn a_log_can_be_read_by_programs() {
    let context = context();
    create(&context);
    let _left = Left(&context);
    let script = r"printf 'one\n\ntw\377o\nno end'";
    context
        .stockade(["ws", "run", "w", "-d", "--", "sh", "-c", script])
        .ends_with(0);
    let followed = context.stockade(["ws", "logs", "w", "-f", "--json"]);
    let read = context.stockade(["ws", "logs", "w", "--json"]);
    for ran in [followed, read] {
        let lines = ran.ends_with(0).stdout;
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(lines.iter().all(|line| line["schema"] == 1));
        let text: Vec<_> = lines
            .iter()
            .map(|line| line["line"].as_str().unwrap())
            .collect();
        assert_eq!(text, ["one", "", "tw\u{fffd}o", "no end"]);
    }
}

#[test]
fn a_directory_without_an_overlay_is_told() {
    let context = context();
    for command in ["diff", "commit", "discard"] {
        let refused = context.stockade(["ws", command]).ends_with(1);
        assert!(refused.stderr.contains("run --overlay"), "{refused:#?}");
    }
}

#[test]
fn an_import_leaves_a_filled_directory_alone() {
    let context = context();
    context.file("file", "one\n");
    create(&context);
    let exported = context.home().join("w.tar.zst");
    let exported = exported.to_str().unwrap();
    context
        .stockade(["ws", "export", "w", exported])
        .ends_with(0);
    let filled = context.home().join("filled");
    fs::create_dir(&filled).unwrap();
    fs::write(filled.join("own"), "own\n").unwrap();
    let line = [
        "ws",
        "import",
        exported,
        "c",
        "--dir",
        filled.to_str().unwrap(),
    ];
    let told = context.stockade(line).ends_with(0);
    assert!(told.stderr.contains("is not empty"), "{told:#?}");
    assert_eq!(fs::read_dir(&filled).unwrap().count(), 1);
    // What it would have is a restore away.
    let listed = context.stockade(["ws", "snapshots", "c"]).ends_with(0);
    let id = listed.stdout.split(' ').next().unwrap().to_owned();
    context.stockade(["ws", "restore", "c", &id]).ends_with(0);
    assert_eq!(fs::read_to_string(filled.join("file")).unwrap(), "one\n");
}

#[test]
fn a_damaged_workspace_hides_no_other_and_can_be_removed() {
    let context = context();
    create(&context);
    let project = context.project();
    let line = ["ws", "create", "x", "--dir", project.to_str().unwrap()];
    context.stockade(line).ends_with(0);
    let state = context.home().join("store/workspaces/x/state.json");
    fs::write(state, "{").unwrap();
    let listed = context.stockade(["ws", "list", "--json"]).ends_with(1);
    let workspaces = &listed.json()["workspaces"];
    assert_eq!(workspaces.as_array().unwrap().len(), 1);
    assert!(
        listed.stderr.contains("workspaces/x/state.json"),
        "{listed:#?}"
    );
    context
        .stockade(["ws", "cleanup", "--max-age", "1d"])
        .ends_with(0);
    context.stockade(["ws", "fsck"]).ends_with(1);
    let refused = context.stockade(["ws", "rm", "x"]).ends_with(1);
    assert!(refused.stderr.contains("--force"), "{refused:#?}");
    context.stockade(["ws", "rm", "x", "--force"]).ends_with(0);
    context.stockade(["ws", "list"]).ends_with(0);
    context.stockade(["ws", "fsck"]).ends_with(0);
}

#[test]
fn a_commit_of_a_path_without_a_change_is_refused() {
    if !has_overlay("a_commit_of_a_path_without_a_change_is_refused") {
        return;
    }
    let context = context();
    context.file("untouched", "old\n");
    let script = "mkdir d; echo 1 > d/one; echo 2 > two";
    sh(&context, &["--overlay=o"], script).ends_with(0);
    for path in ["nosuch", "untouched", "/etc/passwd", "d/on"] {
        let line = ["ws", "commit", "o", "two", path];
        let refused = context.stockade(line).ends_with(1);
        assert!(refused.stderr.contains("no change at"), "{refused:#?}");
    }
    assert!(!context.project().join("two").exists());
    let line = ["ws", "commit", "o", "d"];
    context.stockade(line).ends_with(0);
    assert!(context.project().join("d/one").exists());
    assert!(!context.project().join("two").exists());
    context.stockade(["ws", "commit", "o", "two"]).ends_with(0);
    assert!(context.project().join("two").exists());
}

#[test]
fn a_damaged_overlay_is_told_and_can_be_discarded() {
    if !has_overlay("a_damaged_overlay_is_told_and_can_be_discarded") {
        return;
    }
    let context = context();
    for file in ["index.json", "base", "commit.json"] {
        sh(&context, &["--overlay=o"], "echo x > new").ends_with(0);
        context.stockade(["ws", "fsck"]).ends_with(0);
        let path = context.home().join("store/workspaces/o/overlay").join(file);
        fs::write(path, "\u{1f}").unwrap();
        let told = context.stockade(["ws", "fsck"]).ends_with(1);
        assert!(told.stdout.contains(file), "{told:#?}");
        for line in [
            &["ws", "commit", "o"][..],
            &["run", "--overlay=o", "--", "true"],
        ] {
            let ran = context.stockade(line);
            assert_ne!(ran.code, 0, "{ran:#?}");
            assert!(ran.stderr.contains("is damaged"), "{ran:#?}");
        }
        context.stockade(["ws", "discard", "o"]).ends_with(0);
        context.stockade(["ws", "fsck"]).ends_with(0);
    }
    assert!(!context.project().join("new").exists());
}
