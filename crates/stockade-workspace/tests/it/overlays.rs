//! Layers as overlayfs leaves them, read and committed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use stockade_workspace::{
    AllowAll, ChangeKind, CommitGuard, CommitOptions, CommitReport, Error, Overlay, ProposedChange,
    Resolve, Store, Verdict, WorkspaceManager,
};

use crate::stage::{Stage, describe};

fn layer(stage: &Stage) -> (Overlay, PathBuf) {
    let mut overlay = stage.manager.overlay(&stage.name, &stage.tree()).unwrap();
    let upper = overlay.layer(&stage.tree()).unwrap().join("upper");
    (overlay, upper)
}

pub(crate) fn commit(
    overlay: Overlay,
    paths: &[PathBuf],
    resolve: Resolve,
) -> Result<CommitReport, Error> {
    overlay.commit(&CommitOptions {
        paths,
        resolve,
        guard: &AllowAll,
        durable: false,
    })
}

/// Only root can make a whiteout outside of a user namespace.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: layers: needs root");
    }
    root
}

#[test]
fn a_layer_is_read_and_committed() {
    if !is_root() {
        return;
    }
    let stage = Stage::new();
    let tree = stage.tree();
    for directory in ["gone/deep", "opaque", "merged"] {
        fs::create_dir_all(tree.join(directory)).unwrap();
    }
    for file in [
        "gone/deep/x",
        "opaque/hidden",
        "merged/kept",
        "merged/changed",
        "moved",
        "kind",
        "mode",
    ] {
        fs::write(tree.join(file), format!("old {file}\n")).unwrap();
    }
    let (overlay, upper) = layer(&stage);
    let whiteout = |name: &str| {
        rustix::fs::mknodat(
            CWD,
            upper.join(name),
            FileType::CharacterDevice,
            Mode::from(0),
            0,
        )
        .unwrap();
    };
    whiteout("gone");
    whiteout("moved");
    fs::write(upper.join("renamed"), "old moved\n").unwrap();
    fs::create_dir(upper.join("opaque")).unwrap();
    rustix::fs::lsetxattr(
        upper.join("opaque"),
        "user.overlay.opaque",
        b"y",
        XattrFlags::empty(),
    )
    .unwrap();
    fs::write(upper.join("opaque/new"), "new").unwrap();
    fs::create_dir(upper.join("merged")).unwrap();
    fs::write(upper.join("merged/changed"), "new changed\n").unwrap();
    symlink("merged", upper.join("kind")).unwrap();
    fs::write(upper.join("mode"), "old mode\n").unwrap();
    fs::set_permissions(upper.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(upper.join("one"), "linked").unwrap();
    fs::hard_link(upper.join("one"), upper.join("two")).unwrap();
    overlay.note().unwrap();

    let diff = stage.manager.overlay_diff(&overlay).unwrap();
    let found: Vec<_> = diff
        .changes
        .iter()
        .map(|change| (change.path.to_str().unwrap(), change.kind))
        .collect();
    let expected = [
        ("gone", ChangeKind::Removed),
        ("gone/deep", ChangeKind::Removed),
        ("gone/deep/x", ChangeKind::Removed),
        ("kind", ChangeKind::Retyped),
        ("merged/changed", ChangeKind::Modified),
        ("mode", ChangeKind::Attributes),
        ("one", ChangeKind::Added),
        ("opaque/hidden", ChangeKind::Removed),
        ("opaque/new", ChangeKind::Added),
        ("renamed", ChangeKind::Renamed),
        ("two", ChangeKind::Added),
    ];
    assert_eq!(found, expected);
    drop(diff);

    commit(overlay, &[], Resolve::Refuse).unwrap();
    let exists = |name: &str| tree.join(name).symlink_metadata().is_ok();
    assert!(!exists("gone") && !exists("moved") && !exists("opaque/hidden"));
    let read = |name: &str| fs::read_to_string(tree.join(name)).unwrap();
    assert_eq!(read("renamed"), "old moved\n");
    assert_eq!(read("opaque/new"), "new");
    assert_eq!(read("merged/kept"), "old merged/kept\n");
    assert_eq!(read("merged/changed"), "new changed\n");
    assert_eq!(
        fs::read_link(tree.join("kind")).unwrap(),
        PathBuf::from("merged")
    );
    assert_eq!(
        fs::metadata(tree.join("mode")).unwrap().mode() & 0o777,
        0o755
    );
    let inode = |name: &str| fs::metadata(tree.join(name)).unwrap().ino();
    assert_eq!(inode("one"), inode("two"));
    assert!(
        stage
            .manager
            .existing_overlay(&stage.name)
            .unwrap()
            .is_none()
    );
    let litter = describe(&tree)
        .keys()
        .any(|path| path.starts_with(b"/.stockade"));
    assert!(!litter);
}

#[test]
fn what_the_host_changed_is_not_overwritten() {
    let stage = Stage::new();
    let tree = stage.tree();
    for name in ["changed", "removed", "same"] {
        fs::write(tree.join(name), "old").unwrap();
    }
    let fill = || {
        let (overlay, upper) = layer(&stage);
        for name in ["changed", "removed", "same", "added"] {
            fs::write(upper.join(name), "of the overlay").unwrap();
        }
        overlay.note().unwrap();
        overlay
    };
    let overlay = fill();
    fs::write(tree.join("changed"), "of the host").unwrap();
    fs::remove_file(tree.join("removed")).unwrap();
    fs::write(tree.join("added"), "of the host").unwrap();
    let before = describe(&tree);
    let Err(Error::HostChanged(paths)) = commit(overlay, &[], Resolve::Refuse) else {
        panic!("it was committed");
    };
    let names: Vec<_> = paths
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(names, ["added", "changed", "removed"]);
    assert!(
        describe(&tree) == before,
        "something was committed all the same"
    );

    let read = |name: &str| fs::read_to_string(tree.join(name)).ok();
    let again = || {
        stage
            .manager
            .existing_overlay(&stage.name)
            .unwrap()
            .unwrap()
    };
    commit(again(), &[tree.join("same")], Resolve::Refuse).unwrap();
    assert_eq!(read("same").as_deref(), Some("of the overlay"));
    commit(again(), &[], Resolve::Theirs).unwrap();
    assert_eq!(read("changed").as_deref(), Some("of the host"));
    assert_eq!(read("removed"), None);
    let overlay = fill();
    fs::write(tree.join("changed"), "once more").unwrap();
    commit(overlay, &[], Resolve::Ours).unwrap();
    assert_eq!(read("changed").as_deref(), Some("of the overlay"));
}

#[test]
fn what_overlayfs_marked_is_set_aside_and_collected() {
    let stage = Stage::new();
    let (overlay, upper) = layer(&stage);
    fs::write(upper.join("new"), "of the overlay").unwrap();
    let work = upper.with_file_name("work");
    let marked = work.join("work/incompat/volatile");
    fs::create_dir_all(&marked).unwrap();
    fs::set_permissions(work.join("work"), fs::Permissions::from_mode(0o000)).unwrap();
    drop(overlay);
    // overlayfs would refuse a directory that has the mark.
    drop(layer(&stage));
    assert!(!work.join("work").exists());
    assert_eq!(fs::read_dir(&work).unwrap().count(), 1);
    assert_eq!(stage.manager.gc().unwrap().left_behind, 1);
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
    assert!(upper.join("new").exists());
}

#[test]
fn a_layer_without_an_index_does_not_come_back() {
    let stage = Stage::new();
    let (overlay, upper) = layer(&stage);
    fs::write(upper.join("old"), "of a run long ago").unwrap();
    drop(overlay);
    // As a power failure may leave it.
    let layers = upper.parent().unwrap().parent().unwrap();
    fs::remove_file(layers.join("index.json")).unwrap();
    let (_overlay, again) = layer(&stage);
    assert_eq!(again, upper);
    assert_eq!(fs::read_dir(&upper).unwrap().count(), 0);
}

/// Keeps one name back.
struct NotThis(&'static str);

impl CommitGuard for NotThis {
    fn judge(&self, change: &ProposedChange<'_>) -> Verdict {
        if change.path.ends_with(self.0) {
            Verdict::KeepBack("a test".to_owned())
        } else {
            Verdict::Allow
        }
    }
}

#[test]
fn a_store_on_another_file_system_commits_the_same() {
    let memory = std::path::Path::new("/dev/shm");
    let temporary = std::env::temp_dir();
    let device = |path: &std::path::Path| fs::metadata(path).map(|data| data.dev()).ok();
    if device(memory).is_none() || device(memory) == device(&temporary) {
        return;
    }
    let here = tempfile::tempdir_in(memory).unwrap();
    let there = tempfile::tempdir_in(&temporary).unwrap();
    let tree = here.path().join("tree");
    fs::create_dir_all(tree.join("both")).unwrap();
    fs::write(tree.join("both/changed"), "old").unwrap();
    fs::write(tree.join("stays"), "old").unwrap();
    let manager = WorkspaceManager::new(Store::open(there.path().join("store")).unwrap());
    let name = "test".parse().unwrap();
    let mut overlay = manager.overlay(&name, &tree).unwrap();
    let upper = overlay.layer(&tree).unwrap().join("upper");
    fs::create_dir_all(upper.join("new/deep")).unwrap();
    fs::write(upper.join("new/deep/file"), "new").unwrap();
    fs::write(upper.join("new/deep/secret"), "kept").unwrap();
    symlink("deep", upper.join("new/link")).unwrap();
    fs::create_dir(upper.join("both")).unwrap();
    fs::write(upper.join("both/changed"), "new").unwrap();
    overlay.note().unwrap();
    let options = |guard| CommitOptions {
        paths: &[],
        resolve: Resolve::Refuse,
        guard,
        durable: true,
    };
    let report = overlay.commit(&options(&NotThis("secret"))).unwrap();
    assert_eq!(report.kept_back.len(), 1, "{report:?}");
    let read = |name: &str| fs::read_to_string(tree.join(name)).ok();
    assert_eq!(read("new/deep/file").as_deref(), Some("new"));
    assert_eq!(read("both/changed").as_deref(), Some("new"));
    assert_eq!(read("stays").as_deref(), Some("old"));
    assert_eq!(read("new/deep/secret"), None);
    assert_eq!(
        fs::read_dir(&tree).unwrap().count(),
        3,
        "something was left"
    );

    let overlay = manager.existing_overlay(&name).unwrap().unwrap();
    overlay.commit(&options(&AllowAll)).unwrap();
    assert_eq!(read("new/deep/secret").as_deref(), Some("kept"));
    assert!(manager.existing_overlay(&name).unwrap().is_none());
}

#[test]
fn a_snapshot_of_an_overlay_is_whole_and_apart() {
    let stage = Stage::new();
    fs::write(stage.tree().join("file"), "host\n").unwrap();
    let (overlay, upper) = layer(&stage);
    let mut deep = upper.join("deep");
    for _ in 0..200 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("leaf"), "leaf\n").unwrap();
    fs::write(upper.join("file"), "one\n").unwrap();
    fs::hard_link(upper.join("file"), upper.join("twin")).unwrap();
    symlink("/etc/passwd", upper.join("link")).unwrap();
    fs::write(upper.join("closed"), "x").unwrap();
    fs::set_permissions(upper.join("closed"), fs::Permissions::from_mode(0o400)).unwrap();
    fs::create_dir(upper.join("opaque")).unwrap();
    let mark = ("user.overlay.opaque", b"y");
    rustix::fs::lsetxattr(upper.join("opaque"), mark.0, mark.1, XattrFlags::empty()).unwrap();
    // Every user may make a whiteout (Linux 5.8).
    let gone = upper.join("gone");
    rustix::fs::mknodat(CWD, &gone, FileType::CharacterDevice, Mode::from(0), 0).unwrap();
    let before = describe(&upper);
    let name = "first".parse().unwrap();
    stage.manager.snapshot_overlay(&overlay, &name).unwrap();
    drop(overlay);
    let open = || {
        stage
            .manager
            .existing_overlay(&stage.name)
            .unwrap()
            .unwrap()
    };
    for _ in 0..2 {
        fs::rename(upper.join("deep"), upper.join("moved")).unwrap();
        fs::write(upper.join("file"), "two\n").unwrap();
        fs::remove_file(&gone).unwrap();
        stage.manager.restore_overlay(open(), &name).unwrap();
        assert_eq!(describe(&upper), before);
        let [file, twin] = ["file", "twin"].map(|name| upper.join(name).metadata().unwrap().ino());
        assert_eq!(file, twin);
        let mut value = [0; 8];
        let read = rustix::fs::lgetxattr(upper.join("opaque"), mark.0, &mut value);
        assert_eq!(read, Ok(1));
        assert!(gone.symlink_metadata().unwrap().rdev() == 0);
        assert_eq!(fs::read_to_string(deep.join("leaf")).unwrap(), "leaf\n");
    }
    // While a run uses the overlay, it is read and not changed.
    let held = open();
    let reader = stage.manager.overlay_in_use(&stage.name).unwrap();
    assert!(
        !stage
            .manager
            .overlay_diff(&reader)
            .unwrap()
            .changes
            .is_empty()
    );
    let refused = stage.manager.snapshot_overlay(&reader, &name);
    assert!(matches!(refused, Err(Error::OverlayBusy(_))));
    assert!(matches!(reader.discard(), Err(Error::OverlayBusy(_))));
    let fork = stage.manager.fork_overlay(&held).unwrap();
    let copy = stage.manager.existing_overlay(&fork).unwrap().unwrap();
    assert_eq!(copy.dir(), held.dir());
    let copied = copy.layer_path(&stage.tree()).unwrap().join("upper");
    assert_eq!(describe(&copied), before);
    drop(copy);
    stage.manager.remove(&fork).unwrap();
    stage.manager.remove_overlay_snapshot(&held, &name).unwrap();
    let missing = stage.manager.restore_overlay(held, &name);
    assert!(matches!(missing, Err(Error::NoOverlaySnapshot { .. })));
    stage.manager.discard_overlay(&stage.name).unwrap();
    assert!(!upper.exists());
}
