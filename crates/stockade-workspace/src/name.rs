//! Names of workspaces and of their overlays' snapshots. They become names of directories in the
//! store and words on command lines, so they are checked once, here, and are harmless from then on.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A name: letters, digits, `.`, `_` and `-`, at most 64, not beginning with `.` or `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WorkspaceName(String);

/// The name of an overlay's snapshot, with the same letters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SnapshotName(String);

/// A name that can't be one of a workspace or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` can't be the name of a {what}: at most 64 letters, digits, `.`, `_`, `-`, with a letter or digit in front"
)]
pub struct NameError {
    what: &'static str,
    text: String,
}

const MAX_NAME_BYTES: usize = 64;

impl WorkspaceName {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that a directory's own workspace has when the user chose none: the directory's
    /// name as far as it can be one, and enough of its path's hash to tell it from others.
    pub fn for_directory(path: &std::path::Path) -> Self {
        let hash = crate::id::ObjectId::of(path.as_os_str().as_encoded_bytes()).to_string();
        let last = path.file_name().unwrap_or_default().to_string_lossy();
        let kept: String = last
            .chars()
            .filter(|letter| is_plain(*letter))
            .take(40)
            .collect();
        let kept = kept.trim_start_matches(['.', '-', '_']);
        let prefix = if kept.is_empty() { "ws" } else { kept };
        Self(format!("{prefix}-{}", &hash[..8]))
    }

    /// The same name with a number behind it, cut to what a name can hold.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Self {
        let end = format!("-{number}");
        let kept = self.0.len().min(MAX_NAME_BYTES - end.len());
        Self(format!("{}{end}", &self.0[..kept]))
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}

/// The text itself, if it can be a name.
fn checked(what: &'static str, text: &str) -> Result<String, NameError> {
    let begins_well = text.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if begins_well && text.len() <= MAX_NAME_BYTES && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    let shown: String = text.chars().take(MAX_NAME_BYTES + 1).collect();
    Err(NameError {
        what,
        text: shown.escape_debug().to_string(),
    })
}

macro_rules! name {
    ($name:ident, $what:literal) => {
        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                checked($what, text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(WorkspaceName, "workspace");
name!(SnapshotName, "snapshot");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_lead_elsewhere_are_refused() {
        for bad in [
            "", ".", "..", "../x", "a/b", "-f", ".hidden", "a b", "a\0b", "é", "a\n",
        ] {
            assert!(bad.parse::<WorkspaceName>().is_err(), "{bad:?}");
            assert!(bad.parse::<SnapshotName>().is_err(), "{bad:?}");
        }
        assert!("x".repeat(65).parse::<WorkspaceName>().is_err());
        for good in ["a", "feature-1", "A.b_c", "0"] {
            assert_eq!(good.parse::<WorkspaceName>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_directory_always_has_a_valid_name() {
        for path in ["/", "/home/me/my project", "/x/.config", "/tmp/---", "/é/ü"] {
            let name = WorkspaceName::for_directory(path.as_ref());
            assert_eq!(name.as_str().parse::<WorkspaceName>().unwrap(), name);
            let last = name.numbered(u32::MAX);
            assert_eq!(last.as_str().parse::<WorkspaceName>().unwrap(), last);
        }
    }
}
