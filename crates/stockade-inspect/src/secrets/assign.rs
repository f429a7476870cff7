//! Values given to names that promise a secret: `password = "…"`, `--token …`, `<secret>…`.
//!
//! The name decides what a value must look like. A password may be any word, if the assignment
//! leaves no doubt; a token must look random. Placeholders, references, type names and prose are
//! sorted out here.

use std::ops::Range;

use super::name::{Promise, promise};
use super::shape::{
    contains, entropy, is_example, is_filler, is_reference, is_uuid, is_wordy, kinds,
};

/// A value that looks like a secret.
#[derive(Debug, PartialEq)]
pub(super) struct Assigned {
    pub(super) value: Range<usize>,
    pub(super) promise: Promise,
    pub(super) confidence: f32,
}

/// Longest value looked at.
const LONGEST: usize = 512;
/// The same without quotes.
const LONGEST_BARE: usize = 256;

/// Looks for an assignment whose name holds the bytes at `at`.
pub(super) fn at(text: &[u8], at: usize) -> Option<Assigned> {
    let start = at
        - text
            .get(..at)?
            .iter()
            .rev()
            .take(48)
            .take_while(|b| is_name(**b))
            .count();
    let end = at
        + text
            .get(at..)?
            .iter()
            .take(48)
            .take_while(|b| is_name(**b))
            .count();
    // A trailing separator is not part of the name: `--password-`, `token.`.
    let name = text.get(start..end)?;
    // `AWS::AppSync::ApiKey` is the name of a type.
    if text.get(..start)?.ends_with(b"::") {
        return None;
    }
    let promise = promise(name)?;
    let flag = name.starts_with(b"-");
    let (from, sign) = operator(text, start..end, flag)?;
    let (value, quoted) = value(text, from)?;
    let bytes = text.get(value.clone())?;
    let follow = text.get(value.end + usize::from(quoted)).copied();
    let in_list = text.get(..start)?.iter().rev().find(|b| **b != b' ') == Some(&b';');
    let context = Context {
        name,
        promise,
        sign,
        quoted,
        follow,
        line_start: is_line_start(text, start),
        paired: is_paired(text, start, value.end),
        connection: sign == Sign::Equals && in_list && matches!(follow, Some(b';' | b'"' | b'\'')),
    };
    let confidence = context.judge(bytes)?;
    Some(Assigned {
        value,
        promise,
        confidence,
    })
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// How the value is tied to the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// `:`, as in YAML, JSON and headers, but also before a type.
    Colon,
    /// `=`, `:=`, `=>`, `==`, `!=`.
    Equals,
    /// A comma, a blank or a word: `set("password", "x")`, `password x`, `password is "x"`.
    Loose,
    /// `>` of an XML element or attribute.
    Tag,
}

