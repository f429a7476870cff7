//! Images with no registry: from a directory, an archive, or the host's own programs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use bollard::query_parameters::{
    CreateImageOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptionsBuilder,
};
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Serialize;

use crate::engine::{Engine, EngineError, call, is_gone};

/// An image with nothing in it, for containers that show the host's own files.
pub(crate) const EMPTY_IMAGE: &str = "stockade/empty:1";

/// Images of ours carry this repository's name in front.
pub(crate) const REPOSITORY: &str = "stockade/";

/// The images of an engine, as far as they are ours.
#[derive(Debug)]
pub struct Images<'a> {
    engine: &'a Engine,
}

/// An image of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImageInfo {
    /// Its name and tag.
    pub name: String,
    /// Its content.
    pub id: String,
    /// Its size in bytes.
    pub size: u64,
    /// When it was made, in seconds since 1970.
    pub created: i64,
}

/// Programs that a person expects in the smallest system.
const PROGRAMS: &[&str] = &[
    "sh", "bash", "cat", "chmod", "cp", "cut", "date", "dirname", "basename", "echo", "env",
    "expr", "false", "find", "grep", "head", "id", "ln", "ls", "mkdir", "mktemp", "mv", "printf",
    "pwd", "readlink", "realpath", "rm", "rmdir", "sed", "seq", "sleep", "sort", "stat", "tail",
    "tar", "tee", "test", "touch", "tr", "true", "uname", "uniq", "wc", "which", "xargs",
];

impl<'a> Images<'a> {
    /// The images of this engine.
    pub fn new(engine: &'a Engine) -> Self {
        Self { engine }
    }

    /// Makes an image out of an archive of a whole file system.
    ///
    /// # Errors
    /// If it can't be read, or the engine does not take it.
    pub fn from_tar(&self, archive: &mut dyn Read, name: &str) -> Result<String, EngineError> {
        let mut bytes = Vec::new();
        archive
            .read_to_end(&mut bytes)
            .map_err(EngineError::Runtime)?;
        self.import(Bytes::from(bytes), name)
    }

    /// Makes an image out of a directory that is a whole file system.
    ///
    /// # Errors
    /// If it can't be read, or the engine does not take it.
    pub fn from_directory(&self, root: &Path, name: &str) -> Result<String, EngineError> {
        let mut archive = new_archive(Links::Keep);
        archive
            .append_dir_all(".", root)
            .and_then(|()| archive.into_inner())
            .map_err(EngineError::Runtime)
            .and_then(|bytes| self.import(Bytes::from(bytes), name))
    }

    /// Makes a minimal image out of the host's own programs: a shell, the basic tools, those that
    /// are named, and the libraries that they are linked with.
    ///
    /// # Errors
    /// If one that is named is not there, or the engine does not take it.
    pub fn from_host(&self, programs: &[String], name: &str) -> Result<String, EngineError> {
        let bytes = host_archive(programs).map_err(EngineError::Runtime)?;
        self.import(Bytes::from(bytes), name)
    }

    /// Makes sure that the empty image is there.
    pub(crate) fn ensure_empty(&self) -> Result<(), EngineError> {
        if self.exists(EMPTY_IMAGE)? {
            return Ok(());
        }
        let mut archive = new_archive(Links::Keep);
        let made =
            append_directory(&mut archive, Path::new("proc")).and_then(|()| archive.into_inner());
        let bytes = made.map_err(EngineError::Runtime)?;
        self.import(Bytes::from(bytes), EMPTY_IMAGE).map(drop)
    }

    /// Whether an image is there.
    ///
    /// # Errors
    /// If the engine can't be asked.
    pub fn exists(&self, name: &str) -> Result<bool, EngineError> {
        Ok(self.id(name)?.is_some())
    }

    /// The content of an image; none if it is not there.
    ///
    /// # Errors
    /// If the engine can't be asked.
    pub fn id(&self, name: &str) -> Result<Option<String>, EngineError> {
        match self.engine.block(self.engine.client().inspect_image(name)) {
            Ok(image) => Ok(image.id),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(call("inspect the image")(error)),
        }
    }

    /// The images of ours.
    ///
    /// # Errors
    /// If the engine can't be asked.
    pub fn list(&self) -> Result<Vec<ImageInfo>, EngineError> {
        let options = ListImagesOptionsBuilder::default().all(false).build();
        let client = self.engine.client();
        let found = self
            .engine
            .block(client.list_images(Some(options)))
            .map_err(call("list images"))?;
        let mut ours = Vec::new();
        for image in found {
            for name in &image.repo_tags {
                // Podman says where a name without a registry would be looked for.
                let name = name.strip_prefix("docker.io/").unwrap_or(name);
                if name.starts_with(REPOSITORY) {
                    ours.push(ImageInfo {
                        name: name.to_owned(),
                        id: image.id.clone(),
                        size: u64::try_from(image.size).unwrap_or(0),
                        created: image.created,
                    });
                }
            }
        }
        ours.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(ours)
    }

