//! Git's index (gitformat-index(5)). Git checks the paths of trees before it writes files, and trusts those of an
//! index: an entry `.git/hooks/pre-commit` becomes a hook at the next `git checkout .`.
//!
//! The reader follows git's own (read-cache.c), which checks little: whatever git could take for an
//! entry is judged here.

use crate::protected::is_same_name;
use crate::protected::judge::{Effect, Refusal};

/// SHA-1 and SHA-256: a file is read both ways, because the configuration that decides may change.
const ID_BYTES: [usize; 2] = [20, 32];
/// No file has a longer path (`PATH_MAX`).
const MAX_NAME_BYTES: usize = 4096;
/// Git maps the file: behind its end there are zeroes up to the end of a page.
const PAGE_BYTES: usize = 4096;

/// Judges a file that git takes for an index.
pub fn judge(file: &[u8]) -> Result<(), Refusal> {
    if !file.starts_with(b"DIRC") {
        return Ok(());
    }
    let mut is_readable = false;
    for id_bytes in ID_BYTES {
        let index = Index { file, id_bytes };
        match index.judge() {
            Some(Err(refusal)) => return Err(refusal),
            Some(Ok(())) => is_readable = true,
            None => {}
        }
    }
    if is_readable {
        Ok(())
    } else {
        Err(Refusal::unreadable("git can't read this index"))
    }
}

struct Index<'f> {
    file: &'f [u8],
    id_bytes: usize,
}

/// Where an entry begins, and how many bytes of its name are those of the one before.
struct Entry {
    start: usize,
    shared: usize,
}

impl Index<'_> {
    /// Judges the index; `None` if git fails to read it with ids of this size.
    fn judge(&self) -> Option<Result<(), Refusal>> {
        let version = self.number(4)?;
        if !(2..=4).contains(&version) {
            return None;
        }
        let (mut entries, mut name, mut judged) = (Vec::new(), Vec::new(), Ok(()));
        let mut at = 12;
        for _ in 0..self.number(8)? {
            let start = at;
            let shared = self.entry(&mut at, version == 4, &mut name)?;
            judged = judged.and_then(|()| judge_name(&name));
            name.pop();
            if name.len() > MAX_NAME_BYTES {
                return Some(Err(Refusal::unreadable("a path is too long")));
            }
            entries.push(Entry { start, shared });
        }
        let layout = self.extensions(at, &entries)?;
        Some(judged.and(layout))
    }

    /// Reads the entry at `next`, and leaves its name, with the byte behind it, in the place of the
    /// one before. How much both have in common.
    fn entry(&self, next: &mut usize, is_compressed: bool, name: &mut Vec<u8>) -> Option<usize> {
        const EXTENDED: usize = 0x4000;
        const KNOWN_EXTENDED: usize = 0x6000;
        const LONG: usize = 0xfff;
        let start = *next;
        let mut at = start + 40 + self.id_bytes;
        let flags = self.short(at)?;
        at += 2;
        if flags & EXTENDED != 0 {
            if self.short(at)? & !KNOWN_EXTENDED != 0 {
                return None;
            }
            at += 2;
        }
        let mut shared = 0;
        if is_compressed {
            shared = name.len().checked_sub(self.varint(&mut at)?)?;
        }
        let length = match flags & LONG {
            LONG => (at..)
                .map_while(|at| self.byte(at).filter(|byte| *byte != 0))
                .count(),
            length => length.checked_sub(shared)?,
        };
        name.truncate(shared);
        for at in at..at + length {
            name.push(self.byte(at)?);
        }
        // Git copies the byte behind the name too, which is zero unless somebody forged the length.
        name.push(self.byte(at + length)?);
        *next = if is_compressed {
            at + length + 1
        } else {
            start + ((at - start + length + 8) & !7)
        };
        Some(shared)
    }

    /// Extensions that let git take entries from elsewhere.
    fn extensions(&self, end_of_entries: usize, entries: &[Entry]) -> Option<Result<(), Refusal>> {
        let mut judged = Ok(());
        let end = self.file.len().checked_sub(self.id_bytes)?;
        // Git looks for the extension that ends the file before it reads anything else.
        let last = end.checked_sub(12 + self.id_bytes);
        if let Some(last) = last.filter(|at| self.file[*at..].starts_with(b"EOIE"))
            && self.number(last + 8)? != end_of_entries
        {
            judged = Err(redirects("EOIE"));
        }
        let mut at = end_of_entries;
        while at + 8 <= end {
            let size = self.number(at + 4)?;
            match &self.file[at..at + 4] {
                b"link" => judged = Err(redirects("link")),
                b"IEOT" if !self.are_blocks(at + 8, size, entries)? => {
                    judged = Err(redirects("IEOT"));
                }
                [b'A'..=b'Z', ..] | b"sdir" => {}
                _ => return None,
            }
            at += 8 + size;
        }
        Some(judged)
    }

    /// Whether a table of blocks, by which threads read entries, leads to the entries themselves.
    fn are_blocks(&self, at: usize, size: usize, entries: &[Entry]) -> Option<bool> {
        let mut first = 0;
        for block in (4..size.saturating_sub(7)).step_by(8) {
            let (start, count) = (self.number(at + block)?, self.number(at + block + 4)?);
            let Some(entry) = entries.get(first) else {
                return Some(count == 0);
            };
            if entry.start != start || entry.shared != 0 {
                return Some(false);
            }
            first += count;
        }
        Some(first == entries.len())
    }

    fn byte(&self, at: usize) -> Option<u8> {
        let mapped = self.file.len().next_multiple_of(PAGE_BYTES);
        let byte = self.file.get(at).copied();
        byte.or((at < mapped).then_some(0))
    }

    fn short(&self, at: usize) -> Option<usize> {
        Some(usize::from(self.byte(at)?) << 8 | usize::from(self.byte(at + 1)?))
    }

    fn number(&self, at: usize) -> Option<usize> {
        Some(self.short(at)? << 16 | self.short(at + 2)?)
    }

    /// As git's `decode_varint`.
    fn varint(&self, at: &mut usize) -> Option<usize> {
        let mut next = || {
            let byte = self.byte(*at)?;
            *at += 1;
            Some(usize::from(byte))
        };
        let mut byte = next()?;
        let mut value = byte & 127;
        while byte & 128 != 0 {
            byte = next()?;
            value = (value + 1).checked_mul(128)? + (byte & 127);
        }
        Some(value)
    }
}

