//! A masked variable with its value and what stands for it inside.

use std::ffi::OsStr;
use std::fmt;

use serde::{Serialize, Serializer};

use super::mask::Mask;

/// A value that is shown to nobody: neither printed nor serialised.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A masked variable of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Masked {
    /// The variable, and the hosts that its value is for.
    pub mask: Mask,
    /// What the variable holds inside: random, of this run alone.
    pub placeholder: String,
    /// What it stands for.
    pub value: Secret,
}

/// Why a value can't be masked. The value is in no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskedError {
    /// It is so short that it would be found where nobody put it.
    #[error("its value has fewer than {MIN_VALUE} characters, too few to be told apart")]
    Short,
    /// It can't stand in a header.
    #[error("its value has characters that can't stand in a header: line ends, control characters")]
    NoHeader,
    /// The variable is not set.
    #[error("it is not set")]
    Unset,
}

/// What is shorter occurs by chance.
const MIN_VALUE: usize = 8;

/// As many random characters as a placeholder has at least: 119 bits.
const MIN_RANDOM: usize = 20;

/// The beginnings that issuers publish for their tokens; clients refuse a token without. They say
/// what kind of token it is and nothing about the value. Longer ones come first.
const PUBLISHED: &[&str] = &[
    "github_pat_",
    "sk-ant-api03-",
    "sk-proj-",
    "sk-ant-",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "dckr_pat_",
    "pypi-",
    "npm_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "hf_",
    "sk-",
];

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

impl Masked {
    /// A placeholder for the variable's value, made of `random`, which gives bytes that nobody can
    /// know.
    ///
    /// Of the value it has the length, if that is no shorter than a placeholder's own, and the
    /// beginning, if that is one that its issuer publishes.
    ///
    /// # Errors
    /// If the variable is not set, or its value can't be found again or sent.
    pub fn new(
        mask: Mask,
        value: Option<&OsStr>,
        mut random: impl FnMut() -> u8,
    ) -> Result<Self, MaskedError> {
        let value = value.ok_or(MaskedError::Unset)?;
        let value = value.to_str().ok_or(MaskedError::NoHeader)?;
        if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) || value.trim() != value {
            return Err(MaskedError::NoHeader);
        }
        if value.len() < MIN_VALUE {
            return Err(MaskedError::Short);
        }
        let mut published = PUBLISHED.iter();
        let known = published.find(|known| value.starts_with(**known));
        let mut placeholder = known.map_or_else(String::new, |known| (*known).to_owned());
        let length = value.len().max(placeholder.len() + MIN_RANDOM);
        while placeholder.len() < length {
            // Without those beyond the last multiple, which would favour the first letters.
            let byte = usize::from(random());
            if byte < 256 / LETTERS.len() * LETTERS.len() {
                placeholder.push(LETTERS[byte % LETTERS.len()].into());
            }
        }
        Ok(Self {
            mask,
            placeholder,
            value: Secret(value.to_owned()),
        })
    }
}

impl Secret {
    /// The value, for a header of a request to a host that it is for.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether it is somewhere in these bytes.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let value = self.0.as_bytes();
        bytes.windows(value.len()).any(|window| window == value)
    }
}

/// Memory that is given back must not hold it.
impl Drop for Secret {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0).into_bytes();
        bytes.fill(0);
        // Otherwise the compiler may leave out what nobody reads.
        std::hint::black_box(&bytes);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(value: &str) -> Result<Masked, MaskedError> {
        let mut state = 7u8;
        let mask = "TOKEN=a.test".parse().unwrap();
        Masked::new(mask, Some(value.as_ref()), move || {
            state = state.wrapping_mul(73).wrapping_add(41);
            state
        })
    }

    #[test]
    fn only_what_is_published_is_kept() {
        let token = "ghp_0123456789abcdef0123456789abcdef0123";
        let placeholder = masked(token).unwrap().placeholder;
        assert!(placeholder.starts_with("ghp_"));
        assert_eq!(placeholder.len(), token.len());
        let placeholder = masked("hunter2hunter2").unwrap().placeholder;
        assert!(!placeholder.starts_with('h'));
        assert_eq!(placeholder.len(), MIN_RANDOM);
        assert_eq!(
            masked("sk-short").unwrap().placeholder.len(),
            3 + MIN_RANDOM
        );
    }

    #[test]
    fn what_can_not_be_masked_is_refused() {
        assert_eq!(masked("short"), Err(MaskedError::Short));
        assert_eq!(masked(""), Err(MaskedError::Short));
        for value in [
            "with\nline-end",
            "tab\tinside",
            "ümlaut-value",
            " leading-space",
        ] {
            assert_eq!(masked(value), Err(MaskedError::NoHeader), "{value:?}");
        }
        let mask = "TOKEN=a.test".parse().unwrap();
        assert_eq!(Masked::new(mask, None, || 0), Err(MaskedError::Unset));
    }

    #[test]
    fn the_value_is_shown_to_nobody() {
        let masked = masked("correct horse battery").unwrap();
        let shown = format!("{masked:?} {}", serde_json::to_string(&masked).unwrap());
        assert!(!shown.contains("horse"), "{shown}");
        assert!(shown.contains(&masked.placeholder));
    }

    proptest! {
        #[test]
        fn a_placeholder_shares_no_more_than_a_published_beginning(value in "[!-~]{8,60}") {
            let masked = masked(&value).unwrap();
            prop_assert!(masked.placeholder.len() >= MIN_RANDOM);
            let same = value.bytes().zip(masked.placeholder.bytes()).take_while(|(a, b)| a == b);
            let known = PUBLISHED.iter().filter(|known| value.starts_with(**known));
            let most = known.map(|known| known.len()).max().unwrap_or(0);
            // The random letters of this test are always the same, so one or two may agree.
            prop_assert!(same.count() <= most + 3);
        }
    }
}
