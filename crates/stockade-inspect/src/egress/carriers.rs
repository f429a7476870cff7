//! Programs that carry data somewhere though that is not what they are known for: clients of
//! queues, shares and stores, packet makers, loggers.
//!
//! Their options differ too much to read each one's. What they send is told by what stands on
//! the command line: a host, and with it a file, the environment or the output of a command.

use stockade_shell::{CommandId, Script, Word};

use super::code::is_file_name;
use super::outflow::{Manner, Outflow};
use super::sensitive::{Data, of_path, of_stdin, of_word};
use crate::hosts::host_of;

/// What a program is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Uploads: whatever it is given goes to the host it is given.
    Upload,
    /// Speaks with a server: worth a finding only if what it says was taken from the machine.
    Talk,
    /// Keeps files at a service that its own settings name: only what is sensitive counts.
    Store,
}

/// Programs, what they are for, and a word without which they send nothing.
const PROGRAMS: [(&str, Purpose, &str); 54] = [
    ("azcopy", Purpose::Upload, ""),
    ("bbcp", Purpose::Upload, ""),
    ("cadaver", Purpose::Upload, ""),
    ("certreq", Purpose::Upload, ""),
    ("ftpput", Purpose::Upload, ""),
    ("hg", Purpose::Upload, "push"),
    ("ncftpput", Purpose::Upload, ""),
    ("rcp", Purpose::Upload, ""),
    ("sendEmail", Purpose::Upload, ""),
    ("sendemail", Purpose::Upload, ""),
    ("svn", Purpose::Upload, "import"),
    ("tftp", Purpose::Upload, "-p"),
    ("wput", Purpose::Upload, ""),
    ("amqp-publish", Purpose::Talk, ""),
    ("bcp", Purpose::Talk, ""),
    ("consul", Purpose::Talk, "put"),
    ("etcdctl", Purpose::Talk, "put"),
    ("grpcurl", Purpose::Talk, ""),
    ("hping3", Purpose::Talk, ""),
    ("kafkacat", Purpose::Talk, ""),
    ("kcat", Purpose::Talk, ""),
    ("ldapadd", Purpose::Talk, ""),
    ("ldapmodify", Purpose::Talk, ""),
    ("logger", Purpose::Talk, ""),
    ("mosquitto_pub", Purpose::Talk, ""),
    ("mysql", Purpose::Talk, ""),
    ("nats", Purpose::Talk, "pub"),
    ("nmap", Purpose::Talk, ""),
    ("nping", Purpose::Talk, ""),
    ("psql", Purpose::Talk, ""),
    ("redis-cli", Purpose::Talk, ""),
    ("rlogin", Purpose::Talk, ""),
    ("rsh", Purpose::Talk, ""),
    ("snmpset", Purpose::Talk, ""),
    ("websocat", Purpose::Talk, ""),
    ("wscat", Purpose::Talk, ""),
    ("b2", Purpose::Store, ""),
    ("dbxcli", Purpose::Store, "put"),
    ("doctl", Purpose::Store, ""),
    ("dropbox_uploader.sh", Purpose::Store, "upload"),
    ("ffsend", Purpose::Store, ""),
    ("gdrive", Purpose::Store, ""),
    ("huggingface-cli", Purpose::Store, "upload"),
    ("ipfs", Purpose::Store, "add"),
    ("keybase", Purpose::Store, ""),
    ("linode-cli", Purpose::Store, ""),
    ("magic-wormhole", Purpose::Store, ""),
    ("mega-put", Purpose::Store, ""),
    ("megaput", Purpose::Store, ""),
    ("swift", Purpose::Store, "upload"),
    ("syncthing", Purpose::Store, ""),
    ("telegram-send", Purpose::Store, ""),
    ("telegram-upload", Purpose::Store, ""),
    ("wrangler", Purpose::Store, "put"),
];

