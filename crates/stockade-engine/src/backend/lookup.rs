//! What a plan's view shows of the host, asked before a program builds it: whether the command is
//! there, and whether something hidden is a directory.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access as Mode;
use stockade_linux::plan::{LinuxPlan, Root, Text, View};
use stockade_linux::{SpawnError, Stage, search};
use stockade_rules::AbsPath;

use crate::host::Found;
use crate::lower;
use crate::plan::PlanError;

/// What is seen at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Nothing of the host.
    Nothing,
    /// What the host has.
    ReadOnly,
    /// What the host has.
    Writable,
}

/// What of the host is seen at a real path: the innermost mount decides.
pub(super) fn shown_at(plan: &LinuxPlan, path: &AbsPath) -> Shown {
    let mut above = plan
        .mounts
        .iter()
        .filter(|mount| path.is_within(&mount.path) && !matches!(mount.view, View::Symlink(_)));
    match above.next_back().map(|mount| &mount.view) {
        None if plan.root == Root::Host => Shown::ReadOnly,
        Some(View::ReadOnly) => Shown::ReadOnly,
        Some(View::Writable) => Shown::Writable,
        _ => Shown::Nothing,
    }
}

/// Looks for the command as the helper would inside: the programs that build sandboxes do not
/// tell a command that is missing from one that failed.
pub(super) fn find_command(plan: &LinuxPlan) -> Result<PathBuf, SpawnError> {
    let failure = |stage, errno: rustix::io::Errno| SpawnError::Stage {
        stage,
        subject: plan
            .command
            .argv
            .first()
            .map(|name| PathBuf::from(name.as_os_str())),
        source: errno.into(),
    };
    let Some(program) = plan.command.argv.first() else {
        return Err(failure(Stage::Find, rustix::io::Errno::NOENT));
    };
    let searched = search::is_searched(program);
    let mut is_there = false;
    for candidate in search::candidates(program, &plan.command.env) {
        let candidate = plan.command.cwd.as_path().join(candidate.as_os_str());
        let Ok(path) = AbsPath::new(&candidate) else {
            continue;
        };
        is_there |= match crate::host::resolve_all(path.as_path()) {
            Found::Missing => false,
            Found::Unreadable => !searched,
            Found::Present { real, .. } if shown_at(plan, &real) == Shown::Nothing => false,
            Found::Present { real, kind, .. } => {
                if kind.is_file() && rustix::fs::access(real.as_path(), Mode::EXEC_OK).is_ok() {
                    return Ok(candidate);
                }
                kind.is_file() || !searched
            }
        };
    }
    Err(if is_there {
        failure(Stage::Execute, rustix::io::Errno::ACCESS)
    } else {
        failure(Stage::Find, rustix::io::Errno::NOENT)
    })
}

/// The command line with the program's own path, where it was looked up: what builds the sandbox
/// would look in the relative entries of `PATH` too, and so in the project. If it is nowhere the
/// command line stays as it is; starting it is refused later.
pub(super) fn command(plan: &LinuxPlan) -> Result<Vec<Text>, PlanError> {
    let mut argv = plan.command.argv.clone();
    if let (Some(first), Ok(found)) = (argv.first_mut(), find_command(plan))
        && search::is_searched(first)
    {
        *first = lower::text(found)?;
    }
    Ok(argv)
}

/// Whether something is a directory, for views that differ.
pub(super) fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// The mount points strictly below a path.
pub(super) fn mounts_below(path: &AbsPath) -> Vec<AbsPath> {
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    mount_points(&table)
        .filter(|point| point.is_within(path) && point != path)
        .collect()
}

/// The mount points of a mount table, in order and each once.
fn mount_points(table: &[u8]) -> impl Iterator<Item = AbsPath> {
    let lines = table.split(|byte| *byte == b'\n');
    let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let paths = points.filter_map(|point| AbsPath::new(OsStr::from_bytes(&unescaped(point))).ok());
    let sorted: BTreeSet<AbsPath> = paths.collect();
    sorted.into_iter()
}

/// Blanks, tabs, line breaks and backslashes are octal there (`proc_pid_mountinfo(5)`).
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, others)) = rest.split_first() {
        let octal = others.get(..3).filter(|_| *first == b'\\');
        let digits = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &others[3..] } else { others };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_bytes_in_octal() {
        let table = b"23 1 0:21 / /b rw - tmpfs tmpfs rw\n\
            24 1 0:22 / /a\\040\\134\\012c rw shared:1 - tmpfs tmpfs rw\n\
            25 1 0:22 / /b rw - ext4 /dev/sda rw\n\
            odd\n26 1 0:22 / /\\ rw - x y z\n";
        let found: Vec<_> = mount_points(table).collect();
        let expected = ["/a \\\nc", "/b", "/\\"].map(|path| AbsPath::new(path).unwrap());
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(found, expected);
    }
}
