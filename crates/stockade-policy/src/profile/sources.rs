//! Finds the layers of a profile and reads them in order.
//!
//! Built-in ← the user's file ← `--policy` ← the project's file ← flags. What a file extends
//! comes right below it. The project's file is the only one that is not trusted.

use std::ffi::OsStr;
use std::io;

use stockade_rules::{AbsPath, Origin};

use crate::host::{HostPattern, Preset};
use crate::model::{SandboxPolicy, Surroundings};

use super::Profile;
use super::build::build;
use super::choice::Base;
use super::diagnostic::SourceText;
use super::error::{LoadError, ProfileError};
use super::file::{Extends, FileLayer, MAX_FILE_BYTES, read_layer};
use super::flags::Flags;
use super::from_policy::{json_layer, policy_layer};
use super::layer::{BuiltIn, Layer};
use super::merge::Merged;
use super::place::Place;
use super::repository::own_repository;
use super::sourced::{BUILT_IN, Sourced};

/// Looks at the file system for the profile, which never does.
pub trait Loader {
    /// The bytes of a file. More than [`MAX_FILE_BYTES`] need not be read: one more is enough to
    /// see that the file is too large.
    ///
    /// # Errors
    /// If the file can't be read.
    fn read(&self, path: &AbsPath) -> io::Result<Vec<u8>>;

    /// Whether something exists under this very name.
    fn exists(&self, path: &AbsPath) -> bool;

    /// The hosts that a preset means on this machine; none where nothing says so.
    fn hosts_of(&self, _preset: Preset) -> Vec<HostPattern> {
        Vec::new()
    }
}

/// Where the layers of a profile come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// The working directory and home.
    pub around: Surroundings,
    /// The user's own file; skipped if it does not exist. See [`user_file`].
    pub user: Option<AbsPath>,
    /// A profile that ships with Stockade, named by `--profile`.
    pub built_in: Option<BuiltIn>,
    /// The file of `--policy` or `--profile`: a profile in TOML or a policy in JSON.
    pub policy: Option<AbsPath>,
    /// The project's file; skipped if it does not exist. It can only narrow.
    pub project: Option<AbsPath>,
    /// What was typed.
    pub flags: Flags,
}

/// How many files may extend one another.
const MAX_DEPTH: usize = 8;

/// Where the user's own file is: `stockade/config.toml` below `XDG_CONFIG_HOME` or `~/.config`.
pub fn user_file(home: Option<&AbsPath>, xdg_config_home: Option<&OsStr>) -> Option<AbsPath> {
    // The XDG specification says that a relative value is to be ignored.
    let stated = xdg_config_home.and_then(|path| AbsPath::new(path).ok());
    let config = stated.or_else(|| home?.join(".config").ok())?;
    config.join("stockade/config.toml").ok()
}

/// The name of a project's file, at the top of the project.
pub const PROJECT_FILE: &str = "stockade.toml";

impl Sources {
    /// Only flags and built-ins.
    pub fn new(around: Surroundings) -> Self {
        Self {
            around,
            user: None,
            built_in: None,
            policy: None,
            project: None,
            flags: Flags::default(),
        }
    }
}

impl Profile {
    /// Reads every layer and merges them.
    ///
    /// # Errors
    /// If a file can't be read, a project's file grants something, or settings contradict.
    pub fn resolve(sources: &Sources, loader: &dyn Loader) -> Result<Self, ProfileError> {
        let stack = Stack {
            around: &sources.around,
            loader,
        };
        let mut merged = Merged::default();
        merged.add(BuiltIn::WorkspaceWrite.layer(&BUILT_IN))?;
        if let Some(path) = &sources.user
            && let Some(bytes) = stack.read_if_there(path)?
        {
            stack.add_file(path, &bytes, &mut vec![path.clone()], &mut merged)?;
        }
        if let Some(built_in) = sources.built_in {
            merged.add(built_in.layer(&Origin::flag("--profile")))?;
        }
        if let Some(path) = &sources.policy {
            let bytes = stack.read(path)?;
            merged.files.push(path.clone());
            if bytes.trim_ascii_start().starts_with(b"{") {
                merged.add(json_layer(path, &bytes, &sources.around)?)?;
            } else {
                stack.add_file(path, &bytes, &mut vec![path.clone()], &mut merged)?;
            }
        }
        if let Some(path) = &sources.project
            && let Some(bytes) = stack.read_if_there(path)?
        {
            stack.add_project(path, &bytes, &mut merged)?;
        }
        let flags = sources.flags.layer(&stack.place(&sources.around.cwd))?;
        merged.add(stack.with_presets(flags)?)?;
        merged.files.extend(sources.user.clone());
        merged.files.extend(sources.project.clone());
        let around = &sources.around;
        let repository = own_repository(&around.cwd, around.home.as_ref(), loader);
        build(merged, around, repository)
    }

    /// The profile that a policy alone makes.
    ///
    /// # Errors
    /// If the policy names what can't be a path or a host.
    pub fn from_policy(
        policy: &SandboxPolicy,
        around: &Surroundings,
    ) -> Result<Self, ProfileError> {
        build(policy_alone(policy, around)?, around, None)
    }

    /// The profile that a policy makes with flags on top; no file is read.
    ///
    /// # Errors
    /// As [`Profile::from_policy`], and if flags contradict the policy.
    pub fn from_policy_and_flags(
        policy: &SandboxPolicy,
        flags: &Flags,
        around: &Surroundings,
        loader: &dyn Loader,
    ) -> Result<Self, ProfileError> {
        let mut merged = policy_alone(policy, around)?;
        let stack = Stack { around, loader };
        let flags = flags.layer(&stack.place(&around.cwd))?;
        merged.add(stack.with_presets(flags)?)?;
        build(merged, around, None)
    }
}

