//! Hawk's sandbox manager.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use stockade::compat::hawk::{SandboxManager, SandboxState, Status};

use crate::{Test, dir};

pub(crate) const TESTS: &[Test] = &[
    ("documents", documents),
    ("life", life),
    ("settings", settings),
    ("state", state),
];

fn manager(store: &Path) -> SandboxManager {
    SandboxManager::new(store.join("store")).unwrap()
}

fn settings() {
    let (store, work) = (dir(), dir());
    let manager = SandboxManager::new(store.path().join("store")).unwrap();
    assert_eq!(manager.dir(), store.path().join("store"));
    assert_eq!(manager.max_sandboxes(), 64);
    let manager = manager.with_max_sandboxes(1);
    let state = manager.create(work.path(), BTreeMap::new()).unwrap();
    assert!(manager.create(work.path(), BTreeMap::new()).is_err());
    let known = manager.sandboxes().unwrap();
    assert_eq!(known.keys().collect::<Vec<_>>(), [&state.id]);
}

fn state() {
    let (store, work) = (dir(), dir());
    fs::create_dir(work.path().join(".hidden")).unwrap();
    fs::write(work.path().join(".hidden/f"), [0, 0xff]).unwrap();
    let env = [("WORD", "w"), ("API_TOKEN", "secret")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let manager = manager(store.path());
    let state: SandboxState = manager.create(work.path(), env.into()).unwrap();
    assert!(state.id.starts_with("sb-") && state.id.len() == 15);
    assert_eq!(state.work_dir, work.path());
    assert_eq!(state.env_vars.keys().collect::<Vec<_>>(), ["WORD"]);
    assert_eq!(state.files[Path::new(".hidden/f")], [0, 0xff]);
    assert_eq!(state.process_state, "idle");
    assert_eq!(state.status, Status::Running);
    assert!(state.created_at <= SystemTime::now());
    assert_eq!((state.paused_at, state.resumed_at), (None, None));
    manager.pause(&state.id).unwrap();
    let paused = manager.list().unwrap().remove(0);
    assert_eq!(paused.process_state, "suspended");
    assert_eq!(paused.status, Status::Paused);
    assert!(paused.paused_at >= Some(state.created_at));
    let resumed = manager.resume(&state.id).unwrap();
    assert!(resumed.resumed_at.is_some() && resumed.status == Status::Running);
}

fn life() {
    let (store, work) = (dir(), dir());
    fs::write(work.path().join("kept"), "1").unwrap();
    fs::write(work.path().join("gone"), "1").unwrap();
    let manager: SandboxManager = manager(store.path());
    let state = manager.create(work.path(), BTreeMap::new()).unwrap();
    assert_eq!(manager.diff_sandbox(&state.id).unwrap(), [""; 0]);
    fs::write(work.path().join("kept"), "22").unwrap();
    fs::write(work.path().join("new"), "new content").unwrap();
    fs::remove_file(work.path().join("gone")).unwrap();
    let expected = ["added: new", "deleted: gone", "modified: kept"];
    assert_eq!(manager.diff_sandbox(&state.id).unwrap(), expected);
    // Another manager, as after a restart, knows the same.
    let again = self::manager(store.path());
    assert_eq!(again.diff_sandbox(&state.id).unwrap(), expected);
    again.pause(&state.id).unwrap();
    assert!(again.pause(&state.id).is_err(), "it is paused");
    let text = manager.format_status().unwrap();
    assert!(text.starts_with("Sandboxes (1):") && text.contains(&state.id));
    manager.resume(&state.id).unwrap();
    assert_eq!(manager.list().unwrap().len(), 1);
    manager.cleanup(Duration::from_secs(3600)).unwrap();
    assert_eq!(manager.list().unwrap().len(), 1, "it was used just now");
    assert!(manager.pause("../../etc").is_err());
    while manager.list().unwrap().len() == 1 {
        // Until a millisecond has passed since the last use.
        manager.cleanup(Duration::ZERO).unwrap();
    }
}

fn documents() {
    let (store, work, place) = (dir(), dir(), dir());
    fs::create_dir(work.path().join("d")).unwrap();
    fs::write(work.path().join("d/f"), b"content\xff").unwrap();
    let manager = manager(store.path());
    let state = manager.create(work.path(), BTreeMap::new()).unwrap();
    let data = manager.snapshot(&state.id).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&data).unwrap();
    assert_eq!(document["files"]["d/f"], "Y29udGVudP8=");
    assert_eq!(document["status"], "running");
    let copy = place.path().join("copy");
    let restored = manager.restore(&data, &copy).unwrap();
    assert_ne!(restored.id, state.id);
    assert_eq!(fs::read(copy.join("d/f")).unwrap(), b"content\xff");
    // Nothing leads out of the directory, and nothing of a refused document stays.
    let before = manager.list().unwrap().len();
    for path in ["../out", "/out", "d/../../out"] {
        let hostile = serde_json::json!({"files": {path: "eA=="}, "id": "sb-0"}).to_string();
        let target = place.path().join("target");
        assert!(manager.restore(hostile.as_bytes(), &target).is_err());
        assert!(!place.path().join("out").exists());
    }
    assert_eq!(manager.list().unwrap().len(), before);
    assert!(manager.restore(b"{", &copy).is_err());
}
