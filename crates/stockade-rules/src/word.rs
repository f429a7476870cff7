//! Text as a word that a shell takes as it is meant.

use std::borrow::Cow;

/// Quoted where a shell, or a reader, could not tell where the word ends.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./=:,@%+".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_told_apart() {
        assert_eq!(shell_word("a-b/c.d"), "a-b/c.d");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
    }
}
