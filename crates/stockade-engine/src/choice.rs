//! The backends that a run may have, the best first, and what became of those before.
//!
//! A backend that is named is the only one. A level means a list ([`candidates`]); best effort adds
//! those of the levels below. Trying is how it is known what works: the first of a list is not
//! probed, since starting the command tries the same at no cost. Where the host refuses it nothing
//! of the command has run, and the next is tried; one that is not the first and could fail only
//! after it has begun has to pass its self-test before. What was passed over is said with the plan.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;

use stockade_policy::profile::{Backend as Name, HomeMode, Level, Profile, Sourced};

use crate::backend::{self, Backend, Backends, strength};
use crate::child::RunError;
use crate::lower::{self, Weaker};
use crate::plan::{ExecPlan, PlanError, Spec};
use crate::report::Enforcement;
use crate::tier;

/// In the order in which they are tried at a level.
pub(crate) fn candidates(level: Level) -> &'static [Name] {
    match level {
        Level::Off => &[],
        Level::Default => &[Name::Native, Name::Landlock, Name::Bwrap, Name::Nsjail],
        Level::Enhanced => &[Name::Native],
        Level::Container => &[Name::Docker],
        Level::Maximum => &[Name::Gvisor],
    }
}

/// What is tried for a level, with the level that each is tried at.
pub(crate) fn ladder(level: Level, best_effort: bool) -> Vec<(Level, Name)> {
    let weaker = [Level::Container, Level::Enhanced, Level::Default];
    let weaker = weaker
        .into_iter()
        .filter(|other| best_effort && *other < level);
    let mut found: Vec<(Level, Name)> = Vec::new();
    for considered in [level].into_iter().chain(weaker) {
        for name in candidates(considered) {
            // What did not work at a higher level does not work at a lower one.
            if !found.iter().any(|(_, known)| known == name) {
                found.push((considered, *name));
            }
        }
    }
    found
}

/// Whether one that can't hold the policy ends the search: those behind it are weaker, and nobody
/// asked for less.
pub(crate) fn stops_fallback(name: Name, best_effort: bool) -> bool {
    name == Name::Native && !best_effort
}

/// A backend that is to be tried, and the level it is tried at.
#[derive(Clone, Copy, Debug)]
struct Candidate<'a> {
    level: Level,
    name: Name,
    backend: Option<&'a dyn Backend>,
}

/// What a run may be carried out by; [`Backends::choose`] makes it.
#[derive(Debug)]
pub struct Choice<'a> {
    profile: Cow<'a, Profile>,
    helper: &'a Path,
    /// Whether the profile names the backend.
    named: bool,
    /// Whether nothing will be started, by which it would be seen what works.
    only_planned: bool,
    left: VecDeque<Candidate<'a>>,
    /// What did not work, and why.
    tried: Vec<(Name, String)>,
    current: Option<Candidate<'a>>,
    /// Why the home directory has no layer, where the host refused one.
    home_refused: Option<String>,
    first_error: Option<PlanError>,
    /// Whether it is about a gap, and what the user could do.
    last_hint: Option<(bool, String)>,
}

/// Why a plan was not started.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum Attempt<E> {
    /// Whatever the backend: no other is tried.
    Final(E),
    /// By this backend; another may do better.
    Refused(RunError),
}

impl Backends {
    /// What a run of this profile may be carried out by. `helper` is the program that acts as
    /// Stockade's helper; only self-tests need it.
    ///
    /// # Errors
    /// If the profile confines nothing, or names a backend that is below its level.
    pub fn choose<'a>(
        &'a self,
        profile: &'a Profile,
        helper: &'a Path,
    ) -> Result<Choice<'a>, PlanError> {
        let stated = backend::named(profile)?;
        let level = profile.level.value;
        let rungs = match stated {
            Some(name) => vec![(level, name)],
            None => ladder(level, profile.best_effort.value),
        };
        let mut left = VecDeque::new();
        for (level, name) in rungs {
            let before = left.len();
            let known = self.iter().filter(|backend| backend.name() == name);
            left.extend(known.map(|backend| Candidate {
                level,
                name,
                backend: Some(backend),
            }));
            if left.len() == before {
                left.push_back(Candidate {
                    level,
                    name,
                    backend: None,
                });
            }
        }
        Ok(Choice {
            profile: Cow::Borrowed(profile),
            helper,
            named: stated.is_some(),
            only_planned: false,
            left,
            tried: Vec::new(),
            current: None,
            home_refused: None,
            first_error: None,
            last_hint: None,
        })
    }
}

