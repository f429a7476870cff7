//! A profile in the words of another sandbox, never wider than it is.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::json;
use stockade_rules::{AbsPath, Access, Kind, PathRule, Pattern, Rank};

use crate::host::HostSet;
use crate::profile::{BUILT_IN, Base, BasePolicy, NetworkMode, Profile};

/// The formats that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportFormat {
    /// The words of a command line of bubblewrap, one option a line.
    Bwrap,
    /// Codex's `config.toml`.
    Codex,
    /// Settings of Anthropic's sandbox-runtime.
    Srt,
}

/// A policy in the words of another sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// The file.
    pub text: String,
    /// What Stockade adds to every policy and the other sandbox lacks, one sentence each.
    pub notes: &'static [&'static str],
}

/// What the other sandbox can't be told, and would allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotExpressible(String);

/// A profile in the words of another sandbox.
///
/// # Errors
/// If the other sandbox would allow more than a person stated.
pub fn export(profile: &Profile, format: ExportFormat) -> Result<Exported, NotExpressible> {
    if profile.base_policy.value == BasePolicy::DangerFullAccess {
        return refuse("nothing is confined under this policy");
    }
    let (text, notes): (String, &[&str]) = match format {
        ExportFormat::Bwrap => (
            bwrap(profile)?,
            &["bwrap lets git hooks and settings of editors and agents be written in the project"],
        ),
        ExportFormat::Codex => (
            codex(profile)?,
            &[
                "Codex lets credentials be read, which are hidden here",
                "Codex lets settings of editors and shells be written in the project",
            ],
        ),
        ExportFormat::Srt => (
            srt(profile)?,
            &["srt protects the names that it knows itself, not those that match a pattern here"],
        ),
    };
    Ok(Exported { text, notes })
}

/// Whether a person stated the rule. The store of workspaces counts as stated too, so that no
/// grant wins over it.
fn is_persons(rule: &PathRule) -> bool {
    rule.rank == Rank::Stated && !rule.origin.as_str().starts_with(BUILT_IN.as_str())
}

fn refuse<T>(text: impl Into<String>) -> Result<T, NotExpressible> {
    Err(NotExpressible(text.into()))
}

/// The paths of rules with this access, sorted.
fn paths(profile: &Profile, accesses: &[Access]) -> BTreeSet<AbsPath> {
    let rules = profile.rules.iter();
    let rules = rules.filter(|rule| accesses.contains(&rule.access));
    rules
        .filter_map(|rule| match &rule.pattern {
            Pattern::Subtree(path) => Some(path.clone()),
            Pattern::Glob(_) => None,
        })
        .collect()
}

/// The first rule that a person stated with one of these accesses and a pattern for names.
fn stated_glob(profile: &Profile, accesses: &[Access]) -> Option<String> {
    let mut rules = profile.rules.iter();
    let found = rules.find(|rule| {
        let is_glob = matches!(rule.pattern, Pattern::Glob(_));
        is_glob && is_persons(rule) && accesses.contains(&rule.access)
    });
    found.map(|rule| rule.pattern.to_string())
}

const DENIALS: &[Access] = &[Access::Deny, Access::DenyRead, Access::DenyWrite];

/// The paths that can really be written: a grant may lie below a denial of the same length.
fn writable(profile: &Profile) -> BTreeSet<AbsPath> {
    let granted = paths(profile, &[Access::Write]).into_iter();
    granted
        .filter(|path| profile.rules.decide(Kind::Write, path.as_path()).allowed)
        .collect()
}

fn texts(paths: &BTreeSet<AbsPath>) -> Vec<String> {
    paths
        .iter()
        .map(|path| path.as_path().display().to_string())
        .collect()
}

fn srt(profile: &Profile) -> Result<String, NotExpressible> {
    if profile.base.value == Base::Minimal {
        return refuse("srt lets everything be read that is not denied: it has no base `minimal`");
    }
    if let Some(glob) = stated_glob(profile, DENIALS) {
        return refuse(format!(
            "srt has no patterns for names: `{glob}` can't be denied"
        ));
    }
    let mut domains = BTreeSet::new();
    match profile.network.mode.value {
        NetworkMode::Open => return refuse("srt has no open network, only a list of hosts"),
        NetworkMode::Off => {}
        NetworkMode::Allowlist => {
            for pattern in &profile.network.allow {
                let pattern = &pattern.value;
                let name = match pattern.hosts() {
                    HostSet::Exact(host) => host.to_string(),
                    HostSet::Below(name) => format!("*.{name}"),
                    _ => return refuse(format!("srt has no ranges of addresses: `{pattern}`")),
                };
                for port in pattern.port().map_or(vec![80, 443], |port| vec![port]) {
                    domains.insert(format!("{name}:{port}"));
                    // There the name itself is not included.
                    if let Some(apex) = name.strip_prefix("*.") {
                        domains.insert(format!("{apex}:{port}"));
                    }
                }
            }
        }
    }
    let blocked = profile.network.block.iter();
    let blocked: BTreeSet<String> = blocked
        .flat_map(|pattern| {
            let text = pattern.value.to_string();
            let apex = text.strip_prefix("*.").map(str::to_owned);
            apex.into_iter().chain([text])
        })
        .collect();
    let document = json!({
        "network": { "allowedDomains": domains, "deniedDomains": blocked },
        "filesystem": {
            "denyRead": texts(&paths(profile, &[Access::Deny, Access::DenyRead])),
            "allowWrite": texts(&writable(profile)),
            "denyWrite": texts(&paths(profile, DENIALS)),
        },
    });
    Ok(format!("{document:#}\n"))
}

