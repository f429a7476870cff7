//! Entry point of containers whose network the launcher serves: Stockade's helper, which
//! makes the sockets inside, hands them out by a socket of the launcher's, and becomes the command.
//!
//! The container has a network of its own with nothing but a loopback, no capability and no
//! process of ours: names stand for addresses of the loopback, so neither routes nor the right to
//! make them are needed, and what is not listed is not there. The command sees two files more,
//! the helper and a socket at which nobody listens.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::models::{ContainerCreateBody, Mount, MountType};
use bollard::query_parameters::WaitContainerOptionsBuilder;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use stockade_engine::ExecPlan;
use stockade_engine::backend::foundation;
use stockade_linux::{Door, SpawnError};
use stockade_rules::AbsPath;
use tokio::net::UnixListener;

use crate::engine::Engine;
use crate::settings::text;

/// Where the helper and the line to the launcher are inside. Files in `/`, where nothing of the
/// host's is shown: the place for a mount would be made there.
const HELPER: &str = "/.stockade-entry";
const LINE: &str = "/.stockade-line";
/// The name of the launcher's end.
const DOOR: &str = "door";
/// What programs inside find their resolver by, and its name in the launcher's directory.
const RESOLVER: &str = "/etc/resolv.conf";
const RESOLVER_FILE: &str = "resolv.conf";
/// The certificates that programs inside are to trust, in the launcher's directory.
const TRUST_FILE: &str = "trust.crt";

/// A container's engine may be busy; the entry itself takes a moment.
const ENTRY_TIMEOUT: Duration = Duration::from_secs(60);

/// The entry of one container.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    /// Made for the run, and gone when the command has begun.
    directory: PathBuf,
}

/// Why the entry did not become the command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotBegun {
    /// It failed, or nobody answers.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Something else.
    #[error("{0}")]
    Other(String),
}

impl Entry {
    /// One whose name nobody can guess.
    pub(crate) fn new(random: u64) -> Self {
        let directory = std::env::temp_dir().join(format!("stockade-entry-{random:016x}"));
        Self { directory }
    }

    /// Has the container begin with the entry. `helper` is a program that acts as Stockade's
    /// helper, and a static one where the image is the file system.
    pub(crate) fn put_first(
        &self,
        body: &mut ContainerCreateBody,
        plan: &ExecPlan,
        helper: &Path,
        image_is_root: bool,
    ) -> Result<(), String> {
        let network = plan.linux.network.as_ref().ok_or("the plan has no list")?;
        // The engine knows no process of ours, so `/proc/self/exe` would be another's.
        let real = AbsPath::new(helper).ok();
        let real = real.and_then(|path| foundation::real_path(&path));
        let helper = real.ok_or_else(|| format!("there is no `{}`", helper.display()))?;
        let [marker, line, network] =
            Door::arguments(LINE, network).map_err(|error| error.to_string())?;
        let first = [HELPER.to_owned(), marker, line, network];
        let command = body.entrypoint.take().unwrap_or_default();
        body.entrypoint = Some(first.into_iter().chain(command).collect());
        let host = body.host_config.get_or_insert_default();
        // The resolver's port is below 1024. Docker has this by itself, Podman not.
        host.sysctls.get_or_insert_default().insert(
            "net.ipv4.ip_unprivileged_port_start".to_owned(),
            "0".to_owned(),
        );
        let mounts = host.mounts.get_or_insert_default();
        mounts.push(bind(helper.as_path(), HELPER)?);
        mounts.push(bind(&self.directory.join(DOOR), LINE)?);
        if let Some(place) = resolver_place(plan, image_is_root) {
            mounts.push(bind(&self.directory.join(RESOLVER_FILE), &place)?);
        }
        // Where the host has such files says nothing about an image; variables name the one that
        // is nobody else's.
        let places = plan.linux.files.iter().flat_map(|file| &file.paths);
        let places = places.filter(|path| !image_is_root || path.as_path().starts_with("/dev"));
        for place in places {
            let place = text(place.as_path()).map_err(|error| error.to_string())?;
            mounts.push(bind(&self.directory.join(TRUST_FILE), &place)?);
        }
        Ok(())
    }

