//! What the command finds in its environment beyond what every command gets.

use std::ffi::{OsStr, OsString};
use std::fmt;

use serde::{Serialize, Serializer};

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

/// Why a text is no variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// The name is empty.
    #[error("the name of the variable is empty")]
    Empty,
    /// The name contains `=` or NUL.
    #[error("`{0}` can't be the name of a variable: it contains `=` or a NUL byte")]
    Name(String),
    /// The value contains NUL.
    #[error("the value of `{0}` contains a NUL byte")]
    Value(String),
    /// There is no `=`.
    #[error("`{0}` is not of the form NAME=VALUE")]
    Form(String),
}

impl EnvName {
    /// Checks a name.
    ///
    /// # Errors
    /// If it is empty or contains `=` or NUL.
    pub fn new(name: impl Into<OsString>) -> Result<Self, EnvError> {
        let name = name.into();
        let bytes = name.as_encoded_bytes();
        if bytes.is_empty() {
            Err(EnvError::Empty)
        } else if bytes.iter().any(|byte| matches!(byte, b'=' | 0)) {
            Err(EnvError::Name(escaped(&name)))
        } else {
            Ok(Self(name))
        }
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
            return Err(EnvError::Value(escaped(&name.0)));
        }
        Ok(Self { name, value })
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

fn escaped(text: &OsStr) -> String {
    text.to_string_lossy().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_checked() {
        assert_eq!(EnvName::new(""), Err(EnvError::Empty));
        assert!(matches!(EnvName::new("A=B"), Err(EnvError::Name(_))));
        assert!(matches!(EnvName::new("A\0"), Err(EnvError::Name(_))));
        let name = EnvName::new("A").unwrap();
        assert!(EnvVar::new(name.clone(), "x=y").is_ok());
        assert_eq!(EnvVar::new(name, "x\0"), Err(EnvError::Value("A".into())));
    }

    #[cfg(unix)]
    #[test]
    fn values_that_are_not_text_survive() {
        use std::os::unix::ffi::OsStrExt;
        let value = OsStr::from_bytes(b"\xff");
        let var = EnvVar::new(EnvName::new("A").unwrap(), value).unwrap();
        assert_eq!(
            serde_json::to_string(&var).unwrap(),
            r#"{"name":"A","value":[255]}"#
        );
    }
}
