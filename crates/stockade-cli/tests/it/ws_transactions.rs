//! Runs over an overlay, where no file is mediated: everything works inside, and nothing arrives on
//! the host unasked.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;

use serde_json::Value;

use crate::context::{Context, Ran, STOCKADE, has};
use crate::ws::{context, has_overlay, sh};

/// The calls that the filter of a planned run hands to the mediator.
fn mediated(context: &Context, flags: &[&str]) -> BTreeSet<String> {
    let mut line = vec!["run", "--dry-run", "--json"];
    line.extend(flags);
    line.extend(["--", "true"]);
    let plan: Value = context.stockade(line).json();
    let rules = plan["linux"]["seccomp"]["rules"].as_array().unwrap();
    let notifies = |rule: &&Value| {
        let cases = rule["cases"].as_array().into_iter().flatten();
        rule["otherwise"] == "notify" || cases.into_iter().any(|case| case["then"] == "notify")
    };
    let names = rules.iter().filter(notifies).flat_map(|rule| {
        let names = rule["syscalls"].as_array().unwrap().iter();
        names.map(|name| name.as_str().unwrap().to_owned())
    });
    names.collect()
}

#[test]
fn files_are_mediated_only_where_reads_are_denied() {
    let test = "files_are_mediated_only_where_reads_are_denied";
    if !has_overlay(test) {
        return;
    }
    let context = context();
    for number in 0..65 {
        context.file(&format!("secrets/{number}"), "x");
    }
    let files = ["openat", "renameat2", "mkdirat", "unlinkat"];
    let has_files = |flags: &[&str]| {
        let calls = mediated(&context, flags);
        assert!(
            calls.contains("connect") && calls.contains("bind"),
            "{calls:?}"
        );
        let found = files.iter().filter(|name| calls.contains(**name)).count();
        assert!(found == 0 || found == files.len(), "{flags:?}: {calls:?}");
        found > 0
    };
    assert!(has_files(&[]), "a direct run is mediated");
    assert!(!has_files(&["--overlay"]));
    assert!(!has_files(&["--overlay", "--deny-read", "secrets/1"]));
    assert!(!has_files(&["--overlay", "--deny-write", "*.lock"]));
    assert!(has_files(&["--overlay", "--deny-read", "**/*.pem"]));
    assert!(has_files(&["--overlay", "--explain"]));
    let many: Vec<String> = (0..65)
        .flat_map(|number| ["--deny-read".to_owned(), format!("secrets/{number}")])
        .collect();
    let mut flags = vec!["--overlay"];
    flags.extend(many.iter().map(String::as_str));
    assert!(has_files(&flags));
}

#[test]
fn everything_works_inside_and_nothing_arrives_unasked() {
    let test = "everything_works_inside_and_nothing_arrives_unasked";
    if !has_overlay(test) || !has(test, "git", &["git", "--version"]) {
        return;
    }
    let context = context();
    let setup = "git init -q .; git config user.email a@b; git config user.name n; mkdir .husky; \
                 git config core.hooksPath .husky; git commit -q --allow-empty -m one";
    context.other(&["sh", "-c", setup]).ends_with(0);
    let script = "set -e; mkdir .vscode; echo x > .vscode/settings.json
        printf '#!/bin/sh\\necho ran\\n' > .husky/pre-commit; chmod +x .husky/pre-commit
        git config alias.hello '!echo alias'; git hello
        echo x > f; git add f; git commit -qm two; chmod 4755 f; test -u f";
    let report = context.home().join("report.json");
    let line = [
        "run",
        "--overlay",
        "--commit",
        "--report",
        report.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        script,
    ];
    let ran = context.stockade(line).ends_with(0);
    assert_eq!(ran.stdout, "alias\n", "{ran:#?}");
    assert!(ran.stderr.contains("ran\n"), "{ran:#?}");
    let log = context.other(&["git", "log", "--format=%s"]).ends_with(0);
    assert_eq!(log.stdout, "two\none\n");
    for (path, told) in [
        (".vscode/settings.json", ".vscode"),
        (".husky/pre-commit", ".husky/pre-commit"),
        ("f", "f"),
    ] {
        assert!(!context.project().join(path).exists(), "{path}");
        assert!(
            ran.stderr.contains(&format!("kept back: `{told}`")),
            "{ran:#?}"
        );
    }
    let config = fs::read_to_string(context.project().join(".git/config")).unwrap();
    assert!(!config.contains("hello"), "{config}");
    assert!(ran.stderr.contains("kept back: `.git/config`"), "{ran:#?}");
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let clauses = report["enforcement"].as_array().unwrap();
    let names = clauses.iter().find(|clause| clause["clause"] == "names");
    let names = names.unwrap();
    assert_eq!(names["enforcement"], "full");
    let mechanism = names["mechanism"].as_str().unwrap();
    assert!(mechanism.contains("commit"), "{mechanism}");

    follow_hint(&context, &ran).ends_with(0);
    assert!(context.project().join(".vscode/settings.json").exists());
    assert_eq!(
        fs::metadata(context.project().join("f")).unwrap().mode() & 0o7777,
        0o4755
    );
}

/// Executes the command that a message names after `apply with: `.
fn follow_hint(context: &Context, ran: &Ran) -> Ran {
    let mut lines = ran.stderr.lines();
    let line = lines.find_map(|line| line.split_once("apply with: "));
    let (_, line) = line.unwrap_or_else(|| panic!("no hint: {ran:#?}"));
    let line = line.replacen("stockade", STOCKADE, 1);
    context.other(&["sh", "-c", &line])
}

