//! `stockade init`: a starter file for a project, and a profile of the user's own.

mod project;
mod starter;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
use stockade_engine::Files;
use stockade_policy::profile::{PROJECT_FILE, ProfileName};
use stockade_rules::AbsPath;

use crate::args::InitArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};
use crate::resolve::Place;
use project::Project;

#[derive(Serialize)]
struct Document {
    files: Vec<StarterFile>,
    #[serde(flatten)]
    project: Project,
}

#[derive(Serialize)]
struct StarterFile {
    path: String,
    text: String,
}

pub(crate) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    let around = Place::enter(None)?.around;
    let project = Project::look(around.cwd.as_path());
    let mut files = vec![(
        around.cwd.as_path().join(PROJECT_FILE),
        starter::project_file(&project),
    )];
    if let Some(name) = &args.profile {
        let user_file = Files::sources(around).user;
        let file = profile_file(name, user_file.as_ref())?;
        files.push((file.as_path().to_owned(), starter::profile(&project)));
    }
    // All or none: what exists is found out before anything is written.
    for (path, _) in &files {
        if path.symlink_metadata().is_ok() {
            let text = format!("`{}` exists, and nothing was written", path.display());
            return Err(Failure::text(Exit::Negative, text)
                .hint("`stockade init --dry-run` prints what would be written"));
        }
    }
    if !args.dry_run {
        for (path, text) in &files {
            write_new(path, text).map_err(|error| {
                let what = format!("can't write `{}`", path.display());
                Failure::new(Exit::Negative, anyhow::Error::new(error).context(what))
            })?;
        }
    }
    let files = files.into_iter().map(|(path, text)| StarterFile {
        path: path.display().to_string(),
        text,
    });
    let document = Document {
        files: files.collect(),
        project,
    };
    match Format::of(args.output.json) {
        Format::Json => output::json(document)?,
        Format::Text => output::text(|out| tell(out, args, &document))?,
    }
    Ok(Exit::Success)
}

fn profile_file(name: &ProfileName, user_file: Option<&AbsPath>) -> Result<AbsPath, Failure> {
    if let ProfileName::BuiltIn(built_in) = name {
        let text = format!(
            "`{}` is a profile that ships with Stockade",
            built_in.as_str()
        );
        return Err(Failure::text(Exit::Usage, text).hint("choose another name"));
    }
    user_file
        .and_then(|user_file| name.file(user_file))
        .ok_or_else(|| Failure::text(Exit::Negative, "there is no home directory to write it to"))
}

/// A new file, never one that is there, and never through a link.
fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())
}

fn tell(out: &mut dyn io::Write, args: &InitArgs, document: &Document) -> io::Result<()> {
    for file in &document.files {
        let path = output::printable(&file.path);
        if args.dry_run {
            writeln!(out, "# {path}\n{}", file.text)?;
        } else {
            writeln!(out, "wrote {path}")?;
        }
    }
    let profile = args.profile.as_ref();
    let profile = profile.map_or(String::new(), |name| format!("--profile {name} "));
    writeln!(
        out,
        "next: stockade run {profile}{}",
        document.project.command()
    )
}
