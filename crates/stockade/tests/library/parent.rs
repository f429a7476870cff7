//! The death signal: a child that ends with its parent.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;

use stockade::compat::vtcode::{setup_parent_death_signal, setup_parent_death_signal_with_check};

use crate::child::{self, Part, print, say};
use crate::{Test, dir};

pub(crate) const TESTS: &[Test] = &[
    ("a_child_ends_with_its_parent", ends_with_its_parent),
    ("a_parent_that_is_gone_is_noticed", gone_is_noticed),
];

pub(crate) const CHILDREN: &[Part] = &[
    ("grandchild-with-signal", |_| {
        setup_parent_death_signal_with_check(std::os::unix::process::parent_id()).unwrap();
        wait_for_end_of_input();
    }),
    ("grandchild-without", |_| wait_for_end_of_input()),
    ("parent-with-signal", |dir| {
        start("grandchild-with-signal", dir);
    }),
    ("parent-without", |dir| start("grandchild-without", dir)),
    ("wrong-parent", |_| {
        say("any", setup_parent_death_signal());
        say(
            "wrong",
            setup_parent_death_signal_with_check(std::process::id()),
        );
    }),
];

/// Says that it is ready, and after the end of its input that it has survived.
fn wait_for_end_of_input() {
    let mut ready = std::io::stderr();
    ready.write_all(b"ready\n").unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    print("survived");
}

/// Starts a child that shares input and output, waits until it is ready, and goes.
fn start(name: &str, dir: &Path) {
    let (ready, signal) = std::io::pipe().unwrap();
    let child = child::command(name, dir)
        .stdin(Stdio::inherit())
        .stderr(signal)
        .spawn();
    let mut line = String::new();
    BufReader::new(ready).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    drop(child);
}

fn survives(name: &str) -> bool {
    let place = dir();
    let mut parent = child::command(name, place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = parent.stdin.take().unwrap();
    let mut output = String::new();
    assert!(parent.wait().unwrap().success());
    // Whoever is alive now hears the end of input.
    drop(input);
    parent
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    output.contains("survived")
}

fn ends_with_its_parent() {
    assert!(survives("parent-without"), "the control does not");
    assert!(!survives("parent-with-signal"));
}

fn gone_is_noticed() {
    // ESRCH
    let answer = child::run("wrong-parent", dir().path());
    assert_eq!(answer, "any=ok\nwrong=errno-3\n");
}
