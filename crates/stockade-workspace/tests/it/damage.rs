//! Stores that are not what they were: damaged files, clocks that went back.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use stockade_workspace::{CreateOptions, Error, RestoreMode, Silent};

use crate::stage::{Stage, describe};

fn packs(stage: &Stage) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.path().join("store/packs")).unwrap();
    let mut packs: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    packs.sort();
    packs
}

fn restore(stage: &Stage, id: &str) -> Result<(), Error> {
    let mode = RestoreMode::Exact;
    let report = stage.manager.restore(&stage.name, id, mode, &Silent);
    report.map(drop)
}

/// Bytes that do not compress, so that damage hits content.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = crate::stage::Dice::new(seed);
    std::iter::repeat_with(|| u8::try_from(dice.below(256)).unwrap())
        .take(length)
        .collect()
}

#[test]
fn damage_is_found_and_told() {
    let stage = Stage::new();
    stage.create(CreateOptions::default());
    fs::write(stage.tree().join("a"), vec![7; 5000]).unwrap();
    let id = stage.snapshot();
    let pack = packs(&stage).remove(0);
    let whole = fs::read(&pack).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x40;
        fs::write(&pack, &damaged).unwrap();
        let report = stage.manager.fsck(&Silent).unwrap();
        let restored = restore(&stage, &id);
        // The magic in front is all that nobody needs.
        assert!(
            !report.is_clean() || restored.is_ok() && at < 8,
            "byte {at}"
        );
    }
    for length in [0, 10, whole.len() - 1] {
        fs::write(&pack, &whole[..length]).unwrap();
        assert!(!stage.manager.fsck(&Silent).unwrap().is_clean());
        fs::remove_file(stage.tree().join("a")).unwrap();
        let error = restore(&stage, &id).unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
        fs::write(stage.tree().join("a"), "x").unwrap();
    }
    fs::write(&pack, &whole).unwrap();
    stage.is_clean();
    restore(&stage, &id).unwrap();
}

#[test]
fn nothing_is_collected_from_a_store_that_lost_something() {
    let stage = Stage::new();
    stage.create(CreateOptions::default());
    let mut ids = Vec::new();
    for round in 0..12 {
        fs::write(stage.tree().join(format!("f{round}")), noise(round, 3000)).unwrap();
        ids.push(stage.snapshot());
    }
    // Many short packs: a collection wants to write them anew.
    let all = packs(&stage);
    assert_eq!(all.len(), 12);
    for pack in &all {
        let whole = fs::read(pack).unwrap();
        let mut content_changed = whole.clone();
        content_changed[100] ^= 0x40;
        for damaged in [&whole[..whole.len() / 2], &content_changed[..], &[]] {
            if damaged.is_empty() {
                fs::remove_file(pack).unwrap();
            } else {
                fs::write(pack, damaged).unwrap();
            }
            let error = stage.manager.gc().unwrap_err();
            assert!(error.hint().unwrap().contains("fsck"), "{error}");
            fs::write(pack, &whole).unwrap();
            assert_eq!(packs(&stage), all);
        }
    }
    stage.is_clean();
    stage.manager.gc().unwrap();
    assert!(packs(&stage).len() < 12);
    stage.is_clean();
    for id in &ids {
        restore(&stage, id).unwrap();
    }
}

#[test]
fn the_whole_one_of_two_copies_is_used_and_kept() {
    let stage = Stage::new();
    let path = stage.tree().join("f");
    stage.create(CreateOptions::default());
    fs::write(&path, noise(1, 300_000)).unwrap();
    let id = stage.snapshot();
    let before = describe(&stage.tree());
    let first = packs(&stage).remove(0);
    // Two who add the same at once leave two packs with it.
    let twice = [
        first.with_file_name("0-twice.pack"),
        first.with_file_name("z-twice.pack"),
    ];
    for (good, bad) in [(0, 1), (1, 0)] {
        let whole = fs::read(&first).unwrap();
        let mut damaged = whole.clone();
        damaged[5000] ^= 1;
        fs::write(&twice[good], &whole).unwrap();
        fs::write(&twice[bad], &damaged).unwrap();
        fs::remove_file(&first).unwrap();
        // Whether it frees the damaged one or refuses: what is whole stays.
        drop(stage.manager.gc());
        fs::write(&path, "other").unwrap();
        restore(&stage, &id).unwrap();
        assert!(describe(&stage.tree()) == before);
        for pack in packs(&stage) {
            fs::remove_file(pack).unwrap();
        }
        fs::write(&first, &whole).unwrap();
    }
    stage.is_clean();
}

#[test]
fn a_clock_that_was_set_back_loses_nothing() {
    let stage = Stage::new();
    let path = stage.tree().join("f");
    stage.create(CreateOptions::default());
    fs::write(&path, "one").unwrap();
    let first = stage.snapshot();
    // The clock was ahead when all this was written.
    let ahead = |file: PathBuf, keys: &[&str]| {
        let mut value: serde_json::Value =
            serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        for key in keys {
            value[key] = (value[key].as_u64().unwrap() + 10_000_000_000).into();
        }
        fs::write(file, serde_json::to_vec(&value).unwrap()).unwrap();
    };
    let place = stage.path().join("store/workspaces/test");
    ahead(
        place.join(format!("snapshots/{first}.json")),
        &["created_ms"],
    );
    ahead(place.join("state.json"), &["created_ms", "used_ms"]);
    let later = std::time::SystemTime::now() + Duration::from_secs(10_000_000);
    fs::File::open(&path).unwrap().set_modified(later).unwrap();

    assert!(stage.manager.cleanup(Duration::ZERO).unwrap().is_empty());
    fs::write(&path, "two").unwrap();
    let second = stage.snapshot();
    let ids: Vec<_> = stage.manager.snapshots(&stage.name).unwrap();
    let ids: Vec<_> = ids.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, [&first, &second]);
    // Compared with the last one, not with the one that seems to be.
    let diff = stage.manager.diff(&stage.name, None, &Silent).unwrap();
    assert!(diff.changes.is_empty(), "{:?}", diff.changes);
    // Whoever has a difference in hand is in the store, and a collection waits for them.
    drop(diff);
    stage.manager.gc().unwrap();
    restore(&stage, &first).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one");
    restore(&stage, &second).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    stage.is_clean();
}
