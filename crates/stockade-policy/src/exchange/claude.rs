//! Settings of Claude Code: `sandbox` and `permissions`.

use serde::Deserialize;

use super::srt::{Filesystem, Network, add_files, add_network};
use super::{ImportError, Imported, read_json};
use crate::profile::{BuiltIn, NetworkMode};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    sandbox: Sandbox,
    permissions: Permissions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Sandbox {
    network: Network,
    filesystem: Filesystem,
    excluded_commands: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Permissions {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    additional_directories: Vec<String>,
    default_mode: Option<String>,
}

pub(super) fn import(text: &str) -> Result<Imported, ImportError> {
    let settings: Settings = read_json(text)?;
    let mut imported = Imported::default();
    imported.draft.extends = Some(BuiltIn::WorkspaceWrite);
    imported.draft.mode = Some(NetworkMode::Off);
    add_network(&settings.sandbox.network, &mut imported);
    add_files(&settings.sandbox.filesystem, &mut imported);
    for command in &settings.sandbox.excluded_commands {
        imported.note(format!(
            "`{command}` is confined too: no command is excluded"
        ));
    }
    let permissions = settings.permissions;
    imported
        .draft
        .write
        .extend(permissions.additional_directories);
    for rule in &permissions.allow {
        add_rule(rule, Verdict::Allow, &mut imported);
    }
    for rule in &permissions.deny {
        add_rule(rule, Verdict::Deny, &mut imported);
    }
    for rule in &permissions.ask {
        imported.note(format!("`{rule}`: nobody is asked; denied unless allowed"));
    }
    if let Some(mode) = permissions.default_mode {
        imported.note(format!(
            "`defaultMode` `{mode}` is about questions, not access"
        ));
    }
    Ok(imported)
}

#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Allow,
    Deny,
}

/// `Tool(argument)`.
fn add_rule(rule: &str, verdict: Verdict, imported: &mut Imported) {
    let parts = rule
        .split_once('(')
        .and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?)));
    let draft = &mut imported.draft;
    match (parts, verdict) {
        (Some(("Read", path)), Verdict::Deny) => draft.deny_read.push(own_path(path)),
        // Everything but credentials is readable; a grant could open those.
        (Some(("Read", _)), Verdict::Allow) => {
            imported.note(format!("`{rule}`: what is not hidden is readable already"));
        }
        (Some(("Edit" | "Write", path)), Verdict::Deny) => draft.deny_write.push(own_path(path)),
        (Some(("Edit" | "Write", path)), Verdict::Allow) => draft.write.push(own_path(path)),
        (Some(("WebFetch", domain)), verdict) if domain.starts_with("domain:") => {
            let domain = domain.trim_start_matches("domain:").to_owned();
            let network = match verdict {
                Verdict::Allow => Network {
                    allowed_domains: vec![domain],
                    ..Network::default()
                },
                Verdict::Deny => Network {
                    denied_domains: vec![domain],
                    ..Network::default()
                },
            };
            add_network(&network, imported);
        }
        _ => imported.note(format!("`{rule}` is about a tool, not about access")),
    }
}

/// A pattern of Claude Code: `//x` is absolute, `/x` is below the project, `x/**` is all of `x`.
fn own_path(path: &str) -> String {
    let path = path.strip_suffix("/**").unwrap_or(path);
    match path.strip_prefix("//") {
        Some(absolute) => format!("/{absolute}"),
        None => match path.strip_prefix('/') {
            Some(below) => format!("./{below}"),
            None => path.to_owned(),
        },
    }
}
