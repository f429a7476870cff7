//! Files that somebody else wrote.

use std::fs;
use std::os::unix::fs::symlink;

use stockade_workspace::{CreateOptions, Error, Silent};
use tar::{Builder, EntryType, Header};

use crate::stage::{Stage, describe};

const MANIFEST: &str = r#"{"format":"stockade-export 1","workspace":"x","snapshot":"0","created_ms":0,"xattrs":false,"root":{"mode":493,"seconds":0,"nanos":0}}"#;

fn header(kind: EntryType, path: &[u8], size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    header
}

fn link(kind: EntryType, path: &[u8], target: &[u8]) -> Header {
    let mut header = header(kind, path, 0);
    header.as_gnu_mut().unwrap().linkname[..target.len()].copy_from_slice(target);
    header.set_cksum();
    header
}

fn archive(fill: impl FnOnce(&mut Builder<Vec<u8>>)) -> Vec<u8> {
    archive_with(MANIFEST, fill)
}

fn archive_with(manifest: &str, fill: impl FnOnce(&mut Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    let first = header(EntryType::Regular, b"manifest.json", manifest.len() as u64);
    builder.append(&first, manifest.as_bytes()).unwrap();
    fill(&mut builder);
    zstd::encode_all(&builder.into_inner().unwrap()[..], 3).unwrap()
}

fn import(stage: &Stage, bytes: &[u8]) -> Result<(), Error> {
    let file = stage.path().join("file");
    fs::write(&file, bytes).unwrap();
    let name = "imported".parse().unwrap();
    let dir = stage.path().join("imported");
    let imported = stage.manager.import(&file, &name, &dir, false, &Silent);
    if imported.is_err() {
        assert!(stage.manager.show(&name).is_err(), "half of it was kept");
        assert!(!dir.exists());
    }
    imported.map(drop)
}

#[test]
fn attacks_are_refused() {
    let file = |path: &'static [u8]| -> Header { header(EntryType::Regular, path, 0) };
    let bad: Vec<(&str, Vec<Header>)> = vec![
        ("upwards", vec![file(b"files/../../evil")]),
        ("absolute", vec![file(b"/etc/evil")]),
        ("absolute below", vec![file(b"files//etc/evil")]),
        ("elsewhere", vec![file(b"other/evil")]),
        ("dot", vec![file(b"files/./evil")]),
        ("no directory", vec![file(b"files/a/b")]),
        ("twice", vec![file(b"files/a"), file(b"files/a")]),
        (
            "link out",
            vec![link(EntryType::Symlink, b"files/l", b"/etc")],
        ),
        (
            "link up",
            vec![link(EntryType::Symlink, b"files/l", b"../x")],
        ),
        (
            "link out through another",
            vec![
                header(EntryType::Directory, b"files/a", 0),
                header(EntryType::Directory, b"files/t", 0),
                link(EntryType::Symlink, b"files/a/l", b"../t"),
                link(EntryType::Symlink, b"files/m", b"a/l/../../evil"),
            ],
        ),
        (
            "through a link",
            vec![
                link(EntryType::Symlink, b"files/l", b"d"),
                file(b"files/l/x"),
            ],
        ),
        (
            "hard link out",
            vec![link(EntryType::Link, b"files/l", b"/etc/passwd")],
        ),
        (
            "hard link up",
            vec![link(EntryType::Link, b"files/l", b"files/../../etc/passwd")],
        ),
        (
            "hard link to nothing",
            vec![link(EntryType::Link, b"files/l", b"files/none")],
        ),
        (
            "character device",
            vec![header(EntryType::Char, b"files/d", 0)],
        ),
        (
            "block device",
            vec![header(EntryType::Block, b"files/d", 0)],
        ),
        (
            "a strange kind",
            vec![header(EntryType::new(b'V'), b"files/d", 0)],
        ),
    ];
    let stage = Stage::new();
    for (what, headers) in bad {
        let bytes = archive(|builder| {
            for header in &headers {
                builder.append(header, &[][..]).unwrap();
            }
        });
        let error = import(&stage, &bytes).expect_err(what);
        assert!(matches!(error, Error::Import(_)), "{what}: {error:?}");
    }
}

#[test]
fn bombs_and_rubbish_are_refused() {
    let stage = Stage::new();
    let length = 512u64 << 20;
    let bomb = archive(|builder| {
        let header = header(EntryType::Regular, b"files/zeros", length);
        builder
            .append(&header, std::io::Read::take(std::io::repeat(0), length))
            .unwrap();
    });
    assert!(bomb.len() < 100_000);
    let error = import(&stage, &bomb).unwrap_err().to_string();
    assert!(error.contains("far more"), "{error}");
    let good = archive(|builder| {
        builder
            .append(&header(EntryType::Regular, b"files/a", 3), &b"abc"[..])
            .unwrap();
    });
    for cut in 0..good.len() {
        import(&stage, &good[..cut]).unwrap_err();
    }
    for rubbish in [
        &b""[..],
        b"{",
        b"{}x",
        b"not an archive",
        b"{\"files\":{\"../x\":\"YQ==\"}}",
        b"{\"files\":{\"/x\":\"YQ==\"}}",
        b"{\"files\":{\"x\":\"?\"}}",
    ] {
        import(&stage, rubbish).unwrap_err();
    }
    import(&stage, &good).unwrap();
    stage.is_clean();
}

#[test]
fn attributes_that_fill_the_memory_are_refused() {
    let stage = Stage::new();
    let value = vec![b'x'; 32 << 20];
    let import_with = |value: &[u8]| {
        let bytes = archive(|builder| {
            builder.append_pax_extensions([("comment", value)]).unwrap();
            builder
                .append(&header(EntryType::Regular, b"files/a", 0), &[][..])
                .unwrap();
        });
        assert!(bytes.len() < 100_000);
        import(&stage, &bytes)
    };
    let error = import_with(&value).unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
    import_with(&value[..1 << 20]).unwrap();
}

#[test]
fn many_attributes_that_fill_the_memory_are_refused() {
    let stage = Stage::new();
    // Letters that hardly compress, so that it is no bomb by its size.
    let mut seed = 1_u32;
    let mut letter = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + u8::try_from(seed >> 28).unwrap()
    };
    let value: Vec<u8> = (0..9 << 20).map(|_| letter()).collect();
    let bytes = archive_with(&MANIFEST.replace("false", "true"), |builder| {
        for number in 0..8 {
            let extra = ("SCHILY.xattr.user.big", &value[..]);
            builder.append_pax_extensions([extra]).unwrap();
            let name = format!("files/{number}");
            builder
                .append(&header(EntryType::Regular, name.as_bytes(), 0), &[][..])
                .unwrap();
        }
    });
    let error = import(&stage, &bytes).unwrap_err().to_string();
    assert!(error.contains("attributes are too long"), "{error}");
}

