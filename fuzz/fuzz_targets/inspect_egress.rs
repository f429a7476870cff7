//! Commands of any shape: no panic, with and without a list of domains, and spans inside the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_inspect::{Kinds, inspect_all};

fuzz_target!(|data: &[u8]| {
    for allowed in [&[][..], &["allowed.test", "*.example.com"][..]] {
        for finding in inspect_all(Kinds::EGRESS, allowed, data).findings {
            assert!(finding.span.start <= finding.span.end);
            assert!(finding.span.end <= data.len() as u64);
        }
    }
});
