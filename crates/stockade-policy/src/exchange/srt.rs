//! Settings of Anthropic's sandbox-runtime.

use serde::Deserialize;

use super::{ImportError, Imported, read_json};
use crate::host::{HostPattern, HostSet};
use crate::profile::{BuiltIn, NetworkMode};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Settings {
    network: Network,
    filesystem: Filesystem,
}

/// The part that Claude Code's settings have too.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Network {
    pub(super) allowed_domains: Vec<String>,
    pub(super) denied_domains: Vec<String>,
    pub(super) allow_unix_sockets: Vec<String>,
    pub(super) allow_all_unix_sockets: bool,
}

/// The part that Claude Code's settings have too.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Filesystem {
    pub(super) deny_read: Vec<String>,
    pub(super) allow_read: Vec<String>,
    pub(super) allow_write: Vec<String>,
    pub(super) deny_write: Vec<String>,
}

pub(super) fn import(text: &str) -> Result<Imported, ImportError> {
    let settings: Settings = read_json(text)?;
    let mut imported = Imported::default();
    // There nothing is writable that is not listed, not even the working directory.
    imported.draft.extends = Some(BuiltIn::ReadOnly);
    imported.draft.mode = Some(NetworkMode::Off);
    imported.note("credentials are hidden here, in srt only what `denyRead` lists");
    add_network(&settings.network, &mut imported);
    add_files(&settings.filesystem, &mut imported);
    Ok(imported)
}

pub(super) fn add_network(network: &Network, imported: &mut Imported) {
    for domain in &network.allowed_domains {
        match HostPattern::parse(domain) {
            Ok(pattern) => {
                if pattern.port().is_none() {
                    imported.note(format!(
                        "`{domain}`: here that means ports 80 and 443, in srt every port"
                    ));
                }
                imported.draft.allow.push(domain.clone());
            }
            Err(error) => imported.note(format!("the host `{domain}` is left out: {error}")),
        }
    }
    let apexes: Vec<String> = network
        .allowed_domains
        .iter()
        .filter_map(|domain| apex(domain, &network.allowed_domains))
        .collect();
    for apex in apexes {
        imported.note(format!(
            "`*.{apex}` means names below `{apex}` in srt and includes `{apex}` here: that is blocked"
        ));
        imported.draft.block.push(apex);
    }
    for domain in &network.denied_domains {
        match HostPattern::parse_block(domain) {
            Ok(_) => imported.draft.block.push(domain.clone()),
            Err(error) => imported.note(format!(
                "the denied host `{domain}` is left out, check what is allowed: {error}"
            )),
        }
    }
    imported
        .draft
        .unix
        .extend(network.allow_unix_sockets.iter().cloned());
    if network.allow_all_unix_sockets {
        imported.note("`allowAllUnixSockets` is left out: sockets are granted one by one");
    }
}

/// The name that a pattern for names below it includes here and not there, unless it is listed
/// with the same port.
fn apex(domain: &str, all: &[String]) -> Option<String> {
    let below = domain.strip_prefix("*.")?;
    let (below, pattern) = (
        HostPattern::parse(below).ok()?,
        HostPattern::parse(domain).ok()?,
    );
    let is_listed = all.iter().any(|other| {
        let other = HostPattern::parse(other);
        other.is_ok_and(|other| other.hosts() == below.hosts() && other.port() == pattern.port())
    });
    let HostSet::Exact(name) = below.hosts() else {
        return None;
    };
    (!is_listed).then(|| name.to_string())
}

pub(super) fn add_files(files: &Filesystem, imported: &mut Imported) {
    let draft = &mut imported.draft;
    draft.read.extend(files.allow_read.iter().cloned());
    draft.write.extend(files.allow_write.iter().cloned());
    draft.deny_read.extend(files.deny_read.iter().cloned());
    draft.deny_write.extend(files.deny_write.iter().cloned());
    // There a denied write wins over every grant, here the longer path does.
    let mut lost = Vec::new();
    draft.write.retain(|path| {
        let is_denied = files.deny_write.iter().any(|denied| is_below(path, denied));
        if is_denied {
            lost.push(path.clone());
        }
        !is_denied
    });
    for path in lost {
        imported.note(format!("`{path}` stays read-only: `denyWrite` wins in srt"));
    }
}

fn is_below(path: &str, above: &str) -> bool {
    let above = above.trim_end_matches('/');
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
