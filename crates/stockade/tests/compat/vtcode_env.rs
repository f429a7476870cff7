//! VT Code's handling of the environment.

use std::ffi::OsString;
use std::path::Path;

use stockade::compat::vtcode::{
    FILTERED_ENV_VARS, PRESERVED_ENV_VARS, VTCODE_SANDBOX_ACTIVE, VTCODE_SANDBOX_NETWORK_DISABLED,
    VTCODE_SANDBOX_TYPE, VTCODE_SANDBOX_WRITABLE_ROOTS, build_sanitized_env, filter_sensitive_env,
    should_filter_env_var,
};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("filter", filter),
    ("filtered_names", filtered_names),
    ("markers", markers),
    ("preserved_names", preserved_names),
];

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let own = |(name, value): &(&str, &str)| (name.into(), value.into());
    pairs.iter().map(own).collect()
}

fn filtered_names() {
    for name in FILTERED_ENV_VARS {
        assert!(should_filter_env_var(name), "{name}");
    }
    for name in ["openai_api_key", "CUSTOM_ACCESS_TOKEN", "LD_AUDIT"] {
        assert!(should_filter_env_var(name), "{name}");
    }
    for name in ["PATH", "HOME", "TERM", "PWD", "SAFE_PROJECT_NAME"] {
        assert!(!should_filter_env_var(name), "{name}");
    }
}

fn preserved_names() {
    assert!(PRESERVED_ENV_VARS.contains(&"PATH"));
    for name in PRESERVED_ENV_VARS {
        assert!(!should_filter_env_var(name), "{name}");
    }
}

fn filter() {
    let env = variables(&[
        ("PATH", "/bin"),
        ("GITHUB_TOKEN", "t"),
        ("BASH_ENV", "/x"),
        ("PROJECT", "p"),
    ]);
    let kept = filter_sensitive_env(env);
    let names: Vec<_> = kept.keys().collect();
    assert_eq!(names, ["PATH", "PROJECT"]);
}

fn markers() {
    let current = variables(&[("PATH", "/bin"), ("SECRET_KEY", "s"), ("OTHER", "o")]);
    let roots = [Path::new("/a"), Path::new("/b")];
    let built = build_sanitized_env(current.clone(), true, true, "LinuxLandlock", &roots);
    let value = |name: &str| {
        let found = built.get(&OsString::from(name));
        found.map(|value| value.to_str().unwrap())
    };
    assert_eq!(value("PATH"), Some("/bin"));
    assert_eq!(value("OTHER"), None);
    assert_eq!(value("SECRET_KEY"), None);
    assert_eq!(value(VTCODE_SANDBOX_ACTIVE), Some("1"));
    assert_eq!(value(VTCODE_SANDBOX_NETWORK_DISABLED), Some("1"));
    assert_eq!(value(VTCODE_SANDBOX_TYPE), Some("LinuxLandlock"));
    assert_eq!(value(VTCODE_SANDBOX_WRITABLE_ROOTS), Some("/a:/b"));
    let plain = build_sanitized_env(current, false, true, "None", &roots);
    assert!(!plain.contains_key(&OsString::from(VTCODE_SANDBOX_ACTIVE)));
}
