//! Protected names: files in a writable tree that make code run on the host later.
//!
//! [`PROTECTED`] is the only list of them. A row stands there if refusing it stops code from
//! running on the host that would not have run otherwise. [`candidates`] says, from the text of
//! a path alone, which rows could apply; whoever asks looks at the [`Anchor`] of each candidate,
//! because only the file system tells what a directory is. [`Judge`] then decides by content
//! what may be put there.
//!
//! Everything here is pure: no file is opened, and any bytes may be passed in.

mod candidates;
mod fold;
pub mod git;
mod judge;
pub mod jujutsu;
pub mod mercurial;
mod table;

pub use candidates::{
    Candidate, Candidates, Relation, candidates, completes_git_directory, is_hook, is_interesting,
};
pub use fold::is_same_name;
pub use judge::{Effect, Judge, Outcome, Refusal};
pub use table::{Anchor, Extent, Guard, PROTECTED, ProtectedName};
