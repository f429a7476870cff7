//! Patterns over absolute paths: `*`, `?`, `[a-z]`, `[!a]` within a name, `**` across names,
//! `\` to take the next character literally.
//!
//! Matching works on bytes, allocates nothing and takes time in proportion to
//! path length × pattern length, whatever the pattern: the mediator runs it on names that hostile
//! code chose.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::path::{AbsPath, components};

/// A pattern that matches whole absolute paths.
///
/// A rule with a pattern stands for a rule at *every path that the pattern matches*, which is
/// what gives it a length to compare: see [`PathGlob::longest_match`].
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PathGlob(Arc<Compiled>);

/// Shared, because rules are handed from profile to plan to mediator, and most are patterns.
#[derive(PartialEq, Eq, Hash)]
struct Compiled {
    text: String,
    parts: Vec<Part>,
    /// The path of the leading parts without wildcards, and how many they are.
    prefix: Vec<u8>,
    prefix_parts: usize,
}

/// Why a text is not a [`PathGlob`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GlobError {
    /// `[` without its `]`.
    OpenClass(String),
    /// More components than the matcher takes.
    TooLong(String),
    /// Patterns must be absolute once resolved.
    Relative(String),
    /// A NUL byte can't be part of a path.
    Nul(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// `**`: any number of components.
    AnyDepth,
    /// Exactly this name; most are, and comparing them so costs next to nothing.
    Literal(Vec<u8>),
    Name(Vec<Token>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Token {
    AnyText,
    AnyByte,
    Byte(u8),
    Class {
        negated: bool,
        ranges: Vec<(u8, u8)>,
    },
}

impl Part {
    /// None if a class is not closed.
    fn new(name: &str) -> Option<Self> {
        if !name.contains(['*', '?', '[', '\\']) {
            return Some(Self::Literal(name.as_bytes().to_vec()));
        }
        let tokens = tokens(name)?;
        let byte = |token: &Token| match token {
            Token::Byte(byte) => Some(*byte),
            _ => None,
        };
        let literal = tokens.iter().map(byte).collect::<Option<_>>();
        Some(literal.map_or(Self::Name(tokens), Self::Literal))
    }

    /// The name, if there is only one that matches.
    fn literal(&self) -> Option<&[u8]> {
        match self {
            Self::Literal(name) => Some(name),
            Self::AnyDepth | Self::Name(_) => None,
        }
    }
}

/// One bit for each position in the pattern, and one for its end.
const MAX_PARTS: usize = 63;

impl PathGlob {
    /// Whether a text would be read as a pattern rather than as a plain path.
    pub fn is_pattern(text: impl AsRef<[u8]>) -> bool {
        let mut bytes = text.as_ref().iter();
        bytes.any(|byte| matches!(byte, b'*' | b'?' | b'['))
    }

    /// Reads a pattern; relative patterns are taken below `base`.
    ///
    /// `.` and `..` components are folded as in paths. `base` itself is taken literally.
    ///
    /// # Errors
    /// If a class is not closed, or the pattern is longer than the matcher takes.
    pub fn new(text: &str, base: &AbsPath) -> Result<Self, GlobError> {
        if text.contains('\0') {
            return Err(GlobError::Nul(text.to_owned()));
        }
        let absolute = if text.starts_with('/') {
            text.to_owned()
        } else {
            let base = base
                .as_path()
                .to_str()
                .ok_or_else(|| GlobError::Relative(text.into()))?;
            format!("{}/{text}", escape(base))
        };
        Self::parse(&absolute)
    }

    fn parse(text: &str) -> Result<Self, GlobError> {
        let mut names: Vec<&str> = Vec::new();
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop();
                }
                _ => names.push(name),
            }
        }
        if names.len() > MAX_PARTS {
            return Err(GlobError::TooLong(text.to_owned()));
        }
        let mut parts = Vec::with_capacity(names.len() + 1);
        for name in &names {
            if *name == "**" {
                if parts.last() != Some(&Part::AnyDepth) {
                    parts.push(Part::AnyDepth);
                }
            } else {
                parts.push(Part::new(name).ok_or_else(|| GlobError::OpenClass(text.to_owned()))?);
            }
        }
        // `dir/**` means what lies below `dir`, not `dir` itself.
        if parts.last() == Some(&Part::AnyDepth) {
            parts.push(Part::Name(vec![Token::AnyText]));
        }
        let leading = || parts.iter().map_while(Part::literal);
        let mut prefix = Vec::with_capacity(text.len());
        for name in leading() {
            prefix.push(b'/');
            prefix.extend_from_slice(name);
        }
        let prefix_parts = leading().count();
        Ok(Self(Arc::new(Compiled {
            text: joined(&names),
            prefix,
            prefix_parts,
            parts,
        })))
    }

    /// The normalised text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Whether the pattern matches this path itself.
    pub fn matches(&self, path: &Path) -> bool {
        self.longest_match(path) == Some(components(bytes(path)).count())
    }

    /// The depth of the longest of `path` and its ancestors that the pattern matches.
    pub fn longest_match(&self, path: &Path) -> Option<usize> {
        let below = self.below_prefix(bytes(path))?;
        let (start, end) = (self.0.prefix_parts, self.0.parts.len());
        // Names that every match has somewhere below the prefix: few paths have them.
        let mut needed = self.0.parts[start..].iter().filter_map(Part::literal);
        if !needed.all(|name| components(below).any(|part| part == name)) {
            return None;
        }
        let mut states = self.skip_any_depth(1 << start);
        let mut longest = (states >> end & 1 == 1).then_some(start);
        for (index, name) in components(below).enumerate() {
            states = self.advance(states, name);
            if states == 0 {
                break;
            }
            if states >> end & 1 == 1 {
                longest = Some(start + index + 1);
            }
        }
        longest
    }

    /// What of a path lies below the pattern's literal beginning; none if the path is elsewhere.
    /// Nearly every path is elsewhere for nearly every pattern, and this is where that ends.
    fn below_prefix<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        let rest = path.strip_prefix(self.0.prefix.as_slice())?;
        matches!(rest.first(), None | Some(b'/')).then_some(rest)
    }

    /// What every match begins with.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.0.prefix
    }

    /// A name that every match has somewhere behind that; the last one, which is the rarest.
    pub(crate) fn needed_name(&self) -> Option<&[u8]> {
        let parts = self.0.parts[self.0.prefix_parts..].iter();
        parts.rev().find_map(Part::literal)
    }

    /// The deepest directory that every match lies below: where a walk would begin.
    pub fn literal_prefix(&self) -> AbsPath {
        use std::ffi::OsStr;
        // The pattern was text, so its literal beginning is.
        let path = std::str::from_utf8(&self.0.prefix)
            .map(OsStr::new)
            .unwrap_or_default();
        AbsPath::new(path).unwrap_or_else(|_| AbsPath::root())
    }

    /// Whether the pattern could match something strictly below `dir`.
    pub fn reaches_below(&self, dir: &AbsPath) -> bool {
        let states = self.positions_after(dir.as_path());
        let end = self.0.parts.len();
        states & !(1 << end) != 0
    }

    /// What is left of the pattern strictly below `dir`: a relative pattern for each way in which
    /// the matcher can have come there. For those who have to say it in another language.
    pub fn below(&self, dir: &AbsPath) -> Vec<String> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.as_str().split('/').filter(|name| !name.is_empty()) {
            if name != "**" || names.last() != Some(&"**") {
                names.push(name);
            }
        }
        let states = self.positions_after(dir.as_path());
        (0..names.len())
            .filter(|position| states >> position & 1 == 1)
            .map(|position| names[position..].join("/"))
            .collect()
    }

    /// Where the matcher may stand after one more component.
    fn advance(&self, states: u64, name: &[u8]) -> u64 {
        let mut next = 0_u64;
        for (position, part) in self.0.parts.iter().enumerate() {
            if states >> position & 1 == 0 {
                continue;
            }
            match part {
                Part::AnyDepth => next |= 1 << position,
                Part::Literal(own) if own == name => next |= 1 << (position + 1),
                Part::Name(tokens) if name_matches(tokens, name) => next |= 1 << (position + 1),
                Part::Literal(_) | Part::Name(_) => {}
            }
        }
        self.skip_any_depth(next)
    }

    /// Where the matcher may stand after `path`: two paths with equal positions match the same
    /// things below them.
    pub(crate) fn positions_after(&self, path: &Path) -> u64 {
        components(bytes(path)).fold(self.skip_any_depth(1), |states, name| {
            self.advance(states, name)
        })
    }

    /// The positions that only the last name of `path` brought about: with any other name in its
    /// place the matcher would not stand there.
    pub(crate) fn positions_by_name(&self, path: &Path) -> u64 {
        // No pattern has this byte but through a wildcard.
        let other = path.parent().map_or(0, |parent| {
            self.advance(self.positions_after(parent), b"\0")
        });
        self.positions_after(path) & !other
    }

    /// `**` may stand for nothing: whoever stands before it may stand behind it.
    fn skip_any_depth(&self, mut states: u64) -> u64 {
        for (position, part) in self.0.parts.iter().enumerate() {
            if *part == Part::AnyDepth && states >> position & 1 == 1 {
                states |= 1 << (position + 1);
            }
        }
        states
    }
}

