//! Hints that only programs see which use the library.

use std::path::{Path, PathBuf};

use stockade::policy::{ApprovalScope, Approver, CommandSpec};
use stockade::{Error, Sandbox, SandboxPolicy};
use stockade_engine::probe::probe;

use crate::context::{Context, STOCKADE};
use crate::hint_list::Hints;
use crate::machine_hints::fixes;

fn sandbox(workspace: PathBuf, policy: SandboxPolicy) -> Result<Sandbox, Error> {
    let mut builder = Sandbox::builder();
    builder.workspace(workspace).policy(policy).helper(STOCKADE);
    builder.build()
}

fn workspace_write() -> SandboxPolicy {
    SandboxPolicy::workspace_write(Vec::new())
}

#[test]
fn plans() {
    let hints = Hints::of("library_hints::plans");
    let context = Context::new();
    let run = |workspace: PathBuf, policy| {
        let ran = sandbox(workspace, policy).and_then(|sandbox| sandbox.command("true").status());
        ran.map(|finished| finished.status_code())
    };
    let refused = run(context.project(), SandboxPolicy::full_access()).unwrap_err();
    let hint = hints.note(&refused.hint().unwrap());
    assert!(hint.ends_with("--workspace-write"), "{hint}");
    assert_eq!(run(context.project(), workspace_write()).unwrap(), 0);

    let kept = sandbox(context.project(), workspace_write()).unwrap();
    std::fs::remove_dir(context.project()).unwrap();
    let refused = kept.command("true").status().unwrap_err();
    let hint = hints.note(&refused.hint().unwrap());
    assert!(hint.starts_with("enter another directory"), "{hint}");
    assert_eq!(run(context.home(), workspace_write()).unwrap(), 0);
}

#[test]
fn approvals() {
    let hints = Hints::of("library_hints::approvals");
    let (old, new) = (SandboxPolicy::read_only(), SandboxPolicy::full_access());
    let refused = old.can_set(&new).unwrap_err();
    hints.note(refused.hint().unwrap());
    // The user is asked, about another command at first.
    let user = Approver::danger_on_behalf_of_the_user();
    let command = CommandSpec::new("make");
    let approve = |command: &CommandSpec| {
        let approval = user.approve(ApprovalScope::new(command, &new), "the build needs it");
        approval.unwrap()
    };
    let other = approve(&CommandSpec::new("ls"));
    let refused = old.can_set_with(&new, &command, other).unwrap_err();
    hints.note(refused.hint().unwrap());
    old.can_set_with(&new, &command, approve(&command)).unwrap();
}

#[test]
fn a_helper_that_does_not_answer() {
    let hints = Hints::of("library_hints::a_helper_that_does_not_answer");
    let report = |helper: &str| serde_json::to_value(probe(Path::new(helper))).unwrap();
    let broken = report("/bin/true");
    let mut fixes = fixes(&broken).into_iter();
    let fix = fixes.find(|fix| fix.starts_with("reinstall")).unwrap();
    hints.note(fix);
    let working = report(STOCKADE);
    assert!(!working.to_string().contains(fix), "{working:#}");
}
