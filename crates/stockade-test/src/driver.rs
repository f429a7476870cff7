//! The library's door: does through the crate what `stockade run` does with the same flags.
//!
//! A program whose `main` begins with [`dispatch`] can be started as
//! `program --case FILE -- command`, with a [`DriverCase`] in FILE. It is its own helper. The
//! command's code is passed on, and what the library says is told as the command line would:
//! nothing on standard output, the exit codes of the specification.

use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitCode;
use std::sync::Arc;

use stockade::compat::vtcode::{CommandSpec, SandboxManager};
use stockade::{Ending, Error as SandboxError, PlanError, RunError, Sandbox, SandboxPolicy};
use stockade_engine::{Files, Finished};
use stockade_linux::{SpawnError, Stage, inherited_descriptor};
use stockade_policy::host::HostPattern;
use stockade_policy::profile::{
    self, BasePolicy, Flags, NetworkMode, Profile, ProfileError, Sources, parse_duration,
};
use stockade_policy::{AbsPath, Surroundings};
use stockade_proxy::{SandboxProxy, Upstream};

use crate::flag::{Base, Flag, Net};
use crate::runner::DriverCase;

const USAGE: u8 = 2;
const TIMED_OUT: u8 = 124;
const NOT_SET_UP: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Acts as helper or driver if this program was started as one; to be called first in `main`.
pub fn dispatch() -> Option<ExitCode> {
    stockade::init();
    let mut words = std::env::args_os().skip(1);
    if words.next()? != "--case" {
        return None;
    }
    let file = words.next()?;
    let command: Vec<OsString> = words.skip_while(|word| word == "--").collect();
    Some(drive(&file, &command).unwrap_or_else(|refusal| refusal.tell()))
}

/// Why the command did not run.
struct Refusal {
    code: u8,
    reason: String,
}

impl Refusal {
    fn new(code: u8, error: &dyn Error) -> Self {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            reason = format!("{reason}: {error}");
            cause = error.source();
        }
        Self { code, reason }
    }

    fn tell(&self) -> ExitCode {
        say(&self.reason);
        ExitCode::from(self.code)
    }
}

fn say(text: &str) {
    // Nowhere to report that standard error is closed.
    let _ = writeln!(std::io::stderr(), "driver: {text}");
}

/// What the flags ask for beside the policy.
#[derive(Default)]
struct Wishes {
    flags: Flags,
    policy: Option<String>,
    cwd: Option<String>,
    report: Option<String>,
    pass: Vec<i32>,
    explain: bool,
    upstream: Option<Upstream>,
}

fn drive(file: &OsString, command: &[OsString]) -> Result<ExitCode, Refusal> {
    let usage = |error: &dyn Error| Refusal::new(USAGE, error);
    let text = fs::read(file).map_err(|error| usage(&error))?;
    let case: DriverCase = serde_json::from_slice(&text).map_err(|error| usage(&error))?;
    let wishes = Wishes::read(case.flags)?;
    let profile = wishes.profile()?;
    let (program, arguments) = command.split_first().ok_or(Refusal {
        code: USAGE,
        reason: "no command".to_owned(),
    })?;
    if profile.base_policy.value == BasePolicy::DangerFullAccess {
        return unconfined(program, arguments);
    }
    // Before the command runs: a report that can't be written is known in time.
    let report = wishes.report.map(|name| {
        File::create(&name).map_err(|error| Refusal {
            code: NOT_SET_UP,
            reason: format!("{name}: {error}"),
        })
    });
    let report = report.transpose()?;
    let network = Arc::new(SandboxProxy {
        upstream: wishes.upstream,
        ..SandboxProxy::default()
    });
    let mut builder = Sandbox::builder();
    builder.profile(profile).network_service(network);
    let sandbox = builder.build().map_err(|error| refusal(&error))?;
    let mut command = sandbox.command(program);
    command.args(arguments);
    for number in wishes.pass {
        let fd = inherited_descriptor(number).map_err(|error| usage(&error))?;
        command.pass_fd(fd, number);
    }
    if wishes.explain {
        command.explain();
    }
    let finished = command.status().map_err(|error| refusal(&error))?;
    for warning in &finished.report.warnings {
        say(warning);
    }
    if let Some(mut report) = report {
        serde_json::to_writer(&mut report, &finished.report)
            .map_err(|error| Refusal::new(NOT_SET_UP, &error))?;
    }
    Ok(code_of(&finished))
}

