//! Source text that hands over a shell, outside of any command a shell would run.

use std::ops::Range;

use super::code;
use super::command;
use super::outflow::{Manner, Outflow};
use super::sensitive::Data;

/// Commands in the strings of another language: `system("… | nc host port")`.
pub(super) fn quoted_commands(source: &str, base: usize, found: &mut Vec<(Range<usize>, Outflow)>) {
    const SIGNS: [&str; 9] = [
        "nc ",
        "ncat ",
        "curl ",
        "wget ",
        "/dev/tcp/",
        "socat ",
        "ssh ",
        "scp ",
        "telnet ",
    ];
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
pub(super) const CODE: [&str; 30] = [
    "socket(",
    "socket.socket",
    "TCPSocket",
    "fsockopen",
    "IO::Socket",
    "net.Socket",
    "java.net.Socket",
    "Socket.connect",
    "TcpClient",
    "TcpStream",
    "net.Dial",
    "syscall.Connect",
    "/inet/tcp",
    "require(\"net\")",
    "require('net')",
    "new Socket",
    "PF_INET",
    "UploadString",
    "UploadFile",
    "Invoke-WebRequest",
    "Invoke-RestMethod",
    "socket.tcp",
    "[socket ",
    "TCPClient",
    "create_connection",
    "shell_exec",
    "passthru(",
    "system($_",
    "exec($_",
    "eval($_",
];

/// Source text that hands over a shell or uploads, outside of any command.
pub(super) fn code_passage(
    text: &[u8],
    at: usize,
    done: &mut usize,
    found: &mut Vec<(Range<usize>, Outflow)>,
) {
    const REACH: usize = 3000;
    if at < *done {
        return;
    }
    let start = at.saturating_sub(REACH);
    let end = (at + REACH).min(text.len());
    let passage = String::from_utf8_lossy(text.get(start..end).unwrap_or_default());
    *done = at + REACH / 2;
    if is_web_shell(&passage) {
        let outflow = Outflow {
            rule: "egress.web-shell",
            act: "a web page",
            hosts: Vec::new(),
            data: Data::None,
            manner: Manner::Shell,
            wary: true,
        };
        found.push((at..(at + 120).min(text.len()), outflow));
        return;
    }
    if is_compact(&passage)
        && let Some(outflow) = code::assess(&passage)
        && outflow.manner == Manner::Shell
    {
        found.push((at..(at + 120).min(text.len()), outflow));
    }
}

/// A page that runs what a visitor sends: PHP's ways to run a command, right on a request's field,
/// or one after the other until one is allowed.
fn is_web_shell(passage: &str) -> bool {
    const RUNS: [&str; 6] = [
        "system(",
        "exec(",
        "passthru(",
        "popen(",
        "eval(",
        "assert(",
    ];
    const FIELDS: [&str; 3] = ["$_GET", "$_POST", "$_REQUEST"];
    let direct = RUNS.iter().any(|run| {
        passage.match_indices(run).take(64).any(|(at, _)| {
            let argument = passage.get(at + run.len()..).unwrap_or_default();
            let argument = argument.trim_start().trim_start_matches(['@', '"']);
            FIELDS.iter().any(|field| argument.starts_with(field))
        })
    });
    let tried = ["shell_exec", "passthru", "proc_open", "popen", "exec("]
        .iter()
        .filter(|name| passage.contains(**name))
        .count();
    direct || tried >= 4 && passage.contains("function_exists")
}

/// Idioms of handing over a shell that no quoting can hide: `bash -i >& /dev/tcp/…`, `nc -e`.
pub(super) fn raw_shell(
    text: &[u8],
    at: usize,
    literal: usize,
    found: &mut Vec<(Range<usize>, Outflow)>,
) {
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

/// What begins such an idiom.
pub(super) const SHELLS: [&str; 8] = [
    "/dev/tcp/",
    "/dev/udp/",
    "nc -e ",
    "nc -c ",
    "ncat -e ",
    "netcat -e ",
    "nc.traditional -e",
    "nc -ne ",
];

/// Libraries and tests mention sockets and shells too, but far apart and among other code.
fn is_compact(passage: &str) -> bool {
    [
        "dup2",
        "Dup2",
        "<&3",
        "0>&1",
        "pty.spawn",
        "getOutputStream",
        "sh.stdin",
        "StandardOutput",
        "process.stdin",
        "/inet/tcp",
        "io.popen",
        "IO.popen",
        "proc_open",
        "shell_exec",
        "open(STDIN",
        "STDIN->fdopen",
        ".Stdin=",
        ".Stdin =",
        "GetStream",
        "exec $",
        ">&SOCK",
    ]
    .iter()
    .any(|sign| passage.contains(sign))
}
