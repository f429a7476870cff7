//! The connection to a container engine, by its Unix socket only.

use std::env;
use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::runtime::{Builder, Runtime};

use crate::podman;

/// How long the engine may think before it answers at all.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A request that runs as long as its container must not be cut short.
const LONGEST_REQUEST_SECONDS: u64 = 30 * 24 * 60 * 60;

/// Who made a container: the process, by its id and the moment it began.
pub(crate) const OWNER_LABEL: &str = "dev.stockade.owner";

/// A container engine that answers.
#[derive(Debug)]
pub struct Engine {
    runtime: Runtime,
    client: Docker,
    socket: PathBuf,
    kind: Kind,
}

/// Whose engine it is: what they take is not quite the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Docker,
    Podman,
}

/// Why the engine could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Nothing answers.
    #[error("no container engine answers: {0}")]
    NoEngine(String),
    /// Only local sockets are used: what is sent to them is as good as root.
    #[error("{variable} is `{value}`; only Unix sockets are used")]
    NotUnix {
        /// Who said it.
        variable: &'static str,
        /// What it says.
        value: String,
    },
    /// A request failed.
    #[error("the container engine could not {act}")]
    Call {
        /// What was asked for.
        act: &'static str,
        /// What it said.
        source: bollard::errors::Error,
    },
    /// The runtime of this crate could not be made.
    #[error("could not prepare to speak to the container engine")]
    Runtime(#[source] std::io::Error),
}

impl EngineError {
    /// What the user could do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoEngine(_) | Self::NotUnix { .. } => Some(
                "start the daemon (`systemctl start docker`), or set DOCKER_HOST to unix:// and its socket",
            ),
            Self::Call { .. } | Self::Runtime(_) => None,
        }
    }
}

impl Engine {
    /// The engine of `DOCKER_HOST`, or of `CONTAINER_HOST` as Podman has it, or the first of the
    /// usual sockets that answers: Docker's, then Podman's.
    ///
    /// # Errors
    /// If none answers.
    pub fn connect() -> Result<Self, EngineError> {
        let sockets = sockets(|name| env::var_os(name), rustix::process::getuid().as_raw())?;
        let mut reasons = Vec::new();
        let mut absent = Vec::new();
        for socket in sockets {
            let name = format!("`{}`", socket.display());
            match Self::at(&socket) {
                Ok(engine) => return Ok(engine),
                Err(_) if is_absent(&socket) => absent.push(name),
                Err(error) => reasons.push(format!("{name}: {}", chain(&error))),
            }
        }
        if !absent.is_empty() {
            reasons.push(format!("there is no {}", absent.join(", ")));
        }
        Err(EngineError::NoEngine(reasons.join("; ")))
    }

    /// The engine behind this socket.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn at(socket: &Path) -> Result<Self, EngineError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(EngineError::Runtime)?;
        let client = {
            let path = socket.to_string_lossy();
            let _entered = runtime.enter();
            Docker::connect_with_unix(&path, LONGEST_REQUEST_SECONDS, API_DEFAULT_VERSION)
                .map_err(call("be reached"))?
        };
        let client = runtime
            .block_on(async {
                tokio::time::timeout(ANSWER_TIMEOUT, client.negotiate_version()).await
            })
            .map_err(|_| EngineError::NoEngine("it does not answer in time".to_owned()))?
            .map_err(call("say its version"))?;
        let version = runtime
            .block_on(client.version())
            .map_err(call("say its version"))?;
        let mut parts = version.components.into_iter().flatten();
        let is_podman = parts.any(|part| part.name.starts_with("Podman"));
        Ok(Self {
            runtime,
            client,
            socket: socket.to_owned(),
            kind: if is_podman {
                Kind::Podman
            } else {
                Kind::Docker
            },
        })
    }

    /// Its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether it knows a runtime, such as `runsc`.
    ///
    /// # Errors
    /// If it can't be asked.
    pub fn has_runtime(&self, name: &str) -> Result<bool, EngineError> {
        let info = self
            .block(self.client.info())
            .map_err(call("describe itself"))?;
        Ok(info
            .runtimes
            .is_some_and(|runtimes| runtimes.contains_key(name)))
    }

    /// Removes containers of ours whose owner is gone.
    ///
    /// # Errors
    /// If they can't be listed. One that can't be removed is left for the next time.
    pub fn sweep(&self) -> Result<usize, EngineError> {
        let filters = [("label".to_owned(), vec![OWNER_LABEL.to_owned()])];
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters.into_iter().collect())
            .build();
        let found = self
            .block(self.client.list_containers(Some(options)))
            .map_err(call("list containers"))?;
        let mut removed = 0;
        for container in found {
            let owner = container
                .labels
                .as_ref()
                .and_then(|all| all.get(OWNER_LABEL));
            let (Some(owner), Some(id)) = (owner, &container.id) else {
                continue;
            };
            if has_ended(owner) && self.remove_container(id).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Makes a container.
    pub(crate) async fn make(
        &self,
        name: &str,
        mut body: ContainerCreateBody,
    ) -> Result<(), EngineError> {
        let mut filter = None;
        if self.kind == Kind::Podman {
            podman::without_copies(&mut body);
            podman::limits_as_they_are(&mut body);
            filter = podman::filter_by_path(&mut body).map_err(EngineError::Runtime)?;
        }
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let made = self.client.create_container(Some(options), body).await;
        // It has been read by now.
        drop(filter);
        made.map(drop).map_err(call("make the container"))
    }

    /// Removes a container, running or not; one that is gone already is no failure.
    ///
    /// # Errors
    /// If the engine can't be asked or refuses.
    pub fn remove_container(&self, name: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true);
        let removed = self.client.remove_container(name, Some(options.build()));
        match self.block(removed) {
            Err(error) if !is_gone(&error) => Err(call("remove the container")(error)),
            _ => Ok(()),
        }
    }

    pub(crate) fn client(&self) -> &Docker {
        &self.client
    }

    pub(crate) fn block<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    pub(crate) fn into_parts(self) -> (Runtime, Docker) {
        (self.runtime, self.client)
    }
}

