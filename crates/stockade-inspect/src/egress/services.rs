//! Forges, registries, mail, names, tunnels.

use stockade_shell::{CommandId, Script, Word};

use super::arguments::{Argument, read};
use super::http::encoded_label;
use super::outflow::{Manner, Outflow};
use super::sensitive::{Data, of_command, of_path, of_stdin, of_word};
use crate::hosts::{Standing, host_of, standing};

fn operands<'a>(words: &'a [Word], short: &str, long: &[&str]) -> Vec<&'a Word> {
    read(words, short, long)
        .into_iter()
        .filter_map(|argument| match argument {
            Argument::Operand(word) => Some(word),
            Argument::Option { .. } => None,
        })
        .collect()
}

pub(super) fn has(words: &[Word], text: &str) -> bool {
    words.iter().any(|word| word.text == text)
}

/// The word after an option.
pub(super) fn after_word<'a>(words: &'a [Word], flag: &str) -> Option<&'a Word> {
    words
        .iter()
        .position(|word| word.text == flag)
        .and_then(|at| words.get(at + 1))
}

/// `git push URL`, and a push to a remote that the same script adds.
pub(super) fn git(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let plain = operands(words, "Cc", &["git-dir", "work-tree"]);
    let texts: Vec<&str> = plain.iter().map(|word| word.text.as_str()).collect();
    let (verb, rest) = texts.split_first()?;
    let host = match (*verb, rest) {
        ("push", rest) => {
            let target = *rest.first().unwrap_or(&"origin");
            if is_repository_url(target) {
                Some(target.to_owned())
            } else {
                added_remote(script, id, target)
            }
        }
        _ => None,
    }?;
    let hosts: Vec<String> = super::sockets::remote_host(&host)
        .filter(|_| !host.contains("://"))
        .or_else(|| host_of(&host))
        .into_iter()
        .collect();
    Some(Outflow {
        rule: "egress.git-push",
        act: "git push to a new remote",
        hosts,
        data: Data::Local,
        manner: Manner::Send,
        wary: false,
    })
}

fn is_repository_url(text: &str) -> bool {
    text.contains("://") || (text.contains('@') && text.contains(':'))
}

/// The URL that an earlier command of the script gave to a remote.
fn added_remote(script: &Script, id: CommandId, name: &str) -> Option<String> {
    script.commands.iter().take(id).find_map(|command| {
        let texts: Vec<&str> = command
            .words
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        match texts.as_slice() {
            ["git", "remote", "add" | "set-url", .., remote, url] if *remote == name => {
                Some((*url).to_owned())
            }
            ["git", "config", .., key, url]
                if key
                    .strip_prefix("remote.")
                    .and_then(|key| key.strip_suffix("url"))
                    .is_some_and(|key| key.split('.').next() == Some(name)) =>
            {
                Some((*url).to_owned())
            }
            _ => None,
        }
    })
}

/// Gists and other pastes made by a forge's client.
pub(super) fn forge(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let (rule, files, public) = match texts.as_slice() {
        ["gist" | "snippet", "create" | "edit", rest @ ..] => ("egress.gist", rest, true),
        ["release", "upload", rest @ ..] => ("egress.release", rest, false),
        ["api", rest @ ..] | ["issue" | "pr", "create" | "comment", rest @ ..] => {
            ("egress.forge", rest, false)
        }
        _ => return None,
    };
    let named = words
        .iter()
        .filter(|word| files.contains(&word.text.as_str()))
        .map(|word| of_word(script, word))
        .max()
        .unwrap_or_default();
    let paths = files
        .iter()
        .filter(|text| !text.starts_with('-'))
        .map(|path| of_path(path))
        .filter(|data| *data > Data::Local)
        .max()
        .unwrap_or_default();
    let data = named.max(paths).max(of_stdin(script, id));
    (public || data > Data::Local).then(|| Outflow {
        rule,
        act: "a forge's client",
        hosts: Vec::new(),
        data: if data == Data::Local {
            Data::Literal
        } else {
            data
        },
        manner: Manner::Publish,
        wary: false,
    })
}

