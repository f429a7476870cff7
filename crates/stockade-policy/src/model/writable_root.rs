//! A directory that may be written to.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de};
use stockade_rules::AbsPath;

use super::path_text;

/// A root below which writing is permitted.
///
/// In JSON the path must be absolute and is normalised. From code, a relative path is taken
/// against the policy's working directory when the policy is judged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct WritableRoot {
    /// The directory or file.
    #[serde(serialize_with = "path_text::serialize")]
    pub root: PathBuf,
}

impl WritableRoot {
    /// A root at this path.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The root as rules know it; none if the path holds NUL or is empty, which no file has.
    pub fn resolve(&self, cwd: &AbsPath) -> Option<AbsPath> {
        if self.root.as_os_str().is_empty() {
            return None;
        }
        cwd.join(&self.root).ok()
    }
}

impl From<AbsPath> for WritableRoot {
    fn from(root: AbsPath) -> Self {
        Self::new(root.into_path_buf())
    }
}

impl<'de> Deserialize<'de> for WritableRoot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Wire {
            #[serde(deserialize_with = "path_text::deserialize")]
            root: PathBuf,
        }
        let wire = Wire::deserialize(deserializer)?;
        AbsPath::new(wire.root)
            .map(Self::from)
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_strict_and_normalised() {
        let parse = |text| serde_json::from_str::<WritableRoot>(text);
        assert_eq!(
            parse(r#"{"root":"/ws/../etc/"}"#).unwrap(),
            WritableRoot::new("/etc")
        );
        for text in [
            r#"{"root":"ws"}"#,
            r#"{"root":"~/ws"}"#,
            r#"{"root":""}"#,
            r#"{"root":"/a\u0000b"}"#,
            r#"{"root":"/a","x":1}"#,
            "{}",
            r#"{"root":7}"#,
            r#"{"root":[47,256]}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let long = format!(r#"{{"root":"/{}"}}"#, "a/".repeat(2000));
        assert!(parse(&long).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_root_need_not_be_unicode() {
        use std::os::unix::ffi::OsStringExt;
        let root = WritableRoot::new(std::ffi::OsString::from_vec(b"/ws\xff".to_vec()));
        let json = serde_json::to_string(&root).unwrap();
        assert_eq!(json, r#"{"root":[47,119,115,255]}"#);
        assert_eq!(serde_json::from_str::<WritableRoot>(&json).unwrap(), root);
    }
}
