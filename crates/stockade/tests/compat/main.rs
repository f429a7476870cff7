//! Every symbol of `docs/compat-apis.md`, used as its users do: from a program that is its own
//! helper. The rows of that document name the tests here.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

mod errata;
mod hawk_config;
mod hawk_confine;
mod hawk_container;
mod hawk_inspect;
mod hawk_manager;
mod hawk_mode;
mod hawk_proxy;
mod hawk_seatbelt;
mod hawk_select;
mod hawk_verifier;
mod paths;
mod table;
mod vtcode_debug;
mod vtcode_env;
mod vtcode_policy;
mod vtcode_types;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};
use stockade::compat::Door;

/// A test's name and what it does; it fails by panicking.
type Test = (&'static str, fn());

/// What can't be taken back happens in this program, started again with a part's name.
const PART: &str = "--part";

fn main() -> ExitCode {
    stockade::init();
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == PART) {
        let name = words.next().unwrap_or_default();
        let parts = [
            hawk_confine::PARTS,
            hawk_container::PARTS,
            vtcode_debug::PARTS,
        ]
        .concat();
        let (_, part) = parts.iter().find(|(known, _)| name == *known).unwrap();
        part();
        return ExitCode::SUCCESS;
    }
    let groups: &[(&str, &[Test])] = &[
        ("errata", errata::TESTS),
        ("hawk_config", hawk_config::TESTS),
        ("hawk_confine", hawk_confine::TESTS),
        ("hawk_container", hawk_container::TESTS),
        ("hawk_inspect", hawk_inspect::TESTS),
        ("hawk_manager", hawk_manager::TESTS),
        ("hawk_mode", hawk_mode::TESTS),
        ("hawk_proxy", hawk_proxy::TESTS),
        ("hawk_seatbelt", hawk_seatbelt::TESTS),
        ("hawk_select", hawk_select::TESTS),
        ("hawk_verifier", hawk_verifier::TESTS),
        ("table", table::TESTS),
        ("vtcode_debug", vtcode_debug::TESTS),
        ("vtcode_env", vtcode_env::TESTS),
        ("vtcode_policy", vtcode_policy::TESTS),
        ("vtcode_types", vtcode_types::TESTS),
    ];
    let trial = |group: &str, (name, test): Test| {
        Trial::test(format!("{group}::{name}"), move || {
            test();
            Ok(())
        })
    };
    let trials = groups
        .iter()
        .flat_map(|(group, tests)| tests.iter().map(|test| trial(group, *test)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// Runs a part in a process of its own; what it printed.
fn run_part(name: &str) -> String {
    run_part_in(Path::new("/"), name)
}

/// The same in a directory.
fn run_part_in(dir: &Path, name: &str) -> String {
    let output = Command::new(own_path())
        .args([PART, name])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{name}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn print(line: &str) {
    use std::io::Write;
    let line = format!("{line}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

fn own_path() -> PathBuf {
    std::env::current_exe().unwrap()
}

fn door() -> Door {
    Door::new(own_path())
}

/// A directory; not below /tmp, which every sandbox has for itself.
fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}
