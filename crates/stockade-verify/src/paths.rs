//! What a path means: a secret, a place that runs later, a device, the system's base.
//!
//! Purely by name. Links are not followed, nothing is looked up; `.` and `..` are resolved in the
//! text, `~` and `$HOME` stand for any home directory.

use crate::words::Words;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

/// What the tables say about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Account,
    Base,
    Credential,
    Cron,
    Disk,
    GitHook,
    Kernel,
    Preload,
    Private,
    Public,
    ShellRc,
    Sink,
    Socket,
    SshKey,
    System,
    Trace,
    Unit,
}

impl Kind {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "account" => Self::Account,
            "base" => Self::Base,
            "credential" => Self::Credential,
            "cron" => Self::Cron,
            "disk" => Self::Disk,
            "git-hook" => Self::GitHook,
            "kernel" => Self::Kernel,
            "preload" => Self::Preload,
            "private" => Self::Private,
            "public" => Self::Public,
            "shell-rc" => Self::ShellRc,
            "sink" => Self::Sink,
            "socket" => Self::Socket,
            "ssh-key" => Self::SshKey,
            "system" => Self::System,
            "trace" => Self::Trace,
            "unit" => Self::Unit,
            _ => return None,
        })
    }

    /// Whether a file here runs on its own later, and what to call that.
    pub(crate) const fn persists(self) -> Option<&'static str> {
        match self {
            Self::Cron => Some("a job table"),
            Self::GitHook => Some("git's hooks or configuration"),
            Self::Preload => Some("what every program loads"),
            Self::ShellRc => Some("a shell's start-up file"),
            Self::SshKey => Some("who may log in"),
            Self::Unit => Some("what starts with the system or session"),
            _ => None,
        }
    }
}

/// A path with its parts resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Normal form: `/a/b`, `~/a`, `a/b`, `../a`, or `$NAME/a` when it begins with the unknown.
    pub(crate) path: String,
    pub(crate) root: Root,
    /// The text ended in a pattern that takes all there is: `/*`.
    pub(crate) all_inside: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    Absolute,
    Home,
    /// Relative and inside the working directory.
    Inside,
    /// Relative and above the working directory.
    Above,
    /// Begins with something unknown.
    Unknown,
}

/// Stands in a text for a part that is not known.
pub(crate) const UNKNOWN: char = '\u{fffc}';

