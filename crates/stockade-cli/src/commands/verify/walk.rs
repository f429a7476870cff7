//! The files to analyse: as named, and those of directories that .gitignore does not name.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use stockade_verify::Language;

use super::source::Source;

/// Sources in order, and complaints about what can't be walked.
pub(super) fn sources(files: &[PathBuf], language: Option<Language>) -> (Vec<Source>, Vec<String>) {
    let mut sources = Vec::new();
    let mut failures = Vec::new();
    if files.is_empty() {
        sources.push(Source::Stdin { language });
    }
    for file in files {
        if file.as_os_str() == "-" {
            sources.push(Source::Stdin { language });
        } else if file.is_dir() {
            walk(file, language, &mut sources, &mut failures);
        } else {
            sources.push(Source::file(file.clone(), language));
        }
    }
    (sources, failures)
}

fn walk(
    directory: &Path,
    language: Option<Language>,
    sources: &mut Vec<Source>,
    failures: &mut Vec<String>,
) {
    // Links are not followed: a tree of unknown origin may point anywhere.
    let walker = WalkBuilder::new(directory)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .sort_by_file_path(Path::cmp)
        .build();
    for entry in walker {
        match entry {
            Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                let path = entry.into_path();
                // A language given for all holds for files that are code at all.
                let by_name = path
                    .file_name()
                    .and_then(|name| Language::from_file_name(&name.to_string_lossy()));
                let language = by_name.and(language);
                sources.push(Source::Found { path, language });
            }
            Ok(_) => {}
            Err(error) => failures.push(error.to_string()),
        }
    }
}
