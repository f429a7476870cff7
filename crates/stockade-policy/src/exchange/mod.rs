//! Policies of other sandboxes: read into a profile file, and written from a profile.
//!
//! Protects against a policy that grows on the way: whatever can't be said exactly is left out of
//! what is granted, and noted; an export that would leave a denial out is an error.

mod bwrap;
mod claude;
mod codex;
mod dockerfile;
mod draft;
mod export;
mod srt;
#[cfg(test)]
mod tests;

pub use draft::Draft;
pub use export::{ExportFormat, Exported, NotExpressible, export};

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportFormat {
    /// The words of a command line of bubblewrap.
    Bwrap,
    /// Settings of Claude Code, as far as they are about its sandbox and permissions.
    Claude,
    /// Codex's `config.toml`.
    Codex,
    /// A Dockerfile.
    Dockerfile,
    /// Settings of Anthropic's sandbox-runtime.
    Srt,
}

/// A policy that was read, and what could not be carried over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// What was understood.
    pub draft: Draft,
    /// What was not, one sentence each.
    pub notes: Vec<String>,
}

/// The text is not of the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ImportError(String);

impl ImportFormat {
    /// The format that a file seems to have, by its name and its text.
    pub fn guess(name: &str, text: &str) -> Option<Self> {
        let first = text.split_whitespace().next().unwrap_or_default();
        if name == "Dockerfile" || name == "Containerfile" || first.eq_ignore_ascii_case("FROM") {
            Some(Self::Dockerfile)
        } else if first == "bwrap" || first.ends_with("/bwrap") || first.starts_with("--") {
            Some(Self::Bwrap)
        } else if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
            let has = |key: &str| value.get(key).is_some();
            if has("sandbox") || has("permissions") {
                Some(Self::Claude)
            } else {
                (has("network") || has("filesystem")).then_some(Self::Srt)
            }
        } else {
            let is_toml = toml::from_str::<toml::Table>(text).is_ok();
            is_toml.then_some(Self::Codex)
        }
    }
}

/// Reads a policy of another sandbox.
///
/// # Errors
/// If the text is not of the format.
pub fn import(format: ImportFormat, text: &str) -> Result<Imported, ImportError> {
    match format {
        ImportFormat::Bwrap => Ok(bwrap::import(text)),
        ImportFormat::Claude => claude::import(text),
        ImportFormat::Codex => codex::import(text),
        ImportFormat::Dockerfile => Ok(dockerfile::import(text)),
        ImportFormat::Srt => srt::import(text),
    }
}

impl Imported {
    fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

fn read_json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ImportError> {
    serde_json::from_str(text).map_err(|error| ImportError(error.to_string()))
}