impl Place {
    /// Reads a path. `unknown` marks a text whose first part is not known.
    pub(crate) fn new(text: &str) -> Self {
        let text = text.trim();
        let text = text.strip_prefix("file://").unwrap_or(text);
        let text: Cow<'_, str> = if text.contains('\\') && !text.contains('/') {
            text.replace('\\', "/").into()
        } else {
            text.into()
        };
        let (root, rest) = split_root(&text);
        let mut parts: Vec<&str> = Vec::new();
        let mut above = 0usize;
        for part in rest.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        above += 1;
                    }
                }
                part => parts.push(part),
            }
        }
        let all_inside = parts
            .last()
            .is_some_and(|part| matches!(*part, "*" | ".*" | "{*,.*}" | ".[!.]*" | "**"));
        if all_inside {
            parts.pop();
        }
        let joined = parts.join("/");
        let (root, path) = match root {
            RootText::Home if above == 0 => (Root::Home, format!("~/{joined}")),
            // One above a home directory is where all of them are.
            RootText::Home if above == 1 => absolute(&format!("home/{joined}")),
            RootText::Absolute | RootText::Home => absolute(&joined),
            RootText::Relative if above > 0 => {
                (Root::Above, format!("{}{joined}", "../".repeat(above)))
            }
            RootText::Relative => (Root::Inside, joined),
            RootText::Unknown(name) if above > 0 => (
                Root::Above,
                format!("{name}/{}{joined}", "../".repeat(above)),
            ),
            RootText::Unknown(name) => (Root::Unknown, format!("{name}/{joined}")),
        };
        let path = if path.len() > 1 {
            path.trim_end_matches('/').to_owned()
        } else {
            path
        };
        Self {
            path,
            root,
            all_inside,
        }
    }

    /// The working directory's view of a relative path.
    pub(crate) fn under(text: &str, directory: Option<&Self>) -> Self {
        let place = Self::new(text);
        match (place.root, directory) {
            (Root::Inside | Root::Above, Some(directory)) => {
                Self::new(&format!("{}/{text}", directory.path))
            }
            _ => place,
        }
    }

    /// What the tables say.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let last = self.path.rsplit('/').next().unwrap_or_default();
        let table = table();
        let named = table.named.get(last).into_iter().flatten();
        let below = table.below.get(beginning(&self.path)).into_iter().flatten();
        let ending = last.rsplit_once('.').map(|(_, ending)| ending);
        let ending = ending.and_then(|ending| table.endings.get(ending));
        let mut found: Vec<usize> = named
            .chain(ending.into_iter().flatten())
            .chain(below)
            .chain(&table.others)
            .copied()
            .filter(|at| table.entries[*at].matches(&self.path, last))
            .collect();
        found.sort_unstable();
        let mut kinds: Vec<Kind> = Vec::with_capacity(found.len());
        for at in found {
            let kind = table.entries[at].kind;
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.contains(&Kind::Public) {
            kinds.retain(|kind| !matches!(kind, Kind::Credential | Kind::Private));
        }
        kinds
    }

    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.kinds().contains(&kind)
    }

    /// Whether the place is one of `allowed` or below it; patterns of the verifier's own lists.
    pub(crate) fn within(&self, allowed: &[String]) -> bool {
        let path = self.path.as_str();
        allowed.iter().any(|allowed| {
            let allowed = Self::new(allowed).path;
            let rest = path.strip_prefix(allowed.as_str());
            allowed == "/" && self.root == Root::Absolute
                || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// A name that listings leave out, in a directory where anyone may put files.
    pub(crate) fn hides(&self) -> bool {
        // What sessions, databases and runtimes keep there under such names.
        static KNOWN: Words = Words::new("paths known");
        let below = ["/tmp/.", "/var/tmp/.", "/dev/shm/."]
            .iter()
            .find_map(|start| self.path.strip_prefix(start));
        below.is_some_and(|name| {
            name.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                && !name.contains([UNKNOWN, '$'])
                && !KNOWN.iter().any(|known| name.starts_with(known))
        })
    }

    /// A whole home directory.
    pub(crate) fn is_home(&self) -> bool {
        self.root == Root::Home && matches!(self.path.as_str(), "~" | "~/")
    }

    /// A repository's `.git` directory.
    pub(crate) fn is_git_directory(&self) -> bool {
        self.path == ".git" || self.path.ends_with("/.git")
    }
}

enum RootText<'a> {
    Absolute,
    Home,
    Relative,
    Unknown(&'a str),
}

fn split_root(text: &str) -> (RootText<'_>, &str) {
    for home in ["~", "$HOME", "${HOME}", "%USERPROFILE%", "$env:USERPROFILE"] {
        if let Some(rest) = text.strip_prefix(home)
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return (RootText::Home, rest);
        }
    }
    for here in ["$PWD", "${PWD}", "$(pwd)", "`pwd`"] {
        if let Some(rest) = text.strip_prefix(here) {
            return (RootText::Relative, rest);
        }
    }
    if let Some(rest) = text
        .strip_prefix("$TMPDIR")
        .or_else(|| text.strip_prefix("${TMPDIR}"))
    {
        return (RootText::Unknown("$TMPDIR"), rest);
    }
    if text.starts_with('~') {
        // `~user`
        let end = text.find('/').unwrap_or(text.len());
        return (RootText::Home, &text[end..]);
    }
    if text.starts_with('/') {
        return (RootText::Absolute, text);
    }
    if text.starts_with(['$', UNKNOWN]) {
        let end = text.find('/').unwrap_or(text.len());
        return (RootText::Unknown(&text[..end]), &text[end..]);
    }
    if text.len() > 2 && text.as_bytes()[1] == b':' && text.as_bytes()[0].is_ascii_alphabetic() {
        return (RootText::Unknown(&text[..2]), &text[2..]);
    }
    (RootText::Relative, text)
}

/// Home directories by their usual names become `~`.
fn absolute(joined: &str) -> (Root, String) {
    let mut parts = joined.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("root"), rest, more) => {
            let rest = [rest, more]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("/");
            (Root::Home, format!("~/{rest}"))
        }
        (Some("home" | "Users"), Some(user), rest) if user != "*" || rest.is_some() => {
            (Root::Home, format!("~/{}", rest.unwrap_or_default()))
        }
        _ => (Root::Absolute, format!("/{joined}")),
    }
}

