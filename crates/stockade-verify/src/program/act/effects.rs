//! Actions that mean the same whatever the arguments are: `rules/effects.list`.

use std::sync::OnceLock;

use super::Deed;
use crate::program::hash::Map;
use crate::program::judge::Judge;
use crate::program::value::{Taint, Value};
use crate::rule::Rule;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug)]
enum Weight {
    Error,
    /// An error in a text of a few lines, a warning elsewhere.
    Excerpt,
    Warning,
}

#[derive(Debug)]
struct Effect {
    rule: Rule,
    weight: Weight,
    /// What the result of the call holds.
    holds: Taint,
    reason: &'static str,
}

impl Judge<'_> {
    /// Judges a call by its action alone; `None` if the table does not list the action.
    pub(super) fn listed_effect(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let effect = table().get(deed.entry.action)?;
        let reason = format!("`{}` {}", deed.path, effect.reason);
        let span = deed.span;
        match effect.weight {
            Weight::Error => self.findings.raise(effect.rule, span, reason),
            Weight::Excerpt => self.findings.excerpt(effect.rule, span, reason),
            Weight::Warning => self.findings.warn(effect.rule, span, reason),
        }
        let result = deed.result.clone();
        Some(if effect.holds == Taint::NONE {
            result
        } else {
            Value::unknown(result.taint | effect.holds)
        })
    }
}

fn table() -> &'static Map<&'static str, Effect> {
    static TABLE: OnceLock<Map<&'static str, Effect>> = OnceLock::new();
    TABLE.get_or_init(|| lines().filter_map(read).collect())
}

fn lines() -> impl Iterator<Item = &'static str> {
    let text = include_str!("../../../rules/effects.list");
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// One line of the table; `None` if a word of it has no meaning.
fn read(line: &'static str) -> Option<(&'static str, Effect)> {
    let mut words = line.splitn(5, ' ');
    let action = words.next()?;
    let rule = Rule::from_id(words.next()?)?;
    let weight = match words.next()? {
        "error" => Weight::Error,
        "excerpt" => Weight::Excerpt,
        "warning" => Weight::Warning,
        _ => return None,
    };
    let holds = match words.next()? {
        "-" => Taint::NONE,
        "secret" => Taint::SECRET,
        _ => return None,
    };
    let reason = words.next()?;
    Some((
        action,
        Effect {
            rule,
            weight,
            holds,
            reason,
        },
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;

    use super::{lines, read, table};

    #[test]
    fn every_line_is_read_and_no_action_is_listed_twice() {
        for line in lines() {
            assert!(read(line).is_some(), "{line}");
        }
        assert_eq!(table().len(), lines().count());
    }

    /// The text of all files below a directory.
    fn sources(directory: &Path, out: &mut String) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, out);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                out.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn every_action_of_the_libraries_is_judged_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut code = String::new();
        sources(&root.join("src/program"), &mut code);
        let mut used = HashSet::new();
        for list in ["python", "go", "javascript"] {
            let text = fs::read_to_string(root.join(format!("rules/{list}.list"))).unwrap();
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let Some(action) = line.split_ascii_whitespace().nth(1) else {
                    continue;
                };
                let judged =
                    table().contains_key(action) || code.contains(&format!("\"{action}\""));
                assert!(judged, "{list}.list: nobody reads {action:?}: {line}");
                used.insert(action.to_owned());
            }
        }
        for action in table().keys() {
            assert!(
                used.contains(*action),
                "no function has the action {action:?}"
            );
        }
    }
}
