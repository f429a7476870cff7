//! Which values of a setting are harmless.

use super::config::{ConfigContext, KeyParts};
use super::keys::Value;
use super::words::split_command_line;

/// Whether a setting with this value does no harm. A variable without a value means true.
pub(super) fn is_harmless(
    rule: Value,
    parts: KeyParts<'_>,
    value: Option<&[u8]>,
    context: &ConfigContext<'_>,
) -> bool {
    let text = value.unwrap_or(b"true");
    match rule {
        Value::Address => is_plain_address(text, context),
        Value::Addresses => text
            .split(u8::is_ascii_whitespace)
            .all(|address| is_plain_address(address, context)),
        Value::Alias => {
            parts.subsection.is_none() && value.is_some_and(|text| is_plain_alias(text, context))
        }
        Value::Boolean => is_true(text) || is_false(text),
        Value::InstructionFormat => is_one_line_format(text),
        Value::MergeOptions => are_plain_merge_options(text),
        Value::Never => false,
        Value::OneOf(values) => values
            .iter()
            .any(|known| known.as_bytes().eq_ignore_ascii_case(text)),
        Value::PlainName => is_plain_name(text),
        Value::SharedMode => !lets_everybody_write(text),
        Value::SubsectionAddress => parts
            .subsection
            .is_some_and(|address| is_plain_address(address, context)),
        Value::True => is_true(text),
        Value::VimLayout => text
            .iter()
            .all(|byte| byte.is_ascii_uppercase() || b"@+,/() ".contains(byte)),
        Value::Worktree => (context.worktree)(text),
    }
}

fn is_true(text: &[u8]) -> bool {
    is_word(text, &["true", "yes", "on", "1"])
}

fn is_false(text: &[u8]) -> bool {
    is_word(text, &["false", "no", "off", "0", ""])
}

fn is_word(text: &[u8], words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| word.as_bytes().eq_ignore_ascii_case(text))
}

/// Transports that are part of git. `ftp` and `http` are helpers, but git's own.
const TRANSPORTS: &[&str] = &[
    "file", "ftp", "ftps", "git", "git+ssh", "http", "https", "ssh", "ssh+git",
];

/// An address as git's transport.c tells them apart: `HELPER::…` and `SCHEME://…` of an unknown
/// scheme run `git-remote-HELPER`.
fn is_plain_address(address: &[u8], context: &ConfigContext<'_>) -> bool {
    // An empty address clears the list. A leading dash would be taken for an option.
    if address.is_empty() {
        return true;
    }
    if address.starts_with(b"-") {
        return false;
    }
    let scheme_len = scheme_len(address);
    let (scheme, rest) = address.split_at(scheme_len);
    if rest.starts_with(b"::") {
        return false;
    }
    if let Some(rest) = rest.strip_prefix(b"://")
        && scheme_len > 0
    {
        if scheme.eq_ignore_ascii_case(b"file") {
            return percent_decoded(rest).is_some_and(|path| (context.local_repository)(&path));
        }
        let known = |known: &&str| known.as_bytes().eq_ignore_ascii_case(scheme);
        return TRANSPORTS.iter().any(known) && !rest.starts_with(b"-");
    }
    // `host:path` unless a slash comes first.
    let is_remote = address
        .iter()
        .find(|byte| matches!(byte, b':' | b'/'))
        .is_some_and(|byte| *byte == b':');
    is_remote || (context.local_repository)(address)
}

/// How many bytes could be a scheme (git's `is_urlschemechar`).
fn scheme_len(address: &[u8]) -> usize {
    let is_scheme = |(at, byte): (usize, &u8)| {
        byte.is_ascii_alphanumeric() || at > 0 && matches!(byte, b'+' | b'-' | b'.')
    };
    let bytes = address.iter().enumerate();
    bytes.take_while(|item| is_scheme(*item)).count()
}

/// Git decodes `%41` in an address with a scheme; `None` for what can't be a path.
fn percent_decoded(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' {
            let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        });
    }
    (!decoded.contains(&0)).then_some(decoded)
}

fn is_plain_name(name: &[u8]) -> bool {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+".contains(byte);
    !name.starts_with(b".") && !name.starts_with(b"-") && name.iter().all(fits)
}

/// Commands that run nothing unless the configuration says so, with any option but these.
const LOCAL_COMMANDS: &[&str] = &[
    "add",
    "blame",
    "branch",
    "checkout",
    "cherry-pick",
    "clean",
    "commit",
    "describe",
    "diff",
    "log",
    "ls-files",
    "reflog",
    "reset",
    "restore",
    "rev-parse",
    "rm",
    "shortlog",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
];

/// Commands with options that run programs: only these options pass.
const OTHER_COMMANDS: &[&str] = &[
    "fetch", "merge", "pull", "push", "rebase", "remote", "worktree",
];
const PLAIN_OPTIONS: &[&str] = &[
    "--abort",
    "--all",
    "--amend",
    "--autosquash",
    "--autostash",
    "--continue",
    "--ff-only",
    "--follow-tags",
    "--force-with-lease",
    "--interactive",
    "--no-ff",
    "--prune",
    "--quiet",
    "--rebase",
    "--set-upstream",
    "--skip",
    "--squash",
    "--tags",
    "--verbose",
    "-a",
    "-i",
    "-p",
    "-q",
    "-u",
    "-v",
    "-vv",
];

