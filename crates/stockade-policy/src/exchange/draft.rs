//! A profile file that is about to be written.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use crate::profile::{BuiltIn, NetworkMode};

/// The keys of a profile that other sandboxes have too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Draft {
    /// `extends`.
    pub extends: Option<BuiltIn>,
    /// `filesystem.base = "minimal"`.
    pub is_minimal: bool,
    /// `filesystem.read`.
    pub read: Vec<String>,
    /// `filesystem.write`.
    pub write: Vec<String>,
    /// `filesystem.deny_read`.
    pub deny_read: Vec<String>,
    /// `filesystem.deny_write`.
    pub deny_write: Vec<String>,
    /// `network.mode`; a list of hosts needs none.
    pub mode: Option<NetworkMode>,
    /// `network.allow`.
    pub allow: Vec<String>,
    /// `network.block`.
    pub block: Vec<String>,
    /// `network.unix`.
    pub unix: Vec<String>,
    /// `network.expose`.
    pub expose: Vec<u16>,
    /// `environment.keep`.
    pub keep: Vec<String>,
    /// `environment.set`.
    pub set: BTreeMap<String, String>,
}

/// The file's text.
impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "version = 1")?;
        if let Some(extends) = &self.extends {
            writeln!(f, "extends = {}", string(extends.as_str()))?;
        }
        let base = if self.is_minimal {
            "base = \"minimal\"\n"
        } else {
            ""
        };
        let files = [
            ("read", &self.read),
            ("write", &self.write),
            ("deny_read", &self.deny_read),
            ("deny_write", &self.deny_write),
        ];
        table(f, "filesystem", base, &files)?;
        let mut network = String::new();
        if let Some(mode) = self.mode.filter(|_| self.allow.is_empty()) {
            let _ = writeln!(network, "mode = {}", string(mode.as_str()));
        }
        if !self.expose.is_empty() {
            let _ = writeln!(network, "expose = {:?}", self.expose);
        }
        let hosts = [
            ("allow", &self.allow),
            ("block", &self.block),
            ("unix", &self.unix),
        ];
        table(f, "network", &network, &hosts)?;
        let mut environment = String::new();
        if !self.set.is_empty() {
            let pairs = self.set.iter();
            let pairs = pairs.map(|(name, value)| format!("{} = {}", string(name), string(value)));
            let pairs: Vec<String> = pairs.collect();
            let _ = writeln!(environment, "set = {{ {} }}", pairs.join(", "));
        }
        table(f, "environment", &environment, &[("keep", &self.keep)])
    }
}

fn table(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    first: &str,
    lists: &[(&str, &Vec<String>)],
) -> fmt::Result {
    if first.is_empty() && lists.iter().all(|(_, list)| list.is_empty()) {
        return Ok(());
    }
    write!(f, "\n[{name}]\n{first}")?;
    for (key, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
        let words: Vec<String> = list.iter().map(|word| string(word)).collect();
        writeln!(f, "{key} = [{}]", words.join(", "))?;
    }
    Ok(())
}

/// A basic string of TOML, which is one of JSON but for DEL.
fn string(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}
