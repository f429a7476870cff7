//! Reading a file that somebody else wrote, which may be an attack.
//!
//! Refused: paths that are absolute or lead upwards, links that lead out, devices, the same name
//! twice, files that are in no directory, archives that unpack to a thousand times their size or
//! whose attributes would fill the memory. Owners are not taken over, and neither are set-id bits
//! and others' right to write.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::process::{getegid, geteuid};
use tar::{Archive, EntryType};

use crate::assemble::{Assembly, some_directory};
use crate::content::cut;
use crate::error::{Error, Trying};
use crate::export::{Attributes, EXTENTS, FORMAT, Manifest, XATTR};
use crate::files;
use crate::hawk;
use crate::pack::Block;
use crate::progress::Progress;
use crate::store::Sink;
use crate::tree::{Content, Extent, Kind, Meta, Node, Time, put_extents};
use crate::workspace::SnapshotRecord;

/// What was read.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) record: SnapshotRecord,
    pub(crate) env: BTreeMap<String, String>,
}

/// An archive may unpack to this much more than it is…
const RATIO: u64 = 1000;
/// …once it is past this.
const UNSUSPICIOUS: u64 = 64 * 1024 * 1024;
/// What its frames begin with (RFC 8878).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const LONGEST_MANIFEST: u64 = 16 * 1024 * 1024;
/// What one file's name, attributes and holes may take in the archive.
const MAX_HEADER_BYTES: u64 = 16 * 1024 * 1024;
/// What is known about all of them is in memory at the end, some 250 bytes each…
const MAX_FILES: usize = 4_000_000;
/// …and extended attributes.
const MAX_XATTR_BYTES: usize = 64 * 1024 * 1024;
/// What zstd may remember, as a power of two: what its own program allows.
const WINDOW: u32 = 27;

pub(crate) fn read(
    path: &Path,
    sink: &Sink<'_>,
    keep_links: bool,
    progress: &dyn Progress,
) -> Result<Imported, Error> {
    let file = File::open(path).trying("open", path)?;
    let size = file.metadata().trying("look at", path)?.len();
    progress.begin("importing", Some(size));
    from_reader(file, sink, keep_links, progress)
}

/// The same from anything that can be read.
pub(crate) fn from_reader(
    source: impl Read,
    sink: &Sink<'_>,
    keep_links: bool,
    progress: &dyn Progress,
) -> Result<Imported, Error> {
    let mut source = io::BufReader::new(source);
    let begins = io::BufRead::fill_buf(&mut source).map_err(unreadable)?;
    if begins.first() == Some(&b'{') {
        return hawk::read(source, sink);
    }
    if !begins.starts_with(&ZSTD) {
        return Err(Error::Import(
            "it is neither a file of `stockade ws export` nor a snapshot of Hawk".to_owned(),
        ));
    }
    let read = Cell::new(0);
    let allowance = Cell::new(None);
    let counted = Counted {
        inner: source,
        count: &read,
        progress,
    };
    let mut decoder = zstd::Decoder::new(counted).map_err(unreadable)?;
    decoder.window_log_max(WINDOW).map_err(unreadable)?;
    let guarded = Guarded {
        inner: decoder,
        read: &read,
        unpacked: 0,
        allowance: &allowance,
    };
    let mut importer = Importer {
        sink,
        keep_links,
        assembly: Assembly::default(),
        block: Block::new().trying("compress", "an import")?,
        buffer: Vec::new(),
        count: 0,
        xattr_bytes: 0,
        allowance: &allowance,
    };
    importer.archive(&mut Archive::new(guarded))?;
    sink.flush(&mut importer.block)?;
    Ok(Imported {
        record: importer.assembly.finish(sink)?,
        env: BTreeMap::new(),
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unreadable(error: io::Error) -> Error {
    Error::Import(format!("it can't be read: {error}"))
}

fn refuse(path: &[u8], reason: &str) -> Error {
    let path = String::from_utf8_lossy(path);
    Error::Import(format!("`{}` {reason}", path.escape_debug()))
}

struct Counted<'a, R> {
    inner: R,
    count: &'a Cell<u64>,
    progress: &'a dyn Progress,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.count.set(self.count.get() + got as u64);
        self.progress.advance(got as u64);
        Ok(got)
    }
}

/// Stops at what unpacks to far more than it is.
struct Guarded<'a, R> {
    inner: R,
    read: &'a Cell<u64>,
    unpacked: u64,
    /// How much the archive may read on its own, before its caller reads a file's content: names
    /// and attributes, which it keeps in memory.
    allowance: &'a Cell<Option<u64>>,
}

