//! Source that a tool made unreadable: mangled names, packers, alphabets of six characters.

use crate::findings::Findings;
use crate::result::Span;
use crate::rule::Rule;

/// Judges the look of a text.
pub(crate) fn judge(text: &str, findings: &mut Findings) {
    if let Some(span) = hexadecimal_names(text) {
        findings.add(
            Rule::ObfuscatedText,
            span,
            "names that only a tool would give",
        );
    }
    if let Some(at) = text.find("eval(function(p,a,c,k,e,") {
        findings.add(
            Rule::ObfuscatedText,
            Span::new(at, at + 24),
            "packed source",
        );
    }
    if let Some(span) = six_characters(text).or_else(|| signs(text)) {
        findings.add(Rule::ObfuscatedText, span, "written with a few signs only");
    }
}

/// `_0x3fa1`, several of them.
fn hexadecimal_names(text: &str) -> Option<Span> {
    let mut found = text.match_indices("_0x").filter(|(at, _)| {
        let digits = text.as_bytes()[at + 3..]
            .iter()
            .take_while(|b| b.is_ascii_hexdigit())
            .count();
        let inside = *at > 0 && text.as_bytes()[at - 1].is_ascii_alphanumeric();
        digits >= 4 && !inside
    });
    if let Some((first, _)) = found.next()
        && found.nth(2).is_some()
    {
        return Some(Span::new(first, first + 3));
    }
    // Short ones, too many to be anyone's own.
    let mut short = text.match_indices("_0x").filter(|(at, _)| {
        let inside = *at > 0 && text.as_bytes()[at - 1].is_ascii_alphanumeric();
        text.as_bytes()
            .get(at + 3)
            .is_some_and(u8::is_ascii_hexdigit)
            && !inside
    });
    let (first, _) = short.next()?;
    short.nth(14)?;
    Some(Span::new(first, first + 3))
}

/// A long run of `[]()!+` and nothing else, all six of them.
fn six_characters(text: &str) -> Option<Span> {
    const LONG: usize = 60;
    const SIX: &[u8] = b"[]()!+";
    if !text.contains("![]") {
        return None;
    }
    let mut start = 0;
    for (at, byte) in text.bytes().chain([b'x']).enumerate() {
        if SIX.contains(&byte) || matches!(byte, b'{' | b'}' | b'\n' | b' ') {
            continue;
        }
        let run = text.as_bytes().get(start..at).unwrap_or_default();
        if run.len() >= LONG {
            let tight = run.iter().filter(|byte| SIX.contains(byte)).count();
            if tight >= LONG && SIX.iter().all(|one| run.contains(one)) {
                return Some(Span::new(start, start + LONG));
            }
        }
        start = at + 1;
    }
    None
}

/// How encoders begin that write with signs or with faces alone.
fn signs(text: &str) -> Option<Span> {
    let at = text.find("=~[];").filter(|at| {
        let rest = text[*at..].bytes().take(80);
        rest.filter(|byte| *byte == b'_').count() >= 6
    });
    let at = at.or_else(|| text.find("\u{ff9f}\u{3c9}\u{ff9f}\u{ff89}"))?;
    Some(Span::new(at, at + 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_are_seen() {
        assert!(hexadecimal_names("var _0x12ab=1,_0x34cd=_0x12ab;_0x34cd()").is_some());
        assert!(hexadecimal_names("const _0xff = 1; let mask_0x12ab = 2;").is_none());
    }

    #[test]
    fn six_characters_are_seen() {
        assert!(six_characters(&"[][(![]+[])[+[]]]".repeat(40)).is_some());
        assert!(six_characters("[1, 2, 3]").is_none());
    }
}
