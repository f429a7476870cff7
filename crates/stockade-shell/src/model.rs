//! What a reader of a script sees: commands, words, redirections, pipelines.

use std::ops::Range;

/// A range of bytes in the source given to [`crate::parse`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "two offsets, by nature")]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The span from `start` up to `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

/// Position of a command in [`Script::commands`].
pub type CommandId = usize;

/// Every command that a script would run, as far as constants tell.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Script {
    /// Simple commands. Those of a substitution come before the command whose word holds it;
    /// those that a wrapper (`sudo`, `sh -c`, `find -exec`) starts come after the wrapper.
    pub commands: Vec<Command>,
    /// Pipelines; a command that is not piped is a pipeline of one stage.
    pub pipelines: Vec<Pipeline>,
    /// Functions in order of definition.
    pub functions: Vec<Function>,
    /// Code in other languages given to an interpreter (`python -c`, a here-document to `node`).
    pub embedded: Vec<Embedded>,
    /// Files that the script writes with known text.
    pub files: Vec<WrittenFile>,
    /// Comments, `#` included.
    pub comments: Vec<Span>,
    /// What could not be read, in source order. Empty means that everything was understood.
    pub problems: Vec<Problem>,
    /// Statements and words that were read, each as often as it was read: what the script cost.
    pub steps: usize,
}

/// One simple command.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Command {
    /// Where it stands; for text handed to `eval` and the like, where that text stands.
    pub span: Span,
    /// The command's name and arguments after quoting and constant expansion; empty when the
    /// command only assigns or redirects.
    pub words: Vec<Word>,
    /// `NAME=value` before the name, or alone, or as arguments of `export` and its kin.
    pub assignments: Vec<Assignment>,
    /// Redirections, those of enclosing compound commands not included.
    pub redirects: Vec<Redirect>,
    /// Where standard input comes from.
    pub stdin: Stdin,
    /// Index into [`Script::pipelines`].
    pub pipeline: usize,
    /// Stage within that pipeline.
    pub stage: usize,
    /// The command that starts this one: `sudo`, `xargs`, `bash -c`, `eval` …
    pub parent: Option<CommandId>,
    /// Where in the script it stands.
    pub place: Place,
    /// Index into [`Script::functions`] when it belongs to a function's body.
    pub function: Option<usize>,
    /// Followed by `&`.
    pub background: bool,
    /// It is an interpreter, and the text that it is given was computed from constants.
    pub runs_computed: bool,
    /// Expansions among its words that are empty and can only be there to distract: `${*^^}`.
    pub empty_expansions: usize,
}

/// Where a command stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// An ordinary statement.
    #[default]
    Statement,
    /// Within `$(…)` or backquotes.
    Substitution,
    /// Within `<(…)` or `>(…)`.
    Process,
    /// Text that would run later: the body of `trap` or `alias`.
    Deferred,
}

/// Where a command's standard input comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stdin {
    /// As the script's own.
    #[default]
    Inherited,
    /// From the previous stage of a pipeline, with output that is not constant.
    Pipe,
    /// From a file or descriptor by redirection.
    File,
    /// A text known in advance: here-document, here-string, or constant output of a pipeline.
    Text(Word),
}

/// One word after expansion.
///
/// `text` is what the shell would pass on. Parts whose value can't be known stand in it as
/// placeholders (`$NAME`, `$(…)`, `*`, `~`) and are listed in `holes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Word {
    /// The value, with placeholders.
    pub text: String,
    /// Where the word stands in the source.
    pub span: Span,
    /// Unknown parts, in order, as byte ranges of `text`.
    pub holes: Vec<Hole>,
    /// Some of it was quoted.
    pub quoted: bool,
    /// How it came to its text.
    pub spelling: Spelling,
}

/// How a word came to its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spelling {
    /// All of the text was computed from constants: decoded, reversed, translated, picked out of
    /// another text letter by letter.
    pub computed: bool,
    /// Letters of the word are broken up by quotes, escapes or expansions that add nothing.
    pub disguised: bool,
    /// All of the text is the value of variables.
    pub from_variables: bool,
}

impl Word {
    /// The exact value, if nothing in it is unknown.
    pub fn literal(&self) -> Option<&str> {
        self.holes.is_empty().then_some(self.text.as_str())
    }

    /// The value where only patterns (`*`, `?`, `[…]`) and `~` may be left open.
    pub fn constant(&self) -> Option<&str> {
        self.holes
            .iter()
            .all(|hole| matches!(hole.kind, HoleKind::Glob | HoleKind::Tilde))
            .then_some(self.text.as_str())
    }

