//! Walks a tree and looks at everything in it, with as many threads as help.
//!
//! Nothing is opened but directories. A link is never followed; another file system that is
//! mounted below is seen as an empty directory. Each thread compares what it sees with the cache at
//! once, while it has it at hand.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::RawDir;
use rustix::io::Errno;

use crate::cache::Cache;
use crate::error::{Error, Trying};
use crate::exclude::Excludes;
use crate::files::{self, Stat};
use crate::listing::{Directory, Entry, Listing, Seen};

struct Queue {
    waiting: Vec<(u32, Box<[u8]>, Stat)>,
    /// Threads that may still add to `waiting`.
    busy: usize,
    next: u32,
    failure: Option<Error>,
}

struct Walk<'a, 'c> {
    top: BorrowedFd<'a>,
    top_path: &'a Path,
    device: u64,
    excludes: &'a Excludes,
    cache: Option<&'c Cache>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// Looks at everything below `top`; the first directory of the answer is the top itself.
pub(crate) fn scan<'c>(
    top: BorrowedFd<'_>,
    top_path: &Path,
    excludes: &Excludes,
    cache: Option<&'c Cache>,
) -> Result<Vec<Directory<'c>>, Error> {
    let stat = files::stat_of(top).trying("look at", top_path)?;
    let walk = Walk {
        top,
        top_path,
        device: stat.dev,
        excludes,
        cache,
        queue: Mutex::new(Queue {
            waiting: vec![(0, Box::default(), stat)],
            busy: 0,
            next: 1,
            failure: None,
        }),
        changed: Condvar::new(),
    };
    let mut found: Vec<(u32, Directory<'c>)> = std::thread::scope(|scope| {
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
    const MAX_THREADS: usize = 8;
    std::thread::available_parallelism().map_or(1, |count| count.get().min(MAX_THREADS))
}

const READ_AT_ONCE: usize = 32 * 1024;

/// What a thread uses for one directory after the other.
struct Scratch {
    buffer: Vec<u8>,
    seen: Seen,
}

impl<'c> Walk<'_, 'c> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) -> Vec<(u32, Directory<'c>)> {
        let mut found = Vec::new();
        let mut scratch = Scratch {
            buffer: Vec::with_capacity(READ_AT_ONCE),
            seen: Seen::default(),
        };
        while let Some((index, path, stat)) = self.next() {
            match self.read(path, stat, &mut scratch) {
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
    fn hand_out(&self, directory: &mut Directory<'_>) {
        let mut queue = self.queue();
        let mut hand_out = |name: &[u8], entry: &mut Entry| {
            let path = files::join(&directory.path, name).into_boxed_slice();
            let number = queue.next;
            queue.next += 1;
            entry.set_child(number);
            queue.waiting.push((number, path, entry.stat));
        };
        match (&mut directory.listing, &directory.cached) {
            (Listing::Same(same), Some(cached)) if !same.children.is_empty() => {
                let mut entries = cached.entries().enumerate();
                for child in &mut same.children {
                    let entry = entries.find(|(index, _)| *index == child.index);
                    if let Some((_, before)) = entry {
                        hand_out(before.name, &mut child.entry);
                    }
                }
            }
            (Listing::Same(_), _) => {}
            (Listing::Seen(seen), _) => {
                for (name, entry) in seen.iter_mut().filter(|(_, entry)| entry.stat.is_dir()) {
                    hand_out(name, entry);
                }
            }
        }
        queue.busy -= 1;
        let wake = !queue.waiting.is_empty() || queue.busy == 0;
        drop(queue);
        if wake {
            self.changed.notify_all();
        }
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
        path: Box<[u8]>,
        stat: Stat,
        scratch: &mut Scratch,
    ) -> Result<Directory<'c>, Error> {
        let mut directory = Directory {
            path,
            stat,
            gone: false,
            cached: None,
            listing: Listing::Seen(Seen::default()),
        };
        let path = &*directory.path;
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
        scratch.seen.clear();
        let mut listing = RawDir::new(&fd, scratch.buffer.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry.trying("read", self.full(path))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                scratch.seen.push(name);
            }
        }
        scratch.seen.sort();
        let mut failure = None;
        scratch
            .seen
            .look(|name| match files::stat_at(fd.as_fd(), name) {
                Ok(stat) => (!self.excludes.covers(path, name, &stat)).then_some(stat),
                // Removed in between.
                Err(Errno::NOENT) => None,
                Err(error) => {
                    failure.get_or_insert((error, files::join(path, name)));
                    None
                }
            });
        if let Some((error, path)) = failure {
            return Err(error).trying("look at", self.full(&path));
        }
        directory.cached = self.cache.and_then(|cache| cache.directory(path));
        let cached = directory.cached.as_ref();
        directory.listing = match cached.and_then(|cached| scratch.seen.is_same(cached)) {
            Some(same) => Listing::Same(same),
            None => Listing::Seen(std::mem::take(&mut scratch.seen)),
        };
        Ok(directory)
    }

    fn full(&self, path: &[u8]) -> PathBuf {
        files::full(self.top_path, path)
    }
}
