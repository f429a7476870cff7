//! From the policy and command of a caller to something it can execute itself.
//!
//! For programs that have a way of their own to start and watch processes: they describe a
//! command, and get back what to execute in its place. Everybody else is better off with
//! `stockade::Sandbox`, which also reports what was enforced.
//!
//! Protects against running unconfined by accident. Each way out of the sandbox is an error
//! unless it was asked for by name:
//!
//! | policy | the command asks for | result |
//! |---|---|---|
//! | full access | anything | the command as it is |
//! | external sandbox | nothing more | an error, unless [`SandboxManager::danger_trust_external_sandbox`] |
//! | read-only, workspace-write | nothing more | the helper around the command |
//! | any but full access | additional paths | the same under the wider policy, with an [`Approval`] |
//! | any but full access | to run without the sandbox | the command as it is, with an [`Approval`] |
//!
//! An approval fits one command, directory, environment and policy, and is used up.
//!
//! # Differences from VT Code
//! - What a command asks for beyond its policy has an effect, and needs an approval.
//! - An external sandbox is not taken at its word.
//! - The helper must be an absolute path to a program that can be executed and that the policy
//!   does not let the command replace.
//! - The policy travels in the environment, not in the arguments; see [`PolicyVariable`].
//! - `sandbox_active` is only true if the whole plan of the run could be made on this machine.
//! - The environment of the result is complete: start it from nothing.

mod hand_over;
mod pin;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stockade_policy::{
    AdditionalPermissions, Approval, ApprovalScope, CommandSpec, Env, EnvRequest, ExecEnv,
    SandboxPermissions, SandboxPolicy, SandboxTransformError, SandboxType,
};

use self::pin::Pinned;
#[cfg(target_os = "linux")]
use self::pin::ending_in_time;

pub use hand_over::{HandOverError, PolicyVariable, STOCKADE_POLICY};

/// Turns commands into what is to be executed in their place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxManager {
    trusts_external: bool,
}

impl SandboxManager {
    /// A manager that lets nothing run unconfined but what full access or an approval covers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the word of whoever sets the policy [`SandboxPolicy::ExternalSandbox`] that there is
    /// a sandbox around this program: commands under that policy are passed through as they are.
    #[must_use]
    pub fn danger_trust_external_sandbox(self) -> Self {
        Self {
            trusts_external: true,
        }
    }

    /// What to execute in place of `spec`.
    ///
    /// `sandbox_cwd` is the directory that the policy is about; the command starts in `spec.cwd`,
    /// or there if that is empty. `sandbox_executable` is the path of the program `stockade`.
    ///
    /// # Errors
    /// If the policy can't be enforced here, or the command asks for more than the policy.
    pub fn transform(
        &self,
        spec: impl Into<CommandSpec>,
        policy: &SandboxPolicy,
        sandbox_cwd: &Path,
        sandbox_executable: Option<&Path>,
    ) -> Result<ExecEnv, SandboxTransformError> {
        let spec = spec.into();
        let asks = spec.sandbox_permissions;
        if asks.requires_approval() && *policy != SandboxPolicy::DangerFullAccess {
            let wish = match asks {
                SandboxPermissions::WithAdditionalPermissions => "additional permissions",
                _ => "to run without the sandbox",
            };
            return Err(invalid(format!(
                "the command asks for {wish}, which nobody has approved"
            )));
        }
        let request = Request {
            spec,
            policy,
            sandbox_cwd,
            sandbox_executable,
        };
        self.carry_out(request)
    }

    /// What somebody has to approve before the command can run as it asks to: show its policy and
    /// argv to the user, and hand it to [`Approver::approve`](stockade_policy::Approver::approve).
    ///
    /// # Errors
    /// If the request contradicts itself, gives no justification, or names what can't be a path.
    pub fn approval_scope(
        &self,
        spec: &CommandSpec,
        policy: &SandboxPolicy,
        additional: &AdditionalPermissions,
        sandbox_cwd: &Path,
    ) -> Result<ApprovalScope, SandboxTransformError> {
        let pinned = Pinned::widened(spec, policy, additional, sandbox_cwd)?;
        Ok(pinned.scope(spec))
    }

    /// The same as [`SandboxManager::transform`] for a command that asks for more than the policy,
    /// with somebody's consent to exactly that.
    ///
    /// `additional` are the paths that the command asks for; they must be none if it asks to run
    /// without the sandbox. The approval is used up, also where it would not have been needed.
    ///
    /// # Errors
    /// If the approval is for something else, the request contradicts itself, or the wider policy
    /// can't be enforced here.
    pub fn transform_with_approval(
        &self,
        spec: impl Into<CommandSpec>,
        policy: &SandboxPolicy,
        additional: &AdditionalPermissions,
        sandbox_cwd: &Path,
        sandbox_executable: Option<&Path>,
        approval: Approval,
    ) -> Result<ExecEnv, SandboxTransformError> {
        let spec = spec.into();
        let pinned = Pinned::widened(&spec, policy, additional, sandbox_cwd)?;
        approval
            .consume(&pinned.scope(&spec))
            .map_err(|error| invalid(error.to_string()))?;
        let had_everything = *policy == SandboxPolicy::DangerFullAccess;
        if pinned.policy == SandboxPolicy::DangerFullAccess && !had_everything {
            // What was approved is this command with these variables; the caller's own
            // credentials were not asked for.
            let env = sanitized(std::env::vars_os(), &spec.env);
            return Ok(pass_through(spec, pinned.start.into_path_buf(), env));
        }
        self.carry_out(Request {
            spec,
            policy: &pinned.policy,
            sandbox_cwd,
            sandbox_executable,
        })
    }

