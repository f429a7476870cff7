//! Control groups: which versions are mounted, and whether a child group can really be made.

mod unified;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use super::{Cgroup, Controller, Gap, Support};

/// The controllers that limits use.
const WANTED: [&str; 3] = ["memory", "pids", "cpu"];

/// The controller of version 1 that counts CPU time. No limit needs it.
pub(crate) const CPU_ACCOUNTING: &str = "cpuacct";

const DELEGATE: &str = /*hint*/
    "delegate a group to this user (`systemd-run --user --scope -p Delegate=yes \
                        stockade …`); until then rlimits are the floor";

pub(super) fn probe() -> Cgroup {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = groups(&mounts, &own);
    let mut result = Cgroup {
        support: Support::Full,
        versions: versions(&groups),
        controllers: Vec::new(),
    };
    let mut gaps = Vec::new();
    if groups.is_empty() {
        let fix = /*hint*/ "mount cgroup2 on /sys/fs/cgroup".to_owned();
        gaps.push(Gap::new(
            "cgroups",
            "no cgroup file system is mounted",
            Some(fix),
        ));
    }
    for group in groups {
        let found = if group.version == 2 {
            unified::usable(&group)
        } else {
            usable(&group)
        };
        match found {
            Ok(found) => result.controllers.extend(found),
            Err(error) => gaps.push(Gap::new(
                &format!("child of {}", group.dir.display()),
                error.to_string(),
                Some(DELEGATE.to_owned()),
            )),
        }
    }
    let has = |name: &str| result.controllers.iter().any(|found| found.name == name);
    let missing: Vec<&str> = WANTED.into_iter().filter(|name| !has(name)).collect();
    result.support = if missing.is_empty() {
        Support::Full
    } else if missing.len() < WANTED.len() {
        let reason = format!("no controller for {}", missing.join(", "));
        gaps.push(Gap::new("limits", reason, Some(DELEGATE.to_owned())));
        Support::Partial { gaps }
    } else {
        if gaps.is_empty() {
            let reason = "no controller is delegated to this group";
            gaps.push(Gap::new("limits", reason, Some(DELEGATE.to_owned())));
        }
        Support::None { gaps }
    };
    result
}

/// This process's group in one hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    version: u8,
    /// The controllers of a v1 hierarchy; a v2 group says so itself.
    controllers: Vec<String>,
    dir: PathBuf,
    /// Where the hierarchy is mounted: `dir` or above it.
    top: PathBuf,
}

fn versions(groups: &[Group]) -> Vec<u8> {
    let mut versions: Vec<u8> = groups.iter().map(|group| group.version).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

/// Makes a child of a version 1 group and removes it again: it can use what the hierarchy has.
fn usable(group: &Group) -> io::Result<Vec<Controller>> {
    with_child(&group.dir, |_| ())?;
    let names = group.controllers.iter();
    Ok(names
        .map(|name| Controller {
            name: name.clone(),
            version: group.version,
            parent: group.dir.clone(),
            enabled: true,
            origin: group.dir.clone(),
            bound: None,
        })
        .collect())
}

/// Makes a child of a group, looks at it and removes it again.
fn with_child<T>(parent: &Path, look: impl FnOnce(&Path) -> T) -> io::Result<T> {
    remove_left_over(parent, PROBE_AGE);
    let child = parent.join(format!("{PROBE}{}", process::id()));
    fs::create_dir(&child)?;
    let seen = look(&child);
    // Empty groups are removed with rmdir (cgroups(7)).
    fs::remove_dir(&child)?;
    Ok(seen)
}

/// How the groups that are made to try are called.
const PROBE: &str = "stockade-probe-";
/// No probe takes so long: what is older was left by one that was killed.
const PROBE_AGE: Duration = Duration::from_secs(60);

/// Removes the groups of probes that were killed. What is in use can't be removed.
fn remove_left_over(parent: &Path, age: Duration) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let of_probes = entries.filter(|entry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(PROBE.as_bytes())
    });
    for entry in of_probes {
        let made = entry.metadata().and_then(|data| data.modified());
        let is_old = made.is_ok_and(|made| made.elapsed().is_ok_and(|passed| passed >= age));
        if is_old {
            // Another probe may have removed it in this moment.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Joins `/proc/self/mountinfo` with `/proc/self/cgroup`.
fn groups(mounts: &[u8], own: &str) -> Vec<Group> {
    mounts
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let mount = Mount::parse(line)?;
            let (version, controllers) = match mount.kind.as_str() {
                "cgroup2" => (2, Vec::new()),
                "cgroup" => (1, mount.controllers()),
                _ => return None,
            };
            let named = controllers
                .iter()
                .any(|name| WANTED.contains(&name.as_str()) || name == CPU_ACCOUNTING);
            if version == 1 && !named {
                return None;
            }
            let path = own_path(own, version, &controllers)?;
            let below = Path::new(path).strip_prefix(&mount.root).ok()?;
            Some(Group {
                version,
                controllers,
                dir: mount.point.components().chain(below.components()).collect(),
                top: mount.point,
            })
        })
        .collect()
}

