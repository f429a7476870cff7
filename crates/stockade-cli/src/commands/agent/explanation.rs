//! What an agent may do, in five lines: printed the first time, and again when it has changed.

use std::fs;
use std::path::{Path, PathBuf};

use stockade_policy::{Agent, AgentGrants, KeyUse};

use crate::args::RunArgs;
use crate::output::{self, Format};
use crate::resolve::Place;

/// Prints the explanation unless it is the one that was printed before.
pub(super) fn explain_once(
    name: &str,
    agent: &Agent,
    grants: &AgentGrants,
    flags: &RunArgs,
    place: &Place,
) {
    let lines = lines(name, agent, grants, flags);
    let record = record(name, place);
    let is_known =
        |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text == lines.join("\n"));
    if record.as_ref().is_some_and(is_known) {
        return;
    }
    output::explanation(&lines, Format::of(flags.output.json));
    if let Some(file) = record {
        // Without the record it is printed once more.
        let _ = write(&file, &lines.join("\n"));
    }
}

fn lines(name: &str, agent: &Agent, grants: &AgentGrants, flags: &RunArgs) -> [String; 5] {
    let typed = &flags.policy;
    let files = grants.write.join(", ");
    let hosts: Vec<String> = if let Some(mode) = typed.net {
        vec![format!("--net {mode}")]
    } else {
        let allowed = grants.allow.iter().chain(typed.hosts.allowed());
        let ports = grants.host_port.iter().chain(&typed.host_port);
        let ports = ports.map(|port| format!("port {port} of this machine"));
        allowed.map(ToString::to_string).chain(ports).collect()
    };
    let is_masked = typed.net.is_none() && !grants.mask.is_empty();
    let key = match &grants.key {
        KeyUse::Variables(names) if is_masked => {
            format!(
                "{} stays outside; the proxy puts it into requests",
                names.join(", ")
            )
        }
        KeyUse::Variables(names) => {
            format!(
                "the agent sees {}: no proxy is in between",
                names.join(", ")
            )
        }
        KeyUse::Login(files) => format!("the agent reads its login: {}", files.join(", ")),
        KeyUse::Missing => {
            let names: Vec<&str> = agent.api.iter().map(|api| api.key.as_str()).collect();
            format!("none: set {}, or log in outside first", names.join(" or "))
        }
    };
    [
        format!(
            "{} runs in a sandbox; `stockade agent {name} --dry-run` prints all of it",
            agent.title
        ),
        format!("writes    the current directory, {files}; other changes below ~ are dropped"),
        format!("network   {}", hosts.join(", ")),
        format!("key       {key}"),
        format!("settings  read-only: {}", agent.protect.join(", ")),
    ]
}

/// Where the last explanation is kept.
fn record(name: &str, place: &Place) -> Option<PathBuf> {
    let stated = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let stated = stated.filter(|path| path.is_absolute());
    let home = || Some(place.around.home.as_ref()?.as_path().join(".local/state"));
    let above = stated.or_else(home)?;
    Some(above.join("stockade/agents").join(name))
}

fn write(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(file, text)
}
