//! What the paths of a profile are on this machine: each is looked at once.
//!
//! Rules are about names, mounts about what the names lead to. A link on the way is followed for
//! denials (what must not be read must not be read by any name) and for grants only where the
//! sandbox could not have planted it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::hash::BuildHasherDefault;
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, ResolveFlags};
use rustix::io::Errno;
use stockade_policy::MAX_SETTINGS_BYTES;
use stockade_policy::profile::{Masked, Profile};
use stockade_rules::{AbsPath, PathHash};

use crate::plan::{PlanError, Spec};
use crate::probe::Controller;

/// Facts that planning needs.
#[derive(Debug)]
pub(crate) struct Host {
    /// What each path that was asked for leads to, and every directory on the way to one.
    paths: RefCell<Known>,
    /// The directory that was looked in last.
    last: RefCell<Option<Last>>,
    /// Landlock's ABI; 0 where there is none.
    pub(crate) landlock: u32,
    /// Whether the caller is root, whom per-user limits do not bind.
    pub(crate) root: bool,
    /// Where control groups can be made, and what they limit.
    pub(crate) controllers: Vec<Controller>,
    /// Whether `RLIMIT_NPROC` is about the tasks in a user namespace (Linux 5.14), and not about all
    /// that the user has. Only the version tells: what it changes is a count.
    pub(crate) counts_tasks_of_namespace: bool,
    /// Where the host's own programs look for a resolver.
    pub(crate) resolvers: Vec<IpAddr>,
    /// Masked variables, with what stands for them in this run.
    pub(crate) masks: Vec<Masked>,
}

/// What an earlier run left in a kept layer where a file of the host is.
pub(crate) enum Left {
    /// Nothing: the host's file shows.
    Nothing,
    /// A file with this content, if it can be one of settings.
    File(Option<Vec<u8>>),
    /// Something else, or the mark of a removed name: the host's file does not show.
    Other,
}

/// A directory in which a name was looked at: the next one is often there as well.
#[derive(Debug)]
struct Last {
    path: AbsPath,
    found: Rc<Found>,
    /// From the second time on.
    fd: Option<OwnedFd>,
}

/// What was found, by path.
type Known = HashMap<AbsPath, Rc<Found>, BuildHasherDefault<PathHash>>;

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Missing,
    /// Something that may not be looked at, or may be once a mode has changed.
    Unreadable,
    /// Something, at its real path.
    Present {
        real: AbsPath,
        kind: Kind,
        /// Directories in which links were followed on the way.
        links: Vec<AbsPath>,
    },
}

impl Found {
    /// Where it is, if it is there.
    pub(crate) fn real(&self) -> Option<&AbsPath> {
        match self {
            Self::Present { real, .. } => Some(real),
            Self::Missing | Self::Unreadable => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    /// A file that nobody may execute.
    File,
    Executable,
}

impl Kind {
    /// Whether it is a file of either kind.
    pub(crate) fn is_file(self) -> bool {
        self != Self::Directory
    }
}

/// Whether a kernel's release, such as `5.10.0-46-cloud-amd64`, is of this version or later.
fn is_at_least(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next().and_then(|digits| digits.parse().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) >= version,
        _ => false,
    }
}

/// The C library reads no more (`MAXNS`).
const MAX_RESOLVERS: usize = 3;

impl Host {
    /// What this kernel and user are; paths are looked at when they are asked for.
    pub(crate) fn look() -> Self {
        Self {
            paths: RefCell::default(),
            last: RefCell::default(),
            landlock: stockade_linux::probe::landlock_abi().unwrap_or(0),
            root: rustix::process::geteuid().is_root(),
            counts_tasks_of_namespace: is_at_least(
                &rustix::system::uname().release().to_string_lossy(),
                (5, 14),
            ),
            controllers: Vec::new(),
            resolvers: Vec::new(),
            masks: Vec::new(),
        }
    }

    /// Looks for the resolvers that programs inside will ask, as `resolv.conf(5)` has it; only
    /// runs with a list of hosts pay for it.
    pub(crate) fn look_for_resolvers(&mut self) {
        let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let named = text.lines().filter_map(|line| {
            let address = line.trim().strip_prefix("nameserver")?;
            address.trim().parse().ok()
        });
        self.resolvers = named.take(MAX_RESOLVERS).collect();
    }

