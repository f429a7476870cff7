//! Makes the profile out of the merged layers: here all path rules come together.

use stockade_rules::{AbsPath, Access, Decision, Index, Kind, Origin, PathRule, Pattern, RuleSet};

use crate::host::Methods;
use crate::model::{Surroundings, default_sensitive_paths};

use super::base::{add_base, unfit_workspace, workspace_rule};
use super::choice::{Base, BasePolicy, NetworkMode};
use super::error::ProfileError;
use super::merge::Merged;
use super::network::NetworkProfile;
use super::printable::printable_text;
use super::protected::{Guard, PROTECTED_NAMES};
use super::repository::OwnRepository;
use super::sourced::Sourced;
use super::{Profile, protected, store, worktree};

/// Makes the profile; `repository` is the one that the workspace belongs to.
pub(super) fn build(
    mut merged: Merged,
    around: &Surroundings,
    repository: Option<OwnRepository>,
) -> Result<Profile, ProfileError> {
    merged.check_unconfined()?;
    let base = merged.base()?;
    let mut warnings = Vec::new();
    merged.check_network(&mut warnings)?;
    let (rules, network) = if merged.is_confined() {
        let own = repository.as_ref();
        let rules = confined_rules(&mut merged, &base, around, own, &mut warnings);
        (rules, merged.network)
    } else {
        let root = Sourced::new(AbsPath::root(), merged.base_policy.origin.clone());
        let rule = workspace_rule(merged.base_policy.value, root);
        (
            RuleSet::new(vec![rule]),
            open(merged.network, &merged.base_policy),
        )
    };
    Ok(Profile {
        cwd: around.cwd.clone(),
        base_policy: merged.base_policy,
        base,
        writable_roots: writable_roots(&rules),
        home_directory: around.home.clone(),
        home: merged.home,
        own_repository: repository,
        rules,
        network,
        devices: merged.devices,
        environment: merged.environment,
        limits: merged.limits,
        seccomp: merged.seccomp,
        level: merged.level,
        backend: merged.backend,
        require: merged.require,
        best_effort: merged.best_effort,
        git_config: merged.git_config,
        danger_nested_namespaces: merged.danger_nested_namespaces,
        warnings,
    })
}

fn confined_rules(
    merged: &mut Merged,
    base: &Sourced<Base>,
    around: &Surroundings,
    repository: Option<&OwnRepository>,
    warnings: &mut Vec<String>,
) -> RuleSet {
    let sensitive = merged.sensitive.clone();
    let sensitive = sensitive.unwrap_or_else(|| shipped_sensitive(around));
    store::drop_grants(&mut merged.rules, &around.stores, warnings);
    let workspace = workspace(merged, &sensitive, around, warnings);
    let mut worktree = repository.map_or_else(Vec::new, |repository| {
        worktree::rules(repository, &around.cwd, merged.git_config.value)
    });
    // What the workspace brings along has no better standing than the workspace.
    let workspace_access = workspace.as_ref().map(|rule| rule.access);
    worktree.retain(|rule| {
        let closed = |path: AbsPath| closed_by(&[], &sensitive, Kind::Write, &path).is_some();
        denies(rule, Kind::Write)
            || workspace_access == Some(Access::Write) && !named_writable(rule).is_some_and(closed)
    });
    let stated = std::mem::take(&mut merged.rules);
    // With room for what is added below: there may be hundreds, which should not move.
    let expected = sensitive.len() + stated.len() + 2 * PROTECTED_NAMES.len();
    let mut rules = RuleSet::new(Vec::with_capacity(expected));
    rules.extend(sensitive.into_iter().chain(stated));
    rules.extend(workspace.into_iter().chain(worktree));
    add_base(&mut rules, base);
    // Also below what is denied as a whole: a denial more must not mean a protection less.
    let roots: Vec<AbsPath> = rules.iter().filter_map(named_writable).collect();
    let own_root = repository.map(|repository| &repository.root);
    let projects = [Some(&around.cwd), around.home.as_ref(), own_root];
    let projects: Vec<AbsPath> = projects.into_iter().flatten().cloned().collect();
    rules.extend(protected::rules(&roots, &projects, merged.git_config.value));
    // The files of the policy itself, wherever they are: what they grant next time is not for
    // code inside to say.
    let files = merged.files.iter();
    let writable = files.filter(|file| rules.decide(Kind::Write, file.as_path()).allowed);
    let policy: Vec<PathRule> = writable
        .map(|file| {
            let pattern = Pattern::Subtree(file.clone());
            PathRule::built_in(pattern, Access::DenyWrite, "built-in: a policy of this run")
        })
        .collect();
    rules.extend(policy);
    rules.extend(store::rules(&around.stores));
    rules
}

