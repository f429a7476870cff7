//! Where commands stand in a text: in scripts, after prompts, in prose, in strings.

use std::ops::Range;

/// Longest passage read as a script.
const MAX_SCRIPT_BYTES: usize = 8 * 1024;

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
    /// A URL, an address or a socket.
    Net,
    /// A word of sending, or something put in at run time.
    Upload,
    /// A URL.
    Url,
}

/// Names of programs and marks of connections that make a passage worth reading.
const COMMANDS: [(&str, Need); 212] = [
    ("--rsh-command", Need::Nothing),
    ("/dev/tcp/", Need::Nothing),
    ("/dev/udp/", Need::Nothing),
    ("/inet/", Need::Nothing),
    ("ab -", Need::Url),
    ("aria2c", Need::Url),
    ("awk ", Need::Inet),
    ("aws ", Need::Upload),
    ("az ", Need::Upload),
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
    ("gcloud ", Need::Upload),
    ("gem push", Need::Nothing),
    ("getent ", Need::Inserted),
    ("gh ", Need::Nothing),
    ("git push", Need::Nothing),
    ("gost ", Need::Nothing),
    ("gsutil", Need::Upload),
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
    ("s3cmd", Need::Upload),
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
    ("--data", Need::Url),
    ("msfconsole", Need::Nothing),
    ("ptunnel", Need::Nothing),
    ("sshuttle", Need::Nothing),
    ("rlogin ", Need::Nothing),
    ("script -", Need::Nothing),
    ("-T /", Need::Url),
    ("-T ~", Need::Url),
    ("=@/", Need::Url),
    ("=@~", Need::Url),
    ("=@.", Need::Url),
    ("=@$", Need::Url),
    ("--upload-file", Need::Url),
    ("--post-file", Need::Url),
    ("--post-data", Need::Url),
    ("-d @", Need::Url),
    ("amqp-publish", Need::Nothing),
    ("azcopy ", Need::Nothing),
    ("autossh", Need::Nothing),
    ("b2 upload", Need::Nothing),
    ("bbcp ", Need::Nothing),
    ("bcp ", Need::Url),
    ("cadaver", Need::Nothing),
    ("certreq", Need::Url),
    ("consul kv", Need::Nothing),
    ("crystal ", Need::Net),
    ("dbxcli", Need::Nothing),
    ("devtunnel", Need::Nothing),
    ("doctl ", Need::Nothing),
    ("dropbox_uploader", Need::Nothing),
    ("elinks", Need::Url),
    ("emacs ", Need::Net),
    ("erl -", Need::Net),
    ("elixir ", Need::Net),
    ("etcdctl", Need::Nothing),
    ("expect ", Need::Net),
    ("ffsend", Need::Nothing),
    ("gdb ", Need::Net),
    ("gdrive ", Need::Nothing),
    ("git -", Need::Nothing),
    ("git config", Need::Url),
    ("glab ", Need::Nothing),
    ("groovy ", Need::Net),
    ("grpcurl", Need::Nothing),
    ("hg push", Need::Nothing),
    ("hping3", Need::Nothing),
    ("http-server", Need::Nothing),
    ("huggingface-cli", Need::Nothing),
    ("ipfs add", Need::Nothing),
    ("irb ", Need::Net),
    ("jjs ", Need::Net),
    ("jshell ", Need::Net),
    ("julia ", Need::Net),
    ("kafkacat", Need::Nothing),
    ("kcat ", Need::Nothing),
    ("keybase ", Need::Nothing),
    ("ldapadd", Need::Nothing),
    ("ldapmodify", Need::Nothing),
    ("ligolo", Need::Nothing),
    ("linode-cli", Need::Nothing),
    ("logger -", Need::Nothing),
    ("magic-wormhole", Need::Nothing),
    ("mc cp", Need::Nothing),
    ("mc mirror", Need::Nothing),
    ("mega-put", Need::Nothing),
    ("megaput", Need::Nothing),
    ("mosquitto_pub", Need::Nothing),
    ("mount -t", Need::Nothing),
    ("msfvenom", Need::Nothing),
    ("nats pub", Need::Nothing),
    ("ncftpput", Need::Nothing),
    ("nmap ", Need::Net),
    ("nping ", Need::Nothing),
    ("npx ", Need::Nothing),
    ("osascript", Need::Url),
    ("pwncat", Need::Nothing),
    ("rcat ", Need::Nothing),
    ("rcp ", Need::Nothing),
    ("redis-cli", Need::Nothing),
    ("resolvectl", Need::Inserted),
    ("Rscript", Need::Net),
    ("rustcat", Need::Nothing),
    ("ruby -run", Need::Nothing),
    ("rvim ", Need::Net),
    ("scala ", Need::Net),
    ("sendemail", Need::Address),
    ("sensible-browser", Need::Url),
    ("skopeo ", Need::Nothing),
    ("snmpset", Need::Nothing),
    ("start ", Need::Url),
    ("svn import", Need::Nothing),
    ("swift upload", Need::Nothing),
    ("syncthing", Need::Nothing),
    ("tailscale", Need::Nothing),
    ("tclsh", Need::Net),
    ("telegram-", Need::Nothing),
    ("twistd", Need::Nothing),
    ("updog", Need::Nothing),
    ("vim ", Need::Net),
    ("w3m ", Need::Url),
    ("websocat", Need::Nothing),
    ("wput ", Need::Nothing),
    ("wrangler ", Need::Nothing),
    ("wscat", Need::Nothing),
    ("www-browser", Need::Url),
    ("zrok ", Need::Nothing),
    ("psql ", Need::Inserted),
    ("mysql ", Need::Inserted),
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
                || has(b" {}.")
                || has(b" %.")
                || line
                    .split(|byte| matches!(byte, b' ' | b'.'))
                    .any(|label| label.len() >= 20)
        }
        Need::Program => {
            holds_program(line) || has(b"<<") || has(b" eval ") || is_piped_into(text, at)
        }
        Need::Inet => has(b"/inet/") || memchr::memmem::find(rest, b"/inet/").is_some(),
        Need::Net => has(b"://") || has(b"ocket") || holds_address(line),
        Need::Upload => UPLOADS.iter().any(|sign| has(sign)),
        Need::Url => has(b"://") || has(b" POST ") || has(b" PUT "),
    }
}