fn codex(profile: &Profile) -> Result<String, NotExpressible> {
    let mut rules = profile.rules.iter();
    let denied = rules.find(|rule| is_persons(rule) && DENIALS.contains(&rule.access));
    if let Some(rule) = denied {
        return refuse(format!("Codex has no denials: `{}`", rule.pattern));
    }
    if profile.base.value == Base::Minimal {
        return refuse("Codex lets everything be read: it has no base `minimal`");
    }
    let network = match profile.network.mode.value {
        NetworkMode::Off => false,
        NetworkMode::Open if profile.network.block.is_empty() => true,
        _ => return refuse("Codex has all of the network or none of it, and no list of hosts"),
    };
    let roots = writable(profile);
    if roots.is_empty() && !network {
        return Ok("sandbox_mode = \"read-only\"\n".to_owned());
    }
    if !roots.contains(&profile.cwd) {
        return refuse("Codex makes the working directory writable as soon as anything is");
    }
    let others = texts(&roots).into_iter();
    let cwd = profile.cwd.as_path().display().to_string();
    let others: Vec<String> = others.filter(|path| *path != cwd).collect();
    Ok(format!(
        "sandbox_mode = \"workspace-write\"\n\n[sandbox_workspace_write]\n\
         writable_roots = {}\nnetwork_access = {network}\n\
         exclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n",
        json!(others)
    ))
}

/// What programs need of the system, and nothing of the user's.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc"];

fn bwrap(profile: &Profile) -> Result<String, NotExpressible> {
    let reads = paths(profile, &[Access::Read]).into_iter();
    let mut reads: BTreeSet<AbsPath> = reads
        .filter(|path| !path.is_root())
        .filter(|path| profile.rules.decide(Kind::Read, path.as_path()).allowed)
        .collect();
    let writes = writable(profile);
    if !profile
        .rules
        .decide(Kind::Read, profile.cwd.as_path())
        .allowed
    {
        return refuse("the working directory can't be read under this policy");
    }
    if !writes.contains(&profile.cwd) {
        reads.insert(profile.cwd.clone());
    }
    let mut rules = profile.rules.iter();
    let denied = rules.find(|rule| {
        let is_bound =
            |path: &AbsPath| writes.iter().chain(&reads).any(|root| path.is_within(root));
        let is_seen = match &rule.pattern {
            Pattern::Subtree(path) => is_bound(path) || is_system(path),
            Pattern::Glob(_) => true,
        };
        is_persons(rule) && DENIALS.contains(&rule.access) && is_seen
    });
    if let Some(rule) = denied {
        return refuse(format!(
            "bwrap can't deny `{}` in what it shows",
            rule.pattern
        ));
    }
    let mut text =
        "bwrap\n--die-with-parent\n--unshare-user\n--unshare-pid\n--unshare-ipc\n".to_owned();
    match profile.network.mode.value {
        NetworkMode::Off => text.push_str("--unshare-net\n"),
        NetworkMode::Open if profile.network.block.is_empty() => {}
        _ => return refuse("bwrap has all of the network or none of it, and no list of hosts"),
    }
    for path in SYSTEM {
        let is_readable = profile.rules.decide(Kind::Read, path.as_ref()).allowed;
        if is_readable {
            let _ = writeln!(text, "--ro-bind-try {path} {path}");
        }
    }
    text.push_str("--dev /dev\n--proc /proc\n--tmpfs /tmp\n");
    for (option, paths) in [("--ro-bind-try", &reads), ("--bind", &writes)] {
        for path in texts(paths) {
            if path.contains(char::is_whitespace) || path.contains(['"', '\'', '\\']) {
                return refuse(format!("`{path}` can't be written without quotes"));
            }
            let _ = writeln!(text, "{option} {path} {path}");
        }
    }
    Ok(text)
}

fn is_system(path: &AbsPath) -> bool {
    SYSTEM
        .iter()
        .any(|system| path.as_path().starts_with(system))
}
