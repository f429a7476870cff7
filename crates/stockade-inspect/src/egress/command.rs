//! What the commands of a script send, command by command.

use stockade_shell::{Command, CommandId, RedirectOp, Script, Span, Stdin, Word, is_shell};

use super::outflow::{Manner, Outflow};
use super::sensitive::{Data, of_command, of_stdin, of_word};
use super::{carriers, cloud, code, http, services, sockets};
use crate::hosts::host_of;

/// Everything that the script sends, with the span of the command that does.
pub(super) fn outflows(source: &str) -> Vec<(Span, Outflow)> {
    within(source, true)
}

/// `outer` is false for commands that a program inside a script runs: they are not opened again.
fn within(source: &str, outer: bool) -> Vec<(Span, Outflow)> {
    let script = stockade_shell::parse(source);
    let mut found = Vec::new();
    for (id, command) in script.commands.iter().enumerate() {
        if let Some(outflow) = of_redirects(&script, id, command) {
            found.push((command.span, outflow));
        }
        if let Some(outflow) = command
            .name()
            .map(|name| meant(command, name))
            .and_then(|name| of_program(&script, id, command, name))
        {
            found.push((command.span, outflow));
        }
    }
    for (id, command) in script.commands.iter().enumerate() {
        for inner in outer
            .then(|| handed(&script, id, command))
            .into_iter()
            .flatten()
        {
            let inside = within(&inner, false).into_iter();
            found.extend(inside.map(|(_, sent)| (command.span, sent)));
        }
    }
    for embedded in &script.embedded {
        let span = script
            .commands
            .get(embedded.command)
            .map_or(embedded.code.span, |command| command.span);
        if let Some(outflow) = code::assess(&embedded.code.text) {
            found.push((span, outflow));
        }
        if outer {
            for command in code::spawned(&embedded.code.text) {
                found.extend(
                    within(&command, false)
                        .into_iter()
                        .map(|(_, sent)| (span, sent)),
                );
            }
        }
    }
    found
}

fn of_program(script: &Script, id: CommandId, command: &Command, name: &str) -> Option<Outflow> {
    let words = command.args();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    match name {
        "curl" | "curlie" => http::curl(script, id, words),
        "wget" | "wget2" | "aria2c" | "axel" => http::wget(script, words),
        "http" | "https" | "xh" | "xhs" | "httpie" => http::httpie(script, id, words),
        "xdg-open" | "open" | "sensible-browser" | "firefox" | "chromium" | "google-chrome"
        | "chrome" | "lynx" | "w3m" | "links" | "links2" | "elinks" | "start" | "x-www-browser"
        | "browse" | "www-browser" => http::browser(script, id, words),
        "python" | "python3" if opens_browser(words) => http::browser(script, id, words),
        "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" => {
            sockets::netcat(script, id, words)
        }
        "socat" => sockets::socat(script, id, words),
        "telnet" => Some(sockets::pipe(script, id, words)),
        "openssl" if words.first().is_some_and(|word| word.text == "s_client") => {
            Some(sockets::pipe(script, id, words))
        }
        "openssl" if words.first().is_some_and(|word| word.text == "s_server") => {
            sockets::waits(words)
        }
        "script" if makes_terminal(words) => code::assess("pty.spawn"),
        "sshuttle" | "ptunnel" | "ptunnel-ng" if !words.is_empty() => services::tunnel(words, name),
        "ssh" | "dropbear" | "dbclient" => sockets::ssh(script, id, words, ""),
        "autossh" => sockets::ssh(script, id, words, "M"),
        "scp" => sockets::copy(script, words, "scp"),
        "rsync" => sockets::copy(script, words, "rsync"),
        "sftp" => sockets::transfer(script, id, words, "sftp"),
        "tftp" if words.iter().any(|word| word.text == "-p") => {
            carriers::carry(script, id, words, name)
        }
        "ftp" | "lftp" | "tftp" => sockets::transfer(script, id, words, "ftp"),
        "smbclient" => sockets::transfer(script, id, words, "smbclient"),
        "git" => services::git(script, id, words),
        "gh" | "glab" => services::forge(script, id, words),
        "aws" | "gsutil" | "gcloud" | "az" | "rclone" | "restic" | "borg" | "s3cmd" | "mc"
        | "ossutil" => cloud::cloud(script, id, words, name),
        "deno" if words.first().is_some_and(|word| word.text == "eval") => {
            code::assess(&spoken(words))
        }
        "npm" | "yarn" | "pnpm" | "cargo" | "poetry" | "uv" | "flit" | "hatch" | "bun" | "deno"
        | "twine" | "gem" | "docker" | "podman" | "helm" | "nuget" | "vsce" | "ovsx" => {
            services::publish(words, name)
        }
        "mail" | "mailx" | "mutt" | "sendmail" | "swaks" | "msmtp" | "s-nail" | "ssmtp" => {
            services::mail(script, id, words)
        }
        "dig" | "nslookup" | "host" | "drill" | "resolvectl" | "ping" | "getent" | "kdig"
        | "delv" => services::names(script, words),
        "cloudflared" | "ngrok" | "chisel" | "lt" | "localtunnel" | "bore" | "frpc" | "gost"
        | "iodine" | "dnscat" | "dnscat2" | "tailscale" | "devtunnel" | "zrok" | "ligolo-agent" => {
            services::tunnel(words, name)
        }
        "npx" => services::fetched(words),
        "msfvenom" | "msfconsole" | "rcat" | "rustcat" | "pwncat" | "pwncat-cs" => {
            sockets::kit(words, name)
        }
        "croc" | "wormhole" | "onionshare-cli" | "onionshare" | "pastebinit" | "wgetpaste" => {
            services::drop_off(script, id, words, name)
        }
        "busybox" if words.first().is_some_and(|word| word.text == "httpd") => {
            Some(services::serve())
        }
        "httpd" if words.iter().any(|word| word.text == "-h") => Some(services::serve()),
        "php" if serves_all(words) => Some(services::serve()),
        "python" | "python2" | "python3" if serves_network(words) => Some(services::serve()),
        "ruby" | "twistd" | "updog" | "http-server" if serves_directory(words, name) => {
            Some(services::serve())
        }
        name if INTERPRETERS.contains(&name) => code::assess(&told(script, id, words)),
        "bitsadmin" | "certutil" => http::windows(words),
        "xterm" => sockets::display(words),
        "ztcp" => sockets::ztcp(script, id, words),
        "whois" | "finger" | "cancel" | "lp" | "lpr" | "tar" | "sshfs" | "ab" => {
            services::odd(script, id, words, name)
        }
        "mount" => carriers::mount(script, id, words),
        _ => carriers::carry(script, id, words, name),
    }
}

