//! The profile's rules with real paths: what a rule names, links followed where that is safe.

use stockade_policy::profile::{Guard, PROTECTED_NAMES, Profile, Protected, protection_bases};
use stockade_rules::{AbsPath, Access, Kind, PathGlob, PathRule, Pattern, RuleSet};

use crate::host::{Found, Host};

/// The rules as they apply to real paths, and whether a denied read can't be a mount, so that the
/// mediator must see every open: it is a pattern, or about something in a writable root that can't
/// be looked at before a mode is changed.
pub(super) fn real(profile: &Profile, host: &Host, warnings: &mut Vec<String>) -> (RuleSet, bool) {
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
                    warnings.push(format!(
                        "`{path}` leads out through a link in `{link}`, which the command may write; the grant is ignored"
                    ));
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
fn plantable(profile: &Profile, granted: &AbsPath, directory: &AbsPath) -> bool {
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
        .map(|socket| match &*host.find(&socket.value) {
            Found::Present { real, .. } => real.clone(),
            Found::Missing | Found::Unreadable => {
                let path = &socket.value;
                warnings.push(format!(
                    "`{path}` does not exist; the grant has no effect unless it is made while the command runs"
                ));
                path.clone()
            }
        })
        .collect()
}

/// Which files are git's configuration, in any writable root.
pub(super) fn git_configs(profile: &Profile) -> Vec<PathGlob> {
    if profile.git_config.value {
        return Vec::new();
    }
    let names = PROTECTED_NAMES
        .iter()
        .filter(|name| name.guard == Guard::GitConfig && name.name.ends_with("/config"));
    let bases = protection_bases(&profile.writable_roots);
    let bases = bases.as_slice();
    let globs = names.flat_map(|name| {
        bases
            .iter()
            .filter_map(move |base| PathGlob::new(&format!("**/{}", name.name), base).ok())
    });
    globs.collect()
}
