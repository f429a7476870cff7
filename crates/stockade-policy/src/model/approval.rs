//! Somebody's consent to one wider run.
//!
//! Protects against escalation by argument: a request that says "without the sandbox" is only a
//! request. What lifts a restriction is an [`Approval`], which can't be written down, copied or
//! used twice, and which fits exactly one command under exactly one policy.
//!
//! It does not protect against code in the same process that makes itself an [`Approver`]; such
//! code could skip the check as well. The name of that function begins with `danger` so that a
//! search finds each use.

use std::ffi::OsString;
use std::path::PathBuf;

use thiserror::Error;

use super::permissions::SandboxPermissions;
use super::sandbox_policy::SandboxPolicy;
use crate::command::CommandSpec;
use crate::env::Env;

/// What an approval is about: the command as it will be executed, and the policy it will have.
///
/// Held in full and compared in full; there is no digest that two commands could share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalScope {
    argv: Vec<OsString>,
    cwd: PathBuf,
    env: Env,
    permissions: SandboxPermissions,
    policy: SandboxPolicy,
}

/// Consent to one run. Neither copied nor stored; using it consumes it.
///
/// ```compile_fail
/// # fn twice(approval: stockade_policy::Approval, scope: stockade_policy::ApprovalScope) {
/// approval.consume(&scope);
/// approval.consume(&scope); // used up
/// # }
/// ```
///
/// ```compile_fail
/// # fn copy(approval: &stockade_policy::Approval) -> stockade_policy::Approval {
/// approval.clone() // a clone of the reference, not of the approval
/// # }
/// ```
#[derive(Debug)]
#[must_use = "an approval does nothing until it is presented"]
pub struct Approval {
    scope: ApprovalScope,
    justification: String,
}

/// The authority to approve: held by whatever asks the user.
#[derive(Debug)]
pub struct Approver(());

/// Why an approval was not given or does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ApprovalError {
    /// The command has no reason to approve.
    #[error("nothing can be approved without a justification")]
    NoJustification,
    /// The approval is for another command, directory, environment or policy.
    #[error("the approval is for something else: {0} differs")]
    Mismatch(&'static str),
}

impl ApprovalScope {
    /// The scope of running this command under this policy.
    pub fn new(command: &CommandSpec, policy: &SandboxPolicy) -> Self {
        Self {
            argv: command.full_command(),
            cwd: command.cwd.clone(),
            env: command.env.clone(),
            permissions: command.sandbox_permissions,
            policy: policy.clone(),
        }
    }

    /// The program and its arguments.
    pub fn argv(&self) -> &[OsString] {
        &self.argv
    }

    /// The policy that the command will have.
    pub fn policy(&self) -> &SandboxPolicy {
        &self.policy
    }

    fn difference(&self, other: &Self) -> Option<&'static str> {
        let parts = [
            ("the command", self.argv == other.argv),
            ("the working directory", self.cwd == other.cwd),
            ("the environment", self.env == other.env),
            ("what is asked for", self.permissions == other.permissions),
            ("the policy", self.policy == other.policy),
        ];
        let mut different = parts.into_iter().filter(|(_, same)| !same);
        different.next().map(|(name, _)| name)
    }
}

impl Approver {
    /// Claims the authority to approve.
    ///
    /// # Security
    /// Whoever holds an approver can lift every restriction. Make one where the user is asked,
    /// and hand it to nothing that an agent steers.
    pub fn danger_on_behalf_of_the_user() -> Self {
        Self(())
    }

    /// Approves one run. The justification is the one that the user was shown.
    ///
    /// # Errors
    /// If there is no justification.
    pub fn approve(
        &self,
        scope: ApprovalScope,
        justification: &str,
    ) -> Result<Approval, ApprovalError> {
        let justification = justification.trim();
        if justification.is_empty() {
            return Err(ApprovalError::NoJustification);
        }
        Ok(Approval {
            scope,
            justification: justification.to_owned(),
        })
    }
}

impl Approval {
    /// Uses the approval up for this scope; gives back the justification, for the record.
    ///
    /// # Errors
    /// If it is for something else. It is used up all the same.
    pub fn consume(self, scope: &ApprovalScope) -> Result<String, ApprovalError> {
        match self.scope.difference(scope) {
            Some(part) => Err(ApprovalError::Mismatch(part)),
            None => Ok(self.justification),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(command: &CommandSpec) -> ApprovalScope {
        ApprovalScope::new(command, &SandboxPolicy::full_access())
    }

    #[test]
    fn it_fits_exactly_one_command_and_policy() {
        let command = CommandSpec::new("rm")
            .with_args(["-rf", "x"])
            .with_cwd("/ws");
        let approver = Approver::danger_on_behalf_of_the_user();
        let approve = || approver.approve(scope(&command), "clean up").unwrap();
        assert_eq!(approve().consume(&scope(&command)).unwrap(), "clean up");
        for (other, part) in [
            (command.clone().with_args(["-rf x"]), "the command"),
            (command.clone().with_args(["-rf", "y"]), "the command"),
            (command.clone().with_cwd("/"), "the working directory"),
            (command.clone().with_env([("A", "b")]), "the environment"),
            (
                command
                    .clone()
                    .with_sandbox_permissions(SandboxPermissions::BypassSandbox),
                "what is asked for",
            ),
        ] {
            assert_eq!(
                approve().consume(&scope(&other)),
                Err(ApprovalError::Mismatch(part))
            );
        }
        let elsewhere = ApprovalScope::new(&command, &SandboxPolicy::read_only());
        assert_eq!(
            approve().consume(&elsewhere),
            Err(ApprovalError::Mismatch("the policy"))
        );
    }

    #[test]
    fn it_needs_a_justification() {
        let approver = Approver::danger_on_behalf_of_the_user();
        let given = approver.approve(scope(&CommandSpec::new("x")), " \n");
        assert_eq!(given.err(), Some(ApprovalError::NoJustification));
    }
}
