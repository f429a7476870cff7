//! Lists of words that rules look for, from `rules/words.list`.

use std::ops::Deref;
use std::sync::OnceLock;

/// A list of words, read when it is first used.
pub(crate) struct Words {
    section: &'static str,
    words: OnceLock<Vec<&'static str>>,
}

impl Words {
    /// The list with this name in the file.
    pub(crate) const fn new(section: &'static str) -> Self {
        Self {
            section,
            words: OnceLock::new(),
        }
    }
}

impl Deref for Words {
    type Target = [&'static str];

    fn deref(&self) -> &Self::Target {
        self.words.get_or_init(|| read(self.section))
    }
}

fn read(section: &str) -> Vec<&'static str> {
    let found = sections().find(|(name, _)| name.trim_end_matches(':') == section);
    let Some((name, body)) = found else {
        return Vec::new();
    };
    if name.ends_with(':') {
        let lines = body.lines().filter(|line| !line.is_empty());
        lines.map(unquoted).collect()
    } else {
        body.split_ascii_whitespace().collect()
    }
}

/// An entry that ends with a blank is written in quotes.
fn unquoted(line: &'static str) -> &'static str {
    let inner = line
        .strip_prefix('"')
        .and_then(|line| line.strip_suffix('"'));
    inner.unwrap_or(line)
}

/// The name and the text of each section.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = include_str!("../rules/words.list");
    let parts = text.split("\n\n[").skip(1);
    parts.filter_map(|part| part.split_once("]\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::Path;

    use super::{read, sections};

    /// The names of the lists that the files below a directory read.
    fn used(directory: &Path, out: &mut Vec<String>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                used(&path, out);
                continue;
            }
            let code = fs::read_to_string(&path).unwrap();
            let calls = code.split("Words = Words::new(\"").skip(1);
            out.extend(calls.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }

    #[test]
    fn every_list_is_read_by_one_rule_and_has_no_word_twice() {
        let mut names = Vec::new();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        used(&source, &mut names);
        let mut listed: Vec<&str> = sections()
            .map(|(name, _)| name.trim_end_matches(':'))
            .collect();
        listed.sort_unstable();
        names.sort_unstable();
        assert_eq!(names, listed);
        for name in listed {
            let words = read(name);
            let different: HashSet<_> = words.iter().collect();
            assert!(
                !words.is_empty() && different.len() == words.len(),
                "{name}"
            );
        }
    }
}
