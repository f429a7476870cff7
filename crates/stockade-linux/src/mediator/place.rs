//! Where a path of a caller lands: the object or the name in a directory, links followed.
//!
//! The kernel resolves whole paths without links in one step. Paths with links are taken apart,
//! because two of them mean something else for the mediator than for the caller: `/proc/self`,
//! and the links in `/proc/PID` that lead to a process's own files.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Pid, fchdir, getpid, test_kill_process};
use stockade_rules::AbsPath;

use super::Mediator;
use super::caller::Caller;
use super::directories::{Directory, Identity, Start};

/// A name in a directory, whether or not anything has it.
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
    /// Opened with `O_PATH`.
    pub(super) fd: OwnedFd,
    pub(super) stat: Stat,
    /// Its absolute path; none for what has no name (pipes, sockets, unlinked files).
    pub(super) path: Option<PathBuf>,
    /// The number under which the caller itself holds it open, if it was named by that.
    pub(super) descriptor: Option<u32>,
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

impl Name {
    /// As the caller wrote it. For calls that never follow a link in the last place: with the slash
    /// the kernel knows what they may do and what not.
    pub(super) fn written(&self) -> Cow<'_, CStr> {
        let with_slash = || CString::new([self.last.as_bytes(), b"/"].concat()).ok();
        let written = self.slash.then(with_slash).flatten();
        written.map_or(Cow::Borrowed(&self.last), Cow::Owned)
    }

    /// Whether the path ended in `.` or `..`, or was the root.
    pub(super) fn is_dots(&self) -> bool {
        matches!(self.last.as_bytes(), b"." | b"..")
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
    /// A path by which the mediator can act on this very object.
    pub(super) fn own_path(&self) -> String {
        format!("/proc/self/fd/{}", self.number())
    }

    /// The number of its descriptor in the mediator.
    pub(super) fn number(&self) -> String {
        self.fd.as_raw_fd().to_string()
    }

    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

impl Mediator<'_> {
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
            let (directory, _) = self.directory(caller, start, trimmed)?;
            let directory = self.located(directory)?;
            let dots = if trimmed.ends_with(b"..") {
                c".."
            } else {
                c"."
            };
            return Ok(Name {
                path: directory.path.clone(),
                directory: Rc::new(directory),
                last: dots.to_owned(),
                slash,
            });
        };
        let directory = self.parent(caller, fd, way)?;
        named(directory, last, slash)
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
        named(directory, last, false).map(Place::Name)
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
        &self,
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

    /// The directory that a way leads to. One that no link is on is remembered.
    fn parent(&mut self, caller: &Caller, fd: u64, way: &[u8]) -> Result<Rc<Directory>, Errno> {
        let start = if way.starts_with(b"/") {
            Ok(Start::Root)
        } else {
            let directory = self.callers.directory(caller, self.proc.as_fd(), fd);
            directory.map(Start::At)
        };
        if let Ok(start) = start
            && let Some(directory) = self.directories.find(start, way)
        {
            return Ok(directory);
        }
        let start = self.start(caller, fd, way)?;
        // By the descriptor: another thread may have changed the directory since.
        let from = match way.first() {
            Some(b'/') => Start::Root,
            _ => Start::At(Identity::of(&start, c"")?),
        };
        let (directory, links) = self.directory(caller, start, way)?;
        // One that may not be searched could be opened nevertheless (O_PATH).
        fchdir(&directory)?;
        let directory = Rc::new(self.located(directory)?);
        self.refuse_hidden(&directory.path)?;
        if links == Links::None {
            self.directories.keep(from, way, &directory);
        }
        Ok(directory)
    }

    /// The directory at `path` below `start`, and whether links lead there.
    fn directory(
        &self,
        caller: &Caller,
        start: OwnedFd,
        path: &[u8],
    ) -> Result<(OwnedFd, Links), Errno> {
        if path.is_empty() {
            return Ok((start, Links::None));
        }
        match open_without_links(start.as_fd(), path) {
            Ok(fd) => return Ok((fd, Links::None)),
            Err(Errno::LOOP) => {}
            Err(error) => return Err(error),
        }
        match self.walk(caller, start, path, Last::Follow)? {
            Landing::Object(object) if object.kind().is_dir() => Ok((object.fd, Links::Some)),
            Landing::Object(_) => Err(Errno::NOTDIR),
            Landing::Free(_) => Err(Errno::NOENT),
        }
    }

    /// Component by component, as the kernel would for the caller.
    fn walk(
        &self,
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
                    let directory = self.located(at)?;
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
                Link::Object(object) => {
                    if is_last {
                        let descriptor = self.held_as(caller, at.as_fd(), &name)?;
                        let object = self.object(object)?;
                        return Ok(Landing::Object(Object {
                            descriptor,
                            ..object
                        }));
                    }
                    at = object;
                }
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
        if rustix::fs::fstat(directory)?.st_ino == PROC_ROOT_INODE {
            return Ok(Link::Text(match name.to_bytes() {
                b"self" => caller.process(self.proc.as_fd())?.into_bytes(),
                b"thread-self" => {
                    let process = caller.process(self.proc.as_fd())?;
                    format!("{process}/task/{}", caller.thread.as_raw_nonzero()).into_bytes()
                }
                _ => rustix::fs::readlinkat(link, c"", Vec::new())?.into_bytes(),
            }));
        }
        self.refuse_hidden(&self.path_of(directory)?)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        Ok(Link::Object(rustix::fs::openat(
            directory,
            name,
            flags,
            Mode::empty(),
        )?))
    }

    /// The number, if this is an entry of the caller's own `/proc/PID/fd`.
    fn held_as(
        &self,
        caller: &Caller,
        directory: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<Option<u32>, Errno> {
        let path = self.path_of(directory)?;
        let own = format!("/proc/{}/fd", caller.process(self.proc.as_fd())?);
        let number = name.to_str().ok().and_then(|text| text.parse().ok());
        Ok(number.filter(|_| path == Path::new(&own)))
    }

    /// The path as written, made absolute: for records about what could not be looked up.
    pub(super) fn lexical_path(&self, caller: &Caller, fd: u64, text: &CStr) -> Option<AbsPath> {
        let start = self.start(caller, fd, text.to_bytes()).ok()?;
        let base = self.path_of(start.as_fd()).ok()?;
        AbsPath::new(base.join(OsStr::from_bytes(text.to_bytes()))).ok()
    }

    fn start(&self, caller: &Caller, fd: u64, path: &[u8]) -> Result<OwnedFd, Errno> {
        if path.starts_with(b"/") {
            open_root()
        } else {
            caller.directory(self.proc.as_fd(), fd)
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
            descriptor: None,
        })
    }

    /// Callers may not get at the mediator's own files: for the mediator they would open. Nor at
    /// what `/proc` says about others, where no pid namespace hides them.
    fn refuse_hidden(&self, path: &Path) -> Result<(), Errno> {
        let Ok(below) = path.strip_prefix("/proc") else {
            return Ok(());
        };
        let first = below.components().next();
        let number = first.and_then(|name| name.as_os_str().to_str()?.parse().ok());
        match number.and_then(Pid::from_raw) {
            Some(pid) if pid == getpid() => Err(Errno::ACCESS),
            // Whom the scope of our Landlock domain keeps us from signalling is not one of us.
            Some(pid) if self.plan.hide_processes => match test_kill_process(pid) {
                Err(Errno::PERM) => Err(Errno::NOENT),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The path with the alias of its directory in its place.
    fn alias<'t>(&self, text: &'t CStr) -> Cow<'t, CStr> {
        let bytes = text.to_bytes();
        for (from, to) in &self.plan.aliases {
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

    /// A directory, with where it is.
    fn located(&self, fd: OwnedFd) -> Result<Directory, Errno> {
        let path = self.path_of(fd.as_fd())?;
        Ok(Directory::new(fd, path))
    }

    /// The absolute path of a directory.
    pub(super) fn path_of(&self, fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
        self.named_path(fd)?.ok_or(Errno::NOENT)
    }

    fn named_path(&self, fd: BorrowedFd<'_>) -> Result<Option<PathBuf>, Errno> {
        let number = CString::new(fd.as_raw_fd().to_string()).map_err(|_| Errno::INVAL)?;
        let text = rustix::fs::readlinkat(&self.own_descriptors, &number, Vec::new())?;
        let path = PathBuf::from(OsStr::from_bytes(text.as_bytes()));
        Ok(path.is_absolute().then_some(path))
    }
}

/// Whether a way leads over links.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    None,
    Some,
}

enum Link {
    Object(OwnedFd),
    Text(Vec<u8>),
}

fn open_without_links(start: BorrowedFd<'_>, path: &[u8]) -> Result<OwnedFd, Errno> {
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
fn named(directory: Rc<Directory>, last: &[u8], slash: bool) -> Result<Name, Errno> {
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
