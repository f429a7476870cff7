//! Values given to names that promise a secret: `password = "…"`, `--token …`, `<secret>…`.
//!
//! The name decides what a value must look like. A password may be any word, if the assignment
//! leaves no doubt; a token must look random. Placeholders, references, type names and prose are
//! sorted out here.

mod random;
mod sign;

use std::ops::Range;

use super::formats::tables::STOP_VALUES;
use super::name::{Promise, promise};
use super::shape::{contains, is_example, is_filler, is_reference, is_uuid, is_wordy, kinds};
pub(super) use random::looks_random;
use random::{is_about_passwords, is_location};
use sign::{Sign, operator, value};

/// A value that looks like a secret.
#[derive(Debug, PartialEq)]
pub(super) struct Assigned {
    pub(super) value: Range<usize>,
    pub(super) promise: Promise,
    pub(super) confidence: f32,
}

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
    let (mut value, quoted) = value(text, from)?;
    let raw_end = value.end;
    // `" value "`: blanks inside the quotes are not part of the value.
    let blanks = |bytes: &[u8]| bytes.len() - bytes.trim_ascii_start().len();
    value.start += blanks(text.get(value.clone())?);
    value.end = value.start + text.get(value.clone())?.trim_ascii_end().len();
    let bytes = text.get(value.clone())?;
    let follow = text.get(raw_end + usize::from(quoted)).copied();
    if !quoted
        && sign == Sign::Equals
        && promise == Promise::Password
        && text.get(end..from)?.trim_ascii() == b"="
        && is_connection(text, start, from)
    {
        return in_connection(text, from);
    }
    let context = Context {
        name,
        promise,
        sign,
        quoted,
        follow,
        line_start: is_line_start(text, start),
        paired: is_paired(text, start, value.end),
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

/// True for an item of a connection string: `Server=…;User Id=…;Password=…;`.
fn is_connection(text: &[u8], start: usize, from: usize) -> bool {
    const ITEMS: [&[u8]; 11] = [
        b"data source=",
        b"initial catalog=",
        b"server=",
        b"database=",
        b"user id=",
        b"userid=",
        b"uid=",
        b"provider=",
        b"driver=",
        b"dsn=",
        b"host=",
    ];
    let before = text
        .get(start.saturating_sub(200)..start)
        .unwrap_or_default();
    let line = before
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let after = text
        .get(from..text.len().min(from + 200))
        .unwrap_or_default();
    let rest = after
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let in_list = line.trim_ascii_end().ends_with(b";");
    [line, rest].iter().any(|part| {
        part.contains(&b';')
            && (in_list || rest.contains(&b';'))
            && ITEMS
                .iter()
                .any(|item| contains(&part.to_ascii_lowercase(), item))
    }) || in_list && rest.iter().any(|byte| matches!(byte, b';' | b'"' | b'\''))
}

/// The password of a connection string: whatever stands before the next separator.
fn in_connection(text: &[u8], from: usize) -> Option<Assigned> {
    let rest = text.get(from..text.len().min(from + 128))?;
    let length = rest
        .iter()
        .take_while(|b| !matches!(b, b';' | b'"' | b'\'' | b'\n' | b'\r' | b'<' | b'\\'))
        .count();
    let bytes = rest.get(..length)?.trim_ascii_end();
    let code = bytes
        .iter()
        .any(|b| matches!(b, b'(' | b')' | b'&' | b'+') && bytes.contains(&b' '));
    (bytes.len() >= 3 && !code && !is_reference(bytes) && !is_filler(bytes) && !is_example(bytes))
        .then(|| Assigned {
            value: from..from + bytes.len(),
            promise: Promise::Password,
            confidence: 0.55,
        })
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

struct Context<'a> {
    name: &'a [u8],
    promise: Promise,
    sign: Sign,
    quoted: bool,
    /// The byte after the value.
    follow: Option<u8>,
    line_start: bool,
    /// Below a line that names a user, in a file of settings.
    paired: bool,
}

impl Context<'_> {
    fn judge(&self, value: &[u8]) -> Option<f32> {
        let random = looks_random(value) || self.is_sequence(value);
        let phrase = self.is_phrase(value);
        if value.len() < 4
            || !(random || phrase || self.promise == Promise::Password)
            || self.repeats_name(value)
            || (self.sign == Sign::Loose
                && !self.name.starts_with(b"-")
                && self.name.to_ascii_lowercase().ends_with(b"pass"))
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
        if self.sign == Sign::Call {
            return None;
        }
        if phrase {
            return Some(0.5);
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
                || is_identifier(value)
                || contains(value, b"->")
                || contains(value, b"::"))
    }

    /// A secret that a person made up: signs that no name in a program or configuration has.
    fn is_phrase(&self, value: &[u8]) -> bool {
        self.promise == Promise::Token
            && self.quoted
            && self.sign != Sign::Loose
            && (8..=100).contains(&value.len())
            && value.iter().all(u8::is_ascii_graphic)
            && value.iter().filter(|b| b.is_ascii_alphanumeric()).count() * 2 >= value.len()
            && value
                .iter()
                .any(|b| matches!(b, b'#' | b'!' | b'^' | b'$' | b'%' | b'@' | b'~'))
            && !value.iter().any(|b| {
                matches!(
                    b,
                    b'(' | b')' | b'<' | b'{' | b'/' | b'[' | b'\\' | b'=' | b',' | b':'
                )
            })
            && value.first().is_some_and(u8::is_ascii_alphanumeric)
            && value.last().is_some_and(u8::is_ascii_alphanumeric)
            && !(value.contains(&b'@') && value.contains(&b'.'))
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
            let told = self.sign != Sign::Loose || !self.quoted;
            return (self.promise != Promise::Key && told).then_some(0.6);
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

/// True for a name in a program: words joined by points or underscores, none of them random.
fn is_identifier(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| matches!(byte, b'.' | b'_'));
    let wordy = value
        .split(|byte| !byte.is_ascii_lowercase())
        .any(|run| run.len() >= 5 && is_wordy(run));
    // `java.lang.Object@2bd79ce` names an object.
    let object = value.contains(&b'.') && value.contains(&b'@');
    wordy
        && (value.contains(&b'.') || value.contains(&b'_'))
        && (object || !parts.any(|part| part.len() >= 16 && looks_random(part)))
}

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
            (
                "token: >-\n  8fj3kd93kd02ls83jd74\n",
                "8fj3kd93kd02ls83jd74",
            ),
            (
                "<apiToken>\n    8fj3kd93kd02ls83jd74\n</apiToken>",
                "8fj3kd93kd02ls83jd74",
            ),
            ("$token .= '8fj3kd93kd02ls83jd74';", "8fj3kd93kd02ls83jd74"),
            (
                "variable \"api_token\" {\n  default = \"8fj3kd93kd02ls83jd74\"\n}",
                "8fj3kd93kd02ls83jd74",
            ),
            (
                r#""adminPassword": { "value": "tr0ub4dor&3" }"#,
                "tr0ub4dor&3",
            ),
            (
                "Server=db;User Id=sa;Password=sK!g2Ex_=jJ6;Timeout=3",
                "sK!g2Ex_=jJ6",
            ),
            (
                "\"Provider=X;\" & \"Password =s3rvice_user;Data Source=y;\"",
                "s3rvice_user",
            ),
            (
                "token=2zcqujqy8_f6ok3reo769zna95s2monk6bcvv4g",
                "2zcqujqy8_f6ok3reo769zna95s2monk6bcvv4g",
            ),
            (
                "--token 12429efd-bf4f-56c1-481b-9c4a374fb45c x",
                "12429efd-bf4f-56c1-481b-9c4a374fb45c",
            ),
            (r#"secret: "development#product""#, "development#product"),
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
            "secret: some_module.get_value",
            "token: >-\n  a sentence about tokens\n",
            r#""token": { "type": "string", "value": "the token" }"#,
            "secret: \"#anchor\"",
            "secret = some_service_access_token",
            "if (password == other; uid=3) {",
            "would I<pass> because it was",
            "    password = await readUserInfo.password()\n",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
