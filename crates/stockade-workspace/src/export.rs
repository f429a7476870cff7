//! Writing a snapshot into one file: a tar archive, compressed with zstd.
//!
//! First `manifest.json`, then the files below `files/`. What tar has no words for is in extended
//! headers: times to the nanosecond, attributes, holes (`STOCKADE.extents`). Sockets are in the
//! manifest. Devices are not exported: nobody may import them.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tar::{Builder, EntryType, Header};

use crate::error::{Error, Trying};
use crate::files;
use crate::name::WorkspaceName;
use crate::pack::LEVEL;
use crate::progress::Progress;
use crate::store::Session;
use crate::tree::{Extent, Kind, Meta, Node};
use crate::workspace::SnapshotRecord;

/// What the first file of an export says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: String,
    pub(crate) workspace: String,
    pub(crate) snapshot: String,
    pub(crate) created_ms: u64,
    #[serde(default)]
    pub(crate) message: Option<String>,
    pub(crate) xattrs: bool,
    pub(crate) root: Attributes,
    #[serde(default)]
    pub(crate) sockets: Vec<Socket>,
}

pub(crate) const FORMAT: &str = "stockade-export 1";

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Attributes {
    pub(crate) mode: u32,
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Socket {
    pub(crate) path: Vec<u8>,
    pub(crate) attributes: Attributes,
}

impl Attributes {
    fn of(meta: &Meta) -> Self {
        Self {
            mode: meta.mode,
            seconds: meta.mtime.seconds,
            nanos: meta.mtime.nanos,
        }
    }
}

/// Where the pieces of a sparse file are, as `h` or `d` and a length each.
pub(crate) const EXTENTS: &str = "STOCKADE.extents";
/// What extended attributes' names have in front, as in other archivers.
pub(crate) const XATTR: &str = "SCHILY.xattr.";

pub(crate) fn write(
    session: &Session,
    name: &WorkspaceName,
    record: &SnapshotRecord,
    path: &Path,
    progress: &dyn Progress,
) -> Result<Vec<String>, Error> {
    let file = File::options()
        .write(true)
        .create_new(true)
        .open(path)
        .trying("create", path)?;
    progress.begin("exporting", Some(record.totals.bytes));
    let written = write_to(session, name, record, &file, path, progress);
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    let left_out = written?;
    file.sync_all().trying("write", path)?;
    Ok(left_out)
}

fn write_to(
    session: &Session,
    name: &WorkspaceName,
    record: &SnapshotRecord,
    file: &File,
    path: &Path,
    progress: &dyn Progress,
) -> Result<Vec<String>, Error> {
    let encoder = zstd::Encoder::new(file, LEVEL).trying("write", path)?;
    let mut exporter = Exporter {
        session,
        archive: Builder::new(io::BufWriter::new(encoder)),
        path: path.to_owned(),
        progress,
        later: Vec::new(),
        sockets: Vec::new(),
        left_out: Vec::new(),
    };
    let root = record.root_node()?;
    exporter.find_special(&record.tree, b"")?;
    let manifest = Manifest {
        format: FORMAT.to_owned(),
        workspace: name.to_string(),
        snapshot: record.id.to_string(),
        created_ms: record.created_ms,
        message: record.message.clone(),
        xattrs: record.xattrs,
        root: Attributes::of(&root.meta),
        sockets: std::mem::take(&mut exporter.sockets),
    };
    exporter.finish(record, &manifest)
}

struct Exporter<'a> {
    session: &'a Session,
    archive: Builder<io::BufWriter<zstd::Encoder<'static, &'a File>>>,
    path: PathBuf,
    progress: &'a dyn Progress,
    /// Second names, which come when all first ones are there.
    later: Vec<(Vec<u8>, Vec<u8>)>,
    sockets: Vec<Socket>,
    left_out: Vec<String>,
}

