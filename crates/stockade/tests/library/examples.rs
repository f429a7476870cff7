//! The examples do what they say.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Test, dir, door, own_path};

pub(crate) const TESTS: &[Test] = &[
    ("full_job", full_job),
    ("landlock", landlock),
    ("output", output),
    ("run", run),
    ("seccomp", seccomp),
    ("transform", transform),
];

/// Where cargo puts an example; built with the tests, unless only this one was asked for.
fn example(name: &str) -> PathBuf {
    let own = own_path();
    let profile = own.ancestors().nth(2).unwrap();
    let path = profile.join("examples").join(name);
    if !path.exists() {
        let status = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--offline",
                "-p",
                "stockade",
                "--example",
                name,
            ])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(status.success(), "the example {name} does not build");
    }
    path
}

fn start(name: &str, words: &[&str], cwd: &Path) -> (Option<i32>, String) {
    let output = Command::new(example(name))
        .args(words)
        .current_dir(cwd)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

fn run() {
    let (inside, outside) = (dir(), dir());
    let script = format!(
        "echo x > f; echo x > {}/f; exit 3",
        outside.path().display()
    );
    let (code, text) = start("run", &["sh", "-c", &script], inside.path());
    assert_eq!(code, Some(3), "{text}");
    assert!(inside.path().join("f").exists());
    assert!(!outside.path().join("f").exists());
}

fn output() {
    let place = dir();
    let script = "echo hello; echo x > f";
    let (code, text) = start("output", &["sh", "-c", script], place.path());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("6 bytes of output"), "{text}");
    assert!(text.contains("fs-write: fully by"), "{text}");
    assert!(!place.path().join("f").exists());
}

/// The whole job from one crate, with at most six imports.
fn full_job() {
    let source = include_str!("../../examples/full_job.rs");
    let imports = source
        .lines()
        .filter_map(|line| line.strip_prefix("use stockade"));
    let names: usize = imports.map(|line| line.split(',').count()).sum();
    assert!((1..=6).contains(&names), "{names} imports");

    let (place, store) = (dir(), dir());
    let port = door::server(1).port();
    let job = |script: &str| {
        let output = Command::new(example("full_job"))
            .args([&format!("api.test:{port}"), script, "api.test=127.0.0.1"])
            .current_dir(place.path())
            .env("STOCKADE_HOME", store.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let text = job(&format!("({}) > page", door::request("api.test", port)));
    assert!(text.contains("ended with 0"), "{text}");
    assert!(text.contains("changed: page"), "{text}");
    let page = fs::read_to_string(place.path().join("page")).unwrap();
    assert!(page.contains("answered"), "{page}");
    let text = job(&format!("rm page; {}", door::request("other.test", 443)));
    assert!(
        text.contains("refused: ") && text.contains("--allow other.test"),
        "{text}"
    );
    assert!(place.path().join("page").exists(), "{text}");
    let text = job("yes");
    assert!(text.contains("OutputLimit"), "{text}");
}

fn landlock() {
    let (project, outside) = (dir(), dir());
    let secret = outside.path().join("secret");
    fs::write(&secret, "x").unwrap();
    let words = [project.path().to_str().unwrap(), secret.to_str().unwrap()];
    let (code, text) = start("landlock", &words, Path::new("/"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("before: ok"), "{text}");
    assert!(text.contains("after: Permission denied"), "{text}");
    assert!(text.contains("project: ok"), "{text}");
}

fn seccomp() {
    let bare = Command::new("unshare")
        .args(["-U", "true"])
        .status()
        .unwrap();
    assert!(bare.success(), "the control can't make a namespace");
    let (_, text) = start("seccomp", &["unshare", "-U", "true"], Path::new("/"));
    assert!(text.contains("code Some(1)"), "{text}");
    let (_, text) = start("seccomp", &["true"], Path::new("/"));
    assert!(text.contains("code Some(0)"), "{text}");
}

/// Here only the shape; what it gives is executed by the tests of the command line.
fn transform() {
    let place = dir();
    let program = place.path().join("program");
    let script = "#!/bin/sh\ncase $1 in --version) echo stockade 0.0.0;; *) echo \"$@\";; esac\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let words = [program.to_str().unwrap(), "cat", "file"];
    let (code, text) = start("transform", &words, place.path());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("sandbox: LinuxLandlock true"), "{text}");
    let run = format!(
        "run --quiet --policy-env STOCKADE_POLICY -C {} -- cat file",
        place.path().display()
    );
    assert!(text.contains(&run), "{text}");
}
