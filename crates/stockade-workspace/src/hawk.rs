//! Snapshots of Hawk's sandbox manager: one JSON document with every file's content in base64.
//! Its identity, directory and modes are not taken over; its paths are checked like any other.

use std::collections::BTreeMap;
use std::io::Read;

use rustix::process::{getegid, geteuid};
use serde::Deserialize;

use crate::assemble::Assembly;
use crate::cache::now;
use crate::content::cut;
use crate::error::{Error, Trying};
use crate::files;
use crate::import::Imported;
use crate::pack::Block;
use crate::store::Sink;
use crate::tree::{Content, Kind, Meta, Node, put_extents};

#[derive(Deserialize)]
struct Document {
    files: Option<BTreeMap<String, String>>,
    #[serde(default)]
    env_vars: Option<BTreeMap<String, String>>,
    #[serde(default)]
    id: String,
}

pub(crate) fn read(source: impl Read, sink: &Sink<'_>) -> Result<Imported, Error> {
    let document: Document = serde_json::from_reader(source)
        .map_err(|error| Error::Import(format!("it makes no sense: {error}")))?;
    let mut block = Block::new().trying("compress", "an import")?;
    let mut buffer = Vec::new();
    let meta = |mode| Meta {
        mode,
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
        mtime: now(),
        xattrs: Vec::new(),
    };
    let mut assembly = Assembly {
        root: meta(0o755),
        message: Some(format!("from {}", document.id.escape_debug())),
        ..Assembly::default()
    };
    for (path, text) in document.files.unwrap_or_default() {
        let content = decode(text.as_bytes())
            .ok_or_else(|| Error::Import(format!("`{}` is not in base64", path.escape_debug())))?;
        let path = path.into_bytes();
        if !crate::tree::is_plain_path(&path) {
            let shown = String::from_utf8_lossy(&path);
            let text = format!("`{}` leads somewhere else", shown.escape_debug());
            return Err(Error::Import(text));
        }
        let (parent, _) = files::split(&path);
        assembly.add_directories(parent, &meta(0o755))?;
        let mut rest = &content[..];
        let mut extents = Vec::new();
        let size = content.len() as u64;
        let fill = |buffer: &mut [u8]| rest.read(buffer);
        let put = |piece: &[u8]| sink.put(&mut block, piece).map_err(std::io::Error::other);
        cut(&mut buffer, size, fill, put, &mut extents).trying("read", "an import")?;
        let content = if Content::fits_inline(&extents) {
            Content::Inline(extents)
        } else {
            let mut list = Vec::new();
            put_extents(&mut list, &extents);
            Content::Listed(sink.put(&mut block, &list)?)
        };
        let node = Node {
            meta: meta(0o644),
            kind: Kind::File { size, content },
        };
        assembly.add(path, node)?;
    }
    sink.flush(&mut block)?;
    Ok(Imported {
        record: assembly.finish(sink)?,
        env: document.env_vars.unwrap_or_default(),
    })
}

/// Base64 with padding, as Go writes it.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for group in text[..text.len() - padding].chunks(4) {
        let mut bits = 0u32;
        for byte in group {
            bits = bits << 6 | u32::from(value(*byte)?);
        }
        bits <<= 6 * (4 - group.len());
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(&bytes[1..group.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("YQ==", b"a"),
            ("YWI=", b"ab"),
            ("YWJj", b"abc"),
            ("//79", &[0xff, 0xfe, 0xfd]),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes), "{text}");
        }
        for bad in ["a", "a===", "YQ=a", "ab c"] {
            assert_eq!(decode(bad.as_bytes()), None, "{bad}");
        }
    }
}
