//! Raw connections and remote shells: nc, socat, telnet, openssl, ssh, scp, sftp, rsync.

use stockade_shell::{CommandId, RedirectOp, Script, Stdin, Word, is_shell};

use super::arguments::{Argument, read};
use super::outflow::{Manner, Outflow};
use super::sensitive::{Data, of_path, of_stdin};
use crate::hosts::host_of;

pub(super) fn netcat(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let mut operands = Vec::new();
    let (mut shell, mut listens, mut scans, mut verbose) = (false, false, false, false);
    for argument in read(
        words,
        "ecgGiIkmMopPqsTVwWxX",
        &[
            "exec",
            "sh-exec",
            "lua-exec",
            "proxy",
            "source",
            "wait",
            "idle-timeout",
        ],
    ) {
        match argument {
            Argument::Operand(word) => operands.push(word.text.as_str()),
            // `-k` takes no value in most versions, but then none follows that matters.
            Argument::Option {
                name: "e" | "c" | "exec" | "sh-exec" | "lua-exec",
                value: Some(_),
            } => shell = true,
            Argument::Option { name: "v", .. } => verbose = true,
            Argument::Option {
                name: "l" | "listen",
                ..
            } => listens = true,
            Argument::Option { name: "z", .. } => scans = true,
            Argument::Option { .. } => {}
        }
    }
    shell |= beside_a_shell(script, id);
    let hosts: Vec<String> = operands
        .first()
        .and_then(|host| host_of(host))
        .filter(|host| !host.chars().all(|c| c.is_ascii_digit()))
        .into_iter()
        .collect();
    let data = of_stdin(script, id);
    let manner = match () {
        () if shell => Manner::Shell,
        () if scans => return None,
        // The other end of a remote shell, or a file for whoever comes.
        () if listens && (verbose && hosts.is_empty() || data >= Data::Environment) => {
            Manner::Tunnel
        }
        () if hosts.is_empty() => return None,
        () if data > Data::None => Manner::Send,
        () if listens => return None,
        () => Manner::Contact,
    };
    Some(Outflow {
        rule: if shell {
            "egress.reverse-shell"
        } else {
            "egress.netcat"
        },
        act: "netcat",
        hosts,
        data,
        manner,
        wary: manner == Manner::Send && data > Data::Literal,
    })
}

/// True for a program that only gives back what it gets, or a text of its own.
fn is_harmless(program: &str) -> bool {
    let path = program
        .split([',', ' ', '"', '\''])
        .find(|part| !part.is_empty());
    let name = path.and_then(|path| path.rsplit('/').next());
    // `cat /etc/shadow` is another matter.
    name.is_some_and(|name| ["cat", "date", "echo", "true", "uptime"].contains(&name))
        && !program.trim().contains(' ')
}

pub(super) fn socat(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let mut hosts = Vec::new();
    let (mut shell, mut net, mut data) = (beside_a_shell(script, id), false, Data::None);
    // The terminal of whoever waits for a shell to call back.
    let waits = words.iter().any(|word| word.text.contains("raw,echo=0"));
    for word in words
        .iter()
        .filter(|word| !word.text.starts_with('-') || word.text == "-")
    {
        let lower = word.text.to_ascii_lowercase();
        let (kind, rest) = lower.split_once(':').unwrap_or((&lower, ""));
        match kind {
            "tcp" | "tcp4" | "tcp6" | "tcp-connect" | "udp" | "udp4" | "udp-connect"
            | "openssl" | "openssl-connect" | "ssl" | "udp-sendto" | "sctp" | "socks4a"
            | "proxy" => {
                net = true;
                hosts.extend(host_of(rest));
            }
            "tcp-l" | "udp-l" | "tcp4-l" | "openssl-l" => net = true,
            kind if kind.contains("listen") => net = true,
            "exec" | "system" | "shell" => shell |= !is_harmless(rest),
            "file" | "open" | "gopen" if !rest.contains("creat") && word.text.contains('/') => {
                data = data.max(of_path(rest));
            }
            "-" | "stdin" | "stdio" => data = data.max(of_stdin(script, id)),
            _ => {}
        }
    }
    if !net {
        return None;
    }
    let manner = if shell {
        Manner::Shell
    } else if waits {
        Manner::Tunnel
    } else if hosts.is_empty() {
        return None;
    } else if data > Data::None {
        Manner::Send
    } else {
        Manner::Contact
    };
    Some(Outflow {
        rule: if shell {
            "egress.reverse-shell"
        } else {
            "egress.socat"
        },
        act: "socat",
        hosts,
        data,
        manner,
        wary: false,
    })
}

