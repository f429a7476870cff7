//! Jujutsu's configuration of a repository (`.jj/repo/config.toml`): the pager, the editor, tools and
//! aliases in it run programs.
//!
//! Since 0.37 jj keeps it in the user's home directory (`docs/design/secure-config.md` of jj), and
//! adopts a file in the repository where it has none of its own yet.
//!
//! What passes is what `jj git clone` writes, and the two settings that people make in a clone.

use std::path::Path;

use super::judge::{Effect, Refusal};

/// Sections whose settings run nothing.
const HARMLESS: &[&[u8]] = &[b"revset-aliases", b"user"];

/// Judges `new`, which takes the place of `old`. What `old` holds may stay as a whole, with harmless
/// settings behind it: a line between others may be part of a text of several lines.
///
/// # Errors
/// If something is new that is not harmless.
pub fn judge(old: &[u8], new: &[u8]) -> Result<(), Refusal> {
    let added = match new.strip_prefix(old) {
        Some(rest) if rest.is_empty() || old.ends_with(b"\n") => rest,
        _ => new,
    };
    let Some(line) = first_unknown(added) else {
        return Ok(());
    };
    let shown = &line[..line.len().min(80)];
    Err(Refusal::new(
        String::from_utf8_lossy(shown).escape_debug().to_string(),
        Effect::RunsProgram,
        "settings of a repository can run programs at any command of jj",
    ))
}

/// Whether the configuration in a directory that a `.jj/repo` file names is judged: it is where the
/// row of `.jj/repo/config.toml` applies.
pub fn is_repository(directory: &Path) -> bool {
    let is_called = |path: &Path, name| path.file_name().is_some_and(|last| last == name);
    is_called(directory, "repo")
        && directory
            .parent()
            .is_some_and(|parent| is_called(parent, ".jj"))
}

/// The first line that is not harmless. A text begins outside every section, where nothing passes.
fn first_unknown(text: &[u8]) -> Option<&[u8]> {
    let mut is_harmless = false;
    text.split(|byte| *byte == b'\n').find(|line| {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return false;
        }
        if line.starts_with(b"[") {
            is_harmless = is_harmless_header(line);
            return !is_harmless;
        }
        !(is_harmless && is_setting(line))
    })
}

fn is_harmless_header(line: &[u8]) -> bool {
    let name = line
        .strip_prefix(b"[")
        .and_then(|rest| rest.strip_suffix(b"]"));
    name.is_some_and(|name| HARMLESS.contains(&name))
}

/// Whether a line is a key, an equals sign and a text that ends on the line.
fn is_setting(line: &[u8]) -> bool {
    let key_length = match line[0] {
        b'"' | b'\'' => quoted_length(line),
        _ => line.iter().position(|byte| !is_bare(*byte)),
    };
    let rest = key_length.map_or(&[][..], |length| &line[length..]);
    let value = rest.trim_ascii_start().strip_prefix(b"=");
    value.is_some_and(|value| {
        let value = value.trim_ascii();
        quoted_length(value) == Some(value.len())
    })
}

/// How long the text in quotes is that a line begins with. `None` if it holds a backslash, which may
/// quote the quote at its end.
fn quoted_length(line: &[u8]) -> Option<usize> {
    let quote = *line.first().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let length = line[1..].iter().position(|byte| *byte == quote)? + 2;
    (!line[..length].contains(&b'\\')).then_some(length)
}

const fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLONED: &str = "#:schema https://jj-vcs.github.io/jj/latest/config-schema.json\n\n\
        [revset-aliases]\n\"trunk()\" = \"main@origin\"\n";

    fn passes(old: &str, new: &str) -> bool {
        judge(old.as_bytes(), new.as_bytes()).is_ok()
    }

    #[test]
    fn what_a_clone_writes_passes() {
        for text in [
            "",
            "# nothing\n",
            CLONED,
            "[user]\nname = \"A\"\nemail = 'a@b.test'\n",
            "[user]\r\nname=\"A\"\r\n[revset-aliases]\r\nmine = 'author(x)'\r\n",
        ] {
            assert!(passes("", text), "{text}");
        }
    }

    #[test]
    fn what_runs_programs_does_not() {
        for text in [
            "[ui]\npager = \"x\"\n",
            "ui.pager = \"x\"\n",
            "ui = { pager = \"x\" }\n",
            "[user]\n[ui]\npager = \"x\"\n",
            "[user]\n[[--scope]]\n[--scope.ui]\npager = \"x\"\n",
            "[user]\nname = \"\"\"\n[ui]\n\"\"\"\n",
            "[user]\nname = '''\n",
            "[user]\nname = \"a\\\"\n",
            "[user]\n\"a\\\" = \"b\"\n",
            "[user]\nname = [\"a\",\n",
            "[user]\nname = { a = 1 }\n",
            "[user]\nname = \"a\" x\n",
            "[user]\nname\n",
            "[user] # x\n",
            "[ user ]\n",
            "\u{feff}[ui]\npager = \"x\"\n",
        ] {
            assert!(!passes("", text), "{text}");
        }
    }

    #[test]
    fn what_was_there_may_stay_as_a_whole() {
        let old = "[fix.tools.f]\ncommand = \"\"\"\nx\n\"\"\"\n";
        assert!(passes(old, old));
        assert!(passes(old, &format!("{old}{CLONED}")));
        assert!(passes(old, CLONED));
        assert!(!passes(old, &format!("{old}more = \"x\"\n")));
        assert!(!passes(old, &format!("{CLONED}{old}")));
        assert!(!passes(
            old,
            "[fix.tools.f]\ncommand = \"\"\"\nx\n[user]\nname = \"$(x)\"\n\"\"\"\n"
        ));
        assert!(!passes("[ui]\npager = \"x", "[ui]\npager = \"xy\"\n"));
    }

    #[test]
    fn only_the_repository_of_a_workspace_is_judged() {
        for (path, expected) in [
            ("/w/.jj/repo", true),
            ("/w/.jj", false),
            ("/w/repo", false),
            ("/w/.jj/repo/x", false),
            ("/w/.jj/repo\n", false),
        ] {
            assert_eq!(is_repository(Path::new(path)), expected, "{path}");
        }
    }
}
