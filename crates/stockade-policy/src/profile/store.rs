//! The store of workspaces, which no sandbox may reach.
//!
//! It holds copies of files that the policy denies elsewhere, and what `ws commit` and `ws restore`
//! write to the host. So a grant does not open it, whoever states it.

use stockade_rules::{AbsPath, Access, Kind, Origin, PathRule, Pattern};

use super::printable::printable_text;

/// Why it is closed.
pub(super) const REASON: &str = "built-in: the store of workspaces";

/// The denials. They count as stated, so that no grant of the same path wins.
pub(super) fn rules(stores: &[AbsPath]) -> impl Iterator<Item = PathRule> + '_ {
    stores.iter().map(|store| {
        let pattern = Pattern::Subtree(store.clone());
        PathRule::stated(pattern, Access::Deny, Origin::fixed(REASON))
    })
}

/// Whether a path lies in a store.
pub(super) fn holds(stores: &[AbsPath], path: &AbsPath) -> bool {
    stores.iter().any(|store| path.is_within(store))
}

/// Leaves out grants of something in a store, which would win by their length.
pub(super) fn drop_grants(
    rules: &mut Vec<PathRule>,
    stores: &[AbsPath],
    warnings: &mut Vec<String>,
) {
    rules.retain(|rule| {
        let named = match &rule.pattern {
            Pattern::Subtree(path) => path.clone(),
            Pattern::Glob(glob) => glob.literal_prefix(),
        };
        let grants = rule.access.allows(Kind::Read) == Some(true);
        let is_dropped = grants && holds(stores, &named);
        if is_dropped {
            warnings.push(printable_text(&format!(
                "`{rule}` ({}) has no effect: the store of workspaces stays closed",
                rule.origin
            )));
        }
        !is_dropped
    });
}
