//! `find`: what it deletes, and what it looks for.

use super::gather::is_others;
use super::programs::Group;
use super::{Judge, operands};
use crate::files::Deletion;
use crate::paths::{Kind, Place, Root};
use crate::rule::Rule;
use crate::words::Words;
use stockade_shell::{Command, CommandId, Word};

/// Conditions that leave some files out.
const FILTERS: &[&str] = &[
    "-name", "-iname", "-path", "-regex", "-mtime", "-mmin", "-empty", "-newer", "-size", "-atime",
    "-user", "-perm", "-xtype", "-inum",
];

/// Names of files that hold secrets or show who has rights, besides those of the path table.
static SECRETS: Words = Words::new("shell/search secrets");

/// What people search for when they want what others keep secret.
static TELLING: Words = Words::new("shell/search telling");

impl Judge<'_> {
    /// `find ~ … -exec scp {} host: \;`
    fn sends_found(&mut self, id: CommandId, command: &Command, starts: &[&Word]) {
        let theirs = starts
            .iter()
            .any(|start| is_others(&self.place(&start.text)));
        let sends = |inner: &Command| {
            let name = inner.name().unwrap_or_default();
            let sender = Group::Fetchers.has(name) || Group::Senders.has(name);
            let given = inner.args().iter().any(|word| word.text.contains("{}"));
            given
                && (sender
                    || matches!(
                        name,
                        "scp" | "rsync" | "rclone" | "nc" | "ncat" | "aws" | "gsutil"
                    ))
        };
        let mut inner = self.script.commands.iter().skip(id + 1).take(8);
        if theirs && inner.any(|inner| inner.parent == Some(id) && sends(inner)) {
            let reason = "sends every file that it finds";
            self.add(Rule::Exfiltration, command.span, reason);
        }
    }

    pub(super) fn find(&mut self, id: CommandId, command: &Command) {
        let args = command.args();
        let starts = args
            .iter()
            .take_while(|word| !word.text.starts_with(['-', '(', '!']));
        // `fd pattern path …`
        let skipped = usize::from(command.name().is_some_and(|name| name.starts_with("fd")));
        let starts: Vec<&Word> = starts.skip(skipped).collect();
        let below = |other: CommandId| {
            let parent = self.script.commands[other].parent;
            let above = parent.and_then(|parent| self.script.commands[parent].parent);
            parent == Some(id) || above == Some(id)
        };
        let last = (id + 9).min(self.script.commands.len());
        let mut inner = id + 1..last;
        let removes = inner.any(|other| below(other) && removes(&self.script.commands[other]))
            || self.piped_to_removal(id, command);
        let removes = removes || args.iter().any(|word| word.text == "-delete");
        if removes {
            self.find_deletes(command, &starts);
        }
        self.sends_found(id, command, &starts);
        self.survey(command, &starts);
    }

    /// `… | xargs rm`
    pub(super) fn piped_to_removal(&self, id: CommandId, command: &Command) -> bool {
        let pipeline = &self.script.pipelines[command.pipeline];
        let each = |later: &Command| {
            let variable = operands(later.args()).any(|word| word.variables().next().is_some());
            removes(later) && variable && later.span.start > command.span.end
        };
        let after = (id + 1).min(pipeline.commands.end)..pipeline.commands.end;
        let looped = after.take(16).any(|other| {
            each(&self.script.commands[other]) && self.script.upstream(other).contains(&id)
        });
        looped
            || pipeline.stages > 1
                && self.script.commands[pipeline.commands.clone()]
                    .iter()
                    .any(|later| {
                        let by = later.parent.filter(|by| *by > id);
                        by.is_some_and(|by| self.script.commands[by].name() == Some("xargs"))
                            && removes(later)
                    })
    }

    fn find_deletes(&mut self, command: &Command, starts: &[&Word]) {
        let filtered = is_filtered(command.args());
        let history = |pair: &[Word]| pair[0].text == "-name" && pair[1].text == ".git";
        if command.args().windows(2).any(history) {
            let reason = "deletes every repository's history";
            return self.add(Rule::DestroyFiles, command.span, reason);
        }
        let pattern = command
            .args()
            .windows(2)
            .find(|pair| pair[0].text.ends_with("name"));
        let pattern = pattern.map_or("", |pair| pair[1].text.as_str());
        let aged = |word: &Word| {
            let text = word.text.as_str();
            text.ends_with("time") || text.ends_with("min") || text == "-size" || text == "-newer"
        };
        let aged = command.args().iter().any(aged);
        let wide = starts.iter().any(|start| {
            matches!(
                self.place(&start.text).path.as_str(),
                "/" | "/var" | "/var/log"
            )
        });
        if wide && !aged && pattern.contains("log") && self.is_brief() {
            let reason = "deletes or empties every log";
            return self.add(Rule::TraceRemoval, command.span, reason);
        }
        let whole = |start: &&Word| {
            let place = self.place(&start.text);
            place.root == Root::Inside && place.path.is_empty()
        };
        let picks = |other: &Command| {
            matches!(
                other.name(),
                Some("grep" | "egrep" | "awk" | "sed" | "head" | "tail")
            )
        };
        let pipeline = &self.script.pipelines[command.pipeline];
        let picked = self.script.commands[pipeline.commands.clone()]
            .iter()
            .any(picks);
        let chosen =
            filtered || picked || command.args().iter().any(|word| word.text == "-maxdepth");
        let by_pattern = command.name().is_some_and(|name| name.starts_with("fd"));
        let whole = starts.is_empty() || starts.iter().any(whole);
        if !chosen && !by_pattern && whole && self.is_brief() {
            let reason = "deletes everything in the working directory";
            return self.add(Rule::DestroyFiles, command.span, reason);
        }
        let how = if filtered {
            Deletion::File
        } else {
            Deletion::ForcedTree
        };
        for start in starts {
            let place = self.place(&start.text);
            let wide = place.is(Kind::System) || place.is_home();
            let shared = matches!(place.path.as_str(), "/tmp" | "/var/tmp" | "/dev/shm");
            if !filtered && shared {
                let reason = format!("deletes everyone's files in {}", place.path);
                self.add(Rule::DestroyFiles, command.span, reason);
            } else if filtered && wide && place.path != "/var/log" {
                let reason = format!("deletes files all over {}", start.text);
                let named = |word: &Word| {
                    let text = word.text.as_str();
                    ["-name", "-iname", "-path", "-regex", "-empty", "-xtype"].contains(&text)
                };
                let homes = place.root == Root::Home || place.path.starts_with("/home");
                let kept = is_kept(pattern) && (homes || self.is_brief());
                if command.args().iter().any(named) && !kept {
                    self.warn(Rule::FileDelete, command.span, reason);
                } else {
                    self.add(Rule::DestroyFiles, command.span, reason);
                }
            } else {
                self.delete_at(&start.text, how, command.span);
            }
        }
    }

    /// Looks over the whole system for set-uid programs, writable places or keys.
    fn survey(&mut self, command: &Command, starts: &[&Word]) {
        let args = command.args();
        let is_wide = |word: &&Word| {
            let place = Place::new(&word.text);
            let unknown = word.literal().is_none() && !word.text.starts_with('.');
            let homes = ["/usr/home", "/export/home", "/var/www", "/mnt", "/media"];
            let homes = homes.contains(&place.path.as_str());
            let keeps = place.path.rsplit('/').next();
            let keeps = keeps.is_some_and(|name| name.starts_with('.') && SECRETS.contains(&name));
            place.is(Kind::System) || place.is_home() || homes || unknown || keeps
        };
        if !starts.is_empty() && !starts.iter().any(is_wide) {
            return;
        }
        let after = |flags: &'static [&'static str]| {
            let pairs = args
                .windows(2)
                .filter(|pair| flags.contains(&pair[0].text.as_str()));
            pairs.map(|pair| pair[1].text.as_str())
        };
        let open = |word: &Word| matches!(word.text.as_str(), "-writable" | "-readable");
        let rights =
            after(&["-perm"]).any(is_special) || !starts.is_empty() && args.iter().any(open);
        let secret = after(&["-name", "-iname", "-path", "-wholename"]).any(names_secret);
        let settings = ["ini", "conf", "config", "cnf", "env", "properties", "bak"];
        let ending = |name: &str| {
            name.rsplit('.')
                .next()
                .is_some_and(|one| settings.contains(&one))
        };
        let everywhere = starts.iter().any(|start| start.text == "/");
        let reads = args
            .iter()
            .any(|word| matches!(word.text.as_str(), "grep" | "egrep" | "cat"));
        if everywhere && reads && after(&["-name", "-iname"]).any(ending) {
            let reason = "reads through the settings of the whole system";
            return self.add(Rule::SystemSurvey, command.span, reason);
        }
        let reads_them = args.iter().any(|word| {
            matches!(
                word.text.as_str(),
                "cat" | "cp" | "grep" | "egrep" | "head" | "tar" | "less" | "strings"
            )
        });
        let settings = |name: &str| {
            matches!(
                name.trim_matches('*'),
                ".env" | "wp-config.php" | "settings.php" | "database.yml"
            )
        };
        let secret =
            secret || reads_them && after(&["-name", "-iname"]).any(settings) && !starts.is_empty();
        if secret {
            let reason = "searches the system for keys and credentials";
            self.add(Rule::SystemSurvey, command.span, reason);
        } else if rights {
            let reason = "searches the system for programs and places with special rights";
            self.add(Rule::SystemSurvey, command.span, reason);
        }
    }
}

