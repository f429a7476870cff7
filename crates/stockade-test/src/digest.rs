//! A tree reduced to lines, exact enough that any touch shows.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What a tree looked like: type, mode, owner, size, inode, mtime, ctime and content of each name.
///
/// Access times are left out: reading is not touching.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Digest(BTreeMap<PathBuf, String>);

impl Digest {
    /// The digest of everything at and below the roots. What can't be read is recorded as such.
    pub fn of<'a>(roots: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut lines = BTreeMap::new();
        for root in roots {
            add(root, &mut lines);
        }
        Self(lines)
    }

    /// The names that were made, removed or changed since `earlier`.
    pub fn changes(&self, earlier: &Self) -> Vec<String> {
        let made = self
            .0
            .iter()
            .filter_map(|(path, line)| match earlier.0.get(path) {
                None => Some(format!("made {}", path.display())),
                Some(old) if old != line => {
                    Some(format!("changed {}: {old} -> {line}", path.display()))
                }
                Some(_) => None,
            });
        let removed = earlier
            .0
            .keys()
            .filter(|path| !self.0.contains_key(*path))
            .map(|path| format!("removed {}", path.display()));
        made.chain(removed).collect()
    }
}

fn add(path: &Path, lines: &mut BTreeMap<PathBuf, String>) {
    let line = match fs::symlink_metadata(path) {
        Err(error) => format!("unreadable: {error}"),
        Ok(meta) => {
            let content = if meta.is_symlink() {
                fs::read_link(path)
                    .map(|target| target.display().to_string())
                    .unwrap_or_default()
            } else if meta.is_file() {
                let mut hasher = DefaultHasher::new();
                fs::read(path).unwrap_or_default().hash(&mut hasher);
                format!("{:016x}", hasher.finish())
            } else {
                String::new()
            };
            if meta.is_dir() {
                for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                    add(&entry.path(), lines);
                }
            }
            format!(
                "{:o} {}:{} {}b i{} m{}.{} c{}.{} {content}",
                meta.mode(),
                meta.uid(),
                meta.gid(),
                if meta.is_dir() { 0 } else { meta.size() },
                meta.ino(),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec(),
            )
        }
    };
    lines.insert(path.to_owned(), line);
}

#[cfg(test)]
mod tests {
    use super::Digest;
    use std::fs;

    #[test]
    fn a_touch_shows_and_a_read_does_not() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "one").unwrap();
        let before = Digest::of([dir.path()]);
        fs::read(dir.path().join("f")).unwrap();
        assert_eq!(
            Digest::of([dir.path()]).changes(&before),
            Vec::<String>::new()
        );
        fs::write(dir.path().join("f"), "two").unwrap();
        fs::write(dir.path().join("g"), "").unwrap();
        let changes = Digest::of([dir.path()]).changes(&before).join("\n");
        assert!(
            changes.contains("changed") && changes.contains("made"),
            "{changes}"
        );
    }
}
