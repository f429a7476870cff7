//! Any bytes as an absolute path: the quick search finds what a comparison of all components with
//! all rows finds.

#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use stockade_rules::AbsPath;
use stockade_rules::protected::{Extent, PROTECTED, Relation, candidates, is_interesting, is_same_name};

fuzz_target!(|data: &[u8]| {
    let text = [b"/", data].concat();
    let Ok(path) = AbsPath::new(Path::new(OsStr::from_bytes(&text))) else {
        return;
    };
    let path = path.as_path();
    let found: Vec<_> = candidates(path).collect();
    let parts: Vec<&[u8]> = path.iter().skip(1).map(OsStr::as_bytes).collect();
    let mut expected = 0;
    for start in 0..parts.len() {
        for row in PROTECTED {
            let name: Vec<&str> = row.name.split('/').collect();
            let rest = &parts[start..];
            let equal = name
                .iter()
                .zip(rest)
                .all(|(left, right)| is_same_name(left, right));
            let below = rest.len() > name.len();
            if equal && (!below || row.extent == Extent::Subtree) {
                let candidate = found[expected];
                assert_eq!(candidate.row, row);
                let anchor: usize = parts[..start].iter().map(|part| part.len() + 1).sum();
                assert_eq!(candidate.anchor_len, anchor);
                assert!(path.starts_with(candidate.anchor(path)));
                if !matches!(candidate.relation, Relation::Below { .. }) {
                    assert!(is_interesting(path.file_name().unwrap_or_default()));
                }
                expected += 1;
            }
        }
    }
    assert_eq!(found.len(), expected);
});