/// `npm publish`, `cargo publish`, `twine upload`, `gem push`, `docker push`.
pub(super) fn publish(words: &[Word], name: &str) -> Option<Outflow> {
    let verb = words
        .iter()
        .find(|word| !word.text.starts_with('-'))?
        .text
        .as_str();
    let publishes = matches!(
        (name, verb),
        (
            "npm"
                | "yarn"
                | "pnpm"
                | "cargo"
                | "poetry"
                | "uv"
                | "flit"
                | "hatch"
                | "bun"
                | "deno"
                | "vsce"
                | "ovsx",
            "publish"
        ) | ("twine", "upload")
            | ("gem" | "docker" | "podman" | "helm" | "nuget", "push")
    );
    let registry = words.iter().find_map(|word| {
        let value = word
            .text
            .strip_prefix("--registry=")
            .or_else(|| word.text.strip_prefix("--repository-url="))
            .or_else(|| word.text.strip_prefix("--publish-url="));
        value
            .or_else(|| word.text.contains("://").then_some(word.text.as_str()))
            .and_then(host_of)
    });
    // A registry of the user's own choosing is named in the settings, not on the command line.
    let foreign = registry
        .as_deref()
        .is_some_and(|host| standing(host) == Standing::Unknown);
    publishes.then(|| Outflow {
        rule: "egress.publish",
        act: "publishing a package",
        hosts: registry.into_iter().collect(),
        data: Data::Literal,
        manner: if foreign {
            Manner::Send
        } else {
            Manner::Publish
        },
        wary: false,
    })
}

/// mail, mutt, sendmail, swaks.
pub(super) fn mail(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let mut attached = Data::None;
    let mut hosts = Vec::new();
    for argument in read(
        words,
        "aAsrcbtfhS",
        &["attach", "to", "from", "server", "header", "body"],
    ) {
        match argument {
            Argument::Option {
                name: "a" | "A" | "attach",
                value: Some(value),
            } => attached = attached.max(of_path(value.text.trim_start_matches('@'))),
            Argument::Option {
                name: "to" | "t",
                value: Some(value),
            } => hosts.extend(address_host(value.text)),
            Argument::Option {
                name: "body",
                value: Some(value),
            } => {
                attached = attached.max(
                    value
                        .text
                        .strip_prefix('@')
                        .map_or_else(|| of_word(script, value.word), of_path),
                );
            }
            Argument::Operand(word) => hosts.extend(address_host(&word.text)),
            Argument::Option { .. } => {}
        }
    }
    let data = attached.max(of_stdin(script, id));
    if hosts.is_empty() || data == Data::None {
        return None;
    }
    let sends = attached > Data::None || data >= Data::Environment;
    Some(Outflow {
        rule: "egress.mail",
        act: "mail",
        hosts,
        data,
        manner: if sends { Manner::Send } else { Manner::Publish },
        wary: false,
    })
}

fn address_host(text: &str) -> Option<String> {
    text.contains('@').then(|| host_of(text)).flatten()
}

/// Names to resolve that carry data in their labels, and pings that carry it as their filling.
pub(super) fn names(script: &Script, words: &[Word]) -> Option<Outflow> {
    let mut hosts = Vec::new();
    let mut data = Data::None;
    let filling = words.iter().skip_while(|word| word.text != "-p").nth(1);
    if let Some(word) = filling.filter(|word| !word.holes.is_empty()) {
        data = data.max(of_word(script, word)).max(Data::Local);
        hosts.extend(words.last().and_then(|word| host_of(&word.text)));
    }
    for word in words
        .iter()
        .filter(|word| !word.text.starts_with(['-', '+', '@']))
    {
        let inserted = word
            .substitutions()
            .flatten()
            .map(|id| of_command(script, id))
            .max()
            .unwrap_or_default();
        let variables = word.variables().next().is_some();
        // `$(…).host`: a lookup of `hostname` alone sends no one anything.
        let suffix = word.text.rsplit(['$', ')', '}']).next().unwrap_or_default();
        let labelled = suffix.contains('.') && suffix.trim_matches('.').contains('.');
        // What xargs puts in.
        let filled = ["{}.", "%.", "@."]
            .iter()
            .any(|hole| word.text.starts_with(hole))
            && labelled;
        if (labelled && (inserted > Data::None || variables)) || filled || encoded_label(&word.text)
        {
            data = data.max(inserted).max(Data::Local);
            hosts.extend(host_of(
                suffix
                    .trim_start_matches(|c: char| c != '.')
                    .trim_matches('.'),
            ));
        }
    }
    (data > Data::None).then_some(Outflow {
        rule: "egress.dns-tunnel",
        act: "a DNS lookup",
        hosts,
        data,
        manner: Manner::Covert,
        wary: false,
    })
}

/// Clients of services that hand a file to whoever has the code or the link.
pub(super) fn drop_off(
    script: &Script,
    id: CommandId,
    words: &[Word],
    name: &str,
) -> Option<Outflow> {
    let pastes = matches!(name, "pastebinit" | "wgetpaste");
    if matches!(name, "croc" | "wormhole") && !has(words, "send") {
        return None;
    }
    let files = words
        .iter()
        .filter(|word| !word.text.starts_with('-') && word.text != "send")
        .map(|word| of_path(&word.text))
        .max();
    let data = files.unwrap_or_default().max(of_stdin(script, id));
    (data > Data::None).then(|| Outflow {
        rule: "egress.drop",
        act: "a file-sharing client",
        hosts: Vec::new(),
        data,
        manner: if pastes || data > Data::Local {
            Manner::Send
        } else {
            Manner::Publish
        },
        wary: true,
    })
}

