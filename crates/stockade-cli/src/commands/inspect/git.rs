//! `inspect --git`: every blob that a repository's history reaches, each once.
//!
//! The repository is hostile. Git's plumbing reads it, as a child with an environment of its own: no
//! hook, no filter, no pager, no external diff, no fetch of missing objects, no file of the user's
//! configuration. Blobs are streamed, so memory grows with their number only, not with their size.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, IsTerminal as _, Read, Write};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::exit::Exit;
use crate::failure::Failure;

/// Where a blob appeared first.
pub(super) struct Blob {
    pub(super) commit: String,
    pub(super) path: PathBuf,
    pub(super) id: String,
}

/// The blobs of a history, oldest commit first.
pub(super) struct History {
    commits: Running,
    changes: Running,
    output: BufReader<ChildStdout>,
    commit: String,
    seen: HashSet<String>,
}

impl History {
    pub(super) fn open(directory: &Path) -> anyhow::Result<Self> {
        check(directory)?;
        let mut commits = Running::start(
            git(directory)
                .args(["rev-list", "--all", "--topo-order", "--reverse"])
                .stdin(Stdio::null()),
        )?;
        let list = commits.stdout()?;
        // Merges are compared with each parent: what only a merge brought in is in no other commit.
        let mut changes = Running::start(
            git(directory)
                .args(["diff-tree", "--stdin", "-r", "-m", "--root", "--raw", "-z"])
                .args([
                    "--no-renames",
                    "--no-abbrev",
                    "--no-ext-diff",
                    "--no-textconv",
                ])
                .stdin(Stdio::from(list)),
        )?;
        let output = BufReader::new(changes.stdout()?);
        Ok(Self {
            commits,
            changes,
            output,
            commit: String::new(),
            seen: HashSet::new(),
        })
    }

    /// The next blob that was not seen before.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Blob>> {
        loop {
            let Some(record) = self.record()? else {
                self.changes.finish("diff-tree")?;
                self.commits.finish("rev-list")?;
                return Ok(None);
            };
            let record = String::from_utf8(record).context("`git diff-tree` printed no text")?;
            let Some(change) = record.strip_prefix(':') else {
                self.commit = record;
                continue;
            };
            // old mode, new mode, old id, new id, status; then the path.
            let fields: Vec<&str> = change.split(' ').collect();
            let path = self.record()?.context("`git diff-tree` printed no path")?;
            let [_, mode, _, id, _] = fields[..] else {
                anyhow::bail!("`git diff-tree` printed `{change}`");
            };
            // A file or a link: what is removed has mode 0, a submodule is a commit.
            let is_blob = mode.starts_with("100") || mode == "120000";
            if is_blob && self.seen.insert(id.to_owned()) {
                return Ok(Some(Blob {
                    commit: self.commit.clone(),
                    path: PathBuf::from(OsString::from_vec(path)),
                    id: id.to_owned(),
                }));
            }
        }
    }

    fn record(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut record = Vec::new();
        self.output.read_until(0, &mut record)?;
        Ok((record.pop() == Some(0)).then_some(record))
    }
}

/// Contents of blobs, by id.
pub(super) struct Contents {
    child: Running,
    requests: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Contents {
    pub(super) fn open(directory: &Path) -> anyhow::Result<Self> {
        let mut child = Running::start(
            git(directory)
                .args(["cat-file", "--batch"])
                .stdin(Stdio::piped()),
        )?;
        let requests = child
            .0
            .stdin
            .take()
            .context("`git cat-file` has no input")?;
        let output = BufReader::new(child.stdout()?);
        Ok(Self {
            child,
            requests,
            output,
        })
    }

    /// Hands each piece of a blob to `each`; its size, or nothing if the repository lacks it.
    pub(super) fn read(
        &mut self,
        id: &str,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<Option<u64>, Failure> {
        let unreadable = |error| Failure::new(Exit::Usage, error);
        let Some(size) = self.ask(id).map_err(unreadable)? else {
            return Ok(None);
        };
        let mut left = size;
        let mut chunk = vec![0; super::CHUNK];
        while left > 0 {
            let wanted = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = self.output.read(&mut chunk[..wanted]);
            match read
                .context("can't read from `git cat-file`")
                .map_err(unreadable)?
            {
                0 => {
                    return Err(unreadable(anyhow::anyhow!(
                        "`git cat-file` ended within {id}"
                    )));
                }
                length => {
                    each(&chunk[..length])?;
                    left -= length as u64;
                }
            }
        }
        // A line break ends each answer.
        let end = self.output.read_exact(&mut [0]);
        end.context("can't read from `git cat-file`")
            .map_err(unreadable)?;
        Ok(Some(size))
    }

    fn ask(&mut self, id: &str) -> anyhow::Result<Option<u64>> {
        writeln!(self.requests, "{id}")?;
        self.requests.flush()?;
        let mut header = String::new();
        self.output.read_line(&mut header)?;
        let mut words = header.split_whitespace().skip(1);
        match (words.next(), words.next()) {
            (Some("missing"), _) => Ok(None),
            (Some("blob"), Some(size)) => Ok(Some(size.parse()?)),
            _ => anyhow::bail!("`git cat-file` answered `{}`", header.trim_end()),
        }
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self {
            mut child,
            requests,
            output,
        } = self;
        drop(requests);
        drop(output);
        child.finish("cat-file")
    }
}

/// Progress for a person, if there is one at the terminal.
pub(super) struct Progress {
    shown: Option<Instant>,
    is_wanted: bool,
}

impl Progress {
    pub(super) fn new(is_quiet: bool) -> Self {
        Self {
            shown: None,
            is_wanted: !is_quiet && io::stderr().is_terminal(),
        }
    }

    pub(super) fn show(&mut self, blobs: u64, bytes: u64, findings: u64) {
        let is_due = self
            .shown
            .is_none_or(|last| last.elapsed() >= Duration::from_millis(200));
        if self.is_wanted && is_due {
            let megabytes = bytes / 1_000_000;
            // A terminal that is gone needs no progress.
            let _ = write!(
                io::stderr(),
                "\r\x1b[K{blobs} blobs, {megabytes} MB, {findings} findings"
            );
            self.shown = Some(Instant::now());
        }
    }

    /// Removes the line, so that findings stand alone.
    pub(super) fn clear(&mut self) {
        if self.shown.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// A child that ends with its owner.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> anyhow::Result<Self> {
        let child = command
            .stdout(Stdio::piped())
            .spawn()
            .context("can't start `git`")?;
        Ok(Self(child))
    }

    fn stdout(&mut self) -> anyhow::Result<ChildStdout> {
        self.0.stdout.take().context("`git` has no output")
    }

    fn finish(&mut self, name: &str) -> anyhow::Result<()> {
        let status = self.0.wait()?;
        anyhow::ensure!(status.success(), "`git {name}` failed: {status}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already reaped after `finish`; else the report was cut short and nothing is lost.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fails with git's own reason if the directory is no repository.
fn check(directory: &Path) -> anyhow::Result<()> {
    let output = git(directory)
        .args(["rev-parse", "--git-dir"])
        .stdin(Stdio::null())
        .output()
        .context("can't start `git`")?;
    let reason = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "can't read the history of `{}`: {}",
        directory.display(),
        reason.trim()
    );
    Ok(())
}

/// Git with nothing of the user's environment and nothing in a repository's configuration that runs
/// a program or reaches a network.
fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .envs([
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ])
        .arg("-C")
        .arg(directory)
        .args(["-c", "core.fsmonitor=false", "-c", "protocol.allow=never"])
        .args(["-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"])
        .arg("--no-pager");
    command
}
