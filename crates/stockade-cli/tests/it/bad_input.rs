//! Input that nobody means: a clear answer, never a panic, never a hang.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use crate::context::{Context, Ran};

/// Names that file systems allow and people don't expect.
fn odd_names() -> Vec<OsString> {
    let bytes = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    vec![
        bytes(b"not\xffutf8"),
        bytes(b"new\nline"),
        bytes(b"quote\"back\\slash"),
        bytes(b" "),
        bytes(b"-"),
        bytes(b"[unclosed"),
        bytes(b"{a,b"),
        bytes(b"**"),
        bytes(b"\xe2\x80\xaertl"),
        bytes(&[b'x'; 300]),
        bytes(&b"/long".repeat(800)),
        bytes(&b"../".repeat(1300)),
    ]
}

#[track_caller]
fn is_civil(ran: &Ran, what: &dyn std::fmt::Debug) {
    assert!([0, 1, 2, 125].contains(&ran.code), "{what:?}: {ran:#?}");
    assert!(!ran.stderr.contains("panicked"), "{what:?}: {ran:#?}");
    assert!(
        ran.code == 0 || !ran.stderr.is_empty(),
        "{what:?}: {ran:#?}"
    );
}

#[test]
fn odd_paths_are_explained_or_refused() {
    let context = Context::new();
    for name in odd_names() {
        let mut path = OsString::from("./");
        path.push(&name);
        for args in [
            vec!["explain".into()],
            vec!["explain".into(), "--json".into()],
        ] {
            let args: Vec<OsString> = args;
            let ran = context.stockade(args.iter().chain([&path]));
            is_civil(&ran, &name);
            if args.len() == 2 && ran.code == 0 {
                ran.json();
            }
        }
        for flag in [
            "-w",
            "-r",
            "--deny",
            "--deny-read",
            "--deny-write",
            "--unix",
            "--device",
        ] {
            let args = ["policy", "show", flag].map(OsString::from);
            let ran = context.stockade(args.iter().chain([&name]));
            // A lone hyphen may be read as a flag; all else is a path or a glob.
            is_civil(&ran, &(flag, &name));
        }
        let args = ["policy", "check"].map(OsString::from);
        let ran = context.stockade(args.iter().chain([&path]));
        assert_eq!(ran.code, 1, "{name:?}: {ran:#?}");
    }
}

#[test]
fn odd_words_in_flags_are_refused() {
    let context = Context::new();
    let odd = OsStr::from_bytes(b"\xff\xfe=\xff");
    for flag in [
        "--allow",
        "--block",
        "--resolve",
        "--limit",
        "--timeout",
        "--level",
        "--backend",
        "--require",
        "--seccomp",
        "--net",
        "--base",
        "--host-port",
        "--expose",
        "--pass-fd",
    ] {
        let args = [
            OsStr::new("run"),
            flag.as_ref(),
            odd,
            "--".as_ref(),
            "true".as_ref(),
        ];
        context.stockade(args).ends_with(2);
    }
    // Variables are bytes on Unix; these two are fine.
    for flag in ["--env", "--keep-env"] {
        let args = [OsStr::new("policy"), "show".as_ref(), flag.as_ref(), odd];
        is_civil(&context.stockade(args), &flag);
    }
    for text in ["", "=", "=x", "novalue"] {
        let args = ["run", "--danger-full-access", "--env", text, "--", "true"];
        let ran = context.stockade(args).ends_with(2);
        assert!(ran.stderr.contains("--env"), "{ran:#?}");
    }
}

#[test]
fn a_secret_in_a_bad_variable_is_not_repeated() {
    let context = Context::new();
    let args = [
        "run",
        "--danger-full-access",
        "--env",
        "=hunter2",
        "--",
        "true",
    ];
    let ran = context.stockade(args).ends_with(2);
    assert!(!ran.stderr.contains("hunter2"), "{ran:#?}");
}

#[test]
fn what_is_no_profile_is_refused() {
    let context = Context::new();
    let garbage: Vec<u8> = (0..=255).cycle().take(5000).collect();
    std::fs::write(context.project().join("garbage"), garbage).unwrap();
    std::fs::write(context.project().join("nul"), b"version = 1\0").unwrap();
    std::fs::write(context.project().join("deep"), "[".repeat(200_000)).unwrap();
    std::fs::write(
        context.project().join("deep.json"),
        "{\"a\":".repeat(200_000),
    )
    .unwrap();
    for file in [
        "garbage",
        "nul",
        "deep",
        "deep.json",
        ".",
        "/dev/null",
        "/dev/zero",
        "/proc/self/mem",
    ] {
        let ran = context.stockade(["policy", "check", file]).ends_with(1);
        assert!(!ran.stderr.is_empty(), "{file}");
        context
            .stockade(["run", "--policy", file, "--", "true"])
            .ends_with(125);
    }
}

/// A project is written by others: its file must not make Stockade wait, or read out other files.
#[test]
fn a_projects_file_must_be_an_ordinary_one() {
    let context = Context::new();
    let file = context.project().join("stockade.toml");
    let secret = context.home().join("secret");
    std::fs::write(&secret, "password hunter2\n").unwrap();
    symlink(&secret, &file).unwrap();
    let ran = context.stockade(["run", "--", "true"]).ends_with(125);
    assert!(!ran.stderr.contains("hunter2"), "{ran:#?}");
    assert!(ran.stderr.contains("ordinary file"), "{ran:#?}");

    std::fs::remove_file(&file).unwrap();
    assert_eq!(context.other(&["mkfifo", "stockade.toml"]).code, 0);
    let ran = context.stockade(["run", "--", "true"]).ends_with(125);
    assert!(ran.stderr.contains("ordinary file"), "{ran:#?}");
}

#[test]
fn odd_surroundings_are_survived() {
    let mut context = Context::new();
    for home in ["", "relative", "/nonexistent"] {
        context.set("HOME", home);
        is_civil(&context.stockade(["policy", "show"]), &home);
        is_civil(&context.stockade(["explain", "~/x"]), &home);
    }
    context.set("HOME", OsStr::from_bytes(b"/\xff"));
    is_civil(&context.stockade(["policy", "show", "--json"]), &"bytes");
    context.set("XDG_CONFIG_HOME", "relative");
    is_civil(&context.stockade(["policy", "show"]), &"XDG");
}
