//! What the profile decides about one path or host, by which rule, and what would change it.
//!
//! The same functions decide that the engine, the mediator and the proxy call; nothing here has
//! an opinion of its own.

use std::fmt;

use serde::Serialize;
use stockade_rules::protected::{Anchor, Relation, candidates};
use stockade_rules::{AbsPath, Decision, Kind, Origin, Pattern, Rank};

use crate::host::{Host, Methods, NetDecision};
use crate::settings::{SETTINGS_FILES, SettingsFile};

use super::Profile;
use super::choice::{Base, BasePolicy, HomeMode, NetworkMode};
use super::network::NetworkProfile;
use super::printable::printable_text;

/// What is decided about a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PathExplanation {
    /// The path.
    pub path: AbsPath,
    /// Whether it may be read.
    pub read: PathVerdict,
    /// Whether it may be written.
    pub write: PathVerdict,
    /// What the rules don't show.
    pub note: Option<&'static str>,
}

/// What is decided about one kind of access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PathVerdict {
    /// Whether it is allowed.
    pub allowed: bool,
    /// The rule that decided; `None`: no rule matches the path.
    pub rule: Option<String>,
    /// Who made the rule.
    pub origin: Option<Origin>,
    /// The smallest change that would allow it, if it is denied.
    pub grant: Option<String>,
}

/// What is decided about a host and port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkExplanation {
    /// The host, in the form in which names are compared.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether it may be reached.
    pub allowed: bool,
    /// The rule that decided, if one did.
    pub rule: Option<String>,
    /// Who made the rule, or chose the mode of the network.
    pub origin: Origin,
    /// Why.
    pub reason: String,
    /// The smallest change that would allow it, if it is denied.
    pub grant: Option<String>,
    /// Which HTTP methods pass.
    pub methods: Methods,
    /// The masked variables whose value is put into requests to the host.
    pub masked: Vec<String>,
    /// What the rules don't show.
    pub note: Option<&'static str>,
}

/// What may be done with a path.
pub fn explain_path(profile: &Profile, path: &AbsPath) -> PathExplanation {
    PathExplanation {
        path: path.clone(),
        read: verdict(profile, Kind::Read, path),
        write: verdict(profile, Kind::Write, path),
        note: own_directory(profile, path)
            .or_else(|| copied_settings(profile, path))
            .or_else(|| layered_home(profile, path))
            .or_else(|| judged_later(profile, path)),
    }
}

/// Whether a host may be reached on a port.
pub fn explain_network(profile: &Profile, host: &Host, port: u16) -> NetworkExplanation {
    let network = &profile.network;
    let own_loopback = is_loopback(host) && network.mode.value != NetworkMode::Open;
    let forwarded = network.host_port.iter().find(|open| open.value == port);
    if let (true, Some(open)) = (own_loopback, forwarded) {
        return NetworkExplanation {
            host: host.to_string(),
            port,
            allowed: true,
            rule: Some(format!("host_port {port}")),
            origin: open.origin.clone(),
            reason: "the port is forwarded to the host's loopback".to_owned(),
            grant: None,
            methods: Methods::Any,
            masked: Vec::new(),
            note: None,
        };
    }
    let decision = network.decide(host, port);
    NetworkExplanation {
        host: host.to_string(),
        port,
        allowed: decision.is_allowed(),
        origin: origin_of(network, &decision),
        reason: decision.reason.to_string(),
        rule: decision.rule,
        grant: decision.grant,
        methods: network.methods.value,
        masked: network
            .mask
            .iter()
            .filter(|mask| mask.value.is_for(host, port))
            .map(|mask| mask.value.name.to_string())
            .collect(),
        note: own_loopback.then_some(
            "inside, the loopback is the sandbox's own: servers started there can be reached",
        ),
    }
}

fn verdict(profile: &Profile, kind: Kind, path: &AbsPath) -> PathVerdict {
    let Decision { allowed, rule } = profile.rules.decide(kind, path.as_path());
    let grant = profile.rules.smallest_grant(kind, path);
    PathVerdict {
        allowed,
        rule: rule.map(ToString::to_string),
        origin: rule.map(|rule| rule.origin.clone()),
        grant: grant.map(|grant| grant.to_string()),
    }
}

/// The directories that a sandbox has of its own, whatever the host has there.
fn own_directory(profile: &Profile, path: &AbsPath) -> Option<&'static str> {
    const OWN: &[(&str, &str)] = &[
        ("/tmp", "inside, /tmp is private and writable"),
        (
            "/dev",
            "inside, /dev holds only harmless devices and those granted",
        ),
        (
            "/proc",
            "inside, /proc shows only the sandbox's own processes",
        ),
        ("/run", "inside, /run is empty but for what is granted"),
    ];
    let confined = matches!(
        profile.base_policy.value,
        BasePolicy::ReadOnly | BasePolicy::WorkspaceWrite
    );
    let by_the_root = |kind| match profile.rules.decide(kind, path.as_path()).rule {
        None => true,
        Some(rule) => rule.pattern == Pattern::Subtree(AbsPath::root()),
    };
    let (_, note) = OWN
        .iter()
        .find(|(own, _)| path.as_path().starts_with(own))?;
    (confined && by_the_root(Kind::Read) && by_the_root(Kind::Write)).then_some(note)
}

