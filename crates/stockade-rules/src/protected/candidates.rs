//! Which protected names a path could be, from its text alone.
//!
//! The common case, a path without any such name, costs one pass over its bytes and one look at a
//! small table for each component.
//!
//! Letters are compared without regard to case: a directory may fold case (ext4, NTFS under WSL),
//! and `.GIT/HOOKS` is then `.git/hooks` ([`is_same_name`]).

use std::ffi::OsStr;
use std::path::Path;

use super::fold::is_same_name;
use super::table::{Extent, PROTECTED, ProtectedName};

/// A row that could apply to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate<'path> {
    /// The row.
    pub row: &'static ProtectedName,
    /// How many bytes of the path come before the protected name, without the slash between them.
    /// Zero for a name that hangs in the root directory.
    pub anchor_len: usize,
    /// Where the path lies with respect to the protected name.
    pub relation: Relation<'path>,
}

/// Where a path lies with respect to a protected name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Relation<'path> {
    /// The path is an ancestor of the protected name: a directory moved here brings it along.
    Above {
        /// The components of the row's name that are still missing.
        rest: &'static str,
    },
    /// The path lies below the protected directory.
    Below {
        /// The path below the protected directory.
        rest: &'path [u8],
    },
    /// The path is the protected name.
    Exact,
}

impl Candidate<'_> {
    /// The directory that the protected name hangs in; `path` is what was asked about.
    pub fn anchor<'path>(&self, path: &'path Path) -> &'path Path {
        let mut anchor = path;
        while anchor.as_os_str().len() > self.anchor_len.max(1) {
            match anchor.parent() {
                Some(parent) => anchor = parent,
                None => break,
            }
        }
        anchor
    }

    /// Whether the row leaves this path out (sample hooks).
    pub fn is_excepted(&self) -> bool {
        match self.relation {
            Relation::Below { rest } => self.row.excepts(rest),
            Relation::Above { .. } | Relation::Exact => false,
        }
    }
}

/// The rows that could apply to an absolute, normalised path, without allocating.
pub fn candidates(path: &Path) -> Candidates<'_> {
    Candidates {
        path: path.as_os_str().as_encoded_bytes(),
        is_ascii: path.as_os_str().is_ascii(),
        next: 0,
        row: 0,
    }
}

/// Whether a path that ends in this component can be a protected name or an ancestor of one.
/// What lies below a protected directory is not asked: that depends on the components before.
pub fn is_interesting(last_component: &OsStr) -> bool {
    let component = last_component.as_encoded_bytes();
    (FILTER.may_contain(component) || !component.is_ascii())
        && PROTECTED.iter().any(|row| {
            row.name
                .split('/')
                .any(|part| is_same_name(part, component))
        })
}

/// Whether making an entry of this name may turn its directory into a git directory, whose
/// `hooks` and `config` must then be judged.
pub fn completes_git_directory(last_component: &OsStr) -> bool {
    let component = last_component.as_encoded_bytes();
    is_same_name("objects", component) || is_same_name("refs", component)
}

/// Hooks that git knows (githooks(5)), and the two files that husky's hooks read.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "h",
    "husky.sh",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Whether git runs a file of this name from a directory of hooks.
pub fn is_hook(last_component: &OsStr) -> bool {
    let component = last_component.as_encoded_bytes();
    HOOKS.iter().any(|hook| is_same_name(hook, component))
}

/// Iterates over [`candidates`].
#[derive(Clone, Debug)]
pub struct Candidates<'path> {
    path: &'path [u8],
    /// The filter knows nothing about other names.
    is_ascii: bool,
    /// Where the component that is looked at begins.
    next: usize,
    /// The row to try next with this component.
    row: usize,
}

impl<'path> Iterator for Candidates<'path> {
    type Item = Candidate<'path>;

    fn next(&mut self) -> Option<Candidate<'path>> {
        while self.next < self.path.len() {
            let component = first_component(&self.path[self.next..]);
            if !component.is_empty()
                && (self.row > 0 || !self.is_ascii || FILTER.may_begin(component))
            {
                while let Some(row) = PROTECTED.get(self.row) {
                    self.row += 1;
                    if let Some(relation) = relation(row, &self.path[self.next..]) {
                        let anchor_len = self.next.saturating_sub(1);
                        return Some(Candidate {
                            row,
                            anchor_len,
                            relation,
                        });
                    }
                }
            }
            self.row = 0;
            self.next += component.len() + 1;
        }
        None
    }
}

