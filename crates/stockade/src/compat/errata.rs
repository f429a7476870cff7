//! Errata's front door: file system and network, each by itself.
//!
//! | Errata | here |
//! |---|---|
//! | `Config { Filesystem, Network, ProjectRoot }` | [`Config`]; [`Config::parse`] for its strings |
//! | `Config.Active` | [`Config::active`] |
//! | `Available` | [`Door::available`], by trying |
//! | `BuildCmd` | [`build_cmd`] |
//! | `WithConfig`, `ConfigFromContext` | [`with_config`], [`config_from_context`] |
//!
//! The two dimensions are independent: a command without network writes whatever its user may
//! write, and a command that may not write has the host's network if it is not cut as well.
//!
//! # Differences
//! - A word that is not known, and a machine on which nothing confines a command, are errors.
//! - Where writing is restricted, credentials are hidden, and `/tmp` is the command's own.
//! - Processes are apart from the host's, the environment is an allowlist, and without network
//!   the host's Unix sockets are out of reach too.
//! - Where only the network is restricted `/dev`, `/proc` and `/sys` are still the sandbox's own,
//!   and nothing can be made or removed in `/` itself.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use stockade::compat::errata::{Config, build_cmd, config_from_context, with_config};
//! use stockade::compat::{Context, Door};
//!
//! let door = Door::new("/usr/local/bin/stockade");
//! let config = Config::parse("project_only", "none", "/home/me/project")?;
//! let task = with_config(&Context::new(), config);
//! // … and in a sub-task:
//! let config = config_from_context(&task).ok_or("no configuration")?;
//! let ended = build_cmd(&task, &door, config, "sh", ["-c", "make test"])?.output()?;
//! println!("{}", ended.code);
//! # Ok(())
//! # }
//! ```

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use stockade_policy::profile::{BasePolicy, Flags, NetworkMode, Profile, Sourced};
use stockade_rules::{AbsPath, Access, Origin, PathRule, Pattern, RuleSet};

use super::{Context, Door, FrontError, Prepared};

/// What may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "these are the words there are")]
pub enum Filesystem {
    /// Whatever the user may write.
    #[default]
    #[serde(alias = "")]
    Unrestricted,
    /// The project and a private `/tmp`.
    ProjectOnly,
    /// A private `/tmp`.
    ReadOnly,
}

/// Who may be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "these are the words there are")]
pub enum NetworkAccess {
    /// Everybody.
    #[default]
    #[serde(alias = "")]
    Full,
    /// Nobody.
    None,
}

impl FromStr for Filesystem {
    type Err = FrontError;

    fn from_str(word: &str) -> Result<Self, FrontError> {
        match word {
            "" | "unrestricted" => Ok(Self::Unrestricted),
            "project_only" => Ok(Self::ProjectOnly),
            "read_only" => Ok(Self::ReadOnly),
            _ => Err(FrontError::Unknown {
                what: "restriction of the file system",
                word: word.to_owned(),
                known: "unrestricted, project_only, read_only",
            }),
        }
    }
}

impl FromStr for NetworkAccess {
    type Err = FrontError;

    fn from_str(word: &str) -> Result<Self, FrontError> {
        match word {
            "" | "full" => Ok(Self::Full),
            "none" => Ok(Self::None),
            _ => Err(FrontError::Unknown {
                what: "restriction of the network",
                word: word.to_owned(),
                known: "full, none",
            }),
        }
    }
}

/// The restrictions of a command. The default has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct Config {
    /// What may be written.
    pub filesystem: Filesystem,
    /// Who may be reached.
    pub network: NetworkAccess,
    /// The project, which commands start in; the current directory if none.
    pub project_root: Option<PathBuf>,
}

impl Config {
    /// Reads the strings of Errata's own structure; an empty one is its default.
    ///
    /// # Errors
    /// If a word is not known.
    pub fn parse(
        filesystem: &str,
        network: &str,
        project_root: impl AsRef<OsStr>,
    ) -> Result<Self, FrontError> {
        let root = project_root.as_ref();
        Ok(Self {
            filesystem: filesystem.parse()?,
            network: network.parse()?,
            project_root: (!root.is_empty()).then(|| root.into()),
        })
    }

    /// Whether anything is restricted.
    pub fn active(&self) -> bool {
        self.filesystem != Filesystem::Unrestricted || self.network == NetworkAccess::None
    }

