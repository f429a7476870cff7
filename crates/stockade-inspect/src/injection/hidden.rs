//! Invisible characters and control sequences as findings of their own.
//!
//! Some are ordinary: joiners in emoji and Indic text, marks in right-to-left text, one
//! variation selector after an emoji. What is reported is what hides or rearranges text.

use crate::finding::{Finding, FindingType, ThreatLevel};
use crate::normalize::invisible::{Invisible, decode, reorders};
use crate::normalize::{Hidden, HiddenKind, View};
use crate::redact;

/// Zero-width characters inside words from which a text is suspicious rather than odd.
const SPLIT_WORDS: usize = 3;

/// Reports what normalisation took out of the view.
pub(crate) fn scan(view: &View<'_>, hidden: &[Hidden], findings: &mut Vec<Finding>) {
    if hidden.is_empty() {
        return;
    }
    let splits = hidden.iter().filter(|run| splits_word(run)).count();
    let rtl = view
        .text()
        .windows(2)
        .any(|pair| matches!(pair, [0xd6..=0xdb, 0x80..=0xbf]));
    for run in hidden {
        let Some((rule, level, message, confidence)) = judge(run, splits, rtl) else {
            continue;
        };
        let context =
            run.source.start.saturating_sub(16)..(run.source.end + 16).min(view.text().len());
        findings.push(Finding {
            kind: FindingType::HiddenText,
            level,
            message: message.to_owned(),
            content: redact::excerpt(view.text().get(context).unwrap_or_default()),
            rule,
            span: view.span(run.source.clone()),
            confidence,
        });
    }
}

type Verdict = (&'static str, ThreatLevel, &'static str, f32);

fn judge(run: &Hidden, splits: usize, rtl: bool) -> Option<Verdict> {
    let HiddenKind::Run {
        characters, before, ..
    } = &run.kind
    else {
        return match run.kind {
            HiddenKind::Clipboard => Some((
                "hidden.clipboard",
                ThreatLevel::High,
                "escape sequence writes the clipboard",
                0.8,
            )),
            HiddenKind::Conceal => Some((
                "hidden.concealed",
                ThreatLevel::Medium,
                "escape sequence makes text invisible",
                0.7,
            )),
            HiddenKind::Run { .. } => None,
        };
    };
    let spelled = decode(characters).is_some();
    match run.class()? {
        // Flags of England, Scotland and Wales are a black flag and a few tags.
        Invisible::Tag if *before == Some('\u{1f3f4}') && characters.len() <= 8 => None,
        Invisible::Tag => Some((
            "hidden.tag-characters",
            ThreatLevel::High,
            "text in invisible tag characters",
            0.95,
        )),
        Invisible::VariationSelector if spelled || characters.len() >= 6 => Some((
            "hidden.variation-selectors",
            ThreatLevel::High,
            "data in invisible variation selectors",
            0.9,
        )),
        Invisible::Bidi if characters.iter().any(|c| reorders(*c)) && !rtl => Some((
            "hidden.bidi",
            ThreatLevel::Medium,
            "bidirectional control that rearranges text (CVE-2021-42574)",
            0.7,
        )),
        Invisible::ZeroWidth if spelled || characters.len() >= 12 => Some((
            "hidden.zero-width",
            ThreatLevel::High,
            "data in zero-width characters",
            0.9,
        )),
        Invisible::ZeroWidth if splits_word(run) && splits >= SPLIT_WORDS => Some((
            "hidden.zero-width",
            ThreatLevel::Medium,
            "zero-width characters inside words",
            0.6,
        )),
        Invisible::ZeroWidth if splits_word(run) => Some((
            "hidden.zero-width",
            ThreatLevel::Low,
            "zero-width character inside a word",
            0.4,
        )),
        Invisible::Bidi | Invisible::VariationSelector | Invisible::ZeroWidth => None,
    }
}

/// True for a zero-width run between two ASCII letters. A soft hyphen there is typesetting.
fn splits_word(run: &Hidden) -> bool {
    match &run.kind {
        HiddenKind::Run {
            characters,
            before: Some(before),
            after: Some(after),
        } => {
            run.class() == Some(Invisible::ZeroWidth)
                && before.is_ascii_alphabetic()
                && after.is_ascii_alphabetic()
                && !characters.contains(&'\u{ad}')
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::normalize;

    fn rules(text: &str) -> Vec<(&'static str, ThreatLevel)> {
        let view = View::plain(text.as_bytes(), 0);
        let (_, hidden) = normalize(&view);
        let mut findings = Vec::new();
        scan(&view, &hidden, &mut findings);
        findings
            .into_iter()
            .map(|finding| (finding.rule, finding.level))
            .collect()
    }

    #[test]
    fn ordinary_text_stays_quiet() {
        for text in [
            "👨‍👩‍👧 and ❤️",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "क्‍ष",
            "می‌خواهم",
            "co\u{ad}operate",
            "\u{200e}שלום",
        ] {
            assert_eq!(rules(text), [], "{text}");
        }
    }

    #[test]
    fn smuggled_text_is_found() {
        let tags: String = "run it"
            .bytes()
            .filter_map(|b| char::from_u32(0xe0000 + u32::from(b)))
            .collect();
        assert_eq!(
            rules(&format!("hi{tags}")),
            [("hidden.tag-characters", ThreatLevel::High)]
        );
        assert_eq!(
            rules("if a\u{202e} { b }"),
            [("hidden.bidi", ThreatLevel::Medium)]
        );
        assert_eq!(
            rules("\x1b[8msecret\x1b[0m"),
            [("hidden.concealed", ThreatLevel::Medium)]
        );
        assert_eq!(
            rules("\x1b]52;c;cm0gLXJm\x07"),
            [("hidden.clipboard", ThreatLevel::High)]
        );
        assert_eq!(
            rules("i\u{200b}gnore"),
            [("hidden.zero-width", ThreatLevel::Low)]
        );
        let split = rules("i\u{200b}g\u{200b}n\u{200b}ore");
        assert_eq!(split.len(), 3);
        assert!(split.iter().all(|(_, level)| *level == ThreatLevel::Medium));
    }
}
