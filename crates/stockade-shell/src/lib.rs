//! Shell source as the commands it would run.
//!
//! [`parse`] reads Bash (and POSIX sh) and lists every simple command with its words *after*
//! quoting, line continuation, `$IFS`, brace expansion and the expansion of constants; with its
//! redirections, here-documents and place in a pipeline. Commands hidden in substitutions,
//! functions, `eval`, `sh -c`, `env`, `sudo`, `xargs`, `find -exec`, here-documents fed to a
//! shell and the like are unwrapped recursively; code in other languages (`python -c`) is handed
//! out as [`Embedded`].
//!
//! It helps a person or a program judge a script before it runs. It is not a boundary: values that
//! only exist at run time stay unknown ([`Hole`]), and a script can always be made unreadable.
//! Nothing is ever executed, no file is opened, and time and memory are bounded by [`Limits`].
//!
//! ```
//! let script = stockade_shell::parse("a=r; b='-rf'; sudo \"${a}m\" $b {/tmp/x,~}");
//! let rm = script.commands.iter().find(|c| c.name() == Some("rm")).unwrap();
//! let words: Vec<_> = rm.words.iter().map(|w| w.text.as_str()).collect();
//! assert_eq!(words, ["rm", "-rf", "/tmp/x", "~"]);
//! assert_eq!(script.ancestors(rm_id(&script)).next().unwrap().name(), Some("sudo"));
//! # fn rm_id(s: &stockade_shell::Script) -> usize {
//! #     s.commands.iter().position(|c| c.name() == Some("rm")).unwrap()
//! # }
//! ```

mod ast;
mod braces;
mod builtins;
mod containers;
mod disguise;
mod each;
mod escape;
mod escapes;
mod expand;
mod fold;
mod interpreters;
mod lex;
mod model;
mod options;
mod parameter;
mod parse;
mod read;
mod runners;
mod sed;
mod shells;
mod wrappers;

pub use fold::{base64, hex};
pub use model::{
    Assignment, Command, CommandId, Embedded, Function, Hole, HoleKind, Language, Pipeline, Place,
    Problem, ProblemKind, Redirect, RedirectOp, Script, Span, Spelling, Stdin, Word, WrittenFile,
};
pub use wrappers::is_shell;

/// Bounds on the work done for one script.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Nesting of quotes, substitutions, compound commands and texts given to a shell.
    pub depth: usize,
    /// Commands listed.
    pub commands: usize,
    /// Bytes of text given to a shell that are read again.
    pub nested_bytes: usize,
    /// Statements and words that are read again: bodies of loops, of functions, of expressions.
    pub repeated_steps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 48,
            commands: 500_000,
            nested_bytes: 4 << 20,
            repeated_steps: 40_000,
        }
    }
}

/// Reads a script. Never fails: what can't be read is listed in [`Script::problems`].
pub fn parse(source: &str) -> Script {
    parse_with(source, &Limits::default())
}

/// As [`parse`], with other bounds.
pub fn parse_with(source: &str, limits: &Limits) -> Script {
    read::Reader::new(source, limits).run()
}
