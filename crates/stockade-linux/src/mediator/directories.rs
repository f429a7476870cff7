//! Directories that calls named, kept from one call to the next.
//!
//! Who makes a file mostly makes the next one beside it. To find a directory anew the mediator
//! opens the caller's own, then the one below it, asks for its path and closes both: five system
//! calls of the eleven that answering one takes.
//!
//! What is kept can't lead astray. It is used only if its path is still the one that was judged,
//! which the kernel is asked each time: a directory that was moved, removed or replaced has
//! another, or none (`getcwd(2)`). So what is done is done where it was judged, whoever changes what
//! around it. Only ways without links are kept, and without `..`: those may come to lead elsewhere
//! while the directory stays.

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;

use rustix::fs::{AtFlags, Statx, StatxFlags};
use rustix::io::Errno;
use rustix::process::{fchdir, getcwd};

/// More than this are rarely worked in side by side.
const MOST: usize = 16;

/// A directory, held open, and where it is.
pub(super) struct Directory {
    fd: OwnedFd,
    /// Its absolute path; what rules are about.
    pub(super) path: PathBuf,
}

/// Which directory a path starts from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Root,
    At(Identity),
}

/// What tells a directory from all others that exist at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    device: (u32, u32),
    inode: u64,
    mount: u64,
}

/// The last ones used, the most recent first.
pub(super) struct Directories {
    known: Vec<Known>,
    most: usize,
}

struct Known {
    start: Start,
    way: Vec<u8>,
    directory: Rc<Directory>,
}

impl Directory {
    pub(super) fn new(fd: OwnedFd, path: PathBuf) -> Self {
        Self { fd, path }
    }

    /// Asks by going there: that takes 1.1 µs, and reading the link in `/proc` 2.8. Nothing that
    /// the mediator does depends on its own directory.
    fn is_where_it_was(&self) -> bool {
        let here = fchdir(&self.fd).and_then(|()| getcwd(Vec::new()));
        here.is_ok_and(|here| here.as_bytes() == self.path.as_os_str().as_bytes())
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Identity {
    /// Of what a name in a directory leads to; of the directory itself if it is empty.
    pub(super) fn of(directory: impl AsFd, name: &CStr) -> Result<Self, Errno> {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let Statx {
            stx_dev_major,
            stx_dev_minor,
            stx_ino,
            stx_mnt_id,
            ..
        } = rustix::fs::statx(directory, name, flags, wanted)?;
        Ok(Self {
            device: (stx_dev_major, stx_dev_minor),
            inode: stx_ino,
            mount: stx_mnt_id,
        })
    }
}

impl Directories {
    /// With room for as many descriptors.
    pub(super) fn new(room: usize) -> Self {
        Self {
            known: Vec::new(),
            most: room.clamp(1, MOST),
        }
    }

    /// The directory that a way leads to, if it is known and still where it was.
    pub(super) fn find(&mut self, start: Start, way: &[u8]) -> Option<Rc<Directory>> {
        let is_it = |known: &Known| known.start == start && known.way == way;
        let at = self.known.iter().position(is_it)?;
        if !self.known[at].directory.is_where_it_was() {
            self.known.remove(at);
            return None;
        }
        self.known[..=at].rotate_right(1);
        Some(Rc::clone(&self.known[0].directory))
    }

    /// Who may search a directory may be about to change: what lies behind it is looked up anew.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Keeps where a way leads that no link is on.
    pub(super) fn keep(&mut self, start: Start, way: &[u8], directory: &Rc<Directory>) {
        if way.split(|byte| *byte == b'/').any(|part| part == b"..") {
            return;
        }
        self.known.truncate(self.most - 1);
        let directory = Rc::clone(directory);
        let way = way.to_vec();
        self.known.insert(
            0,
            Known {
                start,
                way,
                directory,
            },
        );
    }
}
