//! `verify`, and `run --verify`.

use std::io::Write;
use std::process::Stdio;

use crate::context::{Context, Ran, run};

fn verify_stdin(context: &Context, args: &[&str], text: &[u8]) -> Ran {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let mut command = context.command([&["verify"], args].concat());
    command.stdin(Stdio::from(file));
    run(command)
}

#[test]
fn a_finding_is_shown_in_its_line() {
    let context = Context::new();
    context.file(
        "a.py",
        "import os as o\n\ngetattr(o, 'sys' + 'tem')('rm -rf ~')\n",
    );
    let ran = context.stockade(["verify", "a.py"]).ends_with(1);
    for part in [
        "a.py:3:1",
        "[destroy-files]",
        "getattr(o, 'sys' + 'tem')('rm -rf ~')",
        "^^^",
        "Name the one directory",
        "in 1 file",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {ran:#?}");
    }
    assert_eq!(ran.stderr, "");
}

#[test]
fn exit_codes_are_0_1_and_2() {
    let context = Context::new();
    context.file("good.sh", "echo hello\n");
    context.file("bad.sh", "curl x | sh\n");
    context.file("warn.sh", "sudo ls\n");
    context.stockade(["verify", "good.sh"]).ends_with(0);
    context.stockade(["verify", "warn.sh"]).ends_with(0);
    context
        .stockade(["verify", "--deny-warnings", "warn.sh"])
        .ends_with(1);
    context
        .stockade(["verify", "good.sh", "bad.sh"])
        .ends_with(1);
    let missing = context
        .stockade(["verify", "good.sh", "missing.sh"])
        .ends_with(2);
    assert!(
        missing.stderr.contains("error: can't read missing.sh"),
        "{missing:#?}"
    );
    assert!(missing.stdout.contains("in 1 file"), "{missing:#?}");
    let alone = context.stockade(["verify", "missing.sh"]).ends_with(2);
    assert_eq!(alone.stdout, "", "nothing was verified");
    context.stockade(["verify", "--lang", "cobol"]).ends_with(2);
    context
        .stockade(["verify", "--block-pattern", "(", "good.sh"])
        .ends_with(2);
    let rule = context
        .stockade(["verify", "--disable", "nothing", "good.sh"])
        .ends_with(2);
    assert!(rule.stderr.contains("docs/rules.md"), "{rule:#?}");
}

#[test]
fn standard_input_is_read_and_its_language_told() {
    let context = Context::new();
    for (args, text, code) in [
        (&["-"][..], "#!/bin/sh\nrm -rf /\n", 1),
        (&["-"], "import shutil\n\nshutil.rmtree('/')\n", 1),
        (&["--lang", "bash"], "rm -rf /", 1),
        (&["--lang", "python", "-"], "model.eval()\n", 0),
        (&["--lang", "js"], "require('child_process').exec(a)", 1),
    ] {
        let ran = verify_stdin(&context, args, text.as_bytes());
        assert_eq!(ran.code, code, "{text}: {ran:#?}");
    }
    verify_stdin(&context, &["-"], b"lorem ipsum").ends_with(2);
}

#[test]
fn directories_are_walked_as_git_would() {
    let context = Context::new();
    context.file(".gitignore", "vendor/\n");
    context.file("vendor/a.py", "eval(input())\n");
    context.file("src/a.py", "x = 1\n");
    context.file("src/b.go", "package b\n");
    context.file("src/tool", "#!/usr/bin/env bash\necho\n");
    context.file("src/notes.txt", "rm -rf /\n");
    context.file(".git/hooks/x.sh", "rm -rf /\n");
    let json = context
        .stockade(["verify", "--format", "json", "."])
        .ends_with(0)
        .json();
    let files: Vec<_> = json["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["file"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(files, ["./src/a.py", "./src/b.go", "./src/tool"]);
}

#[test]
fn json_has_every_part_of_a_violation() {
    let context = Context::new();
    context.file("a.sh", "echo\nrm -rf \"/\"\n");
    for args in [
        &["verify", "--json", "a.sh"][..],
        &["verify", "--format", "json", "a.sh"],
    ] {
        let json = context.stockade(args).ends_with(1).json();
        let file = &json["files"][0];
        assert_eq!(file["safe"], false);
        assert_eq!(file["language"], "bash");
        let violation = &file["violations"][0];
        assert_eq!(violation["rule"], "destroy-files");
        assert_eq!(violation["type"], "file_access");
        assert_eq!(violation["line"], 2);
        assert_eq!(violation["column"], 1);
        assert_eq!(violation["span"], serde_json::json!([5, 15]));
        assert_eq!(violation["code"], "rm -rf \"/\"");
        assert_eq!(violation["severity"], "error");
        assert_eq!(violation["confidence"], "high");
        assert!(violation["reason"].as_str().unwrap().contains('/'));
    }
}

#[test]
fn sarif_names_rules_and_regions() {
    let context = Context::new();
    context.file("a.sh", "echo\nrm -rf /\n");
    let ran = context
        .stockade(["verify", "--format", "sarif", "a.sh"])
        .ends_with(1);
    let sarif: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], "destroy-files");
    assert_eq!(result["level"], "error");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "a.sh");
    assert_eq!(place["region"]["startLine"], 2);
    let known = run["tool"]["driver"]["rules"].as_array().unwrap();
    let at = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
    assert_eq!(known[at]["id"], "destroy-files");
}

