//! A command's options and operands.

use stockade_shell::Word;

/// Arguments that are not options. After `--` everything is an operand.
pub(super) fn operands(args: &[Word]) -> impl Iterator<Item = &Word> {
    let mut only = false;
    args.iter().filter(move |word| {
        if only {
            return true;
        }
        if word.text == "--" {
            only = true;
            return false;
        }
        !word.text.starts_with('-') || word.text == "-"
    })
}

/// Whether an option is given: a letter in a cluster, or a long name (with or without `=value`).
pub(super) fn has(args: &[Word], short: &str, long: &[&str]) -> bool {
    args.iter()
        .take_while(|word| word.text != "--")
        .any(|word| {
            let text = word.text.as_str();
            if let Some(name) = text.strip_prefix("--") {
                let name = name.split('=').next().unwrap_or(name);
                return !name.is_empty() && long.contains(&name);
            }
            text.strip_prefix('-').is_some_and(|cluster| {
                (!short.is_empty()
                    && cluster.chars().all(|c| c.is_ascii_alphanumeric())
                    && cluster.contains(|c| short.contains(c)))
                    || long.contains(&cluster)
            })
        })
}

/// The value of an option: the next word, what follows `=`, or the rest of a short one.
pub(super) fn value_of<'w>(args: &'w [Word], short: char, long: &[&str]) -> Option<&'w str> {
    for (at, word) in args.iter().enumerate() {
        let text = word.text.as_str();
        if let Some(name) = text.strip_prefix("--") {
            if let Some((name, value)) = name.split_once('=') {
                if long.contains(&name) {
                    return Some(value);
                }
            } else if long.contains(&name) {
                return args.get(at + 1).map(|word| word.text.as_str());
            }
        } else if let Some(cluster) = text.strip_prefix('-')
            && let Some(found) = cluster.find(short)
        {
            let rest = &cluster[found + short.len_utf8()..];
            return if rest.is_empty() {
                args.get(at + 1).map(|word| word.text.as_str())
            } else {
                Some(rest)
            };
        }
    }
    None
}
