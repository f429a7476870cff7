//! Errata's package.

use std::fs;

use stockade::compat::Context;
use stockade::compat::errata::{
    Config, Filesystem, NetworkAccess, build_cmd, config_from_context, with_config,
};

use crate::{Test, dir, door};

pub(crate) const TESTS: &[Test] = &[
    ("available", available),
    ("commands", commands),
    ("contexts", contexts),
    ("words", words),
];

fn available() {
    let place = dir();
    door().available(place.path()).unwrap();
    let broken = stockade::compat::Door::new("/nonexistent");
    assert!(broken.available(place.path()).is_err());
}

fn words() {
    let config = Config::parse("project_only", "none", "/srv").unwrap();
    assert_eq!(config.filesystem, Filesystem::ProjectOnly);
    assert_eq!(config.network, NetworkAccess::None);
    assert_eq!(config.project_root, Some("/srv".into()));
    assert!(config.active());
    for (filesystem, network, active) in [
        ("", "", false),
        ("unrestricted", "full", false),
        ("read_only", "", true),
        ("", "none", true),
    ] {
        let config = Config::parse(filesystem, network, "").unwrap();
        assert_eq!(config.active(), active);
        assert_eq!(config.project_root, None);
    }
    assert!(Config::parse("read-only", "", "").is_err());
    assert!(Config::parse("", "off", "").is_err());
}

fn contexts() {
    let config = Config::parse("read_only", "", "").unwrap();
    let context = with_config(&Context::new(), config.clone());
    assert_eq!(config_from_context(&context), Some(&config));
    assert_eq!(config_from_context(&Context::new()), None);
}

fn commands() {
    let (place, outside) = (dir(), dir());
    let target = outside.path().join("f");
    let script = format!("pwd; echo x > inside; echo x > '{}'", target.display());
    for (filesystem, inside, escapes) in [
        // The control.
        ("", true, true),
        ("project_only", true, false),
        ("read_only", false, false),
    ] {
        let config = Config::parse(filesystem, "", place.path()).unwrap();
        let command = build_cmd(&Context::new(), &door(), &config, "sh", ["-c", &script]);
        let ended = command.unwrap().output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert_eq!(said.trim_end(), place.path().to_str().unwrap());
        let gone = |path: std::path::PathBuf| fs::remove_file(path).is_ok();
        assert_eq!(gone(place.path().join("inside")), inside, "{filesystem}");
        assert_eq!(gone(target.clone()), escapes, "{filesystem}");
    }
}
