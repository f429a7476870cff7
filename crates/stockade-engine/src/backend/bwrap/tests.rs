use std::fs;

use stockade_policy::Surroundings;
use stockade_policy::profile::{Clause, Flags, Sources};

use super::*;
use crate::Files;
use crate::plan::Carrier;
use crate::report::Enforcement;

/// A profile for `dir` with these flags and no file.
fn profile(dir: &Path, flags: Flags) -> Profile {
    let around = Surroundings::from_env(dir).unwrap();
    let sources = Sources {
        flags,
        ..Sources::new(around)
    };
    Files::load(&sources).unwrap()
}

fn plan(dir: &Path, flags: Flags, words: &[&str]) -> ExecPlan {
    let spec = Spec {
        argv: words.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), ":/usr/bin:/bin".into())],
        keep_descriptors: vec![4],
        ..Spec::default()
    };
    let bwrap = Bwrap::at("/usr/bin/bwrap");
    bwrap.plan(&profile(dir, flags), &spec).unwrap()
}

fn arguments(plan: &ExecPlan) -> Vec<String> {
    let Carrier::Program(program) = &plan.carrier else {
        panic!("{:?}", plan.carrier);
    };
    let Content::Arguments(list) = &program.inputs[0].content else {
        panic!("{:?}", program.inputs);
    };
    list.iter()
        .map(|word| word.as_os_str().to_string_lossy().into_owned())
        .collect()
}

fn follow(all: &[String], words: &[&str]) -> bool {
    all.windows(words.len()).any(|window| window == words)
}

#[test]
fn everything_but_the_command_goes_through_a_descriptor() {
    let dir = tempfile::tempdir().unwrap();
    let mut flags = Flags::default();
    for number in 0..2000 {
        let name = dir.path().join(format!("{number:0200}"));
        fs::write(&name, "").unwrap();
        flags.deny_write.push(name.into());
    }
    let plan = plan(dir.path(), flags, &["true", "--bind"]);
    let Carrier::Program(program) = &plan.carrier else {
        panic!("{:?}", plan.carrier);
    };
    let argv: Vec<_> = program
        .run
        .command
        .argv
        .iter()
        .map(Text::as_os_str)
        .collect();
    // Descriptor 4 is the command's own.
    assert_eq!(
        argv,
        [
            "/usr/bin/bwrap",
            "--args",
            "3",
            "--",
            "/usr/bin/true",
            "--bind"
        ]
    );
    assert_eq!(program.run.keep_descriptors, [4, 3, 5, 6]);
    let bytes: usize = arguments(&plan).iter().map(String::len).sum();
    assert!(bytes > 800_000, "{bytes}");
    assert!(program.run.trusted && !plan.linux.trusted);
}

#[test]
fn the_view_is_the_native_one() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().to_str().unwrap();
    fs::write(dir.path().join("secret"), "").unwrap();
    fs::create_dir(dir.path().join("closed")).unwrap();
    let flags = Flags {
        deny_read: vec![
            dir.path().join("secret").into(),
            dir.path().join("closed").into(),
        ],
        ..Flags::default()
    };
    let words = arguments(&plan(dir.path(), flags, &["true"]));
    assert!(follow(&words, &["--ro-bind", "/", "/"]));
    assert!(follow(&words, &["--bind", here, here]));
    let secret = format!("{here}/secret");
    assert!(follow(&words, &["--ro-bind", "/dev/null", &secret]));
    let closed = format!("{here}/closed");
    assert!(follow(
        &words,
        &[
            "--perms",
            "0000",
            "--tmpfs",
            &closed,
            "--remount-ro",
            &closed
        ]
    ));
    assert!(follow(&words, &["--unshare-net"]));
    assert!(follow(
        &words,
        &["--setenv", "STOCKADE_SANDBOX_TYPE", "bwrap"]
    ));
    let at = |word: &str| words.iter().position(|other| other == word).unwrap();
    assert!(at(here) < at(&secret), "parents come before children");
}

#[test]
fn a_pattern_is_not_enforced_and_said_so() {
    let dir = tempfile::tempdir().unwrap();
    let flags = Flags {
        deny_read: vec!["**/*.env".into()],
        ..Flags::default()
    };
    let with = plan(dir.path(), flags, &["true"]);
    let without = plan(dir.path(), Flags::default(), &["true"]);
    let read = |plan: &ExecPlan| {
        let mut reports = plan.enforcement.iter();
        reports
            .find(|report| report.clause == Clause::FsRead)
            .unwrap()
            .enforcement
    };
    assert_eq!(read(&with), Enforcement::None);
    assert_eq!(read(&without), Enforcement::Full);
}

#[test]
fn its_status_is_read_object_by_object() {
    let said = "{ \"child-pid\": 77, \"cgroup-namespace\": 5 }\n{ \"exit-code\": 3 }\n";
    assert_eq!(Status.leader(said), Some(77));
    assert!(Status.is_built(said));
    assert!(!Status.is_built("{ \"child-pid\": 77 }\n{ \"exi"));
    assert_eq!(Status.leader("bwrap: no"), None);
}

/// What stands on the search path says nothing about the one that was named.
#[test]
fn the_program_that_is_named_is_the_one_that_is_tried() {
    let helper = Path::new("/nonexistent");
    let broken = Path::new("/bin/false");
    for support in [
        Bwrap::at(broken).probe(helper),
        crate::backend::Nsjail::at(broken).probe(helper),
        crate::backend::Gvisor::at(broken).probe(helper),
        Bwrap::at("/nonexistent/bwrap").probe(helper),
    ] {
        assert!(!support.is_usable(), "{support:?}");
    }
    // Whatever it is called: this one confines nothing, but it does as it is told.
    assert!(Bwrap::at("/bin/true").probe(helper).is_usable());
}
