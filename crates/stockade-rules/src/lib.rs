//! Path rules and the one function that decides about a path.
//!
//! Everything in Stockade that must know whether a path may be read or written asks
//! [`RuleSet::decide`]: the compiler of mounts and Landlock rules, the mediator inside the
//! sandbox, `stockade explain` and the denial records. There is no second opinion anywhere.
//!
//! The crate is apart from `stockade-policy` so that the small static helper can decide with the
//! very same code without carrying a TOML parser.
//!
//! It judges *names*, lexically. It never looks at a file system: whoever calls it passes the
//! landing path of an operation (symlinks resolved), never the text a program wrote.

mod decide;
pub mod dns;
mod glob;
mod hash;
mod index;
mod names;
mod path;
pub mod protected;
mod rule;
mod word;

pub use decide::{Decision, Grant, RuleSet};
pub use glob::{GlobError, PathGlob};
pub use hash::PathHash;
pub use index::Index;
pub use path::{AbsPath, PathError};
pub use rule::{Access, Kind, Origin, PathRule, Pattern, Rank};
pub use word::shell_word;
