//! How a value is tied to its name: signs of many languages, and where the value begins and ends.

use std::ops::Range;

/// Longest value looked at.
const MAX_VALUE_BYTES: usize = 512;
/// The same without quotes.
const LONGEST_BARE: usize = 256;

/// How the value is tied to the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// `:`, as in YAML, JSON and headers, but also before a type.
    Colon,
    /// `=`, `:=`, `=>`, `==`, `!=`.
    Equals,
    /// A comma, a blank or a word: `set("password", "x")`, `password x`, `password is "x"`.
    Loose,
    /// `(`: a string as the only argument of a call.
    Call,
    /// `>` of an XML element or attribute.
    Tag,
}

/// Finds the sign after a name and where the value starts.
pub(super) fn operator(
    text: &[u8],
    Range { start, end }: Range<usize>,
    flag: bool,
) -> Option<(usize, Sign)> {
    let mut at = end;
    let skip = |at: &mut usize, accept: fn(u8) -> bool, most: usize| {
        let count = text
            .get(*at..)
            .unwrap_or_default()
            .iter()
            .take(most)
            .take_while(|b| accept(**b))
            .count();
        *at += count;
        count
    };
    // Closing quotes and brackets of the name: `"password"`, `['token']`, `\"key\"`.
    let closed = skip(
        &mut at,
        |b| matches!(b, b'"' | b'\'' | b'`' | b']' | b')' | b'\\'),
        4,
    );
    at += suffix(text.get(at..)?, closed > 0);
    let blank = skip(&mut at, |b| matches!(b, b' ' | b'\t'), 24);
    let sign = match text.get(at..)? {
        [b':' | b'!' | b'?' | b'+' | b'.', b'=', ..] | [b'=', b'>' | b'=', ..] => {
            at += 2;
            if text.get(at) == Some(&b'=') {
                at += 1;
            }
            Sign::Equals
        }
        // The last is POSIX make's.
        [b'|', b'|', b'=', ..] | [b'?', b'?', b'=', ..] | [b':', b':', b'=', ..] => {
            at += 3;
            Sign::Equals
        }
        [b':', b':', b':', b'=', ..] => {
            at += 4;
            Sign::Equals
        }
        [b':', b':', ..] => return None,
        [b'=', ..] => {
            at += 1;
            Sign::Equals
        }
        [b':', rest @ ..] => {
            at += 1;
            match declared(rest).or_else(|| inside(rest)) {
                Some(after) => {
                    at += after;
                    Sign::Equals
                }
                None => Sign::Colon,
            }
        }
        rest if (closed > 0 || blank == 0) && paired_value(rest).is_some() => {
            at += paired_value(rest)?;
            Sign::Equals
        }
        rest if closed > 0 && inside(rest).is_some() => {
            at += inside(rest)?;
            Sign::Equals
        }
        [b',', ..] if closed > 0 => {
            at += 1;
            Sign::Loose
        }
        rest if blank > 0 && closed == 0 && declared(rest).is_some() => {
            at += declared(rest)?;
            Sign::Equals
        }
        [b'>', ..] if closed == 0 && blank == 0 && opens_tag(text, start) => {
            at += 1;
            Sign::Tag
        }
        // `<string name="secret">value`
        [b'>', ..] if closed == 1 && blank == 0 && names_element(text, start) => {
            at += 1;
            Sign::Tag
        }
        [b'(', b'"' | b'\'', ..] if closed == 0 && blank == 0 => {
            at += 1;
            Sign::Call
        }
        [b'i', b's', b' ', ..] if blank > 0 => {
            at += 3;
            Sign::Loose
        }
        // "the password for user 'x' is 'y'"
        [b'f', b'o', b'r', b' ', ..] | [b'o', b'f', b' ', ..] if blank > 0 => {
            at += said_later(text, at)?;
            Sign::Loose
        }
        _ if blank > 0 && closed == 0 && (flag || matches!(text.get(at), Some(b'"' | b'\''))) => {
            Sign::Loose
        }
        _ if blank > 0 && closed == 0 && is_setter(text, start) => Sign::Loose,
        _ => return None,
    };
    skip(&mut at, |b| matches!(b, b' ' | b'\t'), 24);
    if sign != Sign::Loose {
        at = next_line(text, at, sign).unwrap_or(at);
    }
    Some((at, sign))
}

