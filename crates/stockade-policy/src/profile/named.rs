//! Profiles by their name: those that ship with Stockade, and the user's own, which are files
//! beside the user's configuration.

use std::fmt;
use std::str::FromStr;

use stockade_rules::AbsPath;

use super::layer::BuiltIn;

/// The directory of the user's own profiles, beside the user's own file.
const DIRECTORY: &str = "profiles";

/// How the files of profiles end.
const SUFFIX: &str = ".toml";

/// A profile that is asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third kind")]
pub enum ProfileName {
    /// One that ships with Stockade.
    BuiltIn(BuiltIn),
    /// One of the user's own.
    Own(String),
}

/// A name that no profile can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a profile has letters, digits, `-`, `_` and `.`, and does not begin with `.`")]
#[non_exhaustive]
pub struct BadProfileName;

impl FromStr for ProfileName {
    type Err = BadProfileName;

    fn from_str(name: &str) -> Result<Self, BadProfileName> {
        if let Ok(built_in) = name.parse() {
            return Ok(Self::BuiltIn(built_in));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            return Err(BadProfileName);
        }
        Ok(Self::Own(name.to_owned()))
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn(built_in) => built_in.as_str(),
            Self::Own(name) => name,
        })
    }
}

impl ProfileName {
    /// The name of the profile in this file of the directory, if it is one.
    pub fn of_file(name: &str) -> Option<Self> {
        name.strip_suffix(SUFFIX)?.parse().ok()
    }

    /// Where a profile of the user's own is, beside the user's own file.
    pub fn file(&self, user_file: &AbsPath) -> Option<AbsPath> {
        match self {
            Self::BuiltIn(_) => None,
            Self::Own(name) => profile_directory(user_file)?
                .join(format!("{name}{SUFFIX}"))
                .ok(),
        }
    }
}

/// Where the user's own profiles are.
pub fn profile_directory(user_file: &AbsPath) -> Option<AbsPath> {
    user_file.parent()?.join(DIRECTORY).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        for bad in ["", ".", "..", ".hidden", "a/b", "../up", "a\0", "a b", "ü"] {
            assert_eq!(bad.parse::<ProfileName>(), Err(BadProfileName), "{bad:?}");
        }
        let user = AbsPath::new("/home/u/.config/stockade/config.toml").unwrap();
        let own: ProfileName = "node-22.x".parse().unwrap();
        let file = own.file(&user).unwrap();
        assert_eq!(
            file.as_path().to_str(),
            Some("/home/u/.config/stockade/profiles/node-22.x.toml")
        );
        assert_eq!(ProfileName::of_file("node-22.x.toml"), Some(own));
        assert_eq!(ProfileName::of_file("notes.txt"), None);
    }

    #[test]
    fn a_built_in_can_not_be_replaced_by_a_file() {
        let minimal: ProfileName = "minimal".parse().unwrap();
        assert_eq!(minimal, ProfileName::BuiltIn(BuiltIn::Minimal));
        let user = AbsPath::new("/home/u/.config/stockade/config.toml").unwrap();
        assert_eq!(minimal.file(&user), None);
    }
}