fn policy_alone(policy: &SandboxPolicy, around: &Surroundings) -> Result<Merged, ProfileError> {
    let mut merged = Merged::default();
    let origin = |key: &str| Origin::flag(format!("policy {key}"));
    merged.add(policy_layer(policy, around, &origin)?)?;
    Ok(merged)
}

/// Reads a file as `stockade policy check` does: alone, as if it were the user's.
///
/// # Errors
/// If it, or a file that it extends, can't be read or is malformed.
pub fn check_file(
    path: &AbsPath,
    around: &Surroundings,
    loader: &dyn Loader,
) -> Result<(), ProfileError> {
    let sources = Sources {
        policy: Some(path.clone()),
        ..Sources::new(around.clone())
    };
    Profile::resolve(&sources, loader).map(drop)
}

struct Stack<'a> {
    around: &'a Surroundings,
    loader: &'a dyn Loader,
}

impl Stack<'_> {
    /// Lays a file and what it extends on top, the file last.
    ///
    /// Relative paths in it are about the working directory: a profile is written once and used
    /// for many projects.
    fn add_file(
        &self,
        path: &AbsPath,
        bytes: &[u8],
        chain: &mut Vec<AbsPath>,
        merged: &mut Merged,
    ) -> Result<(), ProfileError> {
        let text = SourceText::new(path, utf8(path, bytes)?);
        let file = read_layer(&text, &self.place(&self.around.cwd), None)?;
        match file.extends {
            None => {}
            Some(Extends::BuiltIn(built_in, origin)) => merged.add(built_in.layer(&origin))?,
            Some(Extends::File(name, span)) => {
                let fail = |message: String, hint: Option<String>| {
                    let at = text.diagnostic(span.clone(), &message, hint);
                    LoadError::Extends(Box::new(at))
                };
                let directory = path.parent().unwrap_or_else(AbsPath::root);
                let below = self
                    .place(&directory)
                    .path(name.as_ref())
                    .map_err(|error| fail(error.to_string(), None))?;
                if chain.contains(&below) {
                    return Err(fail(format!("{below} extends itself"), None).into());
                }
                if chain.len() >= MAX_DEPTH {
                    let message = format!("more than {MAX_DEPTH} files extend one another");
                    return Err(fail(message, None).into());
                }
                let bytes = self.read(&below).map_err(|error| match error {
                    LoadError::Read { path, source } => fail(
                        format!("can't read profile {path}: {source}"),
                        Some(
                            /*hint*/
                            "the path is relative to the file that extends".to_owned(),
                        ),
                    ),
                    other => other,
                })?;
                chain.push(below.clone());
                merged.files.push(below.clone());
                self.add_file(&below, &bytes, chain, merged)?;
            }
        }
        merged.add(self.with_presets(file.layer)?)
    }

    /// The layer with the hosts of its presets.
    fn with_presets(&self, mut layer: Layer) -> Result<Layer, ProfileError> {
        for preset in std::mem::take(&mut layer.network.presets) {
            let hosts = self.loader.hosts_of(preset.value);
            if hosts.is_empty() {
                return Err(ProfileError::Preset {
                    preset: preset.value,
                    origin: preset.origin,
                });
            }
            let origin = &preset.origin;
            let hosts = hosts.into_iter();
            let hosts = hosts.map(|host| Sourced::new(host, origin.clone()));
            layer.network.allow.extend(hosts);
        }
        Ok(layer)
    }

    /// Lays a project's file on top, which may only narrow.
    ///
    /// Relative paths in it are about the directory it stands in.
    fn add_project(
        &self,
        path: &AbsPath,
        bytes: &[u8],
        merged: &mut Merged,
    ) -> Result<(), ProfileError> {
        let text = SourceText::new(path, utf8(path, bytes)?);
        let directory = path.parent().unwrap_or_else(AbsPath::root);
        let FileLayer { layer, extends } =
            read_layer(&text, &self.place(&directory), Some(merged))?;
        if let Some(Extends::BuiltIn(built_in, origin)) = extends {
            let mut below = built_in.layer(&origin);
            // `read-only` is no word about the base; only `minimal` is.
            below.implied_base.take_if(|base| base.value == Base::Host);
            // Choosing anew what is chosen already would forget what was narrowed since.
            below
                .base_policy
                .take_if(|policy| policy.value >= merged.base_policy.value);
            merged.add(below)?;
        }
        merged.add(layer)
    }

    fn place<'p>(&'p self, base: &'p AbsPath) -> Place<'p> {
        Place {
            base,
            home: self.around.home.as_ref(),
            loader: self.loader,
        }
    }

    fn read(&self, path: &AbsPath) -> Result<Vec<u8>, LoadError> {
        let bytes = self.loader.read(path).map_err(|source| LoadError::Read {
            path: path.clone(),
            source,
        })?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(LoadError::TooLarge { path: path.clone() });
        }
        Ok(bytes)
    }

    fn read_if_there(&self, path: &AbsPath) -> Result<Option<Vec<u8>>, LoadError> {
        match self.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(LoadError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn utf8<'a>(path: &AbsPath, bytes: &'a [u8]) -> Result<&'a str, LoadError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let lines = before.split(|byte| *byte == b'\n');
        let (line, start) = lines.fold((0, &[][..]), |(line, _), start| (line + 1, start));
        LoadError::Encoding {
            path: path.clone(),
            line,
            column: start.len() + 1,
        }
    })
}
