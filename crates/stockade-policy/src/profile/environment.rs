//! What the command finds in its environment beyond what every command gets.

use std::ffi::{OsStr, OsString};
use std::fmt;

use serde::{Serialize, Serializer};

use crate::env::{EnvError, EnvRequest};

use super::sourced::Sourced;

/// Changes to the environment, which is otherwise an allowlist of harmless names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// Variables that are set, whatever the host has. The last one of a name counts.
    pub set: Vec<Sourced<EnvVar>>,
    /// Variables that are handed on from the host, though they are not on the allowlist.
    pub keep: Vec<Sourced<EnvName>>,
}

/// The name of a variable: not empty, without `=` or NUL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnvName(OsString);

/// A variable and its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnvVar {
    name: EnvName,
    value: OsString,
}

impl Environment {
    /// The request from which the command's environment is built.
    ///
    /// # Errors
    /// None, for names and values that are of these types.
    pub fn request(&self) -> Result<EnvRequest, EnvError> {
        let mut request = EnvRequest::new();
        for Sourced { value: name, .. } in &self.keep {
            request.keep(name.as_os_str())?;
        }
        for Sourced { value: var, .. } in &self.set {
            request.set(var.name().as_os_str(), var.value())?;
        }
        Ok(request)
    }
}

impl EnvName {
    /// Checks a name.
    ///
    /// # Errors
    /// If it is empty or contains `=` or NUL.
    pub fn new(name: &OsStr) -> Result<Self, EnvError> {
        let bytes = name.as_encoded_bytes();
        if bytes.is_empty() || bytes.iter().any(|byte| matches!(byte, b'=' | 0)) {
            return Err(EnvError::Name(name.to_owned()));
        }
        Ok(Self(name.to_owned()))
    }

    /// The name.
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }
}

impl EnvVar {
    /// A variable.
    ///
    /// # Errors
    /// If the value contains NUL.
    pub fn new(name: EnvName, value: impl Into<OsString>) -> Result<Self, EnvError> {
        let value = value.into();
        if value.as_encoded_bytes().contains(&0) {
            return Err(EnvError::Value(name.0));
        }
        Ok(Self { name, value })
    }

    /// Reads `NAME=VALUE`; none if there is no `=`.
    pub(super) fn parse(text: &OsStr) -> Option<Result<Self, EnvError>> {
        let bytes = text.as_encoded_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=')?;
        let (name, value) = split_at(text, at);
        Some(EnvName::new(&name).and_then(|name| Self::new(name, value)))
    }

    /// Its name.
    pub fn name(&self) -> &EnvName {
        &self.name
    }

    /// Its value.
    pub fn value(&self) -> &OsStr {
        &self.value
    }
}

impl fmt::Display for EnvName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl Serialize for EnvName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_text(&self.0, serializer)
    }
}

impl Serialize for EnvVar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        struct Value<'a>(&'a OsStr);
        impl Serialize for Value<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serialize_text(self.0, serializer)
            }
        }
        let mut fields = serializer.serialize_struct("EnvVar", 2)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("value", &Value(&self.value))?;
        fields.end()
    }
}

/// Text where it is UTF-8, an array of bytes where it is not, as paths are.
fn serialize_text<S: Serializer>(text: &OsStr, serializer: S) -> Result<S::Ok, S::Error> {
    match text.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => text.as_encoded_bytes().serialize(serializer),
    }
}

/// The text before and after the `=` at this byte.
#[cfg(unix)]
fn split_at(text: &OsStr, at: usize) -> (OsString, OsString) {
    use std::os::unix::ffi::OsStrExt;
    let bytes = text.as_bytes();
    let part = |bytes| OsStr::from_bytes(bytes).to_owned();
    (part(&bytes[..at]), part(&bytes[at + 1..]))
}

/// The text before and after the `=` at this byte; what is no Unicode becomes U+FFFD.
#[cfg(not(unix))]
fn split_at(text: &OsStr, at: usize) -> (OsString, OsString) {
    let bytes = text.as_encoded_bytes();
    let part = |bytes| String::from_utf8_lossy(bytes).into_owned().into();
    (part(&bytes[..at]), part(&bytes[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_checked() {
        let name = |text: &str| EnvName::new(OsStr::new(text));
        for bad in ["", "A=B", "A\0"] {
            assert_eq!(name(bad), Err(EnvError::Name(bad.into())));
        }
        let parse = |text: &str| EnvVar::parse(OsStr::new(text));
        let pair = EnvVar::new(name("A").unwrap(), "x=y");
        assert_eq!(parse("A=x=y"), Some(pair));
        assert_eq!(parse("A"), None);
        assert!(matches!(parse("=x"), Some(Err(EnvError::Name(_)))));
        assert!(matches!(parse("A=x\0"), Some(Err(EnvError::Value(_)))));
    }

    #[cfg(unix)]
    #[test]
    fn values_that_are_not_text_survive() {
        use std::os::unix::ffi::OsStrExt;
        let value = OsStr::from_bytes(b"\xff");
        let var = EnvVar::new(EnvName::new(OsStr::new("A")).unwrap(), value).unwrap();
        assert_eq!(
            serde_json::to_string(&var).unwrap(),
            r#"{"name":"A","value":[255]}"#
        );
    }
}
