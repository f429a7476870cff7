//! Bytes in JSON: text where they are text, base64 where they are not.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes: `{"text": "…"}` where they are UTF-8, else `{"base64": "…"}`.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "there are two ways")]
pub enum Bytes {
    /// The bytes as UTF-8.
    Text(String),
    /// The bytes in base64 with padding (RFC 4648, section 4).
    Base64(String),
}

impl Bytes {
    /// Text if the bytes are UTF-8.
    pub fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(STANDARD.encode(bytes)),
        }
    }

    /// The bytes; none if the base64 is malformed.
    pub fn decode(self) -> Option<Vec<u8>> {
        match self {
            Self::Text(text) => Some(text.into_bytes()),
            Self::Base64(text) => STANDARD.decode(text).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_survive() {
        let all: Vec<u8> = (0..=255).collect();
        for length in 0..all.len() {
            let bytes = Bytes::new(&all[..length]);
            let json = serde_json::to_string(&bytes).unwrap();
            let back: Bytes = serde_json::from_str(&json).unwrap();
            assert_eq!(back.decode().unwrap(), &all[..length]);
        }
    }
}
