//! The flags of `stockade run` that are about the profile, as one layer.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use stockade_rules::{Access, Origin};

use crate::host::{HostPattern, Methods, Preset};

use super::choice::{Backend, Base, BasePolicy, HomeMode, Level, NetworkMode, SeccompMode};
use super::clause::Clause;
use super::environment::{EnvName, EnvVar};
use super::error::ProfileError;
use super::layer::Layer;
use super::limits::LimitSetting;
use super::mask::Mask;
use super::network::Pin;
use super::place::Place;
use super::printable::printable_text;
use super::sourced::Sourced;

/// What was typed. Paths are as typed; they are read against the working directory and `~`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct Flags {
    /// `--read-only`, `--workspace-write`, `--danger-full-access`.
    pub base_policy: Option<BasePolicy>,
    /// `--base`.
    pub base: Option<Base>,
    /// `-r, --read`.
    pub read: Vec<OsString>,
    /// `-w, --write`.
    pub write: Vec<OsString>,
    /// `--deny`.
    pub deny: Vec<OsString>,
    /// `--deny-read`.
    pub deny_read: Vec<OsString>,
    /// `--deny-write`.
    pub deny_write: Vec<OsString>,
    /// `--net`.
    pub net: Option<NetworkMode>,
    /// `--allow`, read with [`HostPattern::parse`].
    pub allow: Vec<HostPattern>,
    /// `--allow @PRESET`.
    pub presets: Vec<Preset>,
    /// `--block`, read with [`HostPattern::parse_block`].
    pub block: Vec<HostPattern>,
    /// `--resolve`.
    pub resolve: Vec<Pin>,
    /// `--net-methods`.
    pub net_methods: Option<Methods>,
    /// `--danger-hidden-names`.
    pub danger_hidden_names: bool,
    /// `--mask`.
    pub mask: Vec<Mask>,
    /// `--unix`.
    pub unix: Vec<OsString>,
    /// `--host-port`.
    pub host_port: Vec<u16>,
    /// `--expose`.
    pub expose: Vec<u16>,
    /// `--device`.
    pub device: Vec<OsString>,
    /// `--env`, as typed: `NAME=VALUE`.
    pub env: Vec<OsString>,
    /// `--keep-env`.
    pub keep_env: Vec<OsString>,
    /// `--limit`.
    pub limit: Vec<LimitSetting>,
    /// `--timeout`, read with [`super::parse_duration`].
    pub timeout: Option<Duration>,
    /// `--level`.
    pub level: Option<Level>,
    /// `--backend`.
    pub backend: Option<Backend>,
    /// `--require`.
    pub require: Vec<Clause>,
    /// `--best-effort`.
    pub best_effort: bool,
    /// `--seccomp`.
    pub seccomp: Option<SeccompMode>,
    /// `--home`.
    pub home: Option<HomeMode>,
    /// `--git-config`.
    pub git_config: bool,
    /// `--danger-nested-namespaces`.
    pub danger_nested_namespaces: bool,
}