/// What a program of the table sends.
pub(super) fn carry(script: &Script, id: CommandId, words: &[Word], name: &str) -> Option<Outflow> {
    let (_, purpose, verb) = PROGRAMS.iter().find(|row| row.0 == name)?;
    if !verb.is_empty() && !words.iter().any(|word| word.text == *verb) {
        return None;
    }
    let hosts = hosts_in(words);
    let taken = words
        .iter()
        // A credential for the service itself.
        .filter(|word| !word.text.to_ascii_lowercase().starts_with("authorization"))
        .map(|word| of_word(script, word).max(named(&word.text)))
        .max()
        .unwrap_or_default()
        .max(of_stdin(script, id));
    let (data, manner) = match purpose {
        Purpose::Upload if !hosts.is_empty() => (taken.max(Data::Local), Manner::Send),
        Purpose::Talk if !hosts.is_empty() && taken >= Data::Environment => (taken, Manner::Send),
        Purpose::Store if taken == Data::Sensitive => (taken, Manner::Publish),
        Purpose::Upload | Purpose::Talk | Purpose::Store => return None,
    };
    Some(Outflow {
        rule: "egress.carrier",
        act: "a program not made for it",
        hosts,
        data,
        manner,
        wary: false,
    })
}

/// A word that names data worth more than an ordinary file; `name=value` by its value.
fn named(text: &str) -> Data {
    if text.starts_with("--") && !text.contains('=') {
        return Data::None;
    }
    match of_path(text) {
        Data::Local => Data::None,
        data => data,
    }
}

/// Hosts on a command line: URLs, addresses, `user@host`, shares, and names with a point.
pub(super) fn hosts_in(words: &[Word]) -> Vec<String> {
    let mut hosts: Vec<String> = words
        .iter()
        .flat_map(|word| {
            let value = word.text.split_once('=').map(|(_, value)| value);
            [Some(word.text.as_str()), value]
        })
        .flatten()
        .filter_map(host_in)
        .collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

fn host_in(text: &str) -> Option<String> {
    if let Some((scheme, _)) = text.split_once("://") {
        return host_of(text).filter(|_| !matches!(scheme, "file" | "unix" | "fileb"));
    }
    let share = text
        .strip_prefix("//")
        .or_else(|| text.strip_prefix("\\\\"));
    if let Some(share) = share {
        return host_of(share);
    }
    if text.starts_with(['/', '-', '.', '~']) {
        return None;
    }
    let host = host_of(text)?;
    let address = host.parse::<std::net::IpAddr>().is_ok();
    let name = host.contains('.')
        && !text.contains('/')
        && !host.starts_with('.')
        && host
            .rsplit('.')
            .next()
            .is_some_and(|end| end.len() >= 2 && end.chars().all(|c| c.is_ascii_alphabetic()))
        && !is_file_name(&host);
    (address || name || text.contains('@')).then_some(host)
}

/// Mounting another machine's share is a session; copying into it in the same script sends.
pub(super) fn mount(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let kind = words
        .iter()
        .skip_while(|word| word.text != "-t")
        .nth(1)
        .map(|word| word.text.as_str());
    if !matches!(
        kind,
        Some("cifs" | "smbfs" | "davfs" | "nfs" | "nfs4" | "fuse.sshfs")
    ) {
        return None;
    }
    let hosts = words
        .iter()
        .filter_map(|word| host_in(&word.text).or_else(|| super::sockets::remote_host(&word.text)))
        .take(1)
        .collect();
    copied_later(script, id).map(|data| Outflow {
        rule: "egress.mount",
        act: "a mounted share",
        hosts,
        data,
        manner: Manner::Send,
        wary: data == Data::Sensitive,
    })
}

/// What later commands of the script copy somewhere else, if it is sensitive.
fn copied_later(script: &Script, id: CommandId) -> Option<Data> {
    script
        .commands
        .iter()
        .skip(id + 1)
        .filter(|next| matches!(next.name(), Some("cp" | "mv" | "rsync" | "install" | "tar")))
        .flat_map(stockade_shell::Command::args)
        .map(|word| of_path(&word.text))
        .max()
        .filter(|data| *data == Data::Sensitive)
}
