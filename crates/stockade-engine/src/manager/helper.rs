//! Whether a path can be trusted to be the helper.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use stockade_policy::SandboxTransformError;
use stockade_policy::profile::Profile;
use stockade_rules::{AbsPath, Kind};

use crate::host::Host;
use crate::probe::deadline::{self, Ended};

/// For a program to print its version. A busy machine must not make a helper unusable.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

/// Checks that `helper` names the program `stockade`, and that the commands which it is to confine
/// can't replace it: the next run would execute what they put there, outside the sandbox.
pub(super) fn check(helper: &Path, profile: &Profile) -> Result<(), SandboxTransformError> {
    let refuse = |reason: &str| {
        let text = format!("the helper `{}` {reason}", helper.display());
        Err(SandboxTransformError::CreationFailed(text))
    };
    // A relative one would depend on the directory, which may be the project's.
    let Ok(path) = AbsPath::new(helper) else {
        return refuse("is not named by an absolute path");
    };
    let metadata = match helper.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return refuse(&format!("can't be used: {error}")),
    };
    if !metadata.is_file() || metadata.mode() & 0o111 == 0 {
        return refuse("is not a program that can be executed");
    }
    let found = Host::look().find(&path);
    let writable = |path: &AbsPath| profile.rules.decide(Kind::Write, path.as_path()).allowed;
    if writable(&path) || found.real().is_some_and(writable) {
        return refuse("can be replaced by the command under this policy; install it elsewhere");
    }
    if !is_stockade(helper) {
        return refuse("is not the program `stockade`: its `--version` says something else");
    }
    Ok(())
}

/// Against mistakes: a program that ignores its arguments would run nothing, or run the command bare.
fn is_stockade(helper: &Path) -> bool {
    let mut command = Command::new(helper);
    command.arg("--version").env_clear();
    match deadline::run(command, VERSION_TIMEOUT) {
        Ended::Exited { status, stdout, .. } => status.success() && stdout.starts_with("stockade "),
        Ended::NotStarted(_) | Ended::TimedOut => false,
    }
}
