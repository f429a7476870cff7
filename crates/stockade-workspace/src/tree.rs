//! What a snapshot knows about a file: its kind, its attributes, where its content is. A
//! directory is the list of its entries in the order of their names, and is an object itself, so
//! that two snapshots share every directory that is the same in both.

use crate::codec::{Decoded, Malformed, Reader, put_bytes, put_number, put_signed};
use crate::id::ObjectId;

/// A moment, to the nanosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of that second.
    pub nanos: u32,
}

/// Attributes that every kind of file has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Permission bits, with set-id and sticky.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When the content was changed last.
    pub mtime: Time,
    /// Extended attributes, in the order of their names; empty unless they were asked for.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// So many bytes that were never written.
    Hole(u64),
    /// Content of this length.
    Data(u32, ObjectId),
}

/// Where a file's content is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// These pieces, one after the other.
    Inline(Vec<Extent>),
    /// An object that lists the pieces: there are many.
    Listed(ObjectId),
}

/// What kind of file, and what only this kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory(ObjectId),
    File {
        size: u64,
        content: Content,
    },
    Symlink(Vec<u8>),
    /// Another name of the file at this path, counted from the top.
    HardLink(Vec<u8>),
    Fifo,
    Socket,
    CharDevice(u64),
    BlockDevice(u64),
}

/// A file of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) meta: Meta,
    pub(crate) kind: Kind,
}

/// A directory of a snapshot, by the order of names.
pub(crate) type Tree = Vec<(Vec<u8>, Node)>;

/// Lists of more pieces become objects of their own.
const INLINE_EXTENTS: usize = 8;

const HAS_XATTRS: u8 = 0x80;

impl Kind {
    const fn tag(&self) -> u8 {
        match self {
            Self::Directory(_) => 0,
            Self::File {
                content: Content::Inline(_),
                ..
            } => 1,
            Self::File {
                content: Content::Listed(_),
                ..
            } => 2,
            Self::Symlink(_) => 3,
            Self::HardLink(_) => 4,
            Self::Fifo => 5,
            Self::Socket => 6,
            Self::CharDevice(_) => 7,
            Self::BlockDevice(_) => 8,
        }
    }
}

impl Content {
    /// Whether the pieces are few enough to be kept with the entry.
    pub(crate) fn fits_inline(extents: &[Extent]) -> bool {
        extents.len() <= INLINE_EXTENTS
    }
}

pub(crate) fn put_extents(out: &mut Vec<u8>, extents: &[Extent]) {
    put_number(out, extents.len() as u64);
    for extent in extents {
        match extent {
            Extent::Hole(length) => {
                out.push(0);
                put_number(out, *length);
            }
            Extent::Data(length, id) => {
                out.push(1);
                put_number(out, u64::from(*length));
                out.extend_from_slice(id.as_bytes());
            }
        }
    }
}

pub(crate) fn take_extents(from: &mut Reader<'_>) -> Decoded<Vec<Extent>> {
    let count = from.number()?;
    // An extent takes two bytes at least; no more are made than could be there.
    if count > (from.left() / 2) as u64 {
        return Err(Malformed);
    }
    (0..count)
        .map(|_| match from.byte()? {
            0 => Ok(Extent::Hole(from.number()?)),
            1 => Ok(Extent::Data(
                from.number_u32()?,
                ObjectId::from_bytes(from.array()?),
            )),
            _ => Err(Malformed),
        })
        .collect()
}

/// Whether an encoded node is a second name: then the first may have moved meanwhile.
pub(crate) fn is_link(node: &[u8]) -> bool {
    node.first() == Some(&Kind::HardLink(Vec::new()).tag())
}

