//! The todo of a rebase: one command a line, and `exec` is one of them.

use crate::protected::judge::{Effect, Refusal};

/// Commands that run no program (git-rebase(1), "Interactive mode"), with their short forms.
const COMMANDS: &[&str] = &[
    "b",
    "break",
    "d",
    "drop",
    "e",
    "edit",
    "f",
    "fixup",
    "l",
    "label",
    "m",
    "merge",
    "noop",
    "p",
    "pick",
    "r",
    "reset",
    "revert",
    "reword",
    "s",
    "squash",
    "t",
    "u",
    "update-ref",
];

/// Judges the lines of `new` that `old` does not have.
///
/// Lines that begin with a sign are comments, whatever sign is configured for them, or an error
/// that stops git: no command begins so.
///
/// # Errors
/// If a new line runs a program, or is a command that is not known.
pub fn judge(old: &[u8], new: &[u8]) -> Result<(), Refusal> {
    let known: std::collections::BTreeSet<&[u8]> = lines(old).collect();
    match lines(new).find(|line| !known.contains(line) && !is_plain(line)) {
        Some(line) => {
            let shown = String::from_utf8_lossy(&line[..line.len().min(80)]);
            Err(Refusal::new(
                shown.escape_debug().to_string(),
                Effect::RunsProgram,
                "git runs it when the rebase continues",
            ))
        }
        None => Ok(()),
    }
}

/// The lines without white space before them, as git reads them.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let start = line.iter().position(|byte| !blank(byte));
        &line[start.unwrap_or(line.len())..]
    })
}

fn is_plain(line: &[u8]) -> bool {
    let is_command = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let end = line.iter().position(|byte| !is_command(byte));
    let word = &line[..end.unwrap_or(line.len())];
    word.is_empty() || COMMANDS.iter().any(|known| known.as_bytes() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(old: &str, new: &str) -> bool {
        judge(old.as_bytes(), new.as_bytes()).is_ok()
    }

    #[test]
    fn ordinary_todos_pass() {
        assert!(passes(
            "",
            "pick abc one\np abc\n\n# exec x\n; x y\nfixup -C abc\n"
        ));
        assert!(passes(
            "",
            "label onto\nreset [new root]\nmerge -C a b # x\nbreak\nnoop\n"
        ));
        assert!(passes("", "update-ref refs/heads/x\nt [new root]\n"));
    }

    #[test]
    fn commands_do_not() {
        for line in [
            "exec x",
            "x y",
            " \texec x",
            "x\ty",
            "x",
            "exec",
            "new-command a",
        ] {
            assert!(!passes("", &format!("pick abc\n{line}\n")), "{line}");
            assert!(!passes("", &format!("pick abc\r\n{line}")), "{line}");
        }
    }

    #[test]
    fn a_line_that_was_there_may_stay() {
        assert!(passes("pick a\nexec make\n", "exec make\npick b\n"));
        assert!(!passes("exec make\n", "exec make x\n"));
    }
}
