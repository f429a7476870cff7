//! What the host's files were when a layer first changed them.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::layer;
use crate::cache::{KEY, key};
use crate::codec::{Decoded, Malformed, Reader, put_bytes};
use crate::error::{Error, Trying};
use crate::files::{self, Stat};
use crate::tree::Time;

/// What a file was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Was {
    Absent,
    /// This, by [`key`].
    Present([u8; KEY]),
    /// Not known: it changed while the run was on.
    Unknown,
}

/// By whole path.
#[derive(Debug)]
pub(super) struct Base {
    path: PathBuf,
    files: BTreeMap<Vec<u8>, Was>,
}

impl Base {
    pub(super) fn load(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("base");
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
            match was {
                Was::Absent => bytes.push(0),
                Was::Present(key) => {
                    bytes.push(1);
                    bytes.extend_from_slice(key);
                }
                Was::Unknown => bytes.push(2),
            }
        }
        files::replace_unsynced(&self.path, &[&bytes])
    }

    /// Notes what these files of the host are, unless that was noted before. What changed since
    /// `started` is not what the run saw. True if anything was new.
    pub(super) fn note(
        &mut self,
        root: &Path,
        paths: Vec<Vec<u8>>,
        started: Time,
    ) -> Result<bool, Error> {
        let fd = files::open_top(root)?;
        let mut is_new = false;
        for path in paths {
            let full = files::full(root, &path);
            let whole = full.as_os_str().as_bytes();
            if self.files.contains_key(whole) {
                continue;
            }
            let was = match layer::on_host(fd.as_fd(), &path).trying("look at", &full)? {
                None => Was::Absent,
                Some(stat) if stat.ctime >= started => Was::Unknown,
                Some(stat) => Was::Present(key(&stat)),
            };
            self.files.insert(whole.to_vec(), was);
            is_new = true;
        }
        Ok(is_new)
    }

    /// Whether a file of the host is what it was.
    pub(super) fn is_unchanged(&self, full: &Path, now: Option<&Stat>) -> bool {
        match (self.files.get(full.as_os_str().as_bytes()), now) {
            (Some(Was::Absent), None) => true,
            (Some(Was::Present(was)), Some(now)) => *was == key(now),
            _ => false,
        }
    }

    pub(super) fn forget(&mut self, full: &Path) {
        self.files.remove(full.as_os_str().as_bytes());
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
            _ => return Err(Malformed),
        };
        files.insert(path, was);
    }
    Ok(files)
}
