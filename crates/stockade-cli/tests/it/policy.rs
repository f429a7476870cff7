//! `policy`, and where the parts of a policy come from.

use crate::context::Context;
use crate::hint_list::Hints;

const UNKNOWN_KEY: &str = "version = 1\n\n[filesystem]\nwrit = [\"x\"]\n";

#[test]
fn show_names_the_origin_of_each_line() {
    let context = Context::new();
    context.file(
        "stockade.toml",
        "version = 1\n[filesystem]\ndeny_read = [\"secret\"]\n",
    );
    let text = context
        .stockade(["policy", "show", "--write", "/opt/x"])
        .ends_with(0)
        .stdout;
    let line = |word: &str| {
        let found = text.lines().find(|line| line.contains(word));
        found.unwrap_or_else(|| panic!("no line with {word}: {text}"))
    };
    assert!(line("/opt/x").contains("--write /opt/x"), "{text}");
    assert!(line("/secret").contains("stockade.toml:3"), "{text}");
    assert!(line("workspace-write").contains("built-in"), "{text}");
    let json = context.stockade(["policy", "show", "--json"]).json();
    assert_eq!(json["profile"]["base_policy"]["value"], "workspace-write");
}

#[test]
fn the_users_own_file_may_grant_and_a_project_may_not() {
    let context = Context::new();
    let grant = "version = 1\n[network]\nallow = [\"a.test\"]\n";
    context.file("stockade.toml", grant);
    let refused = context.stockade(["explain", "a.test:443"]).ends_with(125);
    assert!(refused.stderr.contains("stockade.toml:3"), "{refused:#?}");

    std::fs::remove_file(context.project().join("stockade.toml")).unwrap();
    let config = context.home().join(".config/stockade");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), grant).unwrap();
    let text = context
        .stockade(["explain", "a.test:443"])
        .ends_with(0)
        .stdout;
    assert!(text.contains("allowed"), "{text}");
}

#[test]
fn check_says_yes_or_where_it_is_wrong() {
    let context = Context::new();
    context.file("good.toml", "version = 1\n");
    context.file("bad.toml", UNKNOWN_KEY);
    let good = context
        .stockade(["policy", "check", "good.toml"])
        .ends_with(0);
    assert_eq!(good.stdout, "good.toml: valid\n");
    let bad = context
        .stockade(["policy", "check", "bad.toml"])
        .ends_with(1);
    assert!(bad.stderr.contains("bad.toml:4:1"), "{bad:#?}");
    assert!(
        bad.stderr.contains("hint: did you mean `write`?"),
        "{bad:#?}"
    );
    let json = context
        .stockade(["policy", "check", "--json", "bad.toml"])
        .ends_with(1)
        .json();
    assert_eq!(json["valid"], false);
    assert!(json["error"]["message"].as_str().unwrap().contains("writ"));
    let missing = context
        .stockade(["policy", "check", "missing.toml"])
        .ends_with(1);
    assert!(missing.stderr.contains("missing.toml"), "{missing:#?}");
}

/// Rows C01 and C02: nothing runs under a policy that can't be read.
#[test]
fn a_bad_policy_keeps_the_command_from_starting() {
    let context = Context::new();
    for (name, text) in [
        ("key.toml", UNKNOWN_KEY),
        ("syntax.toml", "version = 1\n[filesystem\n"),
        ("version.toml", "version = 99\n"),
        ("policy.json", "{\"type\": \"read_only\", \"typo\": 1}"),
        ("broken.json", "{\n  \"type\": \n}"),
    ] {
        context.file(name, text);
        let args = [
            "run",
            "--danger-full-access",
            "--policy",
            name,
            "--",
            "touch",
            "ran",
        ];
        let ran = context.stockade(args).ends_with(125);
        assert!(ran.stderr.contains(name), "{ran:#?}");
        assert!(!context.project().join("ran").exists(), "{name}");
    }
}

