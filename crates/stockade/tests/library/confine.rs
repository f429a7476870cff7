//! Landlock and a filter on the current process, in children.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use stockade::compat::vtcode::{
    LandlockError, LandlockSandbox, apply_seccomp, default_seccomp_profile,
};

use crate::child::{self, Part, print, say};
use crate::{Test, dir};

pub(crate) const TESTS: &[Test] = &[
    ("a_file_that_is_missing_is_named", missing_path),
    ("all_threads_are_filtered", all_threads_are_filtered),
    ("landlock_holds_and_lets_work_pass", landlock_holds),
    ("other_threads_are_a_clear_error", other_threads),
    ("the_projects_preset_lets_a_shell_work", projects_preset),
];

pub(crate) const CHILDREN: &[Part] = &[
    ("bare", |dir| accesses(dir)),
    ("filtered", filtered),
    ("landlocked", landlocked),
    ("missing", missing),
    ("preset", preset),
    ("threads", threads),
    ("unfiltered", |_| say("namespace", make_namespace())),
];

fn fixture() -> tempfile::TempDir {
    let dir = dir();
    for name in ["ro", "rw", "rw/a", "rw/b", "out", "files"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    for name in [
        "ro/f",
        "rw/a/move",
        "out/f",
        "files/ro",
        "files/rw",
        "files/no",
    ] {
        fs::write(dir.path().join(name), "content").unwrap();
    }
    dir
}

/// What is tried with and without Landlock.
fn accesses(dir: &Path) {
    let at = |name: &str| dir.join(name);
    let append = |name: &str| File::options().append(true).open(at(name));
    say("read-ro", fs::read(at("ro/f")));
    say("write-rw", fs::write(at("rw/new"), "x"));
    say("move", fs::rename(at("rw/a/move"), at("rw/b/moved")));
    let pipe = mknodat(CWD, at("rw/pipe"), FileType::Fifo, Mode::RWXU, 0);
    say("pipe", pipe.map_err(io::Error::from));
    say("socket", UnixListener::bind(at("rw/socket")));
    say("link", symlink("new", at("rw/link")));
    say("hard-link", fs::hard_link(at("rw/new"), at("rw/a/hard")));
    say("make-dir", fs::create_dir_all(at("rw/c/d")));
    say("remove", fs::remove_dir_all(at("rw/c")));
    say("null", null());
    say("read-file", fs::read(at("files/ro")));
    say("write-file", append("files/rw"));

    say("write-ro", append("ro/f"));
    say("make-ro", fs::write(at("ro/new"), "x"));
    say("write-read-only-file", append("files/ro"));
    say("read-sibling", fs::read(at("files/no")));
    say("read-out", fs::read(at("out/f")));
    say("write-out", fs::write(at("out/new"), "x"));
    say("move-out", fs::rename(at("rw/new"), at("out/moved")));
    say(
        "truncate-out",
        File::options().write(true).truncate(true).open(at("out/f")),
    );
    say("list-out", fs::read_dir(at("out")));
    say("child-reads-out", run_cat(&at("out/moved")));
}

fn null() -> io::Result<()> {
    File::options()
        .write(true)
        .open("/dev/null")?
        .write_all(b"x")
}

fn run_cat(file: &Path) -> io::Result<()> {
    let output = Command::new("/bin/cat").arg(file).output()?;
    match output.status.code() {
        Some(0) => Ok(()),
        _ => Err(io::Error::from_raw_os_error(13)),
    }
}

fn landlocked(dir: &Path) {
    let mut sandbox = LandlockSandbox::new();
    for system in ["/usr", "/bin", "/lib", "/lib64", "/etc"] {
        sandbox.add_read_only_path_if_exists(system);
    }
    sandbox
        .add_read_only_path(dir.join("ro"))
        .add_read_write_path(dir.join("rw"))
        .add_read_only_path(dir.join("files/ro"))
        .add_read_write_path(dir.join("files/rw"));
    let applied = sandbox.apply().unwrap();
    assert_eq!(applied.gaps, []);
    accesses(dir);
}

fn landlock_holds() {
    let control = fixture();
    let answers = child::run("bare", control.path());
    for line in answers.lines() {
        assert!(line.ends_with("=ok"), "the control can't: {line}");
    }
    let fixture = fixture();
    let confined = child::run("landlocked", fixture.path());
    assert_eq!(confined.lines().count(), answers.lines().count());
    let mut forbidden = false;
    for line in confined.lines() {
        // What may be done comes first.
        forbidden |= line.starts_with("write-ro=");
        // EACCES; moves that can't be done at all are EXDEV (landlock(7)).
        let refused = line.ends_with("=errno-13") || line.ends_with("=errno-18");
        assert_eq!(refused, forbidden, "{confined}");
    }
    let out = fixture.path().join("out");
    assert_eq!(fs::read(out.join("f")).unwrap(), b"content");
    assert_eq!(fs::read_dir(out).unwrap().count(), 1);
}

fn threads(dir: &Path) {
    let (stop, stopped) = mpsc::channel::<()>();
    let other = std::thread::spawn(move || stopped.recv().is_ok());
    let error = LandlockSandbox::for_project(dir).apply().unwrap_err();
    assert!(
        matches!(error, LandlockError::Threads { count: 2 }),
        "{error:?}"
    );
    print(&error.to_string());
    // Nothing has changed for this thread either.
    say("read", fs::read_dir(dir.parent().unwrap()));
    drop(stop);
    other.join().unwrap();
}

fn other_threads() {
    let answer = child::run("threads", dir().path());
    assert!(answer.contains("2 threads"), "{answer}");
    assert!(answer.contains("read=ok"), "{answer}");
}

fn missing(dir: &Path) {
    let gone = dir.join("gone");
    let error = LandlockSandbox::new()
        .add_read_only_path(&gone)
        .apply()
        .unwrap_err();
    assert!(matches!(&error, LandlockError::Path { path, .. } if *path == gone));
    print(&error.to_string());
    say("read", fs::read_dir(dir));
    let mut sandbox = LandlockSandbox::new();
    sandbox.add_read_write_path_if_exists(&gone);
    assert_eq!(sandbox.apply().unwrap().skipped, [gone]);
    say("read-confined", fs::read_dir(dir));
}

fn missing_path() {
    let answer = child::run("missing", dir().path());
    assert!(answer.contains("gone` can't be granted"), "{answer}");
    assert!(answer.contains("read=ok"), "{answer}");
    assert!(answer.contains("read-confined=errno-13"), "{answer}");
}

fn preset(dir: &Path) {
    LandlockSandbox::for_project(dir.join("rw"))
        .apply()
        .unwrap();
    let script = "echo x > f && echo y > /dev/null && mkfifo p && mv a/move b/ && ls / > list; \
                  cat ../out/f";
    let output = Command::new("/bin/sh")
        .args(["-c", script])
        .current_dir(dir.join("rw"))
        .output()
        .unwrap();
    print(&String::from_utf8_lossy(&output.stdout));
    print(&String::from_utf8_lossy(&output.stderr));
}

fn projects_preset() {
    let fixture = fixture();
    let answer = child::run("preset", fixture.path());
    assert!(!answer.contains("content"), "{answer}");
    assert!(answer.contains("out/f: Permission denied"), "{answer}");
    for made in ["rw/f", "rw/p", "rw/b/move"] {
        assert!(fixture.path().join(made).exists(), "{made}: {answer}");
    }
}

/// Something that a filter refuses and every user can do otherwise.
fn make_namespace() -> io::Result<()> {
    let status = Command::new("unshare").args(["-U", "true"]).status()?;
    match status.code() {
        Some(0) => Ok(()),
        _ => Err(io::Error::from_raw_os_error(1)),
    }
}

fn filtered(_: &Path) {
    let (go, may_go) = mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        may_go.recv().unwrap();
        say("other-thread", make_namespace());
    });
    apply_seccomp(&default_seccomp_profile().unwrap()).unwrap();
    say("this-thread", make_namespace());
    go.send(()).unwrap();
    other.join().unwrap();
    let ordinary = Command::new("true").status();
    say("ordinary", ordinary);
}

fn all_threads_are_filtered() {
    let place = dir();
    assert_eq!(child::run("unfiltered", place.path()), "namespace=ok\n");
    let answer = child::run("filtered", place.path());
    assert_eq!(
        answer,
        "this-thread=errno-1\nother-thread=errno-1\nordinary=ok\n"
    );
}
