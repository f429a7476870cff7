//! The backends `docker`, and `gvisor` as an engine's runtime: a plan of Stockade in a container.
//!
//! The file system is the host's, as the plan shows it, on an image that is empty and made on the
//! spot; no registry is asked. With [`DockerBackend::with_image`] the image is the file system and
//! only the writable directories come from the host.
//!
//! Not protected: as for every backend without a mediator, see the report. The engine itself runs
//! as root and looks mount points up by name.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{AttachContainerOptionsBuilder, StartContainerOptions};
use serde_json::json;
use stockade_engine::backend::foundation;
use stockade_engine::backend::{Backend, Launch, NetworkSetup, RunningSandbox};
use stockade_engine::probe::{Gap, Support};
use stockade_engine::{Carrier, ExecPlan, PlanError, RunError, Spec};
use stockade_linux::plan::Text;
use stockade_linux::{SpawnError, Stage};
use stockade_policy::profile::{Backend as Name, Profile};

use crate::engine::{Engine, EngineError, chain};
use crate::entry::{Entry, NotBegun};
use crate::guard::Guard;
use crate::image::Images;
use crate::pump::{ContainerRun, Started};
use crate::settings::{Settings, ThisHost, create_body};
use crate::words::words;

/// Containers of Docker or Podman.
#[derive(Clone, Debug)]
pub struct DockerBackend {
    name: Name,
    socket: Option<PathBuf>,
    image: Option<String>,
    guard: Option<PathBuf>,
    helper: Option<PathBuf>,
}

/// gVisor's name among an engine's runtimes.
const RUNSC: &str = "runsc";

impl DockerBackend {
    /// The engine's own runtime.
    pub fn docker() -> Self {
        Self {
            name: Name::Docker,
            socket: None,
            image: None,
            guard: None,
            helper: None,
        }
    }

    /// gVisor, where the engine knows it as `runsc`.
    pub fn gvisor() -> Self {
        Self {
            name: Name::Gvisor,
            ..Self::docker()
        }
    }

    /// Speaks to the engine behind this socket and no other.
    #[must_use]
    pub fn at(mut self, socket: impl Into<PathBuf>) -> Self {
        self.socket = Some(socket.into());
        self
    }

    /// Has the image as file system in place of the host's.
    #[must_use]
    pub fn with_image(mut self, image: impl Into<String>) -> Self {
        self.image = Some(image.into());
        self
    }

    /// The program that removes the container should this process be killed: one whose `main`
    /// begins with [`guard::main`](crate::guard::main) when
    /// [`guard::is_requested`](crate::guard::is_requested). Without it such a container runs on
    /// until the next start removes it.
    #[must_use]
    pub fn with_guard(mut self, program: impl Into<PathBuf>) -> Self {
        self.guard = Some(program.into());
        self
    }

    /// Entry point of containers whose policy lists hosts: one that acts as
    /// Stockade's helper, and a static one for images. Without it such a policy is refused.
    #[must_use]
    pub fn with_helper(mut self, program: impl Into<PathBuf>) -> Self {
        self.helper = Some(program.into());
        self
    }

    fn connect(&self) -> Result<Engine, EngineError> {
        match &self.socket {
            Some(socket) => Engine::at(socket),
            None => Engine::connect(),
        }
    }

    fn runtime(&self) -> Option<&'static str> {
        (self.name == Name::Gvisor).then_some(RUNSC)
    }

    fn unusable(&self, reason: impl Into<String>, fix: Option<&str>) -> PlanError {
        PlanError::Unusable {
            backend: self.name,
            reason: reason.into(),
            fix: fix.map(str::to_owned),
        }
    }
}

impl Backend for DockerBackend {
    fn name(&self) -> Name {
        self.name
    }

    fn probe(&self, _: &Path) -> Support {
        let tried = self.connect().and_then(|engine| {
            if let Some(runtime) = self.runtime()
                && !engine.has_runtime(runtime)?
            {
                return Err(EngineError::NoEngine(format!(
                    "it has no runtime `{runtime}`"
                )));
            }
            crate::request::self_test(&engine, self.runtime())
        });
        match tried {
            Ok(()) => Support::Full,
            Err(error) => Support::None {
                gaps: vec![Gap::of(
                    self.name.as_str(),
                    chain(&error),
                    error.hint().map(str::to_owned),
                )],
            },
        }
    }

    fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
        let mut plan = foundation::plan(profile, spec, self.name, &words(self.runtime()))?;
        if !spec.keep_descriptors.is_empty() {
            let reason = "descriptors can't be handed into a container";
            return Err(self.unusable(
                reason,
                Some(/*hint*/ "leave out --pass-fd, or name another backend"),
            ));
        }
        let handed_in = !(profile.network.unix.is_empty() && profile.devices.is_empty());
        if self.name == Name::Gvisor && handed_in {
            let reason = "sockets and devices of the host can't be handed into gVisor";
            let fix = /*hint*/ "leave the grant out, or name another backend";
            return Err(self.unusable(reason, Some(fix)));
        }
        if self.image.is_some() {
            // Where a program is on the host says nothing about where the image has it.
            let typed = spec.argv.first().and_then(Text::new);
            let first = plan.linux.command.argv.first_mut();
            if let (Some(typed), Some(first)) = (typed, first) {
                *first = typed;
            }
        }
        let random = random().map_err(PlanError::Random)?;
        let hidden = std::env::temp_dir().join(format!("stockade-hidden-{random:016x}"));
        let settings = Settings {
            runtime: self.runtime(),
            ..Settings::of(
                profile,
                self.image.as_deref(),
                hidden.to_str().unwrap_or_default(),
            )
        };
        let mut body = create_body(&plan.linux, &settings, &ThisHost)
            .map_err(|error| self.unusable(error.to_string(), None))?;
        let entry = plan.network.is_some().then(|| Entry::new(random));
        if let Some(entry) = &entry {
            let no_helper = "it was not told which program a container begins with";
            let helper = self.helper.as_deref();
            let helper = helper.ok_or_else(|| self.unusable(no_helper, None))?;
            entry
                .put_first(&mut body, &plan, helper, self.image.is_some())
                .map_err(|reason| self.unusable(reason, None))?;
        }
        limits_hold(&mut plan, profile);
        let needs_hidden = serde_json::to_string(&body).is_ok_and(|text| {
            !settings.hidden_file.is_empty() && text.contains(settings.hidden_file)
        });
        plan.carrier = Carrier::Engine(json!({
            "name": format!("stockade-{random:016x}"),
            "hidden_file": needs_hidden.then_some(&hidden),
            "entry": entry,
            "create": body,
        }));
        Ok(plan)
    }

    fn carries(&self, plan: &ExecPlan) -> bool {
        plan.backend == self.name && matches!(plan.carrier, Carrier::Engine(_))
    }

    fn spawn(
        &self,
        plan: &ExecPlan,
        launch: &Launch<'_>,
    ) -> Result<Box<dyn RunningSandbox>, RunError> {
        if self.image.is_none() {
            foundation::find_command(plan)?;
        }
        let request = Request::of(plan).ok_or_else(|| self.failed("the plan is another's"))?;
        let engine = self.connect().map_err(|error| self.failed(chain(&error)))?;
        // What a launcher without a guard left when it was killed.
        let _ = engine.sweep();
        self.ensure_image(&engine)?;
        let (standard, terminal) = standard(launch.standard, plan.linux.terminal)
            .map_err(|error| self.failed(error.to_string()))?;
        let mut answering = NetworkSetup::new(plan, launch)?;
        let trust = answering.trust(plan)?.map(str::to_owned);
        let mut files = Vec::new();
        let mut guard = match &self.guard {
            Some(program) => {
                let entry = request.entry.iter().flat_map(Entry::paths);
                let watched: Vec<PathBuf> =
                    request.hidden_file.iter().cloned().chain(entry).collect();
                Some(
                    Guard::start(program, engine.socket(), &request.name, &watched)
                        .map_err(|error| self.failed(format!("no guard: {error}")))?,
                )
            }
            None => None,
        };
        if let Some(file) = request.hidden_file {
            unreadable(&file).map_err(|error| self.failed(error.to_string()))?;
            files.push(file);
        }
        let begun = request
            .entry
            .map(|entry| entry.open(trust.as_deref()))
            .transpose()
            .map_err(|error| self.failed(format!("no entry: {error}")))
            .and_then(|entry| {
                let streams = begin(&engine, &request.name, request.create)
                    .map_err(|error| self.refusal(plan, &error))?;
                if let Some(entry) = entry {
                    let mut attach = |sockets| answering.attach(sockets);
                    entry
                        .meet(&engine, &request.name, plan, &mut attach)
                        .map_err(|error| self.not_begun(error))?;
                }
                Ok(streams)
            });
        let streams = match begun {
            Ok(streams) => streams,
            Err(error) => {
                let removed = engine.remove_container(&request.name);
                for file in &files {
                    let _ = std::fs::remove_file(file);
                }
                if removed.is_ok() {
                    guard.iter_mut().for_each(Guard::dismiss);
                }
                return Err(error);
            }
        };
        let (runtime, client) = engine.into_parts();
        let started = Started {
            runtime,
            client,
            name: request.name,
            streams,
            standard,
            guard,
            files,
            network: answering.guard,
        };
        let run = ContainerRun::new(self.name, started, terminal)
            .map_err(|error| self.failed(error.to_string()))?;
        if let Ok(size) = rustix::termios::tcgetwinsize(launch.standard[0])
            && plan.linux.terminal
        {
            run.resize(size.ws_row, size.ws_col);
        }
        Ok(Box::new(run))
    }
}