    /// Looks for the values of masked variables in the environment that the command's is chosen
    /// from, and makes up what stands for them.
    pub(crate) fn look_for_masks(
        &mut self,
        profile: &Profile,
        spec: &Spec,
    ) -> Result<(), PlanError> {
        for mask in profile.network.masks() {
            let mut bytes = [0; 512];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
                .map_err(|error| PlanError::Random(error.into()))?;
            let mut known = spec.env.iter().rev();
            let value = known.find(|(name, _)| name == mask.name.as_os_str());
            let value = value.map(|(_, value)| value.as_os_str());
            let mut at = 0;
            let random = || {
                at += 1;
                bytes[at % bytes.len()]
            };
            let name = mask.name.to_string();
            let masked = Masked::new(mask, value, random);
            let masked = masked.map_err(|source| PlanError::Mask { name, source })?;
            self.masks.push(masked);
        }
        Ok(())
    }

    /// Looks for places to make control groups in; only runs with such limits pay for it.
    pub(crate) fn look_for_cgroups(&mut self) {
        self.controllers = crate::probe::usable_controllers();
    }

    /// What lies in a directory, links left out: at most [`MAX_ENTRIES`], and whether that was all.
    pub(crate) fn entries(directory: &AbsPath) -> (Vec<AbsPath>, bool) {
        let listing = fs::read_dir(directory).into_iter().flatten().flatten();
        let real = listing.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        let mut found: Vec<AbsPath> = real
            .take(MAX_ENTRIES + 1)
            .filter_map(|entry| AbsPath::new(entry.path()).ok())
            .collect();
        let is_all = found.len() <= MAX_ENTRIES;
        found.truncate(MAX_ENTRIES);
        (found, is_all)
    }

    /// What a file with settings holds, if it is an ordinary file of a size that settings have.
    pub(crate) fn settings(path: &AbsPath) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Self::read_settings(&rustix::fs::open(path.as_path(), flags, Mode::empty()).ok()?)
    }

    /// What an earlier run left in a kept layer over `home` where a file of the host is. No link
    /// is followed: that run chose what is there.
    pub(crate) fn left_in_layer(layer: &AbsPath, home: &AbsPath, path: &AbsPath) -> Left {
        let below = path.as_path().strip_prefix(home.as_path());
        let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let upper = rustix::fs::open(
            layer.as_path().join("upper"),
            directory | OFlags::NOFOLLOW,
            Mode::empty(),
        );
        let (Ok(below), Ok(upper)) = (below, upper) else {
            return Left::Other;
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let open = |flags| {
            let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat2(&upper, below, flags, Mode::empty(), resolve)
        };
        let kind = open(OFlags::PATH).and_then(rustix::fs::fstat);
        match kind.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Err(Errno::NOENT) => Left::Nothing,
            Ok(FileType::RegularFile) => {
                let file = open(OFlags::RDONLY | OFlags::NONBLOCK).ok();
                Left::File(file.and_then(|file| Self::read_settings(&file)))
            }
            _ => Left::Other,
        }
    }

