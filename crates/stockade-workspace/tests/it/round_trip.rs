//! Random trees: snapshot, change, restore, and it is what it was by every attribute.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::fs::{CWD, FileType, Mode};
use stockade_workspace::{CreateOptions, RestoreMode, Silent};

use crate::stage::{Stage, describe};

/// Something done to a tree. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Act {
    Directory(usize, Vec<u8>),
    File(usize, Vec<u8>, Vec<u8>),
    Sparse(usize, Vec<u8>, u32),
    Symlink(usize, Vec<u8>, Vec<u8>),
    HardLink(usize, usize, Vec<u8>),
    Fifo(usize, Vec<u8>),
    Socket(usize, Vec<u8>),
    Remove(usize),
    Rename(usize, usize, Vec<u8>),
    Mode(usize, u32),
    Time(usize, u32, u32),
    Append(usize, Vec<u8>),
    Attribute(usize, u8, Vec<u8>),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-d]{1,2}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 1..4).prop_map(|mut bytes| {
            for byte in &mut bytes {
                if *byte == 0 || *byte == b'/' || *byte == b'.' {
                    *byte = 0xff;
                }
            }
            bytes
        }),
        1 => Just(b".hidden".to_vec()),
    ]
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        1 => Just(Vec::new()),
        6 => vec(any::<u8>(), 1..40),
        1 => (any::<u8>(), 1usize..70_000).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let at = any::<usize>;
    prop_oneof![
        3 => (at(), name()).prop_map(|(at, name)| Act::Directory(at, name)),
        6 => (at(), name(), content()).prop_map(|(at, name, content)| Act::File(at, name, content)),
        1 => (at(), name(), any::<u32>()).prop_map(|(at, name, size)| Act::Sparse(at, name, size % 900_000)),
        1 => (at(), name(), prop_oneof![Just(b"/".to_vec()), Just(b"..".to_vec()), name()])
            .prop_map(|(at, name, target)| Act::Symlink(at, name, target)),
        2 => (at(), at(), name()).prop_map(|(file, at, name)| Act::HardLink(file, at, name)),
        1 => (at(), name()).prop_map(|(at, name)| Act::Fifo(at, name)),
        1 => (at(), name()).prop_map(|(at, name)| Act::Socket(at, name)),
        2 => at().prop_map(Act::Remove),
        2 => (at(), at(), name()).prop_map(|(what, at, name)| Act::Rename(what, at, name)),
        2 => (at(), 0u32..0o10000).prop_map(|(at, mode)| Act::Mode(at, mode)),
        2 => (at(), any::<u32>(), 0u32..1_000_000_000).prop_map(|(at, seconds, nanos)| Act::Time(at, seconds, nanos)),
        2 => (at(), content()).prop_map(|(at, content)| Act::Append(at, content)),
        1 => (at(), any::<u8>(), vec(any::<u8>(), 0..9)).prop_map(|(at, name, value)| Act::Attribute(at, name, value)),
    ]
}

fn everything(top: &Path) -> Vec<PathBuf> {
    let mut found = vec![top.to_owned()];
    let mut at = 0;
    while at < found.len() {
        if fs::symlink_metadata(&found[at]).unwrap().is_dir() {
            let mut entries: Vec<_> = fs::read_dir(&found[at])
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            entries.sort();
            found.extend(entries);
        }
        at += 1;
    }
    found
}

