//! Comments that silence rules: `stockade: allow(rule-id, …) why`.
//!
//! A comment covers its own line and the next; `allow-file` covers the file. Whoever writes the code
//! can write the comment, so callers that don't trust the author switch this off.

use std::collections::{HashMap, HashSet};

use crate::lines::Lines;
use crate::result::Span;
use crate::rule::Rule;

/// What comments allow.
#[derive(Debug, Default)]
pub(crate) struct Allowed {
    lines: HashMap<usize, HashSet<Rule>>,
    file: HashSet<Rule>,
}

impl Allowed {
    pub(crate) fn covers(&self, rule: Rule, line: usize) -> bool {
        let on = |line: usize| {
            self.lines
                .get(&line)
                .is_some_and(|rules| rules.contains(&rule))
        };
        self.file.contains(&rule) || on(line) || line > 1 && on(line - 1)
    }
}

/// Reads what the comments of a text allow.
pub(crate) fn read(text: &str, comments: &[Span], lines: &Lines<'_>) -> Allowed {
    let mut allowed = Allowed::default();
    for comment in comments {
        let Some(body) = text.get(comment.start..comment.end) else {
            continue;
        };
        let Some(at) = body.find("stockade: allow") else {
            continue;
        };
        let rest = &body[at + "stockade: allow".len()..];
        let (file, rest) = rest
            .strip_prefix("-file")
            .map_or((false, rest), |rest| (true, rest));
        let Some((ids, _)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
            continue;
        };
        let rules = ids.split(',').filter_map(|id| Rule::from_id(id.trim()));
        if file {
            allowed.file.extend(rules);
        } else {
            let (line, _) = lines.position(comment.start);
            allowed.lines.entry(line).or_default().extend(rules);
        }
    }
    allowed
}
