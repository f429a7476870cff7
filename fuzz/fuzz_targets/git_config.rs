//! Any bytes as git's configuration before and after: no panic, and what passes alone passes
//! again on top of itself.
//!
//! The byte 1, which no configuration needs, parts the two files.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_rules::protected::Effect;
use stockade_rules::protected::git::{ConfigContext, config, entries_for, sequencer};

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == 1);
    let (old, new) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let context = ConfigContext::new();
    let judged = config::judge(old, new, &context);
    match &judged {
        Err(refusal) => assert!(!refusal.to_string().contains('\u{1b}')),
        Ok(()) => assert_eq!(config::judge(new, new, &context), Ok(())),
    }
    // A file that is its own predecessor changes nothing.
    if config::parse(new).is_some() {
        assert_eq!(config::judge(new, new, &context), Ok(()));
    }
    // What is judged without a predecessor passes with any.
    if config::judge(b"", new, &context).is_ok() {
        assert_eq!(judged, Ok(()));
        let settings = config::parse(new).unwrap_or_default();
        for setting in settings {
            let never = |name: &str| entries_for(&setting.key).any(|entry| entry.name == name);
            assert!(!never("core.hooksPath") && !never("include.path"));
        }
    } else if let Err(refusal) = config::judge(b"", new, &context) {
        assert_eq!(
            refusal.effect == Effect::Unreadable,
            config::parse(new).is_none()
        );
    }
    let _ = sequencer::judge_options(old, new);
});
