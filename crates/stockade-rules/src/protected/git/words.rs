//! Splitting a command line as git does (alias.c): quotes and backslashes, no shell.

/// The words of a command line; `None` if a quote is open at its end.
pub fn split_command_line(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = vec![Vec::new()];
    let mut quote = None;
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b' ' | b'\t' | b'\r' | b'\n', None) => {
                while bytes
                    .next_if(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
                    .is_some()
                {}
                words.push(Vec::new());
            }
            (b'\'' | b'"', None) => quote = Some(byte),
            (byte, Some(open)) if byte == open => quote = None,
            (b'\\', None | Some(b'"')) => words.last_mut()?.push(bytes.next()?),
            _ => words.last_mut()?.push(byte),
        }
    }
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let words = split_command_line(line.as_bytes())?;
        let text = |word| String::from_utf8(word).unwrap();
        Some(words.into_iter().map(text).collect())
    }

    #[test]
    fn quotes_and_backslashes() {
        let line = r#"log  --format='%h "x"' "a\"b" c\ d"#;
        let expected = ["log", "--format=%h \"x\"", "a\"b", "c d"];
        assert_eq!(words(line).unwrap(), expected);
        assert_eq!(words("a ''").unwrap(), ["a", ""]);
        assert_eq!(words("'open"), None);
        assert_eq!(words("end\\"), None);
    }
}
