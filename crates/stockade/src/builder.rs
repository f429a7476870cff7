//! Describing a sandbox.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stockade_engine::Files;
use stockade_engine::backend::Backends;
use stockade_engine::network::NetworkService;
use stockade_policy::host::HostPattern;
use stockade_policy::profile::{
    Backend, BasePolicy, Clause, Flags, HomeMode, Level, NetworkMode, Profile, Sources,
};
use stockade_policy::{AbsPath, SandboxPolicy, Surroundings};

use crate::error::Error;
use crate::helper;
use crate::sandbox::{Parts, Sandbox};

/// Describes a sandbox; [`Sandbox::builder`] begins one.
///
/// Paths may be relative to the workspace or begin with `~/`, and may be globs where the command
/// line takes globs. What is wrong with a value is reported by [`SandboxBuilder::build`].
#[derive(Default)]
pub struct SandboxBuilder {
    workspace: Option<PathBuf>,
    base: BaseProfile,
    flags: Flags,
    helper: Option<PathBuf>,
    backends: Option<Backends>,
    network: Option<Arc<dyn NetworkService>>,
    #[cfg(feature = "overlay")]
    overlay: Option<crate::overlay::OverlaySettings>,
    first_error: Option<Error>,
}

/// What the grants of a builder are added to.
#[derive(Debug, Default)]
enum BaseProfile {
    /// The built-in profile, and nothing of the user or the project.
    #[default]
    BuiltIn,
    /// The user's file, the project's file and this file, as the command line reads them.
    Files(Option<PathBuf>),
    Policy(SandboxPolicy),
    Finished(Box<Profile>),
}

impl SandboxBuilder {
    /// The directory that the policy is about and that commands start in; the current directory
    /// unless this is called. It is writable, unless [`SandboxBuilder::read_only`] is called.
    pub fn workspace(&mut self, directory: impl Into<PathBuf>) -> &mut Self {
        self.workspace = Some(directory.into());
        self
    }

    /// Begins with a policy document instead of the built-in profile.
    pub fn policy(&mut self, policy: SandboxPolicy) -> &mut Self {
        self.base = BaseProfile::Policy(policy);
        self
    }

    /// Begins with the user's `config.toml` and the workspace's `stockade.toml`, as the command
    /// line does.
    pub fn user_files(&mut self) -> &mut Self {
        self.base = BaseProfile::Files(None);
        self
    }

    /// Begins with this profile (TOML) or policy (JSON), on top of the user's files.
    pub fn profile_file(&mut self, file: impl Into<PathBuf>) -> &mut Self {
        self.base = BaseProfile::Files(Some(file.into()));
        self
    }

    /// Enforces exactly this profile; grants and limits can't be added to it.
    pub fn profile(&mut self, profile: Profile) -> &mut Self {
        self.base = BaseProfile::Finished(Box::new(profile));
        self
    }

    /// Makes nothing writable but what [`SandboxBuilder::write`] names.
    pub fn read_only(&mut self) -> &mut Self {
        self.flags.base_policy = Some(BasePolicy::ReadOnly);
        self
    }

    /// Makes a path readable that is hidden otherwise.
    pub fn read(&mut self, path: impl Into<OsString>) -> &mut Self {
        self.flags.read.push(path.into());
        self
    }

    /// Makes a path writable.
    pub fn write(&mut self, path: impl Into<OsString>) -> &mut Self {
        self.flags.write.push(path.into());
        self
    }

    /// Hides a path: it can be neither read nor written.
    pub fn deny(&mut self, path: impl Into<OsString>) -> &mut Self {
        self.flags.deny.push(path.into());
        self
    }

    /// Makes a path read-only.
    pub fn deny_write(&mut self, path: impl Into<OsString>) -> &mut Self {
        self.flags.deny_write.push(path.into());
        self
    }

    /// Chooses what becomes of writes to the home directory; by default a private layer takes them
    /// and is dropped at the end.
    pub fn home(&mut self, mode: HomeMode) -> &mut Self {
        self.flags.home = Some(mode);
        self
    }

    /// Allows connections to a host, `HOST` or `HOST:PORT`; every other host is refused. Without a
    /// port 443 and 80.
    pub fn allow(&mut self, host: impl AsRef<str>) -> &mut Self {
        let pattern = self.host(host.as_ref(), HostPattern::parse);
        self.flags.allow.extend(pattern);
        self
    }

    /// Refuses connections to a host that would be allowed otherwise.
    pub fn block(&mut self, host: impl AsRef<str>) -> &mut Self {
        let pattern = self.host(host.as_ref(), HostPattern::parse_block);
        self.flags.block.extend(pattern);
        self
    }

