//! Each flag as a pure function of argv.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{Args, CommandFactory, FromArgMatches, Parser};
use stockade_policy::profile::{BasePolicy, Flags, NetworkMode};

use super::{Cli, Command, RunArgs, parse, short};

/// The flags of `run` that scripts rely on: the table in the design, and the three that the
/// engine needs beside it. A flag that is here and not in the parser, or the other way round,
/// fails.
const RUN_FLAGS: &[&str] = &[
    "--read-only",
    "--workspace-write",
    "--danger-full-access",
    "--policy",
    "--profile",
    "--cwd",
    "-C",
    "--write",
    "-w",
    "--read",
    "-r",
    "--deny",
    "--deny-read",
    "--deny-write",
    "--base",
    "--net",
    "--allow",
    "--danger-allow",
    "--upstream",
    "--no-upstream",
    "--block",
    "--commit",
    "--resolve",
    "--net-methods",
    "--danger-hidden-names",
    "--mask",
    "--unix",
    "--host-port",
    "--expose",
    "--device",
    "--env",
    "--keep-env",
    "--pass-fd",
    "--limit",
    "--timeout",
    "--level",
    "--backend",
    "--image",
    "--require",
    "--best-effort",
    "--seccomp",
    "--overlay",
    "--explain",
    "--inspect",
    "--redact",
    "--report",
    "--json",
    "--json-fd",
    "--quiet",
    "-q",
    "--verbose",
    "-v",
    #[cfg(feature = "verify")]
    "--verify",
    "--dry-run",
    "--git-config",
    "--home",
    "--danger-nested-namespaces",
];

fn run(words: &[&str]) -> RunArgs {
    let line = ["stockade", "run"]
        .iter()
        .chain(words)
        .chain(&["--", "true"]);
    match Cli::try_parse_from(line).unwrap().command {
        Command::Run(args) => *args,
        other => panic!("{other:?}"),
    }
}

fn flags(words: &[&str]) -> Flags {
    run(words).policy.flags()
}

#[test]
fn the_short_way_reads_run_like_the_whole_parser() {
    let lines: &[&[&str]] = &[
        &["--", "true"],
        &[
            "--read-only",
            "-w",
            "a",
            "--allow",
            "b.test",
            "-C",
            "d",
            "--",
            "ls",
            "--json",
        ],
        &[
            "--overlay=x",
            "--limit",
            "mem=1G",
            "--timeout",
            "3s",
            "--json",
            "--",
            "a",
            "--",
            "b",
        ],
        &["--env", "A=B", "--require", "fs-read", "-q", "--", "x"],
    ];
    for words in lines {
        let line = || {
            let words = ["stockade", "run"].iter().chain(*words);
            words.map(OsString::from)
        };
        let short = parse(line().collect(), line).unwrap();
        let whole = Cli::try_parse_from(line()).unwrap().command;
        assert_eq!(format!("{short:?}"), format!("{whole:?}"));
    }
    // What it refuses, the whole parser explains.
    let refused = |flag: &str| {
        let line = ["stockade", "run", flag].map(OsString::from);
        parse(line.to_vec(), || line.into_iter()).unwrap_err()
    };
    let refusal = refused("--nope");
    assert!(
        refusal.to_string().contains("Usage: stockade run"),
        "{refusal}"
    );
    for flag in ["--help", "--version"] {
        assert!(!refused(flag).use_stderr(), "{flag}");
    }
}