#[test]
fn the_hint_applies_more_than_are_listed() {
    if !has_overlay("the_hint_applies_more_than_are_listed") {
        return;
    }
    let context = context();
    context.file(".vscode/keep", "x");
    let script = "for n in $(seq 25); do echo x > .vscode/\"a $n\"; done; echo x > plain";
    let ran = context.stockade(["run", "--overlay", "--commit", "--", "sh", "-c", script]);
    let ran = ran.ends_with(0);
    assert!(ran.stderr.contains("kept back: 15 more"), "{ran:#?}");
    let count = || {
        let names = fs::read_dir(context.project().join(".vscode")).unwrap();
        names.count()
    };
    assert_eq!(count(), 1);
    assert!(context.project().join("plain").exists());
    follow_hint(&context, &ran).ends_with(0);
    assert_eq!(count(), 26);
}

#[test]
fn a_denied_pattern_can_not_be_renamed_away() {
    if !has_overlay("a_denied_pattern_can_not_be_renamed_away") {
        return;
    }
    let context = context();
    context.file("a/key.pem", "secret");
    let ways = [
        "cat a/key.pem",
        "mv a/key.pem b; cat b",
        "cp -a a c; cat c/*",
        "python3 -c 'import os; os.rename(\"a/key.pem\", \"b\"); print(open(\"b\").read())'",
    ];
    for script in ways {
        let open = sh(&context, &["--overlay"], script);
        assert!(
            open.stdout.contains("secret"),
            "control: {script}: {open:#?}"
        );
        context.stockade(["ws", "discard"]).ends_with(0);
        let ran = sh(&context, &["--overlay", "--deny-read", "**/*.pem"], script);
        assert!(!ran.stdout.contains("secret"), "{script}: {ran:#?}");
        context.stockade(["ws", "discard"]).ends_with(0);
    }
}

#[test]
fn sockets_made_inside_can_be_reached_and_those_of_the_host_can_not() {
    let test = "sockets_made_inside_can_be_reached_and_those_of_the_host_can_not";
    if !has_overlay(test) || !has(test, "python3", &["python3", "-V"]) {
        return;
    }
    let context = context();
    let _listener = UnixListener::bind(context.project().join("host.sock")).unwrap();
    let script = "import os, socket
def reach(path):
    try: socket.socket(socket.AF_UNIX).connect(path); return 'reached'
    except OSError: return 'refused'
print(reach('host.sock'))
os.umask(0o077); s = socket.socket(socket.AF_UNIX); s.bind('own.sock'); s.listen(1)
print(reach('own.sock'), oct(os.stat('own.sock').st_mode & 0o777))
os.rename('own.sock', 'moved.sock'); print(reach('moved.sock'))
os.rename('host.sock', 'own.sock'); print(reach('own.sock'))";
    // Control: bare, the first is reached.
    let bare = context.other(&["python3", "-c", script.split("\nos.umask").next().unwrap()]);
    assert_eq!(bare.ends_with(0).stdout, "reached\n");
    let ran = context.stockade(["run", "-q", "--overlay", "--", "python3", "-c", script]);
    let wanted = "refused\nreached 0o700\nreached\nrefused\n";
    assert_eq!(ran.ends_with(0).stdout, wanted);
    let socket = fs::symlink_metadata(context.project().join("host.sock")).unwrap();
    assert!(socket.file_type().is_socket());
}

#[test]
fn a_new_directory_arrives_by_one_rename() {
    if !has_overlay("a_new_directory_arrives_by_one_rename") {
        return;
    }
    let context = context();
    sh(
        &context,
        &["--overlay"],
        "mkdir -p new/deep; echo x > new/deep/f",
    )
    .ends_with(0);
    let mut waiting = vec![context.home().join("store/workspaces")];
    let mut inode = None;
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.path().ends_with("new/deep/f") {
                inode = Some(entry.metadata().unwrap().ino());
            }
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    context.stockade(["ws", "commit"]).ends_with(0);
    let file = fs::metadata(context.project().join("new/deep/f")).unwrap();
    assert_eq!(inode, Some(file.ino()));
}

#[test]
fn files_move_between_directories() {
    let test = "files_move_between_directories";
    if !has_overlay(test) || !has(test, "python3", &["python3", "-V"]) {
        return;
    }
    let context = context();
    context.file("a/one", "1");
    context.file("a/two", "2");
    context.file("b/three", "3");
    let script = "import errno, os
# A link would be another file, and programs that compare the two would fail.
try: os.link('a/one', 'b/one'); raise SystemExit(1)
except OSError as error: assert error.errno == errno.EXDEV
os.rename('a/two', 'b/two'); os.rename('b/three', 'three')
os.mkdir('d'); os.rename('d', 'a/d'); open('new', 'w').write('4'); os.link('new', 'a/new')";
    let ran = context.stockade([
        "run",
        "--overlay",
        "--commit",
        "--",
        "python3",
        "-c",
        script,
    ]);
    ran.ends_with(0);
    let project = context.project();
    for (path, text) in [
        ("a/one", "1"),
        ("b/two", "2"),
        ("three", "3"),
        ("a/new", "4"),
    ] {
        assert_eq!(fs::read_to_string(project.join(path)).unwrap(), text);
    }
    assert!(project.join("a/d").is_dir());
    let inode = |path: &str| fs::metadata(project.join(path)).unwrap().ino();
    assert_eq!(inode("new"), inode("a/new"));
    assert!(!project.join("a/two").exists() && !project.join("b/three").exists());
}
