//! Landlock over the finished view (Linux 5.13; ABI 2 for renames, 3 for truncation, 5 for
//! device ioctls, 6 for scopes).
//!
//! A second, independent lock: the mounts say the same about writing, and a domain also refuses
//! every change of the mount tree, whatever namespace a process might get hold of. Rules are
//! made from open descriptors, after the last change of the view.

use std::io;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};

use stockade_rules::AbsPath;

use crate::plan::Landlock;

/// Enforces the rules on the calling process and its children.
pub(crate) fn restrict(rules: &Landlock) -> io::Result<()> {
    let abi = known(rules.abi);
    let all = AccessFs::from_all(abi);
    let read = AccessFs::from_read(abi);
    // Device ioctls are asked for by name; everything else that writes is here.
    let write = all & !BitFlags::from(AccessFs::IoctlDev);
    let devices = read | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|ruleset| ruleset.scope(Scope::from_all(abi)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let root = AbsPath::root();
    let rules = [(&root, read)]
        .into_iter()
        .chain(rules.writable.iter().map(|path| (path, write)))
        .chain(rules.devices.iter().map(|path| (path, devices)));
    for (path, access) in rules {
        let fd = PathFd::new(path).map_err(io::Error::other)?;
        ruleset = ruleset
            .add_rule(PathBeneath::new(fd, access))
            .map_err(io::Error::other)?;
    }
    match ruleset.restrict_self().map_err(io::Error::other)?.ruleset {
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
