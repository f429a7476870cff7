//! Lays layers on top of each other.
//!
//! | setting | two layers speak about it |
//! |---|---|
//! | path rules, `block`, `mask`, `require`, `unix`, `devices`, `seccomp.block` | both hold |
//! | `allow`, `resolve`, `expose`, `host_port` | both hold, unless the upper says `mode = "off"` |
//! | `environment.set` | both hold; of one name the upper |
//! | every choice, switch and limit | the upper |
//!
//! A project's layer is checked against what lies below it before it is laid on top, so that
//! "the upper" never means "the wider".

use std::cmp::Ordering::{self, Greater, Less};
use std::fmt;

use stockade_rules::{AbsPath, Kind, PathRule};

use crate::host::Methods;

use super::choice::{Backend, Base, BasePolicy, HomeMode, Level, NetworkMode, SeccompMode};
use super::clause::Clause;
use super::environment::Environment;
use super::error::ProfileError;
use super::file::{Extends, FileLayer};
use super::layer::{Layer, NetworkLayer};
use super::limits::Limits;
use super::mask::Mask;
use super::network::NetworkProfile;
use super::printable::printable_text;
use super::seccomp::Seccomp;
use super::sourced::Sourced;

/// What all layers so far say together.
#[derive(Clone, Debug)]
pub(super) struct Merged {
    pub(super) base_policy: Sourced<BasePolicy>,
    base: Sourced<Base>,
    /// Whether the base was stated no lower than the level.
    base_outranks_level: bool,
    pub(super) exclude_cwd: bool,
    pub(super) sensitive: Option<Vec<PathRule>>,
    pub(super) rules: Vec<PathRule>,
    pub(super) network: NetworkProfile,
    pub(super) devices: Vec<Sourced<AbsPath>>,
    pub(super) environment: Environment,
    pub(super) limits: Limits,
    pub(super) seccomp: Seccomp,
    pub(super) level: Sourced<Level>,
    pub(super) backend: Option<Sourced<Backend>>,
    pub(super) require: Vec<Sourced<Clause>>,
    pub(super) best_effort: Sourced<bool>,
    pub(super) git_config: Sourced<bool>,
    pub(super) home: Sourced<HomeMode>,
    pub(super) danger_nested_namespaces: Sourced<bool>,
    /// The files that were read, or would have been.
    pub(super) files: Vec<AbsPath>,
    /// What was narrowed since the base policy was chosen; no sandbox can't honour it.
    narrowed: Option<Sourced<String>>,
}

impl Default for Merged {
    fn default() -> Self {
        Self {
            base_policy: Sourced::built_in(BasePolicy::WorkspaceWrite),
            base: Sourced::built_in(Base::Host),
            base_outranks_level: false,
            exclude_cwd: false,
            sensitive: None,
            rules: Vec::new(),
            network: NetworkProfile {
                mode: Sourced::built_in(NetworkMode::Off),
                allow: Vec::new(),
                block: Vec::new(),
                resolve: Vec::new(),
                methods: Sourced::built_in(Methods::Any),
                danger_hidden_names: Sourced::built_in(false),
                mask: Vec::new(),
                unix: Vec::new(),
                expose: Vec::new(),
                host_port: Vec::new(),
            },
            devices: Vec::new(),
            environment: Environment::default(),
            limits: Limits::default(),
            seccomp: Seccomp {
                mode: Sourced::built_in(SeccompMode::Strict),
                block: Vec::new(),
            },
            level: Sourced::built_in(Level::Default),
            backend: None,
            require: Vec::new(),
            best_effort: Sourced::built_in(false),
            git_config: Sourced::built_in(false),
            home: Sourced::built_in(HomeMode::Copy),
            danger_nested_namespaces: Sourced::built_in(false),
            files: Vec::new(),
            narrowed: None,
        }
    }
}

