//! How much a command may do, and how a task hands that on to its sub-tasks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::compat::{Context, FrontError};

/// How much a command may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "these are the modes there are")]
pub enum Mode {
    /// It writes nothing but a private `/tmp`.
    Strict,
    /// It writes its directory and a private `/tmp`.
    Workspace,
    /// It is not confined.
    Off,
}

impl Mode {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Workspace => "workspace",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = FrontError;

    fn from_str(word: &str) -> Result<Self, FrontError> {
        let all = [Self::Strict, Self::Workspace, Self::Off];
        let found = all.into_iter().find(|mode| mode.as_str() == word);
        found.ok_or_else(|| FrontError::Unknown {
            what: "mode",
            word: word.to_owned(),
            known: "strict, workspace, off",
        })
    }
}

/// The context with this mode.
#[must_use]
pub fn context_with_mode(context: &Context, mode: Mode) -> Context {
    Context {
        mode: Some(mode),
        ..context.clone()
    }
}

/// The mode of a context; none if nobody chose one, which does not mean [`Mode::Off`].
pub fn mode_from_context(context: &Context) -> Option<Mode> {
    context.mode
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_words_are_modes() {
        for mode in [Mode::Strict, Mode::Workspace, Mode::Off] {
            assert_eq!(mode.to_string().parse::<Mode>().unwrap(), mode);
        }
        for word in [
            "",
            "Strict",
            "OFF",
            "none",
            " off",
            "off\0",
            "workspace-write",
        ] {
            let refused = word.parse::<Mode>().unwrap_err().to_string();
            assert!(refused.contains("strict, workspace, off"), "{refused}");
        }
    }
}