/// How `path`, which begins with a component, lies with respect to the name of `row`.
fn relation<'path>(row: &'static ProtectedName, path: &'path [u8]) -> Option<Relation<'path>> {
    let (mut name, mut path) = (row.name, path);
    loop {
        let (part, rest) = name.split_once('/').unwrap_or((name, ""));
        let component = first_component(path);
        if !is_same_name(part, component) {
            return None;
        }
        // A slash at the end of a path is not a component.
        let below = path.get(component.len() + 1..).unwrap_or_default();
        match (rest.is_empty(), below.is_empty()) {
            (true, true) => return Some(Relation::Exact),
            (true, false) => {
                let reaches = row.extent == Extent::Subtree;
                return reaches.then_some(Relation::Below { rest: below });
            }
            (false, true) => return Some(Relation::Above { rest }),
            (false, false) => (name, path) = (rest, below),
        }
    }
}

fn first_component(path: &[u8]) -> &[u8] {
    let end = path.iter().position(|byte| *byte == b'/');
    &path[..end.unwrap_or(path.len())]
}

/// For each first byte the lengths that components of protected names have: a bit for each.
struct Filter {
    first: [u32; 256],
    any: [u32; 256],
}

static FILTER: Filter = Filter::new();

impl Filter {
    const fn new() -> Self {
        let mut filter = Self {
            first: [0; 256],
            any: [0; 256],
        };
        let mut row = 0;
        while row < PROTECTED.len() {
            let name = PROTECTED[row].name.as_bytes();
            let (mut start, mut at) = (0, 0);
            while at <= name.len() {
                if at == name.len() || name[at] == b'/' {
                    let byte = name[start].to_ascii_lowercase() as usize;
                    // A longer component would be missing from the table: this fails the build.
                    assert!(at - start < 32);
                    let bit = 1 << (at - start);
                    filter.any[byte] |= bit;
                    if start == 0 {
                        filter.first[byte] |= bit;
                    }
                    start = at + 1;
                }
                at += 1;
            }
            row += 1;
        }
        filter
    }

    /// Whether the component may be the first of a protected name.
    fn may_begin(&self, component: &[u8]) -> bool {
        Self::look(&self.first, component)
    }

    /// Whether the component may be one of a protected name.
    fn may_contain(&self, component: &[u8]) -> bool {
        Self::look(&self.any, component)
    }

