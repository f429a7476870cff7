//! The register of a text: whether it is laid out as a prompt that a person wrote for a model.
//!
//! Prompts that people share give a role and a task, in lists and with gaps to fill in. Orders that
//! somebody planted in data do without: they have to work as they stand.

/// Lines of a list or headings from which a text counts as laid out.
const MIN_LIST_LINES: usize = 3;

/// Gaps to fill in, and phrases that announce what the writer will fill in later.
const TEMPLATE_MARKS: [&str; 16] = [
    "${",
    "{{",
    "[insert",
    "[topic",
    "[your",
    "[enter",
    "my first request",
    "my first sentence",
    "my first question",
    "my first command",
    "my first suggestion",
    "my first task",
    "i will provide",
    "i will give",
    "i will type",
    "i will tell",
];

/// How prompts of a collection begin.
const OPENINGS: [&str; 4] = [
    "act as",
    "i want you to act",
    "i need you to act",
    "you will act",
];
/// Shorter texts have no room for the task that makes an opening a prompt.
const MIN_OPENING_BYTES: usize = 200;

/// True for a text that begins or is laid out as a prompt.
pub(super) fn is_prompt(text: &[u8]) -> bool {
    if text.len() >= MIN_OPENING_BYTES && begins_as_prompt(text) {
        return true;
    }
    let lists = text
        .split(|byte| *byte == b'\n')
        .filter(|line| is_list_line(line))
        .take(MIN_LIST_LINES)
        .count();
    if lists == MIN_LIST_LINES {
        return true;
    }
    let lower = text.to_ascii_lowercase();
    TEMPLATE_MARKS
        .iter()
        .any(|mark| memchr::memmem::find(&lower, mark.as_bytes()).is_some())
}

fn begins_as_prompt(text: &[u8]) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_whitespace() || byte.is_ascii_punctuation();
    let start = text.iter().take_while(|byte| is_sign(byte)).count();
    let opening = text.get(start..).unwrap_or_default();
    OPENINGS.iter().any(|words| {
        opening
            .get(..words.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(words.as_bytes()))
    })
}

/// True for `- item`, `* item`, `1. item`, `2) item`, `# heading`.
fn is_list_line(line: &[u8]) -> bool {
    match line.trim_ascii_start() {
        [b'-' | b'*' | b'#', rest @ ..] => rest.iter().any(u8::is_ascii_alphanumeric),
        [b'0'..=b'9', b'.' | b')', b' ', ..]
        | [b'0'..=b'9', b'0'..=b'9', b'.' | b')', b' ', ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_gaps_make_a_prompt() {
        assert!(is_prompt(
            b"Act as a poet.\n- short\n- in rhymes\n- about ships\n"
        ));
        assert!(is_prompt(b"You are a coach. My first request is a plan."));
        assert!(is_prompt(b"Act as an editor of ${Language}."));
        let task = " You check what I wrote and mark what can be said better.".repeat(4);
        assert!(is_prompt(format!("**Act as an editor.**{task}").as_bytes()));
        assert!(!is_prompt(
            format!("The page says: act as an editor.{task}").as_bytes()
        ));
        assert!(!is_prompt(
            b"You are a character in a play. Say what you think.\n- now\n"
        ));
    }
}
