//! Which registry cargo uses. It has no command that says so, so its configuration, its copy of
//! the index and, last, the program itself are looked at.

use std::path::{Path, PathBuf};

use super::hosts as hosts_of;

pub(super) fn hosts() -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| {
            let home = std::env::var_os("HOME")?;
            Some(Path::new(&home).join(".cargo"))
        });
    let mut found = Vec::new();
    if let Some(home) = home {
        for name in ["config.toml", "config"] {
            let text = std::fs::read_to_string(home.join(name)).unwrap_or_default();
            found.extend(hosts_of(quoted(&text)));
        }
        found.extend(from_index(&home.join("registry/index")));
    }
    if found.is_empty() {
        found.extend(built_in());
    }
    found
}

/// The quoted texts of a file: addresses among them are those of registries and their mirrors.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').skip(1).step_by(2)
}

/// Each copy of an index is in a directory with the host's name and a hash, and says where the
/// files are.
fn from_index(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.file_name();
        if let Some((host, _)) = name.to_str().and_then(|name| name.rsplit_once('-')) {
            found.extend(hosts_of([format!("https://{host}")]));
        }
        let said = std::fs::read_to_string(entry.path().join("config.json")).unwrap_or_default();
        found.extend(hosts_of(quoted(&said)));
    }
    found
}

/// The address that the program has built in; it asks there where the files are, on the same
/// domain.
fn built_in() -> Vec<String> {
    const MARK: &[u8] = b"sparse+https://";
    let version = super::ask("rustc", &["--print", "sysroot"]);
    let Some(program) = version
        .first()
        .map(|root| Path::new(root).join("bin/cargo"))
    else {
        return Vec::new();
    };
    let bytes = std::fs::read(program).unwrap_or_default();
    let mut places = bytes.windows(MARK.len()).enumerate();
    let found = places.find_map(|(at, window)| {
        let rest = (window == MARK).then(|| &bytes[at + MARK.len()..])?;
        let end = rest
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && !b".-".contains(byte))?;
        let host = std::str::from_utf8(&rest[..end]).ok()?;
        (rest[end] == b'/' && host.contains('.')).then(|| host.to_owned())
    });
    match found {
        // The files are on a sister of the index.
        Some(host) => match host.split_once('.') {
            Some((_, domain)) if domain.contains('.') => vec![format!("*.{domain}")],
            _ => vec![host],
        },
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_and_index_are_read() {
        let text = "[source.mirror]\nregistry = \"sparse+https://mirror.test/index/\"\nx = 'y'\n";
        assert_eq!(hosts_of(quoted(text)), ["mirror.test"]);
        let place = tempfile::tempdir().unwrap();
        let index = place.path().join("index.crates.test-1949cf8c6b5b557f");
        std::fs::create_dir(&index).unwrap();
        std::fs::write(
            index.join("config.json"),
            r#"{"dl":"https://files.test/crates"}"#,
        )
        .unwrap();
        assert_eq!(
            from_index(place.path()),
            ["index.crates.test", "files.test"]
        );
    }
}