#[test]
fn a_policy_in_json_is_taken() {
    let context = Context::new();
    context.file("policy.json", "{\"type\": \"read_only\"}");
    let text = context
        .stockade(["explain", "--policy", "policy.json", "x"])
        .ends_with(0);
    assert!(text.stdout.contains("write    denied"), "{text:#?}");
}

#[test]
fn the_schema_is_json() {
    let context = Context::new();
    let schema = context.stockade(["policy", "schema"]).ends_with(0).stdout;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    for key in ["version", "extends", "filesystem", "network", "limits"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
}

#[test]
fn files_for_stockade_are_found_from_where_it_was_started() {
    let context = Context::new();
    context.file("ci.toml", "version = 1\n[filesystem]\nwrite = [\"out\"]\n");
    std::fs::create_dir(context.project().join("sub")).unwrap();
    let args = [
        "explain",
        "-C",
        "sub",
        "--policy",
        "ci.toml",
        "--read-only",
        "--json",
        "./out",
    ];
    let answer = context.stockade(args).ends_with(0).json();
    let out = context.project().join("sub/out");
    assert_eq!(answer["path"]["path"], out.to_str().unwrap());
}

#[test]
fn a_projects_file_is_checked_as_run_reads_it() {
    let context = Context::new();
    context.file(
        "stockade.toml",
        "version = 1\n[network]\nallow = [\"a.test\"]\n",
    );
    context.stockade(["run", "--", "true"]).ends_with(125);
    let refused = context
        .stockade(["policy", "check", "stockade.toml"])
        .ends_with(1);
    assert!(refused.stderr.contains("stockade.toml:3"), "{refused:#?}");
    let json = context.stockade(["policy", "check", "--json", "stockade.toml"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["valid"], false);
    // The same text in a file of the user's own grants.
    context.file("own.toml", "version = 1\n[network]\nallow = [\"a.test\"]\n");
    context
        .stockade(["policy", "check", "own.toml"])
        .ends_with(0);
    context.file(
        "stockade.toml",
        "version = 1\n[network]\nblock = [\"a.test\"]\n",
    );
    context
        .stockade(["policy", "check", "stockade.toml"])
        .ends_with(0);
}

#[test]
fn a_policy_comes_from_another_sandbox_and_goes_back() {
    let context = Context::new();
    let settings = r#"{"network":{"allowedDomains":["*.a.test"]},"filesystem":{"allowWrite":["."],"denyRead":["notes"]}}"#;
    context.file("srt.json", settings);
    let imported = context
        .stockade(["policy", "import", "srt.json"])
        .ends_with(0);
    assert!(imported.stderr.contains("`a.test`"), "{imported:#?}");
    context.file("imported.toml", &imported.stdout);
    context
        .stockade(["policy", "check", "imported.toml"])
        .ends_with(0);
    let is_allowed = |host: &str| {
        let words = ["explain", "--json", "--policy", "imported.toml", host];
        context.stockade(words).json()["network"][0]["allowed"] == true
    };
    assert!(is_allowed("b.a.test:443"));
    assert!(!is_allowed("a.test:443"));
    let words = [
        "policy",
        "export",
        "--to",
        "srt",
        "--policy",
        "imported.toml",
        "--json",
    ];
    let exported = context.stockade(words).ends_with(0).json();
    let text = exported["text"].as_str().unwrap();
    assert!(
        text.contains("*.a.test:443") && text.contains("project/notes"),
        "{text}"
    );
    let words = [
        "policy",
        "export",
        "--to",
        "codex",
        "--policy",
        "imported.toml",
    ];
    let refused = context.stockade(words).ends_with(1);
    assert!(refused.stderr.contains("would allow more"), "{refused:#?}");
}

#[test]
fn an_import_hints_at_the_format() {
    let hints = Hints::of("policy::an_import_hints_at_the_format");
    let context = Context::new();
    context.file("odd", "{}");
    let refused = context.stockade(["policy", "import", "odd"]).ends_with(1);
    let hint = hints.in_refusal(&refused).replace('\'', "");
    let words = hint.strip_prefix("stockade ").unwrap().split(' ');
    context.stockade(words).ends_with(0);
}
