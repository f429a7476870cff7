//! The steps of a commit, as its journal has them.

use serde::{Deserialize, Serialize};

use super::layer;
use crate::files::Stat;

/// A file, by device and inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct InodeId {
    pub(super) dev: u64,
    pub(super) ino: u64,
}

impl InodeId {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            dev: stat.dev,
            ino: stat.ino,
        }
    }
}

/// What can be changed about a file without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Seconds and nanoseconds; none leaves the time as the steps make it.
    pub(super) mtime: Option<(i64, u32)>,
}

impl Attributes {
    pub(super) fn of(stat: &Stat) -> Self {
        let (mode, uid, gid) = layer::attributes(stat);
        Self {
            mode,
            uid,
            gid,
            mtime: Some((stat.mtime.seconds, stat.mtime.nanos)),
        }
    }
}

/// Where something new comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum From {
    /// This path of the layer.
    Layer(#[serde(with = "crate::state::bytes")] Vec<u8>),
    /// A copy in the staging directory.
    Staged(String),
    /// An empty directory, made in the staging directory.
    Made(String, Attributes),
}

/// One step. Paths are below the root; names are in the staging directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// Something of the layer stays in the overlay, though the directory around it goes.
    Extract {
        #[serde(with = "crate::state::bytes")]
        path: Vec<u8>,
        aside: String,
    },
    /// Something is put where nothing was.
    Place {
        #[serde(with = "crate::state::bytes")]
        to: Vec<u8>,
        from: From,
        id: InodeId,
    },
    /// Something changes places with what is there.
    Exchange {
        #[serde(with = "crate::state::bytes")]
        to: Vec<u8>,
        from: From,
        new: InodeId,
        old: InodeId,
    },
    /// Something goes.
    Remove {
        #[serde(with = "crate::state::bytes")]
        path: Vec<u8>,
        aside: String,
        old: InodeId,
    },
    /// Mode, owner or time change.
    Adjust {
        #[serde(with = "crate::state::bytes")]
        path: Vec<u8>,
        id: InodeId,
        before: Attributes,
        after: Attributes,
    },
}

impl Step {
    /// What stays in the overlay.
    pub(super) fn extracted(&self) -> Option<&[u8]> {
        match self {
            Self::Extract { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Where something new is put.
    pub(super) fn target(&self) -> Option<&[u8]> {
        match self {
            Self::Place { to, .. } | Self::Exchange { to, .. } => Some(to),
            _ => None,
        }
    }
}
