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
use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use stockade_rules::AbsPath;

use crate::plan::Landlock;

/// The first ABI that scopes signals and abstract sockets.
const SCOPES: u32 = 6;

/// Enforces the rules on the calling process and its children.
pub(crate) fn restrict(rules: &Landlock) -> io::Result<()> {
    let abi = known(rules.abi);
    let all = AccessFs::from_all(abi);
    let read = AccessFs::from_read(abi);
    // Device ioctls are asked for by name; everything else that writes is here.
    let write = all & !BitFlags::from(AccessFs::IoctlDev);
    let devices = read | AccessFs::WriteFile | AccessFs::IoctlDev;
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(abi)))
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
    let ruleset = add(ruleset, greater, |_| false)?;
    enforce(ruleset)
}

/// A domain inside the present one that only separates: signals to processes outside it and
/// connections to their abstract sockets are refused. Does nothing before ABI 6.
pub(crate) fn restrict_scopes(abi: u32) -> io::Result<()> {
    if abi < SCOPES {
        return Ok(());
    }
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::from_all(known(abi)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    enforce(ruleset)
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
    rustix::fs::openat2(CWD, path.as_path(), flags, Mode::empty(), resolve)
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
