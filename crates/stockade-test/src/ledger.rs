//! The ledger of attacks (`docs/attacks.md`) and the suite must list the same ids.

use std::collections::BTreeSet;

use crate::Failure;
use crate::case::Case;

/// The ids in the ledger: the first cell of each table row that is neither heading nor rule.
pub fn ids(markdown: &str) -> Vec<String> {
    markdown
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.split('|').next())
        .map(|cell| cell.trim().trim_matches('`').to_owned())
        .filter(|id| {
            id.starts_with(|c: char| c.is_ascii_uppercase())
                && id.bytes().any(|b| b.is_ascii_digit())
                && !id.contains(' ')
        })
        .collect()
}

/// Whether each denial of the suite is on the ledger once, and nothing else is.
///
/// # Errors
/// Names the ids that are on one side only, or twice on the ledger.
pub fn compare(markdown: &str, cases: &[Case]) -> Result<(), Failure> {
    let listed = ids(markdown);
    let ledger: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    let suite: BTreeSet<&str> = cases
        .iter()
        .filter(|case| case.denies())
        .map(Case::id)
        .collect();
    let missing: Vec<_> = suite.difference(&ledger).collect();
    let extra: Vec<_> = ledger.difference(&suite).collect();
    if missing.is_empty() && extra.is_empty() && listed.len() == ledger.len() {
        return Ok(());
    }
    let twice = listed.len() - ledger.len();
    Err(format!(
        "ledger and suite differ: not on the ledger {missing:?}; \
         on the ledger without a test {extra:?}; listed twice: {twice}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{compare, ids};
    use crate::{attack, prints};

    const TABLE: &str = "| id | attack |\n|---|---|\n| F02 | write out |\n| `X01` | detach |\n";

    #[test]
    fn reads_the_ids_and_nothing_else() {
        assert_eq!(ids(TABLE), ["F02", "X01"]);
    }

    #[test]
    fn tells_what_differs() {
        let f02 = || attack("F02", "").leak(prints("x"));
        let x01 = || attack("X01", "").leak(prints("x"));
        assert_eq!(compare(TABLE, &[f02(), x01()]), Ok(()));
        assert!(compare(TABLE, &[f02()]).is_err_and(|text| text.contains("X01")));
        let third = attack("D04", "").leak(prints("x"));
        assert!(compare(TABLE, &[f02(), x01(), third]).is_err_and(|text| text.contains("D04")));
    }
}
