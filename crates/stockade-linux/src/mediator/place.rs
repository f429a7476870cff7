//! Where a path of a caller lands: the object or the name in a directory, links followed.
//!
//! The kernel resolves whole paths without links in one step. Paths with links are taken apart,
//! because two of them mean something else for the mediator than for the caller: `/proc/self`,
//! and the links in `/proc/PID` that lead to a process's own files.
//!
//! A path is resolved once, to a directory that is held open and a name in it, or to an object that
//! is held open. What is judged and acted on is that; nothing is kept for the next call.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Pid, fchdir, getcwd, getpid, test_kill_process};
use stockade_rules::AbsPath;

use super::Worker;
use super::caller::Caller;

/// A directory, held open, and where it is.
pub(super) struct Directory {
    fd: OwnedFd,
    /// Its absolute path; what rules are about.
    pub(super) path: PathBuf,
}

impl Directory {
    /// A directory whose path is known.
    pub(super) fn at(fd: OwnedFd, path: PathBuf) -> Self {
        Self { fd, path }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A name in a directory, whether or not anything has it.
#[derive(Clone)]
pub(super) struct Name {
    pub(super) directory: Rc<Directory>,
    pub(super) last: CString,
    /// The absolute path; what rules are about.
    pub(super) path: PathBuf,
    /// The caller wrote a slash behind it: only a directory will do.
    pub(super) slash: bool,
}

/// Where a path leads as far as its last component.
pub(super) enum Place {
    Name(Name),
    /// It ends in `/`, `.` or `..`: what it leads to has a name, but not this one.
    Whole {
        start: OwnedFd,
        path: Vec<u8>,
    },
}

/// What a path leads to.
pub(super) enum Landing {
    /// Something that exists.
    Object(Object),
    /// A name that nothing has yet, in a directory that exists.
    Free(Name),
}

/// Something that exists.
pub(super) struct Object {
    pub(super) fd: OwnedFd,
    pub(super) stat: Stat,
    /// Its absolute path; none for what has no name (pipes, sockets, unlinked files).
    pub(super) path: Option<PathBuf>,
    /// Whether the caller named it by a descriptor of its own (`/proc/self/fd/N`); then `fd` is a
    /// copy of that descriptor.
    pub(super) held: bool,
    /// Whether a link of `/proc` led to it: its path may mean something else in this view.
    pub(super) by_link: bool,
}

/// Whether a link in the last place is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Follow,
    Keep,
}

/// As many as the kernel follows (`path_resolution(7)`).
const MAX_LINKS: usize = 40;
const PROC_ROOT_INODE: u64 = 1;

/// What programs that list processes read about init.
const OPEN_FILES_OF_INIT: [&str; 7] = [
    "cgroup",
    "cmdline",
    "comm",
    "mountinfo",
    "stat",
    "statm",
    "status",
];

impl Name {
    /// As the caller wrote it. For calls that never follow a link in the last place: with the slash
    /// the kernel knows what they may do and what not.
    pub(super) fn written(&self) -> Cow<'_, CStr> {
        let with_slash = || CString::new([self.last.as_bytes(), b"/"].concat()).ok();
        let written = self.slash.then(with_slash).flatten();
        written.map_or(Cow::Borrowed(&self.last), Cow::Owned)
    }

    /// The absolute path by now: the directory may have been renamed since it was resolved.
    pub(super) fn current_path(&self) -> Result<PathBuf, Errno> {
        let directory = path_of(self.directory.as_fd())?;
        Ok(directory.join(OsStr::from_bytes(self.last.as_bytes())))
    }

    /// Whether the path ended in `.` or `..`, or was the root.
    pub(super) fn is_dots(&self) -> bool {
        matches!(self.last.as_bytes(), b"." | b".." | b"/")
    }

    /// Why no file is made under a name that ends in a slash or in dots: the latter is there.
    pub(super) fn cannot_be_a_file(&self, exclusive: bool) -> Errno {
        if exclusive && self.is_dots() {
            Errno::EXIST
        } else {
            Errno::ISDIR
        }
    }
}