/// `openssl s_server -quiet`: waits for whoever connects, and shows nothing but what they say.
pub(super) fn waits(words: &[Word]) -> Option<Outflow> {
    words
        .iter()
        .any(|word| word.text == "-quiet")
        .then_some(Outflow {
            rule: "egress.socket",
            act: "a raw connection",
            hosts: Vec::new(),
            data: Data::None,
            manner: Manner::Tunnel,
            wary: false,
        })
}

/// telnet and `openssl s_client`: what is piped in goes out.
pub(super) fn pipe(script: &Script, id: CommandId, words: &[Word]) -> Outflow {
    let is_openssl = words.first().is_some_and(|word| word.text == "s_client");
    let host = if is_openssl {
        words
            .iter()
            .skip_while(|word| word.text != "-connect")
            .nth(1)
    } else {
        words.iter().find(|word| !word.text.starts_with('-'))
    };
    let hosts: Vec<String> = host
        .and_then(|word| host_of(&word.text))
        .into_iter()
        .collect();
    let shell = beside_a_shell(script, id);
    let data = of_stdin(script, id);
    let manner = if shell {
        Manner::Shell
    } else if data > Data::Literal {
        Manner::Send
    } else {
        Manner::Session
    };
    Outflow {
        rule: if shell {
            "egress.reverse-shell"
        } else {
            "egress.socket"
        },
        act: "a raw connection",
        hosts,
        data,
        manner,
        wary: false,
    }
}

pub(super) fn ssh(script: &Script, id: CommandId, words: &[Word], more: &str) -> Option<Outflow> {
    let mut operands = Vec::new();
    let mut reverse = false;
    let short = format!("BbcDEeFIiJLlmOopQRSWw{more}");
    for argument in read(words, &short, &[]) {
        match argument {
            Argument::Operand(word) => operands.push(word.text.as_str()),
            Argument::Option { name: "R", .. } => reverse = true,
            Argument::Option { .. } => {}
        }
    }
    let (host, remote) = operands.split_first()?;
    let hosts: Vec<String> = host_of(host).into_iter().collect();
    let command = script.commands.get(id)?;
    // What a remote command reads comes here; what is piped in goes there.
    let remote_data = remote
        .iter()
        .map(|text| of_path(text))
        .filter(|data| {
            *data == Data::Sensitive
                || remote
                    .iter()
                    .any(|text| text.contains("tar ") && text.contains("/etc"))
        })
        .max();
    let pulled = command
        .redirects
        .iter()
        .any(|redirect| redirect.op == RedirectOp::Write)
        && remote_data.is_some();
    let data = of_stdin(script, id);
    let spoken = remote.join(" ");
    let stores = spoken.contains('>')
        || ["cat ", "dd ", "tee "]
            .iter()
            .any(|verb| spoken.starts_with(verb))
        || spoken.contains("tar x");
    let elsewhere = takes_from_elsewhere(script, id);
    let manner = match () {
        () if reverse => Manner::Tunnel,
        () if data >= Data::Environment => Manner::Send,
        // What another program prints into a file over there is more than a text.
        () if stores && (data == Data::Local || command.stdin == Stdin::Pipe) => Manner::Send,
        () if pulled => Manner::Send,
        () => Manner::Session,
    };
    let data = if pulled {
        Data::Sensitive
    } else if manner == Manner::Send {
        data
    } else {
        Data::None
    };
    Some(Outflow {
        rule: "egress.ssh",
        act: "ssh",
        hosts,
        data,
        manner,
        wary: data > Data::Local || data == Data::Local && elsewhere,
    })
}

