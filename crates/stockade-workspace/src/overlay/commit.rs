//! Making the host's directory what the view over it shows.
//!
//! First it is checked that the host's files are what they were when the layer changed them; then
//! everything is copied to a directory beside them; then each file changes places with the host's
//! in one step. After a crash every file is the old one or the new one, and a commit can be done
//! again: what is the same already is no conflict.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, SeekFrom};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::base::Base;
use super::layer::{self, Entry, Said, on_host};
use super::{Overlay, directory};
use crate::content;
use crate::error::{Error, Trying};
use crate::exclude::STAGE_PREFIX;
use crate::files::{self, Stat};
use crate::restore::{set_attributes, set_attributes_at, set_times};
use crate::workspace::{read_json, write_json};
use crate::xattr;

/// What becomes of files that the host changed meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are three ways")]
pub enum Resolve {
    /// Nothing is committed, and they are listed.
    Refuse,
    /// They become what the overlay has.
    Ours,
    /// They stay, and the overlay's are forgotten.
    Theirs,
}

/// What a commit changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CommitReport {
    /// Files and directories that were written.
    pub written: u64,
    /// Files and directories that were removed.
    pub removed: u64,
    /// Of which only attributes changed.
    pub adjusted: u64,
    /// Files that stayed as the host had them.
    pub kept: Vec<PathBuf>,
}

/// Directories that a commit uses while it works.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Journal {
    stages: Vec<Staged>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Staged {
    #[serde(with = "crate::state::path")]
    root: PathBuf,
    name: String,
}

/// One thing to do below a root.
#[derive(Debug)]
enum Act {
    Remove(Vec<u8>),
    Directory(Vec<u8>),
    Put(Vec<u8>),
    /// The content is the same.
    Adjust(Vec<u8>),
}

/// A root and its layer.
struct Pair<'a> {
    root: &'a Path,
    root_fd: OwnedFd,
    upper: PathBuf,
    upper_fd: OwnedFd,
    acts: Vec<Act>,
    /// Directories of the layer that were chosen, with their attributes there.
    directories: BTreeMap<Vec<u8>, Stat>,
    chosen: Vec<Entry>,
    kept: Vec<Vec<u8>>,
}

impl Overlay {
    /// Commits what the overlay changed: all of it, or what is at or below `paths`. What was
    /// committed is no longer part of the overlay.
    ///
    /// # Errors
    /// If there is nothing at or below one of the paths, if the machine was started anew and nobody has [taken it as
    /// complete](Self::take_as_complete), if files of the host changed meanwhile and `resolve` does
    /// not say what to do, or if something can't be written; each file is then the old one or the
    /// new one.
    pub fn commit(self, paths: &[PathBuf], resolve: Resolve) -> Result<CommitReport, Error> {
        if self.was_restarted() {
            return Err(Error::Restarted(self.place.name));
        }
        self.note()?;
        let mut base = Base::load(&directory(&self.place))?;
        let mut report = CommitReport::default();
        let mut pairs = Vec::new();
        let mut conflicts = Vec::new();
        for root in &self.index.roots {
            let mut pair = Pair::open(&root.path, self.upper(root))?;
            pair.choose(paths)?;
            pair.plan(&base, resolve, &mut conflicts)?;
            pairs.push(pair);
        }
        for path in paths {
            let is_at = |pair: &Pair<'_>| {
                let chosen = pair.chosen.iter().map(|entry| &entry.path);
                let mut all = chosen.chain(&pair.kept);
                all.any(|entry| files::full(pair.root, entry).starts_with(path))
            };
            if !pairs.iter().any(is_at) {
                return Err(Error::NoChange {
                    workspace: self.place.name.clone(),
                    path: path.clone(),
                });
            }
        }
        if resolve == Resolve::Refuse && !conflicts.is_empty() {
            return Err(Error::HostChanged(conflicts));
        }
        if resolve == Resolve::Theirs {
            report.kept = conflicts;
        }
        let journal = Journal {
            stages: pairs
                .iter()
                .map(|pair| Staged {
                    root: pair.root.to_owned(),
                    name: format!(
                        "{}{}",
                        String::from_utf8_lossy(STAGE_PREFIX),
                        files::random_name()
                    ),
                })
                .collect(),
        };
        let journal_file = directory(&self.place).join(JOURNAL);
        write_json(&journal_file, &journal)?;
        for (pair, staged) in pairs.iter().zip(&journal.stages) {
            pair.apply(&staged.name, &mut report)?;
        }
        files::remove_file(&journal_file)?;
        if paths.is_empty() {
            self.discard()?;
            return Ok(report);
        }
        for pair in &pairs {
            pair.forget(&mut base)?;
        }
        base.save()?;
        Ok(report)
    }
}