impl Flags {
    pub(super) fn layer(&self, place: &Place<'_>) -> Result<Layer, ProfileError> {
        let mut layer = Layer {
            base_policy: self
                .base_policy
                .map(|policy| Sourced::new(policy, Origin::flag(format!("--{policy}")))),
            base: one("--base", self.base),
            level: one("--level", self.level),
            backend: one("--backend", self.backend),
            require: many("--require", &self.require),
            best_effort: switch("--best-effort", self.best_effort),
            seccomp: one("--seccomp", self.seccomp),
            home: one("--home", self.home),
            git_config: switch("--git-config", self.git_config),
            danger_nested_namespaces: switch(
                "--danger-nested-namespaces",
                self.danger_nested_namespaces,
            ),
            limits: many("--limit", &self.limit),
            ..Layer::default()
        };
        if let Some(span) = self.timeout {
            let setting = LimitSetting::wall_time(span);
            let origin = format!("--timeout {}", super::format_duration(span));
            layer
                .limits
                .push(Sourced::new(setting, Origin::flag(origin)));
        }
        for (flag, access, texts) in [
            ("--read", Access::Read, &self.read),
            ("--write", Access::Write, &self.write),
            ("--deny", Access::Deny, &self.deny),
            ("--deny-read", Access::DenyRead, &self.deny_read),
            ("--deny-write", Access::DenyWrite, &self.deny_write),
        ] {
            layer.rules.reserve(texts.len());
            for text in texts {
                let added = place.add_rules(text, access, origin(flag, text), &mut layer.rules);
                added.map_err(|e| bad(flag, text, &e))?;
            }
        }
        let network = &mut layer.network;
        network.mode = one("--net", self.net);
        network.allow = many("--allow", &self.allow);
        network.presets = many("--allow", &self.presets);
        network.block = many("--block", &self.block);
        network.resolve = many("--resolve", &self.resolve);
        network.methods = one("--net-methods", self.net_methods);
        network.danger_hidden_names = switch("--danger-hidden-names", self.danger_hidden_names);
        network.mask = many("--mask", &self.mask);
        network.expose = many("--expose", &self.expose);
        network.host_port = many("--host-port", &self.host_port);
        network.unix = read("--unix", &self.unix, |text| place.path(text))?;
        layer.devices = read("--device", &self.device, |text| place.path(text))?;
        layer.environment.keep = read("--keep-env", &self.keep_env, EnvName::new)?;
        for text in &self.env {
            // Not the value: it may be a secret, and messages end up in logs.
            let fail = |reason: String| bad("--env", &name_of(text), &reason);
            let variable = EnvVar::parse(text)
                .ok_or_else(|| fail("it is not of the form NAME=VALUE".to_owned()))?
                .map_err(|error| fail(error.to_string()))?;
            let origin = Origin::flag(format!("--env {}", variable.name()));
            layer.environment.set.push(Sourced::new(variable, origin));
        }
        Ok(layer)
    }
}

fn one<T: std::fmt::Display>(flag: &'static str, value: Option<T>) -> Option<Sourced<T>> {
    let value = value?;
    let origin = Origin::flag(format!("{flag} {value}"));
    Some(Sourced::new(value, origin))
}

fn many<T: std::fmt::Display + Clone>(flag: &'static str, values: &[T]) -> Vec<Sourced<T>> {
    let values = values.iter().cloned();
    values.filter_map(|value| one(flag, Some(value))).collect()
}

fn switch(flag: &'static str, on: bool) -> Option<Sourced<bool>> {
    on.then(|| Sourced::new(true, Origin::fixed(flag)))
}

fn read<T, E: ToString>(
    flag: &'static str,
    texts: &[OsString],
    read: impl Fn(&OsStr) -> Result<T, E>,
) -> Result<Vec<Sourced<T>>, ProfileError> {
    let one = |text: &OsString| {
        let value = read(text).map_err(|e| bad(flag, text, &e))?;
        Ok(Sourced::new(value, origin(flag, text)))
    };
    texts.iter().map(one).collect()
}

fn origin(flag: &str, text: &OsStr) -> Origin {
    let mut words = String::with_capacity(flag.len() + 1 + text.len());
    words.push_str(flag);
    words.push(' ');
    match text.to_str() {
        Some(text) => words.push_str(text),
        None => words.push_str(&text.to_string_lossy()),
    }
    Origin::flag(words)
}

fn bad(flag: &'static str, text: &OsStr, reason: &impl ToString) -> ProfileError {
    ProfileError::Flag {
        flag,
        value: printable_text(&text.to_string_lossy()),
        reason: printable_text(reason),
    }
}

fn name_of(text: &OsStr) -> OsString {
    let text = text.to_string_lossy();
    text.split('=').next().unwrap_or_default().into()
}