/// Signs that a cloud's client is told to send.
const UPLOADS: [&[u8]; 13] = [
    b" cp", b" mv", b"sync", b" scp", b"upload", b"publish", b" send", b" put", b"s3api",
    b"invoke", b"$", b"`", b"file://",
];

/// True if an option of the line hands over a program (`-c`, `-lne`, `--eval`), or a module that
/// serves or opens something.
fn holds_program(line: &[u8]) -> bool {
    memchr::memmem::find_iter(line, b" -").any(|at| {
        let option = line.get(at + 2..).unwrap_or_default();
        let letters = option
            .iter()
            .take(12)
            .take_while(|b| b.is_ascii_alphabetic() || **b == b'-')
            .count();
        let (letters, after) = option.split_at(letters);
        if letters == b"m" {
            return [&b" http"[..], b" Simple", b" webb", b" pyftp", b" upload"]
                .iter()
                .any(|module| after.starts_with(module));
        }
        letters.is_empty() || letters.iter().any(|b| b"cerpESRM".contains(b))
    })
}

/// True for `… | python3`: the program stands before.
fn is_piped_into(text: &[u8], at: usize) -> bool {
    text.get(at.saturating_sub(16)..at)
        .unwrap_or_default()
        .trim_ascii_end()
        .ends_with(b"|")
}

/// True if the line holds something like `203.0.113.4`.
fn holds_address(line: &[u8]) -> bool {
    memchr::memchr_iter(b'.', line)
        .filter(|at| {
            let digit = |at: Option<usize>| {
                at.and_then(|at| line.get(at))
                    .is_some_and(u8::is_ascii_digit)
            };
            digit(at.checked_sub(1)) && digit(at.checked_add(1))
        })
        .nth(2)
        .is_some()
}

/// True where a shell would take a word as a command, or prose quotes one.
pub(super) fn is_command_position(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    if matches!(text.get(at), Some(b'/' | b'-' | b'=')) {
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
        // What xargs puts its input for: `xargs -I{} host {}.test`.
        Some(b'}') if trimmed.ends_with(b"{}") => true,
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
                || next.starts_with(b"+")
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
    let low = at.saturating_sub(MAX_SCRIPT_BYTES);
    let high = (at + MAX_SCRIPT_BYTES).min(text.len());
    let before = text.get(low..at).unwrap_or_default();
    let after = text.get(at..high).unwrap_or_default();
    let start = memchr::memmem::rfind(before, b"\n\n").map_or(low, |gap| low + gap + 2);
    let end = memchr::memmem::find(after, b"\n\n").map_or(high, |gap| at + gap);
    if end - start <= MAX_SCRIPT_BYTES {
        return start..end;
    }
    let start = memchr::memrchr(b'\n', before)
        .map_or(low, |gap| low + gap + 1)
        .max(at.saturating_sub(MAX_SCRIPT_BYTES / 2));
    let mut end = at;
    loop {
        // No further than is kept: a long line must not be searched anew at every hit.
        let bound = text.len().min(at + MAX_SCRIPT_BYTES / 2 + 1);
        let rest = text.get(end..bound).unwrap_or_default();
        let line = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        end += line;
        let continued = rest.get(..line).is_some_and(|line| line.ends_with(b"\\"));
        if !continued || end - at > MAX_SCRIPT_BYTES / 2 || end >= text.len() {
            break;
        }
        end += 1;
    }
    start..end.min(at + MAX_SCRIPT_BYTES / 2).max(at + 1)
}

/// The rest of the line from a command on, with its continuations: what prose or a prompt shows.
pub(super) fn tail(text: &[u8], at: usize) -> Range<usize> {
    let mut end = at;
    loop {
        let bound = text.len().min(at + MAX_SCRIPT_BYTES / 4 + 1);
        let rest = text.get(end..bound).unwrap_or_default();
        end += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let continued = text.get(..end).is_some_and(|line| line.ends_with(b"\\"));
        if !continued || end - at > MAX_SCRIPT_BYTES / 4 || end >= text.len() {
            break;
        }
        end += 1;
    }
    let end = end.min(at + MAX_SCRIPT_BYTES / 4);
    // Of a command quoted in prose, only what is quoted.
    let quote = open_quote(text, at);
    let closed =
        quote.and_then(|quote| memchr::memchr(quote, text.get(at..end).unwrap_or_default()));
    at..closed.map_or(end, |closed| at + closed)
}

/// The quote that is open before `at`, looked for in the same line only.
fn open_quote(text: &[u8], at: usize) -> Option<u8> {
    let near = text.get(at.saturating_sub(200)..at).unwrap_or_default();
    let line = near
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    if let Some(quote @ (b'`' | b'"' | b'\'')) = line.last() {
        return Some(*quote);
    }
    let mut open = None;
    for byte in line {
        match open {
            None if matches!(byte, b'`' | b'"') => open = Some(*byte),
            // An apostrophe inside a word is none.
            None if *byte == b'\'' => open = Some(*byte),
            Some(quote) if quote == *byte => open = None,
            _ => {}
        }
    }
    open
}