    fn look(lengths: &[u32; 256], component: &[u8]) -> bool {
        let Some(first) = component.first() else {
            return false;
        };
        let lengths = lengths[usize::from(first.to_ascii_lowercase())];
        component.len() < 32 && lengths >> component.len() & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(path: &str) -> Vec<(&'static str, String, Relation<'_>)> {
        let path = Path::new(path);
        candidates(path)
            .map(|found| {
                let anchor = found.anchor(path).to_str().unwrap().to_owned();
                (found.row.name, anchor, found.relation)
            })
            .collect()
    }

    #[test]
    fn ordinary_paths_have_no_candidates() {
        for path in [
            "/",
            "/ws/src/main.rs",
            "/ws/.github/workflows/ci.yml",
            "/ws/.gitignore",
            "/ws/configs/x",
            "/ws/hook",
            "/ws/.git/index.lock",
            "/ws/git-rebase-todo",
        ] {
            let path = Path::new(path);
            let found: Vec<_> = candidates(path)
                .filter(|found| matches!(found.relation, Relation::Exact | Relation::Below { .. }))
                .collect();
            assert!(found.is_empty(), "{path:?}: {found:?}");
        }
    }

    #[test]
    fn a_path_is_above_at_or_below_a_name() {
        assert_eq!(
            names("/ws/.git/config"),
            [("config", "/ws/.git".to_owned(), Relation::Exact)]
        );
        assert_eq!(
            names("/config"),
            [("config", "/".to_owned(), Relation::Exact)]
        );
        assert_eq!(
            names("/ws/b/hooks/x/y"),
            [(
                "hooks",
                "/ws/b".to_owned(),
                Relation::Below { rest: b"x/y" }
            )]
        );
        assert_eq!(
            names("/ws/.git/sequencer"),
            [(
                "sequencer/opts",
                "/ws/.git".to_owned(),
                Relation::Above { rest: "opts" }
            )]
        );
        // Below a file there is nothing, and `.git` as a directory is no redirect.
        assert!(names("/ws/config/x").is_empty());
        assert_eq!(
            names("/ws/.git"),
            [(".git", "/ws".to_owned(), Relation::Exact)]
        );
    }

    #[test]
    fn one_path_may_have_several() {
        let found = names("/home/u/.config/git/hooks/x");
        let rows: Vec<_> = found.iter().map(|(name, ..)| *name).collect();
        assert_eq!(rows, [".config/git", "hooks"]);
    }

    #[test]
    fn letters_fold() {
        assert_eq!(names("/ws/.GIT/Hooks/x").len(), 1);
        let folded = names("/ws/\u{e9}/.g\u{200c}it/hoo\u{212a}s/x");
        assert_eq!(folded.len(), 1);
        assert_eq!(folded[0].1, "/ws/\u{e9}/.g\u{200c}it");
        assert!(is_interesting(OsStr::new("con\u{fb01}g")));
        assert!(is_hook(OsStr::new("Pre-Commit")));
        assert!(is_interesting(OsStr::new("CONFIG")));
    }

    #[test]
    fn interesting_names_are_the_components_of_rows() {
        for name in ["hooks", "author-script", "opts", ".config", "fish", ".git"] {
            assert!(is_interesting(OsStr::new(name)), "{name}");
        }
        for name in ["", "x", "objects", "main.rs", "hooks.txt"] {
            assert!(!is_interesting(OsStr::new(name)), "{name}");
        }
        assert!(completes_git_directory(OsStr::new("objects")));
        assert!(completes_git_directory(OsStr::new("refs")));
        assert!(!completes_git_directory(OsStr::new("HEAD")));
        assert!(HOOKS.is_sorted());
        assert!(HOOKS.iter().all(|hook| is_hook(OsStr::new(hook))));
        assert!(!is_hook(OsStr::new("pre-commit.sample")));
    }

    #[test]
    fn sample_hooks_are_excepted() {
        let excepted = |path| candidates(Path::new(path)).all(|found| found.is_excepted());
        assert!(excepted("/ws/.git/hooks/pre-commit.sample"));
        assert!(!excepted("/ws/.git/hooks/pre-commit"));
        assert!(!excepted("/ws/.git/hooks/a.sample/b"));
    }

    /// The same by the plain definition.
    fn slow(path: &str) -> Vec<(&'static str, usize)> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let mut found = Vec::new();
        let mut anchor_len = 0;
        for (start, part) in parts.iter().enumerate() {
            for row in PROTECTED {
                let name: Vec<&str> = row.name.split('/').collect();
                let rest = &parts[start..];
                let both = name.iter().zip(rest);
                let equal = both.into_iter().all(|(left, right)| left == right);
                let below = rest.len() > name.len();
                if equal && (!below || row.extent == Extent::Subtree) {
                    found.push((row.name, anchor_len));
                }
            }
            anchor_len += part.len() + 1;
        }
        found
    }

    proptest! {
        #[test]
        fn the_filter_loses_nothing(
            parts in proptest::collection::vec(
                prop_oneof![
                    proptest::sample::select(
                        PROTECTED
                            .iter()
                            .flat_map(|row| row.name.split('/'))
                            .collect::<Vec<_>>()
                    )
                    .prop_map(str::to_owned),
                    "[a-z.]{1,6}",
                ],
                1..6,
            )
        ) {
            let path = format!("/{}", parts.join("/"));
            let quick: Vec<_> = candidates(Path::new(&path))
                .map(|found| (found.row.name, found.anchor_len))
                .collect();
            prop_assert_eq!(quick, slow(&path));
        }
    }
}
