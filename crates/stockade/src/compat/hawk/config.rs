//! Hawk's configuration document.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stockade_policy::profile::{
    Backend, Base, BasePolicy, Flags, LimitKey, LimitSetting, NetworkMode, Profile,
};

use crate::compat::{Context, Door, FrontError, Prepared, profile};

/// What confines commands, in Hawk's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "these are the words there are")]
pub enum Kind {
    /// The strongest tier that holds here.
    Auto,
    /// A root of its own with the system's directories only, by namespaces.
    Chroot,
    /// A container.
    Docker,
    /// Namespaces.
    Namespace,
    /// Nothing; only together with `enabled: false`.
    None,
    /// The sandbox of macOS.
    Seatbelt,
}

/// Hawk's configuration document. What is left out of it is not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "it is that document")]
pub struct Config {
    /// Whether commands are confined at all.
    pub enabled: bool,
    /// By what.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Whether commands have the host's network.
    #[serde(default)]
    pub allow_network: bool,
    /// Whether commands write their directory.
    #[serde(default)]
    pub allow_write: bool,
    /// Directories that are readable although hidden otherwise, and never writable.
    #[serde(default)]
    pub read_only_dirs: Vec<PathBuf>,
    /// Directories that are writable beside the command's own.
    #[serde(default)]
    pub writable_dirs: Vec<PathBuf>,
    /// Memory in MiB; 0 for the engine's own limit.
    #[serde(default)]
    pub max_memory_mb: u64,
    /// Share of a CPU in percent; only 0, no limit, can be held.
    #[serde(default)]
    pub max_cpu_pct: u64,
}

/// Confined by the strongest tier that holds, with network, the directory writable, 512 MiB.
pub fn default_config() -> Config {
    Config {
        enabled: true,
        kind: Kind::Auto,
        allow_network: true,
        allow_write: true,
        read_only_dirs: Vec::new(),
        writable_dirs: Vec::new(),
        max_memory_mb: 512,
        max_cpu_pct: 0,
    }
}

impl Default for Config {
    fn default() -> Self {
        default_config()
    }
}

impl Config {
    /// The profile that it asks for about `dir`; none if it asks for no sandbox.
    ///
    /// # Errors
    /// If it contradicts itself, or asks for what nothing here can hold.
    pub fn profile(&self, dir: &Path) -> Result<Option<Profile>, FrontError> {
        let refuse = |text: &str| Err(FrontError::Settings(text.to_owned()));
        match (self.enabled, self.kind) {
            (false, Kind::None) => return Ok(None),
            (false, _) => {
                return refuse("`enabled` is false and `type` is not `none`: say both or neither");
            }
            (true, Kind::None) => return refuse("`enabled` is true and `type` is `none`"),
            (true, _) => {}
        }
        if !self.allow_write && !self.writable_dirs.is_empty() {
            return refuse("`writable_dirs` lists directories and `allow_write` is false");
        }
        if self.max_cpu_pct != 0 {
            return refuse("`max_cpu_pct`: a share of the CPU can't be held here; 0 is no limit");
        }
        let words = |dirs: &[PathBuf]| dirs.iter().map(Into::into).collect::<Vec<_>>();
        let (backend, base) = match self.kind {
            Kind::Auto | Kind::None => (None, None),
            Kind::Chroot => (Some(Backend::Native), Some(Base::Minimal)),
            Kind::Docker => (Some(Backend::Docker), None),
            Kind::Namespace => (Some(Backend::Native), None),
            Kind::Seatbelt => (Some(Backend::Seatbelt), None),
        };
        let memory = match self.max_memory_mb {
            0 => Vec::new(),
            mib => vec![
                LimitSetting::parse(LimitKey::Memory, &format!("{mib}M"))
                    .map_err(|error| FrontError::Settings(error.to_string()))?,
            ],
        };
        let flags = Flags {
            base_policy: Some(if self.allow_write {
                BasePolicy::WorkspaceWrite
            } else {
                BasePolicy::ReadOnly
            }),
            backend,
            base,
            net: Some(if self.allow_network {
                NetworkMode::Open
            } else {
                NetworkMode::Off
            }),
            read: words(&self.read_only_dirs),
            deny_write: words(&self.read_only_dirs),
            write: words(&self.writable_dirs),
            limit: memory,
            ..Flags::default()
        };
        profile(dir, flags).map(Some)
    }

    /// A shell command in `dir`, confined as the document says. Cancelling the context kills it.
    ///
    /// # Errors
    /// If the document contradicts itself, or can't be enforced here.
    pub fn run(
        &self,
        context: &Context,
        door: &Door,
        dir: &Path,
        command: &str,
    ) -> Result<Prepared, FrontError> {
        let argv = ["bash", "-c", command].map(Into::into);
        door.prepare(context, self.profile(dir)?, dir, &argv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_hawk_s() {
        let text = serde_json::to_value(default_config()).unwrap();
        let expected = serde_json::json!({
            "enabled": true, "type": "auto", "allow_network": true, "allow_write": true,
            "read_only_dirs": [], "writable_dirs": [], "max_memory_mb": 512, "max_cpu_pct": 0,
        });
        assert_eq!(text, expected);
        let least: Config = serde_json::from_str(r#"{"enabled":true,"type":"auto"}"#).unwrap();
        assert!(!least.allow_network && !least.allow_write);
        for odd in [
            r#"{"enabled":true,"type":""}"#,
            r#"{"enabled":true,"type":"firejail"}"#,
            r#"{"enabled":true}"#,
            r#"{"enabled":true,"type":"auto","allow_netwrok":true}"#,
            r#"{"enabled":true,"type":"auto","max_memory_mb":-1}"#,
        ] {
            assert!(serde_json::from_str::<Config>(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let dir = Path::new("/srv");
        let config = |kind, enabled| Config {
            enabled,
            kind,
            ..default_config()
        };
        assert!(config(Kind::None, false).profile(dir).unwrap().is_none());
        assert!(config(Kind::None, true).profile(dir).is_err());
        assert!(config(Kind::Auto, false).profile(dir).is_err());
        assert!(config(Kind::Auto, true).profile(dir).unwrap().is_some());
        assert!(config(Kind::Auto, true).profile(Path::new("srv")).is_err());
        let mut odd = config(Kind::Auto, true);
        odd.max_cpu_pct = 50;
        assert!(odd.profile(dir).is_err());
        odd = config(Kind::Auto, true);
        odd.allow_write = false;
        odd.writable_dirs = vec!["/var/cache".into()];
        assert!(odd.profile(dir).is_err());
        let mut huge = config(Kind::Auto, true);
        huge.max_memory_mb = u64::MAX;
        assert!(huge.profile(dir).is_err());
    }
}