/// Does it as far as the tree allows; what can't be done is no part of the test.
fn perform(top: &Path, act: &Act) {
    let all = everything(top);
    let pick = |number: usize| all[number % all.len()].clone();
    let inside = |number: usize, name: &[u8]| {
        let directories: Vec<_> = all
            .iter()
            .filter(|path| fs::symlink_metadata(path).unwrap().is_dir())
            .collect();
        directories[number % directories.len()].join(OsString::from_vec(name.to_vec()))
    };
    let plain = |path: &Path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    match act {
        Act::Directory(at, name) => drop(fs::create_dir(inside(*at, name))),
        Act::File(at, name, content) => {
            let path = inside(*at, name);
            if plain(&path) || fs::symlink_metadata(&path).is_err() {
                fs::write(path, content).unwrap();
            }
        }
        Act::Sparse(at, name, size) => {
            if let Ok(file) = File::create_new(inside(*at, name)) {
                file.set_len(u64::from(*size) + 10).unwrap();
                file.write_all_at(b"in the middle", u64::from(*size / 2))
                    .unwrap();
            }
        }
        Act::Symlink(at, name, target) => {
            drop(symlink(
                OsString::from_vec(target.clone()),
                inside(*at, name),
            ));
        }
        Act::HardLink(file, at, name) => {
            if !fs::symlink_metadata(pick(*file)).unwrap().is_dir() {
                drop(fs::hard_link(pick(*file), inside(*at, name)));
            }
        }
        Act::Fifo(at, name) => drop(rustix::fs::mknodat(
            CWD,
            inside(*at, name),
            FileType::Fifo,
            Mode::from(0o644),
            0,
        )),
        Act::Socket(at, name) => drop(rustix::fs::mknodat(
            CWD,
            inside(*at, name),
            FileType::Socket,
            Mode::from(0o644),
            0,
        )),
        Act::Remove(at) => {
            let path = pick(*at);
            if path == top {
                return;
            }
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
        Act::Rename(what, at, name) => drop(fs::rename(pick(*what), inside(*at, name))),
        Act::Mode(at, mode) => {
            let path = pick(*at);
            if !fs::symlink_metadata(&path).unwrap().is_symlink() {
                // The owner keeps what is needed to look at it, also if it is not root.
                fs::set_permissions(path, fs::Permissions::from_mode(*mode | 0o700)).unwrap();
            }
        }
        Act::Time(at, seconds, nanos) => {
            let path = pick(*at);
            if plain(&path) {
                let time = SystemTime::UNIX_EPOCH + Duration::new(u64::from(*seconds), *nanos);
                File::open(path).unwrap().set_modified(time).unwrap();
            }
        }
        Act::Append(at, content) => {
            let path = pick(*at);
            if plain(&path) {
                use std::io::Write;
                File::options()
                    .append(true)
                    .open(path)
                    .unwrap()
                    .write_all(content)
                    .unwrap();
            }
        }
        Act::Attribute(at, name, value) => {
            let path = pick(*at);
            if plain(&path) {
                let name = format!("user.{}", name % 3);
                let _ = rustix::fs::lsetxattr(&path, name, value, rustix::fs::XattrFlags::empty());
            }
        }
    }
}

#[test]
fn a_restored_tree_is_what_it_was() {
    let cases = std::env::var("STOCKADE_ROUND_TRIPS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::default()
    };
    let acts = (
        vec(act(), 0..30),
        vec(act(), 0..15),
        vec(act(), 0..15),
        any::<bool>(),
    );
    TestRunner::new(config)
        .run(&acts, |(build, change, again, xattrs)| {
            let stage = Stage::new();
            let tree = stage.tree();
            stage.create(CreateOptions {
                xattrs,
                ..CreateOptions::default()
            });
            let compare = |at: &str, wanted: &_| {
                let now = describe(&tree);
                prop_assert!(
                    matches(&now, wanted, xattrs),
                    "{at}\nnow {now:#?}\nwanted {wanted:#?}"
                );
                Ok(())
            };
            for act in &build {
                perform(&tree, act);
            }
            let first = describe(&tree);
            let first_id = stage.snapshot();
            compare("a snapshot changed the tree", &first)?;
            for act in &change {
                perform(&tree, act);
            }
            let second = describe(&tree);
            let second_id = stage.snapshot();
            for act in &again {
                perform(&tree, act);
            }
            let restore = |id: &str| {
                stage
                    .manager
                    .restore(&stage.name, id, RestoreMode::Exact, &Silent)
                    .unwrap()
            };
            restore(&first_id);
            compare("first", &first)?;
            restore(&second_id);
            compare("second", &second)?;
            let nothing = restore(&second_id);
            prop_assert_eq!(
                nothing.written + nothing.removed + nothing.adjusted,
                0,
                "{:?}",
                nothing
            );
            stage.is_clean();
            Ok(())
        })
        .unwrap();
}

/// What is believed to be unchanged is what it would be found to be.
#[test]
fn a_cache_changes_nothing() {
    let config = Config {
        cases: 6,
        failure_persistence: None,
        max_shrink_iters: 20,
        ..Config::default()
    };
    let acts = (vec(act(), 10..60), vec(vec(act(), 0..4), 1..7));
    TestRunner::new(config)
        .run(&acts, |(build, rounds)| {
            let stage = Stage::new();
            let tree = stage.tree();
            stage.create(CreateOptions::default());
            let without = "without".parse().unwrap();
            let options = CreateOptions {
                no_baseline: true,
                ..CreateOptions::default()
            };
            let manager = &stage.manager;
            manager.create(&without, &tree, &options, &Silent).unwrap();
            let cache = |name: &str| {
                stage
                    .path()
                    .join("store/workspaces")
                    .join(name)
                    .join("cache")
            };
            let round = |acts: &[Act]| {
                for act in acts {
                    perform(&tree, act);
                }
                // Changes of the last moments are not believed at all.
                let begin = std::time::Instant::now();
                while begin.elapsed() < Duration::from_millis(120) {
                    std::thread::sleep(Duration::from_millis(10));
                }
                let one = manager.snapshot(&stage.name, None, &Silent).unwrap();
                let other = manager.snapshot(&without, None, &Silent).unwrap();
                fs::remove_file(cache("without")).unwrap();
                prop_assert_eq!(one.tree, other.tree);
                prop_assert_eq!(one.links, other.links);
                prop_assert_eq!(one.totals, other.totals);
                prop_assert_eq!(one.root, other.root);
                Ok(())
            };
            round(&build)?;
            let first = fs::metadata(cache("test")).unwrap().len();
            for acts in &rounds {
                round(acts)?;
            }
            // Each one added to it.
            prop_assert!(fs::metadata(cache("test")).unwrap().len() > first);
            stage.is_clean();
            Ok(())
        })
        .unwrap();
}

type Tree = std::collections::BTreeMap<Vec<u8>, crate::stage::Described>;

fn matches(now: &Tree, wanted: &Tree, xattrs: bool) -> bool {
    if xattrs {
        return now == wanted;
    }
    let without = |tree: &Tree| -> Tree {
        let plain = tree
            .iter()
            .map(|(path, file)| (path.clone(), file.clone().without_attributes()));
        plain.collect()
    };
    without(now) == without(wanted)
}
