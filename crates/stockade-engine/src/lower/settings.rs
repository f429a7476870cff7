//! Settings of clients: inside, a copy without the secrets stands in their place.
//!
//! The copy is made of what the file holds when the run is planned, on the host or in a kept layer. In a home directory with a
//! layer it is written through the layer, so that the command may change it; elsewhere it lies over
//! the host's file and can only be read.

use stockade_linux::plan::FileCopy;
use stockade_policy::profile::{Backend, Base, Profile};
use stockade_policy::{SETTINGS_FILES, SettingsFile, without_secrets};
use stockade_rules::{AbsPath, Access, Kind, PathRule, Pattern, Rank, RuleSet};

use super::home::Layer;
use super::rules::plantable;
use crate::host::{Found, Host, Left};

/// The rules under which the copies are seen, and the copies.
pub(super) fn lower(
    profile: &Profile,
    backend: Backend,
    mut rules: RuleSet,
    layer: &Layer<'_>,
    host: &Host,
    warnings: &mut Vec<String>,
) -> (RuleSet, Vec<FileCopy>) {
    let mut copies = Vec::new();
    if backend != Backend::Native || profile.base.value != Base::Host {
        return (rules, copies);
    }
    let Some(home) = &profile.home_directory else {
        return (rules, copies);
    };
    for file in SETTINGS_FILES {
        let Some(found) = find(profile, &rules, home, file, host) else {
            continue;
        };
        let through_layer = !found.is_below_hidden
            && layer
                .home
                .as_ref()
                .is_some_and(|home| found.real.is_within(home));
        let left = if through_layer {
            layer.left_at(&found.real)
        } else {
            Left::Nothing
        };
        let content = match left {
            Left::Nothing => Host::settings(&found.real),
            // It may have a secret of a run that was shown the file whole.
            Left::File(content) => content,
            Left::Other => {
                rules = found.shown(&rules);
                continue;
            }
        };
        if let Some(content) = content.and_then(|bytes| without_secrets(file.format, &bytes)) {
            rules = found.shown(&rules);
            copies.push(FileCopy {
                through_layer,
                path: found.real,
                content,
            });
        } else {
            rules.push(PathRule::built_in(
                Pattern::Subtree(found.real.clone()),
                Access::Deny,
                "built-in: its secrets can't be left out",
            ));
            warnings.push(format!(
                "`{}` is hidden: it can't be understood, so no secret can be left out; \
                 show it whole with --read {}",
                found.path, found.path
            ));
        }
    }
    (rules, copies)
}

/// A file with settings, about which nobody but Stockade's own lists spoke.
struct Settings {
    path: AbsPath,
    real: AbsPath,
    /// Whether the directory that it is in is hidden as a whole.
    is_below_hidden: bool,
}

fn find(
    profile: &Profile,
    rules: &RuleSet,
    home: &AbsPath,
    file: &SettingsFile,
    host: &Host,
) -> Option<Settings> {
    let path = home.join(file.path).ok()?;
    let found = host.find(&path);
    let Found::Present { real, kind, links } = &*found else {
        return None;
    };
    let may_be_planted = links.iter().any(|link| plantable(profile, &path, link));
    if !kind.is_file() || may_be_planted {
        return None;
    }
    let decision = rules.decide(Kind::Read, real.as_path());
    if decision.rule.is_some_and(|rule| rule.rank == Rank::Stated) {
        return None;
    }
    let mut is_below_hidden = false;
    if let (false, Some(rule)) = (decision.allowed, decision.rule) {
        // A link may lead to another secret, which has its own reason to be hidden.
        let Pattern::Subtree(denied) = &rule.pattern else {
            return None;
        };
        let is_own = *denied == path || (denied == real && is_denied(rules, &path));
        is_below_hidden = !is_own;
        if is_below_hidden && !(path.is_within(denied) && *real == path) {
            return None;
        }
    }
    Some(Settings {
        real: real.clone(),
        path,
        is_below_hidden,
    })
}

/// Whether a built-in rule hides this very path.
fn is_denied(rules: &RuleSet, path: &AbsPath) -> bool {
    rules.iter().any(|rule| is_denial_of(rule, path))
}

fn is_denial_of(rule: &PathRule, path: &AbsPath) -> bool {
    rule.rank == Rank::Default
        && rule.access.allows(Kind::Read) == Some(false)
        && matches!(&rule.pattern, Pattern::Subtree(denied) if denied == path)
}

impl Settings {
    /// The rules without those that hide the file.
    fn shown(&self, rules: &RuleSet) -> RuleSet {
        let hides =
            |rule: &&PathRule| !is_denial_of(rule, &self.path) && !is_denial_of(rule, &self.real);
        let mut rules = RuleSet::new(rules.iter().filter(hides).cloned().collect());
        if self.is_below_hidden {
            let pattern = Pattern::Subtree(self.real.clone());
            let reason = "built-in: a copy without secrets";
            rules.push(PathRule::built_in(pattern, Access::Read, reason));
        }
        rules
    }
}
