//! Protected files that programs write in place: `cp -r` copies a repository's configuration,
//! `git worktree add` writes a redirect.
//!
//! The program gets a descriptor of a file without a name. When nobody has that one open for
//! writing any more, its content is judged and put under the name. Until then an empty file has
//! the name, and a lease on it: whoever opens it waits until the content is there, so nobody sees
//! the difference.
//!
//! A file that is changed in place is replaced by a copy first, the *stand-in*, which has a lease too.
//! Whoever opens it after the program has closed the file waits, and finds the new content.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::process::{Pid, fchdir};
use rustix::thread::gettid;
use stockade_rules::protected::{Judge, ProtectedName};

use super::copy::{Metadata, fill};
use super::place::{operation_of, read_all};
use crate::mediator::caller::Caller;
use crate::mediator::files::{Opening, open_at, open_own};
use crate::mediator::names::{identity, look_at};
use crate::mediator::place::{Directory, Name, Object, name_below, named};
use crate::mediator::record::Operation;
use crate::mediator::unfinished::Unfinished;
use crate::mediator::{Answer, Worker, locked};
use crate::sys::{self, lease};

/// Files that are being written and have no name yet.
#[derive(Default)]
pub(in crate::mediator) struct Publications {
    pending: Mutex<Vec<Pending>>,
    count: AtomicUsize,
    watch: OnceLock<Watch>,
}

struct Watch {
    inotify: OwnedFd,
    thread: Pid,
}

struct Pending {
    caller: Caller,
    row: &'static ProtectedName,
    path: PathBuf,
    /// What the program writes to.
    written: OwnedFd,
    /// What has the name meanwhile, if this call made it.
    placeholder: Option<OwnedFd>,
    /// What has the name meanwhile, and what the file held before. Where file systems have no
    /// leases, or the directory can't be written, there is none.
    stand_in: Option<OwnedFd>,
    /// Where the name is: another directory may have the same path by the time.
    directory: OwnedFd,
    /// The run does not end before the file is in place.
    _unfinished: Unfinished,
}

impl Publications {
    pub(in crate::mediator) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
}

