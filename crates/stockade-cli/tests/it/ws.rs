//! `stockade ws` and `run --overlay`, from outside.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::context::{Context, Ran, has};

pub(crate) fn context() -> Context {
    let mut context = Context::new();
    let store = context.home().join("store");
    context.set("STOCKADE_HOME", store);
    context
}

pub(crate) fn has_overlay(test: &str) -> bool {
    has(
        test,
        "overlay",
        &[
            "unshare",
            "-Urm",
            "sh",
            "-c",
            "d=$(mktemp -d) && cd \"$d\" && mkdir l u w m && mount -t overlay o -o lowerdir=l,upperdir=u,workdir=w,userxattr m; c=$?; umount m; cd / && rm -rf \"$d\"; exit $c",
        ],
    )
}

pub(crate) fn sh(context: &Context, flags: &[&str], script: &str) -> Ran {
    let mut line = vec!["run", "-q"];
    line.extend(flags);
    line.extend(["--", "sh", "-c", script]);
    context.stockade(line)
}

fn changes(context: &Context) -> Vec<(String, String)> {
    let json: Value = context.stockade(["ws", "diff", "--json"]).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = json["changes"].as_array().unwrap().clone();
    list.iter()
        .map(|change| (text(&change["kind"]), text(&change["path"])))
        .collect()
}

#[test]
fn an_overlay_keeps_the_host_as_it_is_until_it_is_committed() {
    if !has_overlay("an_overlay_keeps_the_host_as_it_is_until_it_is_committed") {
        return;
    }
    let context = context();
    context.file("changed", "one\n");
    context.file("removed", "two\n");
    context.file("directory/inner", "three\n");
    let script = "echo more >> changed; rm removed; rm -r directory; mkdir directory; \
                  echo new > directory/new; ln -s changed link; chmod 755 changed";
    sh(&context, &["--overlay"], script).ends_with(0);
    let read = |name: &str| fs::read_to_string(context.project().join(name)).ok();
    assert_eq!(read("changed").as_deref(), Some("one\n"));
    assert_eq!(read("removed").as_deref(), Some("two\n"));
    assert_eq!(read("directory/inner").as_deref(), Some("three\n"));
    assert_eq!(read("directory/new"), None);

    // The next run goes on where this one ended.
    let seen = sh(
        &context,
        &["--overlay"],
        "cat changed; ls directory; echo again >> changed",
    );
    assert_eq!(seen.ends_with(0).stdout, "one\nmore\nnew\n");
    let pair = |kind: &str, path: &str| (kind.to_owned(), path.to_owned());
    let expected = vec![
        pair("modified", "changed"),
        pair("removed", "directory/inner"),
        pair("added", "directory/new"),
        pair("added", "link"),
        pair("removed", "removed"),
    ];
    assert_eq!(changes(&context), expected);
    let text = context.stockade(["ws", "diff"]).ends_with(0).stdout;
    assert!(
        text.contains("+more\n+again\n") && text.contains("was file 0644"),
        "{text}"
    );

    context.stockade(["ws", "commit"]).ends_with(0);
    assert_eq!(read("changed").as_deref(), Some("one\nmore\nagain\n"));
    assert_eq!(read("removed"), None);
    assert_eq!(read("directory/new").as_deref(), Some("new\n"));
    assert!(changes(&context).is_empty());

    sh(&context, &["--overlay"], "rm changed").ends_with(0);
    context.stockade(["ws", "discard"]).ends_with(0);
    assert!(read("changed").is_some());
    context.stockade(["ws", "discard"]).ends_with(1);
}

