//! What the flags mean here: the working directory, the home, the files, the merged profile.
//!
//! All that is read before a plan is made is read in this module.

use std::borrow::Cow;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use stockade_engine::{Files, PolicyVariable};
use stockade_policy::host::{HostPattern, Preset};
use stockade_policy::profile::{Flags, Loader, Profile, ProfileError, ProfileName, Sources};
use stockade_policy::{SandboxPolicy, Surroundings};
use stockade_rules::AbsPath;

use crate::args::PolicyArgs;
use crate::exit::Exit;
use crate::failure::Failure;

/// Where the program was started and where the policy is about.
#[derive(Debug)]
pub(crate) struct Place {
    /// Files that Stockade itself reads or writes are relative to this one.
    started_in: AbsPath,
    /// What the policy is about and the command starts in.
    pub(crate) around: Surroundings,
}

impl Place {
    /// Enters the directory that the policy is about. It is entered, not just named: its path is
    /// then the one that the kernel knows, and it stays the same directory if it is renamed.
    pub(crate) fn enter(cwd: Option<&Path>) -> Result<Self, Failure> {
        let started_in = current()?;
        if let Some(dir) = cwd {
            env::set_current_dir(dir).map_err(|error| {
                let error =
                    anyhow::Error::new(error).context(format!("can't enter `{}`", dir.display()));
                Failure::new(Exit::NotSetUp, error).hint("name a directory that exists with --cwd")
            })?;
        }
        let around = Surroundings::from_env(current()?.as_path())
            .map_err(|error| Failure::new(Exit::NotSetUp, error))?;
        Ok(Self { started_in, around })
    }

    /// The same about a directory that is not entered: nothing is started in it.
    #[cfg(target_os = "linux")]
    pub(crate) fn about(dir: &Path) -> Result<Self, Failure> {
        let around =
            Surroundings::from_env(dir).map_err(|error| Failure::new(Exit::NotSetUp, error))?;
        Ok(Self {
            started_in: around.cwd.clone(),
            around,
        })
    }

    /// Closes one more store: the one that a flag names.
    #[cfg(target_os = "linux")]
    pub(crate) fn close_store(&mut self, store: &Path) {
        let whole = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
        if let Ok(store) = AbsPath::new(whole) {
            self.around = self.around.clone().with_store(store);
        }
    }

    /// A file that the user named for Stockade itself.
    pub(crate) fn file(&self, name: &Path) -> Result<AbsPath, Failure> {
        AbsPath::resolve(
            name.as_os_str(),
            &self.started_in,
            self.around.home.as_ref(),
        )
        .map_err(|error| Failure::new(Exit::Usage, error))
    }

    /// A path of the policy: relative to its directory, or to the home.
    pub(crate) fn path(&self, path: &OsStr) -> Result<AbsPath, Failure> {
        AbsPath::resolve(path, &self.around.cwd, self.around.home.as_ref())
            .map_err(|error| Failure::new(Exit::Usage, error))
    }

    /// The merged profile.
    pub(crate) fn profile(&self, args: &PolicyArgs) -> Result<Profile, Failure> {
        let mut profile = self.stated(args)?;
        let revealed = args.reveal.iter().map(|path| self.path(path));
        let revealed = revealed.collect::<Result<Vec<AbsPath>, Failure>>()?;
        profile.reveal(&revealed);
        let this = env::current_exe().ok().map(AbsPath::new);
        if let Some(Ok(this)) = this {
            profile.protect_program(&this);
        }
        Ok(profile)
    }

    fn stated(&self, args: &PolicyArgs) -> Result<Profile, Failure> {
        if let Some(name) = &args.policy_env {
            return self.handed_over(name, args);
        }
        let mut sources = Sources {
            flags: args.flags(),
            ..Files::sources(self.around.clone())
        };
        if let Some(file) = &args.policy {
            sources.policy = Some(self.file(file)?);
        }
        match &args.profile {
            None => {}
            Some(ProfileName::BuiltIn(built_in)) => sources.built_in = Some(*built_in),
            Some(own) => sources.policy = Some(own_profile(own, sources.user.as_ref())?),
        }
        let loader = Clients(Files::new(sources.project.clone()));
        Profile::resolve(&sources, &loader).map_err(refused)
    }

    /// The policy that a program handed over in a variable: exactly that, and no file beside it.
    fn handed_over(&self, name: &OsStr, args: &PolicyArgs) -> Result<Profile, Failure> {
        let is_named = args.policy.is_some() || args.profile.is_some();
        if is_named || args.flags() != Flags::default() {
            let text = "`--policy-env` can't be combined with other flags about the policy";
            return Err(Failure::text(Exit::Usage, text));
        }
        let refuse = |error: anyhow::Error| {
            let what = format!("the policy in the variable `{}`", name.display());
            Failure::new(Exit::NotSetUp, error.context(what))
        };
        let text = env::var_os(name).ok_or_else(|| refuse(anyhow::anyhow!("it is not set")))?;
        let policy = SandboxPolicy::from_json(text.as_encoded_bytes())
            .map_err(|error| refuse(error.into()))?;
        let variable = PolicyVariable::new(name);
        variable
            .profile(&policy, &self.around, env::vars_os())
            .map_err(|error| refuse(error.into()))
    }
}

/// The file system, and what installed clients are set up to use.
struct Clients(Files);

impl Loader for Clients {
    fn read(&self, path: &AbsPath) -> std::io::Result<Vec<u8>> {
        self.0.read(path)
    }

    fn exists(&self, path: &AbsPath) -> bool {
        self.0.exists(path)
    }

    fn hosts_of(&self, preset: Preset) -> Vec<HostPattern> {
        let hosts = stockade_proxy::preset_hosts(preset);
        let patterns = hosts.iter().map(|host| HostPattern::parse(host));
        patterns.filter_map(Result::ok).collect()
    }
}

/// The file of one of the user's own profiles.
fn own_profile(name: &ProfileName, user_file: Option<&AbsPath>) -> Result<AbsPath, Failure> {
    let file = user_file.and_then(|user_file| name.file(user_file));
    file.filter(|file| file.as_path().is_file()).ok_or_else(|| {
        let text = format!("there is no profile `{name}`");
        Failure::text(Exit::NotSetUp, text).hint("`stockade policy list` shows which there are")
    })
}

/// A flag that makes no sense is usage; a file that makes none keeps the sandbox from being set up.
pub(crate) fn refused(error: ProfileError) -> Failure {
    let exit = match error {
        ProfileError::Flag { .. } => Exit::Usage,
        _ => Exit::NotSetUp,
    };
    let hint = error.hint().map(Cow::into_owned);
    let failure = Failure::new(exit, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn current() -> Result<AbsPath, Failure> {
    let refuse = |error: anyhow::Error| {
        Failure::new(
            Exit::NotSetUp,
            error.context("the current directory is not known"),
        )
        .hint("it may have been removed; enter another one, or name one with --cwd")
    };
    let path: PathBuf = env::current_dir().map_err(|error| refuse(error.into()))?;
    AbsPath::new(path).map_err(|error| refuse(error.into()))
}
