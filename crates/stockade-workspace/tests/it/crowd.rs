//! Many processes in one store at once.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use stockade_workspace::{CreateOptions, Error, RestoreMode, Silent, WorkspaceManager};

use crate::stage::{Dice, Stage, describe, in_a_process};

const MEMBERS: u64 = 8;

fn duration() -> Duration {
    let text = std::env::var("STOCKADE_CROWD_SECONDS").ok();
    Duration::from_secs(text.and_then(|text| text.parse().ok()).unwrap_or(5))
}

#[test]
fn eight_processes_in_one_store_get_along() {
    let stage = Stage::new();
    fs::write(stage.tree().join("shared"), "shared").unwrap();
    stage.create(CreateOptions::default());
    stage.snapshot();
    let members: Vec<_> = (1..=MEMBERS)
        .map(|seed| in_a_process(&stage, &format!("crowd {seed}")))
        .collect();
    for mut member in members {
        assert!(member.0.wait().unwrap().success());
    }
    stage.is_clean();
    stage.manager.gc().unwrap();
    stage.is_clean();
    assert!(stage.manager.snapshots(&stage.name).unwrap().len() > 1);
}

#[test]
fn two_restores_at_once_are_one_after_the_other() {
    let stage = Stage::new();
    let tree = stage.tree();
    stage.create(CreateOptions::default());
    let taken_with = |letter: u8| {
        for number in 0..60 {
            let name = format!("{}{number}", char::from(letter));
            fs::write(tree.join(name), [letter; 3000]).unwrap();
            fs::write(tree.join(format!("both{number}")), [letter; 3000]).unwrap();
        }
        let taken = (stage.snapshot(), describe(&tree));
        for number in 0..60 {
            fs::remove_file(tree.join(format!("{}{number}", char::from(letter)))).unwrap();
        }
        taken
    };
    let states = [taken_with(b'a'), taken_with(b'b')];
    let mut ends = [0, 0];
    for round in 0..10 {
        let mut restores: Vec<_> = (0..2)
            .map(|number| {
                in_a_process(
                    &stage,
                    &format!("restore {}", states[(number + round) % 2].0),
                )
            })
            .collect();
        for restore in &mut restores {
            assert!(restore.0.wait().unwrap().success());
        }
        let now = describe(&tree);
        let which = states.iter().position(|(_, wanted)| *wanted == now);
        ends[which.expect("a mixture of both")] += 1;
        stage.is_clean();
    }
    assert_eq!(ends[0] + ends[1], 10);
}

/// What each of them does: works on a workspace of its own and on the one that all share.
pub(crate) fn member(manager: &WorkspaceManager, dir: &Path, seed: u64) {
    let mut dice = Dice::new(seed * 7919);
    let own = format!("own-{seed}").parse().unwrap();
    let shared = "test".parse().unwrap();
    let tree = dir.join(format!("tree-{seed}"));
    fs::create_dir_all(&tree).unwrap();
    manager
        .create(&own, &tree, &CreateOptions::default(), &Silent)
        .unwrap();
    let end = Instant::now() + duration();
    let mut rounds = 0;
    // Some rounds, also where a round takes as long as that.
    while rounds < 20 || Instant::now() < end {
        rounds += 1;
        let content = vec![b'x'; usize::try_from(dice.below(5000)).unwrap()];
        fs::write(tree.join(format!("f{}", dice.below(9))), &content).unwrap();
        match dice.below(5) {
            0 => drop(manager.gc().unwrap()),
            1 => drop(manager.snapshot(&shared, None, &Silent).unwrap()),
            2 => {
                let all = manager.snapshots(&shared).unwrap();
                let id = all.last().unwrap().id.to_string();
                manager
                    .restore(&shared, &id, RestoreMode::Exact, &Silent)
                    .unwrap();
            }
            3 if rounds % 20 == 0 => {
                manager.remove(&own).unwrap();
                manager
                    .create(&own, &tree, &CreateOptions::default(), &Silent)
                    .unwrap();
            }
            _ => {
                let record = manager.snapshot(&own, None, &Silent).unwrap();
                fs::write(tree.join("later"), "later").unwrap();
                manager
                    .restore(&own, record.id.as_str(), RestoreMode::Exact, &Silent)
                    .unwrap();
                assert!(!tree.join("later").exists());
            }
        }
        match manager.show(&own) {
            Ok(_) | Err(Error::NoWorkspace(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn there_are_no_more_workspaces_than_the_limit() {
    let stage = Stage::new();
    stage.create(CreateOptions::default());
    let manager = stage.manager.clone().max_sandboxes(1);
    let second = "second".parse().unwrap();
    let options = CreateOptions::default();
    let refused = manager.create(&second, &stage.tree(), &options, &Silent);
    assert!(matches!(refused, Err(Error::TooMany(1))), "{refused:?}");
    let made = stage
        .manager
        .create(&second, &stage.tree(), &options, &Silent);
    assert!(made.is_ok(), "{made:?}");
}
