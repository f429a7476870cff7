//! Passwords where no name stands before them: options of commands, arguments of calls, SQL.

use std::ops::Range;

use super::{Match, rest};
use crate::finding::ThreatLevel::{Critical, High};
use crate::secrets::assign::looks_random;
use crate::secrets::name::promise;
use crate::secrets::shape::{Alphabet, is_example, is_filler, is_reference, kinds};

/// How a command takes a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::secrets) enum Way {
    /// `-pvalue`, never apart.
    Attached(&'static str),
    /// `-p value`.
    Apart(&'static str),
    /// `-U user%value`, `/user:name value`: after a mark inside the word of the option.
    Inside(&'static str, u8),
    /// The last word of the line.
    Last,
    /// The word of this number, the command's own being 0.
    Word(usize),
}

/// A password given to a command of the table.
pub(in crate::secrets) fn option(text: &[u8], at: usize, (_, way): &(&str, Way)) -> Option<Match> {
    let line = line(text, at);
    let words = words(line);
    let found = match *way {
        Way::Attached(flag) => words.iter().find_map(|word| {
            let value = line.get(word.clone())?.strip_prefix(flag.as_bytes())?;
            Some(word.end - value.len()..word.end)
        }),
        Way::Word(place) => words.get(place).cloned(),
        Way::Apart(flag) => {
            let place = words
                .iter()
                .position(|word| line.get(word.clone()) == Some(flag.as_bytes()))?;
            words.get(place + 1).cloned()
        }
        Way::Inside(flag, mark) => {
            let place = words
                .iter()
                .position(|word| line.get(word.clone()) == Some(flag.as_bytes()))?;
            let word = words.get(place + 1)?;
            let mark = line
                .get(word.clone())?
                .iter()
                .position(|byte| *byte == mark)?;
            Some(word.start + mark + 1..word.end)
        }
        Way::Last => {
            let user = line
                .windows(6)
                .any(|part| part.eq_ignore_ascii_case(b"/user:"));
            let batch = line.windows(2).any(|part| part == b"-b");
            words.last().filter(|_| user || batch).cloned()
        }
    }?;
    let found = unquoted(line, found);
    on_command_line(line, at, found)
}

/// `echo 'user:password' | chpasswd`
pub(super) fn chpasswd(text: &[u8], at: usize) -> Option<Match> {
    let low = at.saturating_sub(200);
    let before = text.get(low..at)?;
    let start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |line| line + 1);
    let line = before.get(start..)?;
    let colon = line.iter().rposition(|byte| *byte == b':')?;
    let length = rest(line, colon + 1)
        .iter()
        .take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\'' | b'|'))
        .count();
    on_command_line(line, low + start, colon + 1..colon + 1 + length)
}

/// `echo password | sudo -S command`
pub(super) fn sudo(text: &[u8], at: usize) -> Option<Match> {
    if rest(text, at).get(..7)? != b"sudo -S" {
        return None;
    }
    let low = at.saturating_sub(120);
    let before = text.get(low..at)?;
    let before = before.trim_ascii_end().strip_suffix(b"|")?.trim_ascii_end();
    let start = before
        .iter()
        .rposition(u8::is_ascii_whitespace)
        .map_or(0, |gap| gap + 1);
    let found = unquoted(before, start..before.len());
    on_command_line(before, low, found)
}

/// A line of `.pgpass`: `host:5432:database:user:password`.
pub(super) fn pgpass(text: &[u8], at: usize) -> Option<Match> {
    let line = line(text, at);
    let mut fields = line.split(|byte| *byte == b':').skip(2);
    let before: usize = fields.by_ref().take(2).map(|field| field.len() + 1).sum();
    let value = fields.next()?.trim_ascii_end();
    let start = ":5432:".len() + before;
    let plain = !line.get(..start)?.iter().any(u8::is_ascii_whitespace);
    if !plain {
        return None;
    }
    on_command_line(line, at, start..start + value.len())
}

/// A password that Cisco's devices only veil: two digits of salt, then hexadecimal digits.
pub(super) fn veiled(text: &[u8], at: usize) -> Option<Match> {
    let start = at + "password 7 ".len();
    let length = Alphabet::Hex.run(rest(text, start), 64);
    let value = text.get(start..start + length)?;
    let salted = value.iter().take(2).all(u8::is_ascii_digit);
    (length >= 8 && length.is_multiple_of(2) && salted && !is_filler(value)).then(|| {
        Match::new(
            ("secret.password", "veiled password"),
            start..start + length,
            High,
            0.85,
        )
    })
}

