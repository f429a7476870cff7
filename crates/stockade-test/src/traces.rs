//! What a suite could leave on the host: processes, mounts, control groups, files, a user.
//!
//! Only what is ours is told: other programs, and other suites, may run at the same time. A name
//! that a live process uses belongs to a sandbox that runs now, and goes with it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::census;
use crate::stage::{Stage, user_remains};
use crate::world::mark;

/// Where the product or a test could leave something outside every fixture.
const PLACES: [&str; 5] = ["/tmp", "/run", "/dev/shm", "/dev/mqueue", "/var/tmp"];

/// What cleans up behind a launcher that was killed is a process of its own, and has to get its
/// turn first. What is left stays for ever.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(30);

/// Names like ours that were there before the suite.
pub(crate) struct Traces(Vec<PathBuf>);

impl Traces {
    pub(crate) fn now() -> Self {
        let groups = list("/sys/fs/cgroup".as_ref());
        let places = PLACES.iter().map(PathBuf::from).chain(groups);
        Self(places.flat_map(|place| ours(&place)).collect())
    }

    /// Takes the stage down and looks for what is there beyond that.
    pub(crate) fn check(&self, stage: Arc<Stage>) -> Result<(), Failure> {
        let dir = stage.dir.clone();
        let strays = census::outlive(census::members(&dir, &mark()), census::TO_DIE);
        let mut left: Vec<String> = strays.iter().map(census::Member::describe).collect();
        census::end(strays);
        match Arc::try_unwrap(stage) {
            Ok(stage) => drop(stage),
            Err(_) => left.push("a test still holds the stage".to_owned()),
        }
        left.extend(self.stays(&dir).into_values());
        if left.is_empty() {
            return Ok(());
        }
        Err(format!("left behind on the host:\n{}", left.join("\n")))
    }

    /// What is there all the time, by name: what another suite makes meanwhile comes and goes.
    fn stays(&self, dir: &Path) -> BTreeMap<PathBuf, String> {
        let end = Instant::now() + CLEANUP_TIMEOUT;
        let mut left = self.beyond(dir);
        while !left.is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
            let now = self.beyond(dir);
            left.retain(|name, _| now.contains_key(name));
        }
        left
    }

    fn beyond(&self, dir: &Path) -> BTreeMap<PathBuf, String> {
        let Self(names) = Self::now();
        let names = names.into_iter().filter(|name| !self.0.contains(name));
        let names = names.filter(|name| !is_used(name)).chain([dir.to_owned()]);
        let mut left: BTreeMap<_, _> = names
            .filter_map(|name| Some((name.clone(), describe(&name)?)))
            .collect();
        left.extend(mounts_below(dir));
        if user_remains() {
            left.insert("/etc/passwd".into(), "the ordinary user".to_owned());
        }
        left
    }
}

/// Mounts at or of something below a directory, by their number.
fn mounts_below(dir: &Path) -> Vec<(PathBuf, String)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mounts = mounts.lines().filter(|line| {
        let mut fields = line.split(' ');
        fields.any(|field| Path::new(field).starts_with(dir))
    });
    let number = |line: &str| line.split(' ').next().unwrap_or_default().into();
    mounts
        .map(|line| (number(line), format!("mount {line}")))
        .collect()
}

fn list(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect()
}

/// Names that the product or this suite would use.
fn ours(dir: &Path) -> Vec<PathBuf> {
    let mark = mark();
    let mine = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.contains("stockade") || name.contains(&mark)
    };
    list(dir).into_iter().filter(mine).collect()
}

/// Whether a process is in the control group, or names the file or mounts it.
fn is_used(path: &Path) -> bool {
    let procs = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let text = path.as_os_str().as_encoded_bytes();
    !procs.trim().is_empty() || list("/proc".as_ref()).iter().any(|proc| names(proc, text))
}

fn names(proc: &Path, text: &[u8]) -> bool {
    let other = proc.file_name() != Some(std::process::id().to_string().as_ref());
    let mut files = ["cmdline", "environ", "mountinfo"].iter();
    other
        && files
            .any(|file| fs::read(proc.join(file)).is_ok_and(|bytes| census::contains(&bytes, text)))
}

/// What is at a path, if there is anything: its kind, owner, and a little of what is in it.
fn describe(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::symlink_metadata(path).ok()?;
    let inside: Vec<String> = list(path)
        .iter()
        .filter_map(|entry| Some(entry.file_name()?.to_string_lossy().into_owned()))
        .take(8)
        .collect();
    let age = found.modified().ok().and_then(|time| time.elapsed().ok());
    Some(format!(
        "{}: {:?} of user {}, changed {:?} ago, with {inside:?}",
        path.display(),
        found.file_type(),
        found.uid(),
        age.unwrap_or_default(),
    ))
}
