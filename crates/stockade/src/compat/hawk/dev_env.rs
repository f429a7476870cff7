//! Hawk's manager of images: built once per project, and swapped in after a rebuild.

use std::path::{Path, PathBuf};

use stockade_container::{DevEnvError, DevEnvManager as Manager, Engine, SwapRequest};

use super::ContainerSandboxError;
use crate::compat::Context;

/// The images of one project, with an index in a directory of the caller's.
pub struct DevEnvManager {
    engine: Engine,
    project_dir: PathBuf,
    state_dir: PathBuf,
    /// Called after a forced rebuild, unless the context was cancelled meanwhile.
    pub on_swap_needed: Option<Box<dyn FnMut(SwapRequest)>>,
}

impl std::fmt::Debug for DevEnvManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DevEnvManager")
            .field("project_dir", &self.project_dir)
            .field("state_dir", &self.state_dir)
            .finish_non_exhaustive()
    }
}

impl DevEnvManager {
    /// The images of a project. `state_dir` keeps the index; it must not be in the project.
    ///
    /// # Errors
    /// If no engine answers.
    pub fn new(
        project_dir: impl Into<PathBuf>,
        state_dir: impl Into<PathBuf>,
    ) -> Result<Self, ContainerSandboxError> {
        Ok(Self {
            engine: Engine::connect().map_err(DevEnvError::from)?,
            project_dir: project_dir.into(),
            state_dir: state_dir.into(),
            on_swap_needed: None,
        })
    }

    /// The image of a Dockerfile: the one that is there if nothing changed, or a new one.
    ///
    /// # Errors
    /// If it can't be read or built, or the context was cancelled.
    pub fn get_or_build(
        &self,
        context: &Context,
        dockerfile: &Path,
    ) -> Result<String, ContainerSandboxError> {
        context.check()?;
        let tag = self.manager()?.get_or_build(dockerfile)?;
        context.check()?;
        Ok(tag)
    }

    /// Whether the next call of [`DevEnvManager::get_or_build`] would build.
    ///
    /// # Errors
    /// If the Dockerfile or its context can't be read.
    pub fn is_stale(&self, dockerfile: &Path) -> Result<bool, ContainerSandboxError> {
        Ok(self.manager()?.is_stale(dockerfile)?)
    }

    /// Declares the image of a Dockerfile stale.
    ///
    /// # Errors
    /// If the index can't be written.
    pub fn invalidate(&self, dockerfile: &Path) -> Result<(), ContainerSandboxError> {
        Ok(self.manager()?.invalidate(dockerfile)?)
    }

    /// Builds anew whatever is there, and asks for a swap.
    ///
    /// # Errors
    /// If it can't be built, or the context was cancelled; then no swap is asked for.
    pub fn rebuild_and_force_swap(
        &mut self,
        context: &Context,
        dockerfile: &Path,
    ) -> Result<String, ContainerSandboxError> {
        context.check()?;
        let mut request = None;
        let tag = {
            let mut manager = self.manager()?;
            manager.on_swap_needed = Some(Box::new(|swap| request = Some(swap)));
            manager.rebuild_and_force_swap(dockerfile)?
        };
        context.check()?;
        if let (Some(swap), Some(request)) = (&mut self.on_swap_needed, request) {
            swap(request);
        }
        Ok(tag)
    }

    fn manager(&self) -> Result<Manager<'_>, DevEnvError> {
        Manager::new(&self.engine, &self.project_dir, &self.state_dir)
    }
}