/// `{SSHA}…`: a directory's hash of a password.
pub(super) fn directory_hash(text: &[u8], at: usize) -> Option<Match> {
    let scheme = rest(text, at).iter().take(10).position(|b| *b == b'}')?;
    let start = at + scheme + 1;
    let length = Alphabet::Base64.run(rest(text, start), 120);
    let value = text.get(start..start + length)?;
    (length >= 20 && !is_filler(value) && looks_random(value.trim_ascii_end())).then(|| {
        Match::new(
            ("secret.password-hash", "hash of a password"),
            at..start + length,
            High,
            0.8,
        )
    })
}

/// "use the following password", and it on a line of its own.
pub(super) fn following_line(text: &[u8], at: usize) -> Option<Match> {
    let near = rest(text, at);
    let near = near.get(..near.len().min(200))?;
    let line_end = near.iter().position(|byte| *byte == b'\n')?;
    let blank = rest(near, line_end)
        .iter()
        .take_while(|b| b.is_ascii_whitespace())
        .count();
    let start = line_end + blank;
    let length = rest(near, start)
        .iter()
        .take_while(|b| b.is_ascii_graphic())
        .count();
    let alone = matches!(near.get(start + length), None | Some(b'\n' | b'\r'));
    if !alone || !looks_random(near.get(start..start + length)?) {
        return None;
    }
    on_command_line(near, at, start..start + length)
}

/// `?code=…` of a function in Azure.
pub(super) fn function_code(text: &[u8], at: usize) -> Option<Match> {
    let start = at + "?code=".len();
    let length = Alphabet::Padded.run(rest(text, start), 120);
    let before = text.get(at.saturating_sub(120)..at)?;
    let value = text.get(start..start + length)?;
    let there = memchr::memmem::find(before, b"azurewebsites.net").is_some();
    (there && length >= 40 && looks_random(value) && !is_example(value)).then(|| {
        Match::new(
            ("secret.azure-function", "key of a function"),
            start..start + length,
            High,
            0.85,
        )
    })
}

fn on_command_line(line: &[u8], base: usize, found: Range<usize>) -> Option<Match> {
    is_password(line.get(found.clone())?).then(|| {
        Match::new(
            ("secret.command-password", "password on a command line"),
            base + found.start..base + found.end,
            High,
            0.75,
        )
    })
}

/// `IDENTIFIED BY '…'`, `ConvertTo-SecureString "…"`: the string that follows.
pub(super) fn next_string(text: &[u8], at: usize) -> Option<Match> {
    let line = line(text, at);
    let open = line
        .iter()
        .take(48)
        .position(|byte| matches!(byte, b'"' | b'\''))?;
    let quote = *line.get(open)?;
    let length = rest(line, open + 1)
        .iter()
        .position(|byte| *byte == quote)?;
    let value = line.get(open + 1..open + 1 + length)?;
    is_password(value).then(|| {
        Match::new(
            ("secret.call-password", "password in a call"),
            at + open + 1..at + open + 1 + length,
            High,
            0.75,
        )
    })
}

/// The password among the arguments of a call.
pub(in crate::secrets) fn argument(
    text: &[u8],
    at: usize,
    (name, place): &(&str, usize),
) -> Option<Match> {
    let call = rest(text, at);
    let call = call.get(..call.len().min(400))?;
    let value = strings(call, name.len()).nth(*place)??;
    is_password(call.get(value.clone())?).then(|| {
        Match::new(
            ("secret.call-password", "password in a call"),
            at + value.start..at + value.end,
            High,
            0.75,
        )
    })
}

