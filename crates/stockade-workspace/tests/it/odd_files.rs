//! Files that other tools trip over.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode};
use stockade_workspace::{CreateOptions, RestoreMode, Silent};

use crate::stage::{Stage, describe};

fn restore(stage: &Stage, id: &str) {
    stage
        .manager
        .restore(&stage.name, id, RestoreMode::Exact, &Silent)
        .unwrap();
}

fn empty(tree: &Path) {
    for entry in fs::read_dir(tree).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            fs::remove_dir_all(entry.path()).unwrap();
        } else {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[test]
fn ten_gigabytes_of_nothing_take_no_room() {
    const SIZE: u64 = 10 << 30;
    let stage = Stage::new();
    stage.create(CreateOptions::default());
    let path = stage.tree().join("sparse");
    let file = File::create(&path).unwrap();
    file.set_len(SIZE).unwrap();
    file.write_all_at(b"in the middle", SIZE / 2).unwrap();
    file.write_all_at(b"end", SIZE - 3).unwrap();
    let blocks = file.metadata().unwrap().blocks();
    drop(file);
    let id = stage.snapshot();
    fs::remove_file(&path).unwrap();
    restore(&stage, &id);
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!((metadata.len(), metadata.blocks()), (SIZE, blocks));
    let mut content = [0; 13];
    let file = File::open(&path).unwrap();
    file.read_exact_at(&mut content, SIZE / 2).unwrap();
    assert_eq!(&content, b"in the middle");
    // Through one file and back.
    let export = stage.path().join("export.tar.zst");
    stage
        .manager
        .export(&stage.name, None, &export, &Silent)
        .unwrap();
    assert!(fs::metadata(&export).unwrap().len() < 100_000);
    let other = "other".parse().unwrap();
    let dir = stage.path().join("other");
    stage
        .manager
        .import(&export, &other, &dir, false, &Silent)
        .unwrap();
    assert_eq!(fs::metadata(dir.join("sparse")).unwrap().blocks(), blocks);
}

#[test]
fn strange_files_are_kept_and_never_opened() {
    let stage = Stage::new();
    let tree = stage.tree();
    stage.create(CreateOptions::default());
    // Whoever opened the FIFO would wait for ever.
    for (name, kind) in [("fifo", FileType::Fifo), ("socket", FileType::Socket)] {
        rustix::fs::mknodat(CWD, tree.join(name), kind, Mode::from(0o640), 0).unwrap();
    }
    symlink("/", tree.join("root")).unwrap();
    symlink("loop-b", tree.join("loop-a")).unwrap();
    symlink("loop-a", tree.join("loop-b")).unwrap();
    symlink("..", tree.join("up")).unwrap();
    fs::write(tree.join(OsString::from_vec(b"\xff\xfe".to_vec())), "name").unwrap();
    fs::write(tree.join("a\nb\x1b[2J"), "name").unwrap();
    fs::create_dir(tree.join("empty")).unwrap();
    fs::create_dir(tree.join(".hidden")).unwrap();
    fs::write(tree.join(".hidden/x"), "x").unwrap();
    // Four thousand bytes below the top.
    let end = tree.as_os_str().len() + 1 + 4000;
    let mut deep = tree.clone();
    while end - deep.as_os_str().len() > 250 {
        deep.push("d".repeat(200));
        fs::create_dir(&deep).unwrap();
    }
    deep.push("b".repeat(end - deep.as_os_str().len() - 1));
    assert_eq!(deep.as_os_str().len(), end);
    fs::write(&deep, "deep").unwrap();
    let before = describe(&tree);
    let id = stage.snapshot();
    empty(&tree);
    restore(&stage, &id);
    assert!(describe(&tree) == before);
    // A directory that became a link must not be written through.
    let outside = stage.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir_all(tree.join(".hidden")).unwrap();
    symlink(&outside, tree.join(".hidden")).unwrap();
    restore(&stage, &id);
    assert!(describe(&tree) == before);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_hundred_thousand_files_and_what_changed_among_them() {
    let stage = Stage::new();
    let tree = stage.tree();
    stage.create(CreateOptions::default());
    for directory in 0..1000 {
        let directory = tree.join(format!("d{directory}"));
        fs::create_dir(&directory).unwrap();
        for file in 0..100 {
            fs::write(directory.join(format!("f{file}")), format!("{file}")).unwrap();
        }
    }
    let first = stage.snapshot();
    fs::write(tree.join("d7/f7"), "changed").unwrap();
    let record = stage.manager.snapshot(&stage.name, None, &Silent).unwrap();
    assert_eq!(record.totals.files, 100_000);
    // One file's content and two directories.
    assert!(record.added < 100_000, "{}", record.added);
    let report = stage
        .manager
        .restore(&stage.name, &first, RestoreMode::Exact, &Silent)
        .unwrap();
    assert_eq!((report.written, report.removed), (1, 0));
    assert_eq!(fs::read(tree.join("d7/f7")).unwrap(), b"7");
}

#[test]
fn the_same_second_is_no_hiding_place() {
    let stage = Stage::new();
    let path = stage.tree().join("file");
    stage.create(CreateOptions::default());
    for round in 0..50 {
        // The same length, and the same time as far as that can be arranged.
        fs::write(&path, format!("{round:04}")).unwrap();
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        let id = stage.snapshot();
        fs::write(&path, format!("{:04}", round + 5000)).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
        stage.snapshot();
        restore(&stage, &id);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{round:04}"));
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_told() {
    const SIZE: usize = 2 << 20;
    let stage = Stage::new();
    let path = stage.tree().join("log");
    stage.create(CreateOptions::default());
    fs::write(&path, vec![b'x'; SIZE]).unwrap();
    let stop = AtomicBool::new(false);
    let records: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = File::options().append(true).open(&path).unwrap();
            while !stop.load(Ordering::Relaxed) {
                file.write_all(b"more\n").unwrap();
            }
        });
        // Also if a snapshot fails: whoever writes must not do so for ever.
        let taken: Vec<_> = (0..3)
            .map(|_| stage.manager.snapshot(&stage.name, None, &Silent))
            .collect();
        stop.store(true, Ordering::Relaxed);
        taken.into_iter().map(Result::unwrap).collect()
    });
    assert!(
        records.iter().any(|record| !record.unstable.is_empty()),
        "{records:#?}"
    );
    stage.is_clean();
    restore(&stage, records[0].id.as_str());
    let content = fs::read(&path).unwrap();
    assert!(content.len() >= SIZE && content[..SIZE].iter().all(|byte| *byte == b'x'));
}

#[test]
fn what_is_excluded_is_left_alone() {
    let stage = Stage::new();
    let tree = stage.tree();
    stage.create(CreateOptions {
        excludes: vec!["target/".to_owned(), "*.log".to_owned()],
        ..CreateOptions::default()
    });
    fs::write(tree.join("kept"), "1").unwrap();
    let id = stage.snapshot();
    fs::create_dir_all(tree.join("target/debug")).unwrap();
    fs::write(tree.join("target/debug/x"), "built").unwrap();
    fs::create_dir(tree.join("new")).unwrap();
    fs::write(tree.join("new/a.log"), "log").unwrap();
    fs::write(tree.join("new/b"), "b").unwrap();
    restore(&stage, &id);
    assert!(tree.join("target/debug/x").exists());
    assert!(tree.join("new/a.log").exists());
    assert!(!tree.join("new/b").exists());
}
