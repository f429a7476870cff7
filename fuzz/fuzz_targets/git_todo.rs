//! Any bytes as the todo of a rebase before and after: a new line that git would execute never
//! passes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_rules::protected::git::todo;

/// As git reads a line: blanks before it are skipped, and the command is followed by white space
/// or the end. A line that begins with a carriage return is a comment.
fn is_exec(line: &[u8]) -> bool {
    let start = line.iter().position(|byte| !b" \t".contains(byte));
    let line = &line[start.unwrap_or(line.len())..];
    let rest = line.strip_prefix(b"exec").or(line.strip_prefix(b"x"));
    rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let (old, new) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    if todo::judge(b"", new).is_ok() {
        let mut lines = new.split(|byte| *byte == b'\n');
        assert!(!lines.any(is_exec));
        assert_eq!(todo::judge(old, new), Ok(()));
    }
    assert_eq!(todo::judge(new, new), Ok(()));
    if let Err(refusal) = todo::judge(old, new) {
        assert!(!refusal.to_string().contains('\u{1b}'));
    }
});
