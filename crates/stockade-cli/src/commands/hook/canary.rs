//! Proves that a command that went through the hook is confined.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::agent_hook::{AgentHook, quote};
use super::rewrite::confined;
use crate::exit::Exit;
use crate::failure::Failure;

/// Removed when it is dropped, so that no error leaves it behind.
struct Canary(PathBuf);

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Runs a command as the agent would: it writes below the home directory, where no sandbox lets a
/// write reach the host.
pub(super) fn check(hook: &AgentHook) -> Result<(), Failure> {
    let around = crate::resolve::Place::enter(None)?.around;
    let home = around.home.as_ref().map(|home| home.as_path().to_owned());
    let home = home.unwrap_or_default();
    let name = format!("stockade-canary-{}", std::process::id());
    let canary = Canary(home.join(format!(".{name}")));
    // Of its own: the home directory would be the workspace if somebody stands there.
    let root = std::env::temp_dir().join(&name);
    std::fs::create_dir(&root)?;
    let file = quote(&canary.0.to_string_lossy());
    let command = format!("touch {file}; echo {name}");
    let line = confined(hook.program(), &root, &name, &["--", &command]);
    let ran = Command::new("bash")
        .args(["-c", &line])
        .current_dir(&root)
        .stdin(Stdio::null())
        .output();
    let closed = Command::new(hook.program())
        .args(["session", "close", &name])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let _ = std::fs::remove_dir(&root);
    let (ran, _) = (ran?, closed?);
    if canary.0.symlink_metadata().is_ok() {
        return Err(Failure::text(
            Exit::Negative,
            "a canary command was NOT confined",
        ));
    }
    if String::from_utf8_lossy(&ran.stdout).trim() != name {
        let why = String::from_utf8_lossy(&ran.stderr);
        let why = why.lines().next().unwrap_or_default();
        let why = why.trim_start_matches("error: ");
        let text = format!("a canary command did not run: {why}");
        return Err(Failure::text(Exit::Negative, text).hint("stockade doctor"));
    }
    Ok(())
}