    fn read_settings(file: &OwnedFd) -> Option<Vec<u8>> {
        let stat = rustix::fs::fstat(file).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        let mut bytes = Vec::new();
        let limit = u64::try_from(MAX_SETTINGS_BYTES + 1).ok()?;
        let mut file = fs::File::from(file.try_clone().ok()?).take(limit);
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// A number that nobody can know before.
    pub(crate) fn random() -> Result<u64, PlanError> {
        let mut bytes = [0; 8];
        rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
            .map_err(|error| PlanError::Random(error.into()))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// How many tasks this user has, whoever started them.
    pub(crate) fn tasks_of_user() -> u64 {
        let own = rustix::process::getuid().as_raw();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let tasks = processes.filter_map(|process| {
            let tasks = fs::metadata(process.path().join("task")).ok()?;
            // A directory has a link for itself, its name and each directory in it.
            (tasks.uid() == own).then(|| tasks.nlink().saturating_sub(2))
        });
        tasks.sum()
    }

    /// What a path leads to. Each name is looked at once, and so is each directory on the way:
    /// most of what a profile names does not exist, and hundreds of names share their parents.
    pub(crate) fn find(&self, path: &AbsPath) -> Rc<Found> {
        if let Some(found) = self.paths.borrow().get(path) {
            return found.clone();
        }
        let found = Rc::new(match split_last(path.as_bytes()) {
            Some((parent, name)) => self.look_in(parent, name, path),
            None => resolve_all(path.as_path()),
        });
        let mut known = self.paths.borrow_mut();
        known.insert(path.clone(), found.clone());
        found
    }

    /// What the name in the directory is; `path` are both.
    fn look_in(&self, directory: &[u8], name: &OsStr, path: &AbsPath) -> Found {
        let last = match self.last.take() {
            Some(last) if last.path.is(directory) => last.opened(),
            _ => {
                let Ok(directory) = AbsPath::new(as_path(directory)) else {
                    return Found::Missing;
                };
                Last {
                    found: self.find(&directory),
                    path: directory,
                    fd: None,
                }
            }
        };
        let found = last.look(name, path);
        self.last.replace(Some(last));
        found
    }

    /// Makes room for so many paths.
    pub(crate) fn expect(&self, paths: usize) {
        self.paths.borrow_mut().reserve(paths);
    }

    /// Where a name would lie, links on the way followed, whether or not anything has it.
    pub(crate) fn landing(&self, path: &AbsPath) -> AbsPath {
        if let Some(real) = self.find(path).real() {
            return real.clone();
        }
        match (path.parent(), path.as_path().file_name()) {
            (Some(parent), Some(name)) => self
                .landing(&parent)
                .join(name)
                .unwrap_or_else(|_| path.clone()),
            _ => path.clone(),
        }
    }
}

impl Last {
    /// Hundreds of names are in one directory, and the kernel finds them in two thirds of the time
    /// if it need not find the directory each time.
    fn opened(mut self) -> Self {
        if let (None, Some(real)) = (&self.fd, self.found.real()) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            // There may be no descriptor left: then it goes without.
            self.fd = rustix::fs::open(real.as_path(), flags, Mode::empty()).ok();
        }
        self
    }

    /// What a name in it is; `path` are both.
    fn look(&self, name: &OsStr, path: &AbsPath) -> Found {
        let (directory, links) = match &*self.found {
            Found::Present {
                real,
                kind: Kind::Directory,
                links,
            } => (real, links),
            Found::Present { .. } | Found::Missing => return Found::Missing,
            Found::Unreadable => return Found::Unreadable,
        };
        let real = if *directory == self.path {
            Ok(path.clone())
        } else {
            directory.join(name)
        };
        let Ok(real) = real else {
            return resolve_all(path.as_path());
        };
        let looked = match &self.fd {
            Some(fd) => rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW),
            None => rustix::fs::lstat(real.as_path()),
        };
        match looked.map(|found| found.st_mode) {
            Ok(mode) if FileType::from_raw_mode(mode) == FileType::Symlink => {
                resolve_all(path.as_path())
            }
            Ok(mode) => present(real, mode, links.clone()),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Found::Missing,
            Err(_) => Found::Unreadable,
        }
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The directory of a normalised path, and the name in it; none for the root.
fn split_last(path: &[u8]) -> Option<(&[u8], &OsStr)> {
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    let name = &path[slash + 1..];
    (!name.is_empty()).then(|| (&path[..slash.max(1)], OsStr::from_bytes(name)))
}

fn present(real: AbsPath, mode: RawMode, links: Vec<AbsPath>) -> Found {
    let kind = if FileType::from_raw_mode(mode) == FileType::Directory {
        Kind::Directory
    } else if mode & 0o111 != 0 {
        Kind::Executable
    } else {
        Kind::File
    };
    Found::Present { real, kind, links }
}

/// Follows links one by one, so that each is known.
pub(crate) fn resolve_all(path: &Path) -> Found {
    let mut links = Vec::new();
    match resolve(path, &mut links) {
        Ok((real, metadata)) => match AbsPath::new(real) {
            Ok(real) => present(real, metadata.mode(), links),
            Err(_) => Found::Missing,
        },
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Found::Unreadable,
        Err(_) => Found::Missing,
    }
}

/// Beyond this, a directory is not one that a person looks through.
const MAX_ENTRIES: usize = 4096;

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;

fn resolve(path: &Path, links: &mut Vec<AbsPath>) -> io::Result<(PathBuf, fs::Metadata)> {
    let mut real = PathBuf::from("/");
    let mut left: Vec<PathBuf> = parts(path);
    let mut metadata = fs::symlink_metadata("/")?;
    while let Some(part) = left.pop() {
        if part.as_os_str() == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        metadata = fs::symlink_metadata(&next)?;
        if !metadata.is_symlink() {
            real = next;
            continue;
        }
        if links.len() == MAX_LINKS {
            return Err(io::Error::from_raw_os_error(Errno::LOOP.raw_os_error()));
        }
        links.extend(AbsPath::new(&real).ok());
        let target = fs::read_link(&next)?;
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        left.extend(parts(&target));
    }
    if metadata.is_symlink() {
        metadata = fs::symlink_metadata(&real)?;
    }
    Ok((real, metadata))
}

/// The components below the root, last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    use std::path::Component;
    let parts = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    });
    parts.collect::<Vec<_>>().into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::is_at_least;

    #[test]
    fn releases_are_compared_by_number() {
        for release in [
            "5.14.0",
            "5.15",
            "6.1.0-55-cloud-amd64",
            "6.12.117+deb12",
            "10.0-rc1",
        ] {
            assert!(is_at_least(release, (5, 14)), "{release}");
        }
        for release in ["5.10.0-46-cloud-amd64", "5.9", "4.19.1", "", "unknown"] {
            assert!(!is_at_least(release, (5, 14)), "{release}");
        }
    }
}
