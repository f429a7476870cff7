//! The smallest change of a policy that would let something pass.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};
use stockade_linux::{Denial as Refusal, Operation};
use stockade_rules::{AbsPath, Access, Grant as PathGrant, Kind, PathRule, shell_word};

use crate::plan::ExecPlan;

/// The smallest change of a policy that would let something pass. Prints as a flag of the command
/// line; [`Grant::profile_line`] is the same as a line of a profile file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// Allow connections to a host, `HOST` or `HOST:PORT`.
    Allow(String),
    /// Let every HTTP method pass.
    AnyMethod,
    /// Let git's configuration be written.
    GitConfig,
    /// Let connections pass that do not show which host they are for.
    HiddenNames,
    /// Nothing would let it pass.
    Nothing,
    /// Allow access to a path.
    Path {
        /// Reading, or reading and writing.
        access: Access,
        /// The path.
        path: AbsPath,
        /// Whether the path has to be made first: only what exists can be granted.
        must_be_made: bool,
    },
    /// Take back a `block` of a host.
    RemoveBlock(String),
    /// Take back a rule about a path.
    RemoveRule(PathRule),
    /// Give a name an address, `NAME=ADDRESS`.
    Resolve(String),
    /// Allow connections to a Unix socket of the host.
    UnixSocket(PathBuf),
}

impl Grant {
    /// The line that makes the same change in a profile file, with its table as a dotted key; none
    /// where something has to be taken back, or nothing helps.
    pub fn profile_line(&self) -> Option<String> {
        let list = |key: &str, value: &str| Some(format!("{key} = [{value:?}]"));
        match self {
            Self::Allow(host) => list("network.allow", host),
            Self::AnyMethod => Some("network.methods = \"any\"".to_owned()),
            Self::GitConfig => Some("git_config = true".to_owned()),
            Self::HiddenNames => Some("network.danger_hidden_names = true".to_owned()),
            Self::Path { access, path, .. } => {
                let key = match access {
                    Access::Write => "filesystem.write",
                    _ => "filesystem.read",
                };
                list(key, path.as_path().to_str()?)
            }
            Self::Resolve(pin) => list("network.resolve", pin),
            Self::UnixSocket(path) => list("network.unix", path.to_str()?),
            Self::Nothing | Self::RemoveBlock(_) | Self::RemoveRule(_) => None,
        }
    }

    /// Reads what the decision about hosts says, which is a flag.
    pub(crate) fn of_host(flag: Option<&str>) -> Self {
        let Some(flag) = flag else {
            return Self::Nothing;
        };
        let blocked = flag.strip_prefix("remove `--block ");
        if let Some(host) = blocked.and_then(|text| text.strip_suffix('`')) {
            return Self::RemoveBlock(host.to_owned());
        }
        match flag.split_once(' ') {
            Some(("--resolve", pin)) => Self::Resolve(pin.to_owned()),
            Some(("--net-methods", _)) => Self::AnyMethod,
            Some((_, host)) => Self::Allow(host.to_owned()),
            None => Self::HiddenNames,
        }
    }

    /// The grant that would let a name be made, moved or removed. That is done in its directory, and
    /// only what exists can be granted; a protected name in one of the `roots` must be granted
    /// itself.
    pub fn of_name(path: &AbsPath, roots: &[AbsPath]) -> Self {
        let mut above = path.as_path().ancestors().skip(1);
        let directory = above.find(|path| path.is_dir());
        let write = |path, must_be_made| Self::Path {
            access: Access::Write,
            path,
            must_be_made,
        };
        match directory.and_then(|path| AbsPath::new(path).ok()) {
            Some(path) if path != AbsPath::root() && !roots.contains(&path) => write(path, false),
            _ => write(path.clone(), true),
        }
    }