impl<'scope, 'env: 'scope> Worker<'scope, 'env> {
    /// Makes a file whose content is judged when it is complete.
    pub(super) fn create_judged(
        &mut self,
        caller: &Caller,
        name: &Name,
        row: &'static ProtectedName,
        opening: Opening,
    ) -> Result<Answer, Errno> {
        let make = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let (mode, inherit) = (opening.mode, opening.inherit);
        let watch = opening.writes().then(|| self.watch()).transpose()?;
        let placeholder = self.with_umask_of(caller, |_| open_at(name, make, mode))?;
        let Some(watch) = watch else {
            // It stays empty: libgit2 makes its configuration this way before it replaces it.
            let flags = opening.flags & !(OFlags::CREATE | OFlags::EXCL);
            let fd = open_own(self.shared, &placeholder, flags, Mode::empty())?;
            return Ok(Answer::Descriptor(fd, inherit));
        };
        let file = self.nameless(caller, name, opening)?;
        let written = open_own(self.shared, &file, OFlags::RDONLY, Mode::empty())?;
        // Where the file system has no leases, a reader may see the empty file for a moment.
        let _ = lease::take(placeholder.as_fd(), watch.thread);
        self.await_close(
            Pending {
                caller: caller.again(),
                row,
                path: name.path.clone(),
                written,
                placeholder: Some(placeholder),
                stand_in: None,
                directory: rustix::io::fcntl_dupfd_cloexec(&name.directory, 0)?,
                _unfinished: Unfinished::begin(),
            },
            &file,
        )?;
        Ok(Answer::Descriptor(file, inherit))
    }

    /// Opens a file for writing whose content is judged when it is complete.
    pub(super) fn change_judged(
        &mut self,
        caller: &Caller,
        object: &Object,
        path: &Path,
        row: &'static ProtectedName,
        opening: Opening,
    ) -> Result<Answer, Errno> {
        let name = name_at(path)?;
        if identity(&look_at(&name)?) != identity(&object.stat) {
            return Err(Errno::ACCESS);
        }
        self.let_read(&name);
        // The kernel's own answer to who may write it.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK;
        drop(open_own(self.shared, &object.fd, flags, Mode::empty())?);
        let readable = OFlags::RDONLY | OFlags::NONBLOCK;
        let old = open_own(self.shared, &object.fd, readable, Mode::empty())?;
        let metadata = Metadata::of(&old)?;
        let old = read_all(old, row.judge)?;
        let mode = Mode::from_raw_mode(object.stat.st_mode & 0o777);
        let file = self.nameless(caller, &name, Opening { mode, ..opening })?;
        rustix::fs::fchmod(&file, mode)?;
        let written = open_own(self.shared, &file, OFlags::RDONLY, Mode::empty())?;
        if !opening.flags.contains(OFlags::TRUNC) {
            let all = open_own(self.shared, &file, OFlags::WRONLY, Mode::empty())?;
            let all = std::fs::File::from(all);
            all.write_all_at(&old, 0).map_err(|_| Errno::IO)?;
        }
        let stand_in = self.stand_in(&name, row, &old, &metadata);
        self.await_close(
            Pending {
                caller: caller.again(),
                row,
                path: path.to_owned(),
                written,
                placeholder: None,
                stand_in,
                directory: rustix::io::fcntl_dupfd_cloexec(&name.directory, 0)?,
                _unfinished: Unfinished::begin(),
            },
            &file,
        )?;
        Ok(Answer::Descriptor(file, opening.inherit))
    }

    /// A copy of a file in its place, so that whoever opens it can be kept waiting.
    fn stand_in(
        &self,
        name: &Name,
        row: &ProtectedName,
        old: &[u8],
        metadata: &Metadata,
    ) -> Option<OwnedFd> {
        // The mediator itself, of this run or another, follows these at any time.
        if matches!(row.judge, Judge::Redirect | Judge::CommonDirectory) {
            return None;
        }
        let watch = self.watch().ok()?;
        let file = self.shared.publish_open(name, old, metadata).ok()?;
        lease::take(file.as_fd(), watch.thread).ok()?;
        Some(file)
    }

    /// Lets everybody open a file that has a name and is being changed: it holds what it held before.
    pub(super) fn let_read(&self, name: &Name) {
        let publications = &self.shared.publications;
        if publications.is_empty() {
            return;
        }
        let pending = locked(&publications.pending);
        for file in pending.iter().filter_map(|one| one.stand_in.as_ref()) {
            if has_name(file, name) {
                let _ = lease::release(file.as_fd());
            }
        }
    }

    /// A file without a name beside a name, for the caller to write.
    fn nameless(
        &mut self,
        caller: &Caller,
        name: &Name,
        opening: Opening,
    ) -> Result<OwnedFd, Errno> {
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::TRUNC | OFlags::NOFOLLOW;
        let flags = opening.flags & !made | OFlags::TMPFILE | OFlags::CLOEXEC;
        self.with_umask_of(caller, |_| {
            rustix::fs::openat(&name.directory, c".", flags, opening.mode)
        })
    }

    fn await_close(&mut self, pending: Pending, file: &OwnedFd) -> Result<(), Errno> {
        let watch = self.watch()?;
        fchdir(&self.shared.own_descriptors)?;
        let number = file.as_raw_fd().to_string();
        let flags = WatchFlags::CLOSE_WRITE;
        inotify::add_watch(&watch.inotify, number, flags)?;
        let publications = &self.shared.publications;
        locked(&publications.pending).push(pending);
        publications.count.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Who waits for files to be closed; the first file starts it.
    fn watch(&self) -> Result<&'env Watch, Errno> {
        let shared = self.shared;
        if !shared.own_directories {
            return Err(Errno::ACCESS);
        }
        if let Some(watch) = shared.publications.watch.get() {
            return Ok(watch);
        }
        let inotify = inotify::init(CreateFlags::CLOEXEC)?;
        let events = rustix::io::fcntl_dupfd_cloexec(&inotify, 0)?;
        let (pool, scope) = (self.pool, self.scope);
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let wait = move || {
            let _ = sys::signal::allow_interrupt();
            let _ = sender.send(gettid());
            if let Ok(mut worker) = Worker::new(shared, pool, scope) {
                worker.publish_closed(&events);
            }
        };
        std::thread::Builder::new()
            .name("mediator".to_owned())
            .spawn_scoped(scope, wait)
            .map_err(|_| Errno::AGAIN)?;
        let thread = receiver.recv().map_err(|_| Errno::AGAIN)?;
        // Another worker may have been quicker; then this thread waits for nothing.
        Ok(shared
            .publications
            .watch
            .get_or_init(|| Watch { inotify, thread }))
    }

    fn publish_closed(&mut self, events: &OwnedFd) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        loop {
            // Somebody may begin to wait for a lease at any moment, also before this one waits.
            let pending = !self.shared.publications.is_empty();
            let interval = Timespec {
                tv_sec: 0,
                tv_nsec: if pending { 5_000_000 } else { 100_000_000 },
            };
            let mut watched = [PollFd::new(events, PollFlags::IN)];
            if poll(&mut watched, Some(&interval)) == Ok(1) {
                let _ = inotify::Reader::new(events, &mut buffer).next().map(drop);
            }
            self.flush();
        }
    }

    /// Puts in place what nobody writes any more. Whoever waits to read what is still being
    /// written gets what is there so far.
    pub(in crate::mediator) fn flush(&mut self) {
        let publications = &self.shared.publications;
        let mut pending = locked(&publications.pending);
        let mut still = Vec::new();
        for one in std::mem::take(&mut *pending) {
            if lease::has_writers(one.written.as_fd()) {
                let wanted = |file: &&OwnedFd| lease::is_wanted(file.as_fd());
                if let Some(placeholder) = one.placeholder.as_ref().filter(wanted) {
                    let _ = self.fill_placeholder(&one, placeholder);
                    let _ = lease::release(placeholder.as_fd());
                }
                if let Some(stand_in) = one.stand_in.as_ref().filter(wanted) {
                    let _ = lease::release(stand_in.as_fd());
                }
                still.push(one);
            } else {
                self.finish(&one);
                // With its lease.
                drop(one);
                // Only now: a worker that sees none left does not wait for this lock.
                publications.count.fetch_sub(1, Ordering::AcqRel);
            }
        }
        *pending = still;
    }

    fn finish(&mut self, one: &Pending) {
        let placed = match &one.placeholder {
            Some(placeholder) => self.fill_placeholder(one, placeholder),
            None => self.replace(one),
        };
        if placed.is_err() {
            // The program has long gone on; the record is all that is left to it.
            let operation = operation_of(one.row).unwrap_or(Operation::Create);
            self.refuse(&one.caller, operation, &one.path, one.row);
            if let Some(placeholder) = &one.placeholder {
                let before = self.shared.history.removed(&one.path);
                match before.filter(|_| one.row.judge == Judge::Never) {
                    Some(before) => put_back(placeholder, &before),
                    None => remove_placeholder(one, placeholder),
                }
            }
        }
    }

    /// What the program wrote, if it may take the place of `old`.
    fn content(&self, one: &Pending, old: &[u8]) -> Result<(Vec<u8>, Metadata), Errno> {
        let again = open_own(self.shared, &one.written, OFlags::RDONLY, Mode::empty())?;
        let metadata = Metadata::of(&again)?;
        let new = read_all(again, one.row.judge)?;
        if self.passes(&one.path, one.row, old, &new) {
            Ok((new, metadata))
        } else {
            Err(Errno::ACCESS)
        }
    }

    fn fill_placeholder(&mut self, one: &Pending, placeholder: &OwnedFd) -> Result<(), Errno> {
        let (content, metadata) = self.content(one, &[])?;
        fill(placeholder, &content, &metadata)
    }

    /// Settings that a file has may stay in it. Those of a file elsewhere must not come along.
    fn replace(&mut self, one: &Pending) -> Result<(), Errno> {
        let name = one.name()?;
        let stand_in = one.stand_in.as_ref();
        let file = match stand_in.filter(|stand_in| has_name(stand_in, &name)) {
            // Opening it would break the lease.
            Some(stand_in) => {
                rustix::fs::seek(stand_in, SeekFrom::Start(0))?;
                rustix::io::fcntl_dupfd_cloexec(stand_in, 0)?
            }
            None => open_at(&name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?,
        };
        let (content, metadata) = self.content(one, &read_all(file, one.row.judge)?)?;
        self.shared.publish(&name, &content, &metadata)?;
        // Whoever waits to open the stand-in found it before it lost the name.
        if let Some(stand_in) = stand_in
            && rustix::fs::fstat(stand_in)?.st_nlink == 0
        {
            fill(stand_in, &content, &metadata)?;
        }
        Ok(())
    }
}

