//! Images of projects.

use std::fs;
use std::path::Path;

use stockade_container::{DevEnvManager, Images};

use crate::scene::{IMAGE, scene};

#[test]
fn images_are_known_again_by_what_they_are_made_of() {
    let Some(scene) = scene("images_are_known_again_by_what_they_are_made_of") else {
        return;
    };
    let engine = scene.connect();
    let state = scene.dir.path().join("state");
    let dockerfile = scene.project().join("Dockerfile");
    fs::write(&dockerfile, format!("FROM {IMAGE}\nCOPY data /data\n")).unwrap();
    fs::write(scene.project().join("data"), "one").unwrap();
    fs::write(scene.project().join(".dockerignore"), "ignored\n").unwrap();
    let manager = || DevEnvManager::new(&engine, &scene.project(), &state).unwrap();

    let lines = std::cell::RefCell::new(Vec::new());
    let mut first = manager();
    assert!(first.is_stale(&dockerfile).unwrap());
    first.on_progress = Some(Box::new(|line| lines.borrow_mut().push(line.to_owned())));
    let tag = first.get_or_build(&dockerfile).unwrap();
    drop(first);
    assert!(
        lines.borrow().iter().any(|line| line.contains("COPY")),
        "{lines:?}"
    );

    // The index outlives the manager, and nothing is built again.
    let mut second = manager();
    assert!(!second.is_stale(&dockerfile).unwrap());
    second.on_progress = Some(Box::new(|line| panic!("built again: {line}")));
    assert_eq!(second.get_or_build(&dockerfile).unwrap(), tag);
    drop(second);
    fs::write(scene.project().join("ignored"), "x").unwrap();
    assert!(!manager().is_stale(&dockerfile).unwrap());
    let other = manager().with_arguments(vec![("A".into(), "1".into())]);
    assert!(other.is_stale(&dockerfile).unwrap());

    // The context, a declaration, a missing image: each makes it stale.
    fs::write(scene.project().join("data"), "two").unwrap();
    assert!(manager().is_stale(&dockerfile).unwrap());
    let newer = manager().get_or_build(&dockerfile).unwrap();
    assert_ne!(newer, tag);
    manager().invalidate(&dockerfile).unwrap();
    assert!(manager().is_stale(&dockerfile).unwrap());
    let mut swaps = Vec::new();
    let mut forced = manager();
    forced.on_swap_needed = Some(Box::new(|request| swaps.push(request)));
    let forced_tag = forced.rebuild_and_force_swap(&dockerfile).unwrap();
    drop(forced);
    assert_eq!(swaps.len(), 1);
    assert_eq!(swaps[0].image_tag, forced_tag);
    assert_eq!(DevEnvManager::forget_missing(&engine, &state).unwrap(), 0);
    assert!(Images::new(&engine).remove(&forced_tag).unwrap());
    assert!(manager().is_stale(&dockerfile).unwrap());
    assert_eq!(DevEnvManager::forget_missing(&engine, &state).unwrap(), 1);
    assert!(manager().index().unwrap().is_empty());

    // A build that fails leaves the index as it was and asks for no swap.
    fs::write(&dockerfile, format!("FROM {IMAGE}\nCOPY nowhere /x\n")).unwrap();
    let mut failing = manager();
    failing.on_swap_needed = Some(Box::new(|_| panic!("a swap after a build that failed")));
    assert!(failing.rebuild_and_force_swap(&dockerfile).is_err());
    drop(failing);
    assert!(manager().get_or_build(Path::new("/nonexistent")).is_err());
    assert_eq!(scene.containers(), 0);
}
