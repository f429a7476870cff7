//! Where commands stand in a text: in scripts, after prompts, in prose, in strings.

use std::ops::Range;

/// Longest passage read as a script.
const LONGEST: usize = 8 * 1024;

/// What else a line must hold for a name to be worth reading as a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Nothing: the name is telling.
    Nothing,
    /// An address: `@`.
    Address,
    /// Something put in at run time, or a long label: `$`, a backquote.
    Inserted,
    /// A program on the command line, or one on standard input.
    Program,
    /// A connection in awk.
    Inet,
    /// A URL.
    Url,
}

/// Names of programs and marks of connections that make a passage worth reading.
const COMMANDS: [(&str, Need); 104] = [
    ("--rsh-command", Need::Nothing),
    ("/dev/tcp/", Need::Nothing),
    ("/dev/udp/", Need::Nothing),
    ("/inet/", Need::Nothing),
    ("ab -", Need::Url),
    ("aria2c", Need::Url),
    ("awk ", Need::Inet),
    ("aws ", Need::Nothing),
    ("az ", Need::Nothing),
    ("bitsadmin", Need::Url),
    ("bore ", Need::Nothing),
    ("borg ", Need::Nothing),
    ("browse", Need::Url),
    ("bun ", Need::Program),
    ("bun publish", Need::Nothing),
    ("busybox", Need::Nothing),
    ("cancel ", Need::Nothing),
    ("cargo publish", Need::Nothing),
    ("certutil", Need::Url),
    ("chisel ", Need::Nothing),
    ("chrome", Need::Url),
    ("cloudflared", Need::Nothing),
    ("curl", Need::Nothing),
    ("deno ", Need::Program),
    ("dig ", Need::Inserted),
    ("dnscat", Need::Nothing),
    ("docker push", Need::Nothing),
    ("drill ", Need::Inserted),
    ("finger ", Need::Address),
    ("firefox", Need::Url),
    ("flit publish", Need::Nothing),
    ("frpc", Need::Nothing),
    ("ftp", Need::Nothing),
    ("gcloud ", Need::Nothing),
    ("gem push", Need::Nothing),
    ("getent ", Need::Inserted),
    ("gh ", Need::Nothing),
    ("git push", Need::Nothing),
    ("gost ", Need::Nothing),
    ("gsutil", Need::Nothing),
    ("hatch publish", Need::Nothing),
    ("helm push", Need::Nothing),
    ("host ", Need::Inserted),
    ("http ", Need::Url),
    ("httpie", Need::Url),
    ("https ", Need::Url),
    ("iodine", Need::Nothing),
    ("jrunscript", Need::Program),
    ("lftp", Need::Nothing),
    ("lp ", Need::Nothing),
    ("lua ", Need::Program),
    ("lynx ", Need::Url),
    ("mail", Need::Address),
    ("msmtp", Need::Address),
    ("mutt", Need::Address),
    ("nc ", Need::Nothing),
    ("nc.", Need::Nothing),
    ("ncat", Need::Nothing),
    ("netcat", Need::Nothing),
    ("ngrok", Need::Nothing),
    ("node ", Need::Program),
    ("npm publish", Need::Nothing),
    ("nslookup", Need::Inserted),
    ("open ", Need::Url),
    ("openssl s_", Need::Nothing),
    ("perl ", Need::Program),
    ("php ", Need::Program),
    ("ping ", Need::Inserted),
    ("pnpm publish", Need::Nothing),
    ("podman push", Need::Nothing),
    ("poetry publish", Need::Nothing),
    ("powershell", Need::Nothing),
    ("pwsh ", Need::Nothing),
    ("python", Need::Program),
    ("rclone", Need::Nothing),
    ("restic", Need::Nothing),
    ("rsync", Need::Nothing),
    ("ruby ", Need::Program),
    ("s3cmd", Need::Nothing),
    ("scp ", Need::Nothing),
    ("sftp", Need::Nothing),
    ("smbclient", Need::Nothing),
    ("socat", Need::Nothing),
    ("ssh ", Need::Nothing),
    ("sshfs", Need::Nothing),
    ("swaks", Need::Address),
    ("telnet", Need::Nothing),
    ("tftp", Need::Nothing),
    ("twine upload", Need::Nothing),
    ("uv publish", Need::Nothing),
    ("vsce publish", Need::Nothing),
    ("wget", Need::Nothing),
    ("whois ", Need::Nothing),
    ("xdg-open", Need::Url),
    ("xh ", Need::Url),
    ("yarn publish", Need::Nothing),
    ("croc send", Need::Nothing),
    ("onionshare", Need::Nothing),
    ("pastebinit", Need::Nothing),
    ("sendmail", Need::Address),
    ("wgetpaste", Need::Nothing),
    ("wormhole send", Need::Nothing),
    ("xterm -", Need::Nothing),
    ("ztcp ", Need::Nothing),
];

pub(super) const LITERALS: [&str; COMMANDS.len()] = {
    let mut literals = [""; COMMANDS.len()];
    let mut at = 0;
    while at < COMMANDS.len() {
        literals[at] = COMMANDS[at].0;
        at += 1;
    }
    literals
};

