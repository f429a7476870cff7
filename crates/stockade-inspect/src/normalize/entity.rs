//! HTML character references.

/// The longest reference looked at, `&` and `;` included.
const MAX_REFERENCE_BYTES: usize = 12;

/// Reads the reference that `text` starts with: its character and how many bytes it takes.
///
/// Numeric references in both bases, and the named ones that text uses for its own letters and
/// punctuation. Unknown names are left alone.
pub(crate) fn parse(text: &[u8]) -> Option<(char, usize)> {
    let end = text
        .iter()
        .take(MAX_REFERENCE_BYTES)
        .position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(text.get(1..end)?).ok()?;
    let character = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
        None => named(name)?,
    };
    Some((character, end + 1))
}

fn named(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "apos" => '\'',
        "colon" => ':',
        "comma" => ',',
        "commat" => '@',
        "excl" => '!',
        "gt" => '>',
        "lbrack" => '[',
        "lpar" => '(',
        "lt" => '<',
        "nbsp" | "ensp" | "emsp" | "thinsp" | "Tab" | "NewLine" => ' ',
        "num" => '#',
        "period" => '.',
        "quot" => '"',
        "rbrack" => ']',
        "rpar" => ')',
        "semi" => ';',
        "shy" => '\u{ad}',
        "sol" => '/',
        "zwj" => '\u{200d}',
        "zwnj" => '\u{200c}',
        "ZeroWidthSpace" => '\u{200b}',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_decimal_hex_and_named() {
        assert_eq!(parse(b"&#105;g"), Some(('i', 6)));
        assert_eq!(parse(b"&#x69;"), Some(('i', 6)));
        assert_eq!(parse(b"&amp; co"), Some(('&', 5)));
    }

    #[test]
    fn leaves_everything_else_alone() {
        for text in [
            &b"&"[..],
            b"&;",
            b"& b;",
            b"&nosuch;",
            b"&#x110000;",
            b"&#xd800;",
            b"&&&&&&&&&&&&&;",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