impl Object {
    /// Its name in the mediator's own `/proc/self/fd`, through which the mediator acts on it.
    pub(super) fn number(&self) -> String {
        self.fd.as_raw_fd().to_string()
    }

    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

impl Worker<'_, '_> {
    /// The name that a path means, its directory resolved, its last component not looked at.
    pub(super) fn name(&mut self, caller: &Caller, fd: u64, text: &CStr) -> Result<Name, Errno> {
        let text = self.alias(text);
        let bytes = text.to_bytes();
        if bytes.is_empty() {
            return Err(Errno::NOENT);
        }
        let slash = bytes.ends_with(b"/");
        let trimmed = trim_slashes(bytes);
        let Some((way, last)) = split_last(trimmed) else {
            // `/`, `x/.`, `..`: a directory that exists; whatever is asked of its name, the
            // kernel has the right error for the dots.
            let start = self.start(caller, fd, bytes)?;
            let directory = self.directory(caller, start, trimmed)?;
            let directory = located(directory)?;
            let dots = match trimmed {
                b"" => c"/",
                _ if trimmed.ends_with(b"..") => c"..",
                _ => c".",
            };
            return Ok(Name {
                path: directory.path.clone(),
                directory: Rc::new(directory),
                last: dots.to_owned(),
                slash,
            });
        };
        let directory = self.parent(caller, fd, way)?;
        let name = named(directory, last, slash)?;
        self.refuse_hidden(&name.path)?;
        Ok(name)
    }

    /// Where a path leads, its last component not looked at.
    pub(super) fn place(&mut self, caller: &Caller, fd: u64, text: &CStr) -> Result<Place, Errno> {
        let text = self.alias(text);
        let bytes = text.to_bytes();
        if bytes.is_empty() {
            return Err(Errno::NOENT);
        }
        let Some((way, last)) = split_last(bytes) else {
            return Ok(Place::Whole {
                start: self.start(caller, fd, bytes)?,
                path: bytes.to_vec(),
            });
        };
        let directory = self.parent(caller, fd, way)?;
        let name = named(directory, last, false)?;
        self.refuse_hidden(&name.path)?;
        Ok(Place::Name(name))
    }

    /// What a path leads to.
    pub(super) fn land(
        &mut self,
        caller: &Caller,
        fd: u64,
        text: &CStr,
        last: Last,
    ) -> Result<Landing, Errno> {
        let place = self.place(caller, fd, text)?;
        self.land_at(caller, place, last)
    }

    /// What is in a place.
    pub(super) fn land_at(
        &mut self,
        caller: &Caller,
        place: Place,
        last: Last,
    ) -> Result<Landing, Errno> {
        let name = match place {
            Place::Whole { start, path } => return self.walk(caller, start, &path, last),
            Place::Name(name) => name,
        };
        match open_without_links(name.directory.as_fd(), name.last.as_bytes()) {
            Ok(fd) => self.object_with(fd, Some(name.path)).map(Landing::Object),
            Err(Errno::NOENT) => Ok(Landing::Free(name)),
            Err(_) => {
                let start = open_name(name.directory.as_fd(), c".")?;
                self.walk(caller, start, name.last.as_bytes(), last)
            }
        }
    }

    /// The directory that a way leads to.
    fn parent(&mut self, caller: &Caller, fd: u64, way: &[u8]) -> Result<Rc<Directory>, Errno> {
        let start = self.start(caller, fd, way)?;
        let directory = self.directory(caller, start, way)?;
        let directory = located(directory)?;
        self.refuse_hidden(&directory.path)?;
        Ok(Rc::new(directory))
    }

    /// The directory at `path` below `start`.
    fn directory(
        &mut self,
        caller: &Caller,
        start: OwnedFd,
        path: &[u8],
    ) -> Result<OwnedFd, Errno> {
        if path.is_empty() {
            return Ok(start);
        }
        match open_without_links(start.as_fd(), path) {
            Err(Errno::LOOP) => {}
            other => return other,
        }
        match self.walk(caller, start, path, Last::Follow)? {
            Landing::Object(object) if object.kind().is_dir() => Ok(object.fd),
            Landing::Object(_) => Err(Errno::NOTDIR),
            Landing::Free(_) => Err(Errno::NOENT),
        }
    }

