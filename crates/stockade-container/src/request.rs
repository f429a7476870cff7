//! The request for a container of a policy, as hardened as every other, and one to try an engine
//! with.

use std::path::Path;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::WaitContainerOptionsBuilder;
use futures_util::StreamExt;
use stockade_engine::backend::foundation;
use stockade_engine::{ExecPlan, Spec};
use stockade_policy::profile::{Backend as Name, NetworkProfile, Profile};
use stockade_policy::{SandboxPolicy, Surroundings};

use crate::backend::random;
use crate::engine::{Engine, EngineError, call, chain};
use crate::image::Images;
use crate::sandbox::start;
use crate::settings::{Settings, ThisHost, create_body};
use crate::words::words;

/// What a container is wanted for.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) policy: SandboxPolicy,
    /// Hosts that may be reached; none if there is no network.
    pub(crate) network: Option<&'a NetworkProfile>,
    /// What the policy is about.
    pub(crate) dir: &'a Path,
    pub(crate) command: &'a str,
    /// The image that is the file system; if none the host's is.
    pub(crate) image: Option<&'a str>,
    pub(crate) runtime: Option<&'a str>,
}

impl Wish<'_> {
    /// What it is made of, and the request for it.
    pub(crate) fn request(&self) -> Result<(ExecPlan, ContainerCreateBody), String> {
        let around = Surroundings::from_env(self.dir).map_err(|error| error.to_string())?;
        let mut profile =
            Profile::from_policy(&self.policy, &around).map_err(|error| chain(&error))?;
        if let Some(network) = self.network {
            profile.network = network.clone();
        }
        let spec = Spec {
            argv: vec![self.command.into()],
            env: std::env::vars_os().collect(),
            ..Spec::default()
        };
        let words = words(self.runtime);
        let plan = foundation::plan(&profile, &spec, Name::Docker, &words)
            .map_err(|error| chain(&error))?;
        let settings = Settings {
            runtime: self.runtime,
            // Nothing that is hidden is a file here: a project's own rules hide nothing.
            ..Settings::of(&profile, self.image, "/dev/null")
        };
        let body = create_body(&plan.linux, &settings, &ThisHost);
        Ok((plan, body.map_err(|error| error.to_string())?))
    }
}

/// Has the engine confine `true`, with the host's files.
pub(crate) fn self_test(engine: &Engine, runtime: Option<&str>) -> Result<(), EngineError> {
    Images::new(engine).ensure_empty()?;
    let wish = Wish {
        policy: SandboxPolicy::read_only(),
        network: None,
        dir: Path::new("/"),
        command: "/bin/true",
        image: None,
        runtime,
    };
    let (_, body) = wish.request().map_err(EngineError::NoEngine)?;
    let random = random().map_err(EngineError::Runtime)?;
    let name = format!("stockade-{random:016x}");
    let tried = start(engine, &name, body).and_then(|()| {
        let options = WaitContainerOptionsBuilder::default()
            .condition("not-running")
            .build();
        let client = engine.client();
        let ended = engine.block(async {
            let mut ends = Box::pin(client.wait_container(&name, Some(options)));
            ends.next().await
        });
        match ended {
            Some(Ok(_)) => Ok(()),
            Some(Err(error)) => Err(call("run `true`")(error)),
            None => Err(EngineError::NoEngine("it went away".to_owned())),
        }
    });
    let removed = engine.remove_container(&name);
    tried.and(removed)
}
