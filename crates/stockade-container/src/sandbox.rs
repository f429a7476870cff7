//! A container that stays: started once, then many commands in it, its image swapped under it.
//!
//! Its project directory is mounted at its own path and survives every container. What of it is
//! protected, hidden or read-only is what the backend `native` would protect, hide or show.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::StartExecResults;
use bollard::models::{ContainerCreateBody, ExecConfig};
use bollard::query_parameters::{InspectContainerOptions, StartContainerOptions};
use futures_util::StreamExt;
use stockade_engine::ExecPlan;
use stockade_engine::network::{NetworkGuard, NetworkRecord, NetworkService};
use stockade_policy::SandboxPolicy;
use stockade_policy::profile::NetworkProfile;

use crate::backend::random;
use crate::devenv::build;
use crate::engine::{Engine, EngineError, call, chain, is_gone};
use crate::entry::Entry;
use crate::request::Wish;

/// What is kept of a command's output.
const LONGEST_OUTPUT: usize = 16 << 20;

/// How long a command may run if nobody says.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a new container has to answer before it is given up.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(30);

/// A container for one project, and what it is made of.
#[derive(Debug)]
pub struct ContainerSandbox {
    engine: Engine,
    project: PathBuf,
    image: String,
    runtime: Option<String>,
    health: String,
    reachable: Option<Reachable>,
    serving: Option<Serving>,
    /// What there was in the networks of containers that have gone.
    records: Vec<NetworkRecord>,
}

/// Who may be reached from inside, and who answers there.
#[derive(Debug)]
struct Reachable {
    network: NetworkProfile,
    service: Arc<dyn NetworkService>,
    helper: PathBuf,
}

/// A container that serves.
#[derive(Debug)]
struct Serving {
    name: String,
    /// What answers in its network.
    network: Option<Box<dyn NetworkGuard>>,
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecOutput {
    /// Its code; 124 if it took too long.
    pub code: i64,
    /// What it wrote, at most 16 MiB of it.
    pub stdout: Vec<u8>,
    /// What it complained about, likewise.
    pub stderr: Vec<u8>,
    /// Whether it was ended because it took too long.
    pub timed_out: bool,
}

/// Why a container could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The container is not there any more, or was never started.
    #[error("the container does not run")]
    NotRunning,
    /// The new container is not well; the old one serves on.
    #[error("the new container is not healthy, the old one serves on: {0}")]
    Unhealthy(String),
    /// The project or the image makes no container.
    #[error("no container can be made of it: {0}")]
    Settings(String),
    /// The container ran, but what it begins with did not become the command.
    #[error("the container did not begin: {0}")]
    NotBegun(String),
    /// The image could not be built.
    #[error("the image could not be built: {0}")]
    Build(String),
}

impl ContainerSandbox {
    /// A sandbox for `project` with this image; nothing is started.
    pub fn new(engine: Engine, project: impl Into<PathBuf>, image: impl Into<String>) -> Self {
        Self {
            engine,
            project: project.into(),
            image: image.into(),
            runtime: None,
            health: "true".to_owned(),
            reachable: None,
            serving: None,
            records: Vec::new(),
        }
    }

    /// The same with hosts that can be reached from inside: those of `network` and no others.
    /// `service` answers there, and `helper` is the program that each container begins with; it
    /// must be a static one, unless the image has what it needs.
    #[must_use]
    pub fn with_network(
        mut self,
        network: NetworkProfile,
        service: Arc<dyn NetworkService>,
        helper: impl Into<PathBuf>,
    ) -> Self {
        self.reachable = Some(Reachable {
            network,
            service,
            helper: helper.into(),
        });
        self
    }

    /// The same with one of the engine's runtimes, such as `runsc`.
    #[must_use]
    pub fn with_runtime(mut self, runtime: impl Into<String>) -> Self {
        self.runtime = Some(runtime.into());
        self
    }

    /// The same with a command that must succeed in a container before it serves.
    #[must_use]
    pub fn with_health_check(mut self, command: impl Into<String>) -> Self {
        self.health = command.into();
        self
    }

    /// The image of the next container.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// Changes the image of the next container.
    pub fn set_image(&mut self, image: impl Into<String>) {
        self.image = image.into();
    }

    /// The name of the container that serves, if one does.
    pub fn container_id(&self) -> Option<&str> {
        self.serving.as_ref().map(|serving| serving.name.as_str())
    }

