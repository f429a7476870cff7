//! Places that hold credentials.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stockade_rules::{AbsPath, Access, GlobError, Kind, PathGlob, Pattern};
use thiserror::Error;

use super::path_text;
use super::surroundings::home_from_env;

/// The seventeen places that the seeds block.
pub const DEFAULT_SENSITIVE_PATHS: &[&str] = &[
    "~/.ssh",
    "~/.aws",
    "~/.config/gcloud",
    "~/.azure",
    "~/.kube",
    "~/.docker",
    "~/.npmrc",
    "~/.pypirc",
    "~/.config/gh",
    "~/.secrets",
    "~/.gnupg",
    "~/.config/op",
    "~/.vault-token",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.cargo/credentials.toml",
    "~/.git-credentials",
    "~/.netrc",
];

/// Stores beyond [`DEFAULT_SENSITIVE_PATHS`]: other tools' tokens, keyrings, browsers, histories.
///
/// `~/.local/bin` and the like are left out on purpose: programs live there, and hiding them
/// breaks ordinary work. The environments of other processes (`/proc/*/environ`) are hidden by
/// the sandbox's own `/proc`, not by a path.
pub const MORE_SENSITIVE_PATHS: &[&str] = &[
    // The system's own, which root can read
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    // Tools
    "~/.cargo/credentials",
    "~/.config/git/credentials",
    "~/.config/hub",
    "~/.config/glab-cli",
    "~/.gem/credentials",
    "~/.composer/auth.json",
    "~/.config/composer/auth.json",
    "~/.m2/settings.xml",
    "~/.m2/settings-security.xml",
    "~/.gradle/gradle.properties",
    "~/.config/containers/auth.json",
    "~/.config/rclone",
    "~/.config/sops",
    "~/.config/doctl",
    "~/.config/heroku",
    "~/.oci",
    "~/.s3cfg",
    "~/.boto",
    "~/.yarnrc.yml",
    // Databases
    "~/.pgpass",
    "~/.my.cnf",
    "~/.mylogin.cnf",
    // Agents
    "~/.codex",
    "~/.claude",
    "~/.claude.json",
    "~/.gemini",
    "~/.qwen",
    "~/.aider/oauth-keys.env",
    "~/.cache/huggingface/stored_tokens",
    "~/.cache/huggingface/token",
    "~/.huggingface",
    "~/.config/amp",
    "~/.config/github-copilot",
    "~/.config/goose",
    "~/.config/opencode/auth.json",
    "~/.env",
    "~/.local/share/amp",
    "~/.local/share/opencode/auth.json",
    // Password stores and keyrings
    "~/.password-store",
    "~/.local/share/keyrings",
    "~/.local/share/kwalletd",
    "~/.pki",
    "~/Library/Keychains",
    // Browsers and mail
    "~/.mozilla",
    "~/.thunderbird",
    "~/.config/google-chrome",
    "~/.config/chromium",
    "~/.config/BraveSoftware",
    "~/.config/microsoft-edge",
    "~/.config/vivaldi",
    "~/snap/firefox",
    "~/snap/chromium",
    "~/Library/Application Support/Google/Chrome",
    "~/Library/Application Support/Firefox",
    "~/Library/Safari",
    "~/Library/Cookies",
    // Histories
    "~/.bash_history",
    "~/.zsh_history",
    "~/.local/share/fish/fish_history",
    "~/.python_history",
    "~/.node_repl_history",
    "~/.psql_history",
    "~/.mysql_history",
    "~/.sqlite_history",
    "~/.rediscli_history",
];

/// Further names on Windows.
const WINDOWS_SENSITIVE_PATHS: &[&str] = &["~/.config", "~/.npm", "~/.terraform.d"];

/// Project files that hold secrets by custom; not the templates that are meant to be read.
const PROJECT_ENV_FILES: &[&str] = &[
    "**/.env",
    "**/.env.local",
    "**/.env.development",
    "**/.env.development.local",
    "**/.env.production",
    "**/.env.production.local",
    "**/.env.staging",
    "**/.env.test.local",
    "**/.envrc",
];

