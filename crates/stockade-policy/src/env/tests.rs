use super::*;
use proptest::prelude::*;

fn env(pairs: &[(&str, &str)]) -> Env {
    pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect()
}

fn reason(result: &SanitizedEnv, name: &str) -> Option<EnvReason> {
    let note = result.removed.iter().find(|note| note.name == name);
    note.map(|note| note.reason)
}

#[test]
fn lists_hold_what_they_promise() {
    assert_eq!(FILTERED_ENV_VARS.len(), 56);
    for name in FILTERED_ENV_VARS {
        assert!(should_filter_env_var(name), "{name}");
    }
    for name in PRESERVED_ENV_VARS {
        assert!(!should_filter_env_var(name), "{name}");
    }
    let distinct: BTreeSet<_> = PRESERVED_ENV_VARS.iter().chain(FILTERED_ENV_VARS).collect();
    assert_eq!(
        distinct.len(),
        PRESERVED_ENV_VARS.len() + FILTERED_ENV_VARS.len()
    );
}

#[test]
fn conformance_vectors() {
    for name in [
        "openai_api_key",
        "custom_access_token",
        "AWS_PROFILE",
        "LD_AUDIT",
    ] {
        assert!(should_filter_env_var(name), "{name}");
    }
    for name in ["PATH", "HOME", "TERM", "SAFE_PROJECT_NAME"] {
        assert!(!should_filter_env_var(name), "{name}");
    }
}

#[test]
fn item_37_what_a_blocklist_leaks() {
    for name in [
        "OPENAI_APIKEY",
        "SENTRY_DSN",
        "MONGODB_URI",
        "GITLAB_PAT",
        "DBUS_SESSION_BUS_ADDRESS",
        "BASH_ENV",
        "ENV",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "PERL5OPT",
        "RUBYOPT",
        "GIT_SSH_COMMAND",
        "JAVA_TOOL_OPTIONS",
        "RUSTC_WRAPPER",
        "PROMPT_COMMAND",
        "GIT_CONFIG_COUNT",
        "BASH_FUNC_ls%%",
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
    ] {
        assert!(should_filter_env_var(name), "{name}");
    }
    assert!(!PRESERVED_ENV_VARS.contains(&"PYTHONPATH"));
    assert!(!PRESERVED_ENV_VARS.contains(&"NODE_PATH"));
}

#[test]
fn pwd_is_no_password() {
    assert!(!should_filter_env_var("PWD"));
    assert!(!should_filter_env_var("OLDPWD"));
    assert!(should_filter_env_var("MYSQL_PWD"));
}

#[test]
fn only_listed_names_pass_and_the_rest_is_reported() {
    let current = env(&[
        ("PATH", "/bin"),
        ("OPENAI_API_KEY", "sk"),
        ("LD_PRELOAD", "x.so"),
        ("SAFE_PROJECT_NAME", "p"),
        ("STOCKADE_SANDBOX_ACTIVE", "1"),
        ("PAGER", "https://u:p@host/"),
    ]);
    let result = EnvRequest::new().build(current);
    assert_eq!(result.env, env(&[("PATH", "/bin")]));
    assert_eq!(
        reason(&result, "OPENAI_API_KEY"),
        Some(EnvReason::SecretName)
    );
    assert_eq!(reason(&result, "LD_PRELOAD"), Some(EnvReason::Hook));
    assert_eq!(
        reason(&result, "SAFE_PROJECT_NAME"),
        Some(EnvReason::NotListed)
    );
    assert_eq!(
        reason(&result, "STOCKADE_SANDBOX_ACTIVE"),
        Some(EnvReason::Marker)
    );
    assert_eq!(reason(&result, "PAGER"), Some(EnvReason::SecretValue));
    assert_eq!(result.forced, []);
}

#[test]
fn kept_secrets_pass_with_a_note_kept_hooks_do_not() {
    let mut request = EnvRequest::new();
    for name in ["GH_TOKEN", "LD_PRELOAD", "HTTP_PROXY", "FOO"] {
        request.keep(name).unwrap();
    }
    let current = env(&[
        ("GH_TOKEN", "t"),
        ("LD_PRELOAD", "x.so"),
        ("HTTP_PROXY", "http://u:p@proxy:3128"),
        ("FOO", "bar"),
    ]);
    let result = request.build(current.clone());
    let mut expected = current;
    expected.remove(OsStr::new("LD_PRELOAD"));
    assert_eq!(result.env, expected);
    assert_eq!(reason(&result, "LD_PRELOAD"), Some(EnvReason::Hook));
    let forced: Vec<_> = result.forced.iter().map(|note| note.name.clone()).collect();
    assert_eq!(forced, ["GH_TOKEN", "HTTP_PROXY"]);
}