/// True if what is piped in was read outside of the working tree.
fn takes_from_elsewhere(script: &Script, id: CommandId) -> bool {
    let redirected = script.commands.get(id).into_iter().flat_map(|command| {
        command
            .redirects
            .iter()
            .map(|redirect| redirect.target.text.as_str())
    });
    script
        .upstream(id)
        .into_iter()
        .filter_map(|before| script.commands.get(before))
        .flat_map(|before| before.args().iter().map(|word| word.text.as_str()))
        .chain(redirected)
        .any(|text| text.starts_with(['/', '~']) && !text.starts_with("/dev/"))
}

/// Kits for handing over a shell: what they are for leaves no doubt.
pub(super) fn kit(words: &[Word], name: &str) -> Option<Outflow> {
    let says = |part: &str| words.iter().any(|word| word.text.contains(part));
    let shell = match name {
        "msfvenom" => says("reverse") || says("bind_") || says("shell"),
        "rcat" | "rustcat" => says("connect") || says("listen"),
        "msfconsole" => says("multi/handler"),
        _ => !words.is_empty() && !says("--help"),
    };
    shell.then(|| Outflow {
        rule: "egress.reverse-shell",
        act: "a kit for remote shells",
        hosts: super::carriers::hosts_in(words),
        data: Data::None,
        manner: Manner::Shell,
        wary: true,
    })
}

/// scp and rsync: local sources to a remote target.
pub(super) fn copy(script: &Script, words: &[Word], name: &'static str) -> Option<Outflow> {
    let short = if name == "scp" { "cFiJloPSD" } else { "eBTfM" };
    let operands: Vec<&Word> = read(
        words,
        short,
        &[
            "rsh",
            "exclude",
            "include",
            "rsync-path",
            "port",
            "files-from",
            "exclude-from",
        ],
    )
    .into_iter()
    .filter_map(|argument| match argument {
        Argument::Operand(word) => Some(word),
        Argument::Option { .. } => None,
    })
    .collect();
    let (target, sources) = operands.split_last()?;
    let Some(host) = remote_host(&target.text) else {
        return fetched(sources, target, name);
    };
    let local: Vec<&&Word> = sources
        .iter()
        .filter(|word| remote_host(&word.text).is_none())
        .collect();
    let data = local
        .iter()
        .map(|word| of_source(script, word))
        .max()
        .unwrap_or(Data::Literal);
    Some(Outflow {
        rule: "egress.copy",
        act: name,
        hosts: vec![host],
        data,
        manner: Manner::Send,
        wary: data > Data::Literal,
    })
}

/// A copy from another host, which is told as a download is. Tools are brought in so: to places
/// where anyone may write, from a host that need not have a full name.
fn fetched(sources: &[&Word], target: &Word, name: &'static str) -> Option<Outflow> {
    const STAGING: [&str; 3] = ["/tmp/", "/var/tmp/", "/dev/shm/"];
    let hosts: Vec<String> = sources
        .iter()
        .filter_map(|word| remote_host(&word.text))
        .collect();
    let staged = STAGING.iter().any(|place| target.text.starts_with(place));
    let account = sources.iter().any(|word| word.text.contains('@'));
    (!hosts.is_empty()).then_some(Outflow {
        rule: "egress.copy",
        act: name,
        hosts,
        data: Data::None,
        manner: Manner::Contact,
        wary: staged && account,
    })
}

/// A source in the working tree is work; one elsewhere is taken from the machine.
fn of_source(script: &Script, word: &Word) -> Data {
    let path = of_path(&word.text).max(super::sensitive::of_word(script, word));
    let relative = !word.text.starts_with(['/', '~']) || word.text.starts_with("/path/to");
    if path == Data::Local && relative {
        Data::Literal
    } else {
        path
    }
}

/// The host of `[user@]host:path`, as scp tells it from a file name.
pub(super) fn remote_host(text: &str) -> Option<String> {
    if let Some(rest) = text
        .strip_prefix("rsync://")
        .or_else(|| text.strip_prefix("sftp://"))
    {
        return host_of(rest);
    }
    let (host, _) = text.split_once(':')?;
    (!host.contains('/') && !host.is_empty())
        .then(|| host_of(host).unwrap_or_else(|| "unknown".to_owned()))
}

