//! Git's configuration: the parser of its files, and the judge of what changed in one.
//!
//! The parser follows git's own (config.c), not only git-config(1): what git reads as a setting
//! must be seen here, and a test compares both on generated files.

use std::collections::{BTreeMap, BTreeSet};

use super::keys;
use crate::protected::judge::Refusal;

/// What the judge can't know by itself.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ConfigContext<'a> {
    /// Whether `core.worktree` may have this value: the working tree it names is one that the
    /// sandbox may write anyway.
    pub worktree: &'a dyn Fn(&[u8]) -> bool,
    /// Whether an address may be this path on the host: no repository there has hooks or
    /// configuration that would not have run otherwise. The path is relative to the working tree,
    /// may not exist, and may be the name of a remote: git tells the two apart only when it looks.
    pub local_repository: &'a dyn Fn(&[u8]) -> bool,
}

impl<'a> ConfigContext<'a> {
    /// A context that refuses every `core.worktree` and passes every local path.
    pub const fn new() -> Self {
        Self {
            worktree: &|_| false,
            local_repository: &|_| true,
        }
    }

    /// Decides about `core.worktree` with `worktree`.
    #[must_use]
    pub const fn with_worktree(mut self, worktree: &'a dyn Fn(&[u8]) -> bool) -> Self {
        self.worktree = worktree;
        self
    }

    /// Decides about paths in addresses with `local_repository`.
    #[must_use]
    pub const fn with_local_repository(mut self, local: &'a dyn Fn(&[u8]) -> bool) -> Self {
        self.local_repository = local;
        self
    }
}

impl Default for ConfigContext<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// One setting, as git passes it to whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Setting {
    /// `section.variable` or `section.subsection.variable`; section and variable in lower case.
    pub key: Vec<u8>,
    /// `None` for a variable alone, which means true.
    pub value: Option<Vec<u8>>,
}

/// The key of a setting in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyParts<'a> {
    pub(super) section: &'a [u8],
    pub(super) subsection: Option<&'a [u8]>,
    pub(super) variable: &'a [u8],
}

impl<'a> KeyParts<'a> {
    /// Splits a key as git's `parse_config_key` does.
    pub(super) fn of(key: &'a [u8]) -> Self {
        let first = key.iter().position(|byte| *byte == b'.');
        let last = key.iter().rposition(|byte| *byte == b'.');
        match (first, last) {
            (Some(first), Some(last)) => Self {
                section: &key[..first],
                subsection: (first < last).then(|| &key[first + 1..last]),
                variable: &key[last + 1..],
            },
            // Git knows no variable without a section.
            _ => Self {
                section: b"",
                subsection: None,
                variable: key,
            },
        }
    }
}

/// The configuration is judged as git would see the change: settings that are new, changed, or
/// only now the last of their key, which is the one that counts for most keys.
///
/// # Errors
/// If such a setting runs a program, redirects or weakens a check, or if git can't read `new`.
pub fn judge(old: &[u8], new: &[u8], context: &ConfigContext<'_>) -> Result<(), Refusal> {
    let new = parse(new).ok_or_else(|| Refusal::unreadable("not a git configuration"))?;
    let old = parse(old).unwrap_or_default();
    let known: BTreeSet<&Setting> = old.iter().collect();
    let (old_last, new_last) = (last_of_each_key(&old), last_of_each_key(&new));
    for setting in &new {
        let last = new_last.get(setting.key.as_slice());
        let came_last = last == Some(&setting) && old_last.get(setting.key.as_slice()) != last;
        if came_last || !known.contains(setting) {
            keys::judge(setting, context)?;
        }
    }
    Ok(())
}

fn last_of_each_key(settings: &[Setting]) -> BTreeMap<&[u8], &Setting> {
    let pairs = settings.iter();
    pairs
        .map(|setting| (setting.key.as_slice(), setting))
        .collect()
}