impl Pending {
    fn name(&self) -> Result<Name, Errno> {
        let (parent, last) = self
            .path
            .parent()
            .zip(self.path.file_name())
            .ok_or(Errno::NOENT)?;
        let directory = rustix::io::fcntl_dupfd_cloexec(&self.directory, 0)?;
        let directory = Rc::new(Directory::at(directory, parent.to_owned()));
        named(directory, last.as_bytes(), false)
    }
}

/// The name that a path is, its directory opened anew without following links.
pub(super) fn name_at(path: &Path) -> Result<Name, Errno> {
    let (parent, last) = path.parent().zip(path.file_name()).ok_or(Errno::NOENT)?;
    let last = CString::new(last.as_bytes()).map_err(|_| Errno::INVAL)?;
    name_below(parent, &last)
}

/// What a file held before it was removed is better than no file.
fn put_back(placeholder: &OwnedFd, content: &[u8]) {
    let _ = rustix::fs::ftruncate(placeholder, 0)
        .and_then(|()| rustix::io::pwrite(placeholder, content, 0));
}

/// Whether a name is that of a file that is held open.
fn has_name(file: &OwnedFd, name: &Name) -> bool {
    let own = rustix::fs::fstat(file).map(|stat| identity(&stat));
    own.is_ok() && own == look_at(name).map(|stat| identity(&stat))
}

fn remove_placeholder(one: &Pending, placeholder: &OwnedFd) {
    let Ok(name) = one.name() else {
        return;
    };
    if has_name(placeholder, &name) {
        let _ = rustix::fs::unlinkat(&name.directory, &name.last, AtFlags::empty());
    }
}