/// What the base policy grants unasked: the working directory, to read or to write.
fn workspace(
    merged: &Merged,
    sensitive: &[PathRule],
    around: &Surroundings,
    warnings: &mut Vec<String>,
) -> Option<PathRule> {
    if merged.exclude_cwd {
        return None;
    }
    let cwd = &around.cwd;
    let mut policy = merged.base_policy.value;
    let closed = |kind| closed_by(&merged.rules, sensitive, kind, cwd);
    if store::holds(&around.stores, cwd) {
        warnings.push(not_granted("readable", cwd, store::REASON));
        return None;
    }
    let by = |rule: PathRule| format!("`{rule}` ({}) closes it", rule.origin);
    if let Some(rule) = closed(Kind::Read) {
        warnings.push(not_granted("readable", cwd, &by(rule)));
        return None;
    }
    if policy == BasePolicy::WorkspaceWrite {
        let unfit = unfit_workspace(cwd, around.home.as_ref()).map(str::to_owned);
        if let Some(reason) = unfit.or_else(|| closed(Kind::Write).map(by)) {
            warnings.push(not_granted("writable", cwd, &reason));
            policy = BasePolicy::ReadOnly;
        }
    }
    let workspace = Sourced::new(cwd.clone(), Origin::fixed("workspace"));
    Some(workspace_rule(policy, workspace))
}

fn not_granted(what: &str, cwd: &AbsPath, reason: &str) -> String {
    printable_text(&format!(
        "the working directory {cwd} is not {what}: {reason}; grant it with `--write {}` if \
         that is meant",
        cwd.as_word()
    ))
}

/// The sensitive path that the working directory lies in, unless a grant opened it.
///
/// Standing in a directory is no statement about it. Stated denials don't count here: they win
/// or lose by length like any rule, and adding one must never add a grant.
fn closed_by(
    stated: &[PathRule],
    sensitive: &[PathRule],
    kind: Kind,
    cwd: &AbsPath,
) -> Option<PathRule> {
    let grants = stated.iter().filter(|rule| !denies(rule, kind));
    let rule = Decision::among(grants.chain(sensitive), kind, cwd.as_path()).rule?;
    denies(rule, kind).then(|| rule.clone())
}

fn denies(rule: &PathRule, kind: Kind) -> bool {
    rule.access.allows(kind) == Some(false)
}

/// The paths that are named as writable, and are.
fn writable_roots(rules: &RuleSet) -> Vec<AbsPath> {
    let index = Index::new(rules);
    let mut roots: Vec<AbsPath> = rules
        .iter()
        .filter(|rule| matches!(rule.pattern, Pattern::Subtree(_)))
        .filter_map(named_writable)
        .filter(|root| index.decide(Kind::Write, root.as_path()).allowed)
        .collect();
    roots.sort();
    roots.dedup();
    roots
}

/// The path that a rule makes writable, or the one that all of them lie below.
fn named_writable(rule: &PathRule) -> Option<AbsPath> {
    (rule.access == Access::Write).then(|| match &rule.pattern {
        Pattern::Subtree(root) => root.clone(),
        Pattern::Glob(glob) => glob.literal_prefix(),
    })
}

/// The sensitive paths when no policy lists its own.
fn shipped_sensitive(around: &Surroundings) -> Vec<PathRule> {
    let rule = |pattern, access| {
        // What is only kept from writing is the user's own configuration of Stockade.
        let reason = match access {
            Access::DenyWrite => Guard::Policy.reason(),
            _ => "built-in: holds credentials",
        };
        PathRule::built_in(pattern, access, reason)
    };
    let places = default_sensitive_paths();
    let home = around.home.as_ref();
    let own = places
        .iter()
        .filter_map(|place| Some(rule(place.pattern(home)?, place.access()?)));
    let elsewhere = around.other_homes.iter().flat_map(|home| {
        places
            .iter()
            .filter_map(|place| Some(rule(place.pattern_in_home(home)?, place.access()?)))
    });
    own.chain(elsewhere).collect()
}

/// Without a sandbox the network is the host's.
fn open(network: NetworkProfile, policy: &Sourced<BasePolicy>) -> NetworkProfile {
    NetworkProfile {
        mode: Sourced::new(NetworkMode::Open, policy.origin.clone()),
        allow: Vec::new(),
        block: Vec::new(),
        methods: Sourced::new(Methods::Any, policy.origin.clone()),
        danger_hidden_names: Sourced::new(false, policy.origin.clone()),
        mask: Vec::new(),
        ..network
    }
}
