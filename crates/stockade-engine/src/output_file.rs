//! Files that the user names for Stockade to write, such as reports and logs.
//!
//! Protects what the user can write from a sandbox that ran before, or is running: in a directory
//! that it could write it may have left a link, a second name of another file or a pipe where the
//! file is to be. What is opened is what the name meant when it was looked at.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use stockade_rules::AbsPath;

use crate::host::{Found, resolve_all};

/// Where links belong to the system: `/dev/stdout`, `/dev/fd/3`.
const SYSTEM: [&str; 2] = ["/dev", "/proc"];

/// Opens a file to write, and makes it if it is missing; what is in it stays. `roots` are directories
/// that sandboxed commands may write: no link in them is followed.
///
/// # Errors
/// If it can't be opened, is a link, or was reached by one that a command may have made.
pub fn open_output(path: &Path, roots: &[AbsPath]) -> io::Result<File> {
    let path = std::path::absolute(path)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::APPEND;
    let mode = Mode::from_raw_mode(0o666);
    let is_system = |place: &&str| path.starts_with(place);
    if SYSTEM.iter().any(is_system) && !path.starts_with("/dev/shm") {
        return Ok(rustix::fs::open(&path, flags, mode)?.into());
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let (real, links) = match resolve_all(directory) {
        Found::Present { real, links, .. } => (real, links),
        Found::Missing => return Err(io::ErrorKind::NotFound.into()),
        Found::Unreadable => return Err(io::ErrorKind::PermissionDenied.into()),
    };
    let is_open = |place: &AbsPath| roots.iter().any(|root| place.is_within(root));
    if let Some(link) = links.iter().find(|link| is_open(link)) {
        let text = format!("the way to it has a link in `{link}`, which commands may write");
        return Err(io::Error::other(text));
    }
    let file = real.as_path().join(name);
    // A pipe without a reader would make the program wait.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = match rustix::fs::openat2(CWD, &file, flags, mode, ResolveFlags::NO_SYMLINKS) {
        // Before Linux 5.6, or where a filter does not know it.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
            rustix::fs::open(&file, flags, mode)
        }
        opened => opened,
    };
    let opened = File::from(opened.map_err(|error| match error {
        rustix::io::Errno::LOOP => {
            io::Error::other("it is a link, and nothing is written through one")
        }
        rustix::io::Errno::NXIO => io::Error::other("it is a pipe that nobody reads"),
        error => error.into(),
    })?);
    let data = opened.metadata()?;
    if is_open(&real) && (!data.is_file() || data.nlink() > 1) {
        let text = "it is no ordinary file of its own, and commands may write where it is";
        return Err(io::Error::other(text));
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_written_through_what_a_command_may_have_left() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (inside, outside) = (place.join("ws"), place.join("out"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("victim"), "old").unwrap();
        symlink(outside.join("victim"), inside.join("link")).unwrap();
        symlink(&outside, inside.join("dir")).unwrap();
        std::fs::hard_link(outside.join("victim"), inside.join("hard")).unwrap();
        symlink(&inside, place.join("alias")).unwrap();
        let roots = [AbsPath::new(&inside).unwrap()];
        for name in [
            "ws/link",
            "ws/dir/victim",
            "ws/dir/new",
            "ws/hard",
            "alias/link",
        ] {
            assert!(open_output(&place.join(name), &roots).is_err(), "{name}");
        }
        assert!(open_output(&inside.join("link"), &[]).is_err());
        assert!(!outside.join("new").exists());
        assert_eq!(std::fs::read(outside.join("victim")).unwrap(), b"old");
        // The user's own links lead where they always did.
        let mut file = open_output(&place.join("alias/fresh"), &roots).unwrap();
        file.write_all(b"x").unwrap();
        assert_eq!(std::fs::read(inside.join("fresh")).unwrap(), b"x");
        assert!(open_output(Path::new("/dev/null"), &roots).is_ok());
        assert!(open_output(Path::new("/dev/stdout"), &roots).is_ok());
    }
}