    /// Gives a name an address, `NAME=ADDRESS`, even a private one; the name has to be allowed too.
    pub fn resolve(&mut self, pin: impl AsRef<str>) -> &mut Self {
        let text = pin.as_ref();
        match text.parse() {
            Ok(pin) => self.flags.resolve.push(pin),
            Err(source) => self.refuse(Error::Pin {
                text: text.to_owned(),
                source,
            }),
        }
        self
    }

    /// Cuts the network, or leaves it unfiltered. [`SandboxBuilder::allow`] needs no mode.
    pub fn network(&mut self, mode: NetworkMode) -> &mut Self {
        self.flags.net = Some(mode);
        self
    }

    /// Sets a variable for every command.
    pub fn env(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> &mut Self {
        let mut pair = name.into();
        pair.push("=");
        pair.push(value.into());
        self.flags.env.push(pair);
        self
    }

    /// Hands a variable of the caller on, though it is not on the allowlist.
    pub fn keep_env(&mut self, name: impl Into<OsString>) -> &mut Self {
        self.flags.keep_env.push(name.into());
        self
    }

    /// Sets a limit in the words of the command line: `mem=512M`, `pids=64`, `cpu=60s`,
    /// `fsize=1G`, `tmp=64M`, `disk=1G`, `output=1M`.
    pub fn limit(&mut self, limit: impl AsRef<str>) -> &mut Self {
        let text = limit.as_ref();
        match text.parse() {
            Ok(limit) => self.flags.limit.push(limit),
            Err(source) => self.refuse(Error::Limit {
                text: text.to_owned(),
                source,
            }),
        }
        self
    }

    /// Kills a command, with everything it started, when it takes longer.
    pub fn timeout(&mut self, limit: Duration) -> &mut Self {
        self.flags.timeout = Some(limit);
        self
    }

    /// How strong the isolation must be.
    pub fn level(&mut self, level: Level) -> &mut Self {
        self.flags.level = Some(level);
        self
    }

    /// What must build the sandbox.
    pub fn backend(&mut self, backend: Backend) -> &mut Self {
        self.flags.backend = Some(backend);
        self
    }

    /// Refuses to start a command unless this clause holds in full.
    pub fn require(&mut self, clause: Clause) -> &mut Self {
        self.flags.require.push(clause);
        self
    }

    /// Accepts a policy that can't be enforced in full; the report names the gaps.
    pub fn best_effort(&mut self) -> &mut Self {
        self.flags.best_effort = true;
        self
    }

    /// Changes any other setting that the command line has a flag for.
    pub fn flags(&mut self, change: impl FnOnce(&mut Flags)) -> &mut Self {
        change(&mut self.flags);
        self
    }

    /// Collects changes in an overlay instead of the workspace, until [`Sandbox::commit`] applies
    /// or [`Sandbox::discard`] drops them.
    #[cfg(feature = "overlay")]
    pub fn overlay(&mut self) -> &mut Self {
        self.overlay.get_or_insert_default();
        self
    }

    /// The same with this store, instead of the user's own.
    #[cfg(feature = "overlay")]
    pub fn overlay_in(&mut self, store: impl Into<PathBuf>) -> &mut Self {
        self.overlay.get_or_insert_default().store = Some(store.into());
        self
    }

    /// The same with the overlay of this name, instead of the workspace's own.
    #[cfg(feature = "overlay")]
    pub fn overlay_named(&mut self, name: &crate::overlay::WorkspaceName) -> &mut Self {
        self.overlay.get_or_insert_default().name = Some(name.clone());
        self
    }

    /// The absolute path of the program that builds sandboxes, `stockade-init` or `stockade`.
    /// Needed only by programs that do not call [`init`](crate::init).
    pub fn helper(&mut self, program: impl Into<PathBuf>) -> &mut Self {
        self.helper = Some(program.into());
        self
    }

    /// What can build the sandbox, instead of everything this build has.
    pub fn backends(&mut self, backends: Backends) -> &mut Self {
        self.backends = Some(backends);
        self
    }

    /// Who answers in the sandbox's network, instead of the built-in proxy.
    pub fn network_service(&mut self, service: Arc<dyn NetworkService>) -> &mut Self {
        self.network = Some(service);
        self
    }

    /// The sandbox. Whether this machine can enforce it is seen when a command starts.
    ///
    /// # Errors
    /// If a value is wrong, values contradict one another, or there is no helper.
    pub fn build(&mut self) -> Result<Sandbox, Error> {
        if let Some(error) = self.first_error.take() {
            return Err(error);
        }
        let helper = helper::find(self.helper.clone())?;
        let workspace = self.directory()?;
        let around = self.surroundings(&workspace)?;
        let mut profile = self.merge(&around)?;
        // A helper that the command could replace would run what the command put there, outside.
        if let Some(Ok(real)) = helper.canonicalize().ok().map(AbsPath::new) {
            profile.protect_program(&real);
        }
        let network = match &self.network {
            None => network_service(),
            given => given.clone(),
        };
        Ok(Sandbox {
            parts: Arc::new(Parts {
                #[cfg(feature = "overlay")]
                overlay: self
                    .overlay
                    .as_ref()
                    .map(|overlay| overlay.place(&profile, &around)),
                profile,
                backends: self.backends.clone().unwrap_or_else(|| backends(&helper)),
                helper,
                network,
            }),
        })
    }

    fn merge(&self, around: &Surroundings) -> Result<Profile, Error> {
        let sources = Sources::new(around.clone());
        let sources = match &self.base {
            BaseProfile::Finished(_) if self.flags != Flags::default() => {
                return Err(Error::FinishedProfile);
            }
            BaseProfile::Finished(profile) => return Ok(Profile::clone(profile)),
            BaseProfile::Policy(policy) => {
                let files = Files::default();
                let (flags, policy) = (&self.flags, policy);
                return Ok(Profile::from_policy_and_flags(
                    policy, flags, around, &files,
                )?);
            }
            BaseProfile::BuiltIn => sources,
            BaseProfile::Files(file) => Sources {
                policy: file.as_deref().map(absolute).transpose()?,
                ..Files::sources(around.clone())
            },
        };
        Ok(Files::load(&Sources {
            flags: self.flags.clone(),
            ..sources
        })?)
    }

    fn directory(&self) -> Result<AbsPath, Error> {
        if let (BaseProfile::Finished(profile), None) = (&self.base, &self.workspace) {
            return Ok(profile.cwd.clone());
        }
        absolute(self.workspace.as_deref().unwrap_or(Path::new("")))
    }

    #[cfg_attr(
        not(feature = "overlay"),
        expect(clippy::unused_self, reason = "only an overlay has a store")
    )]
    fn surroundings(&self, workspace: &AbsPath) -> Result<Surroundings, Error> {
        let path = workspace.as_path();
        let around = Surroundings::from_env(path).map_err(|source| unusable(path, source))?;
        #[cfg(feature = "overlay")]
        if let Some(store) = self.overlay.as_ref().and_then(|own| own.store.as_deref()) {
            return Ok(around.with_store(absolute(store)?));
        }
        Ok(around)
    }

    fn host(
        &mut self,
        text: &str,
        parse: impl Fn(&str) -> Result<HostPattern, stockade_policy::host::HostPatternError>,
    ) -> Option<HostPattern> {
        let parsed = parse(text).map_err(|source| Error::Host {
            text: text.to_owned(),
            source,
        });
        parsed.map_err(|error| self.refuse(error)).ok()
    }

    fn refuse(&mut self, error: Error) {
        self.first_error.get_or_insert(error);
    }
}