/// Removes what a commit that was interrupted had prepared.
pub(super) fn recover(overlay: &Overlay) -> Result<(), Error> {
    let directory = directory(&overlay.place);
    let Some(journal) = read_journal(&directory)? else {
        return Ok(());
    };
    for staged in &journal.stages {
        files::remove_tree(&staged.root.join(&staged.name))?;
    }
    files::remove_file(&directory.join(JOURNAL))
}

/// Whether the journal of a commit makes sense, if there is one.
pub(super) fn check(directory: &Path) -> Result<(), Error> {
    read_journal(directory).map(drop)
}

const JOURNAL: &str = "commit.json";

fn read_journal(directory: &Path) -> Result<Option<Journal>, Error> {
    let path = directory.join(JOURNAL);
    if !path.exists() {
        return Ok(None);
    }
    let journal: Journal = read_json(&path)?;
    for staged in &journal.stages {
        let name = staged.name.as_bytes();
        if !name.starts_with(STAGE_PREFIX) || !crate::tree::is_component(name) {
            return Err(Error::damaged(&path, "it names no directory of a commit"));
        }
    }
    Ok(Some(journal))
}

impl<'a> Pair<'a> {
    fn open(root: &'a Path, upper: PathBuf) -> Result<Self, Error> {
        Ok(Self {
            root,
            root_fd: files::open_top(root)?,
            upper_fd: files::open_top(&upper)?,
            upper,
            acts: Vec::new(),
            directories: BTreeMap::new(),
            chosen: Vec::new(),
            kept: Vec::new(),
        })
    }

    fn choose(&mut self, paths: &[PathBuf]) -> Result<(), Error> {
        for entry in layer::entries(&self.upper)? {
            let full = files::full(self.root, &entry.path);
            if paths.is_empty() || paths.iter().any(|path| full.starts_with(path)) {
                self.chosen.push(entry);
            }
        }
        Ok(())
    }

    fn plan(
        &mut self,
        base: &Base,
        resolve: Resolve,
        conflicts: &mut Vec<PathBuf>,
    ) -> Result<(), Error> {
        for entry in std::mem::take(&mut self.chosen) {
            let full = files::full(self.root, &entry.path);
            let host = on_host(self.root_fd.as_fd(), &entry.path).trying("look at", &full)?;
            let acts = self.acts_for(&entry, host.as_ref())?;
            let matters = acts
                .iter()
                .any(|act| !matches!(act, Act::Directory(_) | Act::Adjust(_)));
            if matters && !base.is_unchanged(&full, host.as_ref()) {
                conflicts.push(full);
                if resolve == Resolve::Theirs {
                    self.kept.push(entry.path);
                    continue;
                }
            }
            if let Said::Directory { stat, .. } = &entry.said {
                self.directories.insert(entry.path.clone(), *stat);
            }
            self.acts.extend(acts);
            self.chosen.push(entry);
        }
        Ok(())
    }

    /// What has to be done for an entry of the layer.
    fn acts_for(&self, entry: &Entry, host: Option<&Stat>) -> Result<Vec<Act>, Error> {
        let path = entry.path.clone();
        Ok(match (&entry.said, host) {
            (Said::Whiteout, None) => Vec::new(),
            (Said::Whiteout, Some(_)) => vec![Act::Remove(path)],
            (Said::Directory { opaque, .. }, Some(host)) if host.is_dir() => {
                if *opaque {
                    self.hidden(&path)?
                } else {
                    Vec::new()
                }
            }
            (Said::Directory { .. }, Some(_)) => {
                vec![Act::Remove(path.clone()), Act::Directory(path)]
            }
            (Said::Directory { .. }, None) => vec![Act::Directory(path)],
            (Said::File(stat), Some(host)) if self.is_same(&path, stat, host)? => {
                if layer::attributes(stat) == layer::attributes(host) && stat.mtime == host.mtime {
                    Vec::new()
                } else {
                    vec![Act::Adjust(path)]
                }
            }
            (Said::File(_), _) => vec![Act::Put(path)],
        })
    }

    /// What the host has in a directory that the layer hides.
    fn hidden(&self, path: &[u8]) -> Result<Vec<Act>, Error> {
        let full = files::full(self.root, path);
        let host = files::open_dir_below(self.root_fd.as_fd(), path).trying("read", &full)?;
        let upper = files::open_dir_below(self.upper_fd.as_fd(), path).trying("read", &full)?;
        let names = layer::names(&host).trying("read", &full)?;
        let gone = names
            .into_iter()
            .filter(|name| files::stat_at(upper.as_fd(), name).is_err());
        Ok(gone
            .map(|name| Act::Remove(files::join(path, &name)))
            .collect())
    }

