//! Which test executes which hint. `hints.list` is compared with the hints in the source, and each
//! test with what was printed to it.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use crate::context::Ran;

/// Lines `TEST | TEMPLATE`. A test is named with its module; `kernels` is the suite of guests,
/// hints of `not Linux` are in source that is compiled for other systems only.
const LIST: &str = include_str!("hints.list");

fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(" | ").unwrap())
}

/// The hints that one test is listed for. When it is dropped, all of them must have been printed.
pub(crate) struct Hints {
    missing: RefCell<Vec<&'static str>>,
    listed: Vec<&'static str>,
}

impl Hints {
    pub(crate) fn of(test: &str) -> Self {
        let own = entries().filter(|(name, _)| *name == test);
        let listed: Vec<&str> = own.map(|(_, template)| template).collect();
        assert!(!listed.is_empty(), "hints.list has no line of {test}");
        Self {
            missing: RefCell::new(listed.clone()),
            listed,
        }
    }

    /// What a refused command says after `hint:`.
    #[track_caller]
    pub(crate) fn in_refusal(&self, refused: &Ran) -> String {
        assert_ne!(refused.code, 0, "{refused:#?}");
        let hint = refused.stderr.split("hint: ").nth(1);
        let hint = hint.unwrap_or_else(|| panic!("no hint: {refused:#?}"));
        self.note(&hint.trim().replace("\n  ", " "))
    }

    /// The hint must be one of this test's.
    #[track_caller]
    pub(crate) fn note(&self, hint: &str) -> String {
        let matching = |template: &&&str| is_made_from(hint, template);
        let found: Vec<&&str> = self.listed.iter().filter(matching).collect();
        assert!(!found.is_empty(), "hints.list: not of this test: {hint}");
        self.missing
            .borrow_mut()
            .retain(|template| !found.contains(&template));
        hint.to_owned()
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        let missing = self.missing.borrow();
        assert!(
            std::thread::panicking() || missing.is_empty(),
            "never printed: {missing:#?}"
        );
    }
}

/// Whether a text is the template with something in place of each `{…}`.
fn is_made_from(text: &str, template: &str) -> bool {
    let pieces = template.split('{').enumerate();
    let mut pieces = pieces.map(|(at, piece)| match piece.split_once('}') {
        Some((_, behind)) if at > 0 => behind,
        _ => piece,
    });
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut has_open_end = false;
    for piece in pieces {
        let Some(at) = rest.find(piece) else {
            return false;
        };
        rest = &rest[at + piece.len()..];
        has_open_end = piece.is_empty();
    }
    rest.is_empty() || has_open_end
}

