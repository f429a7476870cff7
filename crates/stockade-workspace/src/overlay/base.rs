//! What the host's files were when a layer first changed them.
//!
//! For a directory that shows through, its attributes; for one that a run removed or replaced,
//! everything below it as well. Nothing is noted below a directory that only the layer has.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::layer::{self, Said};
use crate::cache::{KEY, key, stat_of_key};
use crate::codec::{Decoded, Malformed, Reader, put_bytes};
use crate::error::{Error, Trying};
use crate::files::{self, Stat};
use crate::tree::Time;

/// What a file was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Was {
    Absent,
    /// This, by [`key`].
    Present([u8; KEY]),
    /// Not known: it changed while the run was on.
    Unknown,
    /// A directory, and everything below it was noted too.
    Subtree([u8; KEY]),
}

/// By whole path.
#[derive(Debug)]
pub(super) struct Base {
    path: PathBuf,
    files: BTreeMap<Vec<u8>, Was>,
}

/// The file's name in the overlay's directory.
pub(super) const NAME: &str = "base";

impl Base {
    pub(super) fn load(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes.trying("read", &path)?,
        };
        let files = parse(&bytes).map_err(|_| Error::damaged(&path, "it makes no sense"))?;
        Ok(Self { path, files })
    }

    pub(super) fn save(&self) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for (path, was) in &self.files {
            put_bytes(&mut bytes, path);
            let (tag, key) = match was {
                Was::Absent => (0, None),
                Was::Present(key) => (1, Some(key)),
                Was::Unknown => (2, None),
                Was::Subtree(key) => (3, Some(key)),
            };
            bytes.push(tag);
            bytes.extend_from_slice(key.map_or(&[], |key| &key[..]));
        }
        files::replace_unsynced(&self.path, &[&bytes])
    }

    /// Notes what the host has where the layer says something, unless that was noted before.
    /// What changed since `started` is not what the run saw. True if anything was new.
    pub(super) fn note(
        &mut self,
        root: &Path,
        host: &OwnedFd,
        upper: &OwnedFd,
        started: Time,
    ) -> Result<bool, Error> {
        let mut noting = Noting {
            base: self,
            root,
            started,
            is_new: false,
        };
        let stat = files::stat_of(host).trying("look at", root)?;
        noting.put(b"", Some(&stat), false);
        noting.directory(b"", upper, Some(host), false)?;
        Ok(noting.is_new)
    }

    /// What the host had at a path. Where it had no directory, it had nothing below it either;
    /// where all of a directory was noted, it had nothing else.
    pub(super) fn at(&self, full: &Path) -> Was {
        let mut path = Some(full);
        while let Some(at) = path {
            match self.files.get(at.as_os_str().as_bytes()) {
                Some(was) if at == full => return *was,
                Some(Was::Absent | Was::Subtree(_)) => return Was::Absent,
                _ => path = at.parent(),
            }
        }
        Was::Unknown
    }

    /// Whether what the host has is what it had. Of a directory only the attributes count: what is
    /// in it has notes of its own.
    pub(super) fn is_unchanged(&self, full: &Path, now: Option<&Stat>) -> bool {
        match (self.at(full), now) {
            (Was::Absent, None) => true,
            (Was::Present(was) | Was::Subtree(was), Some(now)) if now.is_dir() => stat_of_key(&was)
                .is_some_and(|was| {
                    was.is_dir() && layer::attributes(&was) == layer::attributes(now)
                }),
            (Was::Present(was), Some(now)) => was == key(now),
            _ => false,
        }
    }

    /// What a directory was, if that is known.
    pub(super) fn directory(&self, full: &Path) -> Option<Stat> {
        match self.at(full) {
            Was::Present(was) | Was::Subtree(was) => stat_of_key(&was).filter(Stat::is_dir),
            _ => None,
        }
    }

    /// Takes over the time of change of a file that came back to the host as it had been: a rename
    /// sets it.
    pub(super) fn refresh(&mut self, full: &Path, now: &Stat) {
        if let Some(Was::Present(was)) = self.files.get_mut(full.as_os_str().as_bytes()) {
            let as_noted = stat_of_key(was).map(|was| Stat {
                dev: now.dev,
                ctime: now.ctime,
                ..was
            });
            if as_noted.as_ref() == Some(now) {
                *was = key(now);
            }
        }
    }

    /// Keeps the notes that `is_needed` says are, of those below a root.
    pub(super) fn retain(&mut self, root: &Path, is_needed: impl Fn(&Path) -> bool) {
        use std::ffi::OsStr;
        self.files.retain(|path, _| {
            let path = Path::new(OsStr::from_bytes(path));
            !path.starts_with(root) || is_needed(path)
        });
    }
}

