//! Hawk's shape of a policy for Seatbelt, the sandbox of macOS.

use std::path::{Path, PathBuf};
use std::process::Command;

use stockade_engine::seatbelt::{self, SeatbeltError, SeatbeltNetwork};
use stockade_rules::{AbsPath, Access, PathRule, Pattern, RuleSet};

use crate::compat::{Context, FrontError};

/// What a command may do under Seatbelt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    clippy::struct_excessive_bools,
    reason = "callers fill in the six fields that Hawk has"
)]
pub struct SeatbeltPolicy {
    /// Whether the command has the network.
    pub allow_network: bool,
    /// Whether [`SeatbeltPolicy::writable_paths`] may be written.
    pub allow_write: bool,
    /// Directories and files that may be read.
    pub readable_paths: Vec<PathBuf>,
    /// Directories and files that may be written, if [`SeatbeltPolicy::allow_write`] is set.
    /// They may be read in either case.
    pub writable_paths: Vec<PathBuf>,
    /// Whether the command may start programs.
    pub allow_process: bool,
    /// Whether kernel settings may be read.
    pub allow_sysctl: bool,
}

/// The system's directories readable, `work_dir` and the temporary directories writable, programs
/// and kernel settings allowed, no network.
///
/// # Errors
/// If `work_dir` is not absolute.
pub fn default_hawk_policy(work_dir: &Path) -> Result<SeatbeltPolicy, FrontError> {
    let policy = seatbelt::SeatbeltPolicy::default_for(&absolute(work_dir)?);
    let with = |access| {
        let rules = policy.rules.iter();
        let granted = rules.filter(move |rule| rule.access == access);
        granted.filter_map(|rule| match &rule.pattern {
            Pattern::Subtree(path) => Some(path.as_path().to_owned()),
            Pattern::Glob(_) => None,
        })
    };
    Ok(SeatbeltPolicy {
        allow_network: false,
        allow_write: true,
        readable_paths: with(Access::Read).collect(),
        writable_paths: with(Access::Write).collect(),
        allow_process: policy.allow_process,
        allow_sysctl: policy.allow_sysctl,
    })
}

/// The text that `sandbox-exec -p` reads. It is made on every system.
///
/// # Errors
/// If a path is not absolute or not UTF-8.
pub fn generate_seatbelt_profile(policy: &SeatbeltPolicy) -> Result<String, FrontError> {
    seatbelt::generate_seatbelt_profile(&policy.lower()?).map_err(refused)
}

/// A shell command under Seatbelt, ready to be started.
///
/// # Errors
/// If this is not macOS, `sandbox-exec` does not work, the policy can't be expressed, or the context
/// was cancelled.
pub fn run_seatbelted(
    context: &Context,
    command: &str,
    policy: &SeatbeltPolicy,
) -> Result<Command, FrontError> {
    context.check()?;
    seatbelt::run_seatbelted(command, &policy.lower()?).map_err(refused)
}

impl SeatbeltPolicy {
    fn lower(&self) -> Result<seatbelt::SeatbeltPolicy, FrontError> {
        let writable = if self.allow_write {
            Access::Write
        } else {
            Access::Read
        };
        let readable = self.readable_paths.iter().map(|path| (path, Access::Read));
        let writable = self.writable_paths.iter().map(|path| (path, writable));
        let rules = readable.chain(writable).map(|(path, access)| {
            let pattern = Pattern::Subtree(absolute(path)?);
            Ok(PathRule::built_in(pattern, access, "seatbelt policy"))
        });
        let rules = rules.collect::<Result<Vec<_>, FrontError>>()?;
        Ok(seatbelt::SeatbeltPolicy {
            network: if self.allow_network {
                SeatbeltNetwork::Open
            } else {
                SeatbeltNetwork::Off
            },
            allow_process: self.allow_process,
            allow_sysctl: self.allow_sysctl,
            ..seatbelt::SeatbeltPolicy::new(RuleSet::new(rules))
        })
    }
}

fn absolute(path: &Path) -> Result<AbsPath, FrontError> {
    AbsPath::new(path).map_err(|source| FrontError::Directory {
        path: path.to_owned(),
        source,
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the form that `map_err` takes"
)]
fn refused(error: SeatbeltError) -> FrontError {
    FrontError::Settings(error.to_string())
}
