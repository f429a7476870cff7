//! Any bytes: no panic, and a secret found is never printed whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_inspect::{Kinds, inspect_all};

fuzz_target!(|data: &[u8]| {
    let result = inspect_all(Kinds::SECRETS, [""; 0], data);
    for finding in &result.findings {
        let start = finding.span.start as usize;
        let end = finding.span.end as usize;
        let Some(secret) = data.get(start..end) else { panic!("a span outside the input") };
        if secret.len() >= 16 && let Ok(secret) = std::str::from_utf8(secret) {
            assert!(!finding.content.contains(secret), "{finding:?}");
        }
    }
});