fn is_plain_alias(text: &[u8], context: &ConfigContext<'_>) -> bool {
    let Some(words) = split_command_line(text) else {
        return false;
    };
    let Some((command, arguments)) = words.split_first() else {
        return false;
    };
    let is_one_of = |list: &[&str]| list.iter().any(|word| word.as_bytes() == command);
    if is_one_of(LOCAL_COMMANDS) {
        // `--output` writes a file, `--no-verify` and `commit -n` skip hooks; git completes
        // options that are cut short.
        arguments.iter().all(|word| {
            !word.starts_with(b"--ou") && !word.starts_with(b"--no-ve") && word != b"-n"
        })
    } else if is_one_of(OTHER_COMMANDS) {
        arguments.iter().all(|word| {
            PLAIN_OPTIONS.iter().any(|known| known.as_bytes() == word)
                || !word.starts_with(b"-") && is_plain_address(word, context)
        })
    } else {
        false
    }
}

fn are_plain_merge_options(text: &[u8]) -> bool {
    const OPTIONS: &[&str] = &[
        "",
        "--autostash",
        "--commit",
        "--edit",
        "--ff",
        "--ff-only",
        "--gpg-sign",
        "--log",
        "--no-autostash",
        "--no-commit",
        "--no-edit",
        "--no-ff",
        "--no-log",
        "--no-signoff",
        "--no-squash",
        "--no-stat",
        "--signoff",
        "--squash",
        "--stat",
        "--verify-signatures",
        "-S",
        "-e",
        "-n",
        "-q",
        "-v",
    ];
    split_command_line(text).is_some_and(|words| {
        words
            .iter()
            .all(|word| OPTIONS.iter().any(|known| known.as_bytes() == word))
    })
}

/// Whether a format can't print a line end: each line of a rebase's todo is a command.
fn is_one_line_format(format: &[u8]) -> bool {
    // Without `%` it is the name of another format, which may have many lines.
    if !format.contains(&b'%') || format.contains(&b'\n') || format.contains(&b'\r') {
        return false;
    }
    let format = format
        .strip_prefix(b"format:")
        .or(format.strip_prefix(b"tformat:"))
        .unwrap_or(format);
    let mut pieces = format.split(|byte| *byte == b'%');
    pieces.next();
    pieces.all(|piece| {
        let one = piece
            .first()
            .is_some_and(|byte| b"hHtTpPsfdD".contains(byte));
        let person =
            matches!(piece, [b'a' | b'c', second, ..] if b"nNeElLdDrtiIsh".contains(second));
        // Colours: `%Cred`, `%C(auto)`.
        one || person || piece.starts_with(b"C")
    })
}

/// Git's values: booleans, `group`, `all` and their like, or an octal mode.
fn lets_everybody_write(text: &[u8]) -> bool {
    let is_octal = text.len() > 1 && text.iter().all(|byte| (b'0'..=b'7').contains(byte));
    let last = text.last().map_or(0, |byte| byte.wrapping_sub(b'0'));
    is_octal && last & 2 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(address: &str) -> bool {
        is_plain_address(address.as_bytes(), &ConfigContext::new())
    }

    #[test]
    fn addresses() {
        for address in [
            "",
            ".",
            "origin",
            "https://h.test/r.git",
            "HTTPS://h.test/r.git",
            "git@h.test:r.git",
            "h.test:a::b",
            "ssh://git@h.test:22/r",
            "git+ssh://h.test/r",
            "../sub",
            "/srv/a::b",
            "file:///srv/r",
        ] {
            assert!(plain(address), "{address}");
        }
        for address in [
            "ext::sh -c x",
            "::x",
            "foo::https://h.test",
            "foo://h.test",
            "-x",
            "--upload-pack=x",
            "ssh://-oProxyCommand=x/r",
            "git-remote.x+y::z",
        ] {
            assert!(!plain(address), "{address}");
        }
    }

    #[test]
    fn local_paths_are_for_the_context() {
        let local = |path: &[u8]| path != b"/srv/bad r";
        let context = ConfigContext::new().with_local_repository(&local);
        let plain = |address: &str| is_plain_address(address.as_bytes(), &context);
        assert!(plain("/srv/good"));
        assert!(!plain("/srv/bad r"));
        assert!(!plain("file:///srv/bad%20r"));
        assert!(!plain("file:///srv/%00"));
        assert!(plain("h.test:/srv/bad r"));
    }

    #[test]
    fn aliases() {
        let plain = |text: &str| is_plain_alias(text.as_bytes(), &ConfigContext::new());
        for text in [
            "status -sb",
            "checkout",
            "log --graph --pretty=format:'%h %s'",
            "commit --amend",
            "push --force-with-lease",
            "fetch --all --prune",
            "pull --rebase origin",
        ] {
            assert!(plain(text), "{text}");
        }
        for text in [
            "!sh",
            "-c core.pager=x log",
            "log --output=x",
            "log '--outp=x'",
            "rebase --exec x",
            "fetch --upload-pack=x",
            "fetch ext::x",
            "grep -Ox y",
            "submodule foreach x",
            "'log",
            "",
            " !x",
        ] {
            assert!(!plain(text), "{text}");
        }
    }

    #[test]
    fn formats_of_one_line() {
        for format in ["%s", "# %s", "%h %an %C(red)%s", "format:%s (%ad)"] {
            assert!(is_one_line_format(format.as_bytes()), "{format}");
        }
        for format in [
            "%s%n",
            "%B",
            "%b",
            "%x0a",
            "%w(1)%s",
            "medium",
            "%s\nexec x",
            "%",
        ] {
            assert!(!is_one_line_format(format.as_bytes()), "{format}");
        }
    }

    #[test]
    fn modes_of_shared_repositories() {
        for mode in ["group", "true", "1", "2", "all", "0660", "0664", "umask"] {
            assert!(!lets_everybody_write(mode.as_bytes()), "{mode}");
        }
        for mode in ["0666", "0777", "666"] {
            assert!(lets_everybody_write(mode.as_bytes()), "{mode}");
        }
    }
}