pub(crate) fn call(act: &'static str) -> impl Fn(bollard::errors::Error) -> EngineError {
    move |source| EngineError::Call { act, source }
}

/// Whether the engine says that there is no such thing, or that it is being removed by another.
pub(crate) fn is_gone(error: &bollard::errors::Error) -> bool {
    matches!(
        error,
        bollard::errors::Error::DockerResponseServerError {
            status_code: 404 | 409,
            ..
        }
    )
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// What stands in [`OWNER_LABEL`] for this process.
pub(crate) fn owner() -> String {
    let pid = std::process::id();
    format!(
        "{}:{pid}:{}",
        around(),
        beginning_of(pid).unwrap_or_default()
    )
}

/// Whether the process of a label has ended, as far as can be known here: a process number means
/// nothing in another pid namespace or on another machine, and a container whose launcher is only
/// out of sight must not be taken from it.
fn has_ended(owner: &str) -> bool {
    let mut parts = owner.rsplitn(3, ':');
    let (Some(beginning), Some(pid), Some(there)) = (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let Ok(pid) = pid.parse() else { return false };
    there == around() && beginning_of(pid).is_none_or(|now| now != beginning)
}

/// This boot of this machine and the pid namespace that process numbers here are of.
fn around() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}:{}", boot.trim(), namespace.display())
}

/// When a process began, in ticks since the machine did (`proc_pid_stat(5)`, field 22).
fn beginning_of(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

fn is_absent(path: &Path) -> bool {
    let looked = std::fs::symlink_metadata(path);
    looked.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// Where an engine may listen: what the user says, or the usual places.
fn sockets(
    variable: impl Fn(&str) -> Option<OsString>,
    user: u32,
) -> Result<Vec<PathBuf>, EngineError> {
    for name in ["DOCKER_HOST", "CONTAINER_HOST"] {
        // An empty one is as good as none, as Docker's own client has it.
        let Some(host) = variable(name).filter(|host| !host.is_empty()) else {
            continue;
        };
        let path = host.as_bytes().strip_prefix(b"unix://");
        return match path {
            Some(path) => Ok(vec![PathBuf::from(OsStr::from_bytes(path))]),
            None => Err(EngineError::NotUnix {
                variable: name,
                value: host.to_string_lossy().into_owned(),
            }),
        };
    }
    let stated = variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = stated
        .filter(|path| path.is_absolute())
        .unwrap_or_else(|| PathBuf::from(format!("/run/user/{user}")));
    Ok(vec![
        PathBuf::from("/var/run/docker.sock"),
        own.join("docker.sock"),
        PathBuf::from("/run/podman/podman.sock"),
        own.join("podman/podman.sock"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_process_and_its_beginning() {
        let own = owner();
        assert!(!has_ended(&own));
        assert!(
            has_ended(&format!("{own}1")),
            "the number is another's by now"
        );
        let ended = format!("{}:4194305:1", around());
        assert!(has_ended(&ended));
    }

    /// In another pid namespace the same number is another process, or none.
    #[test]
    fn an_owner_out_of_sight_is_not_gone() {
        let boot = around();
        let (boot, _) = boot.split_once(':').unwrap();
        assert!(!has_ended(&format!("{boot}:pid:[1]:4194305:1")));
        assert!(!has_ended("another-boot:pid:[4026531836]:4194305:1"));
        assert!(!has_ended("nonsense"));
    }

    #[test]
    fn engines_are_looked_for_where_the_user_says() {
        let find = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            sockets(variable, 1000)
        };
        let usual = |own: &str| {
            [
                "/var/run/docker.sock".to_owned(),
                format!("{own}/docker.sock"),
                "/run/podman/podman.sock".to_owned(),
                format!("{own}/podman/podman.sock"),
            ]
            .map(PathBuf::from)
        };
        assert_eq!(find(&[]).unwrap(), usual("/run/user/1000"));
        let empty = [("DOCKER_HOST", ""), ("XDG_RUNTIME_DIR", "/x")];
        assert_eq!(find(&empty).unwrap(), usual("/x"));
        let relative = [("XDG_RUNTIME_DIR", "x")];
        assert_eq!(find(&relative).unwrap(), usual("/run/user/1000"));
        let podman = "unix:///run/user/1000/podman/podman.sock";
        let only = [PathBuf::from("/run/user/1000/podman/podman.sock")];
        assert_eq!(find(&[("CONTAINER_HOST", podman)]).unwrap(), only);
        let both = [("CONTAINER_HOST", "unix:///y"), ("DOCKER_HOST", podman)];
        assert_eq!(find(&both).unwrap(), only);
        for other in [
            "tcp://127.0.0.1:2375",
            "ssh://root@host",
            "/var/run/docker.sock",
        ] {
            let refused = find(&[("DOCKER_HOST", other)]);
            assert!(
                matches!(refused, Err(EngineError::NotUnix { .. })),
                "{other}"
            );
        }
    }

    #[test]
    fn a_socket_that_nobody_serves_is_no_engine() {
        let dir = tempfile::tempdir().unwrap();
        let refused = Engine::at(&dir.path().join("no.sock"));
        assert!(refused.is_err(), "{refused:?}");
    }
}
