//! Absolute, lexically normalised paths: the only kind that rules are made of.

use std::cmp::Ordering;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use crate::word::shell_word;

/// An absolute path without `.`, `..`, doubled or trailing slashes, or NUL bytes.
///
/// Normalisation is lexical, as POSIX resolves `..` only for trees without symlinks; the engine
/// resolves links before it compares, so a rule's text and a landing path meet in one form.
///
/// A copy is another handle on the same text: the path of a rule goes from the profile through
/// what is found on the host into the plan, and there may be hundreds.
#[derive(Clone)]
pub struct AbsPath(Arc<Path>);

/// Why a text is not an [`AbsPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// The text is empty.
    Empty,
    /// `~` was used and no home directory is known.
    NoHome(OsString),
    /// A NUL byte can't be part of a path.
    Nul(OsString),
    /// The path is relative and there is nothing to resolve it against.
    Relative(OsString),
    /// `~user` is not looked up: only the caller's own `~` is.
    OtherHome(OsString),
}

impl AbsPath {
    /// The root directory.
    pub fn root() -> Self {
        Self(Arc::from(Path::new("/")))
    }

    /// Takes an absolute path and normalises it.
    ///
    /// # Errors
    /// If the path is empty, relative or contains a NUL byte.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, PathError> {
        let path = path.as_ref();
        let text = path.as_os_str();
        if is_normal(text.as_encoded_bytes()) {
            return Ok(Self(Arc::from(path)));
        }
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.as_encoded_bytes().contains(&0) {
            return Err(PathError::Nul(text.to_owned()));
        }
        if !path.has_root() {
            return Err(PathError::Relative(text.to_owned()));
        }
        Ok(Self(normalise(path).into()))
    }

    /// Reads what a person typed: `~` and `~/…` against `home`, relative text against `base`.
    ///
    /// # Errors
    /// As [`AbsPath::new`], and for `~` without a home or `~user`.
    pub fn resolve(
        text: &OsStr,
        base: &AbsPath,
        home: Option<&AbsPath>,
    ) -> Result<Self, PathError> {
        let bytes = text.as_encoded_bytes();
        if bytes.is_empty() {
            return Err(PathError::Empty);
        }
        if bytes[0] == b'~' {
            let Ok(rest) = Path::new(text).strip_prefix("~") else {
                return Err(PathError::OtherHome(text.to_owned()));
            };
            let home = home.ok_or_else(|| PathError::NoHome(text.to_owned()))?;
            return home.join(rest);
        }
        base.join(text)
    }

    /// This path with `name` below it, normalised again.
    ///
    /// # Errors
    /// If `name` contains a NUL byte.
    pub fn join(&self, name: impl AsRef<Path>) -> Result<Self, PathError> {
        let name = name.as_ref();
        if name.has_root() {
            return Self::new(name);
        }
        let (base, name) = (self.0.as_os_str(), name.as_os_str());
        let mut text = OsString::with_capacity(base.len() + name.len() + 1);
        text.push(base);
        if !self.is_root() {
            text.push("/");
        }
        text.push(name);
        Self::new(Path::new(&text))
    }

    /// The directory that holds this path; none for `/`.
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|parent| Self(Arc::from(parent)))
    }

    /// Whether this is the root directory.
    pub fn is_root(&self) -> bool {
        self.as_bytes() == b"/"
    }

    /// Whether this path is `other` or lies below it, by whole components.
    pub fn is_within(&self, other: &AbsPath) -> bool {
        is_at_or_below(self.as_bytes(), other.as_bytes())
    }

    /// The path as the kernel knows it.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_os_str().as_encoded_bytes()
    }

    /// Whether these are the bytes of this path; quicker than to compare them, as [`Eq`] is.
    pub fn is(&self, path: &[u8]) -> bool {
        same(self.as_bytes(), path)
    }

    /// How many components lie below the root; `/` has none.
    pub fn depth(&self) -> usize {
        components(self.0.as_os_str().as_encoded_bytes()).count()
    }

    /// The path as a word for a shell.
    pub fn as_word(&self) -> String {
        shell_word(&self.0.to_string_lossy()).into_owned()
    }

    /// The path as the standard library knows it.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The path as a text of the caller's own.
    pub fn into_path_buf(self) -> PathBuf {
        self.0.to_path_buf()
    }
}

