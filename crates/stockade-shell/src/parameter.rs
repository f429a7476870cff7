//! Operations of `${name…}` and arithmetic, on constants.

use crate::ast::Parameter;
use crate::model::Word;

/// Variables whose value always begins with `/`, for `${PATH:0:1}` and the like.
const ABSOLUTE: &[&str] = &["HOME", "PATH", "PWD", "OLDPWD", "SHELL", "TMPDIR"];

/// The value of a parameter with its operation; `None` if it can't be known.
pub(crate) fn apply(
    parameter: &Parameter,
    fields: Option<Vec<Word>>,
    operation: Option<&(&str, Word)>,
) -> Option<Vec<Word>> {
    if parameter.length {
        let fields = fields?;
        let length = match (parameter.index.as_deref(), fields.first()) {
            (Some("@" | "*"), _) => fields.len(),
            (_, first) => {
                first.map_or(Some(0), |word| word.literal().map(|t| t.chars().count()))?
            }
        };
        return Some(vec![plain(length.to_string())]);
    }
    let Some((operator, operand)) = operation else {
        return fields;
    };
    let empty = |fields: &[Word]| fields.iter().all(|word| word.text.is_empty());
    match *operator {
        ":-" | ":=" => Some(
            fields
                .filter(|f| !empty(f))
                .unwrap_or_else(|| vec![operand.clone()]),
        ),
        "-" | "=" => Some(fields.unwrap_or_else(|| vec![operand.clone()])),
        ":+" | "+" => Some(vec![operand.clone()]),
        ":?" | "?" => fields,
        ":" if fields.is_none() && ABSOLUTE.contains(&parameter.name.as_str()) => {
            (operand.literal()?.replace(' ', "") == "0:1").then(|| vec![plain("/".to_owned())])
        }
        _ => fields?
            .iter()
            .map(|word| {
                let mut edited = edit(word.literal()?, operator, operand.constant()?)?;
                let picks = *operator == ":" && edited.text != word.text;
                let hidden = picks || crate::fold::is_hidden(&word.text, &edited.text);
                edited.spelling.computed = hidden || word.spelling.computed;
                Some(edited)
            })
            .collect(),
    }
}

fn plain(text: String) -> Word {
    Word {
        text,
        ..Word::default()
    }
}

fn edit(text: &str, operator: &str, operand: &str) -> Option<Word> {
    let out = match operator {
        ":" => substring(text, operand)?,
        "@" => match operand {
            "E" => crate::escape::ansi(text),
            "U" => text.to_uppercase(),
            "L" => text.to_lowercase(),
            _ => return None,
        },
        "^^" => text.to_uppercase(),
        ",," => text.to_lowercase(),
        "^" | "," => {
            let mut chars = text.chars();
            let first = chars.next()?;
            let first: String = if operator == "^" {
                first.to_uppercase().collect()
            } else {
                first.to_lowercase().collect()
            };
            first + chars.as_str()
        }
        "~" | "~~" => {
            let some = if operator == "~" { 1 } else { usize::MAX };
            let swap = |(at, c): (usize, char)| match c {
                c if at >= some => c,
                c if c.is_ascii_lowercase() => c.to_ascii_uppercase(),
                c => c.to_ascii_lowercase(),
            };
            text.chars().enumerate().map(swap).collect()
        }
        "#" | "##" => strip_front(text, operand, operator == "##")?,
        "%" | "%%" => {
            let reversed = |s: &str| s.chars().rev().collect::<String>();
            reversed(&strip_front(
                &reversed(text),
                &reversed(operand),
                operator == "%%",
            )?)
        }
        "/" | "//" => {
            let (from, to) = operand.split_once('/').unwrap_or((operand, ""));
            if from.is_empty() || from.contains(['*', '?', '[']) {
                return None;
            }
            if operator == "//" {
                text.replace(from, to)
            } else {
                text.replacen(from, to, 1)
            }
        }
        _ => return None,
    };
    Some(plain(out))
}

/// `${x:offset:length}`; negative numbers count from the end.
fn substring(text: &str, operand: &str) -> Option<String> {
    let (offset, length) = operand
        .split_once(':')
        .map_or((operand, None), |(o, l)| (o, Some(l)));
    let count = i64::try_from(text.chars().count()).ok()?;
    let offset = arithmetic(offset)?;
    let start = if offset < 0 { count + offset } else { offset };
    let end = match length.map(arithmetic) {
        None => count,
        Some(length) => {
            let length = length?;
            if length < 0 {
                count + length
            } else {
                start + length
            }
        }
    };
    let start = usize::try_from(start).ok()?;
    let end = usize::try_from(end).ok()?;
    Some(
        text.chars()
            .skip(start)
            .take(end.saturating_sub(start))
            .collect(),
    )
}

/// Longer texts are not compared with patterns.
const LONGEST_MATCHED: usize = 1 << 12;

/// Removes the shortest or the longest prefix that fits a pattern; `None` if the pattern has
/// brackets or the text is too long.
fn strip_front(text: &str, pattern: &str, longest: bool) -> Option<String> {
    if !pattern.contains(['*', '?', '[']) {
        return Some(text.strip_prefix(pattern).unwrap_or(text).to_owned());
    }
    if pattern.contains('[') || text.len() > LONGEST_MATCHED {
        return None;
    }
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let (pattern, bytes) = (pattern.as_bytes(), text.as_bytes());
    let mut fitting = ends.filter(|end| fits(pattern, &bytes[..*end], None));
    let end = if longest {
        fitting.next_back()
    } else {
        fitting.next()
    };
    Some(text[end.unwrap_or(0)..].to_owned())
}