/// The length of what belongs to the name without being part of it: C's `char token[] = "…"`, Go's
/// `token, err := "…"`, Perl's `$ENV{"token"} = "…"`.
fn suffix(rest: &[u8], is_quoted: bool) -> usize {
    match rest {
        [b'[', b']', ..] => 2,
        [b',', b' ', b'e', b'r', b'r', b' ', b':', b'=', ..] => 5,
        [b'}', b' ', b'=', ..] if is_quoted => 1,
        _ => 0,
    }
}

/// How far on the value is told: "for user 'x' is 'y'".
fn said_later(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..(at + 60).min(text.len()))?;
    let rest = rest.split(|byte| *byte == b'\n').next()?;
    [&b" is '"[..], b" is \"", b": "].iter().find_map(|is| {
        let found = memchr::memmem::find(rest, is)?;
        Some(found + is.len() - usize::from(is.len() > 2))
    })
}

/// True for `<name`, but not for `I<name` of Perl's manuals or `List<name` of a program.
fn opens_tag(text: &[u8], start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    match before {
        [.., first, b'<'] => !first.is_ascii_alphanumeric(),
        [b'<'] => true,
        // A name in an attribute, or with a prefix: `<a:password>`, `<item key=password>`.
        [.., last] => matches!(last, b':' | b'=' | b' '),
        [] => false,
    }
}

/// True after `name="` or `key="`: the attribute that says what an element holds.
fn names_element(text: &[u8], start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    [&b"name=\""[..], b"key=\"", b"id=\""]
        .iter()
        .any(|attribute| before.ends_with(attribute))
}

/// YAML, JSON and XML may put the value on the next line: quoted, in a block (`>-`), or alone in
/// an element.
fn next_line(text: &[u8], at: usize, sign: Sign) -> Option<usize> {
    let rest = text.get(at..)?;
    let block = match rest {
        [b'>' | b'|', b'-' | b'+', ..] if sign == Sign::Colon => 2,
        [b'>' | b'|', ..] if sign == Sign::Colon => 1,
        _ => 0,
    };
    let line = rest.get(block..)?;
    let line = line.strip_prefix(b"\r").unwrap_or(line);
    let after = line.strip_prefix(b"\n")?;
    let blank = after
        .iter()
        .take(64)
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    let quoted = matches!(after.get(blank), Some(b'"' | b'\''));
    (quoted || blank > 0 && (block > 0 || sign == Sign::Tag))
        .then(|| at + (rest.len() - after.len()) + blank)
}

/// The value inside an object or block that belongs to the name: `variable "token" { default =`,
/// `"password": { "value":`. Returns where the value begins.
fn inside(rest: &[u8]) -> Option<usize> {
    let open = rest
        .iter()
        .take(8)
        .take_while(|b| b.is_ascii_whitespace())
        .count();
    if rest.get(open) != Some(&b'{') {
        return None;
    }
    let block = rest.get(open + 1..rest.len().min(open + 300))?;
    let block = block.split(|byte| *byte == b'}').next()?;
    let end = ["default", "value"].iter().find_map(|word| {
        let at = memchr::memmem::find(block, word.as_bytes())?;
        let before = block.get(..at)?.last()?;
        (before.is_ascii_whitespace() || matches!(before, b'"' | b'\'')).then_some(at + word.len())
    })?;
    let after = block.get(end..)?;
    let gap = after
        .iter()
        .take(16)
        .take_while(|b| matches!(b, b' ' | b'"' | b'\''))
        .count();
    matches!(after.get(gap), Some(b':' | b'=')).then(|| open + 1 + end + gap + 1)
}

/// A type between a name and `=`: `token string = "…"`, `secret: &str = "…"`. Returns where the
/// value begins.
fn declared(rest: &[u8]) -> Option<usize> {
    const TYPES: [&str; 8] = [
        "string",
        "str",
        "char",
        "secretstr",
        "text",
        "varchar",
        "any",
        "bytes",
    ];
    let equals = rest.iter().take(32).position(|byte| *byte == b'=')?;
    let kind = rest.get(..equals)?;
    let after = rest.get(equals + 1..)?;
    let quote = after.iter().position(|byte| *byte != b' ')?;
    let words = kind.split(|byte| !byte.is_ascii_alphanumeric());
    let known = words.filter(|word| !word.is_empty()).any(|word| {
        TYPES
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
    });
    let plain = kind
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || b" &'*<>[]?._".contains(b));
    let quoted = matches!(after.get(quote), Some(b'"' | b'\'' | b'`'));
    (known && plain && quoted).then_some(equals + 1)
}