/// Full access is not the builder's business but the manager's, which passes the command through.
fn unconfined(program: &OsString, arguments: &[OsString]) -> Result<ExitCode, Refusal> {
    let failed = |error: &dyn Error| Refusal::new(NOT_SET_UP, error);
    let cwd = std::env::current_dir().map_err(|error| failed(&error))?;
    let spec = CommandSpec::new(program).with_args(arguments);
    let prepared = SandboxManager::new()
        .transform(spec, &SandboxPolicy::full_access(), &cwd, None)
        .map_err(|error| failed(&error))?;
    let status = std::process::Command::new(prepared.program)
        .args(prepared.args)
        .current_dir(prepared.cwd)
        .env_clear()
        .envs(prepared.env)
        .status()
        .map_err(|error| failed(&error))?;
    let code = status.code().unwrap_or(128 + status.signal().unwrap_or(0));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

fn code_of(finished: &Finished) -> ExitCode {
    match finished.report.ending {
        Ending::TimedOut => ExitCode::from(TIMED_OUT),
        _ => ExitCode::from(u8::try_from(finished.status_code()).unwrap_or(u8::MAX)),
    }
}

fn refusal(error: &SandboxError) -> Refusal {
    let code = match error {
        SandboxError::Run(RunError::Spawn(SpawnError::Stage {
            stage: Stage::Find, ..
        })) => NOT_FOUND,
        SandboxError::Run(RunError::Spawn(SpawnError::Stage {
            stage: Stage::Execute,
            ..
        })) => NOT_EXECUTABLE,
        SandboxError::Run(RunError::Plan(PlanError::Empty)) => USAGE,
        _ => NOT_SET_UP,
    };
    Refusal::new(code, error)
}

impl Wishes {
    fn read(given: Vec<Flag>) -> Result<Self, Refusal> {
        let mut wishes = Self::default();
        for flag in given {
            wishes.add(flag)?;
        }
        Ok(wishes)
    }

    fn add(&mut self, flag: Flag) -> Result<(), Refusal> {
        let flags = &mut self.flags;
        match flag {
            Flag::ReadOnly => flags.base_policy = Some(BasePolicy::ReadOnly),
            Flag::WorkspaceWrite => flags.base_policy = Some(BasePolicy::WorkspaceWrite),
            Flag::DangerFullAccess => flags.base_policy = Some(BasePolicy::DangerFullAccess),
            Flag::Policy(file) => self.policy = Some(file),
            Flag::Cwd(dir) => self.cwd = Some(dir),
            Flag::Write(path) => flags.write.push(path.into()),
            Flag::Read(path) => flags.read.push(path.into()),
            Flag::Deny(path) => flags.deny.push(path.into()),
            Flag::DenyRead(path) => flags.deny_read.push(path.into()),
            Flag::DenyWrite(path) => flags.deny_write.push(path.into()),
            Flag::Base(Base::Host) => flags.base = Some(profile::Base::Host),
            Flag::Base(Base::Minimal) => flags.base = Some(profile::Base::Minimal),
            Flag::Net(Net::Off) => flags.net = Some(NetworkMode::Off),
            Flag::Net(Net::Open) => flags.net = Some(NetworkMode::Open),
            Flag::Allow(host) => flags.allow.push(read(&host, HostPattern::parse)?),
            Flag::Block(host) => flags.block.push(read(&host, HostPattern::parse_block)?),
            Flag::Resolve(pin) => flags.resolve.push(read(&pin, str::parse)?),
            Flag::NetMethods(word) => flags.net_methods = Some(read(&word, str::parse)?),
            Flag::Mask(mask) => flags.mask.push(read(&mask, str::parse)?),
            Flag::Upstream(url) => self.upstream = Some(read(&url, Upstream::parse)?),
            Flag::Unix(path) => flags.unix.push(path.into()),
            Flag::HostPort(port) => flags.host_port.push(read(&port, str::parse)?),
            Flag::Expose(port) => flags.expose.push(read(&port, str::parse)?),
            Flag::Device(path) => flags.device.push(path.into()),
            Flag::Env(pair) => flags.env.push(pair.into()),
            Flag::KeepEnv(name) => flags.keep_env.push(name.into()),
            Flag::PassFd(fd) => self.pass.push(read(&fd.to_string(), str::parse)?),
            Flag::Limit(limit) => flags.limit.push(read(&limit.text(), str::parse)?),
            Flag::Timeout(span) => flags.timeout = Some(read(&span, parse_duration)?),
            Flag::Level(level) => flags.level = Some(read(&level, str::parse)?),
            Flag::Backend(name) => flags.backend = Some(read(&name, str::parse)?),
            Flag::Require(clause) => flags.require.push(read(&clause, str::parse)?),
            Flag::BestEffort => flags.best_effort = true,
            Flag::Seccomp(mode) => flags.seccomp = Some(read(&mode, str::parse)?),
            Flag::GitConfig => flags.git_config = true,
            Flag::Home(mode) => flags.home = Some(read(&mode, str::parse)?),
            Flag::HiddenNames => flags.danger_hidden_names = true,
            Flag::NestedNamespaces => flags.danger_nested_namespaces = true,
            Flag::Report(file) => self.report = Some(file),
            Flag::Explain => self.explain = true,
            Flag::Overlay | Flag::Commit => {
                return Err(Refusal {
                    code: USAGE,
                    reason: "overlays are the command line's".to_owned(),
                });
            }
            // About what the command line prints, or does in place of running.
            Flag::Json | Flag::DryRun => {}
        }
        Ok(())
    }

    /// The profile that a user in this directory would have.
    fn profile(&self) -> Result<Profile, Refusal> {
        let failed = |error: &dyn Error| Refusal::new(NOT_SET_UP, error);
        let here = std::env::current_dir().map_err(|error| failed(&error))?;
        let cwd = here.join(self.cwd.as_deref().unwrap_or_default());
        let around = Surroundings::from_env(&cwd).map_err(|error| failed(&error))?;
        let policy = self
            .policy
            .as_ref()
            .map(|file| AbsPath::new(here.join(file)));
        let sources = Sources {
            policy: policy.transpose().map_err(|error| failed(&error))?,
            flags: self.flags.clone(),
            ..Files::sources(around)
        };
        Files::load(&sources).map_err(|error| {
            let code = match &error {
                ProfileError::Flag { .. } => USAGE,
                _ => NOT_SET_UP,
            };
            Refusal::new(code, &error)
        })
    }
}

/// A value in the words of the user.
fn read<T, E: ToString>(text: &str, read: impl Fn(&str) -> Result<T, E>) -> Result<T, Refusal> {
    read(text).map_err(|error| Refusal {
        code: USAGE,
        reason: format!("{text}: {}", error.to_string()),
    })
}
