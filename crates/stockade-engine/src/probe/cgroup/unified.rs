//! Version 2: controllers have to be handed down from group to group (`cgroups(7)`).
//!
//! A group that has processes can't hand controllers down ("no internal processes"), except the
//! root of the hierarchy. So a child of this process's own group has no controllers as a rule, and
//! the sandbox gets a sibling: the nearest group above where a child can be made, has the
//! controllers or can be given them, and from where a process may be moved there. Limits of the groups
//! that it leaves on the way hold for the sandbox, too.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD};

use super::{Controller, Group, WANTED, with_child};

/// The controllers that a child of the most suitable group can use. All of them are of one group:
/// a process is in one group of the hierarchy only.
pub(super) fn usable(group: &Group) -> io::Result<Vec<Controller>> {
    let mut best: Option<(&Path, Vec<(String, bool)>)> = None;
    let mut refused = None;
    let above = group.dir.ancestors();
    for parent in above.take_while(|parent| parent.starts_with(&group.top)) {
        match offered(parent) {
            Ok(offers) if offers.len() == WANTED.len() => {
                best = Some((parent, offers));
                break;
            }
            Ok(offers) => {
                let known = best.as_ref().map_or(0, |(_, offers)| offers.len());
                if offers.len() > known {
                    best = Some((parent, offers));
                }
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    match (best, refused) {
        (None, Some(error)) => Err(error),
        (None, None) => Ok(Vec::new()),
        (Some((parent, offers)), _) => Ok(offers
            .into_iter()
            .map(|(name, enabled)| Controller {
                bound: bound(&group.dir, parent, &name),
                name,
                version: 2,
                parent: parent.to_owned(),
                enabled,
                origin: group.dir.clone(),
            })
            .collect()),
    }
}

/// The controllers of a new child of `parent`, and whether it has each already.
fn offered(parent: &Path) -> io::Result<Vec<(String, bool)>> {
    // Whoever moves a process must be able to write here: it is the group above both.
    may_write(&parent.join("cgroup.procs"))?;
    let (has, kind) = with_child(parent, |child| {
        let kind = fs::read_to_string(child.join("cgroup.type")).unwrap_or_default();
        (words(&child.join("cgroup.controllers")), kind)
    })?;
    // Others take threads only.
    if kind.trim() != "domain" {
        return Ok(Vec::new());
    }
    let can_enable = can_enable(parent);
    let all = words(&parent.join("cgroup.controllers")).into_iter();
    let named = all.filter(|name| WANTED.contains(&name.as_str()));
    Ok(named
        .map(|name| {
            let enabled = has.contains(&name);
            (name, enabled)
        })
        .filter(|(_, enabled)| *enabled || can_enable)
        .collect())
}

/// Whether a group can hand down more controllers than it does.
fn can_enable(group: &Path) -> bool {
    // The root has no type, and may have processes.
    let is_root = !group.join("cgroup.type").exists();
    let is_empty = || fs::read(group.join("cgroup.procs")).is_ok_and(|list| list.is_empty());
    may_write(&group.join("cgroup.subtree_control")).is_ok() && (is_root || is_empty())
}

/// The tightest limit of the groups that a process leaves on the way from `own` to `parent`.
fn bound(own: &Path, parent: &Path, controller: &str) -> Option<u64> {
    let left = own.ancestors().take_while(|group| *group != parent);
    left.filter_map(|group| {
        let text = fs::read_to_string(group.join(format!("{controller}.max"))).ok()?;
        text.trim().parse().ok()
    })
    .min()
}

fn may_write(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::accessat(
        CWD,
        path,
        Access::WRITE_OK,
        AtFlags::EACCESS,
    )?)
}

fn words(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}
