//! Differences in lines.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use similar::{ChangeTag, TextDiff};

use super::{Change, Source};
use crate::error::{Error, Trying};
use crate::files;
use crate::store::Session;
use crate::tree::Extent;

/// A change in lines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Text {
    /// One of the files is not text, or both are too long to compare.
    Binary,
    /// There is nothing in lines: a directory, a FIFO, another mode.
    Nothing,
    /// Lines that went and came.
    Lines {
        /// The unified diff, without the two lines that name the files.
        hunks: String,
        /// How many lines came.
        added: usize,
        /// How many lines went.
        removed: usize,
    },
}

/// Longer files are not compared line by line.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Lines around a change.
const AROUND: usize = 3;
/// After this the rest is taken as changed.
const COMPARISON_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn of(session: &Session, change: &Change) -> Result<Text, Error> {
    let [old, new] = &change.sources;
    if matches!((old, new), (Source::Nothing, Source::Nothing)) {
        return Ok(Text::Nothing);
    }
    let (Some(old), Some(new)) = (read(session, old)?, read(session, new)?) else {
        return Ok(Text::Binary);
    };
    if old == new {
        return Ok(Text::Nothing);
    }
    if is_binary(&old) || is_binary(&new) {
        return Ok(Text::Binary);
    }
    let (old, new) = (as_text(&old), as_text(&new));
    let diff = TextDiff::configure()
        .timeout(COMPARISON_TIMEOUT)
        .diff_lines(&*old, &*new);
    let count = |tag| {
        diff.iter_all_changes()
            .filter(|line| line.tag() == tag)
            .count()
    };
    Ok(Text::Lines {
        added: count(ChangeTag::Insert),
        removed: count(ChangeTag::Delete),
        hunks: diff.unified_diff().context_radius(AROUND).to_string(),
    })
}

fn as_text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A NUL near the beginning, as git decides it; or what is no UTF-8 and has control characters, such
/// as short compressed files, which need not have a NUL.
fn is_binary(content: &[u8]) -> bool {
    let begin = &content[..content.len().min(8000)];
    let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\n\r\x0c\x1b".contains(byte);
    begin.contains(&0) || (begin.iter().any(is_control) && !is_utf8(begin))
}

/// Whether this is the beginning of a text, which may have been cut within a character.
fn is_utf8(begin: &[u8]) -> bool {
    match std::str::from_utf8(begin) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && begin.len() == 8000,
    }
}

/// The content; none if it is too long.
fn read(session: &Session, source: &Source) -> Result<Option<Vec<u8>>, Error> {
    match source {
        Source::Nothing => Ok(Some(Vec::new())),
        Source::Bytes(bytes) => Ok(Some(bytes.clone())),
        Source::File(dir, path) => read_file(dir, path),
        Source::Object(content) => {
            let extents = session.extents(content)?;
            if extents.iter().map(Extent::len).sum::<u64>() > MAX_FILE_BYTES {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            for extent in extents {
                match extent {
                    Extent::Hole(length) => {
                        let length = usize::try_from(length).unwrap_or(0);
                        bytes.resize(bytes.len() + length, 0);
                    }
                    Extent::Data(_, id) => bytes.extend(session.get(&id)?),
                }
            }
            Ok(Some(bytes))
        }
    }
}

fn read_file(dir: &Path, path: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let full = files::full(dir, path);
    let top = files::open_top(dir)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let fd =
        files::open_below(std::os::fd::AsFd::as_fd(&top), path, flags).trying("read", &full)?;
    let mut content = Vec::new();
    File::from(fd)
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut content)
        .trying("read", &full)?;
    Ok((content.len() as u64 <= MAX_FILE_BYTES).then_some(content))
}

/// Whether two sources are certainly of the same content.
pub(super) fn is_same(one: &Source, other: &Source) -> bool {
    match (one, other) {
        (Source::Object(one), Source::Object(other)) => one == other,
        (Source::File(one, one_path), Source::File(other, other_path)) => {
            let contents = (read_file(one, one_path), read_file(other, other_path));
            matches!(contents, (Ok(Some(one)), Ok(Some(other))) if one == other)
        }
        (Source::Object(content), Source::File(dir, path))
        | (Source::File(dir, path), Source::Object(content)) => same_as_object(content, dir, path),
        _ => false,
    }
}

/// Only for short files, which are one object; long ones are rarely renamed and changed at once.
fn same_as_object(content: &crate::tree::Content, dir: &Path, path: &[u8]) -> bool {
    let crate::tree::Content::Inline(extents) = content else {
        return false;
    };
    match (&extents[..], read_file(dir, path)) {
        ([Extent::Data(_, id)], Ok(Some(bytes))) => crate::id::ObjectId::of(&bytes) == *id,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_known() {
        assert!(is_binary(b"a\0b"));
        assert!(
            is_binary(b"x\x01K\xca\xc9OR"),
            "a compressed file without a NUL"
        );
        assert!(!is_binary(b""));
        assert!(!is_binary("gr\u{fc}n\n\x1b[1mbold\n\x08".as_bytes()));
        assert!(!is_binary(b"gr\xfcn in another encoding\n"));
        // Cut within a character.
        let mut long = vec![b'\x07'; 7999];
        long.extend_from_slice("\u{fc}".as_bytes());
        assert!(!is_binary(&long));
    }
}