impl DockerBackend {
    /// The image must be there: nothing is pulled behind the user's back.
    fn ensure_image(&self, engine: &Engine) -> Result<(), RunError> {
        let images = Images::new(engine);
        let Some(image) = &self.image else {
            let made = images.ensure_empty();
            return made.map_err(|error| self.failed(chain(&error)));
        };
        match images.exists(image) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.failed(format!(
                "there is no image `{image}`; `stockade image from-host --name {image}` makes \
                 one out of this machine's programs, `stockade image build` that of a project"
            ))),
            Err(error) => Err(self.failed(chain(&error))),
        }
    }

    fn failed(&self, reason: impl Into<String>) -> RunError {
        RunError::NotStarted {
            backend: self.name,
            reason: reason.into(),
        }
    }

    fn not_begun(&self, error: NotBegun) -> RunError {
        match error {
            NotBegun::Spawn(error) => error.into(),
            NotBegun::Other(reason) => self.failed(reason),
        }
    }

    /// What the engine said about the command, in the words of the other backends.
    fn refusal(&self, plan: &ExecPlan, error: &EngineError) -> RunError {
        let said = chain(error);
        let argv = plan.linux.command.argv.first();
        let at = |stage, errno: rustix::io::Errno| {
            RunError::Spawn(SpawnError::Stage {
                stage,
                subject: argv.map(|word| PathBuf::from(word.as_os_str())),
                source: errno.into(),
            })
        };
        let about_command = argv.is_some_and(|word| {
            let word = word.as_os_str().to_string_lossy();
            said.contains(&format!("exec: \"{word}\""))
        });
        let missing = said.contains("executable file not found")
            || said.contains("no such file or directory");
        if about_command && missing {
            at(Stage::Find, rustix::io::Errno::NOENT)
        } else if about_command && said.contains("permission denied") {
            at(Stage::Execute, rustix::io::Errno::ACCESS)
        } else {
            self.failed(said)
        }
    }
}

/// What the plan asks the engine for.
struct Request {
    name: String,
    hidden_file: Option<PathBuf>,
    entry: Option<Entry>,
    create: ContainerCreateBody,
}

impl Request {
    fn of(plan: &ExecPlan) -> Option<Self> {
        let Carrier::Engine(request) = &plan.carrier else {
            return None;
        };
        Some(Self {
            name: request["name"].as_str()?.to_owned(),
            hidden_file: request["hidden_file"].as_str().map(PathBuf::from),
            entry: serde_json::from_value(request["entry"].clone()).ok()?,
            create: serde_json::from_value(request["create"].clone()).ok()?,
        })
    }
}

/// Makes, attaches and starts the container.
fn begin(
    engine: &Engine,
    name: &str,
    body: ContainerCreateBody,
) -> Result<bollard::container::AttachContainerResults, EngineError> {
    let client = engine.client();
    engine.block(async {
        engine.make(name, body).await?;
        let options = AttachContainerOptionsBuilder::default()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .stream(true)
            .build();
        let streams = client
            .attach_container(name, Some(options))
            .await
            .map_err(crate::engine::call("attach to the container"))?;
        client
            .start_container(name, None::<StartContainerOptions>)
            .await
            .map_err(crate::engine::call("start the container"))?;
        Ok(streams)
    })
}

/// The limits are the engine's here: control groups for all together.
fn limits_hold(plan: &mut ExecPlan, profile: &Profile) {
    use stockade_policy::profile::Clause;
    let held = profile.limits.memory().is_some() || profile.limits.pids().is_some();
    for report in &mut plan.enforcement {
        if report.clause == Clause::Limits && held {
            let gap = foundation::disk_gap(profile);
            report.enforcement = match gap {
                Some(_) => stockade_engine::Enforcement::Partial,
                None => stockade_engine::Enforcement::Full,
            };
            "the engine's control groups, rlimits, tmpfs size, timer"
                .clone_into(&mut report.mechanism);
            report.gap = gap.map(str::to_owned);
        }
    }
}

/// Copies for the pump; with a terminal, one end of a pair whose other end the launcher relays.
fn standard(
    given: [BorrowedFd<'_>; 3],
    terminal: bool,
) -> io::Result<([OwnedFd; 3], Option<OwnedFd>)> {
    if !terminal {
        let [input, output, errors] = given.map(|fd| fd.try_clone_to_owned());
        return Ok(([input?, output?, errors?], None));
    }
    let (ours, launchers) = std::os::unix::net::UnixStream::pair()?;
    let ours = OwnedFd::from(ours);
    let copies = [ours.try_clone()?, ours.try_clone()?, ours];
    Ok((copies, Some(OwnedFd::from(launchers))))
}

/// Nobody may read it; whoever is put in front of it sees only that.
fn unreadable(path: &Path) -> io::Result<()> {
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o000)
        .open(path)
        .map(|file| drop(file.as_fd().try_clone_to_owned()))
}

/// A number that nobody can know before.
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}
