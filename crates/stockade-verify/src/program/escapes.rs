//! Escapes in string literals, and numbers.

/// Decodes a Python literal's content.
pub(crate) fn python(text: &str, bytes: bool) -> String {
    decode(
        text,
        if bytes {
            Dialect::PythonBytes
        } else {
            Dialect::Python
        },
    )
}

/// Decodes a JavaScript literal's content.
pub(crate) fn javascript(text: &str) -> String {
    decode(text, Dialect::JavaScript)
}

/// Decodes a Go interpreted literal's content.
pub(crate) fn go(text: &str) -> String {
    decode(text, Dialect::Go)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Go,
    /// Has `\u{…}`; an unknown escape is the character itself.
    JavaScript,
    Python,
    /// `\u` means nothing.
    PythonBytes,
}

fn decode(text: &str, dialect: Dialect) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(escape) = chars.next() else {
            out.push('\\');
            break;
        };
        match escape {
            'n' => out.push('\n'),
            't' => out.push('\t'),
            'r' => out.push('\r'),
            'a' => out.push('\u{7}'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'v' => out.push('\u{b}'),
            '\\' | '\'' | '"' | '`' | '$' => out.push(escape),
            '\n' if dialect != Dialect::Go => {}
            'x' => push_digits(&mut chars, 2, 16, &mut out),
            'u' if dialect == Dialect::JavaScript && chars.peek() == Some(&'{') => {
                chars.next();
                push_digits(&mut chars, 6, 16, &mut out);
                chars.next_if_eq(&'}');
            }
            'u' if dialect != Dialect::PythonBytes => push_digits(&mut chars, 4, 16, &mut out),
            'U' if dialect != Dialect::PythonBytes => push_digits(&mut chars, 8, 16, &mut out),
            '0'..='7' => {
                let mut value = escape.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = chars.peek().and_then(|c| c.to_digit(8)) else {
                        break;
                    };
                    value = value * 8 + digit;
                    chars.next();
                }
                out.extend(char::from_u32(value));
            }
            other => {
                if dialect != Dialect::JavaScript {
                    out.push('\\');
                }
                out.push(other);
            }
        }
    }
    out
}

fn push_digits(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    most: usize,
    radix: u32,
    out: &mut String,
) {
    let mut value = 0u32;
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else {
            break;
        };
        value = value * radix + digit;
        chars.next();
    }
    out.extend(char::from_u32(value));
}

/// An integer literal in any base, with `_` between digits.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let plain: String;
    let text = if text.contains('_') {
        plain = text.replace('_', "");
        plain.as_str()
    } else {
        text
    };
    let text = text.trim_end_matches(['n', 'L', 'l', 'j']);
    let prefixed = [
        ("0x", 16),
        ("0X", 16),
        ("0o", 8),
        ("0O", 8),
        ("0b", 2),
        ("0B", 2),
    ];
    for (prefix, radix) in prefixed {
        if let Some(digits) = text.strip_prefix(prefix) {
            return i64::from_str_radix(digits, radix).ok();
        }
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects() {
        assert_eq!(python(r"\x6f\163\n\q\u0041", false), "os\n\\qA");
        assert_eq!(python(r"\x85\u0041", true), "\u{85}\\u0041");
        assert_eq!(javascript(r"\u{65}v\x61l\q"), "evalq");
        assert_eq!(go(r"\x65\101"), "eA");
        assert_eq!(python("a\\", false), "a\\");
        assert_eq!(javascript(r"\uD800"), "");
    }

    #[test]
    fn integers() {
        assert_eq!(integer("0x1F"), Some(31));
        assert_eq!(integer("1_000"), Some(1000));
        assert_eq!(integer("10n"), Some(10));
        assert_eq!(integer("1.5"), None);
    }
}
