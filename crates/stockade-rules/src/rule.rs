//! One rule: a pattern, what it says about access, who said it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::glob::PathGlob;
use crate::path::{AbsPath, components, is_at_or_below};

/// A rule about paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRule {
    /// Which paths it speaks about.
    pub pattern: Pattern,
    /// What it says about them.
    pub access: Access,
    /// Whether a person stated it or it ships with Stockade.
    pub rank: Rank,
    /// Who stated it, for explanations.
    pub origin: Origin,
}

/// Which paths a rule speaks about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the engine must handle every kind of pattern"
)]
pub enum Pattern {
    /// A path and everything below it.
    Subtree(AbsPath),
    /// Every path that matches, and everything below each.
    Glob(PathGlob),
}

/// What a rule says.
///
/// A denied read is a denied write too: what has no name inside the sandbox can't be written,
/// and a file that may be written but not read can't be expressed with mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the engine must handle every access"
)]
pub enum Access {
    /// Neither read nor write.
    Deny,
    /// Hide it: neither read nor write.
    DenyRead,
    /// It may be read if another rule says so, but not written.
    DenyWrite,
    /// It may be read; writing is as other rules say.
    Read,
    /// It may be read and written.
    Write,
}

/// The two kinds of access that are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum Kind {
    /// Opening for reading, listing, executing.
    Read,
    /// Opening for writing, creating, renaming, removing, changing the mode.
    Write,
}

/// How much weight a rule has against another *on the same path*.
///
/// Protections that ship with Stockade yield to what the user stated about that very path;
/// among rules of one rank a denial wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum Rank {
    /// Ships with Stockade.
    Default,
    /// Stated by a person: flag or file.
    Stated,
}

/// Where a rule comes from, as a person would look for it. A copy is another handle on the text.
#[derive(Clone, Debug)]
pub struct Origin(Text);

#[derive(Clone, Debug)]
enum Text {
    Fixed(&'static str),
    Told(Arc<str>),
}

impl PathRule {
    /// A rule that ships with Stockade.
    pub fn built_in(pattern: Pattern, access: Access, origin: &'static str) -> Self {
        Self {
            pattern,
            access,
            rank: Rank::Default,
            origin: Origin::fixed(origin),
        }
    }

    /// Whether no rule can outweigh it about the path that it names: it is a denial, and a person
    /// stated it.
    pub fn is_final_for(&self, kind: Kind) -> bool {
        self.rank == Rank::Stated && self.access.allows(kind) == Some(false)
    }

    /// A rule that a person stated.
    pub fn stated(pattern: Pattern, access: Access, origin: Origin) -> Self {
        Self {
            pattern,
            access,
            rank: Rank::Stated,
            origin,
        }
    }
}

/// How it reads in explanations: `deny_write /ws/.git/hooks`.
impl fmt::Display for PathRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.access, self.pattern)
    }
}

impl Pattern {
    /// The depth of the longest of `path` and its ancestors that the pattern names.
    pub fn depth_at(&self, path: &Path) -> Option<usize> {
        match self {
            Self::Subtree(root) => {
                let path = path.as_os_str().as_encoded_bytes();
                is_at_or_below(path, root.as_bytes()).then(|| root.depth())
            }
            Self::Glob(glob) => glob.longest_match(path),
        }
    }

    /// Whether the pattern could name something strictly below `dir`.
    pub fn reaches_below(&self, dir: &AbsPath) -> bool {
        match self {
            Self::Subtree(root) => root != dir && root.is_within(dir),
            Self::Glob(glob) => glob.reaches_below(dir),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Subtree(path) => path.fmt(f),
            Self::Glob(glob) => glob.fmt(f),
        }
    }
}

impl Access {
    /// What it says about one kind of access, if anything.
    pub fn allows(self, kind: Kind) -> Option<bool> {
        match (self, kind) {
            (Self::Write, _) | (Self::Read, Kind::Read) => Some(true),
            (Self::Deny | Self::DenyRead, _) | (Self::DenyWrite, Kind::Write) => Some(false),
            (Self::Read, Kind::Write) | (Self::DenyWrite, Kind::Read) => None,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deny => "deny",
            Self::DenyRead => "deny_read",
            Self::DenyWrite => "deny_write",
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl Origin {
    /// A source that is known when Stockade is built.
    pub const fn fixed(text: &'static str) -> Self {
        Self(Text::Fixed(text))
    }

    /// A flag, as typed.
    pub fn flag(text: impl Into<Arc<str>>) -> Self {
        Self(Text::Told(text.into()))
    }

    /// A line of a file.
    pub fn line(file: &Path, line: usize) -> Self {
        Self(Text::Told(format!("{}:{line}", file.display()).into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Fixed(text) => text,
            Text::Told(text) => text,
        }
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Origin {}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::flag)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How deep a path is; used to say whether a rule names a path itself or an ancestor.
pub(crate) fn depth(path: &Path) -> usize {
    components(path.as_os_str().as_encoded_bytes()).count()
}