struct Entry {
    kind: Kind,
    pattern: &'static str,
    /// Covers everything below.
    subtree: bool,
    /// Matches at any depth.
    anywhere: bool,
    /// Has no `*`.
    plain: bool,
}

impl Entry {
    fn matches(&self, path: &str, last: &str) -> bool {
        if self.anywhere {
            if self.pattern.contains('/') {
                let found = path
                    .strip_suffix(self.pattern)
                    .is_some_and(|head| head.is_empty() || head.ends_with('/'));
                return found
                    || self.subtree
                        && (path.contains(&format!("/{}/", self.pattern))
                            || path.starts_with(&format!("{}/", self.pattern)));
            }
            return self.pattern == last;
        }
        if self.plain {
            return path.strip_prefix(self.pattern).is_some_and(|rest| {
                rest.is_empty() && (!self.subtree || self.kind == Kind::Credential)
                    || rest.starts_with('/') && self.subtree
            });
        }
        wildcard(self.pattern.as_bytes(), path.as_bytes(), self.subtree)
    }
}

/// Whether `path` matches `pattern` in full, or in front if `subtree`.
fn wildcard(pattern: &[u8], path: &[u8], subtree: bool) -> bool {
    // Iterative matching with one point of return: linear in practice, bounded by length².
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize, bool)> = None;
    loop {
        if p == pattern.len() && (t == path.len() || subtree && path[t] == b'/') {
            return true;
        }
        if p < pattern.len() && pattern[p] == b'*' {
            let deep = pattern.get(p + 1) == Some(&b'*');
            p += 1 + usize::from(deep);
            back = Some((p, t, deep));
            continue;
        }
        if p < pattern.len() && t < path.len() && pattern[p] == path[t] {
            p += 1;
            t += 1;
            continue;
        }
        match &mut back {
            Some((after, start, deep))
                if *start < path.len() && (*deep || path[*start] != b'/') =>
            {
                *start += 1;
                p = *after;
                t = *start;
            }
            _ => return false,
        }
    }
}

/// The entries, and which of them a path may fit.
struct Table {
    entries: Vec<Entry>,
    /// By the name that they end with, at any depth.
    named: HashMap<&'static str, Vec<usize>>,
    /// By what follows the last dot.
    endings: HashMap<&'static str, Vec<usize>>,
    /// By how they begin.
    below: HashMap<&'static str, Vec<usize>>,
    /// Those that begin with anything.
    others: Vec<usize>,
}

/// The first directory of an absolute path, or the first below a home: `/etc`, `~/.ssh`.
fn beginning(path: &str) -> &str {
    let skip = if path.starts_with("~/") { 2 } else { 1 };
    let rest = path.get(skip..).unwrap_or_default();
    rest.find('/').map_or(path, |end| &path[..skip + end])
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table {
            entries: Vec::new(),
            named: HashMap::new(),
            endings: HashMap::new(),
            below: HashMap::new(),
            others: Vec::new(),
        };
        let lines = include_str!("../rules/paths.list").lines();
        for entry in lines.filter_map(read_entry) {
            let at = table.entries.len();
            let begins = beginning(entry.pattern);
            let last = entry.pattern.rsplit('/').next().unwrap_or_default();
            let open = entry.anywhere || entry.pattern.starts_with("**");
            let ending = entry.pattern.strip_prefix("**.");
            if open && !entry.subtree && !last.contains('*') {
                table.named.entry(last).or_default().push(at);
            } else if let Some(ending) = ending.filter(|ending| !ending.contains(['*', '/', '.'])) {
                table.endings.entry(ending).or_default().push(at);
            } else if entry.pattern.starts_with(['/', '~']) && !begins.contains('*') {
                table.below.entry(begins).or_default().push(at);
            } else {
                table.others.push(at);
            }
            table.entries.push(entry);
        }
        table
    })
}

