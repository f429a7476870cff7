//! A Podman of the suite's own, as a service: everything it has is below one directory.

use std::path::{Path, PathBuf};

use crate::Failure;
use crate::keeper::{Disk, Keeper, Place};

/// A service that runs; dropping it stops it.
#[derive(Debug)]
pub struct Podman(Keeper);

impl Podman {
    /// Starts one below `parent`; why not, if it can't be.
    ///
    /// # Errors
    /// If there is no `podman`, this is not root, or it does not come up.
    pub fn start(parent: &Path) -> Result<Self, Failure> {
        let place = Place::new(parent, "podman", &["podman", "catatonit"])?;
        let (data, run, tmp) = (place.path("data"), place.path("run"), place.path("tmp"));
        let address = format!("unix://{}", place.path(SOCKET));
        let mut command = vec![
            "podman",
            "--root",
            &data,
            "--runroot",
            &run,
            "--tmpdir",
            &tmp,
        ];
        command.extend(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]);
        command.extend(["--events-backend", "file"]);
        command.extend(["system", "service", "--time", "0", &address]);
        Keeper::start(place, SOCKET, "conmon", Disk::Host, &command).map(Self)
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.0.socket()
    }
}

const SOCKET: &str = "podman.sock";
