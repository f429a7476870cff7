//! A command's own options, before the command that it runs.

use crate::model::Word;

/// The number of leading options, values included.
pub(crate) fn skip_options(args: &[Word], short: &str, long: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            return at + 1;
        }
        if !text.starts_with('-') || text.len() < 2 {
            break;
        }
        let takes_next = if text.starts_with("--") {
            long.contains(&text)
        } else {
            // In a cluster, the rest after an option with a value is that value.
            let value = text[1..].find(|c| short.contains(c));
            value.is_some_and(|value| value + 2 == text.len()) || long.contains(&text)
        };
        at += 1;
        if takes_next {
            at += written_once(args, at);
        }
    }
    at.min(args.len())
}

/// How many words from one on were written as one: `"$p"` in a loop stands for all its values.
fn written_once(args: &[Word], at: usize) -> usize {
    let Some(first) = args.get(at) else {
        return 1;
    };
    let same = |word: &&Word| word.span == first.span && first.span.start < first.span.end;
    args[at..].iter().take_while(same).count().max(1)
}

/// `NAME=value`.
pub(crate) fn is_assignment(word: &Word) -> bool {
    let Some((name, _)) = word.text.split_once('=') else {
        return false;
    };
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Where the command begins if long options that nobody knows take a value, which is then not the
/// command that it looks like: `sudo --whatever 10 rm -rf /`.
pub(crate) fn after_unknown_values(
    args: &[Word],
    first: usize,
    short: &str,
    long: &[&str],
) -> Option<usize> {
    let unknown = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| args.get(before));
        before.is_some_and(|word| {
            let text = word.text.as_str();
            text.len() > 2 && text.starts_with("--") && !text.contains('=') && !long.contains(&text)
        })
    };
    let mut at = first;
    while unknown(at) && at + 1 < args.len() {
        at += 1;
        at += skip_options(&args[at..], short, long);
    }
    (at > first && at < args.len()).then_some(at)
}
