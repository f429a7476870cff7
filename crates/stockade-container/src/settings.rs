//! The hardened settings of a container, made of a plan: pure, printable, the same every time.

use std::collections::HashMap;
use std::path::Path;

use bollard::models::{
    ContainerCreateBody, DeviceMapping, HostConfig, HostConfigLogConfig, Mount as EngineMount,
    MountTmpfsOptions, MountType, ResourcesUlimits,
};
use stockade_linux::plan::{LinuxPlan, Mount, Resource, Root, View};
use stockade_policy::profile::Profile;
use stockade_rules::AbsPath;

use crate::engine::{OWNER_LABEL, owner};
use crate::image::EMPTY_IMAGE;

/// What a container is made of besides the plan.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct Settings<'a> {
    /// The image that is the file system; if none the host's is, as the plan shows it.
    pub image: Option<&'a str>,
    /// The engine's runtime; its default if none.
    pub runtime: Option<&'a str>,
    /// User and group inside.
    pub user: (u32, u32),
    /// Memory of the whole container in bytes.
    pub memory: Option<u64>,
    /// Processes and threads of the whole container.
    pub pids: Option<u64>,
    /// A file that nobody may read, put in place of those that are hidden.
    pub hidden_file: &'a str,
}

impl<'a> Settings<'a> {
    /// With the caller's user and the limits of a profile.
    pub fn of(profile: &Profile, image: Option<&'a str>, hidden_file: &'a str) -> Self {
        Self {
            image,
            runtime: None,
            user: (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
            memory: profile.limits.memory(),
            pids: profile.limits.pids(),
            hidden_file,
        }
    }
}

/// What of the host has to be looked at.
pub trait Surroundings {
    /// Whether it is a directory, links not followed.
    fn is_directory(&self, path: &Path) -> bool;
    /// What lies in `/`: directories, and links with the real path they lead to.
    fn top(&self) -> Vec<(AbsPath, AbsPath)>;
    /// Mount points strictly below a path.
    fn mounts_below(&self, path: &AbsPath) -> Vec<AbsPath>;
}

/// A name that can't be said in a request.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not UTF-8, which a container engine does not take")]
#[non_exhaustive]
pub struct NotText(String);

/// The request that makes the container of a plan.
///
/// # Errors
/// If a path, argument or variable is not UTF-8.
pub fn create_body(
    plan: &LinuxPlan,
    settings: &Settings<'_>,
    host: &impl Surroundings,
) -> Result<ContainerCreateBody, NotText> {
    let words = |list: &[stockade_linux::plan::Text]| -> Result<Vec<String>, NotText> {
        list.iter()
            .map(|word| text(word.as_os_str().as_ref()))
            .collect()
    };
    let (uid, gid) = settings.user;
    Ok(ContainerCreateBody {
        image: Some(settings.image.unwrap_or(EMPTY_IMAGE).to_owned()),
        // Whatever the image says is started with: the command is the plan's.
        entrypoint: Some(words(&plan.command.argv)?),
        cmd: Some(Vec::new()),
        env: Some(words(&plan.command.env)?),
        working_dir: Some(text(plan.command.cwd.as_path())?),
        user: Some(format!("{uid}:{gid}")),
        hostname: Some("stockade".to_owned()),
        tty: Some(plan.terminal),
        open_stdin: Some(true),
        stdin_once: Some(true),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        labels: Some(labels()),
        network_disabled: Some(plan.own_network),
        host_config: Some(host_config(plan, settings, host)?),
        ..ContainerCreateBody::default()
    })
}

/// The labels of every container of ours.
pub(crate) fn labels() -> HashMap<String, String> {
    HashMap::from([(OWNER_LABEL.to_owned(), owner())])
}

/// What holds for every container, whatever is in it.
pub(crate) fn hardened(filter: &str) -> HostConfig {
    HostConfig {
        auto_remove: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        // A process 1 that reaps and passes signals on: as process 1 the command itself would
        // ignore most of them.
        init: Some(true),
        ipc_mode: Some("private".to_owned()),
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        privileged: Some(false),
        readonly_rootfs: Some(true),
        security_opt: Some(vec![
            "no-new-privileges:true".to_owned(),
            format!("seccomp={filter}"),
        ]),
        ..HostConfig::default()
    }
}

fn host_config(
    plan: &LinuxPlan,
    settings: &Settings<'_>,
    host: &impl Surroundings,
) -> Result<HostConfig, NotText> {
    let (filter, _) = plan.seccomp.to_docker_json();
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let network = if plan.own_network { "none" } else { "host" };
    let (shared_memory, granted) = devices(plan);
    let devices = granted.iter().map(|path| {
        let path = text(path.as_path())?;
        Ok(DeviceMapping {
            path_on_host: Some(path.clone()),
            path_in_container: Some(path),
            cgroup_permissions: Some("rw".to_owned()),
        })
    });
    Ok(HostConfig {
        devices: Some(devices.collect::<Result<_, _>>()?),
        memory: settings.memory.map(signed),
        memory_swap: settings.memory.map(signed),
        mounts: Some(mounts(plan, settings, host)?),
        network_mode: Some(network.to_owned()),
        pids_limit: settings.pids.map(signed),
        runtime: settings.runtime.map(str::to_owned),
        shm_size: shared_memory.map(signed),
        ulimits: Some(ulimits(plan)),
        ..hardened(&filter.to_string())
    })
}

fn devices(plan: &LinuxPlan) -> (Option<u64>, Vec<AbsPath>) {
    let found = plan.mounts.iter().find_map(|mount| match &mount.view {
        View::Devices {
            granted,
            shared_memory,
        } => Some((*shared_memory, granted.clone())),
        _ => None,
    });
    match found {
        Some((0, granted)) => (None, granted),
        Some((size, granted)) => (Some(size), granted),
        None => (None, Vec::new()),
    }
}

/// Limits of single processes; memory and processes are limited for all together instead.
fn ulimits(plan: &LinuxPlan) -> Vec<ResourcesUlimits> {
    let limits = plan.rlimits.iter().filter_map(|limit| {
        let name = match limit.resource {
            Resource::Core => "core",
            Resource::Cpu => "cpu",
            Resource::FileSize => "fsize",
            Resource::OpenFiles => "nofile",
            Resource::Data | Resource::Processes => return None,
        };
        // More than the hard limit can't be given to anybody, and the engine has no more than we.
        let most = match limit.resource {
            Resource::OpenFiles => open_files_of_host(),
            _ => None,
        };
        let value = most.map_or(limit.value, |most| most.min(limit.value));
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        Some(ResourcesUlimits {
            name: Some(name.to_owned()),
            soft: Some(value),
            hard: Some(value),
        })
    });
    limits.collect()
}

fn open_files_of_host() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum
}

