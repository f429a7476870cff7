//! The file with the refusals of the last runs: one line of JSON for each run, the newest last.
//!
//! It lies in a directory that is this user's alone and that the policy closes to every sandbox.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use stockade_engine::Denial;

use crate::exit::Exit;
use crate::failure::Failure;

/// A run that was refused something.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LoggedRun {
    pub(super) time_ms: u64,
    pub(super) dir: String,
    pub(super) command: Vec<String>,
    pub(super) exit: u8,
    pub(super) refused: Vec<Refusal>,
    /// How many refusals were left out.
    pub(super) more: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refusal {
    pub(super) what: String,
    pub(super) grant: String,
}

/// Beyond this length the older half of the file is dropped.
const MAX_FILE_BYTES: usize = 1 << 20;
const MAX_REFUSALS: usize = 50;
const MAX_WORDS: usize = 32;
/// Commands choose the names that are refused.
const MAX_TEXT_BYTES: usize = 1024;

impl LoggedRun {
    pub(crate) fn new<'a>(
        command: impl Iterator<Item = std::borrow::Cow<'a, str>>,
        dir: &Path,
        exit: Exit,
        denials: &[Denial],
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = now.map_or(0, |now| now.as_millis());
        let refused = denials.iter().take(MAX_REFUSALS).map(|denial| Refusal {
            what: cut(denial.to_string()),
            grant: cut(denial.grant.to_string()),
        });
        Self {
            time_ms: u64::try_from(millis).unwrap_or(u64::MAX),
            dir: cut(dir.to_string_lossy().into_owned()),
            command: command
                .take(MAX_WORDS)
                .map(|word| cut(word.into_owned()))
                .collect(),
            exit: exit.code(),
            refused: refused.collect(),
            more: denials.len().saturating_sub(MAX_REFUSALS),
        }
    }

    /// Whether the file has every refusal of the run.
    pub(crate) const fn is_whole(&self) -> bool {
        self.more == 0
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        let is_boundary = |end: &usize| text.is_char_boundary(*end);
        let end = (0..=MAX_TEXT_BYTES).rev().find(is_boundary);
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    text
}

/// Adds a run.
pub(crate) fn append(run: &LoggedRun) -> io::Result<()> {
    let directory = directory().ok_or(io::ErrorKind::NotFound)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)?;
    append_in(&directory, run)
}

fn append_in(directory: &Path, run: &LoggedRun) -> io::Result<()> {
    let mut file = open(directory, OFlags::RDWR | OFlags::CREATE)?;
    lock(&file, FlockOperation::LockExclusive)?;
    let mut line = serde_json::to_vec(run)?;
    line.push(b'\n');
    let length = file.seek(SeekFrom::End(0))?;
    if usize::try_from(length).is_ok_and(|length| length + line.len() <= MAX_FILE_BYTES) {
        return file.write_all(&line);
    }
    let mut kept = newest_half(&mut file)?;
    kept.extend(line);
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&kept)
}

/// The newest whole lines, up to half the allowed length.
fn newest_half(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(MAX_FILE_BYTES as u64 / 2);
    file.seek(SeekFrom::Start(start))?;
    let mut kept = Vec::new();
    file.take(MAX_FILE_BYTES as u64).read_to_end(&mut kept)?;
    let first_end = kept.iter().position(|byte| *byte == b'\n');
    let whole = first_end.map_or(kept.len(), |end| end + 1);
    Ok(kept.split_off(whole))
}

/// All runs that the file has, the newest last.
pub(super) fn read() -> Result<Vec<LoggedRun>, Failure> {
    let directory = directory()
        .ok_or_else(|| Failure::text(Exit::Negative, "there is no log: HOME is not set"))?;
    read_in(&directory).map_err(|error| {
        let what = format!("can't read the log in `{}`", directory.display());
        Failure::new(Exit::Negative, anyhow::Error::new(error).context(what))
    })
}

fn read_in(directory: &Path) -> io::Result<Vec<LoggedRun>> {
    let file = match open(directory, OFlags::RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    lock(&file, FlockOperation::LockShared)?;
    let mut bytes = Vec::new();
    file.take(2 * MAX_FILE_BYTES as u64)
        .read_to_end(&mut bytes)?;
    let lines = bytes.split(|byte| *byte == b'\n');
    // A run that was killed may have left half a line.
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

fn open(directory: &Path, flags: OFlags) -> io::Result<File> {
    let found = fs::symlink_metadata(directory)?;
    let own = rustix::process::geteuid().as_raw();
    if !found.is_dir() || found.uid() != own || found.mode() & 0o077 != 0 {
        let text = "it is not a directory that belongs to this user alone (mode 0700)";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(directory.join(NAME), flags, Mode::from_raw_mode(0o600))?;
    Ok(File::from(file))
}

fn lock(file: &File, how: FlockOperation) -> io::Result<()> {
    loop {
        match rustix::fs::flock(file, how) {
            Err(rustix::io::Errno::INTR) => {}
            locked => return Ok(locked?),
        }
    }
}

fn directory() -> Option<PathBuf> {
    stockade_policy::state_directory().map(|path| path.as_path().to_owned())
}

const NAME: &str = "refusals.jsonl";

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn run(number: u64, text: &str) -> LoggedRun {
        LoggedRun {
            time_ms: number,
            dir: "/".to_owned(),
            command: vec!["true".to_owned()],
            exit: 0,
            refused: vec![Refusal {
                what: text.to_owned(),
                grant: String::new(),
            }],
            more: 0,
        }
    }

    fn private() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        dir
    }

    #[test]
    fn the_file_stays_small_and_keeps_the_newest() {
        let dir = private();
        let text = "x".repeat(4000);
        for number in 0..1000 {
            append_in(dir.path(), &run(number, &text)).unwrap();
            let length = fs::metadata(dir.path().join(NAME)).unwrap().len();
            assert!(length <= MAX_FILE_BYTES as u64, "{length}");
        }
        let times: Vec<u64> = read_in(dir.path())
            .unwrap()
            .iter()
            .map(|run| run.time_ms)
            .collect();
        assert_eq!(times.last(), Some(&999));
        assert!(times.len() > 100, "{}", times.len());
        assert!(times.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    }

    #[test]
    fn half_a_line_is_left_out() {
        let dir = private();
        append_in(dir.path(), &run(1, "a\nb")).unwrap();
        let mut file = File::options()
            .append(true)
            .open(dir.path().join(NAME))
            .unwrap();
        file.write_all(b"{\"time_ms\":2,\n").unwrap();
        append_in(dir.path(), &run(3, "c")).unwrap();
        let found = read_in(dir.path()).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].refused[0].what, "a\nb");
    }

    #[test]
    fn neither_a_link_nor_a_directory_of_others_is_used() {
        let dir = private();
        let victim = dir.path().join("victim");
        fs::write(&victim, "").unwrap();
        symlink(&victim, dir.path().join(NAME)).unwrap();
        assert!(append_in(dir.path(), &run(1, "a")).is_err());
        assert_eq!(fs::read(&victim).unwrap(), b"");
        let open = private();
        fs::set_permissions(open.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(append_in(open.path(), &run(1, "a")).is_err());
        assert!(read_in(open.path()).is_err());
    }
}
