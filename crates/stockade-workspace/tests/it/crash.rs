//! Killed at any instant: the store stays whole, the last complete state can be restored, and no
//! file is half-written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use stockade_workspace::{CreateOptions, Resolve, RestoreMode, Silent};

use crate::stage::{Dice, Stage, describe, has_begun, in_a_process};

fn count(name: &str, usual: usize) -> usize {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn seed() -> u64 {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    now.as_secs() ^ u64::from(now.subsec_nanos())
}

/// Changes some files; every content is one letter many times, so that half a file would show.
fn change(tree: &Path, dice: &mut Dice) {
    for _ in 0..12 {
        let directory = tree.join(format!("d{}", dice.below(6)));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(format!("f{}", dice.below(20)));
        let letter = b'a' + u8::try_from(dice.below(26)).unwrap();
        let length = usize::try_from(dice.below(60_000)).unwrap() + 1;
        fs::write(path, vec![letter; length]).unwrap();
    }
    if dice.below(3) == 0 {
        drop(fs::remove_dir_all(tree.join(format!("d{}", dice.below(6)))));
    }
}

fn is_whole(tree: &Path, what: &str) {
    for directory in fs::read_dir(tree)
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if directory
            .file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with(".stockade-")
        {
            continue;
        }
        for file in fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
        {
            let content = fs::read(&file).unwrap();
            let same = content.iter().all(|byte| *byte == content[0]);
            assert!(
                same && !content.is_empty(),
                "{what}: {} is half-written",
                file.display()
            );
        }
    }
}

#[test]
fn a_kill_at_any_instant_loses_nothing() {
    let seed = seed();
    let mut dice = Dice::new(seed);
    let stage = Stage::new();
    let tree = stage.tree();
    stage.create(CreateOptions::default());
    change(&tree, &mut dice);
    let mut last = (stage.snapshot(), describe(&tree));
    // How long each kind of work takes, as far as is known.
    let mut usual: BTreeMap<String, Duration> = BTreeMap::new();
    let mut in_the_middle = 0;
    let rounds = count("STOCKADE_KILLS", 200);
    for round in 0..rounds {
        change(&tree, &mut dice);
        let what = match dice.below(4) {
            0 => "snapshot".to_owned(),
            1 => format!("restore {}", last.0),
            2 => "gc".to_owned(),
            _ => {
                commit_layer(&stage, &mut dice);
                "commit".to_owned()
            }
        };
        let told = format!("seed {seed}, round {round}, {what}");
        let kind = what.split(' ').next().unwrap_or_default().to_owned();
        let usual = usual
            .entry(kind.clone())
            .or_insert(Duration::from_millis(20));
        let mut victim = in_a_process(&stage, &what);
        has_begun(&mut victim);
        let since = Instant::now();
        let last_instant = u64::try_from(usual.as_micros()).unwrap();
        let instant = Duration::from_micros(dice.below(last_instant.max(1)));
        while since.elapsed() < instant && victim.0.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        let _ = victim.0.kill();
        if victim.0.wait().unwrap().success() {
            // It was faster: the next one is killed earlier.
            *usual = usual.mul_f64(0.8);
        } else {
            in_the_middle += 1;
            *usual = usual.mul_f64(1.1);
        }
        if kind == "restore" {
            // Killed once more while it is put in order.
            let mut second = in_a_process(&stage, &what);
            has_begun(&mut second);
            let since = Instant::now();
            while since.elapsed() < instant && second.0.try_wait().unwrap().is_none() {
                std::hint::spin_loop();
            }
            let _ = second.0.kill();
            let _ = second.0.wait();
        }
        stage.is_clean();
        is_whole(&tree, &told);
        if what == "commit" {
            // It can be done again, and then it is all there.
            let overlay = stage.manager.existing_overlay(&stage.name).unwrap();
            if let Some(overlay) = overlay {
                crate::overlays::commit(overlay, &[], Resolve::Refuse)
                    .unwrap_or_else(|error| panic!("{told}: {error:?}"));
            }
            is_whole(&tree, &told);
            for number in 0..8 {
                let content = fs::read(tree.join(format!("d0/c{number}"))).unwrap();
                assert!(content.len() >= 1000, "{told}");
            }
        }
        let records = stage.manager.snapshots(&stage.name).unwrap();
        assert!(
            records.iter().any(|record| record.id.as_str() == last.0),
            "{told}"
        );
        stage
            .manager
            .restore(&stage.name, &last.0, RestoreMode::Exact, &Silent)
            .unwrap_or_else(|error| panic!("{told}: {error:?}"));
        assert!(describe(&tree) == last.1, "{told}: not what it was");
        let kept = stage.path().join("store/workspaces/test");
        let litter = fs::read_dir(kept)
            .unwrap()
            .flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with("restore-"));
        assert!(litter.is_none(), "{told}: {litter:?}");
        if round % 10 == 9 {
            change(&tree, &mut dice);
            last = (stage.snapshot(), describe(&tree));
        }
    }
    assert!(
        in_the_middle * 2 > rounds,
        "seed {seed}: only {in_the_middle} of {rounds} were killed while they worked"
    );
}

/// A layer as a run would leave it.
fn commit_layer(stage: &Stage, dice: &mut Dice) {
    let mut overlay = stage.manager.overlay(&stage.name, &stage.tree()).unwrap();
    let upper = overlay.layer(&stage.tree()).unwrap().join("upper/d0");
    fs::create_dir_all(&upper).unwrap();
    for number in 0..8 {
        let letter = b'A' + u8::try_from(dice.below(26)).unwrap();
        let length = usize::try_from(dice.below(200_000)).unwrap() + 1000;
        fs::write(upper.join(format!("c{number}")), vec![letter; length]).unwrap();
    }
    overlay.note().unwrap();
}