fn mounts(
    plan: &LinuxPlan,
    settings: &Settings<'_>,
    host: &impl Surroundings,
) -> Result<Vec<EngineMount>, NotText> {
    let mut out = Vec::new();
    let spoken = |path: &AbsPath| plan.mounts.iter().any(|mount| mount.path == *path);
    if plan.root == Root::Host && settings.image.is_none() {
        for (path, real) in host.top() {
            if !is_engines(&path) && !spoken(&path) {
                bind(&path, &real, true, plan, host, &mut out)?;
            }
        }
    }
    for mount in &plan.mounts {
        if settings.image.is_some() && !belongs_to_project(plan, mount) {
            continue;
        }
        let path = &mount.path;
        if is_engines(path) {
            continue;
        }
        match &mount.view {
            // The engine has its own.
            View::Devices { .. } | View::Proc => {}
            View::Empty => out.push(temporary(path, 0, 0o555, true)?),
            View::Hidden if host.is_directory(path.as_path()) => {
                out.push(temporary(path, 0, 0, true)?);
            }
            View::Hidden => out.push(EngineMount {
                target: Some(text(path.as_path())?),
                source: Some(settings.hidden_file.to_owned()),
                typ: Some(MountType::BIND),
                read_only: Some(true),
                ..EngineMount::default()
            }),
            // Overlays are the helper's alone; if one ever comes here, nothing is written through.
            View::KeptLayer { .. }
            | View::Overlay { .. }
            | View::PrivateLayer { .. }
            | View::ReadOnly => {
                bind(path, path, true, plan, host, &mut out)?;
            }
            // The root has no links of its own; what they lead to is shown twice instead.
            View::Symlink(target) => bind(path, target, true, plan, host, &mut out)?,
            View::Temporary { size } => out.push(temporary(path, *size, 0o1777, false)?),
            View::Writable => bind(path, path, false, plan, host, &mut out)?,
        }
    }
    Ok(out)
}

