//! Text that a client chose, on its way into logs, reports and answers.

/// As many characters of a client's text are shown.
const MAX_SHOWN: usize = 120;
/// As many characters a field of a record has at most.
const MAX_FIELD: usize = 512;

/// A client's text as it may be printed: nothing in it drives a terminal, and its length is bounded.
pub(crate) fn shown(text: &str) -> String {
    let mut characters = text.chars();
    let mut shown: String = characters
        .by_ref()
        .take(MAX_SHOWN)
        .map(|character| match character {
            '\'' | '"' => character.to_string(),
            _ if is_invisible(character) => character.escape_unicode().to_string(),
            _ => character.escape_debug().to_string(),
        })
        .collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Cuts a field of a record, so that no client decides how much memory records take.
pub(crate) fn bound(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_FIELD) {
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
}

/// Characters that show nothing themselves, but change how others are shown (Unicode TR 36).
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_drives_no_terminal() {
        assert_eq!(shown("a.test"), "a.test");
        assert_eq!(shown("a\u{1b}[2J\n\u{202e}b"), "a\\u{1b}[2J\\n\\u{202e}b");
        assert!(shown(&"x".repeat(60_000)).chars().count() == MAX_SHOWN + 1);
        let mut field = "ü".repeat(60_000);
        bound(&mut field);
        assert_eq!(field.chars().count(), MAX_FIELD + 1);
        assert!(field.capacity() < 4 * MAX_FIELD);
    }
}
