//! Seatbelt, the sandbox of macOS: a policy as the text that `sandbox-exec` reads.
//!
//! The text is made on every system, so that it can be looked at and tested everywhere; only
//! running it needs macOS. In that language the *last* statement that matches decides, so the
//! statements are written from the weakest rule to the strongest: the result is the one decision
//! function in another language, which the tests prove over random policies with an evaluator.
//!
//! Protects what the kernel of macOS checks: files by the path they really have, sockets, Mach
//! services, processes. Not protected: the names and sizes of files (`file-read-metadata` is what
//! programs find their way with), the list of names in `/`, memory and processes without limits, and what a listed Mach
//! service does on the command's behalf.

mod canonical;
mod profile;
mod statement;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use stockade_policy::EnvRequest;
use stockade_policy::profile::{NetworkMode, Profile};
use stockade_rules::{AbsPath, Access, PathRule, Pattern, RuleSet};

pub use profile::generate_seatbelt_profile;

/// What a command may do under Seatbelt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct SeatbeltPolicy {
    /// What may be read and written, in any order.
    pub rules: RuleSet,
    /// What of the network is there.
    pub network: SeatbeltNetwork,
    /// Unix sockets of the host that may be connected to.
    pub unix_sockets: Vec<AbsPath>,
    /// Whether the command may start programs and processes.
    pub allow_process: bool,
    /// Whether kernel settings may be read, which most runtimes do when they start.
    pub allow_sysctl: bool,
    /// Whether the command may use its terminal.
    pub allow_terminal: bool,
    /// Mach services that may be looked up, by their global names.
    pub mach_services: Vec<String>,
}

/// What of the network there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the ways there are")]
pub enum SeatbeltNetwork {
    /// Nothing, not even the loopback: macOS has no private one.
    Off,
    /// This port of the loopback, where the egress proxy listens.
    Proxy(u16),
    /// All of it.
    Open,
}

/// Why there is no profile, or it can't be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeatbeltError {
    /// A list of hosts is enforced by the proxy, and there is none.
    #[error("a list of allowed hosts needs the egress proxy's port")]
    NoProxy,
    /// The language has no way to say it.
    #[error("`{}` is not UTF-8 and can't be said in a Seatbelt profile", .0.display())]
    NotText(PathBuf),
    /// Not on this system, or `sandbox-exec` does not work.
    #[error("there is no Seatbelt here: {0}")]
    Unavailable(String),
}

/// Mach services that programs need to resolve users, time zones, directories and to log; none of
/// them opens files, starts programs or shows anything on the caller's behalf.
const SERVICES: &[&str] = &[
    "com.apple.bsd.dirhelper",
    "com.apple.diagnosticd",
    "com.apple.logd",
    "com.apple.system.DirectoryService.libinfo_v1",
    "com.apple.system.DirectoryService.membership_v1",
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
];

/// Directories that programs are made of.
const SYSTEM: &[&str] = &[
    "/bin",
    "/dev",
    "/Library",
    "/opt",
    "/private/etc",
    "/private/var/db/timezone",
    "/private/var/select",
    "/sbin",
    "/System",
    "/usr",
];

impl SeatbeltPolicy {
    /// Nothing but starting programs and reading kernel settings; rules are to be added.
    pub fn new(rules: RuleSet) -> Self {
        Self {
            rules,
            network: SeatbeltNetwork::Off,
            unix_sockets: Vec::new(),
            allow_process: true,
            allow_sysctl: true,
            allow_terminal: true,
            mach_services: SERVICES.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    /// The system's directories readable, `work_dir` and the temporary directories writable, no
    /// network.
    pub fn default_for(work_dir: &AbsPath) -> Self {
        let rule = |path: AbsPath, access| {
            PathRule::built_in(Pattern::Subtree(path), access, "built-in: seatbelt")
        };
        let known = |path: &&str| AbsPath::new(path).ok();
        let readable = SYSTEM.iter().filter_map(known);
        let temporary = ["/private/tmp", "/private/var/tmp"];
        let writable = temporary.iter().filter_map(known);
        let rules = readable
            .map(|path| rule(path, Access::Read))
            .chain(writable.map(|path| rule(path, Access::Write)))
            .chain([rule(work_dir.clone(), Access::Write)]);
        Self::new(RuleSet::new(rules.collect()))
    }

    /// The same policy as everywhere else. `proxy` is the port on which the egress proxy listens.
    ///
    /// # Errors
    /// If hosts are listed and there is no proxy.
    pub fn from_profile(profile: &Profile, proxy: Option<u16>) -> Result<Self, SeatbeltError> {
        let network = match (profile.network.mode.value, proxy) {
            (NetworkMode::Off, _) => SeatbeltNetwork::Off,
            (NetworkMode::Open, _) => SeatbeltNetwork::Open,
            (NetworkMode::Allowlist, Some(port)) => SeatbeltNetwork::Proxy(port),
            (NetworkMode::Allowlist, None) if profile.network.allow.is_empty() => {
                SeatbeltNetwork::Off
            }
            (NetworkMode::Allowlist, None) => return Err(SeatbeltError::NoProxy),
        };
        let sockets = profile.network.unix.iter();
        Ok(Self {
            network,
            unix_sockets: sockets.map(|socket| socket.value.clone()).collect(),
            ..Self::new(profile.rules.clone())
        })
    }
}

/// Whether `sandbox-exec` confines a command here.
pub fn seatbelt_available() -> bool {
    cfg!(target_os = "macos")
        && Command::new(SANDBOX_EXEC)
            .args(["-p", "(version 1)(allow default)", "/usr/bin/true"])
            .output()
            .is_ok_and(|output| output.status.success())
}

/// A shell command under Seatbelt, ready to be started; with a built environment, not the
/// caller's.
///
/// # Errors
/// If this is not macOS, `sandbox-exec` does not work, or the policy can't be said.
pub fn run_seatbelted(command: &str, policy: &SeatbeltPolicy) -> Result<Command, SeatbeltError> {
    seatbelt_command(&["/bin/bash".into(), "-c".into(), command.into()], policy)
}

/// The same for a program and its arguments.
///
/// # Errors
/// If this is not macOS, `sandbox-exec` does not work, or the policy can't be said.
pub fn seatbelt_command(
    argv: &[OsString],
    policy: &SeatbeltPolicy,
) -> Result<Command, SeatbeltError> {
    let profile = generate_seatbelt_profile(policy)?;
    if !seatbelt_available() {
        let reason = if cfg!(target_os = "macos") {
            "`sandbox-exec` does not work"
        } else {
            "this is not macOS"
        };
        return Err(SeatbeltError::Unavailable(reason.to_owned()));
    }
    let mut wrapped = Command::new(SANDBOX_EXEC);
    wrapped
        .args(["-p", &profile, "--"])
        .args(argv)
        .env_clear()
        .envs(EnvRequest::new().build(std::env::vars_os()).env);
    Ok(wrapped)
}

/// Never looked up: the one that belongs to the system.
const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

#[cfg(test)]
mod tests;