    fn carry_out(self, request: Request<'_>) -> Result<ExecEnv, SandboxTransformError> {
        let trusted = match request.policy {
            SandboxPolicy::ExternalSandbox { description } if !self.trusts_external => {
                return Err(invalid(format!(
                    "nothing is known about the external sandbox `{description}`; the command \
                     would run unconfined as far as can be seen here"
                )));
            }
            SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => true,
            SandboxPolicy::ReadOnly { .. } | SandboxPolicy::WorkspaceWrite { .. } => false,
        };
        if trusted {
            let pinned = Pinned::new(&request.spec, request.policy, request.sandbox_cwd)?;
            let mut env: Env = std::env::vars_os().collect();
            env.extend(request.spec.env.clone());
            return Ok(pass_through(
                request.spec,
                pinned.start.into_path_buf(),
                env,
            ));
        }
        confine(request)
    }
}

/// What was asked for.
struct Request<'a> {
    spec: CommandSpec,
    policy: &'a SandboxPolicy,
    sandbox_cwd: &'a Path,
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "there is nothing that it could help")
    )]
    sandbox_executable: Option<&'a Path>,
}

/// The command itself.
fn pass_through(spec: CommandSpec, cwd: PathBuf, env: Env) -> ExecEnv {
    ExecEnv {
        program: spec.program.into(),
        args: spec.args,
        cwd,
        env,
        expiration: spec.expiration,
        sandbox_active: false,
        sandbox_type: SandboxType::None,
    }
}

/// What always passes of `current`, and what the command's own description sets.
fn sanitized(current: impl IntoIterator<Item = (OsString, OsString)>, set: &Env) -> Env {
    let mut env = EnvRequest::new().build(current).env;
    env.extend(set.clone());
    env
}

#[cfg(not(target_os = "linux"))]
fn confine(_: Request<'_>) -> Result<ExecEnv, SandboxTransformError> {
    Err(SandboxTransformError::UnavailableSandboxType(
        SandboxType::platform_default(),
    ))
}

/// The helper around the command.
#[cfg(target_os = "linux")]
fn confine(request: Request<'_>) -> Result<ExecEnv, SandboxTransformError> {
    let helper = request
        .sandbox_executable
        .ok_or(SandboxTransformError::MissingSandboxExecutable)?;
    let spec = request.spec;
    let pinned = Pinned::new(&spec, request.policy, request.sandbox_cwd)?;
    let variable = PolicyVariable::new(STOCKADE_POLICY);
    let policy = ending_in_time(&pinned.policy, &spec.expiration);
    let carried = variable.write(&policy, &spec.env).map_err(failed)?;

    // From here on everything is as the helper will find it.
    let around = pinned.surroundings_of_start()?;
    let profile = variable
        .profile(&policy, &around, carried.clone())
        .map_err(|error| invalid(chain(&error)))?;
    helper::check(helper, &profile)?;
    let env = EnvRequest::new().build(std::env::vars_os()).env;
    let plan = crate::ExecPlan::new(
        &profile,
        &crate::Spec {
            argv: spec.full_command(),
            env: env.clone().into_iter().collect(),
            ..crate::Spec::default()
        },
    );
    plan.map_err(failed)?;

    let mut args: Vec<OsString> = vec![
        "run".into(),
        "--quiet".into(),
        "--policy-env".into(),
        STOCKADE_POLICY.into(),
        "-C".into(),
        pinned.start.as_path().into(),
        "--".into(),
    ];
    args.extend(spec.full_command());
    Ok(ExecEnv {
        program: helper.to_owned(),
        args,
        cwd: pinned.start.into_path_buf(),
        env: env.into_iter().chain(carried).collect(),
        expiration: spec.expiration,
        sandbox_active: true,
        sandbox_type: SandboxType::LinuxLandlock,
    })
}

#[cfg(target_os = "linux")]
mod helper;

fn invalid(text: impl Into<String>) -> SandboxTransformError {
    SandboxTransformError::InvalidPolicy(text.into())
}

#[cfg(target_os = "linux")]
fn failed(error: impl Error) -> SandboxTransformError {
    SandboxTransformError::CreationFailed(chain(&error))
}

/// An error with its causes.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