/// Where a copy without secrets stands in place of the host's file.
fn copied_settings(profile: &Profile, path: &AbsPath) -> Option<&'static str> {
    let home = profile.home_directory.as_ref()?;
    let is_listed = |file: &SettingsFile| home.join(file.path).is_ok_and(|file| file == *path);
    let rule = profile.rules.decide(Kind::Read, path.as_path()).rule;
    let is_copied = profile.base.value == Base::Host
        && SETTINGS_FILES.iter().any(is_listed)
        && rule.is_none_or(|rule| rule.rank == Rank::Default);
    is_copied.then_some("inside, a copy of it without its secrets is seen (backend native)")
}

/// Where a layer takes what the rules keep from the host's file.
fn layered_home(profile: &Profile, path: &AbsPath) -> Option<&'static str> {
    let home = profile.home_directory.as_ref()?;
    let decide = |kind| profile.rules.decide(kind, path.as_path());
    let ending = match profile.home.value {
        HomeMode::ReadOnly => return None,
        HomeMode::Copy => DROPPED_AT_THE_END,
        HomeMode::Keep => KEPT_FOR_THE_NEXT_RUN,
    };
    let is_layered = profile.base.value == Base::Host
        && profile.cwd != *home
        && path.is_within(home)
        && decide(Kind::Read).allowed
        && decide(Kind::Write).rule.is_none();
    is_layered.then_some(ending)
}

const DROPPED_AT_THE_END: &str = "inside, the home directory has a private layer: writes succeed there and are dropped at the end";
const KEPT_FOR_THE_NEXT_RUN: &str = "inside, the home directory has a private layer: writes succeed there and are kept for the next run in this workspace";

fn is_loopback(host: &Host) -> bool {
    match host {
        Host::Ip(ip) => ip.is_loopback(),
        Host::Name(name) => name.as_str() == "localhost",
    }
}

fn origin_of(network: &NetworkProfile, decision: &NetDecision) -> Origin {
    let rule = decision.rule.as_deref().unwrap_or_default();
    let listed = match rule.split_once(' ') {
        Some(("allow", _)) => &network.allow,
        Some(("block", _)) => &network.block,
        _ => return network.mode.origin.clone(),
    };
    let text = rule.split_once(' ').map_or("", |(_, text)| text);
    listed
        .iter()
        .find(|pattern| pattern.value.to_string() == text)
        .map_or_else(
            || network.mode.origin.clone(),
            |pattern| pattern.origin.clone(),
        )
}

impl NetworkExplanation {
    /// What becomes of requests to a host that may be reached: a word and a text for each line.
    pub fn requests(&self) -> Vec<(&'static str, String)> {
        if !self.allowed {
            return Vec::new();
        }
        let methods = self.methods.is_limited().then(|| {
            let methods = Methods::READ_ONLY.join(", ");
            let text = format!("{methods} alone; what is no HTTP is refused");
            ("methods", text)
        });
        let masked = self.masked.iter().map(|name| {
            let text = format!("{name}: a placeholder inside, its value in headers on the way");
            ("masked", text)
        });
        methods.into_iter().chain(masked).collect()
    }
}

impl fmt::Display for PathExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", printable_text(&self.path))?;
        for (kind, verdict) in [(Kind::Read, &self.read), (Kind::Write, &self.write)] {
            let rule = match (&verdict.rule, &verdict.origin) {
                (Some(rule), Some(origin)) => format!("{rule} ({origin})"),
                _ => "no rule speaks about it".to_owned(),
            };
            line(
                f,
                &kind.to_string(),
                verdict.allowed,
                &rule,
                verdict.grant.as_deref(),
            )?;
        }
        note(f, self.note)
    }
}

impl fmt::Display for NetworkExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:{}", printable_text(&self.host), self.port)?;
        let rule = self.rule.as_deref().unwrap_or("the network's mode");
        let rule = format!("{rule} ({}): {}", self.origin, self.reason);
        line(f, "connect", self.allowed, &rule, self.grant.as_deref())?;
        for (what, text) in self.requests() {
            writeln!(f, "  {what:7} {}", printable_text(&text))?;
        }
        note(f, self.note)
    }
}

fn line(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    allowed: bool,
    rule: &str,
    grant: Option<&str>,
) -> fmt::Result {
    let verdict = if allowed { "allowed" } else { "denied" };
    writeln!(f, "  {what:7} {verdict:7}  {}", printable_text(rule))?;
    match grant {
        Some(grant) => writeln!(f, "  {:15}  to allow it: {}", "", printable_text(grant)),
        None => Ok(()),
    }
}

fn note(f: &mut fmt::Formatter<'_>, note: Option<&str>) -> fmt::Result {
    match note {
        Some(note) => writeln!(f, "  note: {note}"),
        None => Ok(()),
    }
}

/// What the mediator decides about a protected name that no path rule stands for.
fn judged_later(profile: &Profile, path: &AbsPath) -> Option<&'static str> {
    let confined = profile.base_policy.value == BasePolicy::WorkspaceWrite;
    if !confined || !profile.rules.decide(Kind::Write, path.as_path()).allowed {
        return None;
    }
    candidates(path.as_path())
        .filter(|found| !found.is_excepted() && !matches!(found.relation, Relation::Above { .. }))
        .find_map(|found| match found.row.anchor {
            Anchor::Anywhere => Some("its content is judged when it is put in place"),
            Anchor::GitDirectory => {
                Some("protected if its directory is a git directory: one with `objects` and `refs`")
            }
            _ => None,
        })
}