impl Merged {
    /// Lays a layer on top.
    ///
    /// # Errors
    /// If the layer contradicts itself.
    pub(super) fn add(&mut self, layer: Layer) -> Result<(), ProfileError> {
        if layer.base_policy.is_some() {
            self.narrowed = None;
        }
        self.narrowed = self.narrowed.take().or_else(|| narrowing(&layer));
        replace(&mut self.base_policy, layer.base_policy);
        replace(&mut self.base, layer.implied_base);
        if layer.level.is_some() {
            self.base_outranks_level = false;
        }
        if layer.base.is_some() {
            self.base_outranks_level = true;
        }
        replace(&mut self.base, layer.base);
        replace(&mut self.exclude_cwd, layer.exclude_cwd);
        self.sensitive = layer.sensitive.or(self.sensitive.take());
        if self.rules.is_empty() {
            // As they are: there may be hundreds.
            self.rules = layer.rules;
        } else {
            self.rules.extend(layer.rules);
        }
        self.add_network(layer.network)?;
        self.devices.extend(layer.devices);
        self.environment.set.extend(layer.environment.set);
        self.environment.keep.extend(layer.environment.keep);
        for limit in layer.limits {
            self.limits.set(limit.value, limit.origin);
        }
        replace(&mut self.seccomp.mode, layer.seccomp);
        self.seccomp.block.extend(layer.seccomp_block);
        replace(&mut self.level, layer.level);
        self.backend = layer.backend.or(self.backend.take());
        self.require.extend(layer.require);
        replace(&mut self.best_effort, layer.best_effort);
        replace(&mut self.git_config, layer.git_config);
        replace(&mut self.home, layer.home);
        replace(
            &mut self.danger_nested_namespaces,
            layer.danger_nested_namespaces,
        );
        Ok(())
    }

    fn add_network(&mut self, layer: NetworkLayer) -> Result<(), ProfileError> {
        let network = &mut self.network;
        match (layer.mode, layer.allow.first()) {
            (Some(mode), Some(allow)) if mode.value != NetworkMode::Allowlist => {
                return Err(contradiction(
                    &mode.map(|mode| format!("network {mode}")),
                    &Sourced::new(format!("allow {allow}"), allow.origin.clone()),
                    /*hint*/
                    "a list of hosts is a mode of its own: leave the other mode out",
                ));
            }
            (Some(mode), _) => {
                if mode.value == NetworkMode::Off {
                    network.allow.clear();
                    network.resolve.clear();
                    network.expose.clear();
                    network.host_port.clear();
                }
                network.mode = mode;
            }
            (None, Some(allow)) => {
                if network.mode.value != NetworkMode::Allowlist {
                    network.mode = Sourced::new(NetworkMode::Allowlist, allow.origin.clone());
                }
            }
            (None, None) => {}
        }
        network.allow.extend(layer.allow);
        network.block.extend(layer.block);
        network.resolve.extend(layer.resolve);
        replace(&mut network.methods, layer.methods);
        replace(&mut network.danger_hidden_names, layer.danger_hidden_names);
        network.mask.extend(layer.mask);
        network.unix.extend(layer.unix);
        network.expose.extend(layer.expose);
        network.host_port.extend(layer.host_port);
        Ok(())
    }

    /// Whether there is a sandbox at all.
    pub(super) fn is_confined(&self) -> bool {
        matches!(
            self.base_policy.value,
            BasePolicy::ReadOnly | BasePolicy::WorkspaceWrite
        )
    }

    /// What is readable to begin with: as stated, but minimal at every level above `default`.
    ///
    /// # Errors
    /// If the host was stated as base in the face of such a level.
    pub(super) fn base(&self) -> Result<Sourced<Base>, ProfileError> {
        if self.level.value < Level::Enhanced || self.base.value == Base::Minimal {
            return Ok(self.base.clone());
        }
        if self.base_outranks_level {
            return Err(contradiction(
                &self.level.clone().map(|level| format!("level {level}")),
                &self.base.clone().map(|base| format!("base {base}")),
                /*hint*/
                "levels above `default` have the minimal base: leave one of the two out",
            ));
        }
        Ok(Sourced::new(Base::Minimal, self.level.origin.clone()))
    }