/// The settings of a configuration file in their order; `None` if git refuses to read it.
pub fn parse(text: &[u8]) -> Option<Vec<Setting>> {
    let mut reader = Reader::new(skip_byte_order_mark(text)?);
    let mut found = Vec::new();
    // `section.` or `section.subsection.`; empty before the first header.
    let mut prefix = Vec::new();
    loop {
        match reader.next() {
            b'\n' if reader.at_end => return Some(found),
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'#' | b';' => reader.skip_line(),
            b'[' => prefix = reader.header()?,
            first if first.is_ascii_alphabetic() => {
                let (name, value) = reader.variable(first)?;
                let mut key = prefix.clone();
                key.extend(name);
                found.push(Setting {
                    key: as_c_string(key),
                    value: value.map(as_c_string),
                });
            }
            _ => return None,
        }
    }
}

/// Git accepts a whole byte order mark, and no part of one.
fn skip_byte_order_mark(text: &[u8]) -> Option<&[u8]> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    match text.strip_prefix(MARK) {
        Some(rest) => Some(rest),
        None if text.first() == MARK.first() => None,
        None => Some(text),
    }
}

/// Git hands keys and values on as C strings: a NUL byte ends them.
fn as_c_string(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    bytes
}

/// Reads as git's `get_next_char`: CR LF is one line end, and so is the end of the file.
struct Reader<'a> {
    rest: &'a [u8],
    at_end: bool,
}

impl<'a> Reader<'a> {
    const fn new(rest: &'a [u8]) -> Self {
        Self {
            rest,
            at_end: false,
        }
    }

    fn next(&mut self) -> u8 {
        match self.rest {
            [] => {
                self.at_end = true;
                b'\n'
            }
            [b'\r', b'\n', rest @ ..] => {
                self.rest = rest;
                b'\n'
            }
            [byte, rest @ ..] => {
                self.rest = rest;
                *byte
            }
        }
    }

    fn skip_line(&mut self) {
        // At the end of the file the caller reads the end once more.
        while self.next() != b'\n' {}
    }

    /// After `[`: `section]`, `section "subsection"]`, or the old `section.subsection]`.
    fn header(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                _ if self.at_end => return None,
                b']' => break,
                byte @ (b' ' | b'\t' | b'\r' | b'\n') => {
                    self.subsection(byte, &mut name)?;
                    break;
                }
                byte if is_key_char(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
        if name.is_empty() {
            return None;
        }
        name.push(b'.');
        Some(name)
    }

    fn subsection(&mut self, mut byte: u8, name: &mut Vec<u8>) -> Option<()> {
        while is_space(byte) {
            if byte == b'\n' {
                return None;
            }
            byte = self.next();
        }
        if byte != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            let mut byte = self.next();
            match byte {
                b'\n' => return None,
                b'"' => break,
                b'\\' => {
                    byte = self.next();
                    if byte == b'\n' {
                        return None;
                    }
                }
                _ => {}
            }
            name.push(byte);
        }
        (self.next() == b']').then_some(())
    }

    /// A variable whose name begins with `first`, and its value.
    fn variable(&mut self, first: u8) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let mut name = vec![first.to_ascii_lowercase()];
        let mut byte = self.next();
        while !self.at_end && is_key_char(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        match byte {
            b'\n' => Some((name, None)),
            b'=' => Some((name, Some(self.value()?))),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        let (mut quoted, mut comment) = (false, false);
        // Where white space at the end of the value begins, if it ends so.
        let mut trim = 0;
        loop {
            match self.next() {
                b'\n' if quoted => return None,
                b'\n' => {
                    if trim > 0 {
                        value.truncate(trim);
                    }
                    return Some(value);
                }
                _ if comment => {}
                byte if is_space(byte) && !quoted => {
                    if trim == 0 {
                        trim = value.len();
                    }
                    if !value.is_empty() {
                        value.push(byte);
                    }
                }
                b'#' | b';' if !quoted => comment = true,
                byte => {
                    trim = 0;
                    match byte {
                        b'\\' => match self.next() {
                            b'\n' => {}
                            b't' => value.push(b'\t'),
                            b'b' => value.push(8),
                            b'n' => value.push(b'\n'),
                            byte @ (b'\\' | b'"') => value.push(byte),
                            _ => return None,
                        },
                        b'"' => quoted = !quoted,
                        _ => value.push(byte),
                    }
                }
            }
        }
    }
}

/// Git's `iskeychar`.
fn is_key_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// Git's `isspace`, which leaves out vertical tab and form feed.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

#[cfg(test)]
mod tests;