/// The path in the line `id:controllers:path` for this hierarchy.
fn own_path<'a>(own: &'a str, version: u8, controllers: &[String]) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = if version == 2 {
            id == "0" && names.is_empty()
        } else {
            names
                .split(',')
                .any(|name| controllers.iter().any(|known| known == name))
        };
        ours.then_some(path)
    })
}

/// The fields of a line of mountinfo that matter here.
struct Mount {
    root: PathBuf,
    point: PathBuf,
    kind: String,
    options: String,
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Self> {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        // Optional fields end with a lone hyphen (proc_pid_mountinfo(5)).
        let hyphen = fields.iter().position(|field| *field == b"-")?;
        let text = |index: usize| {
            fields
                .get(index)
                .map(|field| String::from_utf8_lossy(field).into_owned())
        };
        Some(Self {
            root: unescape(fields.get(3)?),
            point: unescape(fields.get(4)?),
            kind: text(hyphen + 1)?,
            options: text(hyphen + 3)?,
        })
    }

    fn controllers(&self) -> Vec<String> {
        self.options
            .split(',')
            .filter(|option| !matches!(*option, "rw" | "ro"))
            .map(str::to_owned)
            .collect()
    }
}

/// Blanks, tabs, newlines and backslashes are written in octal: `\040`.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        let octal = (*first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        if let Some(byte) = octal {
            bytes.push(byte);
            rest = &tail[3..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &[u8] = b"\
24 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
25 24 0:23 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
26 24 0:24 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
27 24 0:25 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
28 24 0:26 / /sys/fs/cgroup/unified rw shared:4 - cgroup2 cgroup2 rw";

    #[test]
    fn a_hybrid_host_has_both_versions() {
        let own = "9:name=systemd:/\n4:memory:/box/1\n3:cpu,cpuacct:/\n0::/user\n";
        let groups = groups(HYBRID, own);
        let dirs: Vec<&Path> = groups.iter().map(|group| group.dir.as_path()).collect();
        assert_eq!(
            dirs,
            [
                Path::new("/sys/fs/cgroup/memory/box/1"),
                Path::new("/sys/fs/cgroup/cpu,cpuacct"),
                Path::new("/sys/fs/cgroup/unified/user"),
            ]
        );
        assert_eq!(versions(&groups), [1, 2]);
    }

    #[test]
    fn what_a_killed_probe_left_is_removed_when_it_is_old() {
        let place = tempfile::tempdir().unwrap();
        for name in ["stockade-probe-7", "stockade-run-7", "other"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        remove_left_over(place.path(), PROBE_AGE);
        assert!(place.path().join("stockade-probe-7").exists());
        remove_left_over(place.path(), Duration::ZERO);
        assert!(!place.path().join("stockade-probe-7").exists());
        assert!(place.path().join("stockade-run-7").exists());
        assert!(place.path().join("other").exists());
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_is_left_out() {
        let mounts = b"30 1 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(groups(mounts, "0::/elsewhere\n"), []);
        assert_eq!(
            groups(mounts, "0::/docker/abc/x\n")[0].dir,
            Path::new("/sys/fs/cgroup/x")
        );
    }

    #[test]
    fn odd_mount_points_are_read_and_broken_lines_are_not() {
        let mounts = b"30 1 0:26 / /a\\040b rw - cgroup2 cgroup2 rw\nbroken\n\n1 2 3\n";
        assert_eq!(groups(mounts, "0::/\n")[0].dir, Path::new("/a b"));
        assert_eq!(groups(b"", ""), []);
    }
}
