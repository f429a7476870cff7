//! Opens what is hidden by default for the one program that it belongs to.

use stockade_rules::{AbsPath, Access, PathRule, Pattern, Rank, RuleSet};

use super::Profile;

impl Profile {
    /// Takes back the built-in denial of these paths, so that the general rules about the home
    /// directory hold there. A grant would do more: its writes reach the host. What a person
    /// denied stays denied.
    pub fn reveal(&mut self, paths: &[AbsPath]) {
        let is_revealed = |rule: &PathRule| {
            let is_denial = rule.rank == Rank::Default && rule.access == Access::Deny;
            is_denial && matches!(&rule.pattern, Pattern::Subtree(path) if paths.contains(path))
        };
        let kept = self.rules.iter().filter(|rule| !is_revealed(rule));
        self.rules = RuleSet::new(kept.cloned().collect());
    }
}
