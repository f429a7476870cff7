//! Groups of programs, from `rules/programs.list`.

use std::collections::HashMap;
use std::sync::OnceLock;

/// A kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Archivers,
    Askers,
    Captures,
    Clouds,
    Dumps,
    Fetchers,
    Foreign,
    Interpreters,
    NameAShell,
    Mailers,
    NotReaders,
    PassesOn,
    Queries,
    Senders,
    Services,
    ShellGivers,
    Showers,
    Streams,
    Tells,
    WorthHiding,
}

impl Group {
    const ALL: &[Self] = &[
        Self::Archivers,
        Self::Askers,
        Self::Captures,
        Self::Clouds,
        Self::Dumps,
        Self::Fetchers,
        Self::Foreign,
        Self::Interpreters,
        Self::NameAShell,
        Self::Mailers,
        Self::NotReaders,
        Self::PassesOn,
        Self::Queries,
        Self::Senders,
        Self::Services,
        Self::ShellGivers,
        Self::Showers,
        Self::Streams,
        Self::Tells,
        Self::WorthHiding,
    ];

    const fn header(self) -> &'static str {
        match self {
            Self::Archivers => "archivers",
            Self::Askers => "askers",
            Self::Captures => "captures",
            Self::Clouds => "clouds",
            Self::Dumps => "dumps",
            Self::Fetchers => "fetchers",
            Self::Foreign => "foreign",
            Self::Interpreters => "interpreters",
            Self::NameAShell => "name-a-shell",
            Self::Mailers => "mailers",
            Self::NotReaders => "not-readers",
            Self::PassesOn => "passes-on",
            Self::Queries => "queries",
            Self::Senders => "senders",
            Self::Services => "services",
            Self::ShellGivers => "shell-givers",
            Self::Showers => "showers",
            Self::Streams => "streams",
            Self::Tells => "tells",
            Self::WorthHiding => "worth-hiding",
        }
    }

    /// Whether a program belongs to the group.
    pub(super) fn has(self, program: &str) -> bool {
        Membership::of(program).in_group(self)
    }
}

/// The groups that a program belongs to.
#[derive(Clone, Copy)]
pub(super) struct Membership(u32);

impl Membership {
    pub(super) fn of(program: &str) -> Self {
        Self(groups().get(program).copied().unwrap_or_default())
    }

    pub(super) const fn in_group(self, group: Group) -> bool {
        self.0 & (1 << group as u32) != 0
    }
}

/// Programs with capitals, as they are looked up.
const LOWER: &[(&str, &str)] = &[("get", "GET"), ("r", "R"), ("rscript", "Rscript")];

/// The groups of each program, as bits.
type Groups = HashMap<&'static str, u32>;

fn groups() -> &'static Groups {
    static GROUPS: OnceLock<Groups> = OnceLock::new();
    GROUPS.get_or_init(|| {
        let mut groups = Groups::new();
        let mut bit = 0;
        for line in include_str!("../../rules/programs.list").lines() {
            if line.starts_with('#') {
                continue;
            }
            let header = line
                .strip_prefix('[')
                .and_then(|line| line.strip_suffix(']'));
            if let Some(name) = header {
                let group = Group::ALL.iter().find(|group| group.header() == name);
                bit = group.map_or(0, |group| 1 << *group as u32);
                continue;
            }
            for program in line.split_ascii_whitespace() {
                *groups.entry(program).or_default() |= bit;
                // Judged names are in lower case.
                if let Some((lower, _)) = LOWER.iter().find(|(_, name)| *name == program) {
                    *groups.entry(lower).or_default() |= bit;
                }
            }
        }
        groups
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_programs() {
        assert!(Group::Fetchers.has("curl") && !Group::Fetchers.has("ls"));
        assert!(Group::Foreign.has("julia"));
        assert!(Group::Interpreters.has("perl"));
        assert!(Group::NameAShell.has("chsh"));
        // `[` is a program, not a header.
        assert!(Group::NotReaders.has("["));
        assert!(Group::Showers.has("less") && Group::Mailers.has("mutt"));
        assert!(Group::PassesOn.has("base64") && Group::Archivers.has("tar"));
        assert!(Group::Tells.has("whoami") && Group::Senders.has("croc"));
        assert!(Group::Dumps.has("pg_dump") && Group::Queries.has("psql"));
        assert!(Group::Captures.has("scrot") && Group::Askers.has("dig"));
        assert!(Group::Clouds.has("aws") && Group::Streams.has("nc"));
        assert!(Group::WorthHiding.has("rm"));
    }
}
