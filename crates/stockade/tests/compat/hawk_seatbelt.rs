//! Hawk's policy for Seatbelt: its text is made everywhere, and runs on macOS only.

use std::path::Path;

use stockade::compat::hawk::{
    SeatbeltPolicy, default_hawk_policy, generate_seatbelt_profile, run_seatbelted,
    seatbelt_available,
};
use stockade::compat::{Context, FrontError};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("default_policy", default_policy),
    ("profile", profile),
    ("run", run),
];

fn profile() {
    let policy = SeatbeltPolicy {
        allow_network: true,
        allow_write: true,
        readable_paths: vec!["/usr".into(), "/odd\"name".into()],
        writable_paths: vec!["/work".into()],
        allow_process: true,
        allow_sysctl: true,
    };
    let text = generate_seatbelt_profile(&policy).unwrap();
    let has = |text: &str, words: &[&str]| {
        let line = |line: &str| words.iter().all(|word| line.contains(word));
        text.lines().any(line)
    };
    let granted: [&[&str]; 5] = [
        &["allow file-read", "/usr"],
        &["allow file-write", "/work"],
        &["process-exec"],
        &["sysctl-read"],
        &["allow network"],
    ];
    for words in granted {
        assert!(has(&text, words), "{words:?}: {text}");
    }
    assert!(text.contains("odd\\\"name"), "the quote is escaped: {text}");
    let closed = SeatbeltPolicy {
        allow_network: false,
        allow_write: false,
        allow_process: false,
        allow_sysctl: false,
        ..policy.clone()
    };
    let text = generate_seatbelt_profile(&closed).unwrap();
    for words in &granted[1..] {
        assert!(!has(&text, words), "{words:?}: {text}");
    }
    assert!(has(&text, &["allow file-read", "/work"]), "{text}");
    let relative = SeatbeltPolicy {
        readable_paths: vec!["usr".into()],
        ..SeatbeltPolicy::default()
    };
    assert!(generate_seatbelt_profile(&relative).is_err());
}

fn default_policy() {
    let policy = default_hawk_policy(Path::new("/work")).unwrap();
    assert!(policy.allow_write && policy.allow_process && !policy.allow_network);
    assert!(policy.writable_paths.contains(&"/work".into()));
    assert!(policy.readable_paths.contains(&"/usr".into()));
    assert!(default_hawk_policy(Path::new("work")).is_err());
}

fn run() {
    assert!(!seatbelt_available(), "this is Linux");
    let policy = default_hawk_policy(Path::new("/work")).unwrap();
    let refused = run_seatbelted(&Context::new(), "true", &policy);
    assert!(matches!(refused, Err(FrontError::Settings(_))));
    let (context, cancel) = Context::new().with_cancel();
    cancel.cancel();
    let refused = run_seatbelted(&context, "true", &policy);
    assert!(matches!(refused, Err(FrontError::Cancelled)));
}
