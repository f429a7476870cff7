//! Which backend a level means on this machine: a match of what the policy asks for against what
//! each backend was seen to do here.
//!
//! Nothing is chosen by name or because a program is installed: a candidate must pass its own
//! self-test and then make a plan for the very policy. Falling below the level is an error, unless
//! the profile asks for best effort, and then it is one of the gaps.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use stockade_policy::profile::{Backend as Name, Level, Profile};

use crate::backend::{Backends, strength};
use crate::choice;
use crate::plan::Spec;

/// What was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SandboxSelection {
    /// What will enforce the policy.
    pub backend: Name,
    /// Why it is this one, and what became of those before it.
    pub reason: String,
    /// What of the policy it does not enforce in full.
    pub gaps: Vec<String>,
}

/// Why nothing was chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// Nothing that reaches the level works here.
    #[error("nothing here reaches the level `{level}`: {}", .tried.join("; "))]
    Nothing {
        /// Which level.
        level: Level,
        /// What was tried, and what happened.
        tried: Vec<String>,
    },
}

impl Backends {
    /// Chooses for a level.
    ///
    /// # Errors
    /// If nothing here reaches the level and enforces the profile.
    pub fn select(
        &self,
        level: Level,
        profile: &Profile,
        helper: &Path,
    ) -> Result<SandboxSelection, SelectError> {
        if level == Level::Off {
            return Ok(SandboxSelection {
                backend: Name::None,
                reason: "nothing is confined at this level".to_owned(),
                gaps: vec!["everything".to_owned()],
            });
        }
        let mut tried = Vec::new();
        let best_effort = profile.best_effort.value;
        for (considered, name) in choice::ladder(level, best_effort) {
            match self.consider(name, level, considered, profile, helper) {
                Ok(mut chosen) => {
                    if !tried.is_empty() {
                        chosen.reason = format!("{}; {}", chosen.reason, tried.join("; "));
                    }
                    return Ok(chosen);
                }
                Err(refusal) => {
                    tried.push(format!("{name}: {}", refusal.reason));
                    if refusal.works && choice::stops_fallback(name, best_effort) {
                        break;
                    }
                }
            }
        }
        Err(SelectError::Nothing { level, tried })
    }

    /// Tries one candidate: its self-test, then a plan for the policy.
    fn consider(
        &self,
        name: Name,
        level: Level,
        considered: Level,
        profile: &Profile,
        helper: &Path,
    ) -> Result<SandboxSelection, Refusal> {
        let named = self.iter().filter(|backend| backend.name() == name);
        let spec = Spec {
            argv: vec!["true".into()],
            ..Spec::default()
        };
        let mut reasons = Vec::new();
        let mut works = false;
        for backend in named {
            let support = backend.probe(helper);
            if !support.is_usable() {
                reasons.extend(support.gaps().iter().map(|gap| gap.reason.clone()));
                continue;
            }
            works = true;
            let plan = match choice::plan_at(backend, considered, profile, &spec) {
                Ok(plan) => plan,
                Err(error) => {
                    reasons.push(error.to_string());
                    continue;
                }
            };
            let mut gaps = choice::gaps(&plan);
            if strength(name) < level {
                gaps.insert(0, format!("below the level `{level}`"));
            }
            let reason = "confined a command here".to_owned();
            return Ok(SandboxSelection {
                backend: name,
                reason,
                gaps,
            });
        }
        if reasons.is_empty() {
            reasons.push("not in this build".to_owned());
        }
        Err(Refusal {
            reason: reasons.join(", "),
            works,
        })
    }
}

/// Why a candidate is passed over.
struct Refusal {
    reason: String,
    /// Whether it works here, and only can't hold the policy.
    works: bool,
}

impl fmt::Display for SandboxSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.backend, self.reason)
    }
}

#[cfg(test)]
mod tests;