impl fmt::Debug for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(f)
    }
}

impl fmt::Display for PathGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(f)
    }
}

impl Serialize for PathGlob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.text)
    }
}

impl<'de> Deserialize<'de> for PathGlob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenClass(text) => {
                write!(
                    f,
                    "pattern `{text}` has a `[` without its `]`; write `\\[` for the character"
                )
            }
            Self::TooLong(text) => {
                write!(f, "pattern `{text}` has more than {MAX_PARTS} components")
            }
            Self::Relative(text) => {
                write!(
                    f,
                    "pattern `{text}` is relative to a directory whose name is not UTF-8"
                )
            }
            Self::Nul(text) => write!(f, "pattern `{text}` contains a NUL byte"),
        }
    }
}

impl std::error::Error for GlobError {}

fn joined(names: &[&str]) -> String {
    let mut text = String::with_capacity(names.iter().map(|name| name.len() + 1).sum());
    for name in names {
        text.push('/');
        text.push_str(name);
    }
    if text.is_empty() {
        text.push('/');
    }
    text
}

/// The pattern that matches `text` and nothing else.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | '\\') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// None if a class is not closed.
fn tokens(name: &str) -> Option<Vec<Token>> {
    let mut rest = name.as_bytes().iter().copied().peekable();
    let mut out = Vec::new();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'*' => {
                while rest.next_if_eq(&b'*').is_some() {}
                Token::AnyText
            }
            b'?' => Token::AnyByte,
            b'\\' => Token::Byte(rest.next().unwrap_or(b'\\')),
            b'[' => {
                let negated = rest.next_if(|byte| matches!(byte, b'!' | b'^')).is_some();
                let mut ranges = Vec::new();
                loop {
                    let low = rest.next()?;
                    // A `]` right after the opening is a member, as in glob(7).
                    if low == b']' && !ranges.is_empty() {
                        break;
                    }
                    let high = if rest.peek() == Some(&b'-') {
                        rest.next();
                        match rest.next()? {
                            b']' => {
                                ranges.extend([(low, low), (b'-', b'-')]);
                                break;
                            }
                            high => high,
                        }
                    } else {
                        low
                    };
                    ranges.push((low, high));
                }
                Token::Class { negated, ranges }
            }
            literal => Token::Byte(literal),
        });
    }
    Some(out)
}

