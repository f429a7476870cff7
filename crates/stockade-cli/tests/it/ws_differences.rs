//! `ws diff` and `ws commit` in all their ways.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::Value;

use crate::context::Context;
use crate::ws::{context, has_overlay, sh};

/// A project of which every kind of file changes.
fn change_everything(context: &Context) {
    let project = context.project();
    fs::write(project.join("text"), "one\n2\nthree\n").unwrap();
    fs::write(project.join("binary"), b"\0\x01\x03").unwrap();
    fs::set_permissions(project.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(project.join("kind")).unwrap();
    symlink("text", project.join("kind")).unwrap();
    fs::rename(project.join("moved"), project.join("sub/moved")).unwrap();
    fs::remove_file(project.join("gone")).unwrap();
    fs::write(project.join("new"), "a\nb\n").unwrap();
}

fn project() -> Context {
    let context = context();
    context.file("text", "one\ntwo\nthree\n");
    context.file("mode", "mode\n");
    context.file("kind", "kind\n");
    context.file("moved", "the same in both places\n");
    context.file("gone", "gone\n");
    context.file("sub/stays", "stays\n");
    fs::write(context.project().join("binary"), b"\0\x01\x02").unwrap();
    context
}

fn is_told(context: &Context, words: &[&str]) {
    let line = |flag: &'static str| [&["ws", "diff"], words, &[flag]].concat();
    let summary = context.stockade(line("--summary")).ends_with(0).stdout;
    let expected = "M binary\nD gone\nT kind\nm mode\nA new\nR moved -> sub/moved\nM text\n";
    assert_eq!(summary, expected);
    let stat = context.stockade(line("--stat")).ends_with(0).stdout;
    for part in [
        "M binary binary, 3 -> 3 bytes",
        "D gone +0 -1",
        "A new +2 -0",
        "R moved -> sub/moved",
        "M text +1 -1",
    ] {
        assert!(stat.contains(part), "{part}: {stat}");
    }
    let text = context
        .stockade([&["ws", "diff"], words].concat())
        .ends_with(0)
        .stdout;
    for part in [
        "binary files differ, 3 -> 3 bytes\n",
        "removed file 0644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n",
        "was file 0644\nis symlink 0777\n",
        "diff a/mode b/mode\nwas file 0644\nis file 0755\n",
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+a\n+b\n",
        "renamed from moved\nrenamed to sub/moved\n",
        "--- a/text\n+++ b/text\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: Value = context.stockade(line("--json")).ends_with(0).json();
    let changes = json["changes"].as_array().unwrap();
    let find = |path: &str| {
        changes
            .iter()
            .find(|change| change["path"] == path)
            .unwrap()
    };
    assert_eq!(changes.len(), 7, "{json:#}");
    assert_eq!(find("binary")["binary"], true);
    assert_eq!(
        (&find("text")["added"], &find("text")["removed"]),
        (&1.into(), &1.into())
    );
    assert_eq!(find("sub/moved")["from"], "moved");
    assert_eq!(find("mode")["kind"], "attributes");
    assert_eq!(
        (&find("kind")["old"]["kind"], &find("kind")["new"]["kind"]),
        (&"file".into(), &"symlink".into())
    );
    // Nobody paged or coloured what a program reads.
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn every_kind_of_change_since_a_snapshot_is_told() {
    let context = project();
    let dir = context.project();
    context
        .stockade(["ws", "create", "w", "--dir", dir.to_str().unwrap()])
        .ends_with(0);
    change_everything(&context);
    is_told(&context, &["w"]);
    context
        .stockade(["ws", "diff", "w", "0000000000"])
        .ends_with(1);
}

#[test]
fn every_kind_of_change_in_an_overlay_is_told_and_committed() {
    if !has_overlay("every_kind_of_change_in_an_overlay_is_told_and_committed") {
        return;
    }
    let context = project();
    let script = "printf 'one\\n2\\nthree\\n' > text; printf '\\0\\1\\3' > binary; chmod 755 mode; \
                  rm kind gone; ln -s text kind; mv moved sub/moved; printf 'a\\nb\\n' > new";
    sh(&context, &["--overlay=o"], script).ends_with(0);
    is_told(&context, &["o"]);
    context.stockade(["ws", "commit", "o"]).ends_with(0);
    let expected = project();
    change_everything(&expected);
    for name in ["text", "binary", "mode", "sub/moved", "new", "sub/stays"] {
        let read = |context: &Context| {
            let path = context.project().join(name);
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            (fs::read(path).unwrap(), mode)
        };
        assert_eq!(read(&context), read(&expected), "{name}");
    }
    assert!(context.project().join("kind").is_symlink());
    assert!(!context.project().join("gone").exists() && !context.project().join("moved").exists());
}

#[test]
fn a_conflict_is_resolved_as_was_said() {
    if !has_overlay("a_conflict_is_resolved_as_was_said") {
        return;
    }
    for (flag, changed, removed, made) in [
        ("--ours", "ours\n", None, "ours\n"),
        ("--theirs", "theirs\n", Some("theirs\n"), "theirs\n"),
    ] {
        let context = context();
        context.file("changed", "old\n");
        context.file("removed", "old\n");
        context.file("quiet", "old\n");
        let script = "echo ours > changed; rm removed; echo ours > made; echo ours > quiet";
        sh(&context, &["--overlay=o"], script).ends_with(0);
        for name in ["changed", "removed", "made"] {
            context.file(name, "theirs\n");
        }
        let refused = context.stockade(["ws", "commit", "o"]).ends_with(1);
        for name in ["changed", "removed", "made", "--ours", "--theirs"] {
            assert!(refused.stderr.contains(name), "{refused:#?}");
        }
        let read = |name: &str| fs::read_to_string(context.project().join(name)).ok();
        assert_eq!(read("quiet").as_deref(), Some("old\n"));
        context
            .stockade(["ws", "commit", "o", "--ours", "--theirs"])
            .ends_with(2);
        context.stockade(["ws", "commit", "o", flag]).ends_with(0);
        assert_eq!(read("changed").as_deref(), Some(changed), "{flag}");
        assert_eq!(read("removed").as_deref(), removed, "{flag}");
        assert_eq!(read("made").as_deref(), Some(made), "{flag}");
        assert_eq!(read("quiet").as_deref(), Some("ours\n"), "{flag}");
    }
}
