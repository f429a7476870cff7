//! The environment of a sandboxed command: built from nothing, never by subtraction.
//!
//! Protects credentials that live in variables, and every later tool from variables that make
//! it load code. It is hygiene, not a boundary: a secret that the user passes on purpose is there.
//!
//! Three sources, in this order: names that always pass ([`PRESERVED_ENV_VARS`]), names that the
//! user keeps, and pairs that the user sets. What was left out is reported by name. Values are
//! `OsString` throughout: they need not be Unicode.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;

use thiserror::Error;

mod names;

pub use names::{
    CERTIFICATE_FILES, CERTIFICATE_VARIABLES, FILTERED_ENV_VARS, PRESERVED_ENV_VARS,
    STOCKADE_SANDBOX_ACTIVE, STOCKADE_SANDBOX_NETWORK_DISABLED, STOCKADE_SANDBOX_TYPE,
    STOCKADE_SANDBOX_WRITABLE_ROOTS,
};
use names::{
    HARMLESS_NODE_OPTIONS, HOOK_PREFIXES, HOOKS, MIN_TOKEN_BYTES, PRESERVED_PREFIXES, SECRET_NAMES,
    SECRET_PREFIXES, SECRET_SUFFIXES, TOKEN_PREFIXES,
};

/// The variables of a process, in a stable order.
pub type Env = BTreeMap<OsString, OsString>;

/// What a command's environment is to be made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvRequest {
    keep: BTreeSet<OsString>,
    set: Env,
    markers: Env,
}

/// An environment, and what happened to the variables it was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SanitizedEnv {
    /// What the command gets.
    pub env: Env,
    /// What it does not get although the parent had it, by name.
    pub removed: Vec<EnvNote>,
    /// What it gets because the user said so, although it looks dangerous.
    pub forced: Vec<EnvNote>,
}

/// A name and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvNote {
    /// The variable.
    pub name: OsString,
    /// What it is.
    pub reason: EnvReason,
}

/// Why a variable does not pass, or why its passing is worth a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EnvReason {
    /// It makes programs load or run something: the loader's, an interpreter's, a tool's hook.
    Hook,
    /// The name is empty or holds `=` or NUL.
    Malformed,
    /// It is one of the markers, which only Stockade sets.
    Marker,
    /// It is not on the list of what passes.
    NotListed,
    /// Its name says that it is a credential.
    SecretName,
    /// Its value is a token, or a URL with a password in it.
    SecretValue,
}

/// Why a variable can't be kept or set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EnvError {
    /// The name is empty or holds `=` or NUL.
    #[error("`{}` is not the name of a variable", .0.display())]
    Name(OsString),
    /// The value holds NUL.
    #[error("the value of `{}` contains a NUL byte", .0.display())]
    Value(OsString),
}

impl EnvRequest {
    /// Nothing but what always passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps a variable of the parent, even one that looks like a secret; never a hook.
    ///
    /// # Errors
    /// If the name can't be one.
    pub fn keep(&mut self, name: impl Into<OsString>) -> Result<(), EnvError> {
        self.keep.insert(checked_name(name.into())?);
        Ok(())
    }

    /// Sets a variable, even a hook; what is dangerous about it is noted in the result.
    ///
    /// # Errors
    /// If the name can't be one, or the value holds NUL.
    pub fn set(
        &mut self,
        name: impl Into<OsString>,
        value: impl Into<OsString>,
    ) -> Result<(), EnvError> {
        let (name, value) = (checked_name(name.into())?, value.into());
        if value.as_encoded_bytes().contains(&0) {
            return Err(EnvError::Value(name));
        }
        self.set.insert(name, value);
        Ok(())
    }

    /// Adds the markers of an active sandbox; they win over everything else.
    #[must_use]
    pub fn with_markers(
        mut self,
        sandbox_type: &str,
        network_disabled: bool,
        writable_roots: &[&Path],
    ) -> Self {
        let mut mark = |name: &str, value: OsString| self.markers.insert(name.into(), value);
        mark(STOCKADE_SANDBOX_ACTIVE, "1".into());
        mark(STOCKADE_SANDBOX_TYPE, sandbox_type.into());
        if network_disabled {
            mark(STOCKADE_SANDBOX_NETWORK_DISABLED, "1".into());
        }
        // A path with the separator in it would read as two; the marker is advice, so it is
        // left out rather than wrong.
        let roots = writable_roots
            .iter()
            .filter(|root| std::env::join_paths([root]).is_ok());
        match std::env::join_paths(roots) {
            Ok(joined) if !joined.is_empty() => {
                mark(STOCKADE_SANDBOX_WRITABLE_ROOTS, joined);
            }
            _ => {}
        }
        self
    }

    /// Builds the environment from the parent's.
    pub fn build(&self, current: impl IntoIterator<Item = (OsString, OsString)>) -> SanitizedEnv {
        let mut out = SanitizedEnv::default();
        for (name, value) in current {
            let kept = self.keep.contains(&name);
            let finding = danger(&name, &value);
            let refusal = match finding {
                Some(reason @ (EnvReason::Hook | EnvReason::Malformed | EnvReason::Marker)) => {
                    Some(reason)
                }
                Some(reason) if !kept => Some(reason),
                _ if kept || is_preserved(&name) => None,
                _ => Some(EnvReason::NotListed),
            };
            if let Some(harmless) = harmless_node_options(&name, &value) {
                out.env.insert(name, harmless);
            } else if let Some(reason) = refusal {
                out.removed.push(EnvNote { name, reason });
            } else {
                out.note_forced(&name, finding);
                out.env.insert(name, value);
            }
        }
        for (name, value) in &self.set {
            out.note_forced(name, danger(name, value));
            out.env.insert(name.clone(), value.clone());
        }
        out.env.extend(self.markers.clone());
        out.removed.retain(|note| !out.env.contains_key(&note.name));
        out.removed.sort_by(|a, b| a.name.cmp(&b.name));
        out
    }
}

