//! A Docker of the suite's own: everything it has is below one directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::keeper::{Disk, Keeper, Place};

/// An engine that runs; dropping it stops it.
#[derive(Debug)]
pub struct Dockerd(Keeper);

impl Dockerd {
    /// Starts one below `parent`; why not, if it can't be.
    ///
    /// # Errors
    /// If there is no `dockerd`, this is not root, or it does not come up.
    pub fn start(parent: &Path) -> Result<Self, Failure> {
        Self::start_on(parent, Disk::Host)
    }

    /// The same with its data on this disk.
    ///
    /// # Errors
    /// As [`Dockerd::start`].
    pub fn start_on(parent: &Path, disk: Disk) -> Result<Self, Failure> {
        let place = Place::new(parent, "engine", &["dockerd", "containerd", "runc"])?;
        let config = serde_json::json!({
            "hosts": [format!("unix://{}", place.path(SOCKET))],
            "data-root": place.path("data"),
            "exec-root": place.path("exec"),
            "pidfile": place.path("pid"),
            "iptables": false,
            "ip6tables": false,
            "bridge": "none",
            "storage-driver": "vfs",
            "runtimes": { "runsc": {
                "path": "/usr/bin/runsc",
                "runtimeArgs": ["--network=none", "--ignore-cgroups"],
            } },
        });
        let file = place.path("daemon.json");
        fs::write(&file, config.to_string()).map_err(|error| format!("{file}: {error}"))?;
        let command = ["dockerd", "--config-file", &file];
        Keeper::start(place, SOCKET, "containerd", disk, &command).map(Self)
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.0.socket()
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.0.pid()
    }
}

const SOCKET: &str = "docker.sock";

impl crate::matrix::Guard for Dockerd {}
