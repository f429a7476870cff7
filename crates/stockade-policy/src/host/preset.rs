//! Presets: hosts that belong together and are allowed by one word. Which hosts a preset means is
//! up to the machine: the configuration of the installed client names them.

use std::fmt;
use std::str::FromStr;

use super::{HostPattern, HostPatternError};

/// The hosts of one kind of client, such as `@npm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// The registry of cargo.
    Crates,
    /// The mirrors of apt.
    Debian,
    /// GitHub, which git has no setting for.
    GitHub,
    /// The module proxy and checksum database of go.
    Go,
    /// The registry of npm.
    Npm,
    /// The index of pip.
    PyPi,
}

impl Preset {
    /// Every preset and its word.
    pub const WORDS: &'static [(&'static str, Self)] = &[
        ("@crates", Self::Crates),
        ("@debian", Self::Debian),
        ("@github", Self::GitHub),
        ("@go", Self::Go),
        ("@npm", Self::Npm),
        ("@pypi", Self::PyPi),
    ];
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Self::WORDS.iter();
        let word = words.find(|(_, preset)| preset == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

/// A host or a preset, as `--allow` takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum Allowed {
    /// A host.
    Host(HostPattern),
    /// A preset.
    Preset(Preset),
}

/// Why a text is neither a host nor a preset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllowedError {
    /// It is no host.
    #[error(transparent)]
    Host(#[from] HostPatternError),
    /// It is no preset.
    #[error("there is no preset `{name}`: the presets are {}", words())]
    Preset {
        /// What was written.
        name: String,
    },
}

fn words() -> String {
    let words: Vec<&str> = Preset::WORDS.iter().map(|(word, _)| *word).collect();
    words.join(", ")
}

impl FromStr for Allowed {
    type Err = AllowedError;

    fn from_str(text: &str) -> Result<Self, AllowedError> {
        if !text.starts_with('@') {
            return Ok(Self::Host(HostPattern::parse(text)?));
        }
        let mut words = Preset::WORDS.iter();
        let found = words.find(|(word, _)| *word == text);
        let (_, preset) = found.ok_or_else(|| AllowedError::Preset {
            name: text.to_owned(),
        })?;
        Ok(Self::Preset(*preset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_printed() {
        for (word, preset) in Preset::WORDS {
            assert_eq!(word.parse::<Allowed>().unwrap(), Allowed::Preset(*preset));
            assert_eq!(preset.to_string(), *word);
        }
        let unknown = "@none".parse::<Allowed>().unwrap_err().to_string();
        assert!(unknown.contains("@npm"), "{unknown}");
        assert!(matches!("a.test".parse(), Ok(Allowed::Host(_))));
        assert!("*".parse::<Allowed>().is_err());
    }
}