/// A place to which access is blocked.
///
/// The path is absolute, begins with `~/`, or with `**/` for a pattern at any depth; what else is
/// relative counts as if it began with `**/`, and so does `~/…` where no home is known and
/// `~user/…`: an entry never silently protects nothing. JSON refuses the doubtful forms.
///
/// Blocking reads blocks writes too: what has no content inside the sandbox can't be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Wire")]
pub struct SensitivePath {
    /// The path.
    #[serde(serialize_with = "path_text::serialize")]
    pub path: PathBuf,
    /// Whether reading is blocked.
    pub block_read: bool,
    /// Whether writing is blocked.
    pub block_write: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    #[serde(deserialize_with = "path_text::deserialize")]
    path: PathBuf,
    #[serde(default = "yes")]
    block_read: bool,
    #[serde(default = "yes")]
    block_write: bool,
}

#[derive(Debug, Error)]
enum WireError {
    #[error("sensitive path `{}` is relative; begin it with `/`, `~/` or `**/`", .0.display())]
    Doubtful(PathBuf),
    #[error("sensitive path: {0}")]
    Glob(#[from] GlobError),
    #[error("sensitive path is empty or contains a NUL byte")]
    Impossible,
    #[error("sensitive path `{}` blocks neither reading nor writing", .0.display())]
    Void(PathBuf),
}

/// The seeds' places and the further ones, for the home that the environment states.
pub fn default_sensitive_paths() -> Vec<SensitivePath> {
    let windows = if cfg!(windows) {
        WINDOWS_SENSITIVE_PATHS
    } else {
        &[]
    };
    DEFAULT_SENSITIVE_PATHS
        .iter()
        .chain(MORE_SENSITIVE_PATHS)
        .chain(windows)
        .map(SensitivePath::new)
        // The user's own grants must not be written by what they are about.
        .chain([SensitivePath::write_only("~/.config/stockade")])
        .collect()
}

/// As [`default_sensitive_paths`], with `~` spelled out.
pub fn default_sensitive_paths_with_home(home: &AbsPath) -> Vec<SensitivePath> {
    default_sensitive_paths()
        .into_iter()
        .map(|entry| SensitivePath {
            path: entry.expand_path_with_home(Some(home.as_path())),
            ..entry
        })
        .collect()
}

/// Secrets that live in projects (`.env` and its like), at any depth. An opt-in: programs under
/// development read them, and hiding them by default would break ordinary work.
pub fn project_env_files() -> Vec<SensitivePath> {
    PROJECT_ENV_FILES.iter().map(SensitivePath::new).collect()
}

impl SensitivePath {
    /// Blocks reading and writing.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            block_read: true,
            block_write: true,
        }
    }

    /// Blocks writing only.
    pub fn write_only(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            block_read: false,
            block_write: true,
        }
    }

    /// The path with `~` replaced by the home that the environment states.
    pub fn expand_path(&self) -> PathBuf {
        self.expand_path_with_home(home_from_env().as_ref().map(AbsPath::as_path))
    }

    /// The path with `~` replaced; unchanged if there is no home or the path has no `~`.
    pub fn expand_path_with_home(&self, home: Option<&Path>) -> PathBuf {
        match (self.path.strip_prefix("~"), home) {
            (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_owned(),
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.path.clone(),
        }
    }

    /// Whether a path is this place or lies below it, for the home that the environment states.
    ///
    /// The path must be absolute; it is normalised first. One that can't be is taken to match.
    pub fn matches(&self, path: &Path) -> bool {
        self.matches_with_home(path, home_from_env().as_ref())
    }

    /// Whether a path is this place or lies below it.
    pub fn matches_with_home(&self, path: &Path, home: Option<&AbsPath>) -> bool {
        let Ok(path) = AbsPath::new(path) else {
            return true;
        };
        self.pattern(home)
            .is_some_and(|pattern| pattern.depth_at(path.as_path()).is_some())
    }

    /// The entry as a rule's pattern; none if no path can match it.
    /// What an entry about the user's own home means in another one; none if it is about none.
    pub(crate) fn pattern_in_home(&self, home: &AbsPath) -> Option<Pattern> {
        self.path.strip_prefix("~").ok()?;
        self.pattern(Some(home))
    }

    pub(crate) fn pattern(&self, home: Option<&AbsPath>) -> Option<Pattern> {
        let bytes = self.path.as_os_str().as_encoded_bytes();
        if bytes.is_empty() || bytes.contains(&0) {
            return None;
        }
        let expanded = self.expand_path_with_home(home.map(AbsPath::as_path));
        if let Ok(path) = AbsPath::new(&expanded) {
            return Some(Pattern::Subtree(path));
        }
        // A pattern that can't be read protects everything rather than nothing.
        let everything = || Pattern::Subtree(AbsPath::root());
        Some(self.any_depth().map_or_else(
            |_| everything(),
            |glob| glob.map_or_else(everything, Pattern::Glob),
        ))
    }

    /// The path as a pattern at any depth; none if nothing is left to match.
    fn any_depth(&self) -> Result<Option<PathGlob>, GlobError> {
        // `**/x` is written by people and is a pattern; below a home that nobody knows, a name.
        let (names, is_pattern) = match self.path.strip_prefix("**") {
            Ok(rest) => (rest, true),
            Err(_) => (self.path.as_path(), false),
        };
        let mut text = String::from("/**");
        for (index, name) in names.iter().enumerate() {
            let bytes = name.as_encoded_bytes();
            if bytes == b"." || (index == 0 && bytes.starts_with(b"~")) {
                continue;
            }
            text.push('/');
            match name.to_str() {
                Some(name) if is_pattern => text.push_str(name),
                _ => text.push_str(&path_text::as_pattern(name)),
            }
        }
        if text == "/**" {
            return Ok(None);
        }
        PathGlob::new(&text, &AbsPath::root()).map(Some)
    }

    /// What the entry says about access; none if it blocks nothing.
    pub(crate) fn access(&self) -> Option<Access> {
        match (self.block_read, self.block_write) {
            (true, true) => Some(Access::Deny),
            (true, false) => Some(Access::DenyRead),
            (false, true) => Some(Access::DenyWrite),
            (false, false) => None,
        }
    }

    fn blocks(&self, kind: Kind) -> bool {
        self.access()
            .is_some_and(|access| access.allows(kind) == Some(false))
    }

    /// Whether everything that `other` blocks is blocked by this entry.
    pub(super) fn covers(&self, other: &Self, home: Option<&AbsPath>) -> bool {
        let kinds = [Kind::Read, Kind::Write];
        let Some(theirs) = other.pattern(home) else {
            return true;
        };
        kinds
            .iter()
            .all(|kind| !other.blocks(*kind) || self.blocks(*kind))
            && self
                .pattern(home)
                .is_some_and(|own| pattern_covers(&own, &theirs))
    }
}

