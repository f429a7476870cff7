//! Walks a tree and looks at everything in it, with as many threads as help.
//!
//! Nothing is opened but directories. A link is never followed; another file system that is
//! mounted below is seen as an empty directory.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::RawDir;
use rustix::io::Errno;

use crate::error::{Error, Trying};
use crate::files::{self, Stat};

/// A directory that was looked at.
#[derive(Debug)]
pub(crate) struct Directory {
    /// Below the top; empty for the top itself.
    pub(crate) path: Box<[u8]>,
    pub(crate) stat: Stat,
    names: Vec<u8>,
    /// In the order of their names.
    pub(crate) entries: Vec<Entry>,
    /// It was removed between being seen and being read.
    pub(crate) gone: bool,
}

/// Something in a directory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    start: u32,
    length: u16,
    pub(crate) stat: Stat,
    /// Which directory of the scan it is; see [`Entry::child`].
    child: u32,
}

const NO_CHILD: u32 = u32::MAX;

impl Entry {
    /// The directory's index in the scan. Parents come before children.
    pub(crate) fn child(&self) -> Option<usize> {
        (self.child != NO_CHILD).then_some(self.child as usize)
    }
}

impl Directory {
    pub(crate) fn name(&self, entry: &Entry) -> &[u8] {
        let start = entry.start as usize;
        &self.names[start..start + usize::from(entry.length)]
    }

    pub(crate) fn path_of(&self, entry: &Entry) -> Vec<u8> {
        files::join(&self.path, self.name(entry))
    }
}

/// Which files are not part of a workspace.
#[derive(Clone, Debug)]
pub(crate) struct Excludes {
    rules: Option<Gitignore>,
    /// Directories by identity: the store itself.
    pub(crate) own: Vec<(u64, u64)>,
}

/// What restores leave in a workspace while they work; never part of a snapshot.
pub(crate) const STAGE_PREFIX: &[u8] = b".stockade-restore-";

impl Excludes {
    /// Rules as in `.gitignore`.
    pub(crate) fn new(rules: &[String], own: Vec<(u64, u64)>) -> Result<Self, Error> {
        if rules.is_empty() {
            return Ok(Self { rules: None, own });
        }
        let mut builder = GitignoreBuilder::new("");
        for rule in rules {
            builder
                .add_line(None, rule)
                .map_err(|error| Error::Exclude {
                    rule: rule.clone(),
                    reason: error.to_string(),
                })?;
        }
        let built = builder.build().map_err(|error| Error::Exclude {
            rule: String::new(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            rules: Some(built),
            own,
        })
    }

    /// Whether this entry is left out.
    pub(crate) fn covers(&self, directory: &[u8], name: &[u8], stat: &Stat) -> bool {
        use std::os::unix::ffi::OsStrExt;
        if directory.is_empty() && name.starts_with(STAGE_PREFIX) && stat.is_dir() {
            return true;
        }
        if stat.is_dir() && self.own.contains(&(stat.dev, stat.ino)) {
            return true;
        }
        self.rules.as_ref().is_some_and(|rules| {
            let path = files::join(directory, name);
            let path = Path::new(std::ffi::OsStr::from_bytes(&path));
            rules.matched(path, stat.is_dir()).is_ignore()
        })
    }
}

struct Queue {
    waiting: Vec<(u32, Box<[u8]>, Stat)>,
    /// Threads that may still add to `waiting`.
    busy: usize,
    next: u32,
    failure: Option<Error>,
}

struct Walk<'a> {
    top: BorrowedFd<'a>,
    top_path: &'a Path,
    device: u64,
    excludes: &'a Excludes,
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// Looks at everything below `top`; the first directory of the answer is the top itself.
pub(crate) fn scan(
    top: BorrowedFd<'_>,
    top_path: &Path,
    excludes: &Excludes,
) -> Result<Vec<Directory>, Error> {
    let stat = files::stat_of(top).trying("look at", top_path)?;
    let walk = Walk {
        top,
        top_path,
        device: stat.dev,
        excludes,
        queue: Mutex::new(Queue {
            waiting: vec![(0, Box::default(), stat)],
            busy: 0,
            next: 1,
            failure: None,
        }),
        changed: Condvar::new(),
    };
    let mut found: Vec<(u32, Directory)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads())
            .map(|_| scope.spawn(|| walk.work()))
            .collect();
        let mut found = walk.work();
        for other in others {
            found.extend(other.join().unwrap_or_default());
        }
        found
    });
    let queue = walk
        .queue
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = queue.failure {
        return Err(failure);
    }
    found.sort_unstable_by_key(|(index, _)| *index);
    Ok(found.into_iter().map(|(_, directory)| directory).collect())
}

