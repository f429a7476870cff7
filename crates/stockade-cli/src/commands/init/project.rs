//! What can be seen of a project from its files. They may come from anybody, so no link is
//! followed, no file is read whole that is too large, and nothing is believed but names.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use serde::Serialize;
use stockade_policy::host::HostPattern;

/// A file by which a language is known, and what people run there.
struct Marker {
    file: &'static str,
    language: &'static str,
    command: &'static str,
}

const MARKERS: &[Marker] = &[
    marker("Cargo.toml", "Rust", "cargo test"),
    marker("go.mod", "Go", "go test ./..."),
    marker("package.json", "JavaScript", "npm test"),
    marker("pyproject.toml", "Python", "python3 -m pytest"),
    marker("requirements.txt", "Python", "python3 -m pytest"),
    marker("pom.xml", "Java", "mvn test"),
    marker("build.gradle", "Java", "gradle test"),
    marker("Gemfile", "Ruby", "bundle exec rake"),
    marker("Makefile", "Make", "make"),
];

const fn marker(file: &'static str, language: &'static str, command: &'static str) -> Marker {
    Marker {
        file,
        language,
        command,
    }
}

/// Files that name the hosts that packages come from.
const LOCK_FILES: &[&str] = &[
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
    "package-lock.json",
    "pnpm-lock.yaml",
    "poetry.lock",
    "uv.lock",
    "yarn.lock",
];

/// Endings of names that keys have.
const SECRET_ENDINGS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".jks"];
/// Names of files and directories that hold secrets.
const SECRET_NAMES: &[&str] = &[".env", "secrets", ".secrets", "credentials.json"];
/// Files of that kind which are made to be shown.
const EXAMPLE_ENDINGS: &[&str] = &[".example", ".sample", ".template", ".dist"];

const MAX_LOCK_FILE_BYTES: u64 = 16 << 20;
const MAX_HOSTS: usize = 16;
const MAX_SECRETS: usize = 32;
/// What is run where nothing tells what people run.
const PLAIN_COMMAND: &str = "ls";

/// What a project is made of.
#[derive(Debug, Default, Serialize)]
pub(super) struct Project {
    pub(super) languages: Vec<&'static str>,
    /// Names in the project that look like secrets.
    pub(super) secrets: Vec<String>,
    /// Hosts that lock files name.
    pub(super) hosts: Vec<String>,
    #[serde(skip)]
    command: Option<&'static str>,
}

impl Project {
    pub(super) fn look(directory: &Path) -> Self {
        let mut project = Self::default();
        for marker in MARKERS {
            if is_ordinary_file(&directory.join(marker.file)) {
                if !project.languages.contains(&marker.language) {
                    project.languages.push(marker.language);
                }
                project.command.get_or_insert(marker.command);
            }
        }
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let secrets: BTreeSet<String> = names.filter(|name| looks_secret(name)).collect();
        project.secrets = secrets.into_iter().take(MAX_SECRETS).collect();
        let texts = LOCK_FILES.iter().map(|name| read(&directory.join(name)));
        let hosts: BTreeSet<String> = texts.flat_map(|text| hosts(&text)).collect();
        project.hosts = hosts.into_iter().take(MAX_HOSTS).collect();
        project
    }

    /// What people run in such a project.
    pub(super) fn command(&self) -> &'static str {
        self.command.unwrap_or(PLAIN_COMMAND)
    }
}

fn is_ordinary_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_file())
}

/// The text of an ordinary file, or nothing.
fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    if is_ordinary_file(path)
        && let Ok(file) = File::open(path)
    {
        let _ = file.take(MAX_LOCK_FILE_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a name in a project looks like a secret. Names that a pattern would mean something else
/// by, or that can't stand in a file of settings, are left out.
fn looks_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| lower.ends_with(ending));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.chars().all(is_plain)
        && !ends(EXAMPLE_ENDINGS)
        && (SECRET_NAMES.contains(&lower.as_str())
            || lower.starts_with(".env.")
            || ends(SECRET_ENDINGS))
}

/// The hosts of the addresses in a text.
fn hosts(text: &str) -> BTreeSet<String> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let addresses = text.split("://").skip(1);
    addresses
        .filter_map(|rest| {
            let end = rest.find(|c| !is_host(c)).unwrap_or(rest.len());
            let host = rest[..end].to_ascii_lowercase();
            // A name in front of `@` is a user, not a host.
            let is_user = rest[end..].starts_with('@');
            (!is_user && host.contains('.') && HostPattern::parse(&host).is_ok()).then_some(host)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_taken_from_addresses_only() {
        let text = r#"
            "resolved": "https://Packages.example.org/a/-/a-1.0.tgz",
            source = "registry+https://index.example.net/x"
            git+ssh://git@code.example.com/a.git, see example.edu
            http://localhost/ https://] https://-bad-.. "#;
        let found: Vec<String> = hosts(text).into_iter().collect();
        assert_eq!(found, ["index.example.net", "packages.example.org"]);
    }

    #[test]
    fn secrets_are_known_by_name() {
        for name in [".env", ".env.local", "server.PEM", "id.key", "secrets"] {
            assert!(looks_secret(name), "{name}");
        }
        for name in [".env.example", "keys.rs", "environment", "a\n.pem", "*.key"] {
            assert!(!looks_secret(name), "{name}");
        }
    }
}