impl Choice<'_> {
    /// The same for a caller who starts nothing: where there is something to fall back to, each
    /// has to pass its self-test.
    #[must_use]
    pub fn only_planned(mut self) -> Self {
        self.only_planned = true;
        self
    }

    /// The plan of the next that can make one. Its first warning says what does not hold, and why
    /// it is not the one before.
    ///
    /// # Errors
    /// If there is no more.
    pub fn next(&mut self, spec: &Spec) -> Result<ExecPlan, PlanError> {
        while let Some(candidate) = self.left.pop_front() {
            let is_alone = self.tried.is_empty() && self.left.is_empty();
            match self.plan(&candidate, spec) {
                Ok(plan) => {
                    self.current = Some(candidate);
                    return Ok(self.told(plan));
                }
                Err(error) => {
                    let ends = stops_fallback(candidate.name, self.profile.best_effort.value);
                    if is_alone || (ends && !self.named) {
                        return Err(error);
                    }
                    self.tried.push((candidate.name, error.to_string()));
                    // What best effort would run is the best advice.
                    if !matches!(self.last_hint, Some((true, _))) {
                        let is_gap = matches!(error, PlanError::Unenforced { .. });
                        self.last_hint = error.hint().map(|hint| (is_gap, hint));
                    }
                    self.first_error.get_or_insert(error);
                }
            }
        }
        let nothing = PlanError::Nothing {
            level: self.profile.level.value,
            tried: self.tried_words(),
            hint: self.last_hint.take().map(|(_, hint)| hint),
        };
        // The same backend in another way has nothing to add.
        let is_one = self.named || self.tried.iter().all(|(name, _)| *name == self.tried[0].0);
        match self.first_error.take() {
            Some(error) if is_one => Err(error),
            _ => Err(nothing),
        }
    }

    /// Starts the plan of the first backend that the host does not refuse.
    ///
    /// # Errors
    /// If there is no plan, or `start` fails for another reason than the host.
    pub fn start<T, E: From<RunError>>(
        &mut self,
        spec: &Spec,
        mut start: impl FnMut(ExecPlan) -> Result<T, Attempt<E>>,
    ) -> Result<T, E> {
        loop {
            let plan = self.next(spec).map_err(RunError::from)?;
            match start(plan) {
                Ok(started) => return Ok(started),
                Err(Attempt::Final(error)) => return Err(error),
                Err(Attempt::Refused(error)) => self.passed_over(error)?,
            }
        }
    }

    /// Whether the next may be tried after the last one could not be started: it has to be the
    /// host that refuses it, and not the command that is missing.
    ///
    /// # Errors
    /// The same error, if not.
    pub fn passed_over(&mut self, error: RunError) -> Result<(), RunError> {
        let error = match self.without_home_layer(error) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let Some(current) = self.current.filter(|_| !self.left.is_empty()) else {
            return Err(error);
        };
        let reason = match &error {
            RunError::Spawn(error) => tier::refusal(error),
            RunError::NotStarted { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        match reason {
            Some(reason) => {
                self.tried.push((current.name, reason));
                Ok(())
            }
            None => Err(error),
        }
    }

    /// Has the same backend tried again with a read-only home directory, if the host refused the
    /// layer over it.
    ///
    /// # Errors
    /// The same error, if the host refused something else.
    pub fn without_home_layer(&mut self, error: RunError) -> Result<(), RunError> {
        let (Some(current), None, RunError::Spawn(spawn)) =
            (self.current, &self.home_refused, &error)
        else {
            return Err(error);
        };
        let Some(reason) = tier::home_refusal(spawn) else {
            return Err(error);
        };
        let read_only = Sourced::new(HomeMode::ReadOnly, self.profile.home.origin.clone());
        self.profile.to_mut().home = read_only;
        self.home_refused = Some(reason);
        self.left.push_front(current);
        Ok(())
    }

    fn plan(&self, candidate: &Candidate<'_>, spec: &Spec) -> Result<ExecPlan, PlanError> {
        let name = candidate.name;
        let Some(backend) = candidate.backend else {
            return Err(PlanError::Backend(name));
        };
        let plan = if self.named {
            checked(backend, &self.profile, spec)?
        } else {
            plan_at(backend, candidate.level, &self.profile, spec)?
        };
        let has_others = !self.tried.is_empty() || !self.left.is_empty();
        let may_fall = !self.tried.is_empty() || self.profile.best_effort.value;
        if !self.named && has_others && may_fall && (self.only_planned || fails_late(name)) {
            let support = backend.probe(self.helper);
            if !support.is_usable() {
                let reasons = support.gaps().iter().map(|gap| gap.reason.clone());
                return Err(PlanError::Unusable {
                    backend: name,
                    reason: reasons.collect::<Vec<_>>().join(", "),
                    fix: None,
                });
            }
        }
        Ok(plan)
    }

    /// The plan with what the user should know about the choice.
    fn told(&self, mut plan: ExecPlan) -> ExecPlan {
        let name = plan.backend;
        let gaps = tier::shortfall(&plan);
        let asked = self.profile.level.value;
        if let Some(reason) = &self.home_refused {
            plan.warnings.insert(0, reason.clone());
        }
        if self.tried.is_empty() && (gaps.is_empty() || name == Name::Native) {
            return plan;
        }
        let mut words = Vec::new();
        match self.tried.as_slice() {
            [] if name == Name::Landlock => words.push("as was asked for".to_owned()),
            [(Name::Native, reason)] => words.push(reason.clone()),
            _ => words.extend(self.tried_words()),
        }
        if !gaps.is_empty() {
            words.push(format!("only partly enforced: {gaps} (see --report)"));
        }
        if name == Name::Landlock && plan.linux.mediation.is_none() {
            words.extend(crate::probe::surroundings());
        }
        let below = if strength(name) < asked && !self.named {
            format!("below the level `{asked}`, ")
        } else {
            String::new()
        };
        let notice = format!("{below}using `{name}`: {}", words.join("; "));
        plan.warnings.insert(0, notice);
        plan
    }

    fn tried_words(&self) -> Vec<String> {
        let tried = self.tried.iter();
        tried
            .map(|(name, reason)| format!("{name}: {reason}"))
            .collect()
    }
}

/// Programs that build sandboxes say that they can't when the command should have run.
fn fails_late(name: Name) -> bool {
    matches!(name, Name::Bwrap | Name::Gvisor | Name::Nsjail)
}

/// A plan for the profile with this backend at this level.
pub(crate) fn plan_at(
    backend: &dyn Backend,
    level: Level,
    profile: &Profile,
    spec: &Spec,
) -> Result<ExecPlan, PlanError> {
    if level == profile.level.value {
        return checked(backend, profile, spec);
    }
    let mut profile = profile.clone();
    profile.level = Sourced::built_in(level);
    profile.backend = Some(Sourced::built_in(backend.name()));
    checked(backend, &profile, spec)
}

/// A plan that holds what the profile requires. The tiers look at that themselves.
fn checked(backend: &dyn Backend, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
    let plan = backend.plan(profile, spec)?;
    lower::check(profile, Weaker::Chosen, &plan.enforcement)?;
    Ok(plan)
}

/// What of a plan does not hold in full, each with what is missing.
pub(crate) fn gaps(plan: &ExecPlan) -> Vec<String> {
    let partly = plan.enforcement.iter();
    let partly = partly.filter(|report| report.enforcement != Enforcement::Full);
    let gaps = partly.map(|report| {
        let gap = report.gap.as_deref().unwrap_or_default();
        format!("{}: {gap}", report.clause)
    });
    gaps.collect()
}
