//! The process inside that works on files: it is confined as every command of the session is, so
//! whatever a path leads to, it gets no further than they do.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde::Serialize;

use super::{Answer, MAX_LIST_ENTRIES, Order};
use crate::api::{FileEntry, FileKind, FileList, FileStat};

/// The first argument of the process.
pub(super) const MARKER: &str = "--stockade-files";

/// Whether this process was started to work on files.
pub fn is_requested() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == MARKER)
}

/// Carries out one order, which comes on standard output: standard input is the program.
pub fn main() -> u8 {
    // The server sees the socket close, and says so.
    u8::from(carry_out().is_err())
}

fn carry_out() -> io::Result<()> {
    let line = UnixStream::from(rustix::io::dup(rustix::stdio::stdout())?);
    let mut input = BufReader::new(line.try_clone()?);
    let mut text = String::new();
    input.read_line(&mut text)?;
    let order: Order = serde_json::from_str(&text)?;
    match order {
        Order::Read {
            path,
            offset,
            length,
        } => match read(&path, offset, length) {
            Ok((content, is_end)) => answer(line, Ok(is_end), &content),
            Err(error) => answer::<bool>(line, Err((error, &path)), &[]),
        },
        Order::Write {
            path,
            append,
            parents,
            mode,
            length,
        } => {
            let mut content = Vec::new();
            input.take(length).read_to_end(&mut content)?;
            let written = write(Path::new(&path), &content, append, parents, mode);
            answer(line, written.map_err(|error| (error, path.as_str())), &[])
        }
        Order::List { path } => answer(
            line,
            list(&path).map_err(|error| (error, path.as_str())),
            &[],
        ),
        Order::Stat { path } => answer(
            line,
            stat(&path).map_err(|error| (error, path.as_str())),
            &[],
        ),
    }
}

fn answer<T: Serialize>(
    mut line: UnixStream,
    outcome: Result<T, (io::Error, &str)>,
    content: &[u8],
) -> io::Result<()> {
    let answer = match outcome {
        Ok(value) => Answer::Done(value),
        Err((error, path)) => Answer::Failed {
            errno: error.raw_os_error().unwrap_or_default(),
            message: format!("`{path}`: {error}"),
        },
    };
    let mut bytes = serde_json::to_vec(&answer)?;
    bytes.push(b'\n');
    bytes.extend_from_slice(content);
    line.write_all(&bytes)
}

fn read(path: &str, offset: u64, length: u64) -> io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    // A FIFO has no positions.
    if offset > 0 {
        file.seek(SeekFrom::Start(offset))?;
    }
    let mut content = Vec::new();
    (&file).take(length).read_to_end(&mut content)?;
    let is_end = file.read(&mut [0])? == 0;
    Ok((content, is_end))
}

fn write(
    path: &Path,
    content: &[u8],
    append: bool,
    parents: bool,
    mode: Option<u32>,
) -> io::Result<()> {
    if let (true, Some(above)) = (parents, path.parent()) {
        fs::create_dir_all(above)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(append);
    options.write(!append).truncate(!append);
    // No file becomes set-user-id by way of this.
    options.mode(mode.unwrap_or(0o666) & 0o777);
    options.open(path)?.write_all(content)
}

fn list(path: &str) -> io::Result<FileList> {
    let mut entries = Vec::new();
    let mut truncated = false;
    for entry in fs::read_dir(path)? {
        if entries.len() == MAX_LIST_ENTRIES {
            truncated = true;
            break;
        }
        let entry = entry?;
        let kind = entry.file_type()?;
        entries.push(FileEntry {
            name: entry.file_name().to_string_lossy().into_owned(),
            kind: kind_of(kind),
        });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(FileList { entries, truncated })
}

fn stat(path: &str) -> io::Result<FileStat> {
    let found: Metadata = fs::symlink_metadata(path)?;
    let kind = kind_of(found.file_type());
    let target = match kind {
        FileKind::Symlink => Some(fs::read_link(path)?.to_string_lossy().into_owned()),
        _ => None,
    };
    Ok(FileStat {
        kind,
        size: found.len(),
        mode: found.permissions().mode() & 0o7777,
        modified_ms: found.mtime() * 1000 + found.mtime_nsec() / 1_000_000,
        target,
    })
}

fn kind_of(kind: fs::FileType) -> FileKind {
    if kind.is_file() {
        FileKind::File
    } else if kind.is_dir() {
        FileKind::Directory
    } else if kind.is_symlink() {
        FileKind::Symlink
    } else {
        FileKind::Other
    }
}