/// Commands that a command runs by means of its own: code of an interpreter, a proxy of ssh.
fn handed(script: &Script, id: CommandId, command: &Command) -> Vec<String> {
    match command.name() {
        Some(name) if INTERPRETERS.contains(&name) => {
            code::spawned(&told(script, id, command.args()))
        }
        Some("ssh" | "scp" | "sftp") => command
            .args()
            .iter()
            .filter_map(|word| word.text.split_once("Command="))
            .map(|(_, inner)| inner.to_owned())
            .collect(),
        _ => Vec::new(),
    }
}

/// The program that a pattern stands for: `/usr/bin/cu?l` is meant to find curl.
fn meant<'a>(command: &Command, name: &'a str) -> &'a str {
    let pattern = command.words.first().is_some_and(|word| {
        word.holes
            .iter()
            .any(|hole| matches!(hole.kind, stockade_shell::HoleKind::Glob))
    });
    if !pattern {
        return name;
    }
    let fits = |program: &str| {
        let known = name
            .chars()
            .filter(|c| !matches!(c, '?' | '*' | '[' | ']'))
            .count();
        known >= 2
            && name.len() == program.len()
            && name
                .chars()
                .zip(program.chars())
                .all(|(a, b)| a == '?' || a == b)
    };
    ["curl", "wget", "ncat", "socat", "ssh", "scp", "nc"]
        .into_iter()
        .find(|program| fits(program))
        .unwrap_or(name)
}

/// Programs that run code of languages which the shell parser does not single out.
const INTERPRETERS: [&str; 28] = [
    "powershell",
    "pwsh",
    "Rscript",
    "R",
    "julia",
    "osascript",
    "tclsh",
    "wish",
    "expect",
    "groovy",
    "jshell",
    "elixir",
    "erl",
    "swift",
    "scala",
    "gdb",
    "vim",
    "vi",
    "nvim",
    "rvim",
    "view",
    "rview",
    "emacs",
    "irb",
    "jjs",
    "jrunscript",
    "crystal",
    "go",
];

/// The arguments as one text: a program handed over word by word.
fn spoken(words: &[Word]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(" ")
}

