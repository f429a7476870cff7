//! Landlock (Linux 5.13; ABI 2 for renames between directories, 3 for truncation, 5 for device
//! ioctls, 6 for scopes).
//!
//! With namespaces it is a second, independent lock: the mounts say the same about writing, and a
//! domain also refuses every change of the mount tree, whatever namespace a process might get hold
//! of. Without them it is the first lock, and the rules name everything that may be read.
//!
//! Rules are made from open descriptors, after the last change of the view. A domain without a
//! rule for a right of a newer ABI does not handle it: what an older kernel can't refuse is named
//! in the report, not here.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Component;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use stockade_rules::AbsPath;

use crate::plan::Landlock;

/// The first ABI that scopes signals and abstract sockets.
const SCOPES: u32 = 6;

/// Whom a domain may signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signals {
    /// Only processes of the domain. The signal that ends a child with its parent counts as well.
    Own,
    /// As permissions say.
    Unrestricted,
}

/// Enforces the rules on the calling thread and whatever it starts. The files of `proc`, which no
/// path in the view leads to, stay readable: the mediator needs what they say about its callers.
pub(crate) fn restrict(rules: &Landlock, proc: BorrowedFd<'_>, signals: Signals) -> io::Result<()> {
    let abi = known(rules.abi);
    let all = AccessFs::from_all(abi);
    let read = AccessFs::from_read(abi);
    // Device ioctls are asked for by name; everything else that writes is here.
    let write = all & !BitFlags::from(AccessFs::IoctlDev);
    // A rule may only speak of what the ABI knows.
    let devices = all & (read | AccessFs::WriteFile | AccessFs::IoctlDev);
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|ruleset| match scopes(abi, signals) {
            none if none.is_empty() => Ok(ruleset),
            scopes => ruleset.scope(scopes),
        })
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let list = BitFlags::from(AccessFs::ReadDir);
    // What can't be opened any more gets no right, which is no less safe.
    let lesser = [(&rules.listable, list), (&rules.readable, read)];
    let ruleset = add(ruleset, lesser, |error| {
        matches!(
            error,
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS
        )
    })?;
    let greater = [(&rules.writable, write), (&rules.devices, devices)];
    let ruleset = add(ruleset, greater, |_| false)?
        .add_rule(PathBeneath::new(
            proc,
            AccessFs::ReadFile | AccessFs::ReadDir,
        ))
        .map_err(io::Error::other)?;
    enforce(ruleset)
}

/// A domain inside the present one that only separates: signals to processes outside it and
/// connections to their abstract sockets are refused. Does nothing before ABI 6.
///
/// Every domain refuses renames and links between directories unless a rule allows them
/// (landlock(7), `LANDLOCK_ACCESS_FS_REFER`), so one does: the present domain has its own say.
pub(crate) fn restrict_scopes(abi: u32) -> io::Result<()> {
    if abi < SCOPES {
        return Ok(());
    }
    let root = open(&AbsPath::root())?;
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(known(abi))))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rule(PathBeneath::new(root, AccessFs::Refer)))
        .map_err(io::Error::other)?;
    enforce(ruleset)
}

fn scopes(abi: ABI, signals: Signals) -> BitFlags<Scope> {
    let all = Scope::from_all(abi);
    match signals {
        Signals::Own => all,
        Signals::Unrestricted => all & !BitFlags::from(Scope::Signal),
    }
}

fn add(
    mut ruleset: RulesetCreated,
    rules: [(&Vec<AbsPath>, BitFlags<AccessFs>); 2],
    may_miss: impl Fn(Errno) -> bool,
) -> io::Result<RulesetCreated> {
    for (paths, access) in rules {
        for path in paths {
            let fd = match open(path) {
                Ok(fd) => fd,
                Err(error) if may_miss(error) => continue,
                Err(error) => return Err(error.into()),
            };
            ruleset = ruleset
                .add_rule(PathBeneath::new(fd, access))
                .map_err(io::Error::other)?;
        }
    }
    Ok(ruleset)
}

/// Rules are about real paths: a link that appeared on the way since was planted.
fn open(path: &AbsPath) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(CWD, path.as_path(), flags, Mode::empty(), resolve) {
        // A sandbox around this one may refuse the call: filters can't see its flags.
        Err(Errno::NOSYS) => open_stepwise(path),
        opened => opened,
    }
}

/// The same, component by component.
fn open_stepwise(path: &AbsPath) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::open("/", flags, Mode::empty())?;
    for component in path.as_path().components() {
        if let Component::Normal(name) = component {
            at = rustix::fs::openat(&at, name, flags, Mode::empty())?;
            let kind = FileType::from_raw_mode(rustix::fs::fstat(&at)?.st_mode);
            if kind.is_symlink() {
                return Err(Errno::LOOP);
            }
        }
    }
    Ok(at)
}

fn enforce(ruleset: RulesetCreated) -> io::Result<()> {
    let status = ruleset
        .restrict_self()
        .map_err(|error: RulesetError| io::Error::other(error))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn known(abi: u32) -> ABI {
    match abi {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    }
}
