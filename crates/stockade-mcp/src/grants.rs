//! Asking the user for what a command was refused.

use rmcp::{Peer, RoleServer};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stockade_serve::api;

/// What the user answers.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
pub(crate) struct Consent {
    /// Whether later commands of this session may do this.
    allow: bool,
}

rmcp::elicit_safe!(Consent);

/// The grants that would let pass what was refused; none if there is nothing to ask for.
pub(crate) fn of(denials: &[api::Denial]) -> Option<api::Allow> {
    let mut grants = api::Allow {
        session: String::new(),
        hosts: Vec::new(),
        sockets: Vec::new(),
        read: Vec::new(),
        write: Vec::new(),
    };
    for denial in denials {
        let Some((flag, value)) = denial.grant.split_once(' ') else {
            continue;
        };
        let list = match flag {
            "--allow" => &mut grants.hosts,
            "--unix" => &mut grants.sockets,
            "--read" => &mut grants.read,
            "--write" => &mut grants.write,
            _ => continue,
        };
        // A word that the shell would have to unquote is not taken apart here.
        if !value.contains(['\'', '"', '\\', ' ']) && !list.iter().any(|known| known == value) {
            list.push(value.to_owned());
        }
    }
    let lists = [&grants.hosts, &grants.sockets, &grants.read, &grants.write];
    let is_empty = lists.iter().all(|list| list.is_empty());
    (!is_empty).then_some(grants)
}

/// The grants as flags; a name that a command chose can't disguise what is asked.
pub(crate) fn flags(grants: &api::Allow) -> Vec<String> {
    let lists = [
        ("--allow", &grants.hosts),
        ("--unix", &grants.sockets),
        ("--read", &grants.read),
        ("--write", &grants.write),
    ];
    let shown = |flag: &'static str, list: &[String]| {
        let each = list
            .iter()
            .map(move |value| format!("{flag} {}", value.escape_debug()));
        each.collect::<Vec<_>>()
    };
    lists
        .into_iter()
        .flat_map(|(flag, list)| shown(flag, list))
        .collect()
}

/// Whether the user consents; no where the client can't ask.
pub(crate) async fn ask(client: &Peer<RoleServer>, grants: &api::Allow) -> bool {
    let wanted = flags(grants).join(", ");
    let question =
        format!("The sandbox refused a command. Allow {wanted} for the rest of this session?");
    matches!(
        client.elicit::<Consent>(question).await,
        Ok(Some(Consent { allow: true }))
    )
}
