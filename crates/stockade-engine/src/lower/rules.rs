//! The profile's rules with real paths: what a rule names, links followed where that is safe.

use stockade_linux::plan::{Protection, Text};
use stockade_policy::profile::{Guard, PROTECTED_NAMES, Profile, Protected, is_protection};
use stockade_rules::protected::{Anchor, ProtectedName, Relation, candidates};
use stockade_rules::{AbsPath, Access, Kind, PathRule, Pattern, Rank, RuleSet};

use crate::host::{Found, Host};

/// The rules as they apply to real paths, and whether a denied read can't be a mount, so that the
/// mediator must see every open: it is a pattern, or about something in a writable root that can't
/// be looked at before a mode is changed.
pub(crate) fn real(profile: &Profile, host: &Host, warnings: &mut Vec<String>) -> (RuleSet, bool) {
    let stated = profile.rules.iter().len();
    host.expect(stated);
    // Some more are added later, and these should not move then: there may be hundreds.
    let mut rules = Vec::with_capacity(stated + 16);
    let mut unmounted = false;
    for rule in &profile.rules {
        let hides = rule.access.allows(Kind::Read) == Some(false);
        let Pattern::Subtree(path) = &rule.pattern else {
            unmounted |= hides;
            rules.push(rule.clone());
            continue;
        };
        let found = host.find(path);
        match (rule.access, &*found) {
            (Access::Read | Access::Write, Found::Present { real, links, .. }) => {
                if let Some(link) = links.iter().find(|link| plantable(profile, path, link)) {
                    warnings.push(planted(path, link));
                    continue;
                }
                rules.push(about(rule, real));
            }
            (Access::Read | Access::Write, Found::Missing | Found::Unreadable) => {
                if rule.rank == stockade_rules::Rank::Stated {
                    warnings.push(format!("`{path}` does not exist; the grant has no effect"));
                }
            }
            // A denial holds for the name and for what it leads to.
            (Access::Deny | Access::DenyRead | Access::DenyWrite, found) => {
                let roots = &profile.writable_roots;
                unmounted |= hides
                    && *found == Found::Unreadable
                    && roots.iter().any(|root| path.is_within(root));
                if let Found::Present { real, .. } = found
                    && real != path
                {
                    rules.push(about(rule, real));
                }
                rules.push(rule.clone());
            }
        }
    }
    rules.extend(behind_links(profile, host));
    (RuleSet::new(rules), unmounted)
}

/// Whether a denied read below `root`, which can be written, is about something that can't be
/// looked at before a mode is changed.
pub(super) fn hides_unseen(rules: &RuleSet, root: &AbsPath, host: &Host) -> bool {
    rules.iter().any(|rule| {
        rule.access.allows(Kind::Read) == Some(false)
            && matches!(&rule.pattern, Pattern::Subtree(path)
                if path.is_within(root) && *host.find(path) == Found::Unreadable)
    })
}

fn planted(path: &AbsPath, link: &AbsPath) -> String {
    format!(
        "`{path}` leads out through a link in `{link}`, which the command may write; the grant is ignored"
    )
}

/// What a rule says, about another path.
fn about(rule: &PathRule, path: &AbsPath) -> PathRule {
    PathRule {
        pattern: Pattern::Subtree(path.clone()),
        access: rule.access,
        rank: rule.rank,
        origin: rule.origin.clone(),
    }
}

/// Protected names that are links, or lie behind one: what they lead to is protected as well.
fn behind_links(profile: &Profile, host: &Host) -> Vec<PathRule> {
    let mut rules = Vec::new();
    for (path, protected) in protected_names(profile, host) {
        if profile.git_config.value && protected.guard == Guard::GitConfig {
            continue;
        }
        let landing = host.landing(&path);
        if landing != path {
            let pattern = Pattern::Subtree(landing);
            rules.push(PathRule::built_in(
                pattern,
                Access::DenyWrite,
                protected.guard.reason(),
            ));
        }
    }
    rules
}

