//! Any bytes in any chunks: no panic, the same findings as at once, spans inside the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_inspect::{Kinds, StreamInspector, inspect_all};

fuzz_target!(|data: &[u8]| {
    let (sizes, text) = data.split_at(data.len().min(4));
    let whole = inspect_all(Kinds::ALL, ["github.com"], text);
    let mut stream = StreamInspector::new(Kinds::ALL, ["github.com"]);
    let mut findings = Vec::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (now, later) = rest.split_at((usize::from(*size) * 64 + 1).min(rest.len()));
        findings.extend(stream.feed(now));
        rest = later;
    }
    findings.extend(stream.finish().0);
    assert_eq!(findings, whole.findings);
    for finding in &findings {
        assert!(finding.span.start <= finding.span.end);
        assert!(finding.span.end <= text.len() as u64);
    }
});