    /// Takes what was asked for in the networks of containers that were stopped or swapped.
    pub fn take_network_records(&mut self) -> Vec<NetworkRecord> {
        std::mem::take(&mut self.records)
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whether the container runs, by asking the engine.
    ///
    /// # Errors
    /// If it can't be asked.
    pub fn running(&self) -> Result<bool, ContainerError> {
        let Some(name) = self.container_id() else {
            return Ok(false);
        };
        let client = self.engine.client();
        let inspected = client.inspect_container(name, None::<InspectContainerOptions>);
        match self.engine.block(inspected) {
            Ok(found) => Ok(found.state.and_then(|state| state.running) == Some(true)),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(call("inspect the container")(error).into()),
        }
    }

    /// Starts a container, unless one runs.
    ///
    /// # Errors
    /// If it can't be started, or is not healthy; then none is left.
    pub fn start(&mut self) -> Result<(), ContainerError> {
        if self.running()? {
            return Ok(());
        }
        self.stop()?;
        self.serving = Some(self.launch()?);
        Ok(())
    }

    /// Stops and removes the container, if there is one.
    ///
    /// # Errors
    /// If it can't be removed.
    pub fn stop(&mut self) -> Result<(), ContainerError> {
        if let Some(serving) = &self.serving {
            self.engine.remove_container(&serving.name)?;
        }
        let gone = self.serving.take();
        self.keep_records(gone);
        Ok(())
    }

    fn keep_records(&mut self, gone: Option<Serving>) {
        let network = gone.and_then(|gone| gone.network);
        self.records
            .extend(network.into_iter().flat_map(NetworkGuard::finish));
    }

    /// Runs a shell command in the container. One that takes longer than `timeout` (two minutes if
    /// none) is ended inside, with all its children.
    ///
    /// # Errors
    /// If no container runs or the engine fails; a command that fails is no error.
    pub fn exec(
        &self,
        command: &str,
        timeout: Option<Duration>,
    ) -> Result<ExecOutput, ContainerError> {
        let name = self.container_id().ok_or(ContainerError::NotRunning)?;
        self.exec_in(name, command, timeout.unwrap_or(DEFAULT_TIMEOUT))
    }

    /// Builds an image from the text of a Dockerfile with the project as context, and makes it
    /// the image of the next container. Nothing is written to the project.
    ///
    /// # Errors
    /// If it can't be built; the image stays as it was.
    pub fn build_from_dockerfile(&mut self, dockerfile: &str) -> Result<String, ContainerError> {
        let digest = blake3::hash(dockerfile.as_bytes()).to_hex();
        let tag = format!("stockade/project:{}", &digest[..12]);
        build(
            &self.engine,
            &self.project,
            dockerfile,
            &tag,
            &[],
            &mut |_| {},
        )
        .map_err(|error| ContainerError::Build(chain(&error)))?;
        self.image.clone_from(&tag);
        Ok(tag)
    }

    /// Puts a container of the current image in place of the one that runs: the new one is
    /// started and has to be healthy, then it serves, then the old one is removed.
    ///
    /// # Errors
    /// If the new one can't be started or is not healthy: it is removed, and the old one serves on.
    pub fn hot_swap(&mut self) -> Result<(), ContainerError> {
        let new = self.launch()?;
        let old = self.serving.replace(new);
        if let Some(old) = &old {
            self.engine.remove_container(&old.name)?;
        }
        self.keep_records(old);
        Ok(())
    }

    /// A new container that is healthy.
    fn launch(&self) -> Result<Serving, ContainerError> {
        let odd = |error: std::io::Error| ContainerError::Settings(error.to_string());
        let random = random().map_err(odd)?;
        let name = format!("stockade-{random:016x}");
        let (plan, body, entry) = self.request(random)?;
        let ready = match (&plan.network, &self.reachable) {
            (Some(order), Some(reachable)) => {
                Some((order, reachable.service.prepare(order).map_err(odd)?))
            }
            _ => None,
        };
        let trust = ready.as_ref().and_then(|(_, session)| session.trust());
        let entry = entry.map(|entry| entry.open(trust));
        let entry = entry.transpose().map_err(odd)?;
        let mut ready = ready;
        let mut network = None;
        let mut attach = |sockets| {
            if let Some((order, session)) = ready.take() {
                network = Some(session.serve(order, sockets)?);
            }
            Ok(())
        };
        let outcome = start(&self.engine, &name, body)
            .map_err(ContainerError::from)
            .and_then(|()| match entry {
                Some(entry) => entry
                    .meet(&self.engine, &name, &plan, &mut attach)
                    .map_err(|error| ContainerError::NotBegun(error.to_string())),
                None => Ok(()),
            })
            .and_then(|()| {
                let answer = self.exec_in(&name, &self.health, HEALTH_TIMEOUT)?;
                if answer.code == 0 {
                    return Ok(());
                }
                let said = String::from_utf8_lossy(&answer.stderr);
                let reason = format!(
                    "`{}` ended with {}: {}",
                    self.health,
                    answer.code,
                    said.trim()
                );
                Err(ContainerError::Unhealthy(reason))
            });
        match outcome {
            Ok(()) => Ok(Serving { name, network }),
            Err(error) => {
                // The first failure is the one to tell; a leftover is swept later.
                let _ = self.engine.remove_container(&name);
                Err(error)
            }
        }
    }

    /// The request for the next container, and its entry if it has one.
    fn request(
        &self,
        random: u64,
    ) -> Result<(ExecPlan, ContainerCreateBody, Option<Entry>), ContainerError> {
        let odd = |text: String| ContainerError::Settings(text);
        let wish = Wish {
            policy: SandboxPolicy::workspace_write(Vec::new()),
            network: self.reachable.as_ref().map(|reachable| &reachable.network),
            dir: &self.project,
            command: "/bin/true",
            image: Some(&self.image),
            runtime: self.runtime.as_deref(),
        };
        let (plan, mut body) = wish.request().map_err(odd)?;
        body.entrypoint = Some(vec!["sleep".to_owned(), "infinity".to_owned()]);
        body.open_stdin = Some(false);
        body.tty = Some(false);
        let entry = plan.network.is_some().then(|| Entry::new(random));
        if let (Some(entry), Some(reachable)) = (&entry, &self.reachable) {
            let put = entry.put_first(&mut body, &plan, &reachable.helper, true);
            put.map_err(odd)?;
        }
        Ok((plan, body, entry))
    }

    fn exec_in(
        &self,
        name: &str,
        command: &str,
        timeout: Duration,
    ) -> Result<ExecOutput, ContainerError> {
        let mark = random().map_err(|error| ContainerError::Settings(error.to_string()))?;
        let mark = format!("STOCKADE_EXEC={mark:016x}");
        self.engine.block(async {
            let run = self.collect(name, command, &mark);
            if let Ok(output) = tokio::time::timeout(timeout, run).await {
                return output;
            }
            let killer = KILLER.replace("@MARK@", &mark);
            let end = self.collect(name, &killer, "STOCKADE_EXEC=none");
            // Whatever it says: what can't be ended this way ends with the container.
            let _ = tokio::time::timeout(HEALTH_TIMEOUT, end).await;
            Ok(ExecOutput {
                code: 124,
                stdout: Vec::new(),
                stderr: Vec::new(),
                timed_out: true,
            })
        })
    }

    async fn collect(
        &self,
        name: &str,
        command: &str,
        mark: &str,
    ) -> Result<ExecOutput, ContainerError> {
        let client = self.engine.client();
        let config = ExecConfig {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            env: Some(vec![mark.to_owned()]),
            cmd: Some(vec!["sh".to_owned(), "-c".to_owned(), command.to_owned()]),
            working_dir: self.project.to_str().map(str::to_owned),
            ..ExecConfig::default()
        };
        let gone = |error: bollard::errors::Error, act: &'static str| {
            if is_gone(&error) {
                ContainerError::NotRunning
            } else {
                call(act)(error).into()
            }
        };
        let made = client.create_exec(name, config).await;
        let id = made.map_err(|error| gone(error, "prepare the command"))?.id;
        let started = client.start_exec(&id, None).await;
        let StartExecResults::Attached { mut output, .. } =
            started.map_err(|error| gone(error, "start the command"))?
        else {
            return Err(ContainerError::NotRunning);
        };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        while let Some(chunk) = output.next().await {
            let chunk = chunk.map_err(call("pass the command's output on"))?;
            let kept = match &chunk {
                LogOutput::StdErr { .. } => &mut stderr,
                _ => &mut stdout,
            };
            let bytes = chunk.into_bytes();
            let room = LONGEST_OUTPUT.saturating_sub(kept.len());
            kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        // The stream may end a moment before the engine knows the code.
        for _ in 0..PATIENCE_ROUNDS {
            let ended = client.inspect_exec(&id).await;
            let ended = ended.map_err(|error| gone(error, "tell how the command ended"))?;
            if let (Some(false), Some(code)) = (ended.running, ended.exit_code) {
                return Ok(ExecOutput {
                    code,
                    stdout,
                    stderr,
                    timed_out: false,
                });
            }
            tokio::time::sleep(ROUND).await;
        }
        // It has no code: its container was taken away.
        Err(ContainerError::NotRunning)
    }
}

/// How often, and how long apart, the engine is asked for a code that it does not know yet.
const PATIENCE_ROUNDS: u32 = 1000;
const ROUND: Duration = Duration::from_millis(2);

impl Drop for ContainerSandbox {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// Ends every process whose environment carries the mark, until there is none: a child inherits
/// it, whatever session or parent it has.
const KILLER: &str = r#"
while :; do
    found=
    for process in /proc/[0-9]*; do
        if grep -q "@MARK@" "$process/environ" 2>/dev/null; then
            kill -9 "${process#/proc/}" 2>/dev/null && found=1
        fi
    done
    test -n "$found" || break
done
"#;

pub(crate) fn start(
    engine: &Engine,
    name: &str,
    body: ContainerCreateBody,
) -> Result<(), EngineError> {
    let client = engine.client();
    engine.block(async {
        engine.make(name, body).await?;
        client
            .start_container(name, None::<StartContainerOptions>)
            .await
            .map_err(call("start the container"))
    })
}