#[test]
fn every_hint_of_the_source_has_a_test_that_executes_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = sources(&crates).into_iter();
    let contents: Vec<String> = files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let found: Vec<String> = contents.iter().flat_map(|text| hints_in(text)).collect();
    let found: Vec<String> = found
        .iter()
        .map(|text| text.replace("\\\"", "\""))
        .collect();
    let tests = rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"));
    let tests: String = tests
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let mut faults = Vec::new();
    for text in &found {
        if !entries().any(|(_, template)| template == text) {
            faults.push(format!("has no test: {text}"));
        }
    }
    for (test, template) in entries() {
        if !found.iter().any(|text| text == template) {
            faults.push(format!("is no hint of the source: {template}"));
        }
        if test == "not Linux" && !contents.iter().any(|text| is_for_others(text, template)) {
            faults.push(format!("is compiled for Linux: {template}"));
        }
        let is_elsewhere = test == "kernels" || test == "not Linux";
        if !is_elsewhere && !tests.contains(&format!("\"{test}\"")) {
            faults.push(format!("does not execute hints: {test}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Whether the last condition before a hint is that the system is not Linux.
fn is_for_others(source: &str, hint: &str) -> bool {
    let before = source.split_once(&format!("\"{hint}\""));
    let condition = before.and_then(|(before, _)| before.rsplit_once("#[cfg("));
    condition.is_some_and(|(_, rest)| rest.starts_with("not(target_os = \"linux\"))]"))
}

/// The sources of every crate but the harness of tests.
fn sources(crates: &Path) -> Vec<PathBuf> {
    let packages = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap());
    packages
        .filter(|package| package.file_name() != "stockade-test")
        .flat_map(|package| rust_files(&package.path().join("src")))
        .filter(|path| !path.ends_with("tests.rs") && !path.iter().any(|part| part == "tests"))
        .collect()
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files
}

/// A piece of Rust source, as far as hints matter.
#[derive(Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Literal(String),
    Mark(char),
    /// `/*hint*/`, in front of a literal that is one.
    Hint,
}

/// Every literal in a function `hint`, in the arguments of a method `hint`, in the value of a
/// variable `hint`, and behind `/*hint*/`.
fn hints_in(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next();
    let mut tokens = tokens(code.unwrap_or_default());
    remove_features(&mut tokens);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        match &tokens[at..] {
            [Token::Word("fn"), Token::Word("hint"), rest @ ..] => {
                let body = rest.iter().position(|token| *token == Token::Mark('{'));
                found.extend(literals(&rest[body.unwrap_or(rest.len())..], None));
            }
            [Token::Mark('.'), Token::Word("hint"), rest @ ..] => {
                found.extend(literals(rest, None));
            }
            [
                Token::Word("let"),
                Token::Word("hint"),
                Token::Mark('='),
                rest @ ..,
            ] => {
                found.extend(literals(rest, Some(';')));
            }
            [Token::Hint, Token::Literal(text), ..] => found.push(text.clone()),
            _ => {}
        }
    }
    // What puts a hint on the screen.
    found.retain(|text| !text.starts_with("{BOLD}"));
    found
}

/// Removes the names of features in `#[cfg(feature = "…")]`.
fn remove_features(tokens: &mut Vec<Token<'_>>) {
    let mut at = 0;
    while at + 2 < tokens.len() {
        if let [Token::Word("feature"), Token::Mark('='), Token::Literal(_)] = &tokens[at..at + 3] {
            tokens.remove(at + 2);
        }
        at += 1;
    }
}

/// The literals up to the end of the first bracket, or up to this mark outside of brackets.
fn literals<'a>(tokens: &'a [Token<'a>], end: Option<char>) -> impl Iterator<Item = String> + 'a {
    let mut depth = 0_i32;
    let inside = tokens.iter().take_while(move |token| {
        let Token::Mark(mark) = token else {
            return true;
        };
        match mark {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        match end {
            Some(end) => depth > 0 || *mark != end,
            None => depth > 0,
        }
    });
    inside.filter_map(|token| match token {
        Token::Literal(text) => Some(text.clone()),
        _ => None,
    })
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let length = match (first, word.unwrap_or(rest.len())) {
            ('/', _) if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            ('/', _) if rest.starts_with("/*hint*/") => {
                found.push(Token::Hint);
                "/*hint*/".len()
            }
            ('r', _) if rest.starts_with("r#\"") => {
                rest.find("\"#").map_or(rest.len(), |end| end + 2)
            }
            ('"', _) => {
                let length = literal_length(rest);
                found.push(Token::Literal(joined(&rest[1..length - 1])));
                length
            }
            // A character, which may be a quote or a bracket.
            ('\'', _) => match rest[1..].chars().next() {
                Some('\\') => rest[3..].find('\'').map_or(1, |end| end + 4),
                Some(letter) if rest[1 + letter.len_utf8()..].starts_with('\'') => {
                    letter.len_utf8() + 2
                }
                _ => 1,
            },
            (_, 0) => {
                if !first.is_whitespace() {
                    found.push(Token::Mark(first));
                }
                first.len_utf8()
            }
            (_, length) => {
                found.push(Token::Word(&rest[..length]));
                length
            }
        };
        rest = &rest[length..];
    }
    found
}

/// With both quotes.
fn literal_length(source: &str) -> usize {
    let mut is_escaped = false;
    let end = source[1..].find(|letter| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    });
    end.map_or(source.len(), |end| end + 2)
}

/// A literal's lines that end in a backslash are one.
fn joined(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |all, line| all + line.trim_start())
}
