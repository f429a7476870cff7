//! The home directory: a layer over it takes every write, so that programs find it as they know it
//! and nothing reaches the host.
//!
//! The layer is put over a home that can be read and not written. A path below it that is granted
//! is the host's, as it is without the layer; what is denied is hidden on top of the layer.

use stockade_policy::profile::{Backend, Base, HomeMode, Profile};
use stockade_rules::{AbsPath, Access, Kind, PathRule, Pattern, Rank, RuleSet};

use crate::host::{self, Found, Host, Left};
use crate::plan::Spec;

/// The layer over the home directory, if there is one.
pub(super) struct Layer<'a> {
    /// What it is over.
    pub(super) home: Option<AbsPath>,
    /// Where it is, if it is kept.
    pub(super) kept: Option<&'a AbsPath>,
}

impl<'a> Layer<'a> {
    pub(super) fn over(
        profile: &Profile,
        spec: &'a Spec,
        backend: Backend,
        rules: &RuleSet,
        host: &Host,
    ) -> Self {
        let home = layered(profile, backend, rules, host);
        let kept = spec.kept_home.as_ref().filter(|_| home.is_some());
        Self { home, kept }
    }

    /// What becomes of writes to the home directory.
    pub(super) fn mode(&self) -> HomeMode {
        match (&self.home, self.kept) {
            (Some(_), Some(_)) => HomeMode::Keep,
            (Some(_), None) => HomeMode::Copy,
            (None, _) => HomeMode::ReadOnly,
        }
    }

    /// What an earlier run left where a file of the home directory is.
    pub(super) fn left_at(&self, path: &AbsPath) -> Left {
        match (&self.home, self.kept) {
            (Some(home), Some(kept)) => Host::left_in_layer(kept, home, path),
            _ => Left::Nothing,
        }
    }
}

/// The home directory at its real path, if it gets a layer.
fn layered(profile: &Profile, backend: Backend, rules: &RuleSet, host: &Host) -> Option<AbsPath> {
    let is_wanted = profile.home.value != HomeMode::ReadOnly && profile.base.value == Base::Host;
    if backend != Backend::Native || !is_wanted {
        return None;
    }
    let Found::Present {
        real,
        kind: host::Kind::Directory,
        ..
    } = &*host.find(profile.home_directory.as_ref()?)
    else {
        return None;
    };
    let write = rules.decide(Kind::Write, real.as_path());
    // What the user stated about writing holds.
    let is_open = !write.allowed && write.rule.is_none_or(|rule| rule.rank != Rank::Stated);
    let is_workspace = host.find(&profile.cwd).real() == Some(real);
    let is_shown = rules.decide(Kind::Read, real.as_path()).allowed && !is_engines(real);
    (is_open && is_shown && !is_workspace).then(|| real.clone())
}

/// What the user should know who asked for a layer that is kept and gets another one or none.
pub(super) fn not_kept(profile: &Profile, backend: Backend, mode: HomeMode) -> Option<String> {
    let reason = match (profile.home.value, mode) {
        (HomeMode::Keep, HomeMode::Copy) => "only `stockade run`, `shell` and `agent` keep it",
        (HomeMode::Keep, HomeMode::ReadOnly) if backend != Backend::Native => {
            "it has a layer in the backend `native` only"
        }
        (HomeMode::Keep, HomeMode::ReadOnly) => "it has no layer under this policy",
        _ => return None,
    };
    Some(format!("the home directory is not kept: {reason}"))
}

/// Adds the rules about a home with a layer: it can be written, and the working directory, if that
/// can't be, can't be written in the layer either.
pub(super) fn add_rules(home: &AbsPath, profile: &Profile, rules: &mut RuleSet, host: &Host) {
    let cwd = host.find(&profile.cwd).real().cloned();
    let kept =
        cwd.filter(|cwd| cwd.is_within(home) && !rules.decide(Kind::Write, cwd.as_path()).allowed);
    let built_in =
        |path: AbsPath, access, reason| PathRule::built_in(Pattern::Subtree(path), access, reason);
    rules.push(built_in(home.clone(), Access::Write, REASON));
    if let Some(cwd) = kept {
        let reason = "built-in: the working directory is not writable";
        rules.push(built_in(cwd, Access::DenyWrite, reason));
    }
}

/// Whether a rule is the one about a home with a layer.
pub(super) fn is_rule(rule: &PathRule, home: &AbsPath) -> bool {
    rule.rank == Rank::Default
        && rule.access == Access::Write
        && matches!(&rule.pattern, Pattern::Subtree(path) if path == home)
}

const REASON: &str = "built-in: a private layer over the home directory";

/// Whether the sandbox has something of its own there, or nothing.
fn is_engines(home: &AbsPath) -> bool {
    let own = ["/tmp", "/dev", "/proc", "/run", "/var/run", "/sys"];
    home.is_root() || own.iter().any(|own| home.as_path().starts_with(own))
}