    /// Refuses to run without a sandbox what was narrowed since that was chosen.
    ///
    /// # Errors
    /// If something was.
    pub(super) fn check_unconfined(&self) -> Result<(), ProfileError> {
        match &self.narrowed {
            Some(narrowed) if !self.is_confined() => Err(contradiction(
                &self.base_policy.clone().map(|policy| policy.to_string()),
                narrowed,
                /*hint*/
                "without a sandbox nothing can be denied: leave one of the two out; \
                 `--workspace-write --write DIR --net open` grants much in a sandbox",
            )),
            _ => Ok(()),
        }
    }

    /// Refuses what nobody could enforce: methods and masks are the proxy's business, and an open
    /// network has none. What is masked for a host that can't be reached would never be sent.
    ///
    /// # Errors
    /// If something is asked of a proxy that is not there.
    pub(super) fn check_network(&self, warnings: &mut Vec<String>) -> Result<(), ProfileError> {
        let network = &self.network;
        let mode = || network.mode.clone().map(|mode| format!("network {mode}"));
        let masked = |mask: &Sourced<Mask>| mask.clone().map(|mask| format!("mask {mask}"));
        for mask in &network.mask {
            let mut set = self.environment.set.iter();
            if let Some(set) = set.find(|set| *set.value.name() == mask.value.name) {
                return Err(contradiction(
                    &masked(mask),
                    &Sourced::new(format!("set {}", mask.value.name), set.origin.clone()),
                    /*hint*/
                    "a masked variable has its value from the environment: leave one of the two out",
                ));
            }
        }
        match network.mode.value {
            // Without a sandbox neither is asked for any more.
            NetworkMode::Open if !self.is_confined() => Ok(()),
            NetworkMode::Open => {
                let methods = Some(&network.methods).filter(|methods| methods.value.is_limited());
                let methods =
                    methods.map(|methods| methods.clone().map(|m| format!("methods {m}")));
                match methods.or_else(|| network.mask.first().map(masked)) {
                    Some(asked) => Err(contradiction(
                        &mode(),
                        &asked,
                        /*hint*/
                        "on an open network nobody stands in between: list the hosts with --allow",
                    )),
                    None => Ok(()),
                }
            }
            NetworkMode::Off => {
                let unused = network.mask.iter().map(|mask| {
                    printable_text(&format!(
                        "`{}` is masked ({}), and there is no network to use it on",
                        mask.value.name, mask.origin
                    ))
                });
                warnings.extend(unused);
                Ok(())
            }
            NetworkMode::Allowlist => {
                let list: Vec<_> = network.allow.iter().map(|allow| &allow.value).collect();
                let mut masks = network.mask.iter();
                match masks.find(|mask| mask.value.first_outside(&list).is_some()) {
                    Some(mask) => Err(contradiction(
                        &masked(mask),
                        &mode(),
                        /*hint*/
                        "what is masked for a host must be able to reach it: --allow the host, or \
                         leave it out of the mask",
                    )),
                    None => Ok(()),
                }
            }
        }
    }

