//! An import is refused or it is a workspace; it never panics, and never writes elsewhere.
//!
//! The input is the tar archive itself: it is compressed here, so that the fuzzer does not have to
//! find its way through zstd first. An input that begins with `{` is a snapshot of Hawk.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_workspace::{Silent, Store, WorkspaceManager};

fuzz_target!(|data: &[u8]| {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = dir.path().join("file");
    let packed = if data.first() == Some(&b'{') {
        data.to_vec()
    } else {
        zstd::encode_all(data, 1).unwrap()
    };
    std::fs::write(&file, packed).unwrap();
    let manager = WorkspaceManager::new(Store::open(dir.path().join("store")).unwrap());
    let name = "fuzz".parse().unwrap();
    let target = dir.path().join("target");
    if manager
        .import(&file, &name, &target, false, &Silent)
        .is_ok()
    {
        assert!(manager.fsck(&Silent).unwrap().is_clean());
    }
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(
            ["file", "store", "target"]
                .iter()
                .any(|known| name == *known),
            "{name:?}"
        );
    }
});
