//! Data leaving: commands that send, programs that connect, links that carry.
//!
//! Protects against an agent (or what it was told) carrying files, secrets or the environment to
//! another host. Commands are read with the shell parser and judged by what they send and where;
//! hosts are compared whole with the allowed ones. It sees what stands in the text: a script
//! fetched at run time, or a program that computes its target, is not seen.

mod arguments;
mod code;
mod command;
mod http;
mod links;
mod outflow;
mod sensitive;
mod services;
mod sockets;

use std::ops::Range;

use crate::finding::{Finding, FindingType};
use crate::hosts::HostList;
use crate::normalize::View;
use crate::redact;
use crate::trigger::Triggers;

use outflow::{Manner, Outflow};
use sensitive::Data;

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
const COMMANDS: [(&str, Need); 92] = [
    ("--rsh-command", Need::Nothing),
    ("/dev/tcp/", Need::Nothing),
    ("/dev/udp/", Need::Nothing),
    ("/inet/", Need::Nothing),
    ("ab -", Need::Url),
    ("awk ", Need::Inet),
    ("aws ", Need::Nothing),
    ("az ", Need::Nothing),
    ("bore ", Need::Nothing),
    ("borg ", Need::Nothing),
    ("browse", Need::Url),
    ("bun ", Need::Program),
    ("bun publish", Need::Nothing),
    ("busybox", Need::Nothing),
    ("cancel ", Need::Nothing),
    ("cargo publish", Need::Nothing),
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
];

const LITERALS: [&str; COMMANDS.len()] = {
    let mut literals = [""; COMMANDS.len()];
    let mut at = 0;
    while at < COMMANDS.len() {
        literals[at] = COMMANDS[at].0;
        at += 1;
    }
    literals
};

/// All that is looked for, in the order: commands, programs, shells, links.
const ALL: [&str; PROGRAMS_END + SHELLS.len() + links::LITERALS.len()] = {
    let mut all = [""; PROGRAMS_END + SHELLS.len() + links::LITERALS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < LITERALS.len() {
            LITERALS[at]
        } else if at < PROGRAMS_END {
            CODE[at - LITERALS.len()]
        } else if at < SHELLS_END {
            SHELLS[at - PROGRAMS_END]
        } else {
            links::LITERALS[at - SHELLS_END]
        };
        at += 1;
    }
    all
};

const PROGRAMS_END: usize = LITERALS.len() + CODE.len();
const SHELLS_END: usize = PROGRAMS_END + SHELLS.len();

static TRIGGERS: Triggers<{ ALL.len() }> = Triggers::new(&ALL);

/// Longest passage read as a script.
const LONGEST: usize = 8 * 1024;

/// Everything in the view that carries data out.
pub(crate) fn scan(view: &View<'_>, allowed: &HostList) -> Vec<Finding> {
    let text = view.text();
    let mut found: Vec<(Range<usize>, Outflow)> = Vec::new();
    let (mut done, mut code_done) = (0, 0);
    TRIGGERS.scan(text, |at, literal| {
        if literal >= SHELLS_END {
            links::at(text, at, allowed, &mut found);
            return;
        }
        if literal >= PROGRAMS_END {
            raw_shell(text, at, literal - PROGRAMS_END, &mut found);
            return;
        }
        if literal >= LITERALS.len() {
            code_passage(text, at, &mut code_done, &mut found);
            return;
        }
        if at < done || !is_worth(text, at, literal) || !is_command_position(text, at) {
            return;
        }
        let passage = passage(text, at);
        done = passage.end;
        let Some(bytes) = text.get(passage.clone()) else { return };
        // Placeholders of the same length keep the offsets where the text is no UTF-8.
        let script: String = bytes.utf8_chunks().fold(String::new(), |all, chunk| {
            all + chunk.valid() + &"?".repeat(chunk.invalid().len())
        });
        let outflows = command::outflows(&script);
        if outflows.is_empty() {
            quoted_commands(&script, passage.start, &mut found);
        }
        for (span, outflow) in outflows {
            found.push((passage.start + span.start..passage.start + span.end, outflow));
        }
    });
    let mut findings: Vec<Finding> =
        found.iter().filter_map(|(range, outflow)| finding(view, range, outflow, allowed)).collect();
    findings.sort_by_key(|finding| (finding.span.start, std::cmp::Reverse(finding.level)));
    findings.dedup_by(|b, a| a.rule == b.rule && b.span.start < a.span.end);
    findings
}

