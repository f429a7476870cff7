//! Source that ends in the middle of something, as excerpts do: read as if it were finished.

use super::api::Dialect;

/// Longest text that is completed.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Brackets that may be open at the end.
const DEEPEST: usize = 16;

/// The text with the brackets closed that are open at its end; `None` if it is not that which is
/// missing. Whether the result is valid the parser says.
pub(crate) fn completed(dialect: Dialect, text: &str) -> Option<String> {
    if text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let comment = match dialect {
        Dialect::Python | Dialect::Shell => "#",
        Dialect::Go | Dialect::JavaScript => "//",
    };
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let rest = text.as_bytes().get(at..)?;
        at += 1;
        match byte {
            b'(' => open.push(')'),
            b'[' => open.push(']'),
            b'{' => open.push('}'),
            b')' | b']' | b'}' if open.pop() != Some(char::from(*byte)) => return None,
            b'"' | b'\'' | b'`' => at += string(dialect, rest)? - 1,
            _ if rest.starts_with(comment.as_bytes()) => {
                at += rest
                    .iter()
                    .position(|byte| *byte == b'\n')
                    .unwrap_or(rest.len() - 1);
            }
            _ => {}
        }
    }
    if open.is_empty() || open.len() > DEEPEST {
        return None;
    }
    let closing = open.iter().rev();
    Some(text.chars().chain(['\n']).chain(closing.copied()).collect())
}

/// How long the string is that a text begins with; `None` if it does not end.
fn string(dialect: Dialect, text: &[u8]) -> Option<usize> {
    let quote = *text.first()?;
    let triple = dialect == Dialect::Python && text.get(..3) == Some(&[quote; 3]);
    let width = if triple { 3 } else { 1 };
    let mut at = width;
    loop {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        if rest
            .iter()
            .take(width)
            .filter(|byte| **byte == quote)
            .count()
            == width
        {
            return Some(at + width);
        }
        if rest[0] == b'\n' && !triple && quote != b'`' {
            return None;
        }
        let raw = quote == b'`' && dialect == Dialect::Go;
        at += if rest[0] == b'\\' && !raw { 2 } else { 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_closed() {
        let python = |text: &str| completed(Dialect::Python, text);
        assert_eq!(
            python("f(a, {'x': [1,").as_deref(),
            Some("f(a, {'x': [1,\n]})")
        );
        assert_eq!(
            python("f(\"\"\"(\"\"\", '\\'(' # (").as_deref(),
            Some("f(\"\"\"(\"\"\", '\\'(' # (\n)")
        );
        assert_eq!(python("f(a)"), None);
        assert_eq!(python("f(a))"), None);
        assert_eq!(python("f('a"), None);
        assert_eq!(python(&"(".repeat(1000)), None);
        let javascript = completed(Dialect::JavaScript, "f(`(`, () => { // {");
        assert_eq!(javascript.as_deref(), Some("f(`(`, () => { // {\n})"));
        assert_eq!(
            completed(Dialect::Go, "f(`\\`, é").as_deref(),
            Some("f(`\\`, é\n)")
        );
    }
}