/// Whether `own` names, for each path that `theirs` names, that path or one above it.
///
/// For two patterns the match must end at the same depth, because length decides between rules:
/// `**/b` covers `**/a/b`, but `**/a` does not.
fn pattern_covers(own: &Pattern, theirs: &Pattern) -> bool {
    match (own, theirs) {
        (Pattern::Subtree(own), Pattern::Subtree(theirs)) => theirs.is_within(own),
        (Pattern::Glob(own), Pattern::Subtree(theirs)) => {
            own.longest_match(theirs.as_path()).is_some()
        }
        (Pattern::Glob(own), Pattern::Glob(theirs)) => {
            own == theirs
                || own
                    .as_str()
                    .strip_prefix("/**")
                    .is_some_and(|tail| !tail.contains("**") && theirs.as_str().ends_with(tail))
        }
        (Pattern::Subtree(_), Pattern::Glob(_)) => false,
    }
}

impl TryFrom<Wire> for SensitivePath {
    type Error = WireError;

    fn try_from(wire: Wire) -> Result<Self, WireError> {
        let bytes = wire.path.as_os_str().as_encoded_bytes();
        if bytes.is_empty() || bytes.contains(&0) {
            return Err(WireError::Impossible);
        }
        let first = wire.path.iter().next().unwrap_or_default().to_owned();
        if !wire.path.has_root() && first != "~" && first != "**" {
            return Err(WireError::Doubtful(wire.path));
        }
        if !wire.block_read && !wire.block_write {
            return Err(WireError::Void(wire.path));
        }
        let entry = Self {
            path: wire.path,
            block_read: wire.block_read,
            block_write: wire.block_write,
        };
        if first == "**" {
            entry.any_depth()?;
        }
        Ok(entry)
    }
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn abs(text: &str) -> AbsPath {
        AbsPath::new(text).unwrap()
    }

