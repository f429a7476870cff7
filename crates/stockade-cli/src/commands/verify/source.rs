//! One thing to analyse: standard input or a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use stockade_verify::Language;

/// Where code comes from.
pub(super) enum Source {
    Stdin {
        language: Option<Language>,
    },
    /// A file that was named.
    Named {
        path: PathBuf,
        language: Option<Language>,
    },
    /// A file met in a directory; left out if it is no code.
    Found {
        path: PathBuf,
        language: Option<Language>,
    },
}

/// The first bytes of a source, and what is known of it.
pub(super) struct Loaded {
    pub(super) head: Vec<u8>,
    /// Its whole length, as far as known.
    pub(super) whole: usize,
    pub(super) language: Option<Language>,
}

impl Source {
    pub(super) fn file(path: PathBuf, language: Option<Language>) -> Self {
        Self::Named { path, language }
    }

    /// The name for people.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Stdin { .. } => "-".to_owned(),
            Self::Named { path, .. } | Self::Found { path, .. } => path.display().to_string(),
        }
    }

    /// Reads at most a little more than `most` bytes. `None`: a file of a directory that is no
    /// code.
    pub(super) fn load(&self, most: usize) -> io::Result<Option<Loaded>> {
        match self {
            Self::Stdin { language } => {
                let (head, whole) = read(io::stdin().lock(), most, 0)?;
                let language = language.or_else(|| by_content(&head));
                Ok(Some(Loaded {
                    head,
                    whole,
                    language,
                }))
            }
            Self::Named { path, language } | Self::Found { path, language } => {
                let by_name = path
                    .file_name()
                    .and_then(|name| Language::from_file_name(&name.to_string_lossy()));
                let known = language.or(by_name);
                let found = matches!(self, Self::Found { .. });
                if found && known.is_none() && path.extension().is_some() {
                    return Ok(None);
                }
                let mut file = File::open(path)?;
                if found && known.is_none() {
                    // Without a name that tells, only a first line that does makes it code.
                    let mut first = [0; 2];
                    if file.read(&mut first)? < 2 || first != *b"#!" {
                        return Ok(None);
                    }
                    file = File::open(path)?;
                }
                let size = file.metadata().map_or(0, |data| data.len());
                let (head, read) = read(file, most, size)?;
                let whole = usize::try_from(size).unwrap_or(usize::MAX).max(read);
                let language = known.or_else(|| by_content(&head));
                if found && language.is_none() {
                    return Ok(None);
                }
                Ok(Some(Loaded {
                    head,
                    whole,
                    language,
                }))
            }
        }
    }
}

fn read(source: impl Read, most: usize, expected: u64) -> io::Result<(Vec<u8>, usize)> {
    let expected = usize::try_from(expected).unwrap_or(most).min(most);
    let mut head = Vec::with_capacity(expected.saturating_add(64));
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(4);
    source.take(limit).read_to_end(&mut head)?;
    let length = head.len();
    Ok((head, length))
}

fn by_content(head: &[u8]) -> Option<Language> {
    let part = &head[..head.len().min(16 << 10)];
    Language::from_content(&String::from_utf8_lossy(part))
}