/// True if the line has what a command of this name needs to send anything.
pub(super) fn is_worth(text: &[u8], at: usize, command: usize) -> bool {
    let rest = text.get(at..(at + 400).min(text.len())).unwrap_or_default();
    let line = rest
        .get(..memchr::memchr(b'\n', rest).unwrap_or(rest.len()))
        .unwrap_or_default();
    let has = |needle: &[u8]| memchr::memmem::find(line, needle).is_some();
    match COMMANDS
        .get(command)
        .map_or(Need::Nothing, |(_, need)| *need)
    {
        Need::Nothing => true,
        Need::Address => has(b"@"),
        Need::Inserted => {
            has(b"$")
                || has(b"`")
                || line
                    .split(|byte| matches!(byte, b' ' | b'.'))
                    .any(|label| label.len() >= 20)
        }
        Need::Program => has(b" -") || has(b"<<") || has(b" eval "),
        Need::Inet => has(b"/inet/") || memchr::memmem::find(rest, b"/inet/").is_some(),
        Need::Url => has(b"://") || has(b" POST ") || has(b" PUT "),
    }
}

/// True where a shell would take a word as a command, or prose quotes one.
pub(super) fn is_command_position(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    if matches!(text.get(at), Some(b'/' | b'-')) {
        return true;
    }
    let Some(last) = before.last() else {
        return true;
    };
    if last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-' | b'.' | b'@' | b'=' | b':') {
        return false;
    }
    let trimmed = before.trim_ascii_end();
    if trimmed.len() < before.len()
        && before
            .get(trimmed.len()..)
            .is_some_and(|gap| gap.contains(&b'\n'))
    {
        return true;
    }
    match trimmed.last() {
        // `#` is the prompt of root or begins a comment: prose unless an option or URL follows.
        None
        | Some(
            b'|' | b';' | b'&' | b'(' | b'{' | b'`' | b'"' | b'\'' | b'$' | b'>' | b'!' | b'/'
            | b'\\' | b'#',
        ) => true,
        // A word before: a wrapper (`sudo curl`), or prose (`use curl -d …`) if options follow.
        Some(_) => {
            let after = text.get(at..).unwrap_or_default();
            let word = after
                .iter()
                .take(32)
                .position(|byte| *byte == b' ')
                .unwrap_or(after.len());
            let next = after.get(word + 1..).unwrap_or_default();
            let wrapper = trimmed
                .rsplit(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-')
                .next()
                .unwrap_or_default();
            WRAPPERS.contains(&wrapper)
                || next.starts_with(b"-")
                || next.starts_with(b"http")
                || next.starts_with(b"'http")
                || next.starts_with(b"\"http")
        }
    }
}

const WRAPPERS: [&[u8]; 26] = [
    b"sudo",
    b"then",
    b"do",
    b"else",
    b"exec",
    b"env",
    b"xargs",
    b"time",
    b"nohup",
    b"timeout",
    b"watch",
    b"parallel",
    b"eval",
    b"if",
    b"while",
    b"until",
    b"not",
    b"command",
    b"builtin",
    b"nice",
    b"doas",
    b"-exec",
    b"busybox",
    b"proxychains",
    b"torify",
    b"-c",
];

/// The lines around a hit that are read as one script: a paragraph, or a line with its
/// continuations where the paragraph is too long.
pub(super) fn passage(text: &[u8], at: usize) -> Range<usize> {
    // Looked for nearby only: a text without blank lines must not be searched anew at every hit.
    let low = at.saturating_sub(LONGEST);
    let high = (at + LONGEST).min(text.len());
    let before = text.get(low..at).unwrap_or_default();
    let after = text.get(at..high).unwrap_or_default();
    let start = memchr::memmem::rfind(before, b"\n\n").map_or(low, |gap| low + gap + 2);
    let end = memchr::memmem::find(after, b"\n\n").map_or(high, |gap| at + gap);
    if end - start <= LONGEST {
        return start..end;
    }
    let start = memchr::memrchr(b'\n', before)
        .map_or(low, |gap| low + gap + 1)
        .max(at.saturating_sub(LONGEST / 2));
    let mut end = at;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let line = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(rest.len());
        end += line;
        let continued = rest.get(..line).is_some_and(|line| line.ends_with(b"\\"));
        if !continued || end - at > LONGEST / 2 || end >= text.len() {
            break;
        }
        end += 1;
    }
    start..end.min(at + LONGEST / 2).max(at + 1)
}

/// The rest of the line from a command on, with its continuations: what prose or a prompt shows.
pub(super) fn tail(text: &[u8], at: usize) -> Range<usize> {
    let mut end = at;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        end += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let continued = text.get(..end).is_some_and(|line| line.ends_with(b"\\"));
        if !continued || end - at > LONGEST / 4 || end >= text.len() {
            break;
        }
        end += 1;
    }
    let end = end.min(at + LONGEST / 4);
    // Of a command quoted in prose, only what is quoted.
    let quote = at
        .checked_sub(1)
        .and_then(|before| text.get(before))
        .filter(|byte| matches!(byte, b'`' | b'"' | b'\''));
    let closed =
        quote.and_then(|quote| memchr::memchr(*quote, text.get(at..end).unwrap_or_default()));
    at..closed.map_or(end, |closed| at + closed)
}
