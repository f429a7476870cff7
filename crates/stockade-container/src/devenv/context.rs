//! What an image is built from: a Dockerfile, the images it starts from, and the files of a project.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::DevEnvError;
use crate::image::{Links, new_archive};

/// The name of the Dockerfile inside the context: none that a project would have.
pub(super) const DOCKERFILE: &str = ".stockade.dockerfile";

/// The images that a Dockerfile starts from; stages of its own are left out.
pub(super) fn bases(dockerfile: &str) -> Vec<String> {
    let mut stages: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for line in dockerfile.lines() {
        let mut words = line
            .split_whitespace()
            .filter(|word| !word.starts_with("--"));
        if !words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("from"))
        {
            continue;
        }
        let Some(base) = words.next() else {
            continue;
        };
        if !stages.iter().any(|stage| stage.eq_ignore_ascii_case(base)) {
            found.push(base.to_owned());
        }
        if words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case("as"))
        {
            stages.extend(words.next().map(str::to_owned));
        }
    }
    found
}

/// Every file, link and directory of a build context, relative and in order, without what
/// `.dockerignore` leaves out.
pub(super) fn context(project: &Path) -> Result<Vec<PathBuf>, DevEnvError> {
    let told = |path: &Path, source| DevEnvError::File {
        act: "read",
        path: path.to_owned(),
        source,
    };
    let ignored = ignored(project);
    let mut left = vec![project.to_owned()];
    let mut found = Vec::new();
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| told(&directory, error))? {
            let entry = entry.map_err(|error| told(&directory, error))?;
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let Ok(relative) = path.strip_prefix(project) else {
                continue;
            };
            if ignored
                .matched_path_or_any_parents(relative, is_directory)
                .is_ignore()
            {
                continue;
            }
            found.push(relative.to_owned());
            if is_directory {
                left.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// `.dockerignore`, whose patterns stand for paths from the top, unlike git's.
fn ignored(project: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let text = fs::read_to_string(project.join(".dockerignore")).unwrap_or_default();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (not, pattern) = match line.strip_prefix('!') {
            Some(pattern) => ("!", pattern),
            None => ("", line),
        };
        let pattern = pattern.trim_start_matches('/').trim_end_matches('/');
        // A line that makes no pattern ignores nothing, as for the engine.
        let _ = builder.add_line(None, &format!("{not}/{pattern}"));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

pub(super) fn digest_file(
    project: &Path,
    relative: &Path,
    hasher: &mut blake3::Hasher,
) -> Result<(), DevEnvError> {
    let path = project.join(relative);
    let told = |source| DevEnvError::File {
        act: "read",
        path: path.clone(),
        source,
    };
    let metadata = fs::symlink_metadata(&path).map_err(told)?;
    hasher.update(relative.as_os_str().as_encoded_bytes());
    hasher.update(format!("\0{:o}\0{}\0", metadata.mode(), metadata.len()).as_bytes());
    if metadata.is_symlink() {
        let target = fs::read_link(&path).map_err(told)?;
        hasher.update(target.as_os_str().as_encoded_bytes());
    } else if metadata.is_file() {
        let mut file = File::open(&path).map_err(told)?;
        let mut own = blake3::Hasher::new();
        io::copy(&mut file, &mut own).map_err(told)?;
        hasher.update(own.finalize().as_bytes());
    }
    Ok(())
}

/// The build context as the engine takes it, with the Dockerfile in it.
pub(super) fn archive(project: &Path, dockerfile: &str) -> Result<Vec<u8>, DevEnvError> {
    let mut archive = new_archive(Links::Keep);
    for relative in context(project)? {
        let path = project.join(&relative);
        let told = |source| DevEnvError::File {
            act: "read",
            path: path.clone(),
            source,
        };
        let kind = fs::symlink_metadata(&path).map_err(told)?.file_type();
        // A pipe or socket is no part of an image, and reading one would wait for ever.
        if kind.is_dir() || kind.is_file() || kind.is_symlink() {
            archive
                .append_path_with_name(&path, &relative)
                .map_err(told)?;
        }
    }
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(dockerfile.len() as u64);
    archive
        .append_data(&mut header, DOCKERFILE, dockerfile.as_bytes())
        .and_then(|()| archive.into_inner())
        .map_err(|source| DevEnvError::File {
            act: "pack",
            path: project.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests;
