//! Backslash escapes of `$'…'`, `printf`, `echo -e` and backquotes.

/// Decodes the inside of `$'…'` (bash(1), QUOTING).
pub(crate) fn ansi(text: &str) -> String {
    decode(text, Style::Ansi)
}

/// Decodes the format of `printf`, where `\ooo` takes up to three octal digits.
pub(crate) fn printf(text: &str) -> String {
    decode(text, Style::Ansi)
}

/// Decodes the argument of `echo -e` and of `printf %b`, where octal is written `\0ooo`.
pub(crate) fn echo(text: &str) -> String {
    decode(text, Style::Echo)
}

/// Whether letters or digits are written as numbers: `\x72`, `\162`, `\u0072`.
pub(crate) fn spells_letters(text: &str) -> bool {
    text.split('\\').skip(1).any(|rest| {
        let (digits, most, radix) = match rest.split_at_checked(1) {
            Some(("x", digits)) => (digits, 2, 16),
            Some(("u", digits)) => (digits, 4, 16),
            Some(("U", digits)) => (digits, 8, 16),
            Some(("0", digits)) => (digits, 3, 8),
            _ => (rest, 3, 8),
        };
        let value = self::digits(digits.as_bytes(), &mut 0, most, radix);
        let letter = value.and_then(char::from_u32);
        letter.is_some_and(|c| c.is_ascii_alphanumeric())
    })
}

/// Removes the backslash before `$`, `` ` `` and `\` within backquotes.
pub(crate) fn backquoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some(&next @ ('$' | '`' | '\\'))) => {
                chars.next();
                out.push(next);
            }
            _ => out.push(c),
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Ansi,
    Echo,
}

fn decode(text: &str, style: Style) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut pos = 0;
    while pos < bytes.len() {
        if bytes[pos] != b'\\' || pos + 1 == bytes.len() {
            out.push(bytes[pos]);
            pos += 1;
            continue;
        }
        let escape = bytes[pos + 1];
        pos += 2;
        match escape {
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'e' | b'E' => out.push(27),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'\\' | b'\'' | b'"' | b'?' => out.push(escape),
            b'x' => number(bytes, &mut pos, 2, 16, &mut out, b"\\x"),
            b'u' => unicode(bytes, &mut pos, 4, &mut out),
            b'U' => unicode(bytes, &mut pos, 8, &mut out),
            b'0' if style == Style::Echo => {
                if bytes.get(pos).is_some_and(|b| (b'0'..=b'7').contains(b)) {
                    number(bytes, &mut pos, 3, 8, &mut out, b"");
                } else {
                    out.push(0);
                }
            }
            b'0'..=b'7' => {
                pos -= 1;
                number(bytes, &mut pos, 3, 8, &mut out, b"\\");
            }
            b'c' if style == Style::Ansi && pos < bytes.len() => {
                out.push(bytes[pos] & 0x1f);
                pos += 1;
            }
            b'c' if style == Style::Echo => break,
            other => out.extend([b'\\', other]),
        }
    }
    String::from_utf8(out)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn digits(bytes: &[u8], pos: &mut usize, most: usize, radix: u32) -> Option<u32> {
    let mut value = None;
    for _ in 0..most {
        let Some(digit) = bytes.get(*pos).and_then(|b| char::from(*b).to_digit(radix)) else {
            break;
        };
        value = Some(value.unwrap_or(0) * radix + digit);
        *pos += 1;
    }
    value
}

fn number(bytes: &[u8], pos: &mut usize, most: usize, radix: u32, out: &mut Vec<u8>, plain: &[u8]) {
    match digits(bytes, pos, most, radix) {
        Some(value) => out.push((value & 0xff).to_le_bytes()[0]),
        None => out.extend_from_slice(plain),
    }
}

fn unicode(bytes: &[u8], pos: &mut usize, most: usize, out: &mut Vec<u8>) {
    let Some(c) = digits(bytes, pos, most, 16).and_then(char::from_u32) else {
        return;
    };
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ansi_decodes_each_kind_of_escape() {
        assert_eq!(ansi(r"\x72\155 \u0041\t\q\'"), "rm A\t\\q'");
    }

    #[test]
    fn echo_wants_a_zero_before_octal() {
        assert_eq!(echo(r"\0162\0155 \x2d\\"), r"rm -\");
    }

    #[test]
    fn a_lone_backslash_stays() {
        assert_eq!(ansi("a\\"), "a\\");
        assert_eq!(ansi(r"\xzz"), r"\xzz");
        assert_eq!(ansi("\\é"), "\\é");
    }

    #[test]
    fn backquotes_lose_one_level() {
        assert_eq!(backquoted(r"echo \`id\` \\ \n \$x"), r"echo `id` \ \n $x");
    }
}