/// What the engine itself provides; its process 1 is at `/sbin/docker-init`.
fn is_engines(path: &AbsPath) -> bool {
    let own = ["/dev", "/proc", "/sbin", "/sys"];
    own.iter().any(|own| path.as_path() == Path::new(own))
}

/// With an image as root only the writable directories, what is in them, and the temporary ones
/// come from the plan.
fn belongs_to_project(plan: &LinuxPlan, mount: &Mount) -> bool {
    let mut writable = plan
        .mounts
        .iter()
        .filter(|other| other.view == View::Writable);
    matches!(mount.view, View::Temporary { .. } | View::Writable)
        || writable.any(|root| mount.path.is_within(&root.path))
}

/// Shows a path of the host. Engines make only the mount itself read-only, not those below it, so
/// each of them gets a statement of its own.
fn bind(
    path: &AbsPath,
    source: &AbsPath,
    read_only: bool,
    plan: &LinuxPlan,
    host: &impl Surroundings,
    out: &mut Vec<EngineMount>,
) -> Result<(), NotText> {
    let one = |path: &AbsPath, source: &AbsPath| {
        Ok(EngineMount {
            target: Some(text(path.as_path())?),
            source: Some(text(source.as_path())?),
            typ: Some(MountType::BIND),
            read_only: Some(read_only),
            ..EngineMount::default()
        })
    };
    out.push(one(path, source)?);
    if !read_only {
        return Ok(());
    }
    for below in host.mounts_below(source) {
        let Ok(rest) = below.as_path().strip_prefix(source.as_path()) else {
            continue;
        };
        let Ok(target) = path.join(rest) else {
            continue;
        };
        let covered = plan.mounts.iter().any(|mount| {
            target.is_within(&mount.path) && mount.path.is_within(path) && mount.path != *path
        });
        if !covered {
            out.push(one(&target, &below)?);
        }
    }
    Ok(())
}

fn temporary(
    path: &AbsPath,
    size: u64,
    mode: i64,
    read_only: bool,
) -> Result<EngineMount, NotText> {
    let size = (size > 0).then(|| i64::try_from(size).unwrap_or(i64::MAX));
    Ok(EngineMount {
        target: Some(text(path.as_path())?),
        typ: Some(MountType::TMPFS),
        read_only: Some(read_only),
        tmpfs_options: Some(MountTmpfsOptions {
            size_bytes: size,
            mode: Some(mode),
            options: None,
        }),
        ..EngineMount::default()
    })
}

pub(crate) fn text(path: &Path) -> Result<String, NotText> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| NotText(path.display().to_string()))
}

/// This machine.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing in it")]
pub struct ThisHost;

impl Surroundings for ThisHost {
    fn is_directory(&self, path: &Path) -> bool {
        std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
    }

    fn top(&self) -> Vec<(AbsPath, AbsPath)> {
        let entries = std::fs::read_dir("/").into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .filter_map(|entry| {
                let path = AbsPath::new(entry.path()).ok()?;
                let kind = entry.file_type().ok()?;
                if kind.is_dir() {
                    return Some((path.clone(), path));
                }
                // `/bin -> usr/bin` and the like: one step is all there is.
                let target = std::fs::read_link(entry.path()).ok()?;
                let real = AbsPath::root().join(target).ok()?;
                real.as_path().is_dir().then_some((path, real))
            })
            .collect();
        found.sort();
        found
    }

    fn mounts_below(&self, path: &AbsPath) -> Vec<AbsPath> {
        stockade_engine::backend::foundation::mounts_below(path)
    }
}

#[cfg(test)]
mod tests;
