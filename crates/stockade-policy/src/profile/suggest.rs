//! "Did you mean": the nearest word to a mistyped one.

/// The word that is at most a third of its length away, if there is one.
pub(super) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|word| (distance(typed, word), word))
        .filter(|(distance, word)| *distance <= (word.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Changes, insertions, removals and swaps of neighbours; keys are short ASCII words.
fn distance(typed: &str, word: &str) -> usize {
    const MAX_WORD_BYTES: usize = 64;
    let (typed, word) = (typed.as_bytes(), word.as_bytes());
    if typed.len() > MAX_WORD_BYTES {
        return usize::MAX;
    }
    let mut older = vec![0; word.len() + 1];
    let mut old: Vec<usize> = (0..=word.len()).collect();
    for (i, a) in typed.iter().enumerate() {
        let mut new = vec![i + 1];
        for (j, b) in word.iter().enumerate() {
            let differs = usize::from(!(a.eq_ignore_ascii_case(b) || is_dash(*a) && is_dash(*b)));
            let mut least = (old[j] + differs).min(old[j + 1] + 1).min(new[j] + 1);
            if i > 0 && j > 0 && *a == word[j - 1] && typed[i - 1] == *b {
                least = least.min(older[j - 1] + 1);
            }
            new.push(least);
        }
        older = std::mem::replace(&mut old, new);
    }
    old[word.len()]
}

fn is_dash(byte: u8) -> bool {
    matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_nonsense_is_not() {
        let known = ["write", "read", "deny_read", "deny"];
        for (typed, word) in [
            ("wirte", Some("write")),
            ("Write", Some("write")),
            ("deny-read", Some("deny_read")),
            ("denyread", Some("deny_read")),
            ("reed", Some("read")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed, known), word, "{typed}");
        }
        assert_eq!(nearest(&"w".repeat(100_000), known), None);
    }
}