/// Finds the sign after a name and where the value starts.
fn operator(text: &[u8], Range { start, end }: Range<usize>, flag: bool) -> Option<(usize, Sign)> {
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
    let blank = skip(&mut at, |b| matches!(b, b' ' | b'\t'), 24);
    let sign = match text.get(at..)? {
        [b':' | b'!' | b'?' | b'+', b'=', ..] | [b'=', b'>' | b'=', ..] => {
            at += 2;
            if text.get(at) == Some(&b'=') {
                at += 1;
            }
            Sign::Equals
        }
        // POSIX make.
        [b':', b':', b'=', ..] => {
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
            match declared(rest) {
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
        [b',', ..] if closed > 0 => {
            at += 1;
            Sign::Loose
        }
        rest if blank > 0 && closed == 0 && declared(rest).is_some() => {
            at += declared(rest)?;
            Sign::Equals
        }
        [b'>', ..] if closed == 0 && blank == 0 => {
            at += 1;
            Sign::Tag
        }
        [b'i', b's', b' ', ..] if blank > 0 => {
            at += 3;
            Sign::Loose
        }
        // "the password for user 'x' is 'y'"
        [b'f', b'o', b'r', b' ', ..] | [b'o', b'f', b' ', ..] if blank > 0 => {
            let rest = text.get(at..(at + 60).min(text.len()))?;
            let rest = rest.split(|byte| *byte == b'\n').next()?;
            let after = [&b" is '"[..], b" is \"", b": "].iter().find_map(|is| {
                let found = memchr::memmem::find(rest, is)?;
                Some(found + is.len() - usize::from(is.len() > 2))
            })?;
            at += after;
            Sign::Loose
        }
        _ if blank > 0 && closed == 0 && (flag || matches!(text.get(at), Some(b'"' | b'\''))) => {
            Sign::Loose
        }
        _ if blank > 0 && closed == 0 && is_setter(text, start) => Sign::Loose,
        _ => return None,
    };
    skip(&mut at, |b| matches!(b, b' ' | b'\t'), 24);
    // YAML and JSON may put the value on the next line.
    if sign != Sign::Loose && text.get(at) == Some(&b'\n') {
        let mut next = at + 1;
        skip(&mut next, |b| matches!(b, b' ' | b'\t'), 24);
        if matches!(text.get(next), Some(b'"' | b'\'')) {
            at = next;
        }
    }
    Some((at, sign))
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
    const SETTERS: [&[u8]; 6] = [
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

/// The value at `from`, without its quotes.
fn value(text: &[u8], from: usize) -> Option<(Range<usize>, bool)> {
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
            match body.get(length)? {
                b'\\' if lead == 1 && body.get(length + 1) == Some(quote) => break,
                b'\\' => length += 2,
                byte if byte == quote => break,
                b'\n' => return None,
                _ => length += 1,
            }
            if length > LONGEST {
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
                && value.get(..at).is_some_and(|name| name.len() < 12)
        });
    (length > 0 && !nested).then_some((from..from + length, false))
}

/// True for a setting whose neighbour names a user: `user = x`, then `password = y`.
fn is_paired(text: &[u8], start: usize, end: usize) -> bool {
    let before = text
        .get(start.saturating_sub(160)..start)
        .unwrap_or_default();
    let around = text.get(start.saturating_sub(160)..end).unwrap_or_default();
    let names_user = ["user", "login", "uid"]
        .iter()
        .any(|word| contains(&before.to_ascii_lowercase(), word.as_bytes()));
    names_user
        && before.contains(&b'\n')
        && !around
            .iter()
            .any(|b| matches!(b, b'(' | b')' | b';' | b'{' | b'[' | b','))
}

fn is_line_start(text: &[u8], at: usize) -> bool {
    // Bounded: a line may be as long as the window.
    let near = text.get(at.saturating_sub(24)..at).unwrap_or_default();
    let lead = near
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    lead.iter().all(|byte| {
        matches!(
            byte,
            b' ' | b'\t' | b'#' | b'-' | b'/' | b'*' | b'"' | b'\''
        )
    }) || lead.ends_with(b"export ")
        || lead.ends_with(b"ENV ")
        || lead.ends_with(b"set ")
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about where the value stands"
)]
struct Context<'a> {
    name: &'a [u8],
    promise: Promise,
    sign: Sign,
    quoted: bool,
    /// The byte after the value.
    follow: Option<u8>,
    line_start: bool,
    /// An item of `Server=…;User Id=…;Password=…;`.
    connection: bool,
    /// Below a line that names a user, in a file of settings.
    paired: bool,
}

impl Context<'_> {
    fn judge(&self, value: &[u8]) -> Option<f32> {
        if self.connection
            && self.promise == Promise::Password
            && value.len() >= 3
            && !is_reference(value)
            && !is_filler(value)
        {
            return Some(0.55);
        }
        let random = looks_random(value) || self.is_sequence(value);
        if value.len() < 4
            || !(random || self.promise == Promise::Password)
            || self.repeats_name(value)
            || (self.sign == Sign::Loose && self.name.to_ascii_lowercase().ends_with(b"pass"))
            || is_reference(value)
            || is_example(value)
            || (is_filler(value) && !self.is_sequence(value))
            || self.is_call(value)
            || STOP_VALUES
                .iter()
                .any(|word| value.eq_ignore_ascii_case(word.as_bytes()))
        {
            return None;
        }
        if random {
            return self.judge_random(value);
        }
        (self.promise == Promise::Password)
            .then(|| self.judge_password(value))
            .flatten()
    }

    /// `ChallengePassword = "challengePassword"`
    fn repeats_name(&self, value: &[u8]) -> bool {
        let letters = |text: &[u8]| -> Vec<u8> {
            text.iter()
                .filter(|b| b.is_ascii_alphanumeric())
                .map(u8::to_ascii_lowercase)
                .collect()
        };
        letters(self.name).ends_with(&letters(value))
    }

    /// A long hexadecimal sequence under a telling name: a poor key, but perhaps one in use.
    fn is_sequence(&self, value: &[u8]) -> bool {
        let kinds = (0..=255_u8).filter(|byte| value.contains(byte)).count();
        self.promise == Promise::Token
            && value.len() >= 32
            && kinds >= 12
            && value.iter().all(u8::is_ascii_hexdigit)
    }

    /// A bare value that goes on as code: `password = read(…)`, `token = a.b[c]`.
    fn is_call(&self, value: &[u8]) -> bool {
        !self.quoted
            && !self.paired
            && (value.iter().any(|b| matches!(b, b'(' | b'[' | b'{'))
                || self.follow == Some(b'(')
                || (value.contains(&b'.') || value.contains(&b'_')) && longest_word(value) >= 5
                || contains(value, b"->")
                || contains(value, b"::"))
    }

    fn judge_random(&self, value: &[u8]) -> Option<f32> {
        let shortest = match self.promise {
            Promise::Password => 6,
            Promise::Token => 12,
            Promise::Key => 14,
        };
        if value.len() < shortest || value.contains(&b' ') || is_location(value) {
            return None;
        }
        if is_uuid(value) {
            return (self.promise != Promise::Key && self.sign != Sign::Loose).then_some(0.6);
        }
        if !self.quoted
            && self.sign == Sign::Loose
            && self.promise != Promise::Token
            && value.len() < 8
        {
            return None;
        }
        let base = if self.promise == Promise::Key {
            0.75
        } else {
            0.85
        };
        Some(if self.quoted { base + 0.1 } else { base })
    }

    /// A word that a person chose.
    fn judge_password(&self, value: &[u8]) -> Option<f32> {
        let lower = value.to_ascii_lowercase();
        if value.len() > 40
            || value.iter().any(u8::is_ascii_whitespace)
            || !value.is_ascii()
            || is_about_passwords(&lower)
            || is_location(value)
            || matches!(value.last(), Some(b':' | b'?' | b'.')) && kinds(value) < 4
            || matches!(
                value.first(),
                Some(b'#' | b'.' | b'-' | b'/' | b'%' | b'*' | b'@' | b'=' | b':' | b'(')
            )
        {
            return None;
        }
        let mixed = kinds(value) >= 2;
        // `Password: Passwort` in a table of translations.
        let capitalised = value.first().is_some_and(u8::is_ascii_uppercase)
            && value.iter().skip(1).all(u8::is_ascii_lowercase);
        if capitalised {
            return None;
        }
        // A word with one separator may be a name in the code: `user_input`, `form-value`.
        let word_like = value
            .iter()
            .all(|b| b.is_ascii_lowercase() || matches!(b, b'_' | b'-'));
        if self.quoted {
            return Some(if mixed && !word_like { 0.7 } else { 0.5 });
        }
        let env = self.sign == Sign::Equals
            && self.line_start
            && self.name.iter().all(|b| !b.is_ascii_lowercase());
        let config = self.sign == Sign::Equals
            && self.line_start
            && self.follow.is_none_or(|b| b.is_ascii_whitespace());
        let strong = mixed && !word_like && !contains(value, b".") && value.len() >= 6;
        match self.sign {
            Sign::Equals if env => Some(0.6),
            Sign::Equals if config && (strong || word_like) => Some(0.45),
            Sign::Equals if strong => Some(0.5),
            Sign::Colon if strong && self.line_start => Some(0.5),
            Sign::Tag if value.len() >= 5 => Some(0.5),
            Sign::Loose if strong && value.iter().any(u8::is_ascii_digit) => Some(0.45),
            _ => None,
        }
    }
}

