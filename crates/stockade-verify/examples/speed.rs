//! Measures the verifier's speed on the source files below a directory: `speed DIRECTORY…`.
//!
//! One core, each file once to warm up and then until a second has passed, per language.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use stockade_verify::{CodeVerifier, Language};

fn main() {
    let mut files: BTreeMap<&'static str, Vec<(Language, Vec<u8>)>> = BTreeMap::new();
    let mut stack: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    while let Some(path) = stack.pop() {
        if path.is_dir() {
            stack.extend(
                std::fs::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        } else if let Some((language, bytes)) = load(&path) {
            files
                .entry(language.as_str())
                .or_default()
                .push((language, bytes));
        }
    }
    let verifier = CodeVerifier::new();
    let mut out = std::io::stdout().lock();
    for (name, files) in &files {
        let mut bytes = 0usize;
        let begun = Instant::now();
        let mut longest = (Duration::ZERO, 0usize);
        while begun.elapsed() < Duration::from_secs(1) {
            for (language, code) in files {
                let start = Instant::now();
                std::hint::black_box(verifier.verify_bytes(code, *language));
                longest = longest.max((start.elapsed(), code.len()));
                bytes += code.len();
            }
        }
        let micros = begun.elapsed().as_micros().max(1);
        let speed = u128::try_from(bytes).unwrap_or(0) * 100 / micros;
        let _ = writeln!(
            out,
            "{name:<12} {:>5} files {:>3}.{:02} MB/s, longest {:?} for {} bytes",
            files.len(),
            speed / 100,
            speed % 100,
            longest.0,
            longest.1
        );
    }
}

fn load(path: &Path) -> Option<(Language, Vec<u8>)> {
    let bytes = std::fs::read(path)
        .ok()
        .filter(|bytes| bytes.len() < 1 << 20)?;
    let by_name = path
        .file_name()?
        .to_str()
        .and_then(Language::from_file_name);
    let language = by_name.or_else(|| {
        let head = std::str::from_utf8(bytes.get(..256.min(bytes.len()))?).ok()?;
        head.starts_with("#!")
            .then(|| Language::from_content(head))
            .flatten()
    })?;
    Some((language, bytes))
}