    /// Component by component, as the kernel would for the caller.
    fn walk(
        &mut self,
        caller: &Caller,
        start: OwnedFd,
        path: &[u8],
        last: Last,
    ) -> Result<Landing, Errno> {
        let mut at = start;
        let mut links = 0;
        let mut dot = ends_in_dot(path);
        let mut slash = dot || path.ends_with(b"/");
        let mut left: VecDeque<Vec<u8>> = split(path);
        while let Some(name) = left.pop_front() {
            if name == b".." {
                at = open_name(at.as_fd(), c"..")?;
                continue;
            }
            let name = CString::new(name).map_err(|_| Errno::INVAL)?;
            let is_last = left.is_empty();
            let next = match open_name(at.as_fd(), &name) {
                Ok(next) => next,
                Err(Errno::NOENT) if is_last && !dot => {
                    let directory = located(at)?;
                    self.refuse_hidden(&directory.path)?;
                    let name = named(Rc::new(directory), name.as_bytes(), slash)?;
                    return Ok(Landing::Free(name));
                }
                Err(error) => return Err(error),
            };
            let mode = rustix::fs::fstat(&next)?.st_mode;
            if !FileType::from_raw_mode(mode).is_symlink() {
                at = next;
                if is_last {
                    break;
                }
                continue;
            }
            if is_last && last == Last::Keep && !slash {
                return self.object(next).map(Landing::Object);
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(Errno::LOOP);
            }
            match self.link(caller, at.as_fd(), &name, next)? {
                Link::Text(target) => {
                    if target.starts_with(b"/") {
                        at = open_root()?;
                    }
                    dot |= is_last && ends_in_dot(&target);
                    slash |= dot || is_last && target.ends_with(b"/");
                    for part in split(&target).into_iter().rev() {
                        left.push_front(part);
                    }
                }
                Link::Object(object) if is_last => {
                    let object = self.object(object)?;
                    let by_link = true;
                    return Ok(Landing::Object(Object { by_link, ..object }));
                }
                Link::Held(object) if is_last => {
                    let object = self.object(object)?;
                    let (held, by_link) = (true, true);
                    return Ok(Landing::Object(Object {
                        held,
                        by_link,
                        ..object
                    }));
                }
                Link::Object(object) | Link::Held(object) => at = object,
            }
        }
        if slash && !FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode).is_dir() {
            return Err(Errno::NOTDIR);
        }
        if dot {
            fchdir(&at)?;
        }
        self.object(at).map(Landing::Object)
    }

