//! What of a profile's rules has an effect here.

use stockade_policy::profile::Profile;
use stockade_rules::RuleSet;

use crate::host::Host;
use crate::lower;

/// The rules with which a run would be planned on this machine, and what it would warn about: a grant
/// of something that does not exist has no effect, and a link that a command may have made is not
/// followed.
pub fn effective_rules(profile: &Profile) -> (RuleSet, Vec<String>) {
    let mut warnings = Vec::new();
    let (rules, _) = lower::rules::real(profile, &Host::look(), &mut warnings);
    (rules, warnings)
}