    /// What has to be removed should nobody else do it, in this order.
    pub(crate) fn paths(&self) -> [PathBuf; 4] {
        let files = [DOOR, RESOLVER_FILE, TRUST_FILE];
        let [door, resolver, trust] = files.map(|name| self.directory.join(name));
        [door, resolver, trust, self.directory.clone()]
    }

    /// Makes what the container will be shown, with the certificates that are to be trusted there
    /// if TLS is opened.
    pub(crate) fn open(self, trust: Option<&str>) -> io::Result<OpenEntry> {
        DirBuilder::new().mode(0o700).create(&self.directory)?;
        let made = Made(self);
        let write = |name: &str, content: &str| {
            let mut options = fs::File::options();
            let options = options.write(true).create_new(true).mode(0o644);
            let mut file = options.open(made.0.directory.join(name))?;
            file.write_all(content.as_bytes())
        };
        write(RESOLVER_FILE, "nameserver 127.0.0.1\n")?;
        if let Some(trust) = trust {
            write(TRUST_FILE, trust)?;
        }
        let door = Door::make(&made.0.directory, DOOR)?;
        Ok(OpenEntry { door, _made: made })
    }
}

/// Where the file is that names the resolver: on the host it may be a link, and what it leads to
/// may be hidden; then there is no file inside, and the loopback is asked (`resolv.conf(5)`).
fn resolver_place(plan: &ExecPlan, image_is_root: bool) -> Option<String> {
    if image_is_root {
        return Some(RESOLVER.to_owned());
    }
    let real = foundation::real_path(&AbsPath::new(RESOLVER).ok()?)?;
    let shown = foundation::shows(plan, &real);
    shown.then(|| text(real.as_path()).ok()).flatten()
}

fn bind(source: &Path, target: &str) -> Result<Mount, String> {
    Ok(Mount {
        source: Some(text(source).map_err(|error| error.to_string())?),
        target: Some(target.to_owned()),
        typ: Some(MountType::BIND),
        read_only: Some(true),
        ..Mount::default()
    })
}

/// The files of an entry; they go with it. The container has them mounted by then.
#[derive(Debug)]
struct Made(Entry);

impl Drop for Made {
    fn drop(&mut self) {
        for path in self.0.paths() {
            remove(&path);
        }
    }
}

/// Removes a file or an empty directory, if it is there.
pub(crate) fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir(path);
    }
}

/// An entry that waits for its container.
#[derive(Debug)]
pub(crate) struct OpenEntry {
    door: Door,
    _made: Made,
}

impl OpenEntry {
    /// Waits until the container's first process has handed over the sockets, which `attach`
    /// gets, and has become the command.
    pub(crate) fn meet(
        self,
        engine: &Engine,
        container: &str,
        plan: &ExecPlan,
        attach: &mut dyn FnMut(Vec<OwnedFd>) -> io::Result<()>,
    ) -> Result<(), NotBegun> {
        let other = |reason: &str| NotBegun::Other(reason.to_owned());
        let network = plan.linux.network.as_ref();
        let network = network.ok_or_else(|| other("the plan has no list"))?;
        let line = engine.block(self.await_entry(engine, container))?;
        Ok(self.door.meet(&line, network, attach)?)
    }

    async fn await_entry(&self, engine: &Engine, container: &str) -> Result<OwnedFd, NotBegun> {
        let other = |reason: String| Err(NotBegun::Other(reason));
        let door = self.door.listener().and_then(UnixListener::from_std);
        let door = door.map_err(|error| NotBegun::Other(error.to_string()))?;
        let options = WaitContainerOptionsBuilder::default().condition("not-running");
        let mut ended = engine
            .client()
            .wait_container(container, Some(options.build()));
        tokio::select! {
            // A container that ends at once may have come before.
            biased;
            came = door.accept() => match came.and_then(|(line, _)| line.into_std()) {
                Ok(line) => Ok(line.into()),
                Err(error) => other(error.to_string()),
            },
            _ = ended.next() => other(
                "the container ended before the command began: Stockade's program must be one \
                 that runs there, a static one if there is an image".to_owned(),
            ),
            () = tokio::time::sleep(ENTRY_TIMEOUT) => {
                other("the container did not begin in time".to_owned())
            }
        }
    }
}
