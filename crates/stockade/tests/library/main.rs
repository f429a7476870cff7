//! The library, used as its users do: from a program that is its own helper.
//!
//! What can't be taken back (Landlock, filters, death signals) happens in children: this program,
//! started again with `--child NAME`.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

#[cfg(feature = "tokio")]
mod asynchronous;
mod builder;
mod child;
mod confine;
mod debug;
mod door;
mod examples;
mod front;
mod need;
mod parent;
mod session;
mod session_refusals;

use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::need::Need;

/// A test's name and what it does; it fails by panicking.
type Test = (&'static str, fn());

fn main() -> ExitCode {
    stockade::init();
    if let Some(code) = child::dispatch() {
        return code;
    }
    let groups: &[(&str, &[Need], &[Test])] = &[
        #[cfg(feature = "tokio")]
        ("asynchronous", &[Need::Userns], asynchronous::TESTS),
        ("builder", &[Need::Userns], builder::TESTS),
        ("confine", &[Need::Landlock, Need::Userns], confine::TESTS),
        ("debug", &[Need::Landlock, Need::Userns], debug::TESTS),
        ("door", &[Need::Landlock, Need::Userns], door::TESTS),
        ("examples", &[Need::Landlock, Need::Userns], examples::TESTS),
        ("front", &[Need::Landlock, Need::Userns], front::TESTS),
        ("parent", &[], parent::TESTS),
        ("session", &[Need::Userns], session::TESTS),
    ];
    let machine = need::Machine::look();
    let mut trials = Vec::new();
    for (group, needs, tests) in groups {
        let missing = machine.missing(needs);
        for (name, test) in *tests {
            let name = format!("{group}::{name}");
            trials.push(match &missing {
                None => Trial::test(name, move || {
                    test();
                    Ok(())
                }),
                Some(missing) => missing.instead_of(name),
            });
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// This program.
fn own_path() -> PathBuf {
    std::env::current_exe().unwrap()
}

/// A directory; not below /tmp, which every sandbox has for itself.
fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}
