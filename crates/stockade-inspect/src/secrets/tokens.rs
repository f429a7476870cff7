//! Tokens that can be told by their prefix.
//!
//! One row per format: the prefix, the alphabet and length of what follows, and what it is. The
//! formats are published by their issuers; where one carries a checksum it is verified.

mod table;

use super::shape::Alphabet;
use crate::finding::ThreatLevel;
pub(super) use table::TOKENS;

/// One token format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) prefix: &'static str,
    pub(super) rule: &'static str,
    pub(super) name: &'static str,
    pub(super) alphabet: Alphabet,
    /// Fewest and most bytes after the prefix.
    pub(super) length: (usize, usize),
    pub(super) level: ThreatLevel,
    pub(super) check: Check,
}

/// What else must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// The last six characters are a CRC-32 in base62: certain if they hold, likely if not.
    Crc,
    /// Nothing but prefix, alphabet and length.
    None,
    /// At least one digit and enough entropy: the prefix is short or a word.
    Random,
}

const fn token(
    prefix: &'static str,
    rule: &'static str,
    name: &'static str,
    alphabet: Alphabet,
    length: (usize, usize),
) -> Token {
    Token {
        prefix,
        rule,
        name,
        alphabet,
        length,
        level: ThreatLevel::Critical,
        check: Check::None,
    }
}

impl Token {
    const fn level(mut self, level: ThreatLevel) -> Self {
        self.level = level;
        self
    }

    const fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    const fn random(self) -> Self {
        self.check(Check::Random)
    }
}

/// Number of formats.
pub(super) const COUNT: usize = TOKENS.len();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_sound() {
        for token in TOKENS {
            assert!(token.prefix.len() >= 3, "{}", token.prefix);
            assert!(token.length.0 <= token.length.1, "{}", token.prefix);
            assert!(token.rule.starts_with("secret."), "{}", token.rule);
        }
    }
}
