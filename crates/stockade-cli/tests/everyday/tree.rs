//! What lies in a directory, as text that two runs can be compared by.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

/// One line for each name: kind, mode and path. Git's own files have random names and are left out,
/// and so are keys.
pub(crate) fn listing(root: &Path) -> String {
    let mut lines = Vec::new();
    walk(root, root, &mut lines);
    lines.sort();
    lines.join("\n")
}

fn walk(root: &Path, directory: &Path, lines: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        let kind = match metadata.file_type() {
            kind if kind.is_dir() => 'd',
            kind if kind.is_symlink() => 'l',
            kind if kind.is_fifo() => 'p',
            kind if kind.is_socket() => 's',
            _ => 'f',
        };
        let mode = metadata.permissions().mode() & 0o7777;
        let name = path.strip_prefix(root).unwrap_or(&path);
        lines.push(format!("{kind} {mode:o} {}", name.display()));
        if kind == 'd' && !is_of_git(&path) {
            walk(root, &path, lines);
        }
    }
}

/// A directory that git keeps: objects and the like.
fn is_of_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".git") || path.join("objects").is_dir()
}

/// Prints the lines that differ: a sign has no text of its own.
pub(crate) fn explain(name: &str, bare: &str, inside: &str) {
    let only = |one: &str, other: &str, whose: &str| {
        for line in one
            .lines()
            .filter(|line| !other.lines().any(|l| l == *line))
            .take(8)
        {
            // Nowhere to report that standard error is closed.
            let _ = writeln!(std::io::stderr(), "{name}: only {whose}: {line}");
        }
    };
    only(bare, inside, "bare");
    only(inside, bare, "inside");
}
