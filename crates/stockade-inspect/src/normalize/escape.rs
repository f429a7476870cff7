//! Terminal control sequences (ECMA-48, xterm's control sequences).

/// What a control sequence does to the text around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Writes the clipboard of the person at the terminal (OSC 52).
    Clipboard,
    /// Makes the following text invisible (SGR 8).
    Conceal,
    /// Colours, cursor movement, titles, links.
    Plain,
}

/// The longest sequence looked at. An unfinished longer one is treated as text.
const MAX_SEQUENCE_BYTES: usize = 8192;

/// Reads the sequence that `text` starts with (its first byte is ESC): length and effect.
pub(crate) fn parse(text: &[u8]) -> Option<(usize, Effect)> {
    match text.get(1)? {
        b'[' => {
            let body = text.get(2..)?;
            let length = body
                .iter()
                .take(64)
                .position(|byte| (0x40..=0x7e).contains(byte))?;
            let parameters = body.get(..length)?;
            let conceal = body.get(length) == Some(&b'm')
                && parameters
                    .split(|byte| *byte == b';')
                    .any(|number| number == b"8")
                && !parameters.starts_with(b"38;")
                && !parameters.starts_with(b"48;");
            Some((
                length + 3,
                if conceal {
                    Effect::Conceal
                } else {
                    Effect::Plain
                },
            ))
        }
        b']' | b'P' | b'^' | b'_' | b'X' => {
            let body = text.get(2..)?;
            let effect = if body.starts_with(b"52;") {
                Effect::Clipboard
            } else {
                Effect::Plain
            };
            let window = body.get(..body.len().min(MAX_SEQUENCE_BYTES))?;
            let end = window
                .iter()
                .position(|byte| matches!(byte, 0x07 | 0x1b | b'\n'))?;
            match window.get(end) {
                Some(0x07) => Some((end + 3, effect)),
                Some(0x1b) if body.get(end + 1) == Some(&b'\\') => Some((end + 4, effect)),
                _ => None,
            }
        }
        b'(' | b')' | b'#' | b' ' => Some((3.min(text.len()), Effect::Plain)),
        0x30..=0x7e => Some((2, Effect::Plain)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_sequences() {
        assert_eq!(parse(b"\x1b[31mred"), Some((5, Effect::Plain)));
        assert_eq!(parse(b"\x1b[8mhidden"), Some((4, Effect::Conceal)));
        assert_eq!(parse(b"\x1b[38;5;8m"), Some((9, Effect::Plain)));
        assert_eq!(parse(b"\x1b]0;title\x07x"), Some((10, Effect::Plain)));
        assert_eq!(
            parse(b"\x1b]52;c;aGk=\x1b\\x"),
            Some((13, Effect::Clipboard))
        );
    }

    #[test]
    fn unfinished_sequences_are_text() {
        for text in [
            &b"\x1b"[..],
            b"\x1b[",
            b"\x1b[12",
            b"\x1b]0;title",
            b"\x1b]0;ti\ntle\x07",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
