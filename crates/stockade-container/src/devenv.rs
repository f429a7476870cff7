//! Images built once for a project, and known again by what they are made of.
//!
//! The key is the project's real path, the Dockerfile, every file of the build context that
//! `.dockerignore` leaves in, the images it starts from, and the build arguments: if any of them
//! changes the image is stale. The index lives outside the project, since what runs inside must
//! not decide which image is trusted. One build at a time for each key, across processes.

mod context;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bollard::query_parameters::BuildImageOptionsBuilder;
use bytes::Bytes;
use futures_util::StreamExt;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use self::context::{DOCKERFILE, archive, bases, context, digest_file};
use crate::engine::{Engine, EngineError, call};
use crate::image::Images;

/// An image in the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CachedImage {
    /// Its name and tag.
    pub tag: String,
    /// The digest of what it was made of.
    pub content_hash: String,
    /// When it was built, in seconds since 1970.
    pub built_at: u64,
    /// Whether it was declared stale.
    pub stale: bool,
}

/// What a session needs to know to put a new container in place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SwapRequest {
    /// The image of the new container.
    pub image_tag: String,
    /// What it was built from.
    pub dockerfile: PathBuf,
    /// The project.
    pub workspace: PathBuf,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevEnvError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A file could not be read or written.
    #[error("can't {act} `{}`", .path.display())]
    File {
        /// What was tried.
        act: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A step of the build failed.
    #[error("the build failed: {0}")]
    Build(String),
}

/// What is told while an image is built.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(&str);

/// Is told every line of a build.
pub type Teller<'a> = Box<dyn FnMut(&str) + 'a>;

/// The images of one project.
pub struct DevEnvManager<'a> {
    engine: &'a Engine,
    project: PathBuf,
    state: PathBuf,
    arguments: Vec<(String, String)>,
    /// Called after a forced rebuild, outside every lock.
    pub on_swap_needed: Option<Box<dyn FnMut(SwapRequest) + 'a>>,
    /// Called with every line of a build.
    pub on_progress: Option<Teller<'a>>,
}

type Index = BTreeMap<String, CachedImage>;

/// Its file in the directory of the state.
const INDEX: &str = "images.json";

