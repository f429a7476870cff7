//! Reading what files contain: into the store, or only to know what it is.
//!
//! A file is opened without following a link and without waiting for a FIFO's writer, and is read
//! only if what was opened is an ordinary file. It is looked at before and after: if it changed
//! meanwhile it is read again, a few times, and then taken as it was read and reported.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use crate::chunk;
use crate::error::{Error, Trying};
use crate::files::{self, Stat};
use crate::id::ObjectId;
use crate::listing::Directory;
use crate::pack::Block;
use crate::progress::Progress;
use crate::scan;
use crate::store::Sink;
use crate::tree::{Content, Extent, Kind, Meta, Node, put_extents};
use crate::xattr;

/// How content is read.
pub(crate) struct Reading<'a> {
    pub(crate) top: BorrowedFd<'a>,
    pub(crate) top_path: &'a Path,
    /// Where it goes; nowhere if only its identity is wanted.
    pub(crate) sink: Option<&'a Sink<'a>>,
    pub(crate) xattrs: bool,
    pub(crate) progress: &'a dyn Progress,
}

/// A file that was read.
pub(crate) struct ReadFile {
    /// As it was when it was read.
    pub(crate) stat: Stat,
    pub(crate) node: Node,
    /// It changed while it was read.
    pub(crate) unstable: bool,
}

/// What became of the files that were to be read, by their number; none if it is gone.
pub(crate) type Outcome = (usize, Option<ReadFile>);

const ATTEMPTS: usize = 3;

/// Files that a thread takes at once, and bytes.
const BATCH_FILES: usize = 64;
const BATCH_BYTES: u64 = 512 * 1024;

impl Reading<'_> {
    /// Reads these entries, given as directory and entry, with as many threads as help.
    pub(crate) fn read_all(
        &self,
        directories: &[Directory<'_>],
        wanted: &[(usize, usize)],
    ) -> Result<Vec<Outcome>, Error> {
        let next = AtomicUsize::new(0);
        let failure = Mutex::new(None);
        let work = || {
            let mut outcomes = Vec::new();
            let done = Worker::new(self).and_then(|mut worker| {
                worker.work(directories, wanted, &next, &mut outcomes)?;
                worker.finish()
            });
            if let Err(error) = done {
                // Nobody else begins a batch.
                next.store(wanted.len(), Ordering::Relaxed);
                if let Ok(mut failure) = failure.lock() {
                    failure.get_or_insert(error);
                }
            }
            outcomes
        };
        let threads = scan::threads().min(1 + wanted.len() / 8);
        let mut outcomes = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut outcomes = work();
            for other in others {
                outcomes.extend(other.join().unwrap_or_default());
            }
            outcomes
        });
        match failure.into_inner() {
            Ok(None) => {
                outcomes.sort_unstable_by_key(|(number, _)| *number);
                Ok(outcomes)
            }
            Ok(Some(error)) => Err(error),
            Err(_) => Err(io::Error::other("a thread ended early")).trying("read", self.top_path),
        }
    }
}

struct Worker<'r, 'a> {
    reading: &'r Reading<'a>,
    block: Option<Block>,
    buffer: Vec<u8>,
    /// The directory that was opened last.
    directory: Option<(usize, OwnedFd)>,
}

impl<'r, 'a> Worker<'r, 'a> {
    fn new(reading: &'r Reading<'a>) -> Result<Self, Error> {
        let block = match reading.sink {
            Some(_) => Some(Block::new().trying("compress content of", reading.top_path)?),
            None => None,
        };
        Ok(Self {
            reading,
            block,
            buffer: Vec::new(),
            directory: None,
        })
    }

    fn work(
        &mut self,
        directories: &[Directory<'_>],
        wanted: &[(usize, usize)],
        next: &AtomicUsize,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Error> {
        let size = |number: usize| {
            let (directory, entry) = wanted[number];
            let seen = directories[directory].seen();
            seen.map_or(0, |seen| seen.get(entry).1.stat.size)
        };
        loop {
            let mut range = 0..0;
            let taken = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |begin| {
                let mut end = begin;
                let mut bytes = 0;
                while end < wanted.len() && end - begin < BATCH_FILES && bytes < BATCH_BYTES {
                    bytes += size(end);
                    end += 1;
                }
                range = begin..end;
                (end > begin).then_some(end)
            });
            if taken.is_err() {
                return Ok(());
            }
            for number in range {
                let (at, entry) = wanted[number];
                let directory = &directories[at];
                let Some((name, entry)) = directory.seen().map(|seen| seen.get(entry)) else {
                    continue;
                };
                let file = self.read_entry(at, directory, name)?;
                self.reading.progress.advance(entry.stat.size);
                outcomes.push((number, file));
            }
        }
    }

    fn finish(mut self) -> Result<(), Error> {
        match (self.reading.sink, &mut self.block) {
            (Some(sink), Some(block)) => sink.flush(block),
            _ => Ok(()),
        }
    }

    fn read_entry(
        &mut self,
        at: usize,
        directory: &Directory<'_>,
        name: &[u8],
    ) -> Result<Option<ReadFile>, Error> {
        let path = || files::full(self.reading.top_path, &files::join(&directory.path, name));
        if self.directory.as_ref().is_none_or(|(open, _)| *open != at) {
            match files::open_dir_below(self.reading.top, &directory.path) {
                Ok(fd) => self.directory = Some((at, fd)),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error).trying("open", path()),
            }
        }
        let Some((_, fd)) = &self.directory else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(fd, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            // Gone, or something else by now.
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(error) => return Err(error).trying("open", path()),
        };
        self.read(&file).map_or_else(
            |error| match error {
                ReadError::Io(error) => Err(error).trying("read", path()),
                ReadError::Store(error) => Err(error),
            },
            Ok,
        )
    }