/// Every line of five of these words: the flags that are taken out in front of the parser leave
/// what it makes of the rest, and what it refuses, as they were.
#[test]
fn flags_that_come_again_mean_what_they_mean_alone() {
    const WORDS: [&str; 6] = ["--deny-read=a", "--deny-read", "b", "--read=", "--env", "-"];
    let sorted = |mut args: RunArgs| {
        args.policy.deny_read.sort();
        args.policy.read.sort();
        format!("{args:?}")
    };
    let mut accepted = 0;
    for number in 0..WORDS.len().pow(5) {
        let digits = (0..5).map(|place| number / WORDS.len().pow(place) % WORDS.len());
        let words: Vec<&str> = digits.map(|digit| WORDS[digit]).collect();
        // The whole parser is asked about lines in which something is taken out.
        if !words[..4].contains(&WORDS[0]) && !words[..4].contains(&WORDS[1]) {
            continue;
        }
        let line = || {
            let before = ["stockade", "run"].iter().chain(&words);
            before.chain(&["--", "--deny-read=c", "--deny-read=d"])
        };
        let line = || line().map(OsString::from);
        let whole = RunArgs::augment_args(clap::Command::new("run"))
            .try_get_matches_from(line().skip(1))
            .and_then(|mut matches| RunArgs::from_arg_matches_mut(&mut matches));
        let short = short(line().collect());
        accepted += usize::from(whole.is_ok());
        match (short, whole) {
            (Some(short), Ok(whole)) => {
                assert_eq!(sorted(short), sorted(whole), "{words:?}");
            }
            (None, Err(_)) => {}
            (short, whole) => panic!("{words:?}: {short:?}, {whole:?}"),
        }
    }
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn an_agent_takes_the_flags_of_run_and_arguments_of_its_own() {
    let line = [
        "stockade", "agent", "codex", "--allow", "a.test", "--", "exec", "--json",
    ];
    match Cli::try_parse_from(line).unwrap().command {
        Command::Agent(args) => {
            assert_eq!(args.name, "codex");
            assert_eq!(args.run.policy.flags().allow.len(), 1);
            assert_eq!(args.run.command, ["exec", "--json"]);
            assert!(!args.run.output.json);
        }
        other => panic!("{other:?}"),
    }
}

fn refused(words: &[&str]) -> String {
    let line = ["stockade", "run"]
        .iter()
        .chain(words)
        .chain(&["--", "true"]);
    let refusal = Cli::try_parse_from(line).unwrap_err();
    assert_eq!(refusal.exit_code(), 2, "{refusal}");
    refusal.to_string()
}

#[test]
fn the_parser_is_sound() {
    Cli::command().debug_assert();
}

/// A change of a help page is seen by whoever reviews it. `INSTA_UPDATE=always` takes the new ones.
#[test]
fn every_help_page_is_what_it_was() {
    let mut root = Cli::command().term_width(100);
    root.build();
    insta::assert_snapshot!("stockade", root.render_long_help().to_string());
    for command in root.get_subcommands_mut() {
        let mut pages = String::new();
        add_pages(command, &mut pages);
        if !pages.is_empty() {
            insta::assert_snapshot!(format!("stockade-{}", command.get_name()), pages);
        }
    }
}

fn add_pages(command: &mut clap::Command, pages: &mut String) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    pages.push_str(&command.render_long_help().to_string());
    pages.push('\n');
    for below in command.get_subcommands_mut() {
        add_pages(below, pages);
    }
}

#[test]
fn run_has_exactly_the_promised_flags() {
    let mut cli = Cli::command();
    cli.build();
    let run = cli.find_subcommand("run").unwrap();
    let mut found = BTreeSet::new();
    let shown = |flag: &&clap::Arg| !flag.is_positional() && !flag.is_hide_set();
    for flag in run.get_arguments().filter(shown) {
        found.extend(flag.get_long().map(|long| format!("--{long}")));
        found.extend(flag.get_short().map(|short| format!("-{short}")));
    }
    let everywhere = ["--help", "-h", "--version", "-V"];
    found.retain(|flag| !everywhere.contains(&flag.as_str()));
    let promised: BTreeSet<String> = RUN_FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    assert_eq!(found, promised);
}