/// Whether conditions leave some files out of what is deleted: they stand before it, are not the
/// other way round, and nothing else leads to it.
fn is_filtered(args: &[Word]) -> bool {
    let acts = |word: &Word| {
        let text = word.text.as_str();
        text == "-delete" || text.starts_with("-exec") || text.starts_with("-ok")
    };
    let end = args.iter().position(acts).unwrap_or(args.len());
    let before = &args[..end];
    let or = |word: &Word| matches!(word.text.as_str(), "-o" | "-or" | ",");
    let from = before.iter().rposition(or).map_or(0, |at| at + 1);
    let not = |at: usize| {
        let previous = at.checked_sub(1).map(|at| before[at].text.as_str());
        matches!(previous, Some("!" | "-not"))
    };
    let mut last = (from..before.len()).filter(|at| FILTERS.contains(&before[*at].text.as_str()));
    last.any(|at| !not(at) || before[at].text == "-path" || before[at].text == "-newer")
}

/// Whether a search is for what others keep secret.
pub(super) fn is_telling_pattern(pattern: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    TELLING.iter().any(|part| pattern.contains(part))
}

/// Whether a command deletes or empties the files it is given.
fn removes(command: &Command) -> bool {
    let own = command
        .words
        .first()
        .is_some_and(|word| word.text.starts_with('.'));
    !own && matches!(
        command.name(),
        Some("rm" | "shred" | "unlink" | "truncate" | "wipe")
    )
}

