//! The commands in README.md are run, and print what it says they print; those in docs/ exist.
//!
//! In a block marked `console`, `$ ` begins a command and the lines below it are its output, on
//! stdout or stderr. `? 2` is its exit code, 0 where it is not given. `[..]` stands for the rest
//! of a word or line, and a line `...` for any lines to the end.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const README: &str = include_str!("../../../README.md");
const STOCKADE: &str = env!("CARGO_BIN_EXE_stockade");

struct Example {
    command: String,
    code: i32,
    output: Vec<String>,
}

fn blocks(kind: &str) -> Vec<String> {
    let fence = format!("```{kind}\n");
    README
        .split(&fence)
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for line in blocks("console").iter().flat_map(|block| block.lines()) {
        if let Some(command) = line.strip_prefix("$ ") {
            examples.push(Example {
                command: command.to_owned(),
                code: 0,
                output: Vec::new(),
            });
        } else if let Some(example) = examples.last_mut() {
            if let Some(code) = line.strip_prefix("? ") {
                example.code = code.parse().unwrap();
            } else if !line.is_empty() {
                example.output.push(line.to_owned());
            }
        }
    }
    examples
}

/// Whether `text` is `pattern` with something in place of each `[..]`.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split("[..]");
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        last = Some(part);
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    // What follows the last `[..]` must reach the end.
    last.map_or(rest.is_empty(), |part| {
        rest.is_empty() || part.is_empty() || text.ends_with(part)
    })
}

fn project(dir: &Path) {
    for name in ["project/.git/hooks", "home/.ssh"] {
        fs::create_dir_all(dir.join(name)).unwrap();
    }
    fs::write(dir.join("home/.ssh/id_ed25519"), "secret").unwrap();
}

fn shell(command: &str, dir: &Path) -> Command {
    let program = Path::new(STOCKADE).parent().unwrap().display().to_string();
    let path = format!("{program}:/usr/local/bin:/usr/bin:/bin");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .current_dir(dir.join("project"))
        .env_clear()
        .env("HOME", dir.join("home"))
        .env("PATH", path)
        .stdin(Stdio::null());
    shell
}

/// Running needs an engine that works here; explaining does not.
fn can_run(dir: &Path) -> bool {
    let output = shell("stockade run -- true", dir).output().unwrap();
    if !output.status.success() {
        let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !required.split(',').any(|need| need == "engine"),
            "{reason}"
        );
        let _ = writeln!(
            std::io::stderr(),
            "skipped: the examples with `stockade run`: {}",
            reason.lines().next().unwrap_or_default()
        );
    }
    output.status.success()
}

#[test]
fn the_examples_do_what_they_say() {
    // Not below /tmp, which is private inside.
    let dir = tempfile::Builder::new()
        .prefix("stockade-docs-")
        .tempdir_in("/var/tmp")
        .unwrap();
    project(dir.path());
    let can_run = can_run(dir.path());
    let examples = examples();
    assert!(examples.len() >= 6, "only {} were found", examples.len());
    for example in examples {
        if example.command.starts_with("stockade run") && !can_run {
            continue;
        }
        let output = shell(&example.command, dir.path()).output().unwrap();
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        let what = format!("$ {}\n{text}", example.command);
        assert_eq!(output.status.code(), Some(example.code), "{what}");
        let mut lines = text.lines();
        let mut open_ended = false;
        for expected in &example.output {
            if expected == "..." {
                open_ended = true;
                break;
            }
            let line = lines.next().unwrap_or_default();
            assert!(matches(expected, line), "expected `{expected}`: {what}");
        }
        assert!(
            open_ended || lines.next().is_none(),
            "more than expected: {what}"
        );
    }
}

/// The words of a command in a document, with its flags asked for and nothing done.
fn asking_for_help(line: &str) -> String {
    let command = line.split(" #").next().unwrap_or_default();
    let command = command.split([';', '|', '>', '&']).next().unwrap();
    match command.split_once(" -- ") {
        Some((flags, _)) => format!("{flags} --help"),
        None => format!("{} --help", command.trim_end()),
    }
}

#[test]
fn every_command_of_the_documents_exists() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    project(dir.path());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let documents = fs::read_dir(root.join("docs")).unwrap();
    let documents = documents.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    let mut count = 0;
    for text in documents.chain([README.to_owned()]) {
        let lines = text.lines().map(|line| line.trim_start_matches("$ "));
        for line in lines.filter(|line| line.starts_with("stockade ")) {
            let command = asking_for_help(line);
            let output = shell(&command, dir.path()).output().unwrap();
            assert!(output.status.success(), "{line}\n$ {command}\n{output:?}");
            assert!(!line.contains(" · "), "two commands in one line: {line}");
            count += 1;
        }
    }
    assert!(count >= 30, "only {count} were found");
}

#[test]
fn the_profile_is_valid() {
    let dir = tempfile::tempdir().unwrap();
    for (index, block) in blocks("toml").iter().enumerate() {
        let file = dir.path().join(format!("{index}.toml"));
        fs::write(&file, block).unwrap();
        let output = Command::new(STOCKADE)
            .args(["policy", "check"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{block}\n{output:?}");
    }
}

#[test]
fn linked_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let links: Vec<&str> = README
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|link| !link.contains("://"))
        .collect();
    assert!(links.len() >= 5, "{links:?}");
    for link in links {
        assert!(root.join(link).exists(), "{link}");
    }
}

#[test]
fn patterns_match_what_they_should() {
    assert!(matches("a [..] c", "a b c"));
    assert!(matches("[..]", ""));
    assert!(matches("a[..]", "abc"));
    assert!(!matches("a [..] c", "a b d"));
    assert!(!matches("a", "ab"));
    assert!(!matches("[..]b", "abc"));
    assert!(!matches("ab", "a"));
}
