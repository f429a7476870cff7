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
pub(super) const CODE: [&str; 45] = [
    "syscall.Socket",
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
    "gen_tcp",
    "dav_methods",
    "autoindex on",
    "$_GET[",
    "$_POST[",
    "$_REQUEST[",
    "getRuntime().exec",
    "iex(",
    "iwr -",
    "irm -",
    "iwr http",
    "irm http",
    "Start-BitsTransfer",
    "require(\"socket\")",
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
    if is_open_server(&passage) {
        found.push((at..(at + 120).min(text.len()), super::services::serve()));
        return;
    }
    let line = statement(&passage, at - start);
    if let Some(outflow) = code::assess(line).filter(|sent| is_cmdlet(line, sent)) {
        found.push((at..(at + line.len().max(1)).min(text.len()), outflow));
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
            FIELDS.iter().any(|field| argument.starts_with(field)) || is_field(passage, argument)
        })
    });
    let quoted = ["`$_GET", "`$_POST", "`$_REQUEST"]
        .iter()
        .any(|run| passage.contains(run));
    let java = passage
        .split("getRuntime().exec(")
        .skip(1)
        .any(|rest| rest.trim_start().starts_with("request.getParameter("));
    let tried = ["shell_exec", "passthru", "proc_open", "popen", "exec("]
        .iter()
        .filter(|name| passage.contains(**name))
        .count();
    direct || quoted || java || tried >= 4 && passage.contains("function_exists")
}

/// True if an argument is a variable that a request's field was given to, right before.
fn is_field(passage: &str, argument: &str) -> bool {
    let Some(name) = argument.strip_prefix('$') else {
        return false;
    };
    let end = name
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(name.len());
    let Some(variable) = argument.get(..=end).filter(|_| end > 0) else {
        return false;
    };
    passage.split(variable).skip(1).take(16).any(|after| {
        let value = after.trim_start().strip_prefix('=').unwrap_or_default();
        let value = value.trim_start().trim_start_matches(['(', '@']);
        ["$_GET[", "$_POST[", "$_REQUEST["]
            .iter()
            .any(|field| value.starts_with(field))
    })
}

/// The line of a passage around a place.
fn statement(passage: &str, at: usize) -> &str {
    const MAX_STATEMENT_BYTES: usize = 600;
    // Text that is no UTF-8 shifts the place: then there is none.
    let Some((before, after)) = passage.split_at_checked(at) else {
        return "";
    };
    let start = before.rfind('\n').map_or(0, |line| line + 1);
    let end = at + after.find('\n').unwrap_or(after.len());
    passage
        .get(start..end)
        .filter(|line| line.len() <= MAX_STATEMENT_BYTES)
        .unwrap_or_default()
}

/// True for a line of `PowerShell` that sends, or that runs what it fetches over and over.
fn is_cmdlet(line: &str, sent: &Outflow) -> bool {
    let lower = line.to_ascii_lowercase();
    let has = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
    let fetches = has(&[
        "invoke-webrequest",
        "invoke-restmethod",
        "iwr ",
        "irm ",
        "webclient",
    ]);
    let runs = has(&["iex", "invoke-expression"]);
    let sends = has(&[
        "-infile",
        "-body",
        ".uploadfile(",
        ".uploadstring(",
        "-method post",
    ]);
    fetches && !sent.hosts.is_empty() && (sends && sent.manner == Manner::Send || runs)
}

/// A web server's settings that give the whole machine away, to read or to write.
fn is_open_server(passage: &str) -> bool {
    passage.contains("root /;")
        && passage.contains("listen")
        && (passage.contains("autoindex on") || passage.contains("dav_methods"))
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
pub(super) const SHELLS: [&str; 11] = [
    "/dev/tcp/",
    "/dev/udp/",
    "nc -e ",
    "nc -c ",
    "ncat -e ",
    "netcat -e ",
    "nc.traditional -e",
    "nc -ne ",
    "nc.exe -e ",
    "nc64.exe -e ",
    "ncat.exe -e ",
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
        ".stdin.write",
        "p.stdin",
        "gets_to_end",
        "from_raw_fd",
        "os:cmd",
    ]
    .iter()
    .any(|sign| passage.contains(sign))
}
