//! Any bytes as a path, absolute or against a directory: what rules and the mediator compare is
//! normal, says the same as a walk over the components, and stays the same when read again.

#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use stockade_rules::AbsPath;

/// The components of `text` behind those of `base`, `..` taken by its word.
fn walked<'a>(base: &[&'a [u8]], text: &'a [u8]) -> Vec<&'a [u8]> {
    let mut parts = if text.starts_with(b"/") {
        Vec::new()
    } else {
        base.to_vec()
    };
    for part in text.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

fuzz_target!(|data: &[u8]| {
    let text = Path::new(OsStr::from_bytes(data));
    let is_clean = !data.is_empty() && !data.contains(&0);
    let absolute = AbsPath::new(text);
    assert_eq!(absolute.is_ok(), is_clean && data.starts_with(b"/"));
    let base = AbsPath::new("/base/of/it").unwrap_or_else(|_| AbsPath::root());
    let Ok(joined) = base.join(text) else {
        assert!(!is_clean);
        return;
    };
    let expected = walked(&[b"base", b"of", b"it"], data);
    let parts: Vec<&[u8]> = joined.as_path().iter().skip(1).map(OsStr::as_bytes).collect();
    assert_eq!(parts, expected);
    assert_eq!(AbsPath::new(joined.as_path()), Ok(joined.clone()));
    if let Ok(absolute) = absolute {
        assert_eq!(absolute, joined);
    }
    let resolved = AbsPath::resolve(text.as_os_str(), &base, None);
    assert!(data.starts_with(b"~") || data.is_empty() || resolved == Ok(joined));
});
