//! The words of a command line of bubblewrap.

use super::Imported;
use crate::profile::{BuiltIn, NetworkMode};

/// Options that change nothing here, and how many words follow them.
const WITHOUT_EFFECT: &[(&str, usize)] = &[
    ("--as-pid-1", 0),
    ("--clearenv", 0),
    ("--dev", 1),
    ("--die-with-parent", 0),
    ("--mqueue", 1),
    ("--new-session", 0),
    ("--proc", 1),
    ("--unshare-cgroup", 0),
    ("--unshare-cgroup-try", 0),
    ("--unshare-ipc", 0),
    ("--unshare-pid", 0),
    ("--unshare-user", 0),
    ("--unshare-user-try", 0),
    ("--unshare-uts", 0),
    ("--disable-userns", 0),
];

/// Options that are left out with a note, and how many words follow them.
const LEFT_OUT: &[(&str, usize)] = &[
    ("--args", 1),
    ("--bind-data", 2),
    ("--bind-fd", 2),
    ("--block-fd", 1),
    ("--cap-add", 1),
    ("--cap-drop", 1),
    ("--chdir", 1),
    ("--chmod", 2),
    ("--dir", 1),
    ("--file", 2),
    ("--gid", 1),
    ("--hostname", 1),
    ("--info-fd", 1),
    ("--json-status-fd", 1),
    ("--lock-file", 1),
    ("--perms", 1),
    ("--remount-ro", 1),
    ("--ro-bind-data", 2),
    ("--ro-bind-fd", 2),
    ("--seccomp", 1),
    ("--size", 1),
    ("--symlink", 2),
    ("--sync-fd", 1),
    ("--uid", 1),
    ("--unsetenv", 1),
    ("--userns", 1),
];

pub(super) fn import(text: &str) -> Imported {
    let mut imported = Imported::default();
    imported.draft.extends = Some(BuiltIn::ReadOnly);
    imported.draft.is_minimal = true;
    imported.draft.mode = Some(NetworkMode::Open);
    let mut words = text
        .split_whitespace()
        .filter(|word| *word != "\\")
        .map(|word| word.trim_matches(['"', '\'']))
        .peekable();
    if words.peek().is_some_and(|word| !word.starts_with("--")) {
        words.next();
    }
    while let Some(option) = words.next() {
        if option == "--" || !option.starts_with("--") {
            break;
        }
        let mut next = || words.next().unwrap_or_default().to_owned();
        match option {
            "--ro-bind" | "--ro-bind-try" => {
                let (source, target) = (next(), next());
                bind(option, &source, &target, false, &mut imported);
            }
            "--bind" | "--bind-try" | "--dev-bind" | "--dev-bind-try" => {
                let (source, target) = (next(), next());
                bind(option, &source, &target, true, &mut imported);
            }
            "--tmpfs" => {
                let target = next();
                if !["/tmp", "/run", "/dev/shm"].contains(&target.as_str()) {
                    imported.note(format!("`{target}` is hidden, not an empty directory"));
                    imported.draft.deny_read.push(target);
                }
            }
            "--setenv" => {
                let (name, value) = (next(), next());
                imported.draft.set.insert(name, value);
            }
            "--unshare-net" | "--unshare-all" => imported.draft.mode = Some(NetworkMode::Off),
            "--share-net" => imported.draft.mode = Some(NetworkMode::Open),
            other => {
                let find = |list: &[(&str, usize)]| {
                    let found = list.iter().find(|(name, _)| *name == other);
                    found.map(|(_, count)| *count)
                };
                let known = find(WITHOUT_EFFECT);
                if known.is_none() {
                    imported.note(format!("`{other}` is left out"));
                }
                for _ in 0..known.or_else(|| find(LEFT_OUT)).unwrap_or(0) {
                    next();
                }
            }
        }
    }
    if imported.draft.is_minimal {
        imported.note("directories of the system and the working directory are readable here");
    }
    imported
}

fn bind(option: &str, source: &str, target: &str, is_writable: bool, imported: &mut Imported) {
    if source != target {
        imported.note(format!(
            "`{option} {source} {target}` is left out: a path keeps its name"
        ));
    } else if source == "/" && is_writable {
        imported.note("the root is readable, not writable: grant directories one by one");
        imported.draft.is_minimal = false;
    } else if source == "/" {
        imported.draft.is_minimal = false;
    } else if is_writable {
        imported.draft.write.push(source.to_owned());
    } else {
        imported.draft.read.push(source.to_owned());
    }
}