    /// What would let pass what the mediator refused.
    pub(crate) fn of_refusal(plan: &ExecPlan, refusal: &Refusal) -> Self {
        match refusal.operation {
            Operation::Connect => return Self::UnixSocket(refusal.path.clone()),
            Operation::GitConfig => return Self::GitConfig,
            _ => {}
        }
        let mediation = plan.linux.mediation.as_ref();
        let rules = mediation.map(|mediation| &mediation.rules);
        let path = AbsPath::new(&refusal.path).ok();
        let protection = mediation.and_then(|mediation| mediation.protection.as_ref());
        let roots = protection.map_or(&[][..], |protection| &protection.roots);
        let changed = path.as_ref().filter(|_| changes_names(refusal.operation));
        let changed = changed.map(|path| Self::of_name(path, roots));
        let smallest = rules.zip(path.as_ref()).and_then(|(rules, path)| {
            let kind = if refusal.operation == Operation::Read {
                Kind::Read
            } else {
                Kind::Write
            };
            rules.smallest_grant(kind, path)
        });
        match (smallest, changed) {
            (Some(grant @ PathGrant::Remove(_)), _) | (Some(grant), None) => grant.into(),
            (_, Some(grant)) => grant,
            // Each name alone may be written; it is the move that would free or redirect one.
            (None, None) => Self::Path {
                access: Access::Write,
                path: path.unwrap_or_else(AbsPath::root),
                must_be_made: false,
            },
        }
    }
}

impl From<PathGrant> for Grant {
    fn from(grant: PathGrant) -> Self {
        match grant {
            PathGrant::Add { access, path } => Self::Path {
                access,
                path,
                must_be_made: false,
            },
            PathGrant::Remove(rule) => Self::RemoveRule(rule),
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow(host) => write!(f, "--allow {host}"),
            Self::AnyMethod => f.write_str("--net-methods any"),
            Self::GitConfig => f.write_str("--git-config"),
            Self::HiddenNames => f.write_str("--danger-hidden-names"),
            Self::Nothing => Ok(()),
            Self::Path {
                access,
                path,
                must_be_made,
            } => {
                let add = PathGrant::Add {
                    access: *access,
                    path: path.clone(),
                };
                add.fmt(f)?;
                if *must_be_made {
                    write!(f, ", if {} exists before", path.as_word())?;
                }
                Ok(())
            }
            Self::RemoveBlock(host) => write!(f, "remove `--block {host}`"),
            Self::RemoveRule(rule) => PathGrant::Remove(rule.clone()).fmt(f),
            Self::Resolve(pin) => write!(f, "--resolve {pin}"),
            Self::UnixSocket(path) => write!(f, "--unix {}", shell_word(&path.to_string_lossy())),
        }
    }
}

impl Serialize for Grant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn changes_names(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Bind
            | Operation::Create
            | Operation::MakeDirectory
            | Operation::MakeLink
            | Operation::MakeNode
            | Operation::Remove
            | Operation::Rename
    )
}

#[cfg(test)]
mod tests {
    use stockade_policy::host::{HostPattern, NetworkRules};

    use super::*;

    /// Everything that the decision about hosts offers reads back as the same flag.
    #[test]
    fn grants_of_hosts_keep_their_words() {
        let rules = NetworkRules {
            allow: vec![HostPattern::parse("a.test").unwrap()],
            block: vec![HostPattern::parse_block("b.test").unwrap()],
            ..NetworkRules::default()
        };
        let offered = |host, port| {
            let decision = stockade_policy::host::decide_network(&rules, host, port);
            decision.grant.unwrap()
        };
        for flag in [
            offered("c.test", 443),
            offered("a.test", 8443),
            offered("b.test", 443),
            "--resolve a.test=10.0.0.1".to_owned(),
            "--net-methods any".to_owned(),
            "--danger-hidden-names".to_owned(),
        ] {
            assert_eq!(Grant::of_host(Some(&flag)).to_string(), flag);
        }
        assert_eq!(Grant::of_host(None), Grant::Nothing);
    }

    #[test]
    fn a_grant_is_a_flag_and_a_profile_line() {
        let write = Grant::Path {
            access: Access::Write,
            path: AbsPath::new("/srv/a b").unwrap(),
            must_be_made: false,
        };
        for (grant, flag, line) in [
            (
                write,
                "--write '/srv/a b'",
                Some("filesystem.write = [\"/srv/a b\"]"),
            ),
            (
                Grant::Allow("a.test".into()),
                "--allow a.test",
                Some("network.allow = [\"a.test\"]"),
            ),
            (Grant::GitConfig, "--git-config", Some("git_config = true")),
            (
                Grant::UnixSocket("/run/x".into()),
                "--unix /run/x",
                Some("network.unix = [\"/run/x\"]"),
            ),
            (
                Grant::RemoveBlock("b.test".into()),
                "remove `--block b.test`",
                None,
            ),
        ] {
            assert_eq!(grant.to_string(), flag);
            assert_eq!(grant.profile_line().as_deref(), line);
        }
    }
}
