//! The process that builds the sandbox: a program that the launcher starts with the plan in a
//! descriptor, or a copy of the launcher.
//!
//! It runs in a process of its own and reports a failure as the step that failed and its errno,
//! never as text.

mod command;
mod entry;
mod outer;
mod session;
mod supervisor;
mod unshared;

pub(crate) use entry::MARKER as ENTRY_MARKER;
pub(crate) use outer::{MOMENT, direct};

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::control::Report;
use crate::plan::LinuxPlan;
use crate::stage::{At, Failure, Stage};
use crate::sys;

/// The first argument that makes a program act as the helper.
pub const MARKER: &str = "--stockade-internal-helper";

/// The helper was started by something that is not the launcher.
const EXIT_BAD_INVOCATION: i32 = 2;
/// The launcher has been told why.
pub(crate) const FAILED: i32 = 125;

/// Whether this program was started as the helper, or as the entry of a container.
pub fn is_requested() -> bool {
    std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == MARKER || argument == ENTRY_MARKER)
}

/// Builds the sandbox and waits for it. Returns the helper's own exit code, which only tells
/// whether it worked: the command's outcome went to the launcher as a message.
pub fn main() -> i32 {
    if std::env::args_os().nth(1).as_deref() == Some(ENTRY_MARKER.as_ref()) {
        return entry::main(std::env::args_os().skip(2)).unwrap_or(EXIT_BAD_INVOCATION);
    }
    let Some([plan, control, life]) = adopt(std::env::args_os().skip(2)) else {
        return EXIT_BAD_INVOCATION;
    };
    match read_plan(plan) {
        Ok(plan) => build(&plan, &control, &life),
        Err(failure) => tell(failure, control.as_fd()),
    }
}

/// As [`main`], in a copy of the launcher, which has the plan already.
pub(crate) fn build(plan: &LinuxPlan, control: &OwnedFd, life: &OwnedFd) -> i32 {
    let outcome = if plan.own_namespaces {
        outer::run(plan, control.as_fd(), life)
    } else {
        unshared::run(plan, control.as_fd(), life)
    };
    match outcome {
        Ok(()) => 0,
        Err(failure) => tell(failure, control.as_fd()),
    }
}

fn tell(failure: Failure, control: BorrowedFd<'_>) -> i32 {
    // If the launcher is gone there is nobody to tell.
    let _ = Report::Failed(failure).send(control);
    FAILED
}

/// The descriptors that the launcher passed, by number in the arguments: the plan, the control
/// socket, the one that hangs up when the launcher is gone, and then those for the command.
fn adopt(arguments: impl Iterator<Item = OsString>) -> Option<[OwnedFd; 3]> {
    let numbers: Vec<i32> = arguments
        .map(|text| text.to_str()?.parse().ok())
        .collect::<Option<_>>()?;
    let (own, keep) = numbers.split_first_chunk()?;
    let distinct = own[0] != own[1] && own[1] != own[2] && own[0] != own[2];
    if !distinct
        || own
            .iter()
            .any(|number| *number < 3 || keep.contains(number))
    {
        return None;
    }
    sys::process::adopt_descriptors(*own, keep).ok()
}

fn read_plan(fd: OwnedFd) -> Result<LinuxPlan, Failure> {
    let mut text = Vec::new();
    File::from(fd).read_to_end(&mut text).at(Stage::ReadPlan)?;
    serde_json::from_slice(&text)
        .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
        .at(Stage::ReadPlan)
}
