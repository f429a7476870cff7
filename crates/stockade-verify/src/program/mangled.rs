//! Source that a tool made unreadable: mangled names, packers, alphabets of six characters.

use crate::findings::Findings;
use crate::result::Span;
use crate::rule::Rule;

/// Judges the look of a text.
pub(crate) fn judge(text: &str, findings: &mut Findings) {
    if let Some(span) = hexadecimal_names(text).or_else(|| confusable_names(text)) {
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
    if let Some(span) = six_characters(text) {
        findings.add(
            Rule::ObfuscatedText,
            span,
            "written with six characters only",
        );
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
    let (first, _) = found.next()?;
    found.nth(2)?;
    Some(Span::new(first, first + 3))
}

/// `IlIIlIlI`, `O0OO0O0O`: letters chosen to look alike.
fn confusable_names(text: &str) -> Option<Span> {
    let mut count = 0usize;
    let mut start = None;
    let mut at = 0;
    for word in text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .take(200_000)
    {
        let length = word.len();
        let alike = length >= 8
            && !word.starts_with(|c: char| c.is_ascii_digit())
            && (word.bytes().all(|b| matches!(b, b'I' | b'l' | b'1' | b'_'))
                && word.contains('I')
                && word.contains('l')
                || word.bytes().all(|b| matches!(b, b'O' | b'0' | b'o' | b'_'))
                    && word.contains('O')
                    && word.contains('0'));
        if alike {
            count += 1;
            start.get_or_insert(Span::new(at, at + length));
            if count >= 4 {
                return start;
            }
        }
        at += length + 1;
    }
    None
}

/// A long line of `[]()!+` and nothing else.
fn six_characters(text: &str) -> Option<Span> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.len() > 400 && line.starts_with(['[', '(', '!', '+']) {
            let odd = line.bytes().filter(|b| !b"[]()!+\n;".contains(b)).count();
            if odd * 20 < line.len() {
                return Some(Span::new(at, at + 40));
            }
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mangled_names_are_seen() {
        assert!(hexadecimal_names("var _0x12ab=1,_0x34cd=_0x12ab;_0x34cd()").is_some());
        assert!(hexadecimal_names("const _0xff = 1; let mask_0x12ab = 2;").is_none());
        assert!(
            confusable_names("IlIlIlIl = 1; IIllIIll = IlIlIlIl; lIlIlIlI(IIllIIll)").is_some()
        );
        assert!(confusable_names("OOOOOOOO IIIIIIII").is_none());
    }

    #[test]
    fn six_characters_are_seen() {
        assert!(six_characters(&"[][(![]+[])[+[]]]".repeat(40)).is_some());
        assert!(six_characters("[1, 2, 3]").is_none());
    }
}