    /// Ranges of [`Script::commands`] whose output is part of this word.
    pub fn substitutions(&self) -> impl Iterator<Item = Range<CommandId>> + '_ {
        self.holes.iter().filter_map(|hole| match &hole.kind {
            HoleKind::Substitution { commands } | HoleKind::Process { commands, .. } => {
                Some(commands.clone())
            }
            _ => None,
        })
    }

    /// Names of the variables in it whose value is unknown.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.holes.iter().filter_map(|hole| match &hole.kind {
            HoleKind::Variable(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

/// A part of a word whose value is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hole {
    /// Byte range of the placeholder in [`Word::text`].
    pub range: Range<usize>,
    /// What stands there.
    pub kind: HoleKind,
}

/// What an unknown part of a word is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoleKind {
    /// A variable or parameter without a constant value.
    Variable(String),
    /// `$(…)`: the output of these commands.
    Substitution {
        /// Range of [`Script::commands`].
        commands: Range<CommandId>,
    },
    /// `<(…)` or `>(…)`: a path to a pipe with these commands at the other end.
    Process {
        /// Range of [`Script::commands`].
        commands: Range<CommandId>,
        /// The text that can be read from it, when known.
        output: Option<Box<Word>>,
    },
    /// An unquoted pattern character or bracket.
    Glob,
    /// An unquoted `~` or `~user` at the start.
    Tilde,
    /// An arithmetic expansion that is not constant.
    Arithmetic,
}

/// `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// The value; an array's elements separated by spaces.
    pub value: Word,
    /// Where it stands.
    pub span: Span,
}

/// A redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redirect {
    /// The operator.
    pub op: RedirectOp,
    /// The descriptor before the operator, if written.
    pub fd: Option<u32>,
    /// File, descriptor, or for here-documents and here-strings the text.
    pub target: Word,
    /// Where it stands.
    pub span: Span,
}

/// Redirection operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedirectOp {
    /// `<`
    Read,
    /// `>`, `>|`
    Write,
    /// `>>`
    Append,
    /// `<>`
    ReadWrite,
    /// `<&`
    DuplicateIn,
    /// `>&` with a descriptor
    DuplicateOut,
    /// `&>`, `>&` with a file name
    WriteBoth,
    /// `&>>`
    AppendBoth,
    /// `<<`, `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

impl RedirectOp {
    /// Whether the target is a file opened for writing.
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Self::Write | Self::Append | Self::ReadWrite | Self::WriteBoth | Self::AppendBoth
        )
    }
}

/// A pipeline.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Pipeline {
    /// Number of stages.
    pub stages: usize,
    /// The pipeline and stage around it, when it stands in a compound command or substitution.
    pub outer: Option<(usize, usize)>,
    /// Its commands, those of substitutions and nested commands included.
    pub commands: Range<CommandId>,
    /// Where it stands.
    pub span: Span,
}

/// A function definition.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Where the definition stands.
    pub span: Span,
    /// Its body's commands, read once with unknown parameters.
    pub commands: Range<CommandId>,
}

/// Code in another language.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Embedded {
    /// The interpreter's language.
    pub language: Language,
    /// The code. Unknown parts stand in it as placeholders.
    pub code: Word,
    /// The interpreter's command.
    pub command: CommandId,
}

/// A file written with text that is known.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WrittenFile {
    /// Its path as written.
    pub path: String,
    /// The text, as far as it was written so far.
    pub text: Word,
    /// The command that writes.
    pub span: Span,
}

/// Languages that commands commonly carry inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// `awk` programs.
    Awk,
    /// `node -e`, `deno eval`, `bun -e`.
    JavaScript,
    /// `lua -e`.
    Lua,
    /// `perl -e`.
    Perl,
    /// `php -r`.
    Php,
    /// `python -c`.
    Python,
    /// `ruby -e`.
    Ruby,
    /// Statements given to a database client.
    Sql,
}

/// Something that could not be read in full.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// What.
    pub kind: ProblemKind,
    /// Where.
    pub span: Span,
}

/// Kinds of [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A quote, bracket or here-document that never ends; read up to the end of the text.
    Unterminated,
    /// A token that fits nowhere; it was skipped.
    Unexpected,
    /// Nested deeper than [`crate::Limits::depth`]; the inside was not read.
    TooDeep,
    /// More commands or text than [`crate::Limits`] allow; the rest was not read.
    TooLarge,
}