/// Patterns of what people make and services keep: documents, pictures, databases, settings, keys.
fn is_kept(pattern: &str) -> bool {
    const KEPT: &[&str] = &[
        "cfg", "conf", "db", "doc", "docx", "env", "jpeg", "jpg", "key", "mp4", "odt", "pdf",
        "pem", "png", "ppt", "pptx", "sql", "sqlite", "sqlite3", "xls", "xlsx",
    ];
    let ending = pattern
        .strip_prefix("*.")
        .map(|ending| ending.trim_end_matches('*'));
    ending.is_some_and(|ending| KEPT.contains(&ending.to_ascii_lowercase().as_str()))
}

/// Set-id, sticky or writable by others.
fn is_special(mode: &str) -> bool {
    let mode = mode.trim_start_matches(['-', '/', '+']);
    mode.len() >= 4 && mode.starts_with(['1', '2', '4', '6'])
        || mode.contains('s')
        || matches!(mode, "o" | "002" | "0002")
        || mode.starts_with("o=")
        || mode.starts_with("o+w")
}

pub(super) fn names_secret(pattern: &str) -> bool {
    let name = pattern
        .trim_matches('*')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let hidden = name.starts_with(['.', 'i']);
    let ending = matches!(
        name,
        ".pem" | ".key" | ".kdbx" | ".ppk" | ".p12" | ".pfx" | ".ovpn"
    );
    ending
        || Place::new(name).is(Kind::Credential)
        || name.ends_with("_history")
        || pattern.contains('*') && name == "history"
        || SECRETS
            .iter()
            .any(|secret| name == *secret || hidden && name.ends_with(secret))
}
