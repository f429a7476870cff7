//! Hints about what a backend can't do: what they say is left out or added, and the refusal is gone.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::context::{Context, Ran, has};
use crate::hint_list::Hints;

fn run(context: &Context, flags: &[&str]) -> Ran {
    context.stockade([&["run", "-q"], flags, &["--", "true"]].concat())
}

#[test]
fn the_tier_without_namespaces() {
    let hints = Hints::of("backend_hints::the_tier_without_namespaces");
    let context = Context::new();
    let refused = run(&context, &["--backend", "landlock", "--allow", "a.test"]);
    let hint = hints.in_refusal(&refused);
    for mode in ["off", "open"] {
        assert!(hint.contains(&format!("--net {mode}")), "{hint}");
        run(&context, &["--backend", "landlock", "--net", mode]).ends_with(0);
    }
    let exposed = ["--backend", "landlock", "--expose", "8080"];
    let hint = hints.in_refusal(&run(&context, &exposed));
    assert!(hint.starts_with("leave the port out"), "{hint}");
    run(&context, &exposed[..2]).ends_with(0);
    assert!(hint.ends_with("--net open"), "{hint}");
    run(&context, &[&exposed[..], &["--net", "open"]].concat()).ends_with(0);
}

#[test]
fn a_caller_that_vouches() {
    let hints = Hints::of("backend_hints::a_caller_that_vouches");
    let context = Context::new();
    let listed = ["--allow", "a.test"];
    let external = ["--backend", "external", "--best-effort"];
    let hint = hints.in_refusal(&run(&context, &[&listed[..], &external].concat()));
    assert!(hint.starts_with("leave out the backend"), "{hint}");
    run(&context, &listed).ends_with(0);
    for mode in ["off", "open"] {
        assert!(hint.contains(&format!("--net {mode}")), "{hint}");
        run(&context, &[&external[..], &["--net", mode]].concat()).ends_with(0);
    }
}

#[test]
fn containers() {
    let hints = Hints::of("backend_hints::containers");
    let context = Context::new();
    // No engine answers: what is left out shows by the next reason.
    let beyond = |flags: &[&str]| {
        let refused = run(&context, flags);
        assert!(
            refused.stderr.contains("no container engine"),
            "{refused:#?}"
        );
    };
    let docker = ["--backend", "docker"];
    let expose = [&docker[..], &["--expose", "8080"]].concat();
    let hint = hints.in_refusal(&run(&context, &expose));
    assert!(hint.starts_with("leave out --expose"), "{hint}");
    beyond(&docker);
    run(&context, &expose[2..]).ends_with(0);
    let handed = [&docker[..], &["--pass-fd", "0"]].concat();
    let hint = hints.in_refusal(&run(&context, &handed));
    assert!(hint.starts_with("leave out --pass-fd"), "{hint}");
    run(&context, &handed[2..]).ends_with(0);
    let image = run(&context, &["--backend", "native", "--image", "x"]).ends_with(2);
    let hint = hints.in_refusal(&image);
    for words in hint.split(", or ") {
        let flags: Vec<&str> = words.split(' ').chain(["--image", "x"]).collect();
        beyond(&flags);
    }
}

#[test]
fn gvisor() {
    let test = "backend_hints::gvisor";
    let tried = ["runsc", "--network=none", "--ignore-cgroups", "do", "true"];
    if !has(test, "backend:gvisor", &tried) {
        return;
    }
    let hints = Hints::of(test);
    let context = Context::new();
    let device = ["--backend", "gvisor", "--device", "/dev/null"];
    let hint = hints.in_refusal(&run(&context, &device));
    assert!(hint.starts_with("leave the grant out"), "{hint}");
    run(&context, &device[..2]).ends_with(0);
    run(&context, &device[2..]).ends_with(0);
    let odd = context.project().join(OsStr::from_bytes(b"a\xffb"));
    std::fs::create_dir(&odd).unwrap();
    let granted = |backend: &str| {
        let words = ["run", "-q", "--backend", backend, "--write"].map(OsString::from);
        let rest = [odd.clone().into_os_string(), "--".into(), "true".into()];
        context.stockade(words.into_iter().chain(rest))
    };
    let hint = hints.in_refusal(&granted("gvisor"));
    assert!(hint.ends_with("name another backend"), "{hint}");
    granted("native").ends_with(0);
    let plain = context.project().join("ab");
    std::fs::rename(&odd, &plain).unwrap();
    let renamed = ["--backend", "gvisor", "--write", plain.to_str().unwrap()];
    run(&context, &renamed).ends_with(0);
}

/// Profiles are written on every system; only macOS has what reads them.
#[test]
fn seatbelt() {
    let hints = Hints::of("backend_hints::seatbelt");
    let context = Context::new();
    let seatbelt = ["--backend", "seatbelt"];
    let with = |more: &[&str]| run(&context, &[&seatbelt[..], more].concat());
    let hint = hints.in_refusal(&with(&[]));
    assert_eq!(hint.split('`').nth(1), Some("--dry-run"));
    with(&["--dry-run"]).ends_with(0);
    let overlay = hints.in_refusal(&with(&["--overlay"]));
    assert_eq!(overlay, "leave it out");
    let listed = hints.in_refusal(&with(&["--dry-run", "--allow", "a.test"]));
    for mode in listed.split(", or ") {
        let words: Vec<&str> = mode.split(' ').chain(["--dry-run"]).collect();
        with(&words).ends_with(0);
    }
    let odd = OsStr::from_bytes(b"a\xffb");
    let words = ["run", "--dry-run", "--backend", "seatbelt", "--write"].map(OsString::from);
    let rest = [odd.to_owned(), "--".into(), "true".into()];
    hints.in_refusal(&context.stockade(words.into_iter().chain(rest)));
    with(&["--dry-run", "--write", "ab"]).ends_with(0);
}