    /// Whether the host's file has the layer's content already.
    fn is_same(&self, path: &[u8], stat: &Stat, host: &Stat) -> Result<bool, Error> {
        let full = files::full(self.root, path);
        if stat.file_type() != host.file_type() || stat.size != host.size {
            return Ok(false);
        }
        match stat.file_type() {
            FileType::RegularFile if host.nlink == 1 => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK;
                let open =
                    |top: &OwnedFd| files::open_below(top.as_fd(), path, flags).map(File::from);
                let one = open(&self.root_fd).trying("read", &full)?;
                let other = open(&self.upper_fd).trying("read", &full)?;
                layer::is_same_content(&one, &other).trying("compare", &full)
            }
            FileType::Fifo | FileType::Socket => Ok(true),
            _ => Ok(false),
        }
    }

    fn apply(&self, stage_name: &str, report: &mut CommitReport) -> Result<(), Error> {
        let root = self.root;
        let top_before = files::stat_of(&self.root_fd).trying("look at", root)?;
        rustix::fs::mkdirat(&self.root_fd, stage_name, Mode::from(0o700))
            .trying("make a directory in", root)?;
        let stage = files::open_dir_below(self.root_fd.as_fd(), stage_name.as_bytes())
            .trying("open", root)?;
        let done = self
            .prepare(stage.as_fd())
            .and_then(|()| self.exchange(stage.as_fd(), report))
            .and_then(|()| self.set_directories(report))
            // Before the old files go, and the layer after them.
            .and_then(|()| rustix::fs::syncfs(&self.root_fd).trying("write", root));
        files::remove_tree(&root.join(stage_name))?;
        done?;
        // The directory for what was prepared came and went.
        let mut time = top_before.mtime;
        if !self.acts.is_empty() {
            time = files::stat_of(&self.upper_fd)
                .trying("look at", &self.upper)?
                .mtime;
        }
        set_times(self.root_fd.as_fd(), time).trying("set the times of", root)
    }

    fn prepare(&self, stage: BorrowedFd<'_>) -> Result<(), Error> {
        let mut first_names: HashMap<(u64, u64), String> = HashMap::new();
        for (number, act) in self.acts.iter().enumerate() {
            let Act::Put(path) = act else { continue };
            let full = files::full(&self.upper, path);
            let name = format!("n{number}");
            let (parent, last) = files::split(path);
            let parent =
                files::open_dir_below(self.upper_fd.as_fd(), parent).trying("read", &full)?;
            let stat = files::stat_at(parent.as_fd(), last).trying("read", &full)?;
            if stat.nlink > 1 {
                let id = (stat.dev, stat.ino);
                if let Some(first) = first_names.get(&id) {
                    rustix::fs::linkat(stage, &**first, stage, &*name, AtFlags::empty())
                        .trying("link", &full)?;
                    continue;
                }
                first_names.insert(id, name.clone());
            }
            copy(parent.as_fd(), last, &stat, stage, &name).trying("copy", &full)?;
        }
        rustix::fs::syncfs(stage).trying("write", self.root)
    }

    fn exchange(&self, stage: BorrowedFd<'_>, report: &mut CommitReport) -> Result<(), Error> {
        for (number, act) in self.acts.iter().enumerate() {
            match act {
                Act::Remove(path) => {
                    let full = files::full(self.root, path);
                    let (parent, name) = files::split(path);
                    let moved = files::open_dir_below(self.root_fd.as_fd(), parent)
                        .and_then(|fd| rustix::fs::renameat(fd, name, stage, format!("o{number}")));
                    match moved {
                        Ok(()) => report.removed += 1,
                        Err(Errno::NOENT) => {}
                        Err(error) => return Err(error).trying("remove", full),
                    }
                }
                Act::Directory(path) => {
                    self.make_directory(path)?;
                    report.written += 1;
                }
                Act::Put(path) => {
                    self.put(path, stage, &format!("n{number}"))?;
                    report.written += 1;
                }
                Act::Adjust(path) => {
                    self.adjust(path)?;
                    report.adjusted += 1;
                }
            }
        }
        Ok(())
    }

    /// Makes a directory of the host, and those above it that are not there either.
    fn make_directory(&self, path: &[u8]) -> Result<OwnedFd, Error> {
        let full = || files::full(self.root, path);
        match files::open_dir_below(self.root_fd.as_fd(), path) {
            Err(Errno::NOENT) => {}
            found => return found.trying("open", full()),
        }
        let (parent, name) = files::split(path);
        let parent = self.make_directory(parent)?;
        rustix::fs::mkdirat(&parent, name, Mode::from(0o700))
            .trying("make the directory", full())?;
        let made = files::open_dir_below(parent.as_fd(), name).trying("open", full())?;
        let upper = files::open_dir_below(self.upper_fd.as_fd(), path).trying("open", full())?;
        let stat = files::stat_of(&upper).trying("look at", full())?;
        let attributes = xattr::read(upper.as_fd()).trying("look at", full())?;
        set_attributes(made.as_fd(), &content::meta(&stat, attributes), true)
            .trying("set the attributes of", full())?;
        Ok(made)
    }

    fn put(&self, path: &[u8], stage: BorrowedFd<'_>, from: &str) -> Result<(), Error> {
        let full = || files::full(self.root, path);
        let (parent, name) = files::split(path);
        let parent = self.make_directory(parent)?;
        match rustix::fs::renameat_with(stage, from, &parent, name, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {
                rustix::fs::renameat_with(stage, from, &parent, name, RenameFlags::EXCHANGE)
                    .trying("replace", full())
            }
            placed => placed.trying("write", full()),
        }
    }

    fn adjust(&self, path: &[u8]) -> Result<(), Error> {
        let full = files::full(self.root, path);
        let (parent, name) = files::split(path);
        let upper = files::open_dir_below(self.upper_fd.as_fd(), parent).trying("open", &full)?;
        let stat = files::stat_at(upper.as_fd(), name).trying("look at", &full)?;
        let host = files::open_dir_below(self.root_fd.as_fd(), parent).trying("open", &full)?;
        set_attributes_at(host.as_fd(), name, &content::meta(&stat, Vec::new()), false)
            .trying("set the attributes of", full)
    }

    /// Directories get the attributes that they have in the view, the deepest first.
    fn set_directories(&self, report: &mut CommitReport) -> Result<(), Error> {
        for (path, stat) in self.directories.iter().rev() {
            let full = files::full(self.root, path);
            let fd = match files::open_dir_below(self.root_fd.as_fd(), path) {
                Err(Errno::NOENT) => continue,
                fd => fd.trying("open", &full)?,
            };
            let now = files::stat_of(&fd).trying("look at", &full)?;
            report.adjusted += u64::from(layer::attributes(&now) != layer::attributes(stat));
            set_attributes(fd.as_fd(), &content::meta(stat, Vec::new()), false)
                .trying("set the attributes of", full)?;
        }
        Ok(())
    }

    /// Removes from the layer what was committed, or is to stay as the host has it.
    fn forget(&self, base: &mut Base) -> Result<(), Error> {
        let act = "remove";
        let kept = self.kept.iter().map(|path| (path, true));
        let chosen = self
            .chosen
            .iter()
            .map(|entry| (&entry.path, !matches!(entry.said, Said::Directory { .. })));
        for (path, is_file) in chosen.chain(kept) {
            let full = files::full(&self.upper, path);
            base.forget(&files::full(self.root, path));
            if is_file {
                match std::fs::remove_file(&full) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    // A directory that stays as the host has it.
                    Err(error) if error.kind() == std::io::ErrorKind::IsADirectory => {
                        files::remove_tree_of_others(&full)?;
                    }
                    removed => removed.trying(act, &full)?,
                }
            } else {
                let fd = files::open_dir_below(self.upper_fd.as_fd(), path).trying(act, &full)?;
                match rustix::fs::fremovexattr(&fd, "user.overlay.opaque") {
                    Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
                    Err(error) => return Err(error).trying(act, &full),
                }
            }
        }
        Ok(())
    }
}