    /// Removes an image; false if it was not there.
    ///
    /// # Errors
    /// If a container uses it, or the engine can't be asked.
    pub fn remove(&self, name: &str) -> Result<bool, EngineError> {
        let options = RemoveImageOptionsBuilder::default().force(false).build();
        let client = self.engine.client();
        match self
            .engine
            .block(client.remove_image(name, Some(options), None))
        {
            Ok(_) => Ok(true),
            Err(bollard::errors::Error::DockerResponseServerError {
                status_code: 404, ..
            }) => Ok(false),
            Err(error) => Err(call("remove the image")(error)),
        }
    }

    fn import(&self, archive: Bytes, name: &str) -> Result<String, EngineError> {
        // With its tag: Podman does not hear of one that is told apart.
        let options = CreateImageOptionsBuilder::default()
            .from_src("-")
            .repo(name)
            .build();
        let client = self.engine.client();
        let imported: Result<(), bollard::errors::Error> = self.engine.block(async {
            let body = bollard::body_full(archive);
            let mut steps = Box::pin(client.create_image(Some(options), Some(body), None));
            while let Some(step) = steps.next().await {
                step?;
            }
            Ok(())
        });
        imported.map_err(call("import the image"))?;
        let id = self.id(name)?;
        id.ok_or_else(|| EngineError::NoEngine(format!("it has no image `{name}` after import")))
    }
}

/// What becomes of symbolic links in an archive.
#[derive(Clone, Copy)]
pub(crate) enum Links {
    Follow,
    Keep,
}

/// An archive that engines take: they do not know sparse files as GNU tar writes them.
pub(crate) fn new_archive(links: Links) -> tar::Builder<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    archive.follow_symlinks(matches!(links, Links::Follow));
    archive.sparse(false);
    archive
}

fn append_directory(archive: &mut tar::Builder<Vec<u8>>, name: &Path) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    let everybodys = name == Path::new("tmp");
    header.set_mode(if everybodys { 0o1777 } else { 0o755 });
    header.set_size(0);
    archive.append_data(&mut header, name, io::empty())
}

/// An archive of programs and the libraries that they are linked with, at their own paths.
fn host_archive(programs: &[String]) -> io::Result<Vec<u8>> {
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    for name in PROGRAMS.iter().map(|&name| name.to_owned()) {
        // A host without one of these has an image without it.
        files.extend(find(&name));
    }
    for name in programs {
        let found = find(name).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("`{name}` is not on the search path"),
            )
        })?;
        files.insert(found);
    }
    let mut all = files.clone();
    for file in &files {
        all.extend(libraries(file)?);
    }
    let mut archive = new_archive(Links::Follow);
    let mut links: HashMap<PathBuf, PathBuf> = HashMap::new();
    for top in ["bin", "sbin", "lib", "lib64"] {
        if let Ok(target) = fs::read_link(Path::new("/").join(top)) {
            links.insert(PathBuf::from(top), target);
        }
    }
    let inside = all.iter().map(|file| through_links(file, &links));
    let inside: BTreeMap<PathBuf, &PathBuf> = inside.zip(&all).collect();
    // Each by itself: engines make directories that an archive leaves out for root alone.
    let mut directories: BTreeSet<&Path> = ["dev", "etc", "proc", "sys", "tmp"]
        .into_iter()
        .map(Path::new)
        .collect();
    for file in inside.keys() {
        let above = file.ancestors().skip(1);
        directories.extend(above.filter(|directory| !directory.as_os_str().is_empty()));
    }
    for directory in directories {
        append_directory(&mut archive, directory)?;
    }
    for (link, target) in &links {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        archive.append_link(&mut header, link, target)?;
    }
    for (path, file) in &inside {
        archive.append_file(path, &mut File::open(file)?)?;
    }
    archive.into_inner()
}

/// The path in the image, below the real directories: what a link of the top leads to.
fn through_links(file: &Path, links: &HashMap<PathBuf, PathBuf>) -> PathBuf {
    let inside = file.strip_prefix("/").unwrap_or(file);
    for (link, target) in links {
        if let Ok(rest) = inside.strip_prefix(link) {
            return target.strip_prefix("/").unwrap_or(target).join(rest);
        }
    }
    inside.to_owned()
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

/// What the system's own loader would load for a program; nothing for a static one or a script.
fn libraries(program: &Path) -> io::Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words = text.split_whitespace();
    let paths = words.filter(|word| word.starts_with('/'));
    Ok(paths
        .map(PathBuf::from)
        .filter(|path| path.is_file())
        .collect())
}