/// The other half of a pair: `"name": "TOKEN", "value": "…"`, `<add key="token" value="…"/>`.
/// Returns where the value begins.
fn paired_value(rest: &[u8]) -> Option<usize> {
    let gap = rest
        .iter()
        .take(32)
        .take_while(|b| b.is_ascii_whitespace() || matches!(b, b',' | b'"' | b'\''))
        .count();
    let word = rest.get(gap..gap + 5)?;
    if gap == 0 && rest.first() != Some(&b'v') && rest.first() != Some(&b'V')
        || !word.eq_ignore_ascii_case(b"value")
    {
        return None;
    }
    let mut at = gap + 5;
    at += rest
        .get(at..)?
        .iter()
        .take(3)
        .take_while(|b| matches!(b, b'"' | b'\'' | b' '))
        .count();
    matches!(rest.get(at), Some(b':' | b'=')).then_some(at + 1)
}

/// True after a command that gives a variable its value without a sign: `ENV NAME value`.
fn is_setter(text: &[u8], start: usize) -> bool {
    const SETTERS: [&[u8]; 9] = [
        b"configure set ",
        b"config set ",
        b"secret set ",
        b"ENV ",
        b"ARG ",
        b"setx ",
        b"setenv ",
        b"set -x ",
        b"set -gx ",
    ];
    let before = text.get(..start).unwrap_or_default();
    SETTERS.iter().any(|setter| {
        before.ends_with(setter)
            && before
                .get(..before.len() - setter.len())
                .unwrap_or_default()
                .last()
                .is_none_or(|b| matches!(b, b'\n' | b' ' | b';' | b'\t'))
    })
}

/// True for what stands before a sign inside a bare value, if it is a name.
fn is_short_name(name: &[u8]) -> bool {
    name.len() < 12 && !(name.len() >= 5 && name.iter().any(u8::is_ascii_digit))
}

/// The value at `from`, without its quotes.
pub(super) fn value(text: &[u8], from: usize) -> Option<(Range<usize>, bool)> {
    let rest = text.get(from..)?;
    // `b"…"`, `@"…"`, `\"…\"`.
    let lead = match rest {
        [
            b'b' | b'r' | b'u' | b'f' | b'@' | b'\\' | b'L',
            b'"' | b'\'',
            ..,
        ] => 1,
        _ => 0,
    };
    if let Some(quote @ (b'"' | b'\'' | b'`')) = rest.get(lead) {
        let body = rest.get(lead + 1..)?;
        let mut length = 0;
        loop {
            let Some(byte) = body.get(length) else {
                // A text that was cut off: only what can't be anything else.
                let cut = length >= 16 && !body.iter().any(u8::is_ascii_whitespace);
                let start = from + lead + 1;
                return cut.then_some((start..text.len(), false));
            };
            match byte {
                b'\\' if lead == 1 && body.get(length + 1) == Some(quote) => break,
                b'\\' => length += 2,
                byte if byte == quote => break,
                b'\n' => return None,
                _ => length += 1,
            }
            if length > MAX_VALUE_BYTES {
                return None;
            }
        }
        let start = from + lead + 1;
        return Some((start..start + length, true));
    }
    let length = rest
        .iter()
        .take(LONGEST_BARE)
        .take_while(|b| {
            !b.is_ascii_whitespace()
                && !matches!(
                    b,
                    b',' | b';'
                        | b'"'
                        | b'\''
                        | b'`'
                        | b'<'
                        | b'>'
                        | b')'
                        | b'}'
                        | b']'
                        | b'|'
                        | b'&'
                )
        })
        .count();
    // `key=key=key=…` is a list of names; an equals sign in a value is padding at its end.
    let value = rest.get(..length)?;
    let nested = value
        .iter()
        .position(|byte| matches!(byte, b'=' | b':'))
        .is_some_and(|at| {
            value.get(at + 1).is_some_and(u8::is_ascii_alphanumeric)
                && value.get(..at).is_some_and(is_short_name)
        });
    (length > 0 && !nested).then_some((from..from + length, false))
}
