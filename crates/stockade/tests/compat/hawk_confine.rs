//! Hawk's restrictions of the calling process.

use std::fs;
use std::io;
use std::process::Command;

use stockade::compat::hawk::{LandlockSandbox, apply_seccomp, default_seccomp_profile};

use crate::{Test, dir, print, run_part, run_part_in};

pub(crate) const TESTS: &[Test] = &[
    ("filter_bytes", filter_bytes),
    ("landlock", landlock),
    ("seccomp", seccomp),
];

pub(crate) const PARTS: &[Test] = &[
    ("landlock", landlock_part),
    ("seccomp", seccomp_part),
    ("unfiltered", make_namespace),
];

/// As the kernel reads it: whole instructions, the architecture is loaded first.
fn filter_bytes() {
    let bytes = default_seccomp_profile().unwrap();
    assert!(!bytes.is_empty() && bytes.len().is_multiple_of(8));
    assert!(bytes.len() / 8 <= 4096, "the kernel takes no more");
    // BPF_LD | BPF_W | BPF_ABS of `seccomp_data.arch`, at offset 4 (seccomp(2)).
    assert_eq!(bytes[..8], [0x20, 0, 0, 0, 4, 0, 0, 0]);
}

fn make_namespace() {
    let made = Command::new("unshare").args(["-U", "true"]).status();
    print(if made.unwrap().success() {
        "made"
    } else {
        "refused"
    });
}

fn seccomp_part() {
    apply_seccomp().unwrap();
    make_namespace();
}

fn seccomp() {
    assert_eq!(run_part("unfiltered"), "made\n");
    assert_eq!(run_part("seccomp"), "refused\n");
}

fn landlock() {
    let place = dir();
    let answers = run_part_in(place.path(), "landlock");
    let expected = [
        "ro-read ok",
        "ro-write refused",
        "rw-write ok",
        "project-write ok",
        "out-read refused",
    ];
    assert_eq!(answers.lines().collect::<Vec<_>>(), expected);
}

fn landlock_part() {
    // The test's directory: Landlock keeps this process from removing anything in it.
    let base = std::env::current_dir().unwrap();
    let [project, read, write, out] = ["project", "ro", "rw", "out"].map(|name| base.join(name));
    for place in [&project, &read, &write, &out] {
        fs::create_dir(place).unwrap();
        fs::write(place.join("f"), "content").unwrap();
        assert!(fs::read(place.join("f")).is_ok(), "the control");
    }
    let mut sandbox = LandlockSandbox::for_project(&project);
    sandbox
        .add_read_only_path(&read)
        .add_read_write_path(&write);
    sandbox.apply().unwrap();
    let say = |what: &str, done: io::Result<()>| {
        let word = if done.is_ok() { "ok" } else { "refused" };
        print(&format!("{what} {word}"));
    };
    say("ro-read", fs::read(read.join("f")).map(drop));
    say("ro-write", fs::write(read.join("g"), "x"));
    say("rw-write", fs::write(write.join("g"), "x"));
    say("project-write", fs::write(project.join("g"), "x"));
    say("out-read", fs::read(out.join("f")).map(drop));
}
