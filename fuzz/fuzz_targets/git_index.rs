//! Any bytes as git's index: no panic, and an entry that leads into a git directory never passes.
//!
//! The bytes are the second entry of an index of version 2, behind one that is in order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_rules::protected::git::index;

const ID_BYTES: usize = 20;

fn entry(name: &[u8]) -> Vec<u8> {
    let mut entry = vec![0; 40 + ID_BYTES];
    let length = u16::try_from(name.len()).unwrap_or(0xfff).min(0xfff);
    entry.extend(length.to_be_bytes());
    entry.extend(name);
    entry.resize((entry.len() + 8) & !7, 0);
    entry
}

fuzz_target!(|data: &[u8]| {
    let _ = index::judge(data);
    let _ = index::judge(&[b"DIRC\0\0\0\x04", data].concat());
    let name: Vec<u8> = data.iter().copied().filter(|byte| *byte != 0).collect();
    let head = b"DIRC\0\0\0\x02\0\0\0\x02";
    let file = [&head[..], &entry(b"a"), &entry(&name), &[0; ID_BYTES]].concat();
    let leads_out = name.starts_with(b"/")
        || name
            .split(|byte| *byte == b'/')
            .any(|part| part == b".." || part.eq_ignore_ascii_case(b".git"));
    if index::judge(&file).is_ok() {
        assert!(!leads_out);
    } else {
        assert!(leads_out || name.len() > 4096);
    }
});