/// The protected names at the top of each writable root of which at least the first part exists.
/// There may be hundreds of roots, and hardly any of the names is in any of them.
pub(super) fn protected_names(
    profile: &Profile,
    host: &Host,
) -> Vec<(AbsPath, &'static Protected)> {
    let mut found = Vec::new();
    let exists = |path: &AbsPath| *host.find(path) != Found::Missing;
    for root in profile.writable_roots.iter().filter(|root| exists(root)) {
        let mut previous = ("", false);
        for protected in PROTECTED_NAMES {
            let first = protected.name.split('/').next().unwrap_or_default();
            if previous.0 != first {
                previous = (first, root.join(first).is_ok_and(|path| exists(&path)));
            }
            if previous.1
                && !protected.name.contains('*')
                && let Ok(path) = root.join(protected.name)
            {
                found.push((path, protected));
            }
        }
    }
    found
}

/// Whether a link in this directory may have been made by sandboxed code: it lies in a writable
/// root that is not the granted path itself.
pub(super) fn plantable(profile: &Profile, granted: &AbsPath, directory: &AbsPath) -> bool {
    profile
        .writable_roots
        .iter()
        .any(|root| root != granted && directory.is_within(root))
}

/// Sockets of the host that were granted, by their real paths. One that is missing may come: the
/// mediator asks for the path when the command connects.
pub(super) fn sockets(profile: &Profile, host: &Host, warnings: &mut Vec<String>) -> Vec<AbsPath> {
    let sockets = profile.network.unix.iter();
    sockets
        .filter_map(|socket| match &*host.find(&socket.value) {
            Found::Present { real, links, .. } => {
                let path = &socket.value;
                if let Some(link) = links.iter().find(|link| plantable(profile, path, link)) {
                    warnings.push(planted(path, link));
                    return None;
                }
                Some(real.clone())
            }
            Found::Missing | Found::Unreadable => {
                let path = &socket.value;
                warnings.push(format!(
                    "`{path}` does not exist; the grant has no effect unless it is made while the command runs"
                ));
                Some(path.clone())
            }
        })
        .collect()
}

/// Where names are protected that make code run on the host later; none if the policy grants them.
pub(super) fn protection(profile: &Profile, environment: &[Text]) -> Option<Protection> {
    if !profile.rules.iter().any(is_protection) {
        return None;
    }
    let roots = profile.writable_roots.clone();
    let home = environment.iter().find_map(|entry| {
        let value = entry.as_os_str().to_str()?.strip_prefix("HOME=")?;
        AbsPath::new(value).ok()
    });
    let own = profile.own_repository.as_ref();
    let own_root = own.map(|own| own.root.clone());
    let anchors = roots.iter().cloned().chain(home).chain(own_root.clone());
    Some(Protection {
        anchors: anchors.collect(),
        own_root,
        own_git: own.map_or_else(Vec::new, |own| own.git_directories.clone()),
        roots,
        git_config_allowed: profile.git_config.value,
    })
}

/// The rules that the mediator decides by: without those about protected names, which it judges by
/// content and by what the file system says about them.
pub(super) fn without_protected_names(rules: &RuleSet) -> RuleSet {
    let is_judged = |rule: &PathRule| {
        let Pattern::Subtree(path) = &rule.pattern else {
            return false;
        };
        let mut rows = candidates(path.as_path());
        rule.rank == Rank::Default
            && rule.access == Access::DenyWrite
            && rows.any(|found| found.relation == Relation::Exact && is_git(found.row))
    };
    let kept = rules.iter();
    let kept = kept.filter(|rule| !is_protection(rule) && !is_judged(rule));
    RuleSet::new(kept.cloned().collect())
}

/// The rules for a run over an overlay: without those that keep single paths of a writable root as
/// they are, unless the user stated them. Inside they can be changed; the commit keeps them back.
pub(super) fn without_kept_paths(profile: &Profile, rules: &RuleSet) -> RuleSet {
    let is_kept = |rule: &PathRule| {
        let Pattern::Subtree(path) = &rule.pattern else {
            return false;
        };
        let mut roots = profile.writable_roots.iter();
        rule.rank == Rank::Default
            && rule.access == Access::DenyWrite
            && roots.any(|root| path.is_within(root))
    };
    let rest = rules.iter().filter(|rule| !is_kept(rule));
    RuleSet::new(rest.cloned().collect())
}

fn is_git(row: &ProtectedName) -> bool {
    matches!(row.anchor, Anchor::Anywhere | Anchor::GitDirectory)
}
