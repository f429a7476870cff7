//! Signals that stand where a person does not see them: comments, hidden elements.

use std::ops::Range;

use super::matcher::Signal;
use super::rules::{Rule, Theme};

static CONCEALED: Rule = Rule {
    id: "injection.hidden-markup",
    theme: Theme::Disguise,
    weight: 2.0,
    is_role: false,
    steps: &[],
};

/// How long a hidden stretch is looked at.
const REACH: usize = 800;

/// Adds a signal for each one that stands in hidden markup.
pub(super) fn signals(text: &[u8], found: &mut Vec<Signal>) {
    if found.is_empty() {
        return;
    }
    let stretches = stretches(text);
    let is_hidden = |at: usize| {
        let next = stretches.partition_point(|stretch| stretch.start <= at);
        // Stretches may overlap, but few can begin within the reach of one.
        stretches
            .iter()
            .take(next)
            .rev()
            .take(4)
            .any(|stretch| stretch.contains(&at))
    };
    let hidden: Vec<Signal> = found
        .iter()
        .filter(|signal| is_hidden(signal.bytes.start))
        .map(|signal| Signal {
            rule: &CONCEALED,
            weight: CONCEALED.weight,
            ..signal.clone()
        })
        .collect();
    found.extend(hidden);
}

/// Where text stands that is not shown, in order.
fn stretches(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (start, end) in MARKS {
        for at in memchr::memmem::find_iter(text, start) {
            let rest = text.get(at..text.len().min(at + REACH)).unwrap_or_default();
            let hides = *start != b"style=" || is_hiding(rest);
            if hides {
                let length = memchr::memmem::find(rest, end).unwrap_or(rest.len());
                found.push(at..at + length);
            }
        }
    }
    found.sort_by_key(|stretch| stretch.start);
    found
}

/// What begins something that is not shown, and what ends it.
const MARKS: &[(&[u8], &[u8])] = &[
    (b"<!--", b"-->"),
    (b"[//]: #", b"\n"),
    (b"[comment]:", b"\n"),
    (b"style=", b"</"),
];

/// True if the attribute that begins here keeps its element from being seen.
fn is_hiding(attribute: &[u8]) -> bool {
    const STYLES: [&[u8]; 14] = [
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
        b"color:#fff",
        b"color: #fff",
        b"color:transparent",
        b"color: transparent",
    ];
    let tag = attribute
        .split(|byte| *byte == b'>')
        .next()
        .unwrap_or_default();
    STYLES
        .iter()
        .any(|style| memchr::memmem::find(tag, style).is_some())
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
            let is_hidden = stretches(text.as_bytes())
                .iter()
                .any(|stretch| stretch.contains(&at));
            assert_eq!(is_hidden, hidden, "{text}");
        }
    }
}