    fn read(&mut self, file: &File) -> Result<Option<ReadFile>, ReadError> {
        let mut before = rustix::fs::fstat(file)?;
        for attempt in 1..=ATTEMPTS {
            let stat = Stat::from(before);
            if !stat.file_type().is_file() {
                return Ok(None);
            }
            #[expect(clippy::cast_sign_loss, reason = "never negative")]
            let allocated = before.st_blocks as u64 * 512;
            let extents = self.extents(file, stat.size, allocated < stat.size)?;
            let xattrs = if self.reading.xattrs {
                xattr::read(file.as_fd())?
            } else {
                Vec::new()
            };
            let after = rustix::fs::fstat(file)?;
            let unstable = Stat::from(after) != stat || extents.is_none();
            if unstable && attempt < ATTEMPTS {
                before = after;
                continue;
            }
            let extents = extents.unwrap_or_default();
            let size = extents.iter().map(Extent::len).sum();
            let node = Node {
                meta: meta(&stat, xattrs),
                kind: Kind::File {
                    size,
                    content: self.content(extents)?,
                },
            };
            return Ok(Some(ReadFile {
                stat,
                node,
                unstable,
            }));
        }
        Ok(None)
    }

    fn content(&mut self, extents: Vec<Extent>) -> Result<Content, ReadError> {
        if Content::fits_inline(&extents) {
            return Ok(Content::Inline(extents));
        }
        let mut list = Vec::new();
        put_extents(&mut list, &extents);
        self.put(&list).map(Content::Listed)
    }

    fn put(&mut self, content: &[u8]) -> Result<ObjectId, ReadError> {
        match (self.reading.sink, &mut self.block) {
            (Some(sink), Some(block)) => sink.put(block, content).map_err(ReadError::Store),
            _ => Ok(ObjectId::of(content)),
        }
    }

    /// The pieces of a file; none if it became shorter meanwhile.
    fn extents(
        &mut self,
        file: &File,
        size: u64,
        has_holes: bool,
    ) -> Result<Option<Vec<Extent>>, ReadError> {
        let mut extents = Vec::new();
        let mut at = 0;
        while at < size {
            let (data, end) = if has_holes {
                next_data(file, at, size)?
            } else {
                (at, size)
            };
            if data > at {
                extents.push(Extent::Hole(data - at));
            }
            if !self.pieces(file, data, end, &mut extents)? {
                return Ok(None);
            }
            at = end;
        }
        Ok(Some(extents))
    }

    /// Reads from `at` to `end`; false if the file ends before.
    fn pieces(
        &mut self,
        file: &File,
        mut at: u64,
        end: u64,
        extents: &mut Vec<Extent>,
    ) -> Result<bool, ReadError> {
        // The buffer is lent out while the sink is.
        let mut buffer = std::mem::take(&mut self.buffer);
        let length = end - at;
        let next = |buffer: &mut [u8]| {
            let got = read_up_to(file, buffer, at)?;
            at += got as u64;
            Ok(got)
        };
        let whole = cut(&mut buffer, length, next, |piece| self.put(piece), extents);
        self.buffer = buffer;
        whole
    }
}

/// Cuts so many bytes into pieces; false if there are fewer.
pub(crate) fn cut<E: From<io::Error>>(
    buffer: &mut Vec<u8>,
    mut left: u64,
    mut fill: impl FnMut(&mut [u8]) -> io::Result<usize>,
    mut put: impl FnMut(&[u8]) -> Result<ObjectId, E>,
    extents: &mut Vec<Extent>,
) -> Result<bool, E> {
    let mut filled = 0;
    while left > 0 {
        let rest = usize::try_from(left).unwrap_or(usize::MAX);
        let wanted = rest.min(chunk::MAX_CHUNK_BYTES);
        if buffer.len() < wanted {
            buffer.resize(wanted.next_power_of_two().min(chunk::MAX_CHUNK_BYTES), 0);
        }
        filled += fill(&mut buffer[filled..wanted])?;
        if filled < wanted {
            return Ok(false);
        }
        let length = if rest <= chunk::WHOLE {
            rest
        } else {
            chunk::first_cut(&buffer[..filled])
        };
        let id = put(&buffer[..length])?;
        extents.push(Extent::Data(u32::try_from(length).unwrap_or(u32::MAX), id));
        buffer.copy_within(length..filled, 0);
        filled -= length;
        left -= length as u64;
    }
    Ok(true)
}

/// The next piece of a sparse file that was written, as begin and end.
fn next_data(file: &File, at: u64, size: u64) -> io::Result<(u64, u64)> {
    let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.min(size),
        // Only a hole is left.
        Err(Errno::NXIO) => return Ok((size, size)),
        // A file system that knows no holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok((at, size)),
        Err(error) => return Err(error.into()),
    };
    let hole = rustix::fs::seek(file, SeekFrom::Hole(data)).unwrap_or(size);
    Ok((data, hole.clamp(data, size)))
}

fn read_up_to(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

pub(crate) fn meta(stat: &Stat, xattrs: Vec<(Vec<u8>, Vec<u8>)>) -> Meta {
    Meta {
        mode: stat.permissions(),
        uid: stat.uid,
        gid: stat.gid,
        mtime: stat.mtime,
        xattrs,
    }
}

enum ReadError {
    Io(io::Error),
    Store(Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for ReadError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl Extent {
    /// What it consists of; nothing if it is a hole.
    pub(crate) fn object(&self) -> Option<ObjectId> {
        match self {
            Self::Hole(_) => None,
            Self::Data(_, id) => Some(*id),
        }
    }

    /// How many bytes of the file it is.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Hole(length) => *length,
            Self::Data(length, _) => u64::from(*length),
        }
    }
}
