//! Runs a command that the hook rewrote, in the session of the agent.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use stockade_policy::EnvRequest;

use crate::args::{ExecArgs, HookExecArgs};
use crate::commands::session;
use crate::exit::Exit;
use crate::failure::Failure;

/// How long a session outlives the last command of an agent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The shell's part: the command as it is, and where it ended up.
const SCRIPT: &str = r#"stockade_last=$1; trap 'pwd -P >"$stockade_last"' EXIT; eval "$2""#;

/// Variables that mean another thing inside.
const OF_THE_HOST: &[&str] = &[
    "HOME",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "TEMP",
    "TMP",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "_",
];

pub(super) fn run(args: &HookExecArgs) -> Result<Exit, Failure> {
    if !session::is_open(&args.session)? {
        open(args)?;
    }
    let shell = ["bash", "-c", SCRIPT, "bash"].map(OsString::from);
    let words = [args.last_directory.clone(), args.command.clone()];
    session::exec(&ExecArgs {
        name: args.session.clone(),
        tty: false,
        cwd: Some(std::env::current_dir()?),
        env: variables(),
        timeout: None,
        output: args.output,
        quiet: false,
        command: shell.into_iter().chain(words).collect(),
    })
}

/// Opens the session. Another command of the agent may be faster: then there is one.
fn open(args: &HookExecArgs) -> Result<(), Failure> {
    let idle = format!("{}s", IDLE_TIMEOUT.as_secs());
    let ran = Command::new("/proc/self/exe")
        .arg0("stockade")
        .args([
            "session",
            "open",
            &args.session,
            "--quiet",
            "--idle-timeout",
            &idle,
            "--cwd",
        ])
        .arg(&args.root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()?;
    if ran.status.success() || session::is_open(&args.session)? {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&ran.stderr);
    let text = text.lines().next().unwrap_or_default();
    let text = text.trim_start_matches("error: ");
    Err(Failure::text(Exit::NotSetUp, text))
}

/// The variables of the agent's shell that a sandbox takes.
fn variables() -> Vec<OsString> {
    let sanitized = EnvRequest::new().build(std::env::vars_os());
    let passed = sanitized.env.into_iter().filter(|(name, _)| {
        let name = name.to_string_lossy();
        !OF_THE_HOST.contains(&&*name) && !name.to_ascii_lowercase().ends_with("_proxy")
    });
    let entries = passed.map(|(name, value)| {
        let mut entry = name;
        entry.push("=");
        entry.push(value);
        entry
    });
    entries.collect()
}
