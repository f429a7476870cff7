//! `--home keep` and `stockade home`, from outside.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use tempfile::TempDir;

use crate::context::{Context, Ran};
use crate::hint_list::Hints;
use crate::ws::has_overlay;

/// A user whose home directory is not below `/tmp`, where it would have no layer.
struct User {
    context: Context,
    home: TempDir,
}

fn users() -> impl Iterator<Item = User> {
    Context::of_each_user().into_iter().map(|mut context| {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        context.give(home.path());
        context.set("HOME", home.path());
        User { context, home }
    })
}

fn keep(context: &Context, flags: &[&str], script: &str) -> Ran {
    let mut line = vec!["run", "--home", "keep"];
    line.extend(flags);
    line.extend(["--", "sh", "-c", script]);
    context.stockade(line)
}

#[test]
fn two_runs_do_not_share_a_kept_home() {
    if !has_overlay("two_runs_do_not_share_a_kept_home") {
        return;
    }
    let hints = Hints::of("home::two_runs_do_not_share_a_kept_home");
    for User {
        context,
        home: _home,
    } in users()
    {
        let line = [
            "run",
            "--home",
            "keep",
            "--",
            "sh",
            "-c",
            "echo begun; read end",
        ];
        let mut first = context.command(line);
        first.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut first = first.spawn().unwrap();
        let mut begun = String::new();
        BufReader::new(first.stdout.take().unwrap())
            .read_line(&mut begun)
            .unwrap();
        assert_eq!(begun, "begun\n");
        let refused = keep(&context, &[], "true").ends_with(125);
        let hint = hints.in_refusal(&refused);
        assert!(hint.contains("`--home copy`"), "{hint}");
        context
            .stockade(["run", "--home", "copy", "--", "true"])
            .ends_with(0);
        context.stockade(["home", "drop"]).ends_with(1);
        let listed = context
            .stockade(["home", "list", "--json"])
            .ends_with(0)
            .json();
        assert_eq!(listed["homes"][0]["in_use"], true, "{listed}");
        // The end of its input.
        drop(first.stdin.take());
        first.wait().unwrap();
        keep(&context, &[], "true").ends_with(0);
    }
}

#[test]
fn a_kept_home_is_listed_and_dropped() {
    if !has_overlay("a_kept_home_is_listed_and_dropped") {
        return;
    }
    let hints = Hints::of("home::a_kept_home_is_listed_and_dropped");
    for User {
        context,
        home: _home,
    } in users()
    {
        let nothing = context.stockade(["home", "list"]).ends_with(0);
        assert_eq!(nothing.stdout, "no home directory is kept\n");
        let hint = hints.in_refusal(&context.stockade(["home", "drop"]).ends_with(1));
        assert!(hint.contains("`stockade home list`"), "{hint}");
        keep(&context, &["--dry-run"], "true").ends_with(0);
        let listed = context
            .stockade(["home", "list", "--json"])
            .ends_with(0)
            .json();
        assert_eq!(listed["homes"].as_array().unwrap().len(), 0, "{listed}");
        // Nobody may enter what it leaves.
        keep(
            &context,
            &[],
            "printf 12345 > ~/f; mkdir -p ~/d/e; touch ~/d/e/g; chmod 0 ~/d",
        )
        .ends_with(0);
        let listed = context
            .stockade(["home", "list", "--json"])
            .ends_with(0)
            .json();
        let kept = &listed["homes"][0];
        assert_eq!(kept["dir"], context.project().to_str().unwrap());
        assert_eq!(
            (&kept["bytes"], &kept["in_use"]),
            (&5.into(), &false.into())
        );
        let text = context.stockade(["home", "list"]).ends_with(0).stdout;
        assert!(text.contains(context.project().to_str().unwrap()), "{text}");
        let dropped = context
            .stockade(["home", "drop", "--json"])
            .ends_with(0)
            .json();
        assert_eq!(dropped["dropped"][0], context.project().to_str().unwrap());
        keep(&context, &[], "test ! -e ~/f").ends_with(0);
        context.stockade(["home", "drop", "--all"]).ends_with(0);
        keep(&context, &[], "test ! -e ~/f").ends_with(0);
    }
}

/// What one run was shown whole and changed, the next run does not see.
#[test]
fn settings_that_an_earlier_run_was_granted_lose_their_secrets() {
    if !has_overlay("settings_that_an_earlier_run_was_granted_lose_their_secrets") {
        return;
    }
    for User { context, home } in users() {
        let file = home.path().join(".gitconfig");
        fs::write(&file, "[github]\n\ttoken = hidden\n").unwrap();
        context.give(&file);
        let whole = keep(
            &context,
            &["--read", file.to_str().unwrap()],
            "printf '[user]\n\tname = kept\n' >> ~/.gitconfig; cat ~/.gitconfig",
        );
        assert!(whole.ends_with(0).stdout.contains("hidden"));
        let shown = keep(&context, &[], "cat ~/.gitconfig").ends_with(0).stdout;
        assert!(
            shown.contains("kept") && !shown.contains("hidden"),
            "{shown}"
        );
    }
}

#[test]
fn a_grant_that_an_earlier_run_replaced() {
    if !has_overlay("a_grant_that_an_earlier_run_replaced") {
        return;
    }
    let hints = Hints::of("home::a_grant_that_an_earlier_run_replaced");
    for User { context, home } in users() {
        keep(&context, &[], "ln -s /usr ~/a").ends_with(0);
        let granted = home.path().join("a/granted");
        fs::create_dir_all(&granted).unwrap();
        context.give(&home.path().join("a"));
        context.give(&granted);
        let flags = ["--write", granted.to_str().unwrap()];
        let refused = keep(&context, &flags, "true").ends_with(125);
        let hint = hints.in_refusal(&refused);
        assert!(
            hint.contains("`stockade home drop`") && hint.contains("`--home copy`"),
            "{hint}"
        );
        let copy = ["run", "--home", "copy", flags[0], flags[1], "--", "true"];
        context.stockade(copy).ends_with(0);
        context.stockade(["home", "drop"]).ends_with(0);
        keep(&context, &flags, "touch ~/a/granted/f").ends_with(0);
        assert!(granted.join("f").exists());
    }
}
