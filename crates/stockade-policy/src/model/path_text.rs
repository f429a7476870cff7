//! Paths in JSON: text where they are Unicode, an array of bytes where they are not.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::{self, Serialize, Serializer};

pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => serializer.serialize_str(text),
        None if cfg!(unix) => path.as_os_str().as_encoded_bytes().serialize(serializer),
        None => Err(ser::Error::custom("path is not Unicode")),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    struct Text;

    impl<'de> Visitor<'de> for Text {
        type Value = PathBuf;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a path, as text or as an array of bytes")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<PathBuf, E> {
            Ok(PathBuf::from(text))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<PathBuf, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = seq.next_element::<u8>()? {
                bytes.push(byte);
            }
            from_bytes(bytes).ok_or_else(|| de::Error::custom("path is not Unicode"))
        }
    }

    deserializer.deserialize_any(Text)
}

/// A name as a pattern that matches it: special characters escaped, and a `?` for each byte that
/// is not part of Unicode text, which matches a little more than the name.
pub(super) fn as_pattern(name: &OsStr) -> String {
    let mut pattern = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if matches!(character, '*' | '?' | '[' | ']' | '\\') {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern.extend(chunk.invalid().iter().map(|_| '?'));
    }
    pattern
}

#[cfg(unix)]
#[expect(
    clippy::unnecessary_wraps,
    reason = "fails on systems whose paths are not bytes"
)]
fn from_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).map(PathBuf::from).ok()
}