    /// Where a link leads, for the caller.
    fn link(
        &self,
        caller: &Caller,
        directory: BorrowedFd<'_>,
        name: &CStr,
        link: OwnedFd,
    ) -> Result<Link, Errno> {
        let on_proc = rustix::fs::fstatfs(directory)?.f_type == libc::PROC_SUPER_MAGIC;
        if !on_proc {
            return Ok(Link::Text(
                rustix::fs::readlinkat(link, c"", Vec::new())?.into_bytes(),
            ));
        }
        let ids = || caller.inner_ids(self.shared.proc.as_fd());
        if rustix::fs::fstat(directory)?.st_ino == PROC_ROOT_INODE {
            return Ok(Link::Text(match name.to_bytes() {
                b"self" => ids()?.process.to_string().into_bytes(),
                b"thread-self" => {
                    let ids = ids()?;
                    format!("{}/task/{}", ids.process, ids.thread).into_bytes()
                }
                _ => rustix::fs::readlinkat(link, c"", Vec::new())?.into_bytes(),
            }));
        }
        let place = path_of(directory)?;
        self.refuse_hidden(&place)?;
        let number = name.to_str().ok().and_then(|text| text.parse().ok());
        if let Some(number) = number.filter(|_| place.ends_with("fd")) {
            let ids = ids()?;
            let own = [
                format!("/proc/{}/fd", ids.process),
                format!("/proc/{}/task/{}/fd", ids.process, ids.thread),
            ];
            if own.iter().any(|own| place == Path::new(own)) {
                return caller
                    .descriptor(self.shared.proc.as_fd(), number)
                    .map(Link::Held);
            }
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        Ok(Link::Object(rustix::fs::openat(
            directory,
            name,
            flags,
            Mode::empty(),
        )?))
    }

    /// The path as written, made absolute: for records about what could not be looked up.
    pub(super) fn lexical_path(&self, caller: &Caller, fd: u64, text: &CStr) -> Option<AbsPath> {
        let start = self.start(caller, fd, text.to_bytes()).ok()?;
        let base = path_of(start.as_fd()).ok()?;
        AbsPath::new(base.join(OsStr::from_bytes(text.to_bytes()))).ok()
    }

    pub(super) fn start(&self, caller: &Caller, fd: u64, path: &[u8]) -> Result<OwnedFd, Errno> {
        if path.starts_with(b"/") {
            open_root()
        } else {
            caller.directory(self.shared.proc.as_fd(), fd)
        }
    }

    /// What an `O_PATH` descriptor refers to.
    pub(super) fn object(&self, fd: OwnedFd) -> Result<Object, Errno> {
        let path = self.named_path(fd.as_fd())?;
        self.object_with(fd, path)
    }

    /// As [`Mediator::object`], where the path is known.
    fn object_with(&self, fd: OwnedFd, path: Option<PathBuf>) -> Result<Object, Errno> {
        let stat = rustix::fs::fstat(&fd)?;
        let path = path.filter(|_| stat.st_nlink > 0);
        if let Some(path) = &path {
            self.refuse_hidden(path)?;
        }
        Ok(Object {
            fd,
            stat,
            path,
            held: false,
            by_link: false,
        })
    }

    /// Callers may not get at the mediator's own files: for the mediator they would open. Init
    /// shares its memory. Nor at what `/proc` says about others, where no pid namespace hides them.
    fn refuse_hidden(&self, path: &Path) -> Result<(), Errno> {
        let Ok(below) = path.strip_prefix("/proc") else {
            return Ok(());
        };
        let mut parts = below.iter();
        let number = parts.next().and_then(|name| name.to_str()?.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            return Ok(());
        };
        if self.shared.own_pids {
            let is_open = parts.next().is_none_or(|file| {
                parts.next().is_none() && OPEN_FILES_OF_INIT.iter().any(|open| file == *open)
            });
            return if pid == Pid::INIT && !is_open {
                Err(Errno::ACCESS)
            } else {
                Ok(())
            };
        }
        if pid == getpid() {
            return Err(Errno::ACCESS);
        }
        // A process that our Landlock scope forbids to signal is outside the sandbox.
        if self.shared.plan.hide_processes && test_kill_process(pid) == Err(Errno::PERM) {
            return Err(Errno::NOENT);
        }
        Ok(())
    }

    /// The path with the alias of its directory in its place.
    fn alias<'t>(&self, text: &'t CStr) -> Cow<'t, CStr> {
        let bytes = text.to_bytes();
        for (from, to) in &self.shared.plan.aliases {
            let rest = bytes.strip_prefix(from.as_path().as_os_str().as_bytes());
            let Some(rest) = rest.filter(|rest| matches!(rest.first(), None | Some(b'/'))) else {
                continue;
            };
            let whole = [to.as_path().as_os_str().as_bytes(), rest].concat();
            if let Ok(whole) = CString::new(whole) {
                return Cow::Owned(whole);
            }
        }
        Cow::Borrowed(text)
    }

    pub(super) fn named_path(&self, fd: BorrowedFd<'_>) -> Result<Option<PathBuf>, Errno> {
        let number = CString::new(fd.as_raw_fd().to_string()).map_err(|_| Errno::INVAL)?;
        let text = rustix::fs::readlinkat(&self.shared.own_descriptors, &number, Vec::new())?;
        let path = PathBuf::from(OsStr::from_bytes(text.as_bytes()));
        Ok(path.is_absolute().then_some(path))
    }
}

/// Whether a path is `root` or lies below it; both are absolute and normal.
pub(super) fn lies_below(path: &Path, root: &Path) -> bool {
    let (path, root) = (path.as_os_str().as_bytes(), root.as_os_str().as_bytes());
    match path.strip_prefix(root) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || root == b"/",
        None => false,
    }
}

/// Whether `path` leads from `start` to the directory of `name` without a link.
pub(super) fn is_plain_way(start: &OwnedFd, path: &CStr, name: &Name) -> bool {
    let Some((way, _)) = split_last(path.to_bytes()) else {
        return false;
    };
    if way.is_empty() {
        return true;
    }
    let found = open_without_links(start.as_fd(), way);
    let same = |fd: OwnedFd| {
        let (here, there) = (rustix::fs::fstat(&fd), rustix::fs::fstat(&name.directory));
        here.is_ok_and(|here| {
            there.is_ok_and(|there| (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino))
        })
    };
    found.is_ok_and(same)
}

