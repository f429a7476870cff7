//! `stockade inspect`: prompt injection, data leaving and secrets in files, standard input or a
//! repository's history.
//!
//! Reads in chunks and prints findings as they come, so that a text of any size needs a bounded
//! amount of memory. Advice for a person or an approval step; nothing here confines anything.

mod git;
mod lines;
mod report;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use stockade_inspect::{Kinds, StreamInspector, Tally};

use crate::args::OutputArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use lines::Lines;
use report::{Origin, Report};

/// Find prompt injection, data leaving and secrets in text, tool output or commands
///
/// Prints every finding with its place, rule and level; secrets are shown by kind, first four
/// characters, length and hash only. This is advice: what confines a command is `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  some-tool | stockade inspect
  stockade inspect --kind injection page.html mail.txt
  stockade inspect --kind egress --allow-domain github.com script.sh
  stockade inspect --format sarif src/*.py > findings.sarif
  stockade inspect --kind secrets --git ~/project

Exit codes: 0 nothing of level medium or above was found; 1 something was; 2 a file could not be \
read, or usage.")]
pub(crate) struct InspectArgs {
    /// Files to inspect; `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Inspect every blob in the history of the repository at DIR, each once [default: .]
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = ".",
        conflicts_with = "files"
    )]
    pub(crate) git: Option<PathBuf>,
    /// What to look for; repeatable
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        default_value = "all"
    )]
    pub(crate) kind: Vec<Kind>,
    /// How to print findings
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: InspectFormat,
    /// A domain that data may go to: a name, or `*.name` for it and everything below; repeatable
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) allow_domain: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A kind of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Every kind
    All,
    /// Commands, programs and links that carry data out
    Egress,
    /// Text that tries to steer an agent, and hidden text
    Injection,
    /// Tokens, keys and passwords in the clear
    Secrets,
}

/// A way to print findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InspectFormat {
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// One line for each finding
    Text,
}

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

pub(crate) fn run(args: &InspectArgs) -> Result<Exit, Failure> {
    let format = if args.output.json {
        InspectFormat::Json
    } else {
        args.format
    };
    let kinds = kinds(&args.kind);
    let mut report = Report::begin(format, io::BufWriter::new(io::stdout().lock()))?;
    let mut total = Tally::default();
    if let Some(directory) = &args.git {
        return inspect_history(directory, args, kinds, report);
    }
    let mut unread = Vec::new();
    let standard_input = [PathBuf::from("-")];
    let files = if args.files.is_empty() {
        &standard_input[..]
    } else {
        &args.files
    };
    for path in files {
        let stream = StreamInspector::new(kinds, &args.allow_domain);
        match inspect(path, stream, &mut report) {
            Ok(tally) => total.merge(&tally),
            Err(Trouble::Print(error)) => return Err(error.into()),
            Err(Trouble::Read(error)) => unread.push((path, error)),
        }
    }
    report.end(&total, unread.is_empty())?;
    if let Some((path, error)) = unread.into_iter().next() {
        let context = format!("can't read `{}`", path.display());
        return Err(Failure::new(
            Exit::Usage,
            anyhow::Error::new(error).context(context),
        ));
    }
    Ok(exit(&total))
}

fn exit(total: &Tally) -> Exit {
    if total.is_safe() {
        Exit::Success
    } else {
        Exit::Negative
    }
}

/// Inspects every blob that a repository's history reaches.
fn inspect_history(
    directory: &Path,
    args: &InspectArgs,
    kinds: Kinds,
    mut report: Report<impl io::Write>,
) -> Result<Exit, Failure> {
    let unreadable = |error: anyhow::Error| Failure::new(Exit::Usage, error);
    let mut history = git::History::open(directory).map_err(unreadable)?;
    let mut contents = git::Contents::open(directory).map_err(unreadable)?;
    let mut progress = git::Progress::new(args.format != InspectFormat::Text);
    let mut total = Tally::default();
    let mut missing = 0_u64;
    let (mut blobs, mut bytes) = (0, 0);
    while let Some(blob) = history.next().map_err(unreadable)? {
        let origin = Origin {
            path: &blob.path,
            commit: Some(&blob.commit),
        };
        let mut stream = StreamInspector::new(kinds, &args.allow_domain);
        let mut lines = Lines::default();
        let size = contents.read(&blob.id, |chunk| {
            lines.feed(chunk);
            let findings = stream.feed(chunk);
            if !findings.is_empty() {
                progress.clear();
            }
            report
                .findings(origin, &findings, &lines)
                .map_err(Failure::from)
        })?;
        let (findings, tally) = stream.finish();
        if !findings.is_empty() {
            progress.clear();
        }
        report.findings(origin, &findings, &lines)?;
        total.merge(&tally);
        missing += u64::from(size.is_none());
        blobs += 1;
        bytes += size.unwrap_or_default();
        progress.show(blobs, bytes, total.count());
    }
    progress.clear();
    contents.finish().map_err(unreadable)?;
    report.history(blobs, bytes);
    report.end(&total, missing == 0)?;
    if missing > 0 {
        let error =
            anyhow::anyhow!("{missing} blobs are missing from the repository (a partial clone?)");
        return Err(Failure::new(Exit::Usage, error));
    }
    Ok(exit(&total))
}

fn kinds(chosen: &[Kind]) -> Kinds {
    let has = |kind| chosen.contains(&kind) || chosen.contains(&Kind::All);
    Kinds {
        injection: has(Kind::Injection),
        egress: has(Kind::Egress),
        secrets: has(Kind::Secrets),
    }
}

/// Why an inspection stopped.
enum Trouble {
    Print(io::Error),
    Read(io::Error),
}

fn inspect(
    path: &Path,
    mut stream: StreamInspector,
    report: &mut Report<impl io::Write>,
) -> Result<Tally, Trouble> {
    let mut input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(Trouble::Read)?)
    };
    let origin = Origin { path, commit: None };
    let mut lines = Lines::default();
    let mut chunk = vec![0; CHUNK];
    let mut size = 0;
    loop {
        let length = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Trouble::Read(error)),
        };
        size += length as u64;
        let read = chunk.get(..length).unwrap_or_default();
        lines.feed(read);
        let findings = stream.feed(read);
        report
            .findings(origin, &findings, &lines)
            .map_err(Trouble::Print)?;
    }
    let (findings, tally) = stream.finish();
    report
        .findings(origin, &findings, &lines)
        .map_err(Trouble::Print)?;
    report.file(path, size, &tally);
    Ok(tally)
}