/// Notes one root.
struct Noting<'a> {
    base: &'a mut Base,
    root: &'a Path,
    started: Time,
    is_new: bool,
}

impl Noting<'_> {
    fn put(&mut self, path: &[u8], stat: Option<&Stat>, subtree: bool) {
        let full = files::full(self.root, path).into_os_string();
        let was = match stat {
            None => Was::Absent,
            Some(stat) if stat.ctime >= self.started => Was::Unknown,
            Some(stat) if subtree => Was::Subtree(key(stat)),
            Some(stat) => Was::Present(key(stat)),
        };
        let noted = self.base.files.entry(full.as_bytes().to_vec());
        noted.or_insert_with(|| {
            self.is_new = true;
            was
        });
    }

    /// What the layer has in a directory; `hides`: nothing of the host shows through.
    fn directory(
        &mut self,
        path: &[u8],
        upper: &OwnedFd,
        host: Option<&OwnedFd>,
        hides: bool,
    ) -> Result<(), Error> {
        let full = files::full(self.root, path);
        for name in layer::names(upper).trying("read", &full)? {
            let inner = files::join(path, &name);
            let full = files::full(self.root, &inner);
            let said = layer::look(upper.as_fd(), &name).trying("look at", &full)?;
            let stat = match host {
                Some(host) => layer::stat_if_any(host.as_fd(), &name).trying("look at", &full)?,
                None => None,
            };
            let Some(stat) = stat else {
                self.put(&inner, None, false);
                continue;
            };
            let shows_through =
                matches!(said, Said::Directory { opaque: false, .. }) && !hides && stat.is_dir();
            if stat.is_dir() && !shows_through {
                self.subtree(&inner, host, &name, &stat)?;
            } else {
                self.put(&inner, Some(&stat), false);
            }
            if shows_through && let Some(host) = host {
                let upper = files::open_dir_below(upper.as_fd(), &name).trying("open", &full)?;
                let host = files::open_dir_below(host.as_fd(), &name).trying("open", &full)?;
                self.directory(&inner, &upper, Some(&host), false)?;
            }
        }
        Ok(())
    }

    /// A directory that a run removed or replaced, with all that was in it. What came since it was
    /// noted is not what the run saw.
    fn subtree(
        &mut self,
        path: &[u8],
        host: Option<&OwnedFd>,
        name: &[u8],
        stat: &Stat,
    ) -> Result<(), Error> {
        let full = files::full(self.root, path);
        let bytes = full.as_os_str().as_bytes();
        match self.base.files.get(bytes) {
            Some(Was::Subtree(_) | Was::Unknown | Was::Absent) => return Ok(()),
            // Until now it showed through.
            Some(Was::Present(key)) => {
                let was = Was::Subtree(*key);
                self.base.files.insert(bytes.to_vec(), was);
                self.is_new = true;
            }
            None => self.put(path, Some(stat), true),
        }
        let Some(host) = host else { return Ok(()) };
        let host = files::open_dir_below(host.as_fd(), name).trying("read", &full)?;
        for name in layer::names(&host).trying("read", &full)? {
            let inner = files::join(path, &name);
            let stat = layer::stat_if_any(host.as_fd(), &name).trying("look at", &full)?;
            match stat {
                Some(stat) if stat.is_dir() => self.subtree(&inner, Some(&host), &name, &stat)?,
                stat => self.put(&inner, stat.as_ref(), false),
            }
        }
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Decoded<BTreeMap<Vec<u8>, Was>> {
    let mut from = Reader::new(bytes);
    let mut files = BTreeMap::new();
    while !from.is_empty() {
        let path = from.bytes()?.to_vec();
        let was = match from.byte()? {
            0 => Was::Absent,
            1 => Was::Present(from.array()?),
            2 => Was::Unknown,
            3 => Was::Subtree(from.array()?),
            _ => return Err(Malformed),
        };
        files.insert(path, was);
    }
    Ok(files)
}
