//! Programs that can confine a command: found, asked for their version, and made to do it.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::deadline::{self, Ended};
use super::{Support, Tool};

/// For a busy machine; a tool that works answers in milliseconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn bwrap(given: Option<&Path>) -> Tool {
    if !shows_own_pids() {
        // It would fail half-way and leave a process that waits for ever.
        let reason = "/proc shows another pid namespace than this process has";
        return Tool {
            support: Support::none("bwrap", reason, None),
            path: None,
            version: None,
        };
    }
    tool(
        given,
        "bwrap",
        "--version",
        &[
            "--unshare-all",
            // As the backend has it: by itself bwrap does without where root may do the rest.
            "--unshare-user",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--",
        ],
        /*hint*/ "install the package `bubblewrap`; it is only needed for `--backend bwrap`",
    )
}

/// Whether `/proc` has the pid namespace of this process, and not that of a sandbox around it.
fn shows_own_pids() -> bool {
    let own = std::process::id().to_string();
    fs::read_link("/proc/self").is_ok_and(|name| name.as_os_str() == own.as_str())
}

pub(super) fn nsjail(given: Option<&Path>) -> Tool {
    tool(
        given,
        "nsjail",
        "--help",
        &["--really_quiet", "--mode", "o", "--chroot", "/", "--"],
        /*hint*/ "install nsjail; it is only needed for `--backend nsjail`",
    )
}

/// The default platform only: asking for KVM hangs on machines without nested virtualisation.
pub(super) fn runsc(given: Option<&Path>) -> Tool {
    // As the backend does: control groups are the helper's.
    let mut confine = vec!["--network=none", "--ignore-cgroups"];
    if !rustix::process::geteuid().is_root() {
        confine.push("--rootless");
    }
    confine.push("do");
    tool(
        given,
        "runsc",
        "--version",
        &confine,
        /*hint*/ "install gVisor's runsc; it is only needed for `--level maximum`",
    )
}

pub(super) fn broken(name: &str) -> Tool {
    Tool {
        support: Support::none(name, "the probe itself failed", None),
        path: None,
        version: None,
    }
}

/// `given` is where the caller says that it is; otherwise the search path is searched.
fn tool(
    given: Option<&Path>,
    name: &str,
    ask_version: &str,
    confine: &[&str],
    install: &str,
) -> Tool {
    let Some(path) = given.map(Path::to_owned).or_else(|| find(name)) else {
        return Tool {
            support: Support::none(name, "not installed", Some(install.to_owned())),
            path: None,
            version: None,
        };
    };
    let mut command = Command::new(&path);
    command.arg(ask_version);
    let version = match deadline::run(command, PROBE_TIMEOUT) {
        Ended::Exited { status, stdout, .. } if status.success() => version(&stdout),
        _ => None,
    };
    let mut command = Command::new(&path);
    command.args(confine).arg("/bin/true");
    let support = match deadline::run(command, PROBE_TIMEOUT) {
        Ended::Exited { status, .. } if status.success() => Support::Full,
        Ended::Exited { status, stderr, .. } => {
            let last = stderr.lines().rfind(|line| !line.trim().is_empty());
            let reason = last.map_or_else(|| status.to_string(), str::to_owned);
            Support::none(name, reason, None)
        }
        Ended::NotStarted(error) => Support::none(name, error.to_string(), None),
        Ended::TimedOut => Support::none(name, "it hangs when it confines `true`", None),
    };
    Tool {
        support,
        path: Some(path),
        version,
    }
}

/// The first word with a digit in front, or behind a `v` or `release-`, of the first line.
fn version(text: &str) -> Option<String> {
    text.lines()
        .next()?
        .split_whitespace()
        .map(|word| word.trim_start_matches("release-").trim_start_matches('v'))
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))
        .map(str::to_owned)
}

/// Searches `PATH`, leaving out relative entries: they would let the current directory decide.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        assert_eq!(version("bubblewrap 0.8.0\n").as_deref(), Some("0.8.0"));
        assert_eq!(
            version("runsc version release-20240401.0\nspec: 1.1.0\n").as_deref(),
            Some("20240401.0")
        );
        assert_eq!(version("Usage: nsjail [options]\n"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn a_tool_that_fails_is_not_available() {
        let failing = tool(None, "false", "--version", &[], "impossible");
        assert!(!failing.support.is_usable());
        let missing = tool(None, "no-such-program-anywhere", "-v", &[], "install it");
        assert_eq!(missing.path, None);
        assert_eq!(missing.support.gaps()[0].reason, "not installed");
    }
}