/// A web server for a directory, on every address of the machine.
pub(super) const fn serve() -> Outflow {
    Outflow {
        rule: "egress.serve",
        act: "a file server",
        hosts: Vec::new(),
        data: Data::Local,
        manner: Manner::Tunnel,
        wary: false,
    }
}

/// Packages that are fetched and run: `npx localtunnel`, `npx http-server /`.
pub(super) fn fetched(words: &[Word]) -> Option<Outflow> {
    let at = words.iter().position(|word| !word.text.starts_with('-'))?;
    let (name, rest) = (words.get(at)?.text.as_str(), words.get(at + 1..)?);
    match name {
        "localtunnel" | "lt" => tunnel(rest, name),
        "http-server" | "serve" if rest.iter().any(|word| word.text.starts_with(['/', '~'])) => {
            Some(serve())
        }
        _ => None,
    }
}

/// Tunnels that open this machine to the outside.
pub(super) fn tunnel(words: &[Word], name: &str) -> Option<Outflow> {
    let opens = match name {
        "cloudflared" => has(words, "tunnel") && !has(words, "list"),
        "ngrok" => ["http", "tcp", "tls", "start"]
            .iter()
            .any(|verb| has(words, verb)),
        "chisel" => has(words, "client"),
        "lt" | "localtunnel" => words
            .iter()
            .any(|word| word.text.starts_with("--port") || word.text == "-p"),
        "bore" => has(words, "local"),
        "tailscale" => has(words, "funnel") && !has(words, "status"),
        "devtunnel" => has(words, "host"),
        "zrok" => has(words, "share"),
        "frpc" | "gost" | "iodine" | "dnscat" | "dnscat2" | "ligolo-agent" | "ptunnel"
        | "ptunnel-ng" => !words.is_empty(),
        "sshuttle" => has(words, "-r"),
        _ => false,
    };
    let named = after_word(words, "--to").or_else(|| after_word(words, "--server"));
    let hosts: Vec<String> = words
        .iter()
        .filter(|word| word.text.contains(':') && !word.text.starts_with("R:"))
        .chain(named)
        .filter_map(|word| host_of(&word.text))
        .filter(|host| standing(host) == Standing::Unknown)
        .collect();
    // These are run by hand against one's own server as often as not.
    let own = matches!(name, "bore" | "chisel" | "frpc" | "gost") && hosts.is_empty();
    let manner = if own { Manner::Publish } else { Manner::Tunnel };
    opens.then_some(Outflow {
        rule: "egress.tunnel",
        act: "a tunnel",
        hosts,
        data: Data::None,
        manner,
        wary: false,
    })
}

/// Programs that were not made for sending but do: whois, finger, tar over ssh, lp, sshfs.
pub(super) fn odd(script: &Script, id: CommandId, words: &[Word], name: &str) -> Option<Outflow> {
    let option = |flag: &str| {
        words
            .iter()
            .position(|word| word.text == flag)
            .and_then(|at| words.get(at + 1))
    };
    let target = match name {
        "whois" | "cancel" | "lp" | "lpr" => option("-h").or_else(|| option("-H"))?.text.clone(),
        "finger" => words
            .iter()
            .find(|word| word.text.contains('@') && word.substitutions().next().is_some())?
            .text
            .clone(),
        "tar" => words
            .iter()
            .find(|word| {
                word.text.contains('@')
                    && word.text.contains(':')
                    && words
                        .iter()
                        .any(|other| other.text.starts_with("--rsh-command"))
            })?
            .text
            .clone(),
        "sshfs" => {
            let remote = words.iter().find(|word| word.text.contains(':'))?;
            // Mounting is a session; a copy into it in the same script sends.
            let copies = script
                .commands
                .iter()
                .skip(id + 1)
                .any(|next| matches!(next.name(), Some("cp" | "mv" | "rsync")));
            if !copies {
                return None;
            }
            remote.text.clone()
        }
        "ab" => words
            .iter()
            .find(|word| word.text.contains("://"))
            .filter(|_| option("-p").is_some())?
            .text
            .clone(),
        _ => return None,
    };
    let host = super::sockets::remote_host(&target).or_else(|| host_of(&target));
    let data = words
        .iter()
        .map(|word| of_path(&word.text).max(of_word(script, word)))
        .filter(|data| *data > Data::Local)
        .max()
        .unwrap_or(Data::Local);
    Some(Outflow {
        rule: "egress.unusual",
        act: "a program not made for it",
        hosts: host.into_iter().collect(),
        data,
        manner: Manner::Send,
        wary: false,
    })
}
