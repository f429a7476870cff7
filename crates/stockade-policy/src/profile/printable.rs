//! Text from files and names, made harmless for a terminal and for the line it is printed in.

/// What is printed for a character: itself, unless it steers the terminal.
///
/// Escape sequences, line ends and characters that turn the direction of text (CVE-2021-42574)
/// could make a message say what it does not.
pub(super) fn printable(character: char) -> char {
    match character {
        '\t' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        _ if character.is_control() => char::REPLACEMENT_CHARACTER,
        _ => character,
    }
}

/// The same for a whole text, which stays on its line.
pub(super) fn printable_text(text: &(impl ToString + ?Sized)) -> String {
    text.to_string().chars().map(printable).collect()
}
