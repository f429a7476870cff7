//! Codex's `config.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ImportError, Imported};
use crate::profile::{BuiltIn, NetworkMode};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    sandbox_mode: Option<String>,
    sandbox_workspace_write: WorkspaceWrite,
    shell_environment_policy: Environment,
    approval_policy: Option<toml::Value>,
    default_permissions: Option<toml::Value>,
    permissions: Option<toml::Value>,
    profiles: Option<toml::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WorkspaceWrite {
    writable_roots: Vec<String>,
    network_access: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Environment {
    include_only: Vec<String>,
    set: BTreeMap<String, String>,
}

pub(super) fn import(text: &str) -> Result<Imported, ImportError> {
    let config: Config =
        toml::from_str(text).map_err(|error| ImportError(error.message().to_owned()))?;
    let mut imported = Imported::default();
    let draft = &mut imported.draft;
    draft.mode = Some(NetworkMode::Off);
    match config.sandbox_mode.as_deref() {
        Some("workspace-write") => {
            draft.extends = Some(BuiltIn::WorkspaceWrite);
            draft.write = config.sandbox_workspace_write.writable_roots;
            if config.sandbox_workspace_write.network_access {
                draft.mode = Some(NetworkMode::Open);
            }
        }
        Some("danger-full-access") => {
            draft.extends = Some(BuiltIn::DangerFullAccess);
            draft.mode = None;
        }
        None | Some("read-only") => draft.extends = Some(BuiltIn::ReadOnly),
        Some(other) => return Err(ImportError(format!("the mode `{other}` is not known"))),
    }
    draft.set = config.shell_environment_policy.set;
    for name in config.shell_environment_policy.include_only {
        if name.contains(['*', '?']) {
            imported.note(format!("the variables `{name}` are left out: name each"));
        } else {
            imported.draft.keep.push(name);
        }
    }
    imported.note("credentials are hidden here, and `/tmp` is private");
    let others = [
        ("approval_policy", config.approval_policy),
        ("default_permissions", config.default_permissions),
        ("permissions", config.permissions),
        ("profiles", config.profiles),
    ];
    for (key, _) in others.iter().filter(|(_, value)| value.is_some()) {
        imported.note(format!("`{key}` is left out"));
    }
    Ok(imported)
}
