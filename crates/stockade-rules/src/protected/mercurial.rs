//! Mercurial's configuration of a repository (`.hg/hgrc`): hooks, extensions, aliases and many
//! other settings in it run programs at any `hg` command.
//!
//! What passes is what `hg clone` writes, and two settings that people make in a clone. Everything
//! else must be there already.

use std::path::Path;

use super::judge::{Effect, Refusal};

/// Settings that do no harm, besides the addresses in `paths`.
const HARMLESS: &[(&[u8], &[u8])] = &[(b"phases", b"publish"), (b"ui", b"username")];

/// Judges `new`, which takes the place of `old`. Lines of `old` that would not pass by themselves
/// may stay if all of them do, in their order: a line may be the rest of the one before.
///
/// # Errors
/// If a line is new that is neither an address nor harmless.
pub fn judge(old: &[u8], new: &[u8]) -> Result<(), Refusal> {
    let unknown: Vec<_> = unknown_lines(new).collect();
    if unknown.is_empty() || unknown_lines(old).eq(unknown.iter().copied()) {
        return Ok(());
    }
    let (section, line) = unknown[0];
    let shown = [section, b": ", &line[..line.len().min(80)]].concat();
    Err(Refusal::new(
        String::from_utf8_lossy(&shown).escape_debug().to_string(),
        Effect::RunsProgram,
        "settings of a repository can run programs at any command of hg",
    ))
}

/// The path in a `sharedpath` file, as Mercurial reads it; `None` if it is empty.
pub fn shared_path(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    (!text.is_empty()).then_some(text)
}

/// Whether the configuration in a directory that a `sharedpath` names is judged: it is where the
/// row of `.hg/hgrc` applies.
pub fn is_shared_store(directory: &Path) -> bool {
    directory.file_name().is_some_and(|name| name == ".hg")
}

/// The lines that do not pass by themselves, each with the section it is in. Mercurial ends a line
/// where Python's `bytes.splitlines` does.
fn unknown_lines(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut section: &[u8] = b"";
    let lines = text.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.filter_map(move |line| {
        if let Some(name) = header(line) {
            section = name;
            return None;
        }
        (!is_plain(section, line)).then_some((section, line))
    })
}

/// The name of a section, if a line is its header and nothing else.
fn header(line: &[u8]) -> Option<&[u8]> {
    let name = line
        .trim_ascii_end()
        .strip_prefix(b"[")?
        .strip_suffix(b"]")?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    name.iter().all(is_name).then_some(name)
}

fn is_plain(section: &[u8], line: &[u8]) -> bool {
    if line.trim_ascii().is_empty() || line.starts_with(b"#") || line.starts_with(b";") {
        return true;
    }
    // White space continues the line before (`\s` of Python has the vertical tab too), `%` begins a
    // directive, and `[hooks] = x` is a header.
    if line[0].is_ascii_whitespace() || matches!(line[0], b'\x0b' | b'%' | b'[') {
        return false;
    }
    let Some(equals) = line.iter().position(|byte| *byte == b'=') else {
        return false;
    };
    let (name, value) = (line[..equals].trim_ascii(), line[equals + 1..].trim_ascii());
    HARMLESS.contains(&(section, name)) || section == b"paths" && is_plain_address(value)
}

/// Whether an address can't be taken for an option of ssh (CVE-2017-1000116), also after it is
/// decoded.
fn is_plain_address(address: &[u8]) -> bool {
    let mut parts = address.splitn(2, |byte| *byte == b':');
    let (scheme, rest) = (parts.next().unwrap_or_default(), parts.next());
    let host = rest.and_then(|rest| rest.strip_prefix(b"//"));
    let is_ssh = scheme.to_ascii_lowercase().ends_with(b"ssh");
    let is_option = host.is_some_and(|host| host.starts_with(b"-") || host.starts_with(b"%"));
    !address.starts_with(b"-") && !(is_ssh && (is_option || address.contains(&b'|')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLONED: &str = "# example repository config (see 'hg help config' for more info)\n[paths]\n\
        default = /srv/r\n\n# my-fork         = ssh://jdoe@example.net/hg/jdoes-fork\n\n[ui]\n# username = x\n";

    fn passes(old: &str, new: &str) -> bool {
        judge(old.as_bytes(), new.as_bytes()).is_ok()
    }

    #[test]
    fn what_a_clone_writes_passes() {
        for text in [
            "",
            CLONED,
            "[paths]\ndefault = https://h.test/r\ndefault:pushurl = ssh://u@h.test/r\n",
            "[ui]\nusername = A <a@b.test>\n[phases]\npublish = False\n",
        ] {
            assert!(passes("", text), "{text}");
        }
    }

    #[test]
    fn what_runs_programs_does_not() {
        for text in [
            "[hooks]\npre-status = x\n",
            "[extensions]\nx = x.py\n",
            "[alias]\nstatus = !x\n",
            "[paths]\r[hooks]\rpre-status = x\r",
            "[paths]\n[hooks] \npre-status = x\n",
            "[paths] x]\npre-status = x\n",
            "[paths]\n[hooks] = x\npre-status = x\n",
            "[paths]\ndefault = /a\n\x0bb\n",
            "[paths]\n%include x\n",
            "[paths]\ndefault = /a\n b\n",
            "[ui]\neditor = x\n",
            "[paths]\ndefault = ssh://-oProxyCommand=x/r\n",
            "[paths]\ndefault = ssh://%2doProxyCommand=x/r\n",
            "\u{feff}[hooks]\npre-status = x\n",
            "pre-status = x\n",
        ] {
            assert!(!passes("", text), "{text}");
        }
    }

    #[test]
    fn what_was_there_may_stay_as_a_whole() {
        let old = "[hooks]\ncommit = a\n b\nupdate = c\n";
        assert!(passes(old, &format!("{old}[paths]\ndefault = /srv/r\n")));
        assert!(passes(old, "[paths]\ndefault = /srv/r\n"));
        assert!(!passes(old, "[hooks]\nupdate = c\n b\n"));
        assert!(!passes(
            old,
            "[hooks]\ncommit = a\n b\n[paths]\nupdate = c\n"
        ));
    }

    #[test]
    fn a_shared_path_is_a_line() {
        assert_eq!(shared_path(b"/srv/r/.hg\n"), Some(&b"/srv/r/.hg"[..]));
        assert_eq!(shared_path(b"../r/.hg"), Some(&b"../r/.hg"[..]));
        assert_eq!(shared_path(b"\n"), None);
    }
}
