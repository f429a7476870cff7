//! Settings that are one word out of a fixed list, spelt alike in files, flags and reports.

use std::fmt;

/// A word that is not in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownWord {
    /// What the word should have named: `level`, `clause`, …
    pub what: &'static str,
    /// The word that was given.
    pub given: String,
    /// The words that exist.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown {} `{}`: it is one of {}",
            self.what,
            self.given.escape_debug(),
            self.known.join(", ")
        )
    }
}

impl std::error::Error for UnknownWord {}

macro_rules! words {
    (
        $(#[$meta:meta])*
        pub enum $name:ident($what:literal) {
            $($(#[$doc:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[expect(clippy::exhaustive_enums, reason = "the engine must handle every word")]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every word, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The spellings of [`Self::ALL`].
            pub const WORDS: &'static [&'static str] = &[$($text),+];

            /// As files and flags spell it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::profile::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err($crate::profile::UnknownWord {
                        what: $what,
                        given: text.to_owned(),
                        known: Self::WORDS,
                    }),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use words;
