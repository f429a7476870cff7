//! Any bytes: no panic, spans inside the input, and evidence that can't forge lines.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_inspect::AdversaryInspector;

fuzz_target!(|data: &[u8]| {
    let result = AdversaryInspector::new().inspect(data);
    assert!((0.0..=1.0).contains(&result.score), "{}", result.score);
    for finding in &result.findings {
        assert!(finding.span.start <= finding.span.end);
        assert!(finding.span.end <= data.len() as u64);
        assert!((0.0..=1.0).contains(&finding.confidence), "{finding:?}");
        assert!(!finding.content.chars().any(char::is_control), "{finding:?}");
    }
});