impl Exporter<'_> {
    /// Sockets and devices, which the manifest has to know before anything else is written.
    fn find_special(&mut self, tree: &crate::id::ObjectId, path: &[u8]) -> Result<(), Error> {
        for (name, node) in self.session.tree(tree)? {
            let path = files::join(path, &name);
            match &node.kind {
                Kind::Directory(tree) => self.find_special(tree, &path)?,
                Kind::Socket => self.sockets.push(Socket {
                    path,
                    attributes: Attributes::of(&node.meta),
                }),
                Kind::CharDevice(_) | Kind::BlockDevice(_) => {
                    self.left_out
                        .push(String::from_utf8_lossy(&path).into_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        record: &SnapshotRecord,
        manifest: &Manifest,
    ) -> Result<Vec<String>, Error> {
        let path = self.path.clone();
        let text = serde_json::to_vec_pretty(manifest)
            .map_err(io::Error::from)
            .trying("write", &path)?;
        let mut first = header(&Meta {
            mode: 0o644,
            ..Meta::default()
        });
        first.set_size(text.len() as u64);
        self.archive
            .append_data(&mut first, "manifest.json", &text[..])
            .trying("write", &path)?;
        self.tree(&record.tree, b"")?;
        for (link, first) in std::mem::take(&mut self.later) {
            let mut second = header(&Meta::default());
            second.set_entry_type(EntryType::Link);
            self.archive
                .append_link(&mut second, inside(&link), inside(&first))
                .trying("write", &path)?;
        }
        let mut encoder = self
            .archive
            .into_inner()
            .and_then(|buffer| buffer.into_inner().map_err(io::IntoInnerError::into_error))
            .trying("write", &path)?;
        encoder.flush().trying("write", &path)?;
        encoder.finish().trying("write", &path)?;
        Ok(self.left_out)
    }

    fn tree(&mut self, tree: &crate::id::ObjectId, path: &[u8]) -> Result<(), Error> {
        for (name, node) in self.session.tree(tree)? {
            let path = files::join(path, &name);
            self.node(&path, &node)?;
            if let Kind::Directory(tree) = &node.kind {
                self.tree(tree, &path)?;
            }
        }
        Ok(())
    }

    /// A link's target is text, not a path: `/` and `a//b` must come back as they are. Only where
    /// it is longer than the header's field does the archive write it as it is by itself.
    fn link(&mut self, header: &mut Header, path: &[u8], target: &[u8]) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt;
        if header.set_link_name_literal(target).is_ok() {
            return self.archive.append_data(header, inside(path), io::empty());
        }
        let target = Path::new(std::ffi::OsStr::from_bytes(target));
        self.archive.append_link(header, inside(path), target)
    }

    fn node(&mut self, path: &[u8], node: &Node) -> Result<(), Error> {
        let archive = self.path.clone();
        let mut header = header(&node.meta);
        let kind = match &node.kind {
            Kind::Directory(_) => EntryType::Directory,
            Kind::File { .. } => EntryType::Regular,
            Kind::Symlink(_) => EntryType::Symlink,
            Kind::Fifo => EntryType::Fifo,
            Kind::HardLink(first) => {
                self.later.push((path.to_vec(), first.clone()));
                return Ok(());
            }
            Kind::Socket | Kind::CharDevice(_) | Kind::BlockDevice(_) => return Ok(()),
        };
        header.set_entry_type(kind);
        let extents = match &node.kind {
            Kind::File { content, .. } => self.session.extents(content)?,
            _ => Vec::new(),
        };
        let extras = extras(&node.meta, &extents);
        self.archive
            .append_pax_extensions(extras.iter().map(|(key, value)| (&**key, &value[..])))
            .trying("write", &archive)?;
        let written = if let Kind::Symlink(target) = &node.kind {
            self.link(&mut header, path, target)
        } else {
            let stored = |extent: &Extent| extent.object().map_or(0, |_| extent.len());
            header.set_size(extents.iter().map(stored).sum());
            let data = Data {
                session: self.session,
                extents: extents.into_iter(),
                piece: io::Cursor::new(Vec::new()),
                progress: self.progress,
            };
            self.archive.append_data(&mut header, inside(path), data)
        };
        written.trying("write", archive)
    }
}

/// A path in the archive.
fn inside(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    Path::new("files").join(std::ffi::OsStr::from_bytes(path))
}

fn header(meta: &Meta) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(0);
    header.set_mode(meta.mode);
    header.set_uid(u64::from(meta.uid));
    header.set_gid(u64::from(meta.gid));
    header.set_mtime(u64::try_from(meta.mtime.seconds).unwrap_or(0));
    header
}

/// What the header has no room for.
fn extras(meta: &Meta, extents: &[Extent]) -> Vec<(String, Vec<u8>)> {
    let time = format!("{}.{:09}", meta.mtime.seconds, meta.mtime.nanos);
    let mut extras = vec![("mtime".to_owned(), time.into_bytes())];
    for (name, value) in &meta.xattrs {
        let name = format!("{XATTR}{}", String::from_utf8_lossy(name));
        extras.push((name, value.clone()));
    }
    if extents
        .iter()
        .any(|extent| matches!(extent, Extent::Hole(_)))
    {
        let words: Vec<String> = extents
            .iter()
            .map(|extent| match extent {
                Extent::Hole(length) => format!("h{length}"),
                Extent::Data(length, _) => format!("d{length}"),
            })
            .collect();
        extras.push((EXTENTS.to_owned(), words.join(",").into_bytes()));
    }
    extras
}

/// The content of a file, piece by piece.
struct Data<'a> {
    session: &'a Session,
    extents: std::vec::IntoIter<Extent>,
    piece: io::Cursor<Vec<u8>>,
    progress: &'a dyn Progress,
}

impl Read for Data<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let got = self.piece.read(buffer)?;
            if got > 0 || buffer.is_empty() {
                return Ok(got);
            }
            match self.extents.next() {
                None => return Ok(0),
                Some(Extent::Hole(_)) => {}
                Some(Extent::Data(length, id)) => {
                    let content = self.session.get(&id).map_err(io::Error::other)?;
                    self.progress.advance(u64::from(length));
                    self.piece = io::Cursor::new(content);
                }
            }
        }
    }
}
