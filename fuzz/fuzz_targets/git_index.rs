//! Any bytes as git's index: no panic, and an entry that leads into a git directory never passes.
//!
//! The bytes are the second entry of an index of version 2, behind one that is in order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_rules::protected::git::index;
use stockade_rules::protected::is_same_name;

const ID_BYTES: usize = 20;

fn entry(name: &[u8]) -> Vec<u8> {
    let mut entry = vec![0; 40 + ID_BYTES];
    let length = u16::try_from(name.len()).unwrap_or(0xfff).min(0xfff);
    entry.extend(length.to_be_bytes());
    entry.extend(name);
    entry.resize((entry.len() + 8) & !7, 0);
    entry
}

/// How much later a name can begin: two entries, two flags.
const MAX_SHIFT: usize = 64;

fn leads_out(name: &[u8]) -> bool {
    let mut parts = name.split(|byte| *byte == b'/');
    name.starts_with(b"/") || parts.any(|part| part == b".." || is_same_name(".git", part))
}

fuzz_target!(|data: &[u8]| {
    let _ = index::judge(data);
    let _ = index::judge(&[b"DIRC\0\0\0\x04", data].concat());
    let name: Vec<u8> = data.iter().copied().filter(|byte| *byte != 0).collect();
    let head = b"DIRC\0\0\0\x02\0\0\0\x02";
    let file = [&head[..], &entry(b"a"), &entry(&name), &[0; ID_BYTES]].concat();
    if index::judge(&file).is_ok() {
        assert!(!leads_out(&name));
    } else {
        // The file is read with ids of 32 bytes too, and the name of an entry begins later then.
        let mut starts = 0..name.len().min(MAX_SHIFT);
        // A name can also look like an extension at the end of the file.
        let has = |what: &[u8]| name.windows(4).any(|part| part == what);
        let is_extension = has(b"EOIE") || has(b"IEOT") || has(b"link");
        assert!(starts.any(|at| leads_out(&name[at..])) || is_extension || name.len() > 4096);
    }
});
