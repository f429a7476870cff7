//! A store and a directory for each test, and a way to say exactly what a directory is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Child;

use stockade_workspace::{CreateOptions, Silent, Store, WorkspaceManager, WorkspaceName};
use tempfile::TempDir;

/// Everything one test may touch; removed when it is dropped, also when the test fails.
pub(crate) struct Stage {
    dir: TempDir,
    pub(crate) manager: WorkspaceManager,
    pub(crate) name: WorkspaceName,
}

impl Stage {
    /// In memory, where there is such a place: the disk is slow to sync.
    pub(crate) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            Self::below(memory)
        } else {
            Self::below(&std::env::temp_dir())
        }
    }

    fn below(parent: &Path) -> Self {
        sweep(parent);
        let dir = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            .tempdir_in(parent)
            .unwrap();
        fs::create_dir(dir.path().join("tree")).unwrap();
        let store = Store::open(dir.path().join("store")).unwrap();
        Self {
            dir,
            manager: WorkspaceManager::new(store),
            name: "test".parse().unwrap(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    /// Makes the workspace, without a first snapshot.
    pub(crate) fn create(&self, options: CreateOptions) {
        let options = CreateOptions {
            no_baseline: true,
            ..options
        };
        self.manager
            .create(&self.name, &self.tree(), &options, &Silent)
            .unwrap();
    }

    pub(crate) fn snapshot(&self) -> String {
        let record = self.manager.snapshot(&self.name, None, &Silent).unwrap();
        record.id.to_string()
    }

    #[track_caller]
    pub(crate) fn is_clean(&self) {
        let report = self.manager.fsck(&Silent).unwrap();
        assert!(report.is_clean(), "{report:#?}");
    }
}

const PREFIX: &str = "stockade-ws-";

/// Removes what test processes left that were killed, and so could not do it themselves.
fn sweep(parent: &Path) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let owner = owner.and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
            if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    });
}

/// What one file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    mode: u32,
    owner: (u32, u32),
    mtime: (i64, i64),
    what: String,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Everything below a directory, itself included, by every attribute.
pub(crate) fn describe(top: &Path) -> BTreeMap<Vec<u8>, Described> {
    let mut found = BTreeMap::new();
    let mut first_names = BTreeMap::new();
    walk(top, b"", &mut found, &mut first_names);
    found
}

fn walk(
    path: &Path,
    relative: &[u8],
    found: &mut BTreeMap<Vec<u8>, Described>,
    first_names: &mut BTreeMap<(u64, u64), Vec<u8>>,
) {
    let metadata = fs::symlink_metadata(path).unwrap();
    let kind = metadata.file_type();
    let mut what = if kind.is_dir() {
        "directory".to_owned()
    } else if kind.is_symlink() {
        format!(
            "link to {:?}",
            fs::read_link(path).unwrap().as_os_str().as_bytes()
        )
    } else if kind.is_fifo() {
        "fifo".to_owned()
    } else if kind.is_socket() {
        "socket".to_owned()
    } else if kind.is_file() {
        let content = fs::read(path).unwrap();
        format!(
            "{} bytes: {:?}",
            content.len(),
            stockade_workspace::ObjectId::of(&content)
        )
    } else {
        format!("device {}", metadata.rdev())
    };
    if !kind.is_dir() && metadata.nlink() > 1 {
        let id = (metadata.dev(), metadata.ino());
        let first = first_names.entry(id).or_insert_with(|| relative.to_vec());
        what = format!("{what} named {first:?}");
    }
    let xattrs = if kind.is_file() || kind.is_dir() {
        attributes(path)
    } else {
        Vec::new()
    };
    let described = Described {
        mode: metadata.mode(),
        owner: (metadata.uid(), metadata.gid()),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        what,
        xattrs,
    };
    found.insert(relative.to_vec(), described);
    if kind.is_dir() {
        let mut entries: Vec<_> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        entries.sort();
        for entry in entries {
            let mut relative = relative.to_vec();
            relative.push(b'/');
            relative.extend_from_slice(entry.file_name().unwrap().as_bytes());
            walk(&entry, &relative, found, first_names);
        }
    }
}

fn attributes(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let Ok(length) = rustix::fs::llistxattr(path, &mut names) else {
        return Vec::new();
    };
    let mut found: Vec<_> = names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| name.starts_with(b"user."))
        .map(|name| {
            let mut value = vec![0; 4096];
            let length = rustix::fs::lgetxattr(path, name, &mut value).unwrap();
            value.truncate(length);
            (name.to_vec(), value)
        })
        .collect();
    found.sort();
    found
}

impl Described {
    pub(crate) fn without_attributes(mut self) -> Self {
        self.xattrs.clear();
        self
    }
}

/// Numbers that differ from run to run, for where the seed is told when a test fails.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Has this test program do `what` in a process of its own, which can be killed.
pub(crate) fn in_a_process(stage: &Stage, what: &str) -> Victim {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["stage::victim", "--exact", "--ignored", "--nocapture"])
        .env("STOCKADE_VICTIM", what)
        .env("STOCKADE_VICTIM_IN", stage.path())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn();
    Victim(child.unwrap())
}

/// A process that does not outlive the test: it would write where the test cleans up.
pub(crate) struct Victim(pub(crate) Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until what [`in_a_process`] started has begun with its work.
pub(crate) fn has_begun(victim: &mut Victim) {
    let mut out = BufReader::new(victim.0.stdout.take().unwrap());
    let begun = out
        .by_ref()
        .lines()
        .any(|line| line.unwrap().ends_with(BEGUN));
    assert!(begun, "it never began");
    // It will say more, and must not fail at that.
    victim.0.stdout = Some(out.into_inner());
}

const BEGUN: &str = "begun";

/// Not a test: what [`in_a_process`] starts.
#[test]
#[ignore = "started by other tests"]
fn victim() {
    let Some(what) = std::env::var_os("STOCKADE_VICTIM") else {
        return;
    };
    let dir = PathBuf::from(std::env::var_os("STOCKADE_VICTIM_IN").unwrap());
    let manager = WorkspaceManager::new(Store::open(dir.join("store")).unwrap());
    let name: WorkspaceName = "test".parse().unwrap();
    let what = what.into_string().unwrap();
    let _ = writeln!(std::io::stdout(), "{BEGUN}");
    match what.split_once(' ').unwrap_or((&what, "")) {
        ("snapshot", _) => drop(manager.snapshot(&name, None, &Silent).unwrap()),
        ("restore", id) => {
            let mode = stockade_workspace::RestoreMode::Exact;
            manager.restore(&name, id, mode, &Silent).unwrap();
        }
        ("gc", _) => drop(manager.gc().unwrap()),
        ("commit", _) => {
            let overlay = manager.existing_overlay(&name).unwrap().unwrap();
            let refuse = stockade_workspace::Resolve::Refuse;
            crate::overlays::commit(overlay, &[], refuse).unwrap();
        }
        ("crowd", seed) => crate::crowd::member(&manager, &dir, seed.parse().unwrap()),
        other => panic!("{other:?}"),
    }
}
