//! Single statements of the profile language, correctly quoted.

use std::fmt;

use stockade_rules::AbsPath;

use super::SeatbeltError;

/// What a statement is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// One path.
    Literal(String),
    /// Paths that match, by an extended regular expression over the whole path.
    Regex(String),
    /// A path and everything below it.
    Subpath(String),
}

/// `(allow OPERATIONS FILTER)` or `(deny …)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) allows: bool,
    pub(super) operations: &'static str,
    pub(super) filter: Option<Filter>,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.allows { "allow" } else { "deny" };
        write!(f, "({verb} {}", self.operations)?;
        match &self.filter {
            None => {}
            Some(Filter::Literal(path)) => write!(f, " (literal {})", quoted(path))?,
            Some(Filter::Regex(regex)) => write!(f, " (regex {})", quoted(regex))?,
            Some(Filter::Subpath(path)) => write!(f, " (subpath {})", quoted(path))?,
        }
        f.write_str(")")
    }
}

/// A string of the language. The backslash comes first: quoting it after the quotation mark would
/// end the string at every mark, and a directory's name would write the profile.
pub(super) fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

/// The path as text.
pub(super) fn text(path: &AbsPath) -> Result<&str, SeatbeltError> {
    let path = path.as_path();
    path.to_str()
        .ok_or_else(|| SeatbeltError::NotText(path.to_owned()))
}

/// What a pattern matches strictly below `dir`, and everything below each match.
///
/// `remainder` is a relative pattern of [`stockade_rules::PathGlob::below`].
pub(super) fn regex(dir: &AbsPath, remainder: &str) -> Result<String, SeatbeltError> {
    let mut out = String::from("^");
    if *dir != AbsPath::root() {
        text(dir)?
            .chars()
            .for_each(|letter| literal(letter, &mut out));
    }
    for name in remainder.split('/') {
        if name == "**" {
            out.push_str("(/[^/]+)*");
        } else {
            out.push('/');
            translate(name, &mut out);
        }
    }
    // `dir/**` is what lies below it.
    if remainder == "**" || remainder.ends_with("/**") {
        out.push_str("/[^/]+");
    }
    out.push_str("(/.*)?$");
    Ok(out)
}

fn literal(letter: char, out: &mut String) {
    if "\\^$.|?*+()[]{}".contains(letter) {
        out.push('\\');
    }
    out.push(letter);
}

/// One name of a pattern.
fn translate(name: &str, out: &mut String) {
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '\\' => literal(letters.next().unwrap_or('\\'), out),
            '[' => class(&mut letters, out),
            other => literal(other, out),
        }
    }
}

/// A class, whose end the pattern's reader has seen. A slash is never in one.
fn class(letters: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let negated = letters
        .next_if(|letter| matches!(letter, '!' | '^'))
        .is_some();
    out.push('[');
    if negated {
        out.push_str("^/");
    }
    let mut first = true;
    for letter in letters.by_ref() {
        match letter {
            ']' if !first => break,
            // Where they would mean something in a regular expression's class.
            '[' | '\\' | ']' | '^' => {
                out.push('\\');
                out.push(letter);
            }
            other => out.push(other),
        }
        first = false;
    }
    out.push(']');
}