#[test]
fn configuration_and_comments_change_the_verdict() {
    let context = Context::new();
    let text = "rm -rf /srv/app/cache  # stockade: allow(file-delete) ours\n";
    context.file("a.sh", text);
    context.stockade(["verify", "a.sh"]).ends_with(0);
    context
        .stockade(["verify", "--no-suppress", "a.sh"])
        .ends_with(1);
    context
        .stockade([
            "verify",
            "--no-suppress",
            "--allow-path",
            "/srv/app",
            "a.sh",
        ])
        .ends_with(0);
    context
        .stockade([
            "verify",
            "--no-suppress",
            "--disable",
            "file-delete",
            "a.sh",
        ])
        .ends_with(0);
    context.file("b.py", "import json as j\nj.loads(x)\n");
    context.stockade(["verify", "b.py"]).ends_with(0);
    for flag in [
        ["--block-module", "json"],
        ["--block-function", "json.loads"],
        ["--block-pattern", r"j\.lo"],
    ] {
        context
            .stockade(["verify", flag[0], flag[1], "b.py"])
            .ends_with(1);
    }
}

#[test]
fn what_can_not_be_read_as_text_is_analysed_in_part() {
    let context = Context::new();
    let ran = verify_stdin(&context, &["--lang", "bash"], b"echo \xff\xfe\nrm -rf /\n");
    assert!(ran.stdout.contains("UTF-8"), "{ran:#?}");
    ran.ends_with(1);
    let mut large = b"rm -rf /\n".to_vec();
    large.resize(50 << 20, b'#');
    let ran = verify_stdin(&context, &["--lang", "bash"], &large);
    assert!(ran.stdout.contains("only the first"), "{}", ran.stdout);
    ran.ends_with(1);
    // What a terminal would obey is not printed.
    let ran = verify_stdin(&context, &["--lang", "bash"], b"rm -rf / '\x1b[2J'\n");
    assert!(!ran.stdout.contains('\x1b'), "{ran:#?}");
    ran.ends_with(1);
}

#[test]
fn run_does_not_start_what_the_verifier_refuses() {
    let context = Context::new();
    context.file(
        "bad.sh",
        "touch ran\nchmod 777 . # stockade: allow(file-mode)\n",
    );
    context.file("good.sh", "touch ran\n");
    for command in [
        &["sh", "bad.sh"][..],
        &["sh", "-c", "touch ran; rm -rf ~"],
        &["python3", "-c", "import shutil; shutil.rmtree('/')"],
    ] {
        let args = ["run", "--danger-full-access", "--verify", "--"];
        let ran = context.stockade([&args, command].concat()).ends_with(125);
        assert!(ran.stderr.contains("not started"), "{ran:#?}");
        assert!(
            ran.stderr.contains("the sandbox is the boundary"),
            "{ran:#?}"
        );
        assert!(!context.project().join("ran").exists(), "{command:?}");
    }
    let args = ["run", "--danger-full-access", "--verify", "--", "sh"];
    context
        .stockade([&args[..], &["good.sh"]].concat())
        .ends_with(0);
    assert!(context.project().join("ran").exists());
}

#[test]
fn what_was_not_read_is_not_safe() {
    let context = Context::new();
    context.file("good.py", "print(1)\n");
    for command in ["verify", "inspect"] {
        let ran = context
            .stockade([command, "--json", "good.py", "missing.py"])
            .ends_with(2);
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(json["safe"], false, "{command}: {json:#}");
        assert!(ran.stderr.contains("missing.py"), "{ran:#?}");
        let ran = context
            .stockade([command, "--json", "good.py"])
            .ends_with(0);
        let json: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(json["safe"], true, "{command}: {json:#}");
    }
}