/// True if the line has what a command of this name needs to send anything.
fn is_worth(text: &[u8], at: usize, command: usize) -> bool {
    let rest = text.get(at..(at + 400).min(text.len())).unwrap_or_default();
    let line = rest.get(..memchr::memchr(b'\n', rest).unwrap_or(rest.len())).unwrap_or_default();
    let has = |needle: &[u8]| memchr::memmem::find(line, needle).is_some();
    match COMMANDS.get(command).map_or(Need::Nothing, |(_, need)| *need) {
        Need::Nothing => true,
        Need::Address => has(b"@"),
        Need::Inserted => has(b"$") || has(b"`") || line.split(|byte| matches!(byte, b' ' | b'.')).any(|label| label.len() >= 20),
        Need::Program => has(b" -") || has(b"<<"),
        Need::Inet => has(b"/inet/") || memchr::memmem::find(rest, b"/inet/").is_some(),
        Need::Url => has(b"://") || has(b" POST ") || has(b" PUT "),
    }
}

/// True where a shell would take a word as a command, or prose quotes one.
fn is_command_position(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    if matches!(text.get(at), Some(b'/' | b'-')) {
        return true;
    }
    let Some(last) = before.last() else { return true };
    if last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-' | b'.' | b'@' | b'=' | b':') {
        return false;
    }
    let trimmed = before.trim_ascii_end();
    if trimmed.len() < before.len() && before.get(trimmed.len()..).is_some_and(|gap| gap.contains(&b'\n')) {
        return true;
    }
    match trimmed.last() {
        None | Some(b'|' | b';' | b'&' | b'(' | b'{' | b'`' | b'"' | b'\'' | b'$' | b'>' | b'!' | b'/' | b'\\') => true,
        // A prompt of root, or a comment: prose unless an option or URL follows.
        Some(b'#') => true,
        // A word before: a wrapper (`sudo curl`), or prose (`use curl -d …`) if options follow.
        Some(_) => {
            let after = text.get(at..).unwrap_or_default();
            let word = after.iter().take(32).position(|byte| *byte == b' ').unwrap_or(after.len());
            let next = after.get(word + 1..).unwrap_or_default();
            let wrapper = trimmed.rsplit(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-').next().unwrap_or_default();
            WRAPPERS.contains(&wrapper) || next.starts_with(b"-") || next.starts_with(b"http") || next.starts_with(b"'http") || next.starts_with(b"\"http")
        }
    }
}

const WRAPPERS: [&[u8]; 26] = [
    b"sudo", b"then", b"do", b"else", b"exec", b"env", b"xargs", b"time", b"nohup", b"timeout", b"watch", b"parallel", b"eval", b"if", b"while", b"until", b"not", b"command", b"builtin", b"nice",
    b"doas", b"-exec", b"busybox", b"proxychains", b"torify", b"-c",
];

/// The lines around a hit that are read as one script: a paragraph, or a line with its
/// continuations where the paragraph is too long.
fn passage(text: &[u8], at: usize) -> Range<usize> {
    let before = text.get(..at).unwrap_or_default();
    let after = text.get(at..).unwrap_or_default();
    let start = before.windows(2).rposition(|pair| pair == b"\n\n").map_or(0, |gap| gap + 2);
    let end = after.windows(2).position(|pair| pair == b"\n\n").map_or(text.len(), |gap| at + gap);
    if end - start <= LONGEST {
        return start..end;
    }
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |gap| gap + 1).max(at.saturating_sub(LONGEST / 2));
    let mut end = at;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let line = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        end += line;
        let continued = rest.get(..line).is_some_and(|line| line.ends_with(b"\\"));
        if !continued || end - at > LONGEST / 2 || end >= text.len() {
            break;
        }
        end += 1;
    }
    start..end.min(at + LONGEST / 2).max(at + 1)
}

/// Commands in the strings of another language: `system("… | nc host port")`.
fn quoted_commands(source: &str, base: usize, found: &mut Vec<(Range<usize>, Outflow)>) {
    const SIGNS: [&str; 9] = ["nc ", "ncat ", "curl ", "wget ", "/dev/tcp/", "socat ", "ssh ", "scp ", "telnet "];
    let mut at = 0;
    for (number, text) in source.split(['"', '\'', '`']).enumerate() {
        let start = at;
        at += text.len() + 1;
        if number % 2 == 1 && text.len() >= 10 && SIGNS.iter().any(|sign| text.contains(sign)) {
            for (span, outflow) in command::outflows(text) {
                found.push((base + start + span.start..base + start + span.end, outflow));
            }
        }
    }
}