/// sftp, ftp, tftp, lftp, smbclient: a `put` in what they are told.
pub(super) fn transfer(
    script: &Script,
    id: CommandId,
    words: &[Word],
    name: &'static str,
) -> Option<Outflow> {
    let command = script.commands.get(id)?;
    let told = words.iter().map(|word| word.text.as_str()).chain(
        command
            .redirects
            .iter()
            .map(|redirect| redirect.target.text.as_str()),
    );
    let stdin_text = match &command.stdin {
        Stdin::Text(word) => Some(word.text.as_str()),
        _ => None,
    };
    let later = script
        .commands
        .iter()
        .skip(id + 1)
        .find(|next| matches!(next.name(), Some("put" | "mput" | "send")));
    let put = told.chain(stdin_text).find_map(put_path);
    let data = match (&put, later) {
        (Some(path), _) => Some(of_path(path)),
        (None, Some(next)) => Some(
            next.args()
                .first()
                .map_or(Data::Local, |word| of_path(&word.text)),
        ),
        (None, None) => None,
    };
    let host = words
        .iter()
        .find(|word| word.text.contains("://"))
        .or_else(|| words.iter().find(|word| !word.text.starts_with('-')))
        .and_then(|word| remote_host(&word.text).or_else(|| host_of(&word.text)));
    let hosts: Vec<String> = host.into_iter().collect();
    let manner = if data.is_some() {
        Manner::Send
    } else {
        Manner::Session
    };
    let data = data.unwrap_or_default();
    Some(Outflow {
        rule: "egress.transfer",
        act: name,
        hosts,
        data,
        manner,
        wary: data > Data::Literal,
    })
}

fn put_path(text: &str) -> Option<String> {
    let mut words = text
        .split([' ', '\n', ';', '"', '\''])
        .filter(|word| !word.is_empty());
    let verb = words.find(|word| matches!(*word, "put" | "mput" | "send" | "mirror"))?;
    let path = words.next().unwrap_or("-");
    // lftp mirrors here unless it is told the reverse.
    match verb {
        "mirror" if !matches!(path, "-R" | "--reverse") => None,
        "mirror" => Some(words.next().unwrap_or(".").to_owned()),
        _ => Some(path.to_owned()),
    }
}

/// True if a shell reads from or writes to this command: `nc host | sh`, `sh | telnet host`.
fn beside_a_shell(script: &Script, id: CommandId) -> bool {
    let Some(command) = script.commands.get(id) else {
        return false;
    };
    let is_interactive = |other: &stockade_shell::Command| {
        other.name().is_some_and(is_shell)
            && other
                .words
                .iter()
                .skip(1)
                .all(|word| word.text.starts_with('-') && word.text != "-c")
    };
    script
        .commands
        .iter()
        .filter(|other| {
            other.pipeline == command.pipeline
                && other.parent.is_none()
                && other.stage != command.stage
        })
        .any(is_interactive)
}

/// `xterm -display host:1`: a terminal on someone else's screen.
pub(super) fn display(words: &[Word]) -> Option<Outflow> {
    let target = words
        .iter()
        .skip_while(|word| word.text != "-display")
        .nth(1)?;
    let host = host_of(&target.text)?;
    // `:0` is the screen in front of the user.
    (!target.text.starts_with(':')).then(|| Outflow {
        rule: "egress.reverse-shell",
        act: "a terminal on another screen",
        hosts: vec![host],
        data: Data::None,
        manner: Manner::Shell,
        wary: true,
    })
}

/// zsh's own connections.
pub(super) fn ztcp(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let host = words
        .iter()
        .find(|word| !word.text.starts_with('-'))
        .and_then(|word| host_of(&word.text))?;
    let shell = super::command::is_wired(script, id);
    Some(Outflow {
        rule: if shell {
            "egress.reverse-shell"
        } else {
            "egress.socket"
        },
        act: "a raw connection",
        hosts: vec![host],
        data: Data::None,
        manner: if shell {
            Manner::Shell
        } else {
            Manner::Contact
        },
        wary: shell,
    })
}