impl<R: Read> Read for Guarded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.unpacked += got as u64;
        if let Some(allowed) = self.allowance.get() {
            let left = allowed.checked_sub(got as u64);
            let left = left.ok_or_else(|| io::Error::other("a file's attributes are too long"))?;
            self.allowance.set(Some(left));
        }
        if self.unpacked > UNSUSPICIOUS && self.unpacked / RATIO > self.read.get() {
            return Err(io::Error::other("it unpacks to far more than it is"));
        }
        Ok(got)
    }
}

struct Importer<'a> {
    sink: &'a Sink<'a>,
    keep_links: bool,
    assembly: Assembly,
    block: Block,
    buffer: Vec<u8>,
    count: usize,
    xattr_bytes: usize,
    allowance: &'a Cell<Option<u64>>,
}

impl Importer<'_> {
    fn archive<R: Read>(&mut self, archive: &mut Archive<R>) -> Result<(), Error> {
        let mut entries = archive.entries().map_err(unreadable)?;
        let first = self.next(&mut entries)?;
        let mut first = first.ok_or_else(|| Error::Import("it is empty".to_owned()))?;
        if &*first.path_bytes() != b"manifest.json" || first.size() > LONGEST_MANIFEST {
            return Err(Error::Import(
                "it does not begin with a manifest".to_owned(),
            ));
        }
        let mut text = Vec::new();
        first.read_to_end(&mut text).map_err(unreadable)?;
        drop(first);
        let manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|error| Error::Import(format!("its manifest makes no sense: {error}")))?;
        if manifest.format != FORMAT {
            return Err(Error::Import(
                "it has a format that this version does not know".to_owned(),
            ));
        }
        self.assembly.root = private(meta(&manifest.root)?);
        self.assembly.message = manifest.message;
        self.assembly.xattrs = manifest.xattrs;
        while let Some(entry) = self.next(&mut entries)? {
            self.entry(entry)?;
        }
        for socket in manifest.sockets {
            let node = Node {
                meta: private(meta(&socket.attributes)?),
                kind: Kind::Socket,
            };
            self.assembly.add(socket.path, node)?;
        }
        Ok(())
    }

    /// The next file, of which the archive has read no more than a name and attributes.
    fn next<'e, R: Read>(
        &mut self,
        entries: &mut tar::Entries<'e, R>,
    ) -> Result<Option<tar::Entry<'e, R>>, Error> {
        self.allowance.set(Some(MAX_HEADER_BYTES));
        let entry = entries.next().transpose().map_err(unreadable)?;
        self.allowance.set(None);
        self.count += 1;
        if self.count > MAX_FILES {
            return Err(Error::Import("it has too many files".to_owned()));
        }
        Ok(entry)
    }

    fn entry<R: Read>(&mut self, mut entry: tar::Entry<'_, R>) -> Result<(), Error> {
        let whole = entry.path_bytes().into_owned();
        let trimmed = whole.strip_suffix(b"/").unwrap_or(&whole);
        let Some(path) = trimmed.strip_prefix(b"files/").map(<[u8]>::to_vec) else {
            return Err(refuse(&whole, "is not below `files/`"));
        };
        let (extents, node_meta) = self.attributes(&mut entry, &whole)?;
        let kind = match entry.header().entry_type() {
            EntryType::Directory => some_directory(),
            EntryType::Regular => self.content(&mut entry, extents, &whole)?,
            EntryType::Fifo => Kind::Fifo,
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                if target.is_empty() || target.contains(&0) {
                    return Err(refuse(&whole, "is a link to nowhere"));
                }
                if !self.keep_links && leads_out(&path, &target) {
                    return Err(refuse(&whole, "is a link that leads out"));
                }
                Kind::Symlink(target)
            }
            EntryType::Link => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                match target.strip_prefix(b"files/") {
                    Some(first) => Kind::HardLink(first.to_vec()),
                    None => return Err(refuse(&whole, "is a link that leads out")),
                }
            }
            EntryType::Char | EntryType::Block => return Err(refuse(&whole, "is a device")),
            _ => return Err(refuse(&whole, "is of a kind that is not imported")),
        };
        let meta = match kind {
            Kind::HardLink(_) => Meta::default(),
            Kind::Symlink(_) => node_meta,
            _ => private(node_meta),
        };
        self.assembly.add(path, Node { meta, kind })
    }

    fn attributes<R: Read>(
        &mut self,
        entry: &mut tar::Entry<'_, R>,
        path: &[u8],
    ) -> Result<(Option<Vec<u8>>, Meta), Error> {
        let header = entry.header();
        let wrong = |_| refuse(path, "has attributes that make no sense");
        let mut found = Attributes {
            mode: header.mode().map_err(wrong)? & 0o7777,
            seconds: i64::try_from(header.mtime().map_err(wrong)?).unwrap_or(0),
            nanos: 0,
        };
        let mut xattrs = Vec::new();
        let mut extents = None;
        for extension in entry
            .pax_extensions()
            .map_err(unreadable)?
            .into_iter()
            .flatten()
        {
            let extension = extension.map_err(unreadable)?;
            let (key, value) = (extension.key_bytes(), extension.value_bytes());
            if key == b"mtime" {
                let time = std::str::from_utf8(value).ok().and_then(parse_time);
                (found.seconds, found.nanos) =
                    time.ok_or_else(|| refuse(path, "has a time that makes no sense"))?;
            } else if key == EXTENTS.as_bytes() {
                extents = Some(value.to_vec());
            } else if let Some(name) = key.strip_prefix(XATTR.as_bytes())
                && self.assembly.xattrs
                && name.starts_with(b"user.")
            {
                self.xattr_bytes += name.len() + value.len();
                if self.xattr_bytes > MAX_XATTR_BYTES {
                    let reason = "its extended attributes are too long".to_owned();
                    return Err(Error::Import(reason));
                }
                xattrs.push((name.to_vec(), value.to_vec()));
            }
        }
        xattrs.sort();
        let meta = Meta {
            xattrs,
            ..meta(&found)?
        };
        Ok((extents, meta))
    }

    fn content<R: Read>(
        &mut self,
        entry: &mut tar::Entry<'_, R>,
        map: Option<Vec<u8>>,
        path: &[u8],
    ) -> Result<Kind, Error> {
        let stored = entry.size();
        let wanted = match map {
            Some(map) => {
                parse_extents(&map).ok_or_else(|| refuse(path, "has holes that make no sense"))?
            }
            None => vec![(false, stored)],
        };
        let data: Option<u64> = wanted
            .iter()
            .filter(|(hole, _)| !hole)
            .try_fold(0u64, |sum, (_, length)| sum.checked_add(*length));
        if data != Some(stored) {
            return Err(refuse(path, "has holes that make no sense"));
        }
        let mut extents = Vec::new();
        for (hole, length) in wanted {
            if hole {
                extents.push(Extent::Hole(length));
                continue;
            }
            let fill = |buffer: &mut [u8]| read_full(entry, buffer);
            let put = |piece: &[u8]| {
                self.sink
                    .put(&mut self.block, piece)
                    .map_err(io::Error::other)
            };
            let whole =
                cut(&mut self.buffer, length, fill, put, &mut extents).map_err(unreadable)?;
            if !whole {
                return Err(refuse(path, "ends too early"));
            }
        }
        let mut size = 0u64;
        for extent in &extents {
            size = size
                .checked_add(extent.len())
                .filter(|size| i64::try_from(*size).is_ok())
                .ok_or_else(|| refuse(path, "is too long"))?;
        }
        let content = if Content::fits_inline(&extents) {
            Content::Inline(extents)
        } else {
            let mut list = Vec::new();
            put_extents(&mut list, &extents);
            Content::Listed(self.sink.put(&mut self.block, &list)?)
        };
        Ok(Kind::File { size, content })
    }
}

