//! Git's configuration, read by the parser that also judges what may be written to it.

use std::fmt::Write as _;

use stockade_rules::protected::git::config::parse;

use super::secrets::{clean, harmless, is_secret_name};

pub(super) fn copy(text: &str) -> Option<String> {
    let mut copy = String::new();
    for setting in parse(text.as_bytes())? {
        let key = std::str::from_utf8(&setting.key).ok()?;
        let (section, subsection, variable) = parts(key)?;
        if is_secret_name(section) || is_secret_name(variable) || harmless(section).is_none() {
            continue;
        }
        let subsection = match subsection.map(clean) {
            Some(None) => continue,
            Some(Some(subsection)) if subsection.contains('\n') => continue,
            Some(Some(subsection)) => format!(" \"{}\"", escaped(&subsection)),
            None => String::new(),
        };
        let value = match &setting.value {
            None => String::new(),
            Some(value) => match std::str::from_utf8(value).ok().and_then(clean) {
                Some(value) => format!(" = \"{}\"", escaped(&value)),
                None => continue,
            },
        };
        let _ = writeln!(copy, "[{section}{subsection}]\n\t{variable}{value}");
    }
    Some(copy)
}

/// Section, subsection and variable of a key.
fn parts(key: &str) -> Option<(&str, Option<&str>, &str)> {
    let (rest, variable) = key.rsplit_once('.')?;
    Some(match rest.split_once('.') {
        Some((section, subsection)) => (section, Some(subsection), variable),
        None => (rest, None, variable),
    })
}

fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n").replace('\t', "\\t")
}
