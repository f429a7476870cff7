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

/// Names of programs and marks of connections that make a passage worth reading.
const LITERALS: [&str; 84] = [
    "/dev/tcp/", "/dev/udp/", "/inet/", "ab -", "aws ", "az ", "borg ", "browse", "cancel ", "chisel ", "cloudflared", "curl", "dig ", "dnscat", "docker push", "firefox", "finger ",
    "frpc", "ftp", "gcloud ", "gem push", "gh ", "git push", "gsutil", "helm push", "host ", "http ", "httpie", "https ", "iodine", "kubectl ", "lftp", "lp ", "mail", "msmtp", "mutt", "nc ",
    "nc.", "ncat", "netcat", "ngrok", "nslookup", "open ", "openssl s_", "podman push", "powershell", "publish", "rclone", "restic", "rsync", "scp ", "sftp", "smbclient", "socat", "ssh ",
    "sshfs", "swaks", "telnet", "tftp", "twine", "wget", "whois ", "xdg-open", "xh ", "--rsh-command", "python", "perl ", "ruby ", "php ", "node ", "lua ", "drill ", "ping ", "getent ", "chrome",
    "gost ", "bore ", "s3cmd", "awk ", "deno ", "bun ", "busybox", "jrunscript", "lynx ",
];

static COMMANDS: Triggers<{ LITERALS.len() }> = Triggers::new(&LITERALS);

/// Longest passage read as a script.
const LONGEST: usize = 8 * 1024;

/// Everything in the view that carries data out.
pub(crate) fn scan(view: &View<'_>, allowed: &HostList) -> Vec<Finding> {
    let text = view.text();
    let mut found: Vec<(Range<usize>, Outflow)> = Vec::new();
    let mut done = 0;
    COMMANDS.scan(text, |at, _| {
        if at < done || !is_command_position(text, at) {
            return;
        }
        let passage = passage(text, at);
        done = passage.end;
        let Some(bytes) = text.get(passage.clone()) else { return };
        // Placeholders of the same length keep the offsets where the text is no UTF-8.
        let script: String = bytes.utf8_chunks().fold(String::new(), |all, chunk| {
            all + chunk.valid() + &"?".repeat(chunk.invalid().len())
        });
        for (span, outflow) in command::outflows(&script) {
            found.push((passage.start + span.start..passage.start + span.end, outflow));
        }
    });
    code_passages(text, &mut found);
    links::scan(text, allowed, &mut found);
    let mut findings: Vec<Finding> =
        found.iter().filter_map(|(range, outflow)| finding(view, range, outflow, allowed)).collect();
    findings.sort_by_key(|finding| (finding.span.start, std::cmp::Reverse(finding.level)));
    findings.dedup_by(|b, a| a.rule == b.rule && b.span.start < a.span.end);
    findings
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
        None | Some(b'|' | b';' | b'&' | b'(' | b'{' | b'`' | b'"' | b'\'' | b'$' | b'>' | b'#' | b'!' | b'/' | b'\\') => true,
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

/// Marks of a connection in source text.
const CODE: [&str; 22] = [
    "socket(", "socket.socket", "TCPSocket", "fsockopen", "IO::Socket", "net.Socket", "java.net.Socket", "Socket.connect", "TcpClient", "TcpStream", "net.Dial", "syscall.Connect", "/inet/tcp",
    "require(\"net\")", "require('net')", "new Socket", "PF_INET", "UploadString", "UploadFile", "Invoke-WebRequest", "Invoke-RestMethod", "socket.tcp",
];

static PROGRAMS: Triggers<{ CODE.len() }> = Triggers::new(&CODE);

/// Source text that hands over a shell or uploads, outside of any command.
fn code_passages(text: &[u8], found: &mut Vec<(Range<usize>, Outflow)>) {
    const REACH: usize = 1500;
    let mut done = 0;
    PROGRAMS.scan(text, |at, _| {
        if at < done {
            return;
        }
        let start = at.saturating_sub(REACH);
        let end = (at + REACH).min(text.len());
        let passage = String::from_utf8_lossy(text.get(start..end).unwrap_or_default());
        done = at + REACH / 2;
        if let Some(outflow) = code::assess(&passage)
            && (outflow.manner == Manner::Shell && is_compact(&passage))
        {
            let width = passage.len().min(120);
            found.push((at..(at + width).min(text.len()), outflow));
        }
    });
}

/// Libraries and tests mention sockets and shells too, but far apart and among other code.
fn is_compact(passage: &str) -> bool {
    ["dup2", "<&3", "0>&1", "pty.spawn", "getOutputStream", "sh.stdin", "StandardOutput", "process.stdin", "/inet/tcp", "io.popen", "IO.popen", "proc_open", "shell_exec"]
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
    for secret in crate::secrets::scan(&plain) {
        let start = usize::try_from(secret.span.start).unwrap_or_default();
        let end = usize::try_from(secret.span.end).unwrap_or_default().min(clean.len());
        if let Some(value) = clean.get_mut(start..end) {
            value.fill(b'*');
        }
    }
    redact::excerpt(&clean)
}