/// Marks of a connection in source text.
const CODE: [&str; 22] = [
    "socket(", "socket.socket", "TCPSocket", "fsockopen", "IO::Socket", "net.Socket", "java.net.Socket", "Socket.connect", "TcpClient", "TcpStream", "net.Dial", "syscall.Connect", "/inet/tcp",
    "require(\"net\")", "require('net')", "new Socket", "PF_INET", "UploadString", "UploadFile", "Invoke-WebRequest", "Invoke-RestMethod", "socket.tcp",
];

/// Source text that hands over a shell or uploads, outside of any command.
fn code_passage(text: &[u8], at: usize, done: &mut usize, found: &mut Vec<(Range<usize>, Outflow)>) {
    const REACH: usize = 3000;
    if at < *done {
        return;
    }
    let start = at.saturating_sub(REACH);
    let end = (at + REACH).min(text.len());
    let passage = String::from_utf8_lossy(text.get(start..end).unwrap_or_default());
    *done = at + REACH / 2;
    if is_compact(&passage)
        && let Some(outflow) = code::assess(&passage)
        && outflow.manner == Manner::Shell
    {
        found.push((at..(at + 120).min(text.len()), outflow));
    }
}

/// Idioms of handing over a shell that no quoting can hide: `bash -i >& /dev/tcp/…`, `nc -e`.
fn raw_shell(text: &[u8], at: usize, literal: usize, found: &mut Vec<(Range<usize>, Outflow)>) {
    let rest = text.get(at..(at + 160).min(text.len())).unwrap_or_default();
    let rest = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(rest);
    let hands_over = if literal < 2 {
        let mut parts = line.split('/').skip(3);
        let host = parts.next().unwrap_or_default();
        let port = parts.next().unwrap_or_default();
        let before = text.get(at.saturating_sub(60)..at).unwrap_or_default();
        let before = String::from_utf8_lossy(before);
        !host.is_empty()
            && port.starts_with(|c: char| c.is_ascii_digit())
            && (before.contains("sh -i") || line.contains("0>&1") || line.contains("0<&"))
    } else {
        line.contains("/bin/") || line.contains("bash") || line.contains("cmd")
    };
    if hands_over {
        let outflow = Outflow {
            rule: "egress.reverse-shell",
            act: "a command",
            hosts: Vec::new(),
            data: Data::None,
            manner: Manner::Shell,
            wary: true,
        };
        found.push((at..at + rest.len(), outflow));
    }
}

const SHELLS: [&str; 8] = [
    "/dev/tcp/", "/dev/udp/", "nc -e ", "nc -c ", "ncat -e ", "netcat -e ", "nc.traditional -e", "nc -ne ",
];

/// Libraries and tests mention sockets and shells too, but far apart and among other code.
fn is_compact(passage: &str) -> bool {
    ["dup2", "Dup2", "<&3", "0>&1", "pty.spawn", "getOutputStream", "sh.stdin", "StandardOutput", "process.stdin", "/inet/tcp", "io.popen", "IO.popen", "proc_open", "shell_exec", "open(STDIN", "STDIN->fdopen", ">&SOCK"]
        .iter()
        .any(|sign| passage.contains(sign))
}

fn finding(view: &View<'_>, range: &Range<usize>, outflow: &Outflow, allowed: &HostList) -> Option<Finding> {
    let (level, confidence) = outflow::judge(outflow, allowed)?;
    let target = if outflow.hosts.is_empty() { String::new() } else { format!(" to {}", outflow.hosts.join(", ")) };
    let what = match outflow.manner {
        Manner::Shell => "hands a shell over".to_owned(),
        Manner::Tunnel => "opens a way in".to_owned(),
        Manner::Contact | Manner::Session => format!("connects{target}"),
        Manner::Covert | Manner::Publish | Manner::Send => format!("sends {}{target}", outflow.data.name()),
    };
    Some(Finding {
        kind: FindingType::Egress,
        level,
        message: format!("{} {what}", outflow.act),
        content: evidence(view, range),
        rule: outflow.rule,
        span: view.span(range.clone()),
        confidence,
    })
}

/// The command, with the secrets in it taken out.
fn evidence(view: &View<'_>, range: &Range<usize>) -> String {
    let bytes = view.text().get(range.clone()).unwrap_or_default();
    let mut clean = bytes.to_vec();
    let plain = View::plain(bytes, 0);
    for secret in crate::secrets::scan(&plain, &crate::peek::runs(bytes)) {
        let start = usize::try_from(secret.span.start).unwrap_or_default();
        let end = usize::try_from(secret.span.end).unwrap_or_default().min(clean.len());
        if let Some(value) = clean.get_mut(start..end) {
            value.fill(b'*');
        }
    }
    redact::excerpt(&clean)
}
