//! Workspaces: a directory and its history.
//!
//! A [`WorkspaceManager`] keeps workspaces in a [`Store`]: it takes snapshots of their
//! directories, restores them, compares them, moves them between machines, and remembers what
//! state each is in. Content is kept once, however many snapshots and workspaces have it.
//!
//! # What it promises
//!
//! - A snapshot is exact: kinds, modes, owners, times to the nanosecond, links of both kinds,
//!   holes, empty directories, names of any bytes; extended attributes if asked for. FIFOs,
//!   sockets and devices are recorded and never opened.
//! - Whatever happens while it works (the process is killed, the power fails, the disk is full),
//!   the last complete snapshot can be read, and a file in the directory is the old one or the new
//!   one.
//! - Any number of processes may use a store at once.
//! - Nothing is followed out of a directory: everything in it may have been written by an enemy.
//!
//! # What it does not
//!
//! - It knows nothing of sandboxes; who runs what in a workspace is the caller's affair.
//! - A program that writes while a snapshot is taken is not held off. Each file is consistent or
//!   reported; the set of files is only if nobody writes. Pause the workspace first.
//! - Content is not encrypted; the store is readable by its owner alone.
#![cfg(target_os = "linux")]

mod assemble;
mod boot;
mod cache;
mod chunk;
mod codec;
mod content;
mod diff;
mod error;
mod exclude;
mod export;
mod files;
mod fsck;
mod gc;
mod guard;
mod hawk;
mod home;
mod id;
mod identity;
mod import;
mod input;
mod listing;
mod manager;
mod mark;
mod name;
mod overlay;
mod pack;
mod process;
mod progress;
mod restore;
mod scan;
mod snapshot;
mod state;
mod status;
mod store;
mod survey;
mod tree;
mod workspace;
mod xattr;

pub use diff::{Change, ChangeKind, Diff, FileInfo, Text};
pub use error::Error;
pub use files::remove_tree_of_others;
pub use fsck::FsckReport;
pub use gc::GcReport;
pub use guard::{
    AllowAll, CommitGuard, FileFacts, FileKind, FileTree, KeptBack, ProposedChange, ProposedKind,
    Verdict,
};
pub use home::{HomeLayer, HomeLayerInfo};
pub use id::{ObjectId, ParseIdError, SnapshotId};
pub use identity::Identity;
pub use input::Input;
pub use manager::{CreateOptions, RunLock, WorkspaceManager};
pub use name::{NameError, SnapshotName, WorkspaceName};
pub use overlay::{CommitOptions, CommitReport, Overlay, Resolve};
pub use process::Freezer;
pub use progress::{Progress, Silent};
pub use restore::{RestoreMode, RestoreReport};
pub use state::{Process, Status, Transition, WorkspaceState, is_secret_name};
pub use store::Store;
pub use survey::Totals;
pub use tree::{Meta, Time};
pub use workspace::SnapshotRecord;