/// `INSERT INTO users (name, password) VALUES ('a', '…')`
pub(super) fn inserted(text: &[u8], at: usize) -> Option<Match> {
    let line = rest(text, at);
    let line = line.get(..line.len().min(600))?;
    let open = line.iter().take(120).position(|byte| *byte == b'(')?;
    let close = open + rest(line, open).iter().position(|byte| *byte == b')')?;
    let place = line
        .get(open + 1..close)?
        .split(|byte| *byte == b',')
        .position(|column| {
            let name: Vec<u8> = column
                .iter()
                .copied()
                .filter(|b| b.is_ascii_alphanumeric() || *b == b'_')
                .collect();
            promise(&name).is_some()
        })?;
    let values = close
        + rest(line, close + 1)
            .iter()
            .position(|byte| *byte == b'(')?
        + 1;
    let between = line.get(close + 1..values)?;
    if !between.trim_ascii().eq_ignore_ascii_case(b"values") {
        return None;
    }
    let value = strings(line, values + 1).nth(place)??;
    is_password(line.get(value.clone())?).then(|| {
        Match::new(
            ("secret.sql-password", "password in SQL"),
            at + value.start..at + value.end,
            High,
            0.75,
        )
    })
}

/// The arguments from `from` on: the place of each that is a string.
fn strings(call: &[u8], from: usize) -> impl Iterator<Item = Option<Range<usize>>> + '_ {
    let mut at = from;
    std::iter::from_fn(move || {
        let mut found = None;
        loop {
            match *call.get(at)? {
                quote @ (b'"' | b'\'') => {
                    let length = rest(call, at + 1).iter().position(|byte| *byte == quote)?;
                    found = Some(at + 1..at + 1 + length);
                    at += length + 2;
                }
                b',' => {
                    at += 1;
                    return Some(found);
                }
                // What ends the call ends the iteration after this argument.
                b')' | b'\n' => {
                    at = call.len();
                    return Some(found);
                }
                _ => at += 1,
            }
        }
    })
}

/// `jdbc:oracle:thin:user/password@host`
pub(super) fn oracle(text: &[u8], at: usize) -> Option<Match> {
    let line = line(text, at);
    let slash = line.iter().take(80).position(|byte| *byte == b'/')?;
    let length = rest(line, slash + 1)
        .iter()
        .take(64)
        .position(|byte| *byte == b'@')?;
    let value = line.get(slash + 1..slash + 1 + length)?;
    let plain = value
        .iter()
        .all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b':' | b'"'));
    (plain && is_password(value)).then(|| {
        Match::new(
            ("secret.url-password", "password in a URL"),
            at + slash + 1..at + slash + 1 + length,
            Critical,
            0.8,
        )
    })
}

/// `sig=` of a shared access signature: 32 bytes in base64, escaped for a URL.
pub(super) fn signature(text: &[u8], at: usize) -> Option<Match> {
    let start = at + "sig=".len() + 1;
    let body = rest(text, start);
    let length = body
        .iter()
        .take(120)
        .take_while(|b| Alphabet::Base64Url.has(**b) || matches!(b, b'%' | b'+' | b'/' | b'='))
        .count();
    let value = body.get(..length)?;
    (length >= 43 && !is_filler(value) && !is_example(value) && looks_random(value)).then(|| {
        Match::new(
            ("secret.azure-sas", "shared access signature"),
            start..start + length,
            High,
            0.85,
        )
    })
}

/// A value that stands where a password does: not a word, a name or a placeholder.
fn is_password(value: &[u8]) -> bool {
    (5..=128).contains(&value.len())
        && value.iter().all(u8::is_ascii_graphic)
        && !is_reference(value)
        && !is_example(value)
        && !is_filler(value)
        && (looks_random(value) || kinds(value) >= 3)
        && !value.starts_with(b"-")
        && !value.starts_with(b"/")
}

fn line(text: &[u8], at: usize) -> &[u8] {
    let line = rest(text, at);
    let line = line.get(..line.len().min(300)).unwrap_or_default();
    line.split(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn words(line: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, byte) in line.iter().enumerate() {
        if byte.is_ascii_whitespace() || matches!(byte, b'|' | b';' | b'&' | b'`') {
            found.extend(start.take().map(|start| start..at));
            if !byte.is_ascii_whitespace() {
                break;
            }
        } else if start.is_none() {
            start = Some(at);
        }
    }
    found.extend(start.map(|start| start..line.len()));
    found
}

fn unquoted(line: &[u8], range: Range<usize>) -> Range<usize> {
    match line.get(range.clone()) {
        Some([b'"' | b'\'', .., b'"' | b'\'']) => range.start + 1..range.end - 1,
        _ => range,
    }
}