fn read_entry(line: &'static str) -> Option<Entry> {
    let (kind, pattern) = line.split_once(' ').filter(|_| !line.starts_with('#'))?;
    let anywhere = !pattern.starts_with(['/', '~', '*', '\\']) && !pattern.contains(':');
    let subtree = pattern.len() > 1 && pattern.ends_with('/') && kind != "system";
    let pattern = if subtree {
        pattern.trim_end_matches('/')
    } else {
        pattern
    };
    Some(Entry {
        kind: Kind::from_name(kind)?,
        pattern,
        subtree,
        anywhere,
        plain: !pattern.contains('*'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> String {
        Place::new(text).path
    }

    #[test]
    fn paths_are_resolved_in_text() {
        assert_eq!(path("/tmp/../etc//./x/"), "/etc/x");
        assert_eq!(path("~/a/../b"), "~/b");
        assert_eq!(path("$HOME/.ssh"), "~/.ssh");
        assert_eq!(path("/home/me/x"), "~/x");
        assert_eq!(path("/root"), "~");
        assert_eq!(path("a/./b/.."), "a");
        assert_eq!(path("/"), "/");
        assert_eq!(Place::new("../x").root, Root::Above);
        assert_eq!(Place::new("a/../../x").root, Root::Above);
        assert_eq!(Place::new("$X/y").root, Root::Unknown);
        assert_eq!(Place::new("$TMPDIR/../etc").root, Root::Above);
        assert!(Place::new("/*").all_inside && Place::new("/*").path == "/");
    }

    #[test]
    fn tables_name_what_matters() {
        let kinds = |text: &str| Place::new(text).kinds();
        assert!(kinds("/etc/shadow").contains(&Kind::Credential));
        assert!(kinds("/home/x/.ssh/id_ed25519").contains(&Kind::Credential));
        assert!(kinds("/proc/1/environ").contains(&Kind::Credential));
        assert!(kinds("~/.ssh/authorized_keys").contains(&Kind::SshKey));
        assert!(kinds("/etc/cron.d/x").contains(&Kind::Cron));
        assert!(kinds("repo/.git/hooks/pre-commit").contains(&Kind::GitHook));
        assert!(kinds("/dev/nvme0n1").contains(&Kind::Disk));
        assert!(kinds("/").contains(&Kind::System));
        assert!(kinds("/usr").contains(&Kind::System));
        assert!(!kinds("/usr/share/x").contains(&Kind::System));
        assert!(kinds("/usr/bin/x").contains(&Kind::Base));
        assert!(!kinds("~/.ssh/known_hosts").contains(&Kind::Credential));
        assert_eq!(kinds("/tmp/x"), []);
        assert_eq!(kinds("notes.txt"), []);
        assert_eq!(kinds("/dev/null"), [Kind::Sink]);
    }

    #[test]
    fn allowed_paths_cover_what_is_below() {
        let allowed = ["/tmp".to_owned(), "/var/tmp".to_owned()];
        assert!(Place::new("/tmp/x").within(&allowed));
        assert!(Place::new("/tmp/*").within(&allowed));
        assert!(!Place::new("/tmpx").within(&allowed));
        assert!(!Place::new("/tmp/../etc").within(&allowed));
    }

    #[test]
    fn wildcards() {
        assert!(wildcard(b"/a*c", b"/abc", false));
        assert!(!wildcard(b"/a*c", b"/a/c", false));
        assert!(wildcard(b"/a**c", b"/a/b/c", false));
        assert!(wildcard(b"/a*", b"/ab/c", true));
        assert!(!wildcard(b"/a*", b"/ab/c", false));
    }
}