    fn hit(entry: &str, path: &str, home: Option<&str>) -> bool {
        let home = home.map(abs);
        SensitivePath::new(entry).matches_with_home(Path::new(path), home.as_ref())
    }

    #[test]
    fn the_lists() {
        assert_eq!(DEFAULT_SENSITIVE_PATHS.len(), 17);
        let all = default_sensitive_paths();
        assert_eq!(all[0], SensitivePath::new("~/.ssh"));
        let mut distinct = all.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn item_28_further_stores_are_covered() {
        let home = abs("/home/u");
        let all = default_sensitive_paths_with_home(&home);
        for path in [
            ".cargo/credentials",
            ".config/git/credentials",
            ".pgpass",
            ".my.cnf",
            ".password-store/x.gpg",
            ".local/share/keyrings/login.keyring",
            "Library/Keychains/login.keychain-db",
            ".mozilla/firefox/x/logins.json",
            ".config/google-chrome/Default/Cookies",
            ".bash_history",
            ".zsh_history",
            ".m2/settings.xml",
            ".gradle/gradle.properties",
            ".config/containers/auth.json",
            ".config/rclone/rclone.conf",
            ".codex/auth.json",
            ".claude/.credentials.json",
            ".qwen/oauth_creds.json",
            ".cache/huggingface/token",
            ".config/github-copilot/apps.json",
            ".config/goose/secrets.yaml",
            ".local/share/amp/secrets.json",
            ".local/share/opencode/auth.json",
            ".env",
        ] {
            let path = home.join(path).unwrap();
            assert!(
                all.iter()
                    .any(|e| e.block_read && e.matches_with_home(path.as_path(), None)),
                "{path}"
            );
        }
    }

    #[test]
    fn item_27_programs_stay_readable() {
        for path in ["/home/u/.local/bin/tool", "/home/u/.cargo/bin/cargo"] {
            let home = Some(abs("/home/u"));
            let all = default_sensitive_paths();
            assert!(
                !all.iter()
                    .any(|e| e.matches_with_home(Path::new(path), home.as_ref()))
            );
        }
    }

    #[test]
    fn item_28_project_env_files_are_an_opt_in() {
        let covered = |list: &[SensitivePath], path: &str| {
            list.iter()
                .any(|e| e.matches_with_home(Path::new(path), Some(&abs("/home/u"))))
        };
        for path in ["/ws/.env", "/ws/a/b/.env.local", "/.env"] {
            assert!(covered(&project_env_files(), path), "{path}");
            assert!(!covered(&default_sensitive_paths(), path), "{path}");
        }
        for path in ["/ws/.env.example", "/ws/env", "/ws/x.env"] {
            assert!(!covered(&project_env_files(), path), "{path}");
        }
    }

    #[test]
    fn item_18_paths_are_normalised_before_they_are_compared() {
        let home = Some("/home/u");
        assert!(hit("~/.ssh", "/home/u/ws/../.ssh/id_rsa", home));
        assert!(hit("~/.ssh", "/home//u/./.ssh", home));
        assert!(hit("~/x/../.ssh", "/home/u/.ssh", home));
        assert!(!hit("~/.ssh", "/home/u/.sshx", home));
        assert!(hit("/etc/shadow", "/etc/shadow", home));
    }

    #[test]
    fn item_25_an_unknown_home_never_disarms_the_list() {
        assert!(hit("~/.ssh", "/home/anyone/.ssh/id_rsa", None));
        assert!(hit("~/.ssh", "/root/.ssh", None));
        assert!(!hit("~/.ssh", "/root/.sshx", None));
        assert!(hit("~bob/.ssh", "/home/bob/.ssh", Some("/home/u")));
        assert!(hit("~/[a]", "/x/[a]/y", None));
        assert!(!hit("~/[a]", "/x/a", None));
        assert!(hit("~", "/anything", None));
        assert!(hit("secrets/key", "/ws/secrets/key", Some("/home/u")));
    }

    #[test]
    fn impossible_paths_are_taken_to_match() {
        for path in ["", "relative", "/a\0b"] {
            assert!(hit("~/.ssh", path, Some("/home/u")), "{path:?}");
        }
        let long = format!("/home/u/.ssh/{}", "a".repeat(4000));
        assert!(hit("~/.ssh", &long, Some("/home/u")));
        assert!(!hit("a\0b", "/a", None));
        assert!(hit("**/[", "/anything", None));
    }

    #[cfg(unix)]
    #[test]
    fn names_need_not_be_unicode() {
        use std::os::unix::ffi::OsStrExt;
        let odd = OsStr::from_bytes(b"**/k\xff");
        let path = Path::new(OsStr::from_bytes(b"/ws/k\xff"));
        assert!(SensitivePath::new(odd).matches_with_home(path, None));
        let json = serde_json::to_string(&SensitivePath::new(odd)).unwrap();
        let back: SensitivePath = serde_json::from_str(&json).unwrap();
        assert_eq!(back, SensitivePath::new(odd));
    }

    #[test]
    fn json_has_defaults_and_is_strict() {
        let parse = |text| serde_json::from_str::<SensitivePath>(text);
        assert_eq!(
            parse(r#"{"path":"~/.ssh"}"#).unwrap(),
            SensitivePath::new("~/.ssh")
        );
        assert_eq!(
            parse(r#"{"path":"/x","block_read":false}"#).unwrap(),
            SensitivePath::write_only("/x")
        );
        for text in [
            "{}",
            r#"{"path":""}"#,
            r#"{"path":"x"}"#,
            r#"{"path":"~bob/x"}"#,
            r#"{"path":"/x","block_reed":true}"#,
            r#"{"path":"/a\u0000"}"#,
            r#"{"path":"**/["}"#,
            r#"{"path":"/x","block_read":false,"block_write":false}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn covering_goes_by_the_end_of_the_pattern() {
        let covers = |own: &str, theirs: &str| {
            SensitivePath::new(own).covers(&SensitivePath::new(theirs), Some(&abs("/home/u")))
        };
        assert!(covers("**/b", "**/a/b") && covers("**/a/b", "**/a/b"));
        // A root named `a` would reopen `a/b`.
        assert!(!covers("**/a", "**/a/b") && !covers("**/a/b", "**/b"));
        assert!(!covers("**/b", "**/ab") && !covers("**/**/b", "**/a/**/c"));
        assert!(covers("**/.ssh", "~/.ssh") && covers("/home/u", "~/.ssh"));
        assert!(!covers("~/.ssh", "**/.ssh") && !covers("~/.ssh/x", "~/.ssh"));
        let write_only = SensitivePath::write_only("/x");
        assert!(SensitivePath::new("/x").covers(&write_only, None));
        assert!(!write_only.covers(&SensitivePath::new("/x"), None));
    }

    #[test]
    fn expansion() {
        let expand = |text: &str, home| SensitivePath::new(text).expand_path_with_home(home);
        let home = Some(Path::new("/home/u"));
        assert_eq!(expand("~", home), Path::new("/home/u"));
        assert_eq!(expand("~/.ssh", home), Path::new("/home/u/.ssh"));
        assert_eq!(expand("~/.ssh", None), Path::new("~/.ssh"));
        assert_eq!(expand("~bob/.ssh", home), Path::new("~bob/.ssh"));
        assert_eq!(expand("/x", home), Path::new("/x"));
    }
}