/// True for `user_password`, `Password2`: a name rather than a value. Not for `thisismypassword`.
fn is_about_passwords(lower: &[u8]) -> bool {
    (contains(lower, b"password") || contains(lower, b"passwd"))
        && (lower.len() < 14 || !lower.iter().all(u8::is_ascii_lowercase))
}

/// True for something a machine made: mixed characters without words.
pub(super) fn looks_random(value: &[u8]) -> bool {
    if value.len() < 6
        || value
            .iter()
            .any(|b| b.is_ascii_whitespace() || !b.is_ascii_graphic())
    {
        return false;
    }
    let digits = value.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = value.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let changes = value
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if class(*a) != class(*b)))
        .count();
    let mixed_case =
        value.iter().any(u8::is_ascii_lowercase) && value.iter().any(u8::is_ascii_uppercase);
    let hex = value.iter().all(u8::is_ascii_hexdigit);
    // Signs of code and patterns; long keys of web frameworks hold them too.
    let signs = value
        .iter()
        .any(|b| matches!(b, b'[' | b'{' | b'(' | b'|' | b'\\' | b'<'));
    if (signs && (value.len() < 40 || digits < 3)) || holds_words(value) {
        return false;
    }
    if hex && value.len() >= 16 {
        return digits >= 3 && letters >= 3 && entropy(value) >= 2.7;
    }
    if value.len() < 12 {
        return digits >= 2 && letters >= 2 && changes >= 4;
    }
    let dense = changes * 100 >= value.len() * 18;
    entropy(value) >= 3.0
        && ((digits >= 2 && letters >= 4 && changes >= 4 && dense)
            || (digits >= 1 && value.len() >= 16 && changes >= 2 && !is_wordy(value))
            || (mixed_case
                && digits >= 1
                && value.len() >= 24
                && changes * 100 >= value.len() * 28))
}

