//! `explain`: the decision, the rule, its origin, and what would change it.

use std::os::unix::fs::symlink;

use crate::context::{Context, Ran, STOCKADE};

fn shell(context: &Context, script: &str) -> Ran {
    context.other(&["sh", "-c", script])
}

#[test]
fn a_secret_is_denied_with_its_rule_and_the_grant() {
    let context = Context::new();
    let key = context.home().join(".ssh/id_ed25519");
    std::fs::create_dir_all(key.parent().unwrap()).unwrap();
    std::fs::write(&key, "").unwrap();
    let answer = context
        .stockade(["explain", "--json", "~/.ssh/id_ed25519"])
        .json();
    let read = &answer["path"]["read"];
    assert_eq!(answer["path"]["path"], key.to_str().unwrap());
    assert_eq!(read["allowed"], false, "{answer:#}");
    assert!(
        read["rule"].as_str().unwrap().contains(".ssh"),
        "{answer:#}"
    );
    assert!(
        read["origin"].as_str().unwrap().contains("built-in"),
        "{answer:#}"
    );
    let grant = read["grant"].as_str().unwrap();
    let word = stockade_rules::shell_word(key.to_str().unwrap());
    assert_eq!(grant, format!("--read {word}"));
    let answer = shell(
        &context,
        &format!("{STOCKADE} explain --json {grant} ~/.ssh/id_ed25519"),
    );
    assert_eq!(
        answer.json()["path"]["read"]["allowed"],
        true,
        "a grant works"
    );
}

#[test]
fn a_grant_can_be_pasted_whatever_the_path_is() {
    let context = Context::new();
    let key = context.home().join(".ssh/it's a key; $(touch made)");
    std::fs::create_dir_all(key.parent().unwrap()).unwrap();
    std::fs::write(&key, "").unwrap();
    let ask = |grant: &str| {
        let file = stockade_rules::shell_word(key.to_str().unwrap());
        shell(
            &context,
            &format!("{STOCKADE} explain --json {grant} {file}"),
        )
        .json()
    };
    let refused = ask("");
    assert_eq!(refused["path"]["read"]["allowed"], false, "{refused:#}");
    let answer = ask(refused["path"]["read"]["grant"].as_str().unwrap());
    assert_eq!(answer["path"]["read"]["allowed"], true, "{answer:#}");
    assert!(!context.project().join("made").exists());
}

#[test]
fn the_workspace_is_writable_and_its_hooks_are_not() {
    let context = Context::new();
    let text = context
        .stockade(["explain", "src/main.rs"])
        .ends_with(0)
        .stdout;
    assert!(text.contains("write    allowed"), "{text}");
    let text = context
        .stockade(["explain", ".git/hooks/pre-commit"])
        .stdout;
    assert!(text.contains("write    denied"), "{text}");
    assert!(text.contains("to allow it: --write"), "{text}");
    assert!(text.contains("`run --overlay` can write it"), "{text}");
    let text = context.stockade(["explain", "--read-only", "src"]).stdout;
    assert!(!text.contains("overlay"), "{text}");
    assert!(text.contains("write    denied"), "{text}");
}

#[test]
fn links_are_followed_before_the_decision() {
    let context = Context::new();
    std::fs::create_dir(context.home().join(".ssh")).unwrap();
    symlink(
        context.home().join(".ssh"),
        context.project().join("harmless"),
    )
    .unwrap();
    let answer = context
        .stockade(["explain", "--json", "./harmless/key"])
        .json();
    assert_eq!(answer["path"]["read"]["allowed"], false, "{answer:#}");
    let asked = context.project().join("harmless/key");
    assert_eq!(answer["path"]["asked"], asked.to_str().unwrap());
}

#[test]
fn hosts_are_denied_until_they_are_allowed() {
    let context = Context::new();
    let off = context.stockade(["explain", "--json", "a.test:443"]).json();
    assert_eq!(off["network"][0]["allowed"], false, "{off:#}");
    let grant = off["network"][0]["grant"].as_str().unwrap().to_owned();
    let mut args = vec!["explain", "--json", "a.test:443"];
    args.extend(grant.split(' '));
    let on = context.stockade(args).json();
    assert_eq!(on["network"][0]["allowed"], true, "{on:#}");

    let both = context
        .stockade(["explain", "--json", "--allow", "*.a.test", "x.a.test"])
        .json();
    let ports: Vec<u64> = both["network"]
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["port"].as_u64().unwrap())
        .collect();
    assert_eq!(ports, [443, 80]);
    let blocked = [
        "explain",
        "--allow",
        "*.a.test",
        "--block",
        "x.a.test",
        "x.a.test:443",
    ];
    let text = context.stockade(blocked).stdout;
    assert!(text.contains("denied"), "{text}");
}

#[test]
fn control_characters_in_names_stay_out_of_the_terminal() {
    let context = Context::new();
    let ran = context.stockade(["explain", "./a\x1b[2Jb"]).ends_with(0);
    assert!(!ran.stdout.contains('\x1b'), "{ran:#?}");
    let ran = context
        .stockade(["run", "-C", "./a\x1b[2Jb", "--", "true"])
        .ends_with(125);
    assert!(!ran.stderr.contains('\x1b'), "{ran:#?}");
}

/// A name can't make a line that looks like another message or another file.
#[test]
fn line_breaks_and_direction_marks_in_names_are_escaped() {
    let context = Context::new();
    let name = "a\nerror: forged\nhint: forged\u{202e}b";
    let forged = |text: &str| {
        let mut lines = text.lines();
        text.contains('\u{202e}')
            || lines.any(|line| line.contains(": forged") && !line.contains('a'))
    };
    let told = [
        context.stockade(["explain", name]),
        context.stockade(["run", "--policy", name, "--", "true"]),
        context.stockade(["run", "--write", name, "--", "true"]),
        context.stockade(["run", "--cwd", name, "--", "true"]),
        context.stockade(["policy", "check", name]),
    ];
    for ran in &told {
        let lines = ran.stderr.lines().filter(|line| line.starts_with("error:"));
        assert!(lines.count() <= 1, "{ran:#?}");
        let hints = ran
            .stderr
            .lines()
            .filter(|line| line.starts_with("hint: forged"));
        assert_eq!(hints.count(), 0, "{ran:#?}");
        assert!(!ran.stderr.contains('\u{202e}'), "{ran:#?}");
        assert!(!forged(&ran.stdout), "{ran:#?}");
    }
    let script = "touch \"$(printf 'a\\nadded forged')\"";
    context
        .stockade(["run", "--overlay", "--", "sh", "-c", script])
        .ends_with(0);
    let shown = context.stockade(["ws", "diff"]);
    assert!(shown.stdout.contains("a\\nadded forged"), "{shown:#?}");
    assert!(!shown.stdout.contains("\nadded forged"), "{shown:#?}");
}

#[test]
fn a_grant_of_what_does_not_exist_is_none_as_in_run() {
    let context = Context::new();
    let missing = context.home().join("missing");
    let missing = missing.to_str().unwrap();
    let ask = || {
        let answer = context.stockade(["explain", "--json", "--write", missing, missing]);
        answer.json()["path"]["write"]["allowed"].clone()
    };
    let run = || {
        let make = format!("echo x > {missing}/f");
        let ran = context.stockade(["run", "--write", missing, "--", "sh", "-c", &make]);
        ran.code == 0
    };
    assert_eq!((ask(), run()), (false.into(), false));
    std::fs::create_dir(missing).unwrap();
    assert_eq!((ask(), run()), (true.into(), true));
}
