//! Commands and texts of many kinds, in files: what must be found and what must stay quiet.
//!
//! Samples are parted by a line that holds `%` alone. All that is judged wrongly is told at once.

use stockade_inspect::{Kinds, inspect_all};

fn samples(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.split("\n%\n")
        .map(str::trim)
        .filter(|sample| !sample.is_empty())
}

/// What the inspectors say of each sample differs from `safe`.
fn wrong(file: &'static str, kinds: Kinds, safe: bool) -> Vec<String> {
    samples(file)
        .filter_map(|sample| {
            let result = inspect_all(kinds, [""; 0], sample);
            let rules: Vec<&str> = result.findings.iter().map(|found| found.rule).collect();
            (result.safe != safe).then(|| format!("{sample}\n    {rules:?}"))
        })
        .collect()
}

#[track_caller]
fn assert_none(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} are judged wrongly:\n{}\n",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn commands_that_send_are_found() {
    assert_none(&wrong(
        include_str!("samples/egress-sends.txt"),
        Kinds::EGRESS,
        false,
    ));
}

#[test]
fn ordinary_commands_are_quiet() {
    assert_none(&wrong(
        include_str!("samples/egress-ordinary.txt"),
        Kinds::EGRESS,
        true,
    ));
}

#[test]
fn secrets_are_found() {
    assert_none(&wrong(
        include_str!("samples/secrets-found.txt"),
        Kinds::SECRETS,
        false,
    ));
}

#[test]
fn what_only_looks_like_a_secret_is_quiet() {
    assert_none(&wrong(
        include_str!("samples/secrets-quiet.txt"),
        Kinds::SECRETS,
        true,
    ));
}

#[test]
fn injections_in_the_most_spoken_languages_are_found() {
    assert_none(&wrong(
        include_str!("samples/injection-found.txt"),
        Kinds::INJECTION,
        false,
    ));
}

#[test]
fn ordinary_text_is_quiet() {
    assert_none(&wrong(
        include_str!("samples/injection-quiet.txt"),
        Kinds::INJECTION,
        true,
    ));
}