/// The two-pointer wildcard match: on a mismatch, let the last `*` take one byte more.
fn name_matches(tokens: &[Token], name: &[u8]) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < name.len() {
        let fits = match tokens.get(token) {
            Some(Token::AnyText) => {
                star = Some((token, at));
                token += 1;
                continue;
            }
            Some(Token::AnyByte) => true,
            Some(Token::Byte(byte)) => *byte == name[at],
            Some(Token::Class { negated, ranges }) => {
                ranges
                    .iter()
                    .any(|(low, high)| (low..=high).contains(&&name[at]))
                    != *negated
            }
            None => false,
        };
        if fits {
            token += 1;
            at += 1;
        } else if let Some((star_token, star_at)) = star {
            token = star_token + 1;
            at = star_at + 1;
            star = Some((star_token, star_at + 1));
        } else {
            return false;
        }
    }
    tokens[token..].iter().all(|rest| *rest == Token::AnyText)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> PathGlob {
        PathGlob::new(text, &AbsPath::new("/ws").unwrap()).unwrap()
    }

    fn hits(pattern: &str, path: &str) -> bool {
        glob(pattern).matches(Path::new(path))
    }

    #[test]
    fn wildcards_stay_within_a_name() {
        assert!(hits("*.env", "/ws/prod.env"));
        assert!(hits("*.env", "/ws/.env"));
        assert!(!hits("*.env", "/ws/a/prod.env"));
        assert!(hits("?.rs", "/ws/a.rs"));
        assert!(!hits("?.rs", "/ws/ab.rs"));
        assert!(hits("a*b*c", "/ws/aXbYbZc"));
        assert!(!hits("a*b*c", "/ws/aXbYbZ"));
    }

    #[test]
    fn double_star_crosses_directories() {
        for path in ["/ws/x.env", "/ws/a/x.env", "/ws/a/b/c/x.env"] {
            assert!(hits("**/*.env", path), "{path}");
        }
        assert!(!hits("**/*.env", "/other/x.env"));
        assert!(hits("/**/.git/hooks", "/a/b/.git/hooks"));
        assert!(hits("dir/**", "/ws/dir/a/b"));
        assert!(!hits("dir/**", "/ws/dir"));
        assert!(hits("a/**/z", "/ws/a/z"));
    }

    #[test]
    fn classes_and_escapes() {
        assert!(hits("[a-c]x", "/ws/bx"));
        assert!(!hits("[!a-c]x", "/ws/bx"));
        assert!(hits("[]]", "/ws/]"));
        assert!(hits("[a-]", "/ws/-"));
        assert!(hits("\\[id\\].ts", "/ws/[id].ts"));
        assert!(PathGlob::new("[a", &AbsPath::root()).is_err());
    }

    #[test]
    fn the_base_is_literal() {
        let base = AbsPath::new("/w[s]*").unwrap();
        let glob = PathGlob::new("*.env", &base).unwrap();
        assert!(glob.matches(Path::new("/w[s]*/a.env")));
        assert!(!glob.matches(Path::new("/ws/a.env")));
        assert_eq!(glob.literal_prefix(), base);
    }

    #[test]
    fn the_longest_matching_ancestor_counts() {
        let path = Path::new("/ws/a.env/b.env/c");
        assert_eq!(glob("**/*.env").longest_match(path), Some(3));
        assert_eq!(glob("*.env").longest_match(path), Some(2));
        assert_eq!(glob("*.txt").longest_match(path), None);
    }

    #[test]
    fn reach_is_known() {
        let dir = |text: &str| AbsPath::new(text).unwrap();
        assert!(glob("**/*.env").reaches_below(&dir("/ws/deep/er")));
        assert!(!glob("*.env").reaches_below(&dir("/ws/deep")));
        assert!(glob("*.env").reaches_below(&dir("/ws")));
        assert!(!glob("*.env").reaches_below(&dir("/other")));
    }

    #[test]
    fn hostile_patterns_take_linear_time() {
        let pattern = format!("{}b", "*a".repeat(40));
        let name = format!("/ws/{}", "a".repeat(4000));
        assert!(!glob(&pattern).matches(Path::new(&name)));
    }
}
