//! Which mirrors apt uses: sources.list(5), in both of its formats.

use std::path::{Path, PathBuf};

use super::hosts as hosts_of;

pub(super) fn hosts() -> Vec<String> {
    in_directory(Path::new("/etc/apt"))
}

fn in_directory(directory: &Path) -> Vec<String> {
    let parts = std::fs::read_dir(directory.join("sources.list.d"));
    let parts = parts.into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = parts.map(|entry| entry.path()).collect();
    files.push(directory.join("sources.list"));
    let is_list = |file: &PathBuf| {
        let extension = file.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("list" | "sources"))
    };
    let files = files.iter().filter(|file| is_list(file));
    let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
    texts.flat_map(|text| hosts_of(addresses(&text))).collect()
}

/// The addresses of a file: words behind `deb` or `URIs:`.
fn addresses(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim_start).filter(|line| {
        let first = line.split_whitespace().next().unwrap_or_default();
        matches!(first, "deb" | "deb-src") || first.eq_ignore_ascii_case("uris:")
    });
    let words = lines.flat_map(str::split_whitespace);
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_read() {
        let place = tempfile::tempdir().unwrap();
        let parts = place.path().join("sources.list.d");
        std::fs::create_dir(&parts).unwrap();
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
        let one_line =
            "# deb http://comment.test x\ndeb [arch=amd64] http://one.test/debian stable main\n";
        write(place.path().join("sources.list"), one_line);
        let deb822 =
            "Types: deb\nURIs: https://two.test/debian http://three.test:8080/\nSuites: x\n";
        write(parts.join("a.sources"), deb822);
        write(parts.join("ignored.bak"), "deb http://four.test x");
        let mut found = in_directory(place.path());
        found.sort();
        assert_eq!(found, ["one.test", "three.test:8080", "two.test"]);
    }
}
