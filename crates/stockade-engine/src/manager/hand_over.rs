//! How a policy travels to the program that enforces it: in its environment.
//!
//! An argument would be visible to every user of the machine in `/proc`, and so would the values
//! of the command's variables. The environment of a process is its owner's alone. Both halves of
//! the convention are here: a program writes it, `stockade run --policy-env NAME` reads it.
//!
//! | variable | holds |
//! |---|---|
//! | `NAME` | the policy, in JSON |
//! | `NAME_SET_X` | what the variable `X` is to be for the command |
//!
//! The command's variables have names of their own on the way, so that they can't mean anything
//! to the program that carries them: a `HOME` that an agent chose must not move the user's
//! sensitive paths, an `LD_PRELOAD` must not be loaded outside the sandbox.

use std::ffi::{OsStr, OsString};

use stockade_policy::profile::{EnvName, EnvVar, Profile, ProfileError, Sourced};
use stockade_policy::{Env, EnvError, SandboxPolicy, Surroundings};
use stockade_rules::Origin;

/// The variable that [`SandboxManager`](super::SandboxManager) uses.
pub const STOCKADE_POLICY: &str = "STOCKADE_POLICY";

/// A string of the environment, its name and NUL included, has at most 32 pages (execve(2)).
const MAX_VARIABLE_BYTES: usize = 128 * 1024;

/// A variable that carries a policy, and those beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyVariable {
    name: OsString,
    prefix: OsString,
}

/// Why a policy can't be handed over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandOverError {
    /// The policy can't be JSON.
    #[error("the policy can't be written as JSON")]
    Json(#[from] serde_json::Error),
    /// No profile can be made of it.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A string of the environment would be too long for the kernel.
    #[error("`{}` would need {length} bytes, and the kernel takes {MAX_VARIABLE_BYTES}", .name.display())]
    TooLong {
        /// The variable.
        name: OsString,
        /// How long it would be.
        length: usize,
    },
    /// One of the command's variables can't be one.
    #[error(transparent)]
    Variable(#[from] EnvError),
}

impl PolicyVariable {
    /// The variable of this name.
    pub fn new(name: impl Into<OsString>) -> Self {
        let name = name.into();
        let mut prefix = name.clone();
        prefix.push("_SET_");
        Self { name, prefix }
    }

    /// Whether a variable belongs to the hand-over; the command must not see it.
    pub fn owns(&self, name: &OsStr) -> bool {
        name == self.name || self.carried(name).is_some()
    }

    /// The variables that hand a policy over, and those of the command with it.
    ///
    /// # Errors
    /// If something of it can't be in an environment.
    pub fn write(&self, policy: &SandboxPolicy, set: &Env) -> Result<Env, HandOverError> {
        let json = serde_json::to_string(policy)?;
        let mut written = Env::from([(self.name.clone(), json.into())]);
        for (name, value) in set {
            variable(name, value)?;
            let mut carried = self.prefix.clone();
            carried.push(name);
            written.insert(carried, value.clone());
        }
        for (name, value) in &written {
            let length = name.len() + value.len() + "=\0".len();
            if length > MAX_VARIABLE_BYTES {
                let name = name.clone();
                return Err(HandOverError::TooLong { name, length });
            }
        }
        Ok(written)
    }

    /// The profile that was handed over: the policy, and the command's variables in `env`.
    ///
    /// # Errors
    /// If the policy makes no profile, or a variable can't be one.
    pub fn profile(
        &self,
        policy: &SandboxPolicy,
        around: &Surroundings,
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Profile, HandOverError> {
        let mut profile = Profile::from_policy(policy, around)?;
        for (name, value) in env {
            if let Some(name) = self.carried(&name) {
                let set = Sourced::new(variable(name, &value)?, Origin::fixed("the command"));
                profile.environment.set.push(set);
            }
        }
        Ok(profile)
    }

    /// The name of the command's variable that this one carries.
    fn carried<'n>(&self, name: &'n OsStr) -> Option<&'n OsStr> {
        let rest = name.as_encoded_bytes();
        let rest = rest.strip_prefix(self.prefix.as_encoded_bytes())?;
        os_str(rest)
    }
}

fn variable(name: &OsStr, value: &OsStr) -> Result<EnvVar, EnvError> {
    EnvVar::new(EnvName::new(name)?, value)
}

/// A part of a name; on Unix alone it need not be Unicode.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    use std::os::unix::ffi::OsStrExt;
    Some(OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn os_str(bytes: &[u8]) -> Option<&OsStr> {
    std::str::from_utf8(bytes).ok().map(OsStr::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stockade_rules::AbsPath;

    fn around() -> Surroundings {
        Surroundings::new(AbsPath::new("/ws").unwrap())
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let variable = PolicyVariable::new(STOCKADE_POLICY);
        let policy = SandboxPolicy::workspace_write(vec!["/other".into()]);
        let set = Env::from([
            ("HOME".into(), "/elsewhere".into()),
            ("LD_PRELOAD".into(), "x.so".into()),
        ]);
        let written = variable.write(&policy, &set).unwrap();
        assert!(!written.contains_key(OsStr::new("HOME")));
        assert!(!written.contains_key(OsStr::new("LD_PRELOAD")));
        assert!(written.keys().all(|name| variable.owns(name)));
        assert!(!variable.owns(OsStr::new("HOME")));
        let json = written[OsStr::new(STOCKADE_POLICY)].to_str().unwrap();
        let read = SandboxPolicy::from_json(json.as_bytes()).unwrap();
        assert_eq!(read, policy);
        let profile = variable.profile(&read, &around(), written).unwrap();
        let names: Vec<String> = profile
            .environment
            .set
            .iter()
            .map(|set| set.value.name().to_string())
            .collect();
        assert_eq!(names, ["HOME", "LD_PRELOAD"]);
    }

    #[test]
    fn what_the_kernel_would_not_take_is_refused() {
        let variable = PolicyVariable::new("P");
        let write = |name: &str, value: &str| {
            let set = Env::from([(name.into(), value.into())]);
            variable.write(&SandboxPolicy::read_only(), &set)
        };
        assert!(write("A", "b").is_ok());
        assert!(matches!(
            write("A", &"x".repeat(MAX_VARIABLE_BYTES)),
            Err(HandOverError::TooLong { .. })
        ));
        for (name, value) in [("", "x"), ("a=b", "x"), ("A", "x\0y")] {
            assert!(matches!(
                write(name, value),
                Err(HandOverError::Variable(_))
            ));
        }
    }
}