/// Normalised paths are equal if their bytes are, which is much faster than by components: a
/// profile with hundreds of rules compares paths hundreds of thousands of times.
impl PartialEq for AbsPath {
    fn eq(&self, other: &Self) -> bool {
        same(self.as_bytes(), other.as_bytes())
    }
}

impl Eq for AbsPath {}

impl Hash for AbsPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

/// By components: what lies below a path follows it at once, before `/a-b` follows `/a`.
impl Ord for AbsPath {
    fn cmp(&self, other: &Self) -> Ordering {
        order(self.as_bytes(), other.as_bytes())
    }
}

impl PartialOrd for AbsPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl fmt::Debug for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

/// Text where the path is UTF-8, an array of bytes where it is not: a plan must carry any name
/// the kernel allows, and stay readable for the names people use.
impl Serialize for AbsPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None if cfg!(unix) => self.0.as_os_str().as_encoded_bytes().serialize(serializer),
            None => Err(ser::Error::custom("path is not Unicode")),
        }
    }
}

impl<'de> Deserialize<'de> for AbsPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            Text(String),
            Bytes(Vec<u8>),
        }
        let path = match Wire::deserialize(deserializer)? {
            Wire::Text(text) => PathBuf::from(text),
            Wire::Bytes(bytes) => from_bytes(bytes).map_err(de::Error::custom)?,
        };
        Self::new(path).map_err(de::Error::custom)
    }
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the path is empty"),
            Self::NoHome(text) => {
                write!(
                    f,
                    "`{}` needs a home directory and HOME is not set",
                    text.display()
                )
            }
            Self::Nul(text) => write!(f, "path `{}` contains a NUL byte", text.display()),
            Self::Relative(text) => write!(f, "path `{}` is not absolute", text.display()),
            Self::OtherHome(text) => write!(
                f,
                "`{}` names another user's home, which is not looked up; write the path out",
                text.display()
            ),
        }
    }
}

impl std::error::Error for PathError {}

/// [`AbsPath`]'s order, over bytes: the slash counts less than any other byte.
pub(crate) fn order(one: &[u8], other: &[u8]) -> Ordering {
    let common = common_prefix(one, other);
    let rank = |path: &[u8]| match path.get(common) {
        None => 0,
        Some(b'/') => 1,
        Some(byte) => 2 + u16::from(*byte),
    };
    rank(one).cmp(&rank(other))
}

/// How many bytes are alike, eight at a time: paths that are compared mostly share a directory.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let (words, others) = (one.as_chunks::<8>().0, other.as_chunks::<8>().0);
    let alike = words.iter().zip(others).take_while(|(a, b)| a == b).count();
    let from = alike * 8;
    let rest = one[from..].iter().zip(&other[from..]);
    from + rest.take_while(|(a, b)| a == b).count()
}

/// Whether two texts are the same. The C library of the static program compares byte by byte.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && common_prefix(one, other) == one.len()
}

/// Whether a normalised path is `root` or lies below it, by whole components.
pub(crate) fn is_at_or_below(path: &[u8], root: &[u8]) -> bool {
    match path.strip_prefix(root) {
        Some(rest) => root == b"/" || matches!(rest.first(), None | Some(b'/')),
        None => false,
    }
}

/// The components of a normalised absolute path, as bytes.
pub(crate) fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
}

fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            // `/..` is `/`, as in the kernel.
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// Whether a text is an absolute path that has nothing to fold, as nearly all are.
fn is_normal(path: &[u8]) -> bool {
    let [b'/', names @ ..] = path else {
        return false;
    };
    let mut before = b'/';
    for (at, byte) in names.iter().enumerate() {
        // Only where a name begins has it to be looked at as a whole.
        let is_odd = before == b'/' && is_odd(&names[at..]);
        if is_odd || *byte == 0 {
            return false;
        }
        before = *byte;
    }
    cfg!(unix) && (before != b'/' || names.is_empty())
}

/// Whether the first of these names is none, `.` or `..`.
fn is_odd(names: &[u8]) -> bool {
    let dots = names.iter().take(2).take_while(|byte| **byte == b'.');
    matches!(names.get(dots.count()), None | Some(b'/'))
}

#[cfg(unix)]
#[expect(
    clippy::unnecessary_wraps,
    reason = "fails on systems whose paths are not bytes"
)]
fn from_bytes(bytes: Vec<u8>) -> Result<PathBuf, &'static str> {
    use std::os::unix::ffi::OsStringExt;
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> Result<PathBuf, &'static str> {
    String::from_utf8(bytes)
        .map(PathBuf::from)
        .map_err(|_| "path is not Unicode")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn abs(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    #[test]
    fn dots_and_slashes_are_folded() {
        assert_eq!(abs("/ws/../../etc//passwd/."), abs("/etc/passwd"));
        assert_eq!(abs("/a/b/"), abs("/a/b"));
        assert_eq!(abs("/.."), AbsPath::root());
        for normal in ["/", "/.a", "/...", "/a../b.", "/..a/.b"] {
            assert_eq!(abs(normal).as_path().as_os_str(), normal);
        }
        for odd in ["/.", "/./a", "/a/.", "/a/..", "/a/../a", "//a", "/a/"] {
            assert_ne!(abs(odd).as_path().as_os_str(), odd);
        }
    }

    #[test]
    fn what_a_person_typed_is_resolved() {
        let (base, home) = (abs("/ws"), abs("/home/u"));
        let resolve = |text: &str| AbsPath::resolve(OsStr::new(text), &base, Some(&home));
        assert_eq!(resolve("~/.ssh"), Ok(abs("/home/u/.ssh")));
        assert_eq!(resolve("~"), Ok(home.clone()));
        assert_eq!(resolve("src/.."), Ok(base.clone()));
        assert_eq!(resolve("/x"), Ok(abs("/x")));
        assert!(matches!(resolve("~root/x"), Err(PathError::OtherHome(_))));
        assert!(matches!(resolve(""), Err(PathError::Empty)));
        assert!(matches!(resolve("a\0b"), Err(PathError::Nul(_))));
        assert!(matches!(
            AbsPath::resolve(OsStr::new("~/x"), &base, None),
            Err(PathError::NoHome(_))
        ));
    }

    #[test]
    fn containment_goes_by_components() {
        assert!(abs("/a/b").is_within(&abs("/a")));
        assert!(abs("/a").is_within(&abs("/a")));
        assert!(!abs("/ab").is_within(&abs("/a")));
        assert!(abs("/a").is_within(&AbsPath::root()));
    }

    #[test]
    fn order_is_that_of_components() {
        let mut paths = [
            "/", "/a", "/a/b", "/a/b/c", "/a-b", "/a.b", "/ab", "/b", "/a/c",
        ]
        .map(abs);
        paths.sort();
        let mut by_components = paths.clone();
        by_components.sort_by(|one, other| one.as_path().cmp(other.as_path()));
        assert_eq!(paths, by_components);
    }

    #[cfg(unix)]
    #[test]
    fn any_name_survives_the_wire() {
        use std::os::unix::ffi::OsStrExt;
        for bytes in [&b"/plain/name"[..], b"/not\xff/utf8", b"/quote\"\\\n"] {
            let path = AbsPath::new(Path::new(OsStr::from_bytes(bytes))).unwrap();
            let wire = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<AbsPath>(&wire).unwrap(), path);
        }
    }
}