#[test]
fn every_command_can_answer_in_json_and_has_help() {
    fn check(command: &clap::Command, name: &str) {
        if name == "help" {
            return;
        }
        assert!(command.get_about().is_some(), "{name} has no help");
        if command.has_subcommands() {
            command
                .get_subcommands()
                .for_each(|sub| check(sub, sub.get_name()));
            return;
        }
        let json = command
            .get_arguments()
            .any(|flag| flag.get_long() == Some("json"));
        assert!(json, "{name} has no --json");
        for flag in command.get_arguments() {
            assert!(
                flag.get_help().is_some(),
                "{name} {} has no help",
                flag.get_id()
            );
        }
    }
    let mut cli = Cli::command();
    cli.build();
    check(&cli, "stockade");
}

#[test]
fn every_command_shows_examples_that_can_be_typed() {
    fn check(command: &clap::Command, path: &[String]) {
        let name = path.join(" ");
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        let (_, rest) = help
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("`{name}` has no examples"));
        let lines: Vec<&str> = rest
            .lines()
            .take_while(|line| line.starts_with("  "))
            .collect();
        assert!(!lines.is_empty(), "`{name}` has no examples");
        for line in lines {
            let words = typed(line);
            let last = path.len() - 1;
            let mut names =
                std::iter::once(command.get_name()).chain(command.get_visible_aliases());
            assert!(
                words.starts_with(&path[..last]) && names.any(|name| words[last] == name),
                "{line:?} is no `{name}`"
            );
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{line:?} in the help of `{name}`: {error}");
            }
        }
        walk(command, path);
    }
    fn walk(command: &clap::Command, path: &[String]) {
        let commands = command.get_subcommands();
        for sub in commands.filter(|sub| sub.get_name() != "help") {
            let path: Vec<String> = path
                .iter()
                .cloned()
                .chain([sub.get_name().to_owned()])
                .collect();
            check(sub, &path);
        }
    }
    let mut cli = Cli::command();
    cli.build();
    walk(&cli, &["stockade".to_owned()]);
}

/// The words that a shell would hand to `stockade`: quotes in pairs, no other pipeline's part.
fn typed(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (index, part) in line.split('\'').enumerate() {
        let is_quoted = index % 2 == 1;
        for letter in part.chars() {
            match letter {
                ' ' if !is_quoted => words.push(String::new()),
                letter => words.last_mut().unwrap().push(letter),
            }
        }
    }
    words.retain(|word| !word.is_empty());
    let mut parts = words.split(|word| word == "|" || word == ">");
    let own = parts.find(|part| part.first().is_some_and(|word| word == "stockade"));
    own.unwrap_or_default().to_vec()
}

#[test]
fn base_policies_exclude_each_other() {
    assert_eq!(flags(&[]).base_policy, None);
    let read_only = flags(&["--read-only"]).base_policy;
    assert_eq!(read_only, Some(BasePolicy::ReadOnly));
    let workspace = flags(&["--workspace-write"]).base_policy;
    assert_eq!(workspace, Some(BasePolicy::WorkspaceWrite));
    let full = flags(&["--danger-full-access"]).base_policy;
    assert_eq!(full, Some(BasePolicy::DangerFullAccess));
    refused(&["--read-only", "--workspace-write"]);
}

#[test]
fn paths_repeat_and_keep_their_text() {
    let flags = flags(&[
        "-w",
        "a",
        "--write",
        "~/b",
        "-r",
        "**/c",
        "--deny",
        "d",
        "--deny-read=e",
    ]);
    assert_eq!(flags.write, ["a", "~/b"]);
    assert_eq!(flags.read, ["**/c"]);
    assert_eq!(flags.deny, ["d"]);
    assert_eq!(flags.deny_read, ["e"]);
}