/// As many as there are processors, up to a number past which the disk or the kernel's locks decide.
pub(crate) fn threads() -> usize {
    const MOST: usize = 8;
    std::thread::available_parallelism().map_or(1, |count| count.get().min(MOST))
}

const READ_AT_ONCE: usize = 32 * 1024;

impl Walk<'_> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) -> Vec<(u32, Directory)> {
        let mut found = Vec::new();
        let mut buffer = Vec::with_capacity(READ_AT_ONCE);
        while let Some((index, path, stat)) = self.next() {
            match self.read(&path, stat, buffer.spare_capacity_mut()) {
                Ok(mut directory) => {
                    self.hand_out(&mut directory);
                    found.push((index, directory));
                }
                Err(error) => self.fail(error),
            }
        }
        found
    }

    fn next(&self) -> Option<(u32, Box<[u8]>, Stat)> {
        let mut queue = self.queue();
        loop {
            if queue.failure.is_some() {
                return None;
            }
            if let Some(work) = queue.waiting.pop() {
                queue.busy += 1;
                return Some(work);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives every directory in `directory` a number and puts it in the queue.
    fn hand_out(&self, directory: &mut Directory) {
        let mut queue = self.queue();
        for index in 0..directory.entries.len() {
            let entry = directory.entries[index];
            if entry.stat.is_dir() {
                let path = directory.path_of(&entry).into_boxed_slice();
                let number = queue.next;
                queue.next += 1;
                directory.entries[index].child = number;
                queue.waiting.push((number, path, entry.stat));
            }
        }
        queue.busy -= 1;
        drop(queue);
        self.changed.notify_all();
    }

    fn fail(&self, error: Error) {
        let mut queue = self.queue();
        queue.failure.get_or_insert(error);
        queue.busy -= 1;
        drop(queue);
        self.changed.notify_all();
    }

    fn read(
        &self,
        path: &[u8],
        stat: Stat,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Directory, Error> {
        let mut directory = Directory {
            path: path.into(),
            stat,
            names: Vec::new(),
            entries: Vec::new(),
            gone: false,
        };
        if stat.dev != self.device {
            return Ok(directory);
        }
        let fd = match files::open_dir_below(self.top, path) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => {
                directory.gone = true;
                return Ok(directory);
            }
            Err(error) => return Err(error).trying("open", self.full(path)),
        };
        // Of what was opened, which may be another one than was seen.
        directory.stat = files::stat_of(&fd).trying("look at", self.full(path))?;
        let mut listing = RawDir::new(&fd, buffer);
        while let Some(entry) = listing.next() {
            let entry = entry.trying("read", self.full(path))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            directory.entries.push(Entry {
                start: u32::try_from(directory.names.len()).unwrap_or(u32::MAX),
                length: u16::try_from(name.len()).unwrap_or(u16::MAX),
                stat: Stat::default(),
                child: NO_CHILD,
            });
            directory.names.extend_from_slice(name);
        }
        let Directory { names, entries, .. } = &mut directory;
        let name_of = |entry: &Entry| {
            let begin = entry.start as usize;
            &names[begin..begin + usize::from(entry.length)]
        };
        entries.sort_unstable_by(|one, other| name_of(one).cmp(name_of(other)));
        let mut failure = None;
        entries.retain_mut(|entry| {
            let name = name_of(entry);
            match files::stat_at(fd.as_fd(), name) {
                Ok(stat) => {
                    entry.stat = stat;
                    !self.excludes.covers(path, name, &stat)
                }
                // Removed in between.
                Err(Errno::NOENT) => false,
                Err(error) => {
                    failure.get_or_insert((error, files::join(path, name)));
                    false
                }
            }
        });
        match failure {
            Some((error, path)) => Err(error).trying("look at", self.full(&path)),
            None => Ok(directory),
        }
    }

    fn full(&self, path: &[u8]) -> PathBuf {
        files::full(self.top_path, path)
    }
}