#[test]
fn an_overlay_from_before_a_restart_is_not_committed_unasked() {
    if !has_overlay("an_overlay_from_before_a_restart_is_not_committed_unasked") {
        return;
    }
    let context = context();
    let path = context.file("file", "old\n");
    let run = |script| context.stockade(["run", "--overlay=o", "--", "sh", "-c", script]);
    let quiet = run("echo new > file").ends_with(0);
    assert!(!quiet.stderr.contains("rebooted"), "{}", quiet.stderr);
    let index = context.home().join("store/workspaces/o/overlay/index.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
    assert!(json["boot"].is_string(), "{json}");
    json["boot"] = "00000000-0000-0000-0000-000000000000".into();
    fs::write(&index, json.to_string()).unwrap();

    let told = context.stockade(["ws", "diff", "o"]).ends_with(0);
    assert!(told.stdout.contains("+new") && told.stderr.contains("rebooted"));
    let refused = context.stockade(["ws", "commit", "o"]).ends_with(1);
    assert!(
        refused.stderr.contains("--after-restart"),
        "{}",
        refused.stderr
    );
    // Another run adds to what may be incomplete.
    let told = run("echo more >> file").ends_with(0);
    assert!(told.stderr.contains("rebooted"), "{}", told.stderr);
    context.stockade(["ws", "commit", "o"]).ends_with(1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");

    let line = ["ws", "commit", "o", "--after-restart"];
    context.stockade(line).ends_with(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "new\nmore\n");
    // What comes after it is of this start.
    run("echo again >> file").ends_with(0);
    context.stockade(["ws", "commit", "o"]).ends_with(0);
}

#[test]
fn a_commit_does_not_overwrite_what_the_host_changed() {
    if !has_overlay("a_commit_does_not_overwrite_what_the_host_changed") {
        return;
    }
    let context = context();
    let path = context.file("file", "old\n");
    sh(
        &context,
        &["--overlay=named"],
        "echo mine >> file; echo x > other",
    )
    .ends_with(0);
    fs::write(&path, "theirs\n").unwrap();
    let refused = context.stockade(["ws", "commit", "named"]).ends_with(1);
    assert!(
        refused.stderr.contains("changed on the host"),
        "{refused:#?}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs\n");
    assert!(!context.project().join("other").exists());
    context
        .stockade(["ws", "commit", "named", "--theirs"])
        .ends_with(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs\n");
    assert!(context.project().join("other").exists());
}

#[test]
fn the_policy_holds_in_an_overlay() {
    if !has_overlay("the_policy_holds_in_an_overlay") {
        return;
    }
    let context = context();
    context.file(".env.secret", "secret\n");
    context.file("sub/readonly", "ro\n");
    let outside = context.home().join("outside");
    fs::write(&outside, "outside\n").unwrap();
    // Each must fail inside; the control shows that the same is possible without the rule.
    let denied = [
        "cat .env.secret",
        "echo x >> sub/readonly",
        "rm sub/readonly",
        &format!("echo x >> {}", outside.display()),
    ];
    let flags = [
        "--overlay",
        "--deny-read",
        ".env.secret",
        "--deny-write",
        "sub/readonly",
    ];
    for script in denied {
        let ran = sh(&context, &flags, script);
        assert_ne!(ran.code, 0, "{script}: {ran:#?}");
    }
    sh(
        &context,
        &["--overlay"],
        "cat .env.secret && echo x >> sub/readonly && rm -r sub",
    )
    .ends_with(0);
    // What an earlier run removed in the overlay is no hindrance.
    sh(&context, &flags, "true").ends_with(0);
    assert_eq!(fs::read_to_string(outside).unwrap(), "outside\n");
    assert!(context.project().join("sub/readonly").exists());
}

#[test]
fn an_overlay_that_can_not_be_is_refused() {
    let mut context = context();
    context
        .stockade(["run", "--danger-full-access", "--overlay", "--", "true"])
        .ends_with(125);
    context
        .stockade(["run", "--overlay=../x", "--", "true"])
        .ends_with(2);
    let store = context.project().join("store");
    context.set("STOCKADE_HOME", store);
    let refused = context
        .stockade(["run", "--overlay", "--", "true"])
        .ends_with(125);
    assert!(refused.stderr.contains("the store lies in"), "{refused:#?}");
}

#[test]
fn a_workspace_from_beginning_to_end() {
    let context = context();
    let path = context.file("file", "one\n");
    let project = context.project();
    let dir = project.to_str().unwrap();
    context
        .stockade(["ws", "create", "w", "--dir", dir, "--env", "API_TOKEN=x"])
        .ends_with(0);
    context
        .stockade(["ws", "create", "w", "--dir", dir])
        .ends_with(1);
    context
        .stockade(["ws", "create", "../w", "--dir", dir])
        .ends_with(2);
    let id = context
        .stockade(["ws", "snapshot", "w", "-m", "text"])
        .ends_with(0)
        .stdout;
    let id = id.trim();
    fs::write(&path, "two\n").unwrap();
    context.file("extra", "x");
    let diff = context.stockade(["ws", "diff", "w"]).ends_with(0).stdout;
    assert!(
        diff.contains("-one\n+two\n") && diff.contains("new file"),
        "{diff}"
    );
    context
        .stockade(["ws", "restore", "w", id, "--merge"])
        .ends_with(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
    assert!(project.join("extra").exists());
    context
        .stockade(["ws", "restore", "w", &id[..6]])
        .ends_with(0);
    assert!(!project.join("extra").exists());
    context
        .stockade(["ws", "restore", "w", "0000000000"])
        .ends_with(1);
    let file = context.home().join("w.tar.zst");
    let file = file.to_str().unwrap();
    context.stockade(["ws", "export", "w", file]).ends_with(0);
    let copy = context.home().join("copy");
    context
        .stockade([
            "ws",
            "import",
            file,
            "copy",
            "--dir",
            copy.to_str().unwrap(),
        ])
        .ends_with(0);
    assert_eq!(fs::read_to_string(copy.join("file")).unwrap(), "one\n");
    let list = context.stockade(["ws", "list", "--json"]).json();
    assert_eq!(list["workspaces"].as_array().unwrap().len(), 2);
    assert!(
        list["workspaces"][1]["env"].as_object().unwrap().is_empty(),
        "{list}"
    );
    context.stockade(["ws", "rm", "copy"]).ends_with(0);
    context
        .stockade(["ws", "cleanup", "--max-age", "7d"])
        .ends_with(0);
    context.stockade(["ws", "gc"]).ends_with(0);
    assert_eq!(
        context.stockade(["ws", "fsck", "--json"]).json()["clean"],
        true
    );
    assert_eq!(
        context.stockade(["ws", "snapshots", "w", "--json"]).json()["snapshots"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    context.stockade(["ws", "show", "copy"]).ends_with(1);
}

/// Ends what a test left running, also if it fails.
pub(crate) struct Left<'a>(pub(crate) &'a Context);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        let _ = self.0.stockade(["ws", "rm", "w", "--force"]);
    }
}

#[test]
fn what_is_paused_stands_still_and_goes_on() {
    let context = context();
    let project = context.project();
    context
        .stockade(["ws", "create", "w", "--dir", project.to_str().unwrap()])
        .ends_with(0);
    let left = Left(&context);
    let script = "i=0; while true; do i=$((i+1)); echo $i; sleep 0.01; done";
    context
        .stockade(["ws", "run", "w", "-d", "--", "sh", "-c", script])
        .ends_with(0);
    let lines = || {
        context
            .stockade(["ws", "logs", "w"])
            .ends_with(0)
            .stdout
            .lines()
            .count()
    };
    let grows = |from: usize| {
        let end = Instant::now() + Duration::from_secs(120);
        while lines() <= from {
            assert!(Instant::now() < end, "nothing is written");
        }
    };
    grows(3);
    context.stockade(["ws", "resume", "w"]).ends_with(1);
    context.stockade(["ws", "pause", "w"]).ends_with(0);
    // What was on its way arrives; then a hundred lines' time brings none.
    let end = Instant::now() + Duration::from_secs(60);
    let mut still = 0;
    while still != lines() {
        assert!(Instant::now() < end, "it goes on");
        still = lines();
        std::thread::sleep(Duration::from_secs(1));
    }
    context.stockade(["ws", "pause", "w"]).ends_with(1);
    context.stockade(["ws", "resume", "w"]).ends_with(0);
    grows(still);
    let text = context.stockade(["ws", "logs", "w"]).stdout;
    let numbers: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "a line was lost"
    );
    context.stockade(["ws", "rm", "w"]).ends_with(1);
    drop(left);
    context.stockade(["ws", "show", "w"]).ends_with(1);
}

#[test]
fn a_command_that_was_left_running_can_be_watched_to_its_end() {
    let context = context();
    let project: PathBuf = context.project();
    context
        .stockade(["ws", "create", "w", "--dir", project.to_str().unwrap()])
        .ends_with(0);
    let _left = Left(&context);
    let script =
        "echo first; until test -e watched; do sleep 0.02; done; echo last > file; echo last";
    context
        .stockade(["ws", "run", "w", "-d", "--", "sh", "-c", script])
        .ends_with(0);
    let mut watching = context
        .command(["ws", "attach", "w"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BufReader::new(watching.stdout.take().unwrap());
    let mut text = String::new();
    seen.read_line(&mut text).unwrap();
    context.file("watched", "");
    seen.read_to_string(&mut text).unwrap();
    assert!(watching.wait().unwrap().success());
    assert_eq!(text, "first\nlast\n");
    assert_eq!(fs::read_to_string(project.join("file")).unwrap(), "last\n");
}
