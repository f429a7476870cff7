//! Hawk's container sandbox: the engine is found, and a context can cancel each step.

use std::path::PathBuf;
use std::time::Duration;

use stockade_container::{ContainerError, ContainerSandbox as Container, Engine, ExecOutput};

use crate::compat::{Context, FrontError};

/// The tag of the default image, chosen when this crate is built: the value of the variable
/// `STOCKADE_CONTAINER_IMAGE_TAG` at that time, or `latest`.
pub const CONTAINER_IMAGE_TAG: &str = match option_env!("STOCKADE_CONTAINER_IMAGE_TAG") {
    Some(tag) => tag,
    None => "latest",
};

/// A container for one project. The project is the only directory of the host in it.
#[derive(Debug)]
pub struct ContainerSandbox {
    container: Container,
}

/// Why a container could not do something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerSandboxError {
    /// The context was cancelled.
    #[error(transparent)]
    Cancelled(#[from] FrontError),
    /// The image could not be built or found.
    #[error(transparent)]
    Image(#[from] stockade_container::DevEnvError),
    /// The engine or the container failed.
    #[error(transparent)]
    Container(#[from] ContainerError),
}

/// The image of containers for which no other one is chosen. It is never pulled.
pub fn default_container_image() -> String {
    format!("stockade/sandbox:{CONTAINER_IMAGE_TAG}")
}

/// Arguments that make `docker run` use gVisor; empty if no engine here has that runtime.
pub fn gvisor_docker_args() -> Vec<String> {
    let has_runtime = Engine::connect().and_then(|engine| engine.has_runtime("runsc"));
    match has_runtime {
        Ok(true) => vec!["--runtime=runsc".to_owned()],
        Ok(false) | Err(_) => Vec::new(),
    }
}

impl ContainerSandbox {
    /// A sandbox for a project with the default image; nothing is started.
    ///
    /// # Errors
    /// If no engine answers.
    pub fn new(project_dir: impl Into<PathBuf>) -> Result<Self, ContainerSandboxError> {
        let engine = Engine::connect().map_err(ContainerError::from)?;
        Ok(Self {
            container: Container::new(engine, project_dir, default_container_image()),
        })
    }

    /// The image of the next container.
    pub fn image(&self) -> &str {
        self.container.image()
    }

    /// Changes the image of the next container.
    pub fn set_image(&mut self, image: impl Into<String>) {
        self.container.set_image(image);
    }

    /// The name of the container that serves; empty if none does.
    pub fn container_id(&self) -> &str {
        self.container.container_id().unwrap_or_default()
    }

    /// Whether the container runs, by asking the engine.
    ///
    /// # Errors
    /// If it can't be asked.
    pub fn running(&self) -> Result<bool, ContainerSandboxError> {
        Ok(self.container.running()?)
    }

    /// Starts a container, unless one runs.
    ///
    /// # Errors
    /// If it can't be started or the context is cancelled; then none is left.
    pub fn start(&mut self, context: &Context) -> Result<(), ContainerSandboxError> {
        context.check()?;
        self.container.start()?;
        if context.is_cancelled() {
            self.container.stop()?;
        }
        Ok(context.check()?)
    }

    /// Stops and removes the container, if there is one.
    ///
    /// # Errors
    /// If it can't be removed.
    pub fn stop(&mut self) -> Result<(), ContainerSandboxError> {
        Ok(self.container.stop()?)
    }

    /// Runs a shell command in the container. One that takes longer than `timeout` (two minutes if
    /// none) is killed inside, with all its children.
    ///
    /// # Errors
    /// If no container runs, the engine fails, or the context is cancelled: then the container is
    /// removed, because nothing else ends what runs in it at once.
    pub fn exec(
        &mut self,
        context: &Context,
        command: &str,
        timeout: Option<Duration>,
    ) -> Result<ExecOutput, ContainerSandboxError> {
        context.check()?;
        let removal = Removal::of(&self.container);
        let cancel = context.after_cancel(move || removal.carry_out());
        let output = self.container.exec(command, timeout);
        drop(cancel);
        if context.is_cancelled() {
            self.container.stop()?;
            context.check()?;
        }
        Ok(output?)
    }

    /// Builds an image from the text of a Dockerfile with the project as context, and makes it the
    /// image of the next container. Nothing is written to the project.
    ///
    /// # Errors
    /// If it can't be built, or the context is cancelled before the end of the build; then the image
    /// stays as it was.
    pub fn build_from_dockerfile(
        &mut self,
        context: &Context,
        dockerfile: &str,
    ) -> Result<String, ContainerSandboxError> {
        context.check()?;
        let before = self.image().to_owned();
        let tag = self.container.build_from_dockerfile(dockerfile)?;
        if context.is_cancelled() {
            self.container.set_image(before);
        }
        context.check()?;
        Ok(tag)
    }

    /// Puts a container of the current image in place of the one that runs: the new one has to be
    /// healthy before it serves.
    ///
    /// # Errors
    /// If the new one can't be started, or the context was cancelled; then the old one serves on.
    pub fn hot_swap(&mut self, context: &Context) -> Result<(), ContainerSandboxError> {
        context.check()?;
        Ok(self.container.hot_swap()?)
    }
}

/// Removes a container from another thread, over a connection of its own.
struct Removal {
    socket: PathBuf,
    name: String,
}

impl Removal {
    fn of(container: &Container) -> Self {
        Self {
            socket: container.engine().socket().to_owned(),
            name: container.container_id().unwrap_or_default().to_owned(),
        }
    }

    fn carry_out(&self) {
        // Where this fails the command ends with its time, and `exec` removes the container then.
        if let Ok(engine) = Engine::at(&self.socket) {
            let _ = engine.remove_container(&self.name);
        }
    }
}
