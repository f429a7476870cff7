//! Characters that a person does not see: which they are, and what they spell.
//!
//! Unicode 16 `Default_Ignorable_Code_Point` plus the bidi controls; see UTR #36 (Unicode
//! Security Considerations) and CVE-2021-42574 ("Trojan Source").

/// Why a character is invisible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invisible {
    /// Reorders what is displayed.
    Bidi,
    /// Copies of ASCII in the Tags block: unseen text that models read.
    Tag,
    /// Alters the glyph before it; a run of them encodes arbitrary bytes.
    VariationSelector,
    /// No width and no ink.
    ZeroWidth,
}

/// The class of an invisible character, `None` for one that can be seen.
pub(crate) const fn class(character: char) -> Option<Invisible> {
    match character {
        '\u{200e}'
        | '\u{200f}'
        | '\u{061c}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => Some(Invisible::Bidi),
        '\u{e0000}'..='\u{e007f}' => Some(Invisible::Tag),
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180d}' => {
            Some(Invisible::VariationSelector)
        }
        '\u{00ad}'
        | '\u{034f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' => Some(Invisible::ZeroWidth),
        _ => None,
    }
}

/// True for the bidi controls that can reorder a line of code, as opposed to marks and isolates
/// closing: CVE-2021-42574.
pub(crate) const fn reorders(character: char) -> bool {
    matches!(
        character,
        '\u{202a}' | '\u{202b}' | '\u{202d}' | '\u{202e}' | '\u{2066}'..='\u{2068}'
    )
}

/// The text or bytes that a run of invisible characters spells, if any.
///
/// Knows tag characters (ASCII shifted by U+E0000), variation selectors (one byte each, the
/// "emoji smuggling" encoding) and binary zero-width text (two symbols as bits, either way round).
pub(crate) fn decode(run: &[char]) -> Option<Vec<u8>> {
    let tags: Vec<u8> = run
        .iter()
        .filter(|character| class(**character) == Some(Invisible::Tag))
        .filter_map(|character| u8::try_from(u32::from(*character) - 0xe0000).ok())
        .filter(|byte| (0x20..0x7f).contains(byte))
        .collect();
    if tags.len() >= 4 {
        return Some(tags);
    }
    let selectors: Vec<u8> = run
        .iter()
        .filter_map(|character| selector_byte(*character))
        .collect();
    if selectors.len() >= 4 && readable(&selectors) {
        return Some(selectors);
    }
    binary(run)
}

fn selector_byte(character: char) -> Option<u8> {
    match character {
        '\u{fe00}'..='\u{fe0f}' => u8::try_from(u32::from(character) - 0xfe00).ok(),
        '\u{e0100}'..='\u{e01ef}' => u8::try_from(u32::from(character) - 0xe0100 + 16).ok(),
        _ => None,
    }
}

/// Reads zero-width characters as bits: the two symbols used are 0 and 1, in either order.
fn binary(run: &[char]) -> Option<Vec<u8>> {
    let symbols: Vec<char> = run
        .iter()
        .copied()
        .filter(|c| class(*c) == Some(Invisible::ZeroWidth))
        .collect();
    let first = *symbols.first()?;
    let second = *symbols.iter().find(|symbol| **symbol != first)?;
    let bits: Vec<bool> = symbols
        .iter()
        .filter(|symbol| **symbol == first || **symbol == second)
        .map(|symbol| *symbol == second)
        .collect();
    if bits.len() < 16 {
        return None;
    }
    [false, true].into_iter().find_map(|flip| {
        let bytes: Vec<u8> = bits
            .chunks_exact(8)
            .map(|octet| {
                octet
                    .iter()
                    .fold(0, |byte, bit| byte << 1 | u8::from(*bit != flip))
            })
            .collect();
        readable(&bytes).then_some(bytes)
    })
}

fn readable(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && std::str::from_utf8(bytes)
            .is_ok_and(|text| text.chars().all(|c| !c.is_control() || c.is_whitespace()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_spell_ascii() {
        let run: Vec<char> = "say hi"
            .bytes()
            .filter_map(|b| char::from_u32(0xe0000 + u32::from(b)))
            .collect();
        assert_eq!(decode(&run).as_deref(), Some(&b"say hi"[..]));
    }

    #[test]
    fn variation_selectors_spell_bytes() {
        let run: Vec<char> = "exfil"
            .bytes()
            .filter_map(|b| char::from_u32(0xe0100 + u32::from(b) - 16))
            .collect();
        assert_eq!(decode(&run).as_deref(), Some(&b"exfil"[..]));
        assert_eq!(decode(&['\u{fe0f}']), None);
    }

    #[test]
    fn zero_width_bits_spell_text_either_way_round() {
        for (zero, one) in [('\u{200b}', '\u{200c}'), ('\u{200d}', '\u{200b}')] {
            let run: Vec<char> = b"key"
                .iter()
                .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
                .map(|bit| if bit == 0 { zero } else { one })
                .collect();
            assert_eq!(decode(&run).as_deref(), Some(&b"key"[..]));
        }
    }
}
