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

/// `IlIIlIlI`, `O0OO0O0O`: letters chosen to look alike.
fn confusable_names(text: &str) -> Option<Span> {
    const NAME: u8 = 1;
    const LINES: u8 = 1 << 1;
    const RINGS: u8 = 1 << 2;
    const CLASSES: [u8; 256] = {
        let mut classes = [0; 256];
        let mut byte = 0u8;
        while byte < 128 {
            classes[byte as usize] = match byte {
                b'I' | b'l' | b'1' => NAME | LINES,
                b'O' | b'0' | b'o' => NAME | RINGS,
                b'_' => NAME | LINES | RINGS,
                _ if byte.is_ascii_alphanumeric() => NAME,
                _ => 0,
            };
            byte += 1;
        }
        classes
    };
    let bytes = text.as_bytes();
    let mut count = 0usize;
    let mut first = None;
    let mut start = 0;
    // What all characters of the name so far have in common.
    let mut common = u8::MAX;
    for (at, byte) in bytes.iter().copied().chain([b' ']).enumerate() {
        let class = CLASSES[usize::from(byte)];
        if class != 0 {
            common &= class;
            continue;
        }
        let name = bytes.get(start..at).unwrap_or_default();
        let has = |byte| name.contains(&byte);
        let alike = name.len() >= 8
            && common & (LINES | RINGS) != 0
            && !name[0].is_ascii_digit()
            && (has(b'I') && has(b'l') || has(b'O') && has(b'0'));
        if alike {
            count += 1;
            let first = *first.get_or_insert(Span::new(start, at));
            if count >= 4 {
                return Some(first);
            }
        }
        start = at + 1;
        common = u8::MAX;
    }
    None
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
