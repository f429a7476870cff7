//! Signals that stand where a person does not see them: comments, hidden elements.

use super::matcher::Signal;
use super::rules::{Rule, Theme};

static CONCEALED: Rule = Rule {
    id: "injection.hidden-markup",
    theme: Theme::Disguise,
    weight: 2.0,
    steps: &[],
};

/// How far before a signal the markup that hides it may stand.
const REACH: usize = 800;

/// Adds a signal for each one that stands in hidden markup.
pub(super) fn signals(text: &[u8], found: &mut Vec<Signal>) {
    if found.is_empty()
        || !MARKS
            .iter()
            .any(|mark| memchr::memmem::find(text, mark).is_some())
    {
        return;
    }
    let hidden: Vec<Signal> = found
        .iter()
        .filter(|signal| is_hidden(text, signal.bytes.start))
        .map(|signal| Signal {
            rule: &CONCEALED,
            weight: CONCEALED.weight,
            ..signal.clone()
        })
        .collect();
    found.extend(hidden);
}

fn is_hidden(text: &[u8], at: usize) -> bool {
    let before = text.get(at.saturating_sub(REACH)..at).unwrap_or_default();
    open(before, b"<!--", b"-->")
        || open(before, b"[//]: #", b"\n")
        || open(before, b"[comment]:", b"\n")
        || STYLES
            .iter()
            .any(|style| last(before, style).is_some_and(|style| element_is_open(before, style)))
}

/// Without one of these, nothing can be hidden.
const MARKS: [&[u8]; 4] = [b"<!--", b"[//]: #", b"[comment]:", b"style="];

const STYLES: [&[u8]; 10] = [
    b"display:none",
    b"display: none",
    b"visibility:hidden",
    b"visibility: hidden",
    b"font-size:0",
    b"font-size: 0",
    b"opacity:0",
    b"opacity: 0",
    b"color:white",
    b"color: white",
];

/// True if the element whose style is at `style` is not closed in the rest of the text.
fn element_is_open(before: &[u8], style: usize) -> bool {
    last(before, b"</").is_none_or(|close| close < style)
}

fn open(before: &[u8], start: &[u8], end: &[u8]) -> bool {
    last(before, start).is_some_and(|start| last(before, end).is_none_or(|end| end < start))
}

fn last(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::rfind(haystack, needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_what_markup_hides() {
        for (text, hidden) in [
            ("<!-- note: @", true),
            ("<!-- note --> @", false),
            ("<p style=\"display:none\">@", true),
            ("<p style=\"display:none\">x</p> @", false),
            ("[//]: # (@", true),
            ("plain @", false),
        ] {
            let at = text.find('@').unwrap();
            assert_eq!(is_hidden(text.as_bytes(), at), hidden, "{text}");
        }
    }
}
