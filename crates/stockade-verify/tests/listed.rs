//! Every line of `rules/commands.list`, turned into a command that fits it, is found.

use stockade_verify::{CodeVerifier, Severity};

/// A command for a line: the first choice of each word, `x` for what may be anything.
fn example(program: &str, words: &[&str]) -> String {
    let chosen = words.iter().filter(|word| !word.starts_with('!'));
    let mut command = program.to_owned();
    for word in chosen {
        let first = word.split('|').next().unwrap_or_default();
        let text = match first {
            "*" => "x".to_owned(),
            first => first.replace('*', "x").replace('?', " "),
        };
        command.push_str(" '");
        command.push_str(&text.replace('\'', "'\\''"));
        command.push('\'');
    }
    command
}

#[test]
fn every_line_of_the_list_is_found() {
    let mut rule = "";
    let mut error = false;
    let mut count = 0;
    let verifier = CodeVerifier::new();
    for line in include_str!("../rules/commands.list").lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let (inside, _) = header.split_once(']').expect("a header ends");
            let (name, severity) = inside.split_once(' ').expect("a rule and a severity");
            (rule, error) = (name, severity != "warning");
            continue;
        }
        let mut words = line.split(' ');
        let programs = words.next().unwrap_or_default();
        let words: Vec<&str> = words.collect();
        for program in programs.split('|') {
            let command = example(program, &words);
            let found = verifier.verify(&command, "bash");
            let weighs = |severity| !error || severity == Severity::Error;
            let hit = found
                .violations
                .iter()
                .any(|one| one.rule == rule && weighs(one.severity));
            assert!(
                hit,
                "{command}: wanted {rule}, found {:?}",
                found.violations
            );
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
}
