//! What the commands of a script send, command by command.

use stockade_shell::{Command, CommandId, RedirectOp, Script, Span, Word, is_shell};

use super::outflow::{Manner, Outflow};
use super::sensitive::{Data, of_command, of_stdin, of_word};
use super::{code, http, services, sockets};
use crate::hosts::host_of;

/// Everything that the script sends, with the span of the command that does.
pub(super) fn outflows(source: &str) -> Vec<(Span, Outflow)> {
    let script = stockade_shell::parse(source);
    let mut found = Vec::new();
    for (id, command) in script.commands.iter().enumerate() {
        if let Some(outflow) = of_redirects(&script, id, command) {
            found.push((command.span, outflow));
        }
        if let Some(outflow) = command
            .name()
            .and_then(|name| of_program(&script, id, command, name))
        {
            found.push((command.span, outflow));
        }
    }
    for embedded in &script.embedded {
        if let Some(outflow) = code::assess(&embedded.code.text) {
            let span = script
                .commands
                .get(embedded.command)
                .map_or(embedded.code.span, |command| command.span);
            found.push((span, outflow));
        }
    }
    found
}

fn of_program(script: &Script, id: CommandId, command: &Command, name: &str) -> Option<Outflow> {
    let words = command.args();
    match name {
        "curl" | "curlie" => http::curl(script, id, words),
        "wget" | "wget2" | "aria2c" | "axel" => http::wget(script, words),
        "http" | "https" | "xh" | "xhs" | "httpie" => http::httpie(script, id, words),
        "xdg-open" | "open" | "sensible-browser" | "firefox" | "chromium" | "google-chrome"
        | "chrome" | "lynx" | "w3m" | "links" | "start" | "x-www-browser" | "browse" => {
            http::browser(script, words)
        }
        "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" => {
            sockets::netcat(script, id, words)
        }
        "socat" => sockets::socat(script, id, words),
        "telnet" => Some(sockets::pipe(script, id, words)),
        "openssl" if words.first().is_some_and(|word| word.text == "s_client") => {
            Some(sockets::pipe(script, id, words))
        }
        "ssh" | "dropbear" | "dbclient" | "autossh" => sockets::ssh(script, id, words),
        "scp" => sockets::copy(script, words, "scp"),
        "rsync" => sockets::copy(script, words, "rsync"),
        "sftp" => sockets::transfer(script, id, words, "sftp"),
        "ftp" | "lftp" | "tftp" | "ncftpput" => sockets::transfer(script, id, words, "ftp"),
        "smbclient" => sockets::transfer(script, id, words, "smbclient"),
        "git" => services::git(script, id, words),
        "gh" | "glab" => services::forge(script, id, words),
        "aws" | "gsutil" | "gcloud" | "az" | "rclone" | "restic" | "borg" | "s3cmd" | "mc"
        | "ossutil" => services::cloud(script, id, words, name),
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
        | "iodine" | "dnscat" | "dnscat2" => services::tunnel(words, name),
        "croc" | "wormhole" | "onionshare-cli" | "onionshare" | "pastebinit" | "wgetpaste" => {
            services::drop_off(script, id, words, name)
        }
        "busybox" if words.first().is_some_and(|word| word.text == "httpd") => {
            Some(services::serve())
        }
        "httpd" if words.iter().any(|word| word.text == "-h") => Some(services::serve()),
        "php" if serves_all(words) => Some(services::serve()),
        "python" | "python2" | "python3" if serves_network(words) => Some(services::serve()),
        "powershell" | "powershell.exe" | "pwsh" => code::assess(&spoken(words)),
        "bitsadmin" | "certutil" => http::windows(words),
        "xterm" => sockets::display(words),
        "ztcp" => sockets::ztcp(script, id, words),
        "whois" | "finger" | "cancel" | "lp" | "lpr" | "tar" | "sshfs" | "ab" => {
            services::odd(script, id, words, name)
        }
        _ => None,
    }
}

/// The arguments as one text: a program handed over word by word.
fn spoken(words: &[Word]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(" ")
}

/// `python3 -m http.server`: the directory, to the whole network unless it is bound to this machine.
fn serves_network(words: &[Word]) -> bool {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let server = matches!(
        texts.as_slice(),
        ["-m", "http.server" | "SimpleHTTPServer", ..]
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