impl fmt::Debug for SandboxBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxBuilder")
            .field("workspace", &self.workspace)
            .field("base", &self.base)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

/// A path as it is from the current directory.
fn absolute(path: &Path) -> Result<AbsPath, Error> {
    let here = || std::env::current_dir().map_err(Error::CurrentDirectory);
    let whole = if path.is_absolute() {
        path.to_owned()
    } else {
        here()?.join(path)
    };
    AbsPath::new(&whole).map_err(|source| unusable(&whole, source))
}

fn unusable(path: &Path, source: stockade_policy::PathError) -> Error {
    Error::Workspace {
        path: path.to_owned(),
        source,
    }
}

/// Filters by name where the policy lists hosts.
#[cfg(feature = "network")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "without the feature there is none"
)]
fn network_service() -> Option<Arc<dyn NetworkService>> {
    Some(Arc::new(stockade_proxy::SandboxProxy::default()))
}

#[cfg(not(feature = "network"))]
fn network_service() -> Option<Arc<dyn NetworkService>> {
    None
}

/// Everything that can build a sandbox in this build.
#[cfg(feature = "container")]
fn backends(helper: &Path) -> Backends {
    use stockade_container::DockerBackend;
    let engines = [DockerBackend::docker(), DockerBackend::gvisor()];
    let engines = engines.map(|engine| engine.with_guard(helper).with_helper(helper));
    engines
        .into_iter()
        .fold(Backends::built_in(), Backends::with)
}

#[cfg(not(feature = "container"))]
fn backends(_: &Path) -> Backends {
    Backends::built_in()
}