/// The absolute path of a directory. Asks by going there: that takes 1.1 µs, and reading the
/// link in `/proc` 2.8. Nothing that a worker does depends on its own directory.
pub(super) fn path_of(fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    fchdir(fd)?;
    let path = match getcwd(Vec::new()) {
        Err(Errno::NAMETOOLONG) => return long_path_of(fd),
        other => other?,
    };
    // Outside the view there are no paths, only descriptors (`getcwd(2)`).
    if path.as_bytes().starts_with(b"/") {
        Ok(PathBuf::from(OsStr::from_bytes(path.as_bytes())))
    } else {
        Err(Errno::NOENT)
    }
}

/// A directory, with where it is. One that may not be searched could be opened nevertheless
/// (`O_PATH`).
fn located(fd: OwnedFd) -> Result<Directory, Errno> {
    let path = path_of(fd.as_fd())?;
    Ok(Directory { fd, path })
}

/// A name in the directory at an absolute path without links.
pub(super) fn name_below(directory: &Path, last: &CStr) -> Result<Name, Errno> {
    let fd = open_without_links(CWD, directory.as_os_str().as_bytes())?;
    let directory = Rc::new(located(fd)?);
    named(directory, last.to_bytes(), false)
}

/// The path of a directory that is too deep for the kernel to name: the nearest one above that is
/// not, and the names on the way down.
fn long_path_of(fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    let mut names = Vec::new();
    let mut at = open_name(fd, c".")?;
    let mut path = loop {
        let above = open_name(at.as_fd(), c"..")?;
        names.push(name_in(above.as_fd(), at.as_fd())?);
        fchdir(&above)?;
        match getcwd(Vec::new()) {
            Ok(path) => break PathBuf::from(OsStr::from_bytes(path.as_bytes())),
            Err(Errno::NAMETOOLONG) => at = above,
            Err(error) => return Err(error),
        }
    };
    path.extend(names.iter().rev().map(|name| OsStr::from_bytes(name)));
    Ok(path)
}

/// The name that a directory has in the one above it.
fn name_in(above: BorrowedFd<'_>, child: BorrowedFd<'_>) -> Result<Vec<u8>, Errno> {
    let wanted = rustix::fs::fstat(child)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listed = rustix::fs::openat(above, c".", flags, Mode::empty())?;
    for entry in Dir::read_from(listed)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.ino() != wanted.st_ino || matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let found = rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino) {
            return Ok(name.to_bytes().to_vec());
        }
    }
    Err(Errno::NOENT)
}

/// What a link leads to.
enum Link {
    /// A descriptor of the caller itself.
    Held(OwnedFd),
    Object(OwnedFd),
    Text(Vec<u8>),
}

pub(super) fn open_without_links(start: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(start, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

fn open_name(directory: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty())
}

fn open_root() -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, c"/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// A name in a directory that is held open.
pub(super) fn named(directory: Rc<Directory>, last: &[u8], slash: bool) -> Result<Name, Errno> {
    Ok(Name {
        path: directory.path.join(OsStr::from_bytes(last)),
        directory,
        last: CString::new(last).map_err(|_| Errno::INVAL)?,
        slash,
    })
}

/// The way to a directory and the name in it; none if the last component is not a name.
fn split_last(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let (way, last) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => path.split_at(at + 1),
        None => (&b""[..], path),
    };
    (!matches!(last, b"" | b"." | b"..")).then_some((way, last))
}

fn split(path: &[u8]) -> VecDeque<Vec<u8>> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(<[u8]>::to_vec)
        .collect()
}

/// Whether a path ends in `.`: what comes before must be a directory that may be searched.
fn ends_in_dot(path: &[u8]) -> bool {
    path == b"." || path.ends_with(b"/.")
}

fn trim_slashes(path: &[u8]) -> &[u8] {
    let end = path
        .iter()
        .rposition(|byte| *byte != b'/')
        .map_or(0, |at| at + 1);
    &path[..end]
}