impl Node {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let meta = &self.meta;
        let xattrs = if meta.xattrs.is_empty() {
            0
        } else {
            HAS_XATTRS
        };
        out.push(self.kind.tag() | xattrs);
        put_number(out, u64::from(meta.mode));
        put_number(out, u64::from(meta.uid));
        put_number(out, u64::from(meta.gid));
        put_signed(out, meta.mtime.seconds);
        put_number(out, u64::from(meta.mtime.nanos));
        if xattrs != 0 {
            put_number(out, meta.xattrs.len() as u64);
            for (name, value) in &meta.xattrs {
                put_bytes(out, name);
                put_bytes(out, value);
            }
        }
        match &self.kind {
            Kind::Directory(id) => out.extend_from_slice(id.as_bytes()),
            Kind::File { size, content } => {
                put_number(out, *size);
                match content {
                    Content::Inline(extents) => put_extents(out, extents),
                    Content::Listed(id) => out.extend_from_slice(id.as_bytes()),
                }
            }
            Kind::Symlink(bytes) | Kind::HardLink(bytes) => put_bytes(out, bytes),
            Kind::CharDevice(device) | Kind::BlockDevice(device) => put_number(out, *device),
            Kind::Fifo | Kind::Socket => {}
        }
    }

    pub(crate) fn take(from: &mut Reader<'_>) -> Decoded<Self> {
        let tag = from.byte()?;
        let mode = from.number_u32()?;
        let uid = from.number_u32()?;
        let gid = from.number_u32()?;
        let seconds = from.signed()?;
        let nanos = from.number_u32()?;
        if nanos >= 1_000_000_000 || mode > 0o7777 {
            return Err(Malformed);
        }
        let mut xattrs = Vec::new();
        if tag & HAS_XATTRS != 0 {
            for _ in 0..from.number()? {
                xattrs.push((from.bytes()?.to_vec(), from.bytes()?.to_vec()));
            }
        }
        let id = |from: &mut Reader<'_>| from.array().map(ObjectId::from_bytes);
        let kind = match tag & !HAS_XATTRS {
            0 => Kind::Directory(id(from)?),
            1 => Kind::File {
                size: from.number()?,
                content: Content::Inline(take_extents(from)?),
            },
            2 => Kind::File {
                size: from.number()?,
                content: Content::Listed(id(from)?),
            },
            3 => Kind::Symlink(from.bytes()?.to_vec()),
            4 => Kind::HardLink(from.bytes()?.to_vec()),
            5 => Kind::Fifo,
            6 => Kind::Socket,
            7 => Kind::CharDevice(from.number()?),
            8 => Kind::BlockDevice(from.number()?),
            _ => return Err(Malformed),
        };
        let mtime = Time { seconds, nanos };
        let meta = Meta {
            mode,
            uid,
            gid,
            mtime,
            xattrs,
        };
        Ok(Self { meta, kind })
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory(_))
    }
}

/// Takes a directory apart. Names are checked: one component each, in order, none twice.
pub(crate) fn decode(bytes: &[u8]) -> Decoded<Tree> {
    let mut from = Reader::new(bytes);
    let mut tree: Tree = Vec::new();
    while !from.is_empty() {
        let name = from.bytes()?.to_vec();
        let in_order = tree.last().is_none_or(|(before, _)| *before < name);
        if !is_component(&name) || !in_order {
            return Err(Malformed);
        }
        tree.push((name, Node::take(&mut from)?));
    }
    Ok(tree)
}

/// Whether this can be the name of an entry.
pub(crate) fn is_component(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && name != b"."
        && name != b".."
        && !name.contains(&b'/')
        && !name.contains(&0)
}

/// Whether this is a path below the top without detours.
pub(crate) fn is_plain_path(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(is_component)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: Kind) -> Node {
        let meta = Meta {
            mode: 0o644,
            uid: 1000,
            gid: 1000,
            mtime: Time {
                seconds: -5,
                nanos: 999_999_999,
            },
            xattrs: vec![(b"user.a".to_vec(), b"\0x".to_vec())],
        };
        Node { meta, kind }
    }

    #[test]
    fn every_kind_survives() {
        let id = ObjectId::of(b"x");
        let extents = vec![Extent::Hole(1 << 40), Extent::Data(7, id)];
        let kinds = [
            Kind::Directory(id),
            Kind::File {
                size: 9,
                content: Content::Inline(extents),
            },
            Kind::File {
                size: 9,
                content: Content::Listed(id),
            },
            Kind::Symlink(b"/\xff".to_vec()),
            Kind::HardLink(b"a/b".to_vec()),
            Kind::Fifo,
            Kind::Socket,
            Kind::CharDevice(259),
            Kind::BlockDevice(1),
        ];
        let mut bytes = Vec::new();
        let mut tree = Tree::new();
        for (number, kind) in kinds.into_iter().enumerate() {
            let name = format!("n{number}").into_bytes();
            put_bytes(&mut bytes, &name);
            let node = node(kind);
            node.put(&mut bytes);
            tree.push((name, node));
        }
        assert_eq!(decode(&bytes), Ok(tree));
        for length in 0..bytes.len() {
            // Cut anywhere: an error or fewer entries, never a panic.
            let _ = decode(&bytes[..length]);
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for bad in [&b".."[..], b".", b"", b"a/b", b"a\0"] {
            let mut bytes = Vec::new();
            put_bytes(&mut bytes, bad);
            node(Kind::Fifo).put(&mut bytes);
            assert_eq!(decode(&bytes), Err(Malformed), "{bad:?}");
        }
        for bad in [&b"/a"[..], b"a/../b", b"a//b", b"a/", b""] {
            assert!(!is_plain_path(bad), "{bad:?}");
        }
    }
}