#[test]
fn others_may_not_write_what_is_imported() {
    use std::os::unix::fs::PermissionsExt;
    let stage = Stage::new();
    let bytes = archive_with(&MANIFEST.replace("493", "1023"), |builder| {
        for (kind, name) in [
            (EntryType::Directory, &b"files/d"[..]),
            (EntryType::Regular, b"files/f"),
        ] {
            let mut open = header(kind, name, 0);
            open.set_mode(0o7777);
            open.set_cksum();
            builder.append(&open, &[][..]).unwrap();
        }
    });
    import(&stage, &bytes).unwrap();
    let dir = stage.path().join("imported");
    for name in ["", "d", "f"] {
        let mode = fs::metadata(dir.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o1775, "{name}");
    }
    stage.is_clean();
}

#[test]
fn an_import_that_cannot_be_restored_leaves_nothing() {
    let stage = Stage::new();
    let bytes = archive_with(&MANIFEST.replace("false", "true"), |builder| {
        // Longer than any file system takes (xattr(7)).
        let extra = ("SCHILY.xattr.user.big", &vec![b'x'; 1 << 20][..]);
        builder.append_pax_extensions([extra]).unwrap();
        builder
            .append(&header(EntryType::Regular, b"files/a", 0), &[][..])
            .unwrap();
    });
    // `import` looks for the workspace and the directory.
    let error = import(&stage, &bytes).unwrap_err();
    assert!(matches!(error, Error::RolledBack(_)), "{error:?}");
    stage.is_clean();
}

#[test]
fn an_export_comes_back_as_it_was() {
    let stage = Stage::new();
    let tree = stage.tree();
    stage.create(CreateOptions::default());
    fs::create_dir_all(tree.join("a/b")).unwrap();
    fs::write(tree.join("a/b/c"), vec![1; 3 << 20]).unwrap();
    fs::hard_link(tree.join("a/b/c"), tree.join("a-link")).unwrap();
    fs::write(tree.join("x".repeat(200)), "long name").unwrap();
    symlink("a/b", tree.join("inside")).unwrap();
    symlink("/", tree.join("outside")).unwrap();
    let before = describe(&tree);
    stage.snapshot();
    let file = stage.path().join("export.tar.zst");
    stage
        .manager
        .export(&stage.name, None, &file, &Silent)
        .unwrap();
    let name = "copy".parse().unwrap();
    let dir = stage.path().join("copy");
    let refused = stage
        .manager
        .import(&file, &name, &dir, false, &Silent)
        .unwrap_err();
    assert!(refused.to_string().contains("leads out"), "{refused}");
    stage
        .manager
        .import(&file, &name, &dir, true, &Silent)
        .unwrap();
    assert_eq!(describe(&dir), before);
    stage.is_clean();
}

#[test]
fn snapshots_of_hawk_are_imported() {
    let stage = Stage::new();
    let text = r#"{"id":"sb-0123456789ab","work_dir":"/etc","env_vars":{"LANG":"C","API_TOKEN":"s"},"files":{"main.go":"cGFja2FnZQ==","sub/x":""},"process_state":"idle","created_at":"2024-01-01T00:00:00Z","status":"running"}"#;
    import(&stage, text.as_bytes()).unwrap();
    let dir = stage.path().join("imported");
    assert_eq!(fs::read(dir.join("main.go")).unwrap(), b"package");
    assert_eq!(fs::read(dir.join("sub/x")).unwrap(), b"");
    let shown = stage.manager.show(&"imported".parse().unwrap()).unwrap();
    assert_eq!(shown.env.len(), 1, "{shown:?}");
    assert_eq!(shown.dir, dir);
}