/// True if a long run of lower-case letters reads like words.
fn holds_words(value: &[u8]) -> bool {
    value
        .split(|byte| !byte.is_ascii_lowercase())
        .any(|run| run.len() >= 9 && is_wordy(run))
}

/// The longest run of lower-case letters: words have them, random text hardly.
fn longest_word(value: &[u8]) -> usize {
    value
        .split(|byte| !byte.is_ascii_lowercase())
        .map(<[u8]>::len)
        .max()
        .unwrap_or_default()
}

fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    }
}

/// Paths, URLs, versions, dates, e-mail addresses, file names.
fn is_location(value: &[u8]) -> bool {
    const SUFFIXES: [&[u8]; 14] = [
        b".json", b".txt", b".pem", b".key", b".yml", b".yaml", b".toml", b".env", b".md",
        b".html", b".crt", b".js", b".py", b".go",
    ];
    contains(value, b"://")
        || value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"../")
        || value.starts_with(b"~/")
        || value.starts_with(b"arn:")
        || value.starts_with(b"sha256:")
        || SUFFIXES.iter().any(|suffix| value.ends_with(suffix))
        || value
            .iter()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b':' | b'/' | b'T' | b'Z'))
}

const STOP_VALUES: [&str; 60] = [
    "password",
    "passwd",
    "pass",
    "secret",
    "token",
    "none",
    "null",
    "nil",
    "true",
    "false",
    "string",
    "str",
    "text",
    "bytes",
    "undefined",
    "default",
    "required",
    "optional",
    "test",
    "testing",
    "value",
    "number",
    "bool",
    "boolean",
    "object",
    "hidden",
    "input",
    "char",
    "varchar",
    "basic",
    "bearer",
    "digest",
    "credentials",
    "apikey",
    "api_key",
    "api-key",
    "access_token",
    "refresh_token",
    "username",
    "user",
    "empty",
    "auto",
    "prompt",
    "ask",
    "disabled",
    "enabled",
    "unset",
    "deprecated",
    "sensitive",
    "self",
    "this",
    "name",
    "email",
    "plain",
    "plaintext",
    "keyring",
    "oauth",
    "oauth2",
    "jwt",
    "hashed",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        let keyword = ["password", "passwd", "pass", "secret", "token", "key"]
            .iter()
            .find_map(|word| text.to_ascii_lowercase().find(word))?;
        let assigned = at(text.as_bytes(), keyword)?;
        Some(text.get(assigned.value)?.to_owned())
    }

    #[test]
    fn assignments_of_many_kinds() {
        for (text, value) in [
            (
                r#""api_key": "9f8A7c6D5e4F3b2A1c0D""#,
                "9f8A7c6D5e4F3b2A1c0D",
            ),
            (r#"password = "tr0ub4dor&3""#, "tr0ub4dor&3"),
            ("DB_PASSWORD=opensesame", "opensesame"),
            ("--token 8fj3kd93kd02ls83jd74", "8fj3kd93kd02ls83jd74"),
            ("<password>s3cr3tP4ss</password>", "s3cr3tP4ss"),
            (
                r#"setenv("AUTH_TOKEN", "aB3dE5fG7hJ9kL1m")"#,
                "aB3dE5fG7hJ9kL1m",
            ),
            (r"$password = 'goodspec';", "goodspec"),
            (
                "secret: 6fb1cff7690db9ac066cadbbde8e3c07",
                "6fb1cff7690db9ac066cadbbde8e3c07",
            ),
            ("The password is 'Secret123'", "Secret123"),
        ] {
            assert_eq!(found(text).as_deref(), Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_no_secret() {
        for text in [
            "token: string",
            "func login(password string, retries int)",
            r#"password = "changeme""#,
            r#"password: "${DB_PASSWORD}""#,
            "password = getpass.getpass()",
            "api_key = os.environ['API_KEY']",
            "secret_name: my-app-config",
            "token = self.request.headers.token",
            r#""password": "Passwort""#,
            r#"password: "Forgot your password?""#,
            "passwordField.placeholder = 'x'",
            "token = tokens[i]",
            "key: value",
            "ssh keys",
            "secret = 12345678",
            "password=",
            "token:",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