impl std::fmt::Debug for DevEnvManager<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DevEnvManager")
            .field("project", &self.project)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl<'a> DevEnvManager<'a> {
    /// The images of `project`, with an index in the directory `state`.
    ///
    /// # Errors
    /// If the project is not there.
    pub fn new(
        engine: &'a Engine,
        project: &Path,
        state: impl Into<PathBuf>,
    ) -> Result<Self, DevEnvError> {
        let told = |source| DevEnvError::File {
            act: "find the project",
            path: project.to_owned(),
            source,
        };
        let opened = File::open(project).map_err(told)?;
        Ok(Self {
            engine,
            project: real_path(&opened).map_err(told)?,
            state: state.into(),
            arguments: Vec::new(),
            on_swap_needed: None,
            on_progress: None,
        })
    }

    /// The same with build arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: Vec<(String, String)>) -> Self {
        self.arguments = arguments;
        self.arguments.sort();
        self
    }

    /// The image of a Dockerfile: the one that is there if nothing changed, or a new one.
    ///
    /// # Errors
    /// If it can't be read or built.
    pub fn get_or_build(&mut self, dockerfile: &Path) -> Result<String, DevEnvError> {
        let _one_at_a_time = self.lock(&self.key(dockerfile))?;
        let content = self.digest(dockerfile)?;
        if let Some(cached) = self.cached(dockerfile)?
            && !cached.stale
            && cached.content_hash == content
            && Images::new(self.engine).exists(&cached.tag)?
        {
            return Ok(cached.tag);
        }
        self.build(dockerfile, &content)
    }

    /// Whether the next call of [`DevEnvManager::get_or_build`] would build.
    ///
    /// # Errors
    /// If the Dockerfile or its context can't be read.
    pub fn is_stale(&self, dockerfile: &Path) -> Result<bool, DevEnvError> {
        let Some(cached) = self.cached(dockerfile)? else {
            return Ok(true);
        };
        Ok(cached.stale
            || cached.content_hash != self.digest(dockerfile)?
            || !Images::new(self.engine).exists(&cached.tag)?)
    }

    /// Declares the image of a Dockerfile stale.
    ///
    /// # Errors
    /// If the index can't be written.
    pub fn invalidate(&self, dockerfile: &Path) -> Result<(), DevEnvError> {
        let key = self.key(dockerfile);
        self.change_index(|index| {
            if let Some(cached) = index.get_mut(&key) {
                cached.stale = true;
            }
        })
    }

    /// Builds anew whatever is there, and asks for a swap.
    ///
    /// # Errors
    /// If it can't be built; then no swap is asked for.
    pub fn rebuild_and_force_swap(&mut self, dockerfile: &Path) -> Result<String, DevEnvError> {
        let tag = {
            let _one_at_a_time = self.lock(&self.key(dockerfile))?;
            let content = self.digest(dockerfile)?;
            self.build(dockerfile, &content)?
        };
        if let Some(swap) = &mut self.on_swap_needed {
            swap(SwapRequest {
                image_tag: tag.clone(),
                dockerfile: dockerfile.to_owned(),
                workspace: self.project.clone(),
            });
        }
        Ok(tag)
    }

    /// The images in the index, by key.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn index(&self) -> Result<BTreeMap<String, CachedImage>, DevEnvError> {
        self.read_index()
    }

    /// Forgets the images of every project that the engine does not have any more.
    ///
    /// # Errors
    /// If the index can't be read or written, or the engine can't be asked.
    pub fn forget_missing(engine: &'a Engine, state: &Path) -> Result<usize, DevEnvError> {
        if !state.join(INDEX).exists() {
            return Ok(0);
        }
        let manager = Self {
            engine,
            project: PathBuf::new(),
            state: state.to_owned(),
            arguments: Vec::new(),
            on_swap_needed: None,
            on_progress: None,
        };
        let images = Images::new(engine);
        let mut missing = Vec::new();
        for (key, cached) in manager.read_index()? {
            if !images.exists(&cached.tag)? {
                missing.push((key, cached));
            }
        }
        let mut forgotten = 0;
        manager.change_index(|index| {
            for (key, cached) in missing {
                // Unless it was built anew meanwhile.
                if index.get(&key) == Some(&cached) {
                    index.remove(&key);
                    forgotten += 1;
                }
            }
        })?;
        Ok(forgotten)
    }

    /// Which image of the project is meant: an image for each Dockerfile and set of arguments.
    fn key(&self, dockerfile: &Path) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.project.as_os_str().as_encoded_bytes());
        hasher.update(&[0]);
        hasher.update(dockerfile.as_os_str().as_encoded_bytes());
        for (name, value) in &self.arguments {
            hasher.update(format!("\0{name}={value}").as_bytes());
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }

    fn cached(&self, dockerfile: &Path) -> Result<Option<CachedImage>, DevEnvError> {
        Ok(self.read_index()?.remove(&self.key(dockerfile)))
    }

    /// What the image is made of.
    fn digest(&self, dockerfile: &Path) -> Result<String, DevEnvError> {
        let text = read_text(dockerfile)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(text.as_bytes());
        for base in bases(&text) {
            let id = match base.as_str() {
                "scratch" => None,
                name => Images::new(self.engine).id(name)?,
            };
            hasher.update(format!("\0{base}={}", id.unwrap_or_default()).as_bytes());
        }
        for (name, value) in &self.arguments {
            hasher.update(format!("\0{name}={value}").as_bytes());
        }
        for file in context(&self.project)? {
            digest_file(&self.project, &file, &mut hasher)?;
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    fn build(&mut self, dockerfile: &Path, content: &str) -> Result<String, DevEnvError> {
        let key = self.key(dockerfile);
        let tag = format!("stockade/devenv-{key}:{}", &content[..12]);
        let text = read_text(dockerfile)?;
        let mut silent = |_: &str| {};
        let progress: Progress<'_> = match &mut self.on_progress {
            Some(tell) => tell.as_mut(),
            None => &mut silent,
        };
        build(
            self.engine,
            &self.project,
            &text,
            &tag,
            &self.arguments,
            progress,
        )?;
        let built_at = SystemTime::now().duration_since(UNIX_EPOCH);
        let cached = CachedImage {
            tag: tag.clone(),
            content_hash: content.to_owned(),
            built_at: built_at.map_or(0, |time| time.as_secs()),
            stale: false,
        };
        self.change_index(|index| {
            index.insert(key, cached);
        })?;
        Ok(tag)
    }

    fn index_file(&self) -> PathBuf {
        self.state.join(INDEX)
    }

    fn read_index(&self) -> Result<Index, DevEnvError> {
        let path = self.index_file();
        match fs::read(&path) {
            // An index that makes no sense costs a build, no more.
            Ok(text) => Ok(serde_json::from_slice(&text).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Index::new()),
            Err(source) => Err(DevEnvError::File {
                act: "read",
                path,
                source,
            }),
        }
    }

    fn change_index(&self, change: impl FnOnce(&mut Index)) -> Result<(), DevEnvError> {
        let _alone = self.lock("index")?;
        let mut index = self.read_index()?;
        change(&mut index);
        let path = self.index_file();
        let new = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(&serde_json::to_vec_pretty(&index)?)?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(|source| DevEnvError::File {
            act: "write",
            path: path.clone(),
            source,
        })
    }

    /// Held until it is dropped.
    fn lock(&self, name: &str) -> Result<File, DevEnvError> {
        let path = self.state.join(format!("{name}.lock"));
        let take = || -> io::Result<File> {
            fs::create_dir_all(&self.state)?;
            fs::set_permissions(&self.state, fs::Permissions::from_mode(0o700))?;
            let file = File::options().create(true).append(true).open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        take().map_err(|source| DevEnvError::File {
            act: "lock",
            path: path.clone(),
            source,
        })
    }
}

/// The path of an open directory, as the kernel knows it.
fn real_path(directory: &File) -> io::Result<PathBuf> {
    use std::os::fd::AsRawFd;
    fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

fn read_text(path: &Path) -> Result<String, DevEnvError> {
    fs::read_to_string(path).map_err(|source| DevEnvError::File {
        act: "read",
        path: path.to_owned(),
        source,
    })
}

/// Builds an image from the text of a Dockerfile with a project as context.
pub(crate) fn build(
    engine: &Engine,
    project: &Path,
    dockerfile: &str,
    tag: &str,
    arguments: &[(String, String)],
    progress: Progress<'_>,
) -> Result<(), DevEnvError> {
    let archive = archive(project, dockerfile)?;
    let arguments: HashMap<String, String> = arguments.iter().cloned().collect();
    let options = BuildImageOptionsBuilder::default()
        .dockerfile(DOCKERFILE)
        .t(tag)
        .rm(true)
        .forcerm(true)
        .buildargs(&arguments)
        .build();
    let client = engine.client();
    engine.block(async {
        let body = bollard::body_full(Bytes::from(archive));
        let mut steps = Box::pin(client.build_image(options, None, Some(body)));
        while let Some(step) = steps.next().await {
            match step {
                Ok(step) => {
                    if let Some(error) = step.error_detail {
                        return Err(DevEnvError::Build(error.message.unwrap_or_default()));
                    }
                    if let Some(line) = step.stream.as_deref().map(str::trim_end)
                        && !line.is_empty()
                    {
                        progress(line);
                    }
                }
                Err(bollard::errors::Error::DockerStreamError { error }) => {
                    return Err(DevEnvError::Build(error));
                }
                Err(error) => return Err(call("build the image")(error).into()),
            }
        }
        Ok(())
    })
}