    /// What in a project's file goes beyond what there is, in words.
    pub(super) fn exceeded_by(&self, file: &FileLayer) -> Option<String> {
        let FileLayer { layer, extends } = file;
        let policy = match extends {
            Some(Extends::BuiltIn(built_in, origin)) => {
                Some(Sourced::new(built_in.base_policy(), origin.clone()))
            }
            Some(Extends::File(..)) | None => None,
        };
        let nested = &layer.danger_nested_namespaces;
        let mode = &layer.network.mode;
        [
            weaker("policy", Greater, policy.as_ref(), &self.base_policy),
            weaker("base", Less, layer.base.as_ref(), &self.base),
            weaker("level", Less, layer.level.as_ref(), &self.level),
            weaker(
                "seccomp",
                Greater,
                layer.seccomp.as_ref(),
                &self.seccomp.mode,
            ),
            weaker("network mode", Greater, mode.as_ref(), &self.network.mode),
            weaker(
                "methods",
                Greater,
                layer.network.methods.as_ref(),
                &self.network.methods,
            ),
            weaker(
                "danger_hidden_names",
                Greater,
                layer.network.danger_hidden_names.as_ref(),
                &self.network.danger_hidden_names,
            ),
            weaker(
                "best_effort",
                Greater,
                layer.best_effort.as_ref(),
                &self.best_effort,
            ),
            weaker(
                "git_config",
                Greater,
                layer.git_config.as_ref(),
                &self.git_config,
            ),
            weaker("home", Greater, layer.home.as_ref(), &self.home),
            weaker(
                "danger_nested_namespaces",
                Greater,
                nested.as_ref(),
                &self.danger_nested_namespaces,
            ),
            self.raised_limit(layer),
        ]
        .into_iter()
        .flatten()
        .next()
    }

    fn raised_limit(&self, layer: &Layer) -> Option<String> {
        let mut limits = layer.limits.iter().map(|limit| limit.value);
        let raised = limits.find(|limit| self.limits.raised_by(*limit))?;
        let (_, now) = self.limits.iter().find(|(key, _)| *key == raised.key())?;
        Some(format!(
            "`{raised}` raises the limit of {now} ({}); a project's file may only narrow",
            now.origin
        ))
    }
}

/// Says that `new` lies on the weak side of `old`, if it does.
fn weaker<T: Ord + fmt::Display>(
    what: &str,
    weak_side: Ordering,
    new: Option<&Sourced<T>>,
    old: &Sourced<T>,
) -> Option<String> {
    let new = new.filter(|new| new.value.cmp(&old.value) == weak_side)?;
    Some(format!(
        "{what} `{new}` is weaker than `{old}` ({}); a project's file may only narrow",
        old.origin
    ))
}

/// The first setting of a layer that only a sandbox can hold.
fn narrowing(layer: &Layer) -> Option<Sourced<String>> {
    let denies = |rule: &&PathRule| {
        [Kind::Read, Kind::Write]
            .iter()
            .any(|kind| rule.access.allows(*kind) == Some(false))
    };
    let network = &layer.network;
    let rule = layer.rules.iter().find(denies);
    rule.map(|rule| Sourced::new(rule.to_string(), rule.origin.clone()))
        .or_else(|| {
            let base = layer.base.as_ref()?;
            (base.value == Base::Minimal).then(|| base.clone().map(|base| format!("base {base}")))
        })
        .or_else(|| {
            let mode = network.mode.as_ref()?;
            (mode.value != NetworkMode::Open)
                .then(|| mode.clone().map(|mode| format!("network {mode}")))
        })
        .or_else(|| {
            Some(
                network
                    .allow
                    .first()?
                    .clone()
                    .map(|host| format!("allow {host}")),
            )
        })
        .or_else(|| {
            Some(
                network
                    .block
                    .first()?
                    .clone()
                    .map(|host| format!("block {host}")),
            )
        })
        .or_else(|| {
            let methods = network.methods.as_ref()?;
            (methods.value.is_limited())
                .then(|| methods.clone().map(|methods| format!("methods {methods}")))
        })
        .or_else(|| {
            Some(
                network
                    .mask
                    .first()?
                    .clone()
                    .map(|mask| format!("mask {mask}")),
            )
        })
}

fn contradiction(
    first: &Sourced<String>,
    second: &Sourced<String>,
    hint: &'static str,
) -> ProfileError {
    ProfileError::Contradiction {
        first: first.value.clone(),
        first_origin: first.origin.clone(),
        second: second.value.clone(),
        second_origin: second.origin.clone(),
        hint,
    }
}

fn replace<T>(slot: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *slot = new;
    }
}
