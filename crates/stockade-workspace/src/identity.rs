//! Which directory a workspace or a root is, beside its path.
//!
//! A sandbox that may write the directory above can put a link or another directory at the same
//! path. So roots are opened without following any link, and what is found must be the directory
//! that was recorded.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, StatxFlags};
use serde::{Deserialize, Serialize};

use crate::boot;
use crate::error::{Error, Trying};
use crate::files::{self, Stat};

/// A directory, by device and inode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Identity {
    /// The device, whose number may change when the machine restarts.
    pub dev: u64,
    /// The inode.
    pub ino: u64,
    /// The boot in which the device had this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// When it was made, in seconds and nanoseconds, where the file system keeps that: the number
    /// of an inode is used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<(i64, u32)>,
}

impl Identity {
    pub(crate) fn of(fd: &OwnedFd, stat: &Stat) -> Self {
        Self {
            dev: stat.dev,
            ino: stat.ino,
            boot: boot::current(),
            born: born(fd),
        }
    }

    fn matches(&self, fd: &OwnedFd, stat: &Stat) -> bool {
        self.ino == stat.ino
            && (self.dev == stat.dev || self.boot != boot::current())
            && (self.born.is_none() || self.born == born(fd))
    }
}

fn born(fd: &OwnedFd) -> Option<(i64, u32)> {
    let stat = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let is_kept = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    is_kept.then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec))
}

/// Opens a recorded directory: no component may be a link, and it must be the one that was
/// recorded. Those of older versions of the store have no identity.
pub(crate) fn open(path: &Path, recorded: Option<&Identity>) -> Result<OwnedFd, Error> {
    let fd = files::open_top(path)?;
    let stat = files::stat_of(&fd).trying("look at", path)?;
    if recorded.is_none_or(|recorded| recorded.matches(&fd, &stat)) {
        Ok(fd)
    } else {
        Err(Error::Replaced(path.to_owned()))
    }
}
