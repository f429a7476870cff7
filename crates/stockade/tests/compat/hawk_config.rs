//! Hawk's configuration document.

use std::fs;

use stockade::compat::hawk::{Config, Kind, Sandbox, default_config};
use stockade::compat::{Context, FrontError};

use crate::{Test, dir, own_path};

pub(crate) const TESTS: &[Test] = &[
    ("cancellation", cancellation),
    ("document", document),
    ("limits", limits),
];

fn document() {
    let (place, more, kept) = (dir(), dir(), place_to_keep());
    let sandbox = Sandbox::new(own_path());
    let config = Config {
        enabled: true,
        kind: Kind::Namespace,
        allow_network: false,
        allow_write: true,
        read_only_dirs: vec![kept.path().to_owned()],
        writable_dirs: vec![more.path().to_owned()],
        ..default_config()
    };
    let script = format!(
        "echo x > own; echo x > '{}/f'; echo x > '{}/f'",
        more.path().display(),
        kept.path().display()
    );
    // The control: without a sandbox all three are written.
    let bare = Config {
        enabled: false,
        kind: Kind::None,
        ..default_config()
    };
    let context = Context::new();
    let ended = bare.run(&context, &sandbox, place.path(), &script).unwrap();
    assert_eq!(ended.output().unwrap().code, 0);
    for path in [place.path().join("own"), more.path().join("f")] {
        fs::remove_file(path).unwrap();
    }
    fs::remove_file(kept.path().join("f")).unwrap();
    let command = config.run(&context, &sandbox, place.path(), &script);
    assert_ne!(command.unwrap().output().unwrap().code, 0);
    assert!(place.path().join("own").exists());
    assert!(more.path().join("f").exists());
    assert!(!kept.path().join("f").exists());
    let unknown = r#"{"enabled":true,"type":"auto","alow_network":true}"#;
    assert!(serde_json::from_str::<Config>(unknown).is_err());
}

fn place_to_keep() -> tempfile::TempDir {
    dir()
}

fn limits() {
    let place = dir();
    let mut config = default_config();
    assert_eq!((config.max_memory_mb, config.max_cpu_pct), (512, 0));
    config.max_memory_mb = 64;
    let profile = config.profile(place.path()).unwrap().unwrap();
    assert_eq!(profile.limits.memory(), Some(64 << 20));
    config.max_cpu_pct = 50;
    assert!(config.profile(place.path()).is_err());
}

fn cancellation() {
    let place = dir();
    let sandbox = Sandbox::new(own_path());
    let bare = Config {
        enabled: false,
        kind: Kind::None,
        ..default_config()
    };
    for config in [default_config(), bare] {
        let (context, cancel) = Context::new().with_cancel();
        // The command waits for its cancellation, and leaves a child that would hold its output.
        let script = "touch started; sleep 3600 & wait";
        let command = config
            .run(&context, &sandbox, place.path(), script)
            .unwrap();
        let started = place.path().join("started");
        let canceller = std::thread::spawn(move || {
            while !started.exists() {
                std::thread::yield_now();
            }
            fs::remove_file(started).unwrap();
            cancel.cancel();
        });
        let ended = command.output();
        assert!(matches!(ended, Err(FrontError::Cancelled)), "{ended:?}");
        canceller.join().unwrap();
        let late = config.run(&context, &sandbox, place.path(), "true");
        assert!(matches!(late, Err(FrontError::Cancelled)));
    }
}