impl SanitizedEnv {
    fn note_forced(&mut self, name: &OsStr, finding: Option<EnvReason>) {
        if let Some(reason) = finding {
            self.forced.push(EnvNote {
                name: name.to_owned(),
                reason,
            });
        }
    }
}

/// Builds the environment of a sandboxed command: only what always passes, plus the markers.
///
/// Without an active sandbox there are no markers. For kept and set variables, and for the names
/// that were removed, use [`EnvRequest`].
pub fn build_sanitized_env(
    current: impl IntoIterator<Item = (OsString, OsString)>,
    sandbox_active: bool,
    network_disabled: bool,
    sandbox_type: &str,
    writable_roots: &[&Path],
) -> Env {
    let request = EnvRequest::new();
    let request = if sandbox_active {
        request.with_markers(sandbox_type, network_disabled, writable_roots)
    } else {
        request
    };
    request.build(current).env
}

/// A copy without credentials and hooks; for environments that are not built from nothing.
///
/// This is a blocklist and leaks what it does not know. Prefer [`EnvRequest`].
pub fn filter_sensitive_env(env: impl IntoIterator<Item = (OsString, OsString)>) -> Env {
    env.into_iter()
        .filter(|(name, value)| danger(name, value).is_none())
        .collect()
}

/// Whether a variable of this name is a credential or a hook. Case does not matter.
pub fn should_filter_env_var(name: impl AsRef<OsStr>) -> bool {
    let name = upper(name.as_ref());
    is_hook(&name) || is_secret_name(&name)
}

fn danger(name: &OsStr, value: &OsStr) -> Option<EnvReason> {
    let upper = upper(name);
    if !is_well_formed(name) {
        Some(EnvReason::Malformed)
    } else if is_marker(&upper) {
        Some(EnvReason::Marker)
    } else if is_hook(&upper) {
        Some(EnvReason::Hook)
    } else if is_secret_name(&upper) {
        Some(EnvReason::SecretName)
    } else if has_password_url(value.as_encoded_bytes()) || has_token(value) {
        Some(EnvReason::SecretValue)
    } else {
        None
    }
}

/// The name for comparison with the lists, which are ASCII: bytes beyond it match nothing.
fn upper(name: &OsStr) -> String {
    name.to_string_lossy().to_ascii_uppercase()
}

fn is_preserved(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    let begins = |prefix: &&str| bytes.starts_with(prefix.as_bytes());
    PRESERVED_ENV_VARS.iter().any(|known| name == *known) || PRESERVED_PREFIXES.iter().any(begins)
}

/// What of `NODE_OPTIONS` loads no code, if there is some of it.
fn harmless_node_options(name: &OsStr, value: &OsStr) -> Option<OsString> {
    let value = value.to_str().filter(|_| name == "NODE_OPTIONS")?;
    let options = value.split_ascii_whitespace().filter(|option| {
        let name = option.split('=').next().unwrap_or_default();
        HARMLESS_NODE_OPTIONS.contains(&name)
    });
    let kept = options.collect::<Vec<_>>().join(" ");
    (!kept.is_empty()).then(|| kept.into())
}

/// Whether a word of the value has the form of a well-known token.
pub(crate) fn has_token(value: &OsStr) -> bool {
    let text = value.to_string_lossy();
    let is_of_token = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    let mut words = text.split(|letter| !is_of_token(letter));
    words.any(|word| {
        let is_long = word.len() >= MIN_TOKEN_BYTES;
        is_long && TOKEN_PREFIXES.iter().any(|prefix| word.starts_with(prefix))
    })
}

fn is_marker(upper: &str) -> bool {
    upper.starts_with("STOCKADE_SANDBOX_")
}

fn is_hook(upper: &str) -> bool {
    HOOKS.contains(&upper)
        || HOOK_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
        // CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER and _LINKER name programs.
        || (upper.starts_with("CARGO_TARGET_")
            && (upper.ends_with("_RUNNER") || upper.ends_with("_LINKER")))
}

fn is_secret_name(upper: &str) -> bool {
    FILTERED_ENV_VARS.contains(&upper)
        || SECRET_NAMES.contains(&upper)
        || SECRET_PREFIXES
            .iter()
            .any(|prefix| upper.starts_with(prefix))
        || SECRET_SUFFIXES.iter().any(|suffix| upper.ends_with(suffix))
}

fn is_well_formed(name: &OsStr) -> bool {
    let bytes = name.as_encoded_bytes();
    !bytes.is_empty() && !bytes.iter().any(|byte| matches!(byte, 0 | b'='))
}

fn checked_name(name: OsString) -> Result<OsString, EnvError> {
    if is_well_formed(&name) {
        Ok(name)
    } else {
        Err(EnvError::Name(name))
    }
}

/// Whether the value holds `scheme://user:password@`.
fn has_password_url(value: &[u8]) -> bool {
    let mut rest = value;
    while let Some(at) = rest.windows(3).position(|window| window == b"://") {
        rest = &rest[at + 3..];
        let authority = rest
            .split(|byte| matches!(byte, b'/' | b'?' | b'#' | b' ' | b','))
            .next()
            .unwrap_or_default();
        let userinfo = authority
            .iter()
            .rposition(|byte| *byte == b'@')
            .map(|end| &authority[..end]);
        let password = userinfo.and_then(|info| {
            info.iter()
                .position(|byte| *byte == b':')
                .map(|c| &info[c + 1..])
        });
        if password.is_some_and(|password| !password.is_empty()) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