/// Attributes with the importer as owner and without set-id bits.
fn meta(attributes: &Attributes) -> Result<Meta, Error> {
    if attributes.nanos >= 1_000_000_000 {
        return Err(Error::Import(
            "it has a time that makes no sense".to_owned(),
        ));
    }
    Ok(Meta {
        mode: attributes.mode & 0o1777,
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
        mtime: Time {
            seconds: attributes.seconds,
            nanos: attributes.nanos,
        },
        xattrs: Vec::new(),
    })
}

/// Without others' right to write: whoever made the archive does not decide who may change files of
/// the one who imports it.
fn private(mut meta: Meta) -> Meta {
    meta.mode &= !0o002;
    meta
}

fn parse_time(text: &str) -> Option<(i64, u32)> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    Some((seconds.parse().ok()?, digits.parse().ok()?))
}

/// Pieces as whether they are holes, and their lengths.
fn parse_extents(map: &[u8]) -> Option<Vec<(bool, u64)>> {
    let text = std::str::from_utf8(map).ok()?;
    text.split(',')
        .map(|word| match word.split_at_checked(1)? {
            ("h", length) => Some((true, length.parse().ok()?)),
            ("d", length) => Some((false, length.parse().ok()?)),
            _ => None,
        })
        .collect()
}

/// Whether a link at `path` may leave the top: it is absolute, it leads further up than it is deep,
/// or it goes up again after a name. That name may be a link, from where `..` leads elsewhere than
/// the letters say. Where `..` comes only first, it leads through the directories around the link,
/// which are no links.
fn leads_out(path: &[u8], target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return true;
    }
    let (parent, _) = files::split(path);
    let is_name = |name: &&[u8]| !name.is_empty() && *name != b".";
    let depth = parent.split(|byte| *byte == b'/').filter(is_name).count();
    let names = target.split(|byte| *byte == b'/').filter(is_name);
    let steps_up = names.clone().take_while(|name| *name == b"..").count();
    let later = names.skip(steps_up).any(|name| name == b"..");
    steps_up > depth || later
}

fn read_full(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(got) => filled += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_known() {
        for (path, target) in [
            ("a", "/etc"),
            ("a", ".."),
            ("d/a", "../.."),
            ("d/a", "x/../../../y"),
            ("d/a", "x/../y"),
            ("a", "d/../b"),
            ("a", "./../b"),
        ] {
            assert!(
                leads_out(path.as_bytes(), target.as_bytes()),
                "{path} {target}"
            );
        }
        for (path, target) in [
            ("a", "b"),
            ("d/a", "../b"),
            ("d/e/a", "../../b"),
            ("d/e/a", ".././../b/c"),
        ] {
            assert!(
                !leads_out(path.as_bytes(), target.as_bytes()),
                "{path} {target}"
            );
        }
    }

    #[test]
    fn times_and_holes_are_read() {
        assert_eq!(parse_time("5.000000001"), Some((5, 1)));
        assert_eq!(parse_time("-5.5"), Some((-5, 500_000_000)));
        assert_eq!(parse_time("x"), None);
        assert_eq!(parse_extents(b"h5,d6"), Some(vec![(true, 5), (false, 6)]));
        assert_eq!(parse_extents(b"q5"), None);
        assert_eq!(parse_extents("é5".as_bytes()), None);
    }
}
