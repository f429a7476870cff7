//! Parts of a word that only serve to hide what the word says.

use crate::ast::{Parameter, Part};
use crate::model::{HoleKind, Word};

/// Whether `$@`, `$*` or `${!@}` stands for nothing here: an operation on an empty list, or a list
/// inside a word, as in `who${*}ami`.
pub(crate) fn is_empty_list(parameter: &Parameter) -> bool {
    let lists = |name: &str| matches!(name, "@" | "*");
    let operator = parameter
        .operation
        .as_ref()
        .map(|(operator, _)| operator.as_str());
    match operator {
        Some("^" | "^^" | "," | ",," | "~" | "~~" | "#" | "##" | "%" | "%%" | "/" | "//") => {
            lists(&parameter.name)
        }
        // `${!@}` and `${!*}`, names of variables by prefix without a prefix.
        Some("@" | "") => parameter.name == "!",
        _ => false,
    }
}

/// Whether the letters of a program's name are broken up by quotes, escapes or expansions that add
/// nothing to it.
pub(crate) fn is_broken_up(parts: &[Part]) -> bool {
    if parts.iter().any(|part| matches!(part, Part::Escaped(_))) {
        return true;
    }
    match parts {
        [] | [Part::Text(_) | Part::Quoted(_) | Part::Double(_)] => return false,
        // `\ls` passes by an alias; `'''exec'` begins a Python program that a shell starts.
        [Part::Quoted(first), Part::Text(_)] if first.chars().count() == 1 => return false,
        [Part::Quoted(first), Part::Quoted(_)] if first.is_empty() => return false,
        _ => {}
    }
    parts.windows(2).any(|pair| hides(&pair[0], &pair[1])) || picks(parts) >= 2
}

/// Whether two neighbours in a word are one name in two spellings.
fn hides(left: &Part, right: &Part) -> bool {
    let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let (ends, starts) = (
        letter(text(left).and_then(|text| text.chars().next_back())),
        letter(text(right).and_then(|text| text.chars().next())),
    );
    match (left, right) {
        (Part::Text(_), Part::Text(_)) => false,
        _ if is_nothing(left) => starts || is_nothing(right),
        _ if is_nothing(right) => ends,
        _ => ends && starts,
    }
}

/// A part that adds no text.
fn is_nothing(part: &Part) -> bool {
    match part {
        Part::Quoted(text) => text.is_empty(),
        Part::Double(inner) => inner.iter().all(is_nothing),
        Part::Parameter(parameter) => {
            let list = matches!(parameter.name.as_str(), "@" | "*") && parameter.index.is_none();
            list && parameter.operation.is_none() || is_empty_list(parameter)
        }
        _ => false,
    }
}

/// The constant text of a part.
fn text(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) | Part::Quoted(text) => Some(text),
        Part::Double(inner) => match inner.as_slice() {
            [only] => text(only),
            _ => None,
        },
        _ => None,
    }
}

/// Letters picked out of other texts: `${x:3:1}`, `${list[3]}`.
fn picks(parts: &[Part]) -> usize {
    let pick = |part: &&Part| match part {
        Part::Parameter(parameter) => {
            let operator = parameter
                .operation
                .as_ref()
                .map(|(operator, _)| operator.as_str());
            let one = parameter
                .index
                .as_deref()
                .is_some_and(|at| !matches!(at, "@" | "*"));
            operator == Some(":") || one
        }
        _ => false,
    };
    parts.iter().filter(pick).count()
}

/// Takes the variables out of a word that stand between letters and that `is_set` does not know:
/// what is never set is empty, as in `c${u}url`. Whether there were any.
pub(crate) fn drop_unset(word: &mut Word, is_set: impl Fn(&str) -> bool) -> bool {
    let letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    let unset = |word: &Word, at: usize| {
        let hole = &word.holes[at];
        let HoleKind::Variable(name) = &hole.kind else {
            return false;
        };
        // Names in capitals come from outside, numbers are arguments.
        let own = name.bytes().any(|b| b.is_ascii_lowercase());
        let bytes = word.text.as_bytes();
        let before = hole.range.start.checked_sub(1).and_then(|at| bytes.get(at));
        own && letter(before) && letter(bytes.get(hole.range.end)) && !is_set(name)
    };
    let mut any = false;
    let mut at = 0;
    while at < word.holes.len() {
        if !unset(word, at) {
            at += 1;
            continue;
        }
        any = true;
        let range = word.holes.remove(at).range;
        word.text.replace_range(range.clone(), "");
        for hole in &mut word.holes[at..] {
            hole.range = hole.range.start - range.len()..hole.range.end - range.len();
        }
    }
    any
}
