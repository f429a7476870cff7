//! What Podman takes otherwise than Docker, by the same requests.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;

use bollard::models::{ContainerCreateBody, Mount, MountType, ResourcesUlimits};
use rustix::process::{Resource, getrlimit};

/// Podman reads the filter from a file of its own host, where Docker's client would have read it
/// itself. What is put in its place is in memory and ends with the descriptor.
pub(crate) fn filter_by_path(body: &mut ContainerCreateBody) -> io::Result<Option<File>> {
    let options = body.host_config.as_mut();
    let options = options.and_then(|host| host.security_opt.as_mut());
    let found = options.and_then(|options| {
        options
            .iter_mut()
            .find(|option| option.starts_with("seccomp={"))
    });
    let Some(option) = found else {
        return Ok(None);
    };
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::memfd_create("stockade-filter", flags)?);
    file.write_all(option.trim_start_matches("seccomp=").as_bytes())?;
    let pid = std::process::id();
    *option = format!("seccomp=/proc/{pid}/fd/{}", file.as_raw_fd());
    Ok(Some(file))
}

/// Podman copies what lies below into a new tmpfs, unless it is told not to; and that can be said
/// only in the older of the two ways to ask for one. What is hidden would not be.
pub(crate) fn without_copies(body: &mut ContainerCreateBody) {
    let Some(host) = body.host_config.as_mut() else {
        return;
    };
    let all = host.mounts.take().unwrap_or_default();
    let is_temporary = |mount: &Mount| mount.typ == Some(MountType::TMPFS);
    let (temporary, others): (Vec<Mount>, Vec<Mount>) = all.into_iter().partition(is_temporary);
    let mut others = others;
    let asked = host.tmpfs.get_or_insert_default();
    let covered = others.iter().chain(&temporary);
    let covered: Vec<String> = covered.filter_map(|mount| mount.target.clone()).collect();
    for own in OWN {
        if covered.iter().any(|target| target == own) {
            continue;
        }
        match others.iter().find_map(|mount| below(mount, own)) {
            Some(mount) => others.push(mount),
            None => {
                asked.insert(own.to_owned(), "notmpcopyup,ro,mode=0555".to_owned());
            }
        }
    }
    for mount in temporary {
        let Some(target) = mount.target else { continue };
        let access = if mount.read_only == Some(true) {
            "ro"
        } else {
            "rw"
        };
        let mut words = vec!["notmpcopyup".to_owned(), access.to_owned()];
        let options = mount.tmpfs_options.unwrap_or_default();
        words.extend(options.size_bytes.map(|size| format!("size={size}")));
        words.extend(options.mode.map(|mode| format!("mode={mode:04o}")));
        asked.insert(target, words.join(","));
    }
    host.mounts = Some(others);
}

/// Podman raises limits that nobody speaks about to values of its own, and fails where it may not:
/// they stay what they are here.
pub(crate) fn limits_as_they_are(body: &mut ContainerCreateBody) {
    let Some(host) = body.host_config.as_mut() else {
        return;
    };
    let limits = host.ulimits.get_or_insert_default();
    for (name, resource) in [("nofile", Resource::Nofile), ("nproc", Resource::Nproc)] {
        let spoken = limits
            .iter()
            .any(|limit| limit.name.as_deref() == Some(name));
        let most = getrlimit(resource).maximum;
        if let (false, Some(most)) = (spoken, most) {
            // As many as Podman leaves itself.
            let most = i64::try_from(most).unwrap_or(i64::MAX).min(1 << 15);
            limits.push(ResourcesUlimits {
                name: Some(name.to_owned()),
                soft: Some(most),
                hard: Some(most),
            });
        }
    }
}

/// Where Podman puts writable directories of its own on a read-only root, unless something else is
/// there.
const OWN: [&str; 3] = ["/run", "/tmp", "/var/tmp"];

/// What a bind mount shows at a path below it, as a mount by itself.
fn below(mount: &Mount, path: &str) -> Option<Mount> {
    let rest = path.strip_prefix(mount.target.as_deref()?)?;
    let source = mount.source.as_ref()?;
    rest.starts_with('/').then(|| Mount {
        source: Some(format!("{source}{rest}")),
        target: Some(path.to_owned()),
        ..mount.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bollard::models::{HostConfig, MountTmpfsOptions};

    #[test]
    fn a_filter_by_path_is_the_same_filter() {
        let mut body = ContainerCreateBody {
            host_config: Some(crate::settings::hardened("{\"x\":1}")),
            ..ContainerCreateBody::default()
        };
        let file = filter_by_path(&mut body).unwrap().unwrap();
        let options = body.host_config.unwrap().security_opt.unwrap();
        let path = options[1].strip_prefix("seccomp=").unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "{\"x\":1}");
        drop(file);
        assert!(std::fs::read(path).is_err());
        let none = filter_by_path(&mut ContainerCreateBody::default());
        assert!(none.unwrap().is_none());
    }

    #[test]
    fn nothing_is_copied_into_a_temporary_directory() {
        let mount = |target: &str, typ| Mount {
            target: Some(target.to_owned()),
            typ: Some(typ),
            read_only: Some(true),
            tmpfs_options: Some(MountTmpfsOptions {
                size_bytes: Some(64),
                mode: Some(0o555),
                options: None,
            }),
            ..Mount::default()
        };
        let mut body = ContainerCreateBody {
            host_config: Some(HostConfig {
                mounts: Some(vec![
                    Mount {
                        source: Some("/host/var".to_owned()),
                        ..mount("/var", MountType::BIND)
                    },
                    mount("/run", MountType::TMPFS),
                ]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        without_copies(&mut body);
        let host = body.host_config.unwrap();
        let mounts = host.mounts.unwrap();
        assert_eq!(mounts.len(), 2);
        assert_eq!(mounts[1].target.as_deref(), Some("/var/tmp"));
        assert_eq!(mounts[1].source.as_deref(), Some("/host/var/tmp"));
        assert_eq!(mounts[1].read_only, Some(true));
        let tmpfs = host.tmpfs.unwrap();
        assert_eq!(tmpfs["/run"], "notmpcopyup,ro,size=64,mode=0555");
        assert_eq!(tmpfs["/tmp"], "notmpcopyup,ro,mode=0555");
    }
}