/// The arguments and what the program reads, as one text.
fn told(script: &Script, id: CommandId, words: &[Word]) -> String {
    let mut text = spoken(words);
    if let Some(Stdin::Text(word)) = script.commands.get(id).map(|command| &command.stdin) {
        text.push('\n');
        text.push_str(&word.text);
    }
    text
}

/// `script -qc /bin/bash /dev/null`: nothing is recorded, a terminal is what is wanted.
fn makes_terminal(words: &[Word]) -> bool {
    let runs = |word: &Word| is_shell(word.text.rsplit('/').next().unwrap_or_default());
    words.iter().any(|word| word.text == "/dev/null") && words.iter().any(runs)
}

/// `python3 -m webbrowser URL`
fn opens_browser(words: &[Word]) -> bool {
    matches!(words, [flag, module, ..] if flag.text == "-m" && module.text == "webbrowser")
}

/// A file server for a directory that is not the one worked in.
fn serves_directory(words: &[Word], name: &str) -> bool {
    let module = match name {
        "ruby" => words.iter().any(|word| word.text == "httpd"),
        "twistd" => words
            .iter()
            .any(|word| matches!(word.text.as_str(), "web" | "ftp")),
        _ => true,
    };
    let away = words.iter().any(|word| {
        let path = word
            .text
            .split_once('=')
            .map_or(word.text.as_str(), |(_, path)| path);
        path.starts_with(['/', '~'])
    });
    // Ruby's is a one-liner for the purpose, as Python's is.
    module && (away || name == "ruby")
}

/// `python3 -m http.server`: the directory, to the whole network unless it is bound to this machine.
fn serves_network(words: &[Word]) -> bool {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let server = matches!(
        texts.as_slice(),
        [
            "-m",
            "http.server" | "SimpleHTTPServer" | "pyftpdlib" | "uploadserver",
            ..
        ]
    );
    let bound = texts.iter().any(|text| {
        let address = text.strip_prefix("--bind=").unwrap_or(text);
        matches!(address, "localhost" | "::1") || address.starts_with("127.")
    });
    server && !bound
}

/// `php -S 0.0.0.0:80`
fn serves_all(words: &[Word]) -> bool {
    words.iter().any(|word| word.text == "-S")
        && words.iter().any(|word| word.text.starts_with("0.0.0.0:"))
}

/// True if a later command is a shell, or whatever the other side says, on a copy of a descriptor.
pub(super) fn is_wired(script: &Script, id: CommandId) -> bool {
    script.commands.iter().skip(id + 1).any(|next| {
        let said = next
            .words
            .first()
            .is_some_and(|word| word.variables().next().is_some());
        (said || next.name().is_some_and(is_shell))
            && next.redirects.iter().any(|redirect| {
                matches!(
                    redirect.op,
                    RedirectOp::DuplicateIn | RedirectOp::DuplicateOut
                )
            })
    })
}

/// `/dev/tcp/host/port`, as bash and ksh open it.
fn of_redirects(script: &Script, id: CommandId, command: &Command) -> Option<Outflow> {
    let redirect = command
        .redirects
        .iter()
        .find(|redirect| device_host(&redirect.target.text).is_some())?;
    let hosts: Vec<String> = device_host(&redirect.target.text).into_iter().collect();
    let is_exec = command.name() == Some("exec") || command.words.is_empty();
    // `exec 5<>/dev/tcp/…` prepares for a shell on descriptor 5.
    let shell = command.name().is_some_and(is_shell) || (is_exec && is_wired(script, id));
    if shell {
        return Some(Outflow {
            rule: "egress.reverse-shell",
            act: "a shell on /dev/tcp",
            hosts,
            data: Data::None,
            manner: Manner::Shell,
            wary: true,
        });
    }
    let written = command
        .args()
        .iter()
        .map(|word| of_word(script, word))
        .max()
        .unwrap_or_default();
    let data = of_command(script, id)
        .max(of_stdin(script, id))
        .max(written);
    let sends = redirect.op != RedirectOp::Read && !is_exec;
    Some(Outflow {
        rule: "egress.dev-tcp",
        act: "a redirection",
        hosts,
        data,
        manner: if sends { Manner::Send } else { Manner::Contact },
        wary: true,
    })
}

fn device_host(path: &str) -> Option<String> {
    let rest = path
        .strip_prefix("/dev/tcp/")
        .or_else(|| path.strip_prefix("/dev/udp/"))?;
    host_of(rest.split('/').next()?).or_else(|| Some("unknown".to_owned()))
}