/// Commands that are looked at to find what another one reads.
const LOOK_BACK: usize = 512;

impl Script {
    /// The commands whose output reaches this command's standard input, directly or through
    /// earlier stages, nearest first. Looks back over a bounded number of commands.
    pub fn upstream(&self, id: CommandId) -> Vec<CommandId> {
        let mut found = Vec::new();
        let Some(command) = self.commands.get(id) else {
            return found;
        };
        let mut seat = Some((command.pipeline, command.stage));
        while let Some((pipeline, stage)) = seat {
            let Some(around) = self.pipelines.get(pipeline) else {
                break;
            };
            if stage > 0 {
                let earlier = around.commands.start..id.min(around.commands.end);
                found.extend(earlier.rev().take(LOOK_BACK).filter(|&other| {
                    self.seat_in(&self.commands[other], pipeline)
                        .is_some_and(|seat| seat < stage)
                }));
            }
            seat = around.outer;
        }
        found
    }

    /// The stage of `pipeline` that `command` stands in, itself or through enclosing compounds.
    fn seat_in(&self, command: &Command, pipeline: usize) -> Option<usize> {
        let mut seat = (command.pipeline, command.stage);
        loop {
            if seat.0 == pipeline {
                return Some(seat.1);
            }
            seat = self.pipelines.get(seat.0)?.outer?;
        }
    }

    /// The commands whose output is this command's standard input: those that print for the stage
    /// before it, or for the stage before the group that it stands in.
    pub fn piped_from(&self, id: CommandId) -> Vec<CommandId> {
        let Some(command) = self.commands.get(id) else {
            return Vec::new();
        };
        let mut seat = Some((command.pipeline, command.stage));
        while let Some((pipeline, stage)) = seat {
            let Some(around) = self.pipelines.get(pipeline) else {
                break;
            };
            if let Some(before) = stage.checked_sub(1) {
                let earlier = around.commands.start..id.min(around.commands.end);
                let substituted = |place| matches!(place, Place::Substitution | Place::Process);
                let prints = |other: &CommandId| {
                    let other = &self.commands[*other];
                    let own = !substituted(other.place) || substituted(command.place);
                    own && self.prints_for(other, pipeline) == Some(before)
                };
                return earlier.rev().take(LOOK_BACK).filter(prints).collect();
            }
            seat = around.outer;
        }
        Vec::new()
    }

    /// The commands of a substitution that print its text.
    pub fn printed_by(&self, substitution: Range<CommandId>) -> Vec<CommandId> {
        let within = |pipeline: &Pipeline| {
            substitution.start <= pipeline.commands.start
                && pipeline.commands.end <= substitution.end
        };
        let prints = |id: &CommandId| {
            let Some(command) = self.commands.get(*id) else {
                return false;
            };
            let mut seat = Some((command.pipeline, command.stage));
            while let Some((pipeline, stage)) = seat {
                let Some(around) = self.pipelines.get(pipeline).filter(|own| within(own)) else {
                    return true;
                };
                if stage + 1 < around.stages {
                    return false;
                }
                seat = around.outer;
            }
            true
        };
        substitution
            .clone()
            .take(LOOK_BACK)
            .filter(prints)
            .collect()
    }

    /// The stage of `pipeline` that `command` prints for: no stage inside a group reads it before.
    fn prints_for(&self, command: &Command, pipeline: usize) -> Option<usize> {
        let mut seat = (command.pipeline, command.stage);
        while seat.0 != pipeline {
            let around = self.pipelines.get(seat.0)?;
            if seat.1 + 1 < around.stages {
                return None;
            }
            seat = around.outer?;
        }
        Some(seat.1)
    }

    /// The wrappers around a command, innermost first.
    pub fn ancestors(&self, id: CommandId) -> impl Iterator<Item = &Command> {
        let mut next = self.commands.get(id).and_then(|c| c.parent);
        std::iter::from_fn(move || {
            let command = self.commands.get(next?)?;
            next = command.parent;
            Some(command)
        })
    }
}

impl Command {
    /// The program's name without its directory, if constant.
    pub fn name(&self) -> Option<&str> {
        Some(program_name(self.words.first()?.constant()?))
    }

    /// The words after the name.
    pub fn args(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// A program's name, without where it is and without the ending that Windows gives programs.
pub(crate) fn program_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    let plain = [".exe", ".cmd", ".bat"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    plain.filter(|plain| !plain.is_empty()).unwrap_or(name)
}
