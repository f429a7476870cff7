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
    let text = context.stockade(["explain", "--read-only", "src"]).stdout;
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