#[test]
fn network_flags_are_read_at_once() {
    let flags = flags(&[
        "--allow",
        "A.Test.",
        "--allow",
        "b.test:22",
        "--block",
        "*.c.test",
    ]);
    let allowed: Vec<String> = flags.allow.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["a.test", "b.test:22"]);
    assert_eq!(run(&["--net", "open"]).policy.net, Some(NetworkMode::Open));
    assert!(refused(&["--net", "allowlist"]).contains("off, open"));
    assert!(refused(&["--allow", "a b"]).contains("--allow"));
    assert!(refused(&["--resolve", "a.test"]).contains("NAME=ADDRESS"));
    refused(&["--net", "off", "--allow", "a.test"]);
}

#[test]
fn words_outside_of_a_list_are_refused_with_the_list() {
    assert!(refused(&["--level", "high"]).contains("maximum"));
    assert!(refused(&["--backend", "vm"]).contains("bwrap"));
    assert!(refused(&["--require", "everything"]).contains("fs-read"));
    assert!(refused(&["--seccomp", "none"]).contains("strict"));
    assert!(refused(&["--base", "all"]).contains("minimal"));
}

#[test]
fn malformed_numbers_are_refused() {
    for limit in [
        "mem",
        "mem=",
        "mem=-1",
        "mem=1e9",
        "mem=99999999999G",
        "pids=1.5",
        "x=1",
    ] {
        let refusal = refused(&[&format!("--limit={limit}")]);
        assert!(refusal.contains("--limit"), "{refusal}");
    }
    for time in ["", "s", "-1s", "1y", "999999999999999999999s"] {
        let refusal = refused(&[&format!("--timeout={time}")]);
        assert!(refusal.contains("--timeout"), "{refusal}");
    }
    for port in ["0", "65536", "-1", "http", ""] {
        refused(&["--expose", port]);
        refused(&["--host-port", port]);
    }
    refused(&["--pass-fd", "-1"]);
    refused(&["--pass-fd", "1x"]);
}

#[test]
fn an_overlay_may_have_a_name() {
    assert_eq!(run(&[]).overlay, None);
    assert_eq!(run(&["--overlay"]).overlay, Some(None));
    assert_eq!(run(&["--overlay=x"]).overlay, Some(Some("x".into())));
}

#[test]
fn the_command_begins_with_the_first_word_that_is_no_flag() {
    let line = ["stockade", "run", "-w", "x", "ls", "-w", "--", "--json"];
    let args = run_of(&line);
    assert_eq!(args.command, ["ls", "-w", "--", "--json"]);
    assert_eq!(args.policy.write, ["x"]);
    assert!(!args.output.json);
    // A mistyped flag must not become the command.
    assert!(Cli::try_parse_from(["stockade", "run", "--alow", "x"]).is_err());
    assert_eq!(
        run_of(&["stockade", "run", "--", "--alow"]).command,
        ["--alow"]
    );
}

#[test]
fn a_shell_is_a_run_without_a_command() {
    let args = run_of(&["stockade", "shell", "--read-only"]);
    assert!(args.command.is_empty());
    assert!(args.policy.read_only);
}

fn run_of(line: &[&str]) -> RunArgs {
    match Cli::try_parse_from(line).unwrap().command {
        Command::Run(args) => *args,
        other => panic!("{other:?} is not run"),
    }
}

#[test]
fn the_command_is_what_follows_the_dashes() {
    let line = [
        "stockade", "run", "-w", "x", "--", "ls", "-w", "--", "--json",
    ];
    let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("not run");
    };
    assert_eq!(args.command, ["ls", "-w", "--", "--json"]);
    assert_eq!(args.policy.write, ["x"]);
    assert!(!args.output.json);
}

#[cfg(unix)]
#[test]
fn any_bytes_can_be_arguments() {
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(b"\xff\xfe".to_vec());
    let line = ["stockade", "run", "-w"].map(OsString::from).into_iter();
    let line = line.chain([odd.clone(), "--".into(), odd.clone(), odd.clone()]);
    let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else {
        panic!("not run");
    };
    assert_eq!(args.command, [odd.clone(), odd.clone()]);
    assert_eq!(args.policy.write, [odd]);
}