/// Copies a file of the layer, holes and attributes included.
fn copy(
    from: BorrowedFd<'_>,
    name: &[u8],
    stat: &Stat,
    stage: BorrowedFd<'_>,
    to: &str,
) -> std::io::Result<()> {
    let attributes = content::meta(stat, Vec::new());
    match stat.file_type() {
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let source = File::from(rustix::fs::openat(from, name, flags, Mode::empty())?);
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let target = File::from(rustix::fs::openat(stage, to, flags, Mode::from(0o600))?);
            copy_content(&source, &target, stat.size)?;
            let meta = content::meta(stat, xattr::read(source.as_fd())?);
            return set_attributes(target.as_fd(), &meta, true);
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(from, name, Vec::new())?;
            rustix::fs::symlinkat(&*target, stage, to)?;
        }
        kind => rustix::fs::mknodat(stage, to, kind, Mode::from(0o600), stat.rdev)?,
    }
    let is_link = stat.file_type().is_symlink();
    set_attributes_at(stage, to.as_bytes(), &attributes, is_link)
}

fn copy_content(source: &File, target: &File, size: u64) -> std::io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    let mut at = 0;
    while at < size {
        at = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(_) => at,
        };
        let end = rustix::fs::seek(source, SeekFrom::Hole(at)).unwrap_or(size);
        while at < end {
            let wanted = usize::try_from(end - at)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let got = source.read_at(&mut buffer[..wanted], at)?;
            if got == 0 {
                break;
            }
            target.write_all_at(&buffer[..got], at)?;
            at += got as u64;
        }
        if at < end {
            break;
        }
    }
    target.set_len(size)
}