    /// The profile that it asks for; none if nothing is restricted.
    ///
    /// # Errors
    /// If the project can't be one.
    pub fn profile(&self) -> Result<Option<Profile>, FrontError> {
        if !self.active() {
            return Ok(None);
        }
        let base_policy = match self.filesystem {
            Filesystem::ReadOnly => BasePolicy::ReadOnly,
            Filesystem::ProjectOnly | Filesystem::Unrestricted => BasePolicy::WorkspaceWrite,
        };
        let net = match self.network {
            NetworkAccess::Full => NetworkMode::Open,
            NetworkAccess::None => NetworkMode::Off,
        };
        let flags = Flags {
            base_policy: Some(base_policy),
            net: Some(net),
            ..Flags::default()
        };
        let mut profile = super::profile(&self.root()?, flags)?;
        match self.filesystem {
            Filesystem::Unrestricted => open_files(&mut profile),
            Filesystem::ProjectOnly => {
                // A project in an odd place is granted because it was named, not because one
                // stands in it.
                let stated = Pattern::Subtree(profile.cwd.clone());
                let origin = Origin::fixed("project_root");
                let root = PathRule::stated(stated, Access::Write, origin);
                profile.rules.push(root);
                if !profile.writable_roots.contains(&profile.cwd) {
                    profile.writable_roots.push(profile.cwd.clone());
                    profile.writable_roots.sort();
                }
            }
            Filesystem::ReadOnly => {}
        }
        Ok(Some(profile))
    }

    fn root(&self) -> Result<PathBuf, FrontError> {
        super::or_current(self.project_root.as_deref())
    }
}

/// A command under these restrictions, in the project. Cancelling the context kills it.
///
/// # Errors
/// If they can't be enforced here.
pub fn build_cmd(
    context: &Context,
    door: &Door,
    config: &Config,
    name: impl Into<OsString>,
    args: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<Prepared, FrontError> {
    let mut words = vec![name.into()];
    words.extend(args.into_iter().map(Into::into));
    door.prepare(context, config.profile()?, &config.root()?, &words)
}

/// The context with this configuration.
#[must_use]
pub fn with_config(context: &Context, config: Config) -> Context {
    Context {
        config: Some(Arc::new(config)),
        ..context.clone()
    }
}

/// The configuration of a context; none if nobody chose one.
pub fn config_from_context(context: &Context) -> Option<&Config> {
    context.config.as_deref()
}

/// Has the profile say nothing about files: nothing is hidden or protected, and every directory
/// of the host is as writable as it is outside.
fn open_files(profile: &mut Profile) {
    let rule = |path: AbsPath, access| {
        let origin = Origin::fixed("filesystem unrestricted");
        PathRule::stated(Pattern::Subtree(path), access, origin)
    };
    // The view begins with a read-only root, so each directory in it is granted by itself.
    let entries = fs::read_dir("/").into_iter().flatten().flatten();
    let mut roots: Vec<AbsPath> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| AbsPath::new(entry.path()).ok())
        .filter(|path| !OWN.iter().any(|own| path.as_path() == Path::new(own)))
        .collect();
    roots.sort();
    let readable = PathRule::built_in(
        Pattern::Subtree(AbsPath::root()),
        Access::Read,
        "filesystem unrestricted",
    );
    let writable = roots.iter().map(|path| rule(path.clone(), Access::Write));
    profile.rules = RuleSet::new(std::iter::once(readable).chain(writable).collect());
    profile.writable_roots = roots;
    profile.git_config = Sourced::built_in(true);
}

/// What belongs to the kernel, and to the sandbox where there is one.
const OWN: &[&str] = &["/dev", "/proc", "/sys"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_words_are_read() {
        let free = Config::parse("", "", "").unwrap();
        assert_eq!(free, Config::default());
        assert!(!free.active() && free.profile().unwrap().is_none());
        assert_eq!(Config::parse("unrestricted", "full", "").unwrap(), free);
        for (filesystem, network) in [
            ("readonly", ""),
            ("Read_Only", ""),
            ("project-only", ""),
            ("", "None"),
            ("", "off"),
            ("read_only\0", ""),
        ] {
            let refused = Config::parse(filesystem, network, "");
            assert!(refused.is_err(), "{filesystem} {network}");
        }
        let text = r#"{"filesystem":"project_only","network":"none","project_root":"/srv/p"}"#;
        let read: Config = serde_json::from_str(text).unwrap();
        let parsed = Config::parse("project_only", "none", "/srv/p").unwrap();
        assert_eq!(read, parsed);
        assert!(serde_json::from_str::<Config>(r#"{"network":"nothing"}"#).is_err());
        assert!(serde_json::from_str::<Config>(r#"{"netwrok":"none"}"#).is_err());
    }

    #[test]
    fn each_restriction_counts() {
        for (filesystem, network, active) in [
            ("", "", false),
            ("", "none", true),
            ("read_only", "", true),
            ("project_only", "full", true),
        ] {
            let config = Config::parse(filesystem, network, "/srv").unwrap();
            assert_eq!(config.active(), active);
            assert_eq!(config.profile().unwrap().is_some(), active);
        }
        let relative = Config::parse("read_only", "", "srv").unwrap();
        assert!(relative.profile().is_err());
    }

    #[test]
    fn a_context_hands_it_on() {
        let config = Config::parse("read_only", "none", "/srv").unwrap();
        let task = with_config(&Context::new(), config.clone());
        let sub_task = task.spawn(|| config_from_context(&Context::current()).cloned());
        assert_eq!(sub_task.join().unwrap(), Some(config));
        assert_eq!(config_from_context(&Context::new()), None);
    }
}