/// Refuses a path that leads out of the working tree or into a git directory. Git ends it at a zero.
fn judge_name(name: &[u8]) -> Result<(), Refusal> {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_bad = |part: &[u8]| part == b".." || is_same_name(".git", part);
    let leads_out = name.starts_with(b"/") || name.split(|byte| *byte == b'/').any(is_bad);
    if leads_out {
        let name = name.escape_ascii().to_string();
        return Err(Refusal::new(
            name,
            Effect::Redirects,
            "git writes a file there",
        ));
    }
    Ok(())
}

fn redirects(extension: &str) -> Refusal {
    Refusal::new(
        extension,
        Effect::Redirects,
        "git takes entries from elsewhere",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &[u8], id_bytes: usize) -> Vec<u8> {
        let mut entry = vec![0; 40 + id_bytes];
        entry.extend(u16::try_from(name.len().min(0xfff)).unwrap().to_be_bytes());
        entry.extend(name);
        entry.resize((entry.len() + 8) & !7, 0);
        entry
    }

    fn index(names: &[&[u8]], extensions: &[u8], id_bytes: usize) -> Vec<u8> {
        let count = u32::try_from(names.len()).unwrap();
        let mut file = [&b"DIRC\0\0\0\x02"[..], &count.to_be_bytes()].concat();
        for name in names {
            file.extend(entry(name, id_bytes));
        }
        file.extend(extensions);
        file.extend(vec![7; id_bytes]);
        file
    }

    #[test]
    fn ordinary_paths_pass() {
        for id_bytes in ID_BYTES {
            let long = [b'l'; 4095];
            let names: [&[u8]; 5] = [b".gitignore", b"a", b"a.git/b", &long, b"x/.github/y"];
            assert_eq!(judge(&index(&names, b"", id_bytes)), Ok(()));
            assert_eq!(judge(&index(&[], b"TREE\0\0\0\x01x", id_bytes)), Ok(()));
        }
        assert_eq!(judge(b""), Ok(()));
        assert_eq!(judge(b"no index"), Ok(()));
    }

    #[test]
    fn paths_that_git_would_not_take_from_a_tree_are_refused() {
        for id_bytes in ID_BYTES {
            for name in [
                &b".git/hooks/pre-commit"[..],
                b"sub/.git",
                b"a/.GIT/config",
                b"../x",
                b"/etc/x",
                b"a/../../x",
            ] {
                let file = index(&[b".a", name], b"", id_bytes);
                assert!(judge(&file).is_err(), "{}", name.escape_ascii());
            }
        }
    }

    #[test]
    fn entries_from_elsewhere_are_refused() {
        for extension in [
            &b"link\0\0\0\x14aaaaaaaaaaaaaaaaaaaa"[..],
            b"IEOT\0\0\0\x0c\0\0\0\x01\0\0\0\x40\0\0\0\x01",
            b"EOIE\0\0\0\x18\0\0\0\x40aaaaaaaaaaaaaaaaaaaa",
        ] {
            assert!(judge(&index(&[b"a"], extension, 20)).is_err());
        }
        let blocks = b"IEOT\0\0\0\x0c\0\0\0\x01\0\0\0\x0c\0\0\0\x01";
        assert_eq!(judge(&index(&[b"a"], blocks, 20)), Ok(()));
        assert!(judge(b"DIRC\0\0\0\x02\0\0\0\x05").is_err());
    }

    #[test]
    fn a_name_with_a_forged_length_is_refused() {
        const LENGTH: usize = 12 + 61;
        let mut file = index(&[b"a/.gitx"], b"", 20);
        file[LENGTH] = 5;
        assert!(judge(&file).is_err(), "the byte behind the name");
        let mut file = index(&[b"a/.git\0aa"], b"", 20);
        file[LENGTH] = 9;
        assert!(judge(&file).is_err(), "a zero in the name");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_judged(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
            let _ = judge(&[&b"DIRC\0\0\0\x04\0\0\0\x02"[..], &bytes].concat());
        }
    }
}
