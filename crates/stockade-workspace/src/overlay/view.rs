//! The host's files as they are, and as the view over them shows them: for the guard.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::commit::Pair;
use super::layer::{self, Said, on_host};
use crate::files::{self, Stat};
use crate::guard::{FileFacts, FileTree, names_below, read_below};

/// The host's files.
pub(super) struct HostView<'a>(pub(super) &'a [Pair<'a>]);

/// What a run over the overlay sees.
pub(super) struct MergedView<'a>(pub(super) &'a [Pair<'a>]);

/// A file: the directory that it is below, and what it is.
type Found<'a> = (BorrowedFd<'a>, Vec<u8>, Stat);

fn pair_of<'a>(pairs: &'a [Pair<'a>], path: &Path) -> Option<(&'a Pair<'a>, Vec<u8>)> {
    let holding = pairs.iter().filter(|pair| path.starts_with(pair.root));
    let pair = holding.max_by_key(|pair| pair.root.as_os_str().len())?;
    let below = path.strip_prefix(pair.root).ok()?;
    Some((pair, below.as_os_str().as_bytes().to_vec()))
}

impl HostView<'_> {
    fn find(&self, path: &Path) -> Option<Found<'_>> {
        let (pair, below) = pair_of(self.0, path)?;
        let stat = on_host(pair.host.as_fd(), &below).ok()??;
        Some((pair.host.as_fd(), below, stat))
    }
}

impl MergedView<'_> {
    fn find(&self, path: &Path) -> Option<Found<'_>> {
        let (pair, below) = pair_of(self.0, path)?;
        if below.is_empty() {
            let stat = files::stat_of(&pair.host).ok()?;
            return Some((pair.host.as_fd(), below, stat));
        }
        let mut hides = false;
        let mut end = 0;
        loop {
            end = match below[end..].iter().position(|byte| *byte == b'/') {
                Some(at) => end + at,
                None => below.len(),
            };
            let (parent, name) = files::split(&below[..end]);
            let said = files::open_dir_below(pair.upper.as_fd(), parent)
                .and_then(|fd| layer::look(fd.as_fd(), name));
            match said {
                Err(rustix::io::Errno::NOENT) if hides => return None,
                Err(rustix::io::Errno::NOENT) => {
                    let stat = on_host(pair.host.as_fd(), &below).ok()??;
                    return Some((pair.host.as_fd(), below, stat));
                }
                Ok(Said::File(stat) | Said::Directory { stat, .. }) if end == below.len() => {
                    return Some((pair.upper.as_fd(), below, stat));
                }
                Ok(Said::Directory { opaque, .. }) => hides |= opaque,
                Err(_) | Ok(Said::Whiteout | Said::File(_)) => return None,
            }
            end += 1;
        }
    }
}

impl FileTree for HostView<'_> {
    fn facts(&self, path: &Path) -> Option<FileFacts> {
        self.find(path).map(|(_, _, stat)| FileFacts::of(&stat))
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        read(self.find(path), limit)
    }

    fn names(&self, path: &Path) -> Vec<OsString> {
        let Some((top, below, _)) = self.find(path) else {
            return Vec::new();
        };
        names_below(top, &below)
    }
}

impl FileTree for MergedView<'_> {
    fn facts(&self, path: &Path) -> Option<FileFacts> {
        self.find(path).map(|(_, _, stat)| FileFacts::of(&stat))
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        read(self.find(path), limit)
    }

    fn names(&self, path: &Path) -> Vec<OsString> {
        let Some((pair, below)) = pair_of(self.0, path) else {
            return Vec::new();
        };
        let mut all = names_below(pair.host.as_fd(), &below);
        all.extend(names_below(pair.upper.as_fd(), &below));
        all.sort();
        all.dedup();
        all.retain(|name| self.facts(&path.join(name)).is_some());
        all
    }
}

fn read(found: Option<Found<'_>>, limit: u64) -> io::Result<Vec<u8>> {
    let (top, below, stat) = found.ok_or(io::ErrorKind::NotFound)?;
    read_below(top, &below, &stat, limit)
}