/// Whether a text fits a pattern of `*` and `?`, neither of which stands for `barrier`.
pub(crate) fn fits(pattern: &[u8], text: &[u8], barrier: Option<u8>) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        let open = Some(text[from]) != barrier;
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(b'?') if open => (at, from) = (at + 1, from + 1),
            Some(own) if *own == text[from] => (at, from) = (at + 1, from + 1),
            _ => match star {
                Some((star_at, taken)) if Some(text[taken]) != barrier => {
                    star = Some((star_at, taken + 1));
                    (at, from) = (star_at + 1, taken + 1);
                }
                _ => return false,
            },
        }
    }
    pattern[at.min(pattern.len())..].iter().all(|b| *b == b'*')
}

/// Integer arithmetic on constants: `+ - * / % ^ & | << >>`, parentheses, numbers in any base.
pub(crate) fn arithmetic(expression: &str) -> Option<i64> {
    if expression.len() > 256 {
        return None;
    }
    let mut parser = Sum {
        bytes: expression.as_bytes(),
        pos: 0,
        depth: 0,
    };
    let value = parser.bits()?;
    parser.skip();
    (parser.pos == parser.bytes.len()).then_some(value)
}

struct Sum<'a> {
    bytes: &'a [u8],
    pos: usize,
    depth: usize,
}

impl Sum<'_> {
    fn skip(&mut self) -> Option<u8> {
        while self
            .bytes
            .get(self.pos)
            .is_some_and(u8::is_ascii_whitespace)
        {
            self.pos += 1;
        }
        self.bytes.get(self.pos).copied()
    }

    /// The operators on bits, which bind less than sums; their own order is left to parentheses.
    fn bits(&mut self) -> Option<i64> {
        let mut value = self.sum()?;
        while let Some(op @ (b'^' | b'&' | b'|' | b'<' | b'>')) = self.skip() {
            self.pos += 1;
            if matches!(op, b'<' | b'>') {
                (self.bytes.get(self.pos) == Some(&op)).then(|| self.pos += 1)?;
            }
            let other = self.sum()?;
            value = match op {
                b'^' => value ^ other,
                b'&' => value & other,
                b'|' => value | other,
                b'<' => value.checked_shl(u32::try_from(other).ok()?)?,
                _ => value.checked_shr(u32::try_from(other).ok()?)?,
            };
        }
        Some(value)
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        while let Some(op @ (b'+' | b'-')) = self.skip() {
            self.pos += 1;
            let other = self.product()?;
            value = if op == b'+' {
                value.checked_add(other)?
            } else {
                value.checked_sub(other)?
            };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.atom()?;
        while let Some(op @ (b'*' | b'/' | b'%')) = self.skip() {
            self.pos += 1;
            let other = self.atom()?;
            value = match op {
                b'*' => value.checked_mul(other)?,
                b'/' => value.checked_div(other)?,
                _ => value.checked_rem(other)?,
            };
        }
        Some(value)
    }

    fn atom(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > 64 {
            return None;
        }
        let value = match self.skip()? {
            b'-' => {
                self.pos += 1;
                self.atom()?.checked_neg()
            }
            b'+' => {
                self.pos += 1;
                self.atom()
            }
            b'(' => {
                self.pos += 1;
                let value = self.bits()?;
                (self.skip() == Some(b')')).then(|| self.pos += 1)?;
                Some(value)
            }
            b if b.is_ascii_digit() => {
                let start = self.pos;
                while self
                    .bytes
                    .get(self.pos)
                    .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'#')
                {
                    self.pos += 1;
                }
                let text = std::str::from_utf8(&self.bytes[start..self.pos]).ok()?;
                if let Some((base, digits)) = text.split_once('#') {
                    let base = base.parse().ok().filter(|base| (2..=36).contains(base))?;
                    i64::from_str_radix(digits, base).ok()
                } else if let Some(hex) = text.strip_prefix("0x") {
                    i64::from_str_radix(hex, 16).ok()
                } else if text.len() > 1 && text.starts_with('0') {
                    i64::from_str_radix(text, 8).ok()
                } else {
                    text.parse().ok()
                }
            }
            _ => None,
        };
        self.depth -= 1;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_on_constants() {
        assert_eq!(arithmetic("1 + 2*(3-1) - 0x10 % 7 + 010"), Some(11));
        assert_eq!(arithmetic("x+1"), None);
        assert_eq!(arithmetic("1/0"), None);
        assert_eq!(arithmetic(&"(".repeat(300)), None);
    }

    #[test]
    fn edits() {
        let edited = |text, op, operand| edit(text, op, operand).map(|word| word.text);
        assert_eq!(edited("xrmx", ":", "1:2").as_deref(), Some("rm"));
        assert_eq!(edited("abc", ":", " -1").as_deref(), Some("c"));
        assert_eq!(edited("rXm", "/", "X").as_deref(), Some("rm"));
        assert_eq!(edited("/a/b.c", "##", "*/").as_deref(), Some("b.c"));
        assert_eq!(edited("b.c", "%", ".c").as_deref(), Some("b"));
        assert_eq!(edited("RM", ",,", "").as_deref(), Some("rm"));
        assert_eq!(edited("abc", "#", "a?").as_deref(), Some("c"));
        assert_eq!(edited(" \t\n", "%", "??").as_deref(), Some(" "));
        assert_eq!(edited("a.b.c", "##", "*.").as_deref(), Some("c"));
        assert_eq!(edited("abc", "#", "[a]"), None);
    }
}
