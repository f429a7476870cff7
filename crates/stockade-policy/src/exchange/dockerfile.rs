//! A Dockerfile's `USER`, `WORKDIR`, `EXPOSE` and `ENV`.

use super::Imported;
use crate::profile::{BuiltIn, NetworkMode};

pub(super) fn import(text: &str) -> Imported {
    let mut imported = Imported::default();
    imported.draft.extends = Some(BuiltIn::WorkspaceWrite);
    imported.draft.mode = Some(NetworkMode::Off);
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        let Some((instruction, rest)) = line.trim().split_once(char::is_whitespace) else {
            continue;
        };
        let rest = rest.trim();
        match instruction.to_ascii_uppercase().as_str() {
            "EXPOSE" => expose(rest, &mut imported),
            "ENV" => set(rest, &mut imported),
            "USER" => imported.note(format!(
                "USER {rest} is left out: a command runs as the user who started it"
            )),
            "WORKDIR" => imported.note(format!(
                "WORKDIR {rest} is left out: name the directory with --cwd"
            )),
            "VOLUME" => imported.note(format!("VOLUME {rest} is left out: grant it with --write")),
            "FROM" => imported.note(format!(
                "FROM {rest} is left out: `stockade run --image NAME` has the files of an image"
            )),
            _ => {}
        }
    }
    imported
}

fn expose(ports: &str, imported: &mut Imported) {
    for port in ports.split_whitespace() {
        let (number, protocol) = port.split_once('/').unwrap_or((port, "tcp"));
        match number.parse() {
            Ok(number) if number != 0 && protocol.eq_ignore_ascii_case("tcp") => {
                imported.draft.expose.push(number);
            }
            _ => imported.note(format!("EXPOSE {port} is left out")),
        }
    }
}

/// `NAME=value …`, or `NAME value`.
fn set(rest: &str, imported: &mut Imported) {
    let has_quotes = rest.contains(['"', '\'', '$']);
    if has_quotes || !rest.split_whitespace().all(|word| word.contains('=')) {
        imported.note(format!("ENV {rest} is left out: set it with --env"));
        return;
    }
    for word in rest.split_whitespace() {
        if let Some((name, value)) = word.split_once('=') {
            imported.draft.set.insert(name.to_owned(), value.to_owned());
        }
    }
}