#[test]
fn what_is_set_passes_and_hooks_are_noted() {
    let mut request = EnvRequest::new();
    request.set("LD_PRELOAD", "mine.so").unwrap();
    request.set("PATH", "/opt/bin").unwrap();
    request.set("STOCKADE_SANDBOX_ACTIVE", "0").unwrap();
    let result = request
        .with_markers("LinuxLandlock", true, &[])
        .build(env(&[("PATH", "/bin"), ("LD_PRELOAD", "theirs.so")]));
    assert_eq!(
        result.env,
        env(&[
            ("LD_PRELOAD", "mine.so"),
            ("PATH", "/opt/bin"),
            ("STOCKADE_SANDBOX_ACTIVE", "1"),
            ("STOCKADE_SANDBOX_NETWORK_DISABLED", "1"),
            ("STOCKADE_SANDBOX_TYPE", "LinuxLandlock"),
        ])
    );
    assert_eq!(result.removed, []);
    assert!(result.forced.contains(&EnvNote {
        name: "LD_PRELOAD".into(),
        reason: EnvReason::Hook
    }));
}

#[test]
fn impossible_names_and_values_are_refused() {
    let mut request = EnvRequest::new();
    for name in ["", "a=b", "a\0b"] {
        assert_eq!(request.keep(name), Err(EnvError::Name(name.into())));
        assert_eq!(request.set(name, ""), Err(EnvError::Name(name.into())));
    }
    assert_eq!(request.set("A", "b\0c"), Err(EnvError::Value("A".into())));
}

#[cfg(unix)]
#[test]
fn roots_are_joined_and_ambiguous_ones_left_out() {
    let roots = [Path::new("/a"), Path::new("/b:c"), Path::new("/d")];
    let built = build_sanitized_env(Env::new(), true, false, "T", &roots);
    assert_eq!(
        built,
        env(&[
            ("STOCKADE_SANDBOX_ACTIVE", "1"),
            ("STOCKADE_SANDBOX_TYPE", "T"),
            ("STOCKADE_SANDBOX_WRITABLE_ROOTS", "/a:/d"),
        ])
    );
    assert_eq!(
        build_sanitized_env(Env::new(), false, true, "T", &roots),
        Env::new()
    );
}

#[test]
fn passwords_in_urls() {
    for value in [
        "postgres://u:p@db/x",
        "http://:p@proxy:1",
        "a=1 b=amqp://x:y@z",
        "x://a@b, y://c:d@e",
        "redis://u:p@ss@host",
    ] {
        assert!(has_password_url(value.as_bytes()), "{value}");
    }
    for value in [
        "http://proxy:3128",
        "ssh://git@host/x:y@z",
        "u:p@host",
        "://",
        "a://u:@b",
        "",
    ] {
        assert!(!has_password_url(value.as_bytes()), "{value}");
    }
}

#[cfg(unix)]
#[test]
fn values_need_not_be_unicode() {
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(vec![b'/', 0xff]);
    let current = [
        (OsString::from("HOME"), odd.clone()),
        (odd.clone(), odd.clone()),
    ];
    let result = EnvRequest::new().build(current);
    assert_eq!(result.env, Env::from([("HOME".into(), odd.clone())]));
    assert_eq!(result.removed[0].name, odd);
}

proptest! {
    #[test]
    fn nothing_denied_ever_passes(names in proptest::collection::vec("[A-Za-z_]{0,12}|LD_[A-Z]{1,4}|[A-Z]{1,3}_TOKEN", 0..20)) {
        let current: Env = names.iter().map(|name| (name.into(), "v".into())).collect();
        let mut request = EnvRequest::new();
        for name in names.iter().filter(|name| !name.is_empty()).step_by(2) {
            request.keep(name).unwrap();
        }
        let result = request.build(current.clone());
        for name in result.env.keys() {
            let upper = upper(name);
            prop_assert!(!is_hook(&upper));
            prop_assert!(request.keep.contains(name) || is_preserved(name));
        }
        prop_assert_eq!(result.env.len() + result.removed.len(), current.len());
        for name in filter_sensitive_env(current).keys() {
            prop_assert!(!should_filter_env_var(name));
        }
    }
}
