//! Landlock for the process one is in, without a sandbox around it.
//!
//! Protects the files of the user from a program that confines itself before it handles what it
//! does not trust. After [`LandlockSandbox::apply`] no thread of the process and none of its
//! later children can open, make, rename or remove anything that was not named.
//!
//! # What it does not do
//! - Descriptors that are open already stay as they are.
//! - It is about files alone: the network, signals, other processes and system calls are not
//!   touched. [`apply_seccomp`](crate::seccomp::apply_seccomp) goes with it; a whole sandbox is
//!   what the rest of this crate is for.
//! - Landlock has no rights for reading metadata: `stat(2)`, `chdir(2)`, `chmod(2)`, `utime(2)`
//!   and extended attributes work everywhere (landlock(7), "Limitations").
//! - Rights are granted, never denied: what lies below a granted directory is granted.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictSelfAttr,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus,
};

use crate::probe::landlock_abi;

/// What the current process is to be left with.
///
/// ```no_run
/// # fn main() -> Result<(), stockade_linux::LandlockError> {
/// use stockade_linux::LandlockSandbox;
///
/// let mut sandbox = LandlockSandbox::new();
/// sandbox.add_read_only_path("/usr").add_read_write_path("/var/lib/mine");
/// let applied = sandbox.apply()?;
/// assert!(applied.gaps.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandlockSandbox {
    paths: Vec<Granted>,
    best_effort: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Granted {
    path: PathBuf,
    access: Grant,
    optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    ReadOnly,
    ReadWrite,
    /// A device that ships with every sandbox: without its ioctls.
    HarmlessDevice,
}

/// What holds now, for good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LandlockApplied {
    /// The version of the kernel's Landlock.
    pub abi: u32,
    /// What this version can't restrict; empty unless best effort was asked for.
    pub gaps: Vec<LandlockGap>,
    /// Optional paths that do not exist.
    pub skipped: Vec<PathBuf>,
}

/// Something that an old Landlock can't restrict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LandlockGap {
    /// Device files that can be opened can be controlled with `ioctl(2)` (before ABI 5, Linux
    /// 6.10).
    DeviceControl,
    /// Files can't be moved from one directory to another, not even where both may be written
    /// (before ABI 2, Linux 5.19).
    Moves,
    /// Files anywhere can be cut to nothing with `truncate(2)` (before ABI 3, Linux 6.2).
    Truncation,
}

/// Why the process is not confined. Nothing has changed, unless the variant says so.
#[derive(Debug)]
#[non_exhaustive]
pub enum LandlockError {
    /// The kernel has no Landlock, or it was not enabled at boot.
    Missing(io::Error),
    /// This version of Landlock can't restrict everything, and nobody asked for best effort.
    Partial {
        /// The version.
        abi: u32,
        /// What it can't restrict.
        gaps: Vec<LandlockGap>,
    },
    /// A path can't be opened.
    Path {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel did not take the rules. `no_new_privs` may be set by now.
    Refused(io::Error),
    /// The process has more than one thread, and this kernel confines one thread at a time
    /// (before ABI 8, Linux 7.0).
    Threads {
        /// How many there are.
        count: usize,
    },
    /// Whether there are other threads can't be seen.
    ThreadsUnknown(io::Error),
}

/// Devices that can harm nobody; a program without `/dev/null` is of little use.
const HARMLESS_DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// Where programs and what they need lie.
const SYSTEM: [&str; 9] = [
    "/usr", "/lib", "/lib64", "/etc", "/bin", "/sbin", "/proc", "/dev", "/sys",
];

/// The first ABI that can confine all threads at once.
const ALL_THREADS_ABI: u32 = 8;

impl LandlockSandbox {
    /// Nothing but the harmless devices: `/dev/null`, `zero`, `full`, `random` and `urandom`.
    pub fn new() -> Self {
        let devices = HARMLESS_DEVICES.map(|path| Granted {
            path: path.into(),
            access: Grant::HarmlessDevice,
            optional: true,
        });
        Self {
            paths: devices.into(),
            best_effort: false,
        }
    }

    /// The system's directories to read, the project's and `/tmp` to write.
    pub fn for_project(project: impl Into<PathBuf>) -> Self {
        let mut sandbox = Self::new();
        for path in SYSTEM {
            sandbox.add(path.into(), Grant::ReadOnly, true);
        }
        sandbox.add(project.into(), Grant::ReadWrite, false);
        sandbox.add("/tmp".into(), Grant::ReadWrite, true);
        sandbox
    }

    /// Lets a file, or a directory and everything below it, be read and executed.
    pub fn add_read_only_path(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.add(path.into(), Grant::ReadOnly, false)
    }

    /// Lets a file, or a directory and everything below it, be read, executed and written:
    /// making, moving, linking and removing files of every kind included.
    ///
    /// `ioctl(2)` on devices is let through only for a device that is named itself.
    pub fn add_read_write_path(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.add(path.into(), Grant::ReadWrite, false)
    }

    /// The same as [`LandlockSandbox::add_read_only_path`] for a path that need not exist.
    pub fn add_read_only_path_if_exists(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.add(path.into(), Grant::ReadOnly, true)
    }

    /// The same as [`LandlockSandbox::add_read_write_path`] for a path that need not exist.
    pub fn add_read_write_path_if_exists(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.add(path.into(), Grant::ReadWrite, true)
    }

    /// Accepts an old Landlock that can't restrict everything; the result then names the gaps.
    pub fn best_effort(&mut self) -> &mut Self {
        self.best_effort = true;
        self
    }

    fn add(&mut self, path: PathBuf, access: Grant, optional: bool) -> &mut Self {
        self.paths.push(Granted {
            path,
            access,
            optional,
        });
        self
    }

    /// Confines the current process, all of its threads, for good. Sets `no_new_privs`: programs
    /// with a set-user-id bit no longer gain privileges.
    ///
    /// Paths are looked up now, once: what counts from here on is the file or directory that was
    /// found, not its name.
    ///
    /// # Errors
    /// If anything of it can't be enforced on every thread.
    pub fn apply(&self) -> Result<LandlockApplied, LandlockError> {
        self.apply_as(landlock_abi().map_err(LandlockError::Missing)?)
    }

    /// The same on a kernel of this version; rights beyond it are not used.
    fn apply_as(&self, abi: u32) -> Result<LandlockApplied, LandlockError> {
        let gaps = gaps(abi);
        if !gaps.is_empty() && !self.best_effort {
            return Err(LandlockError::Partial { abi, gaps });
        }
        let all_threads = abi >= ALL_THREADS_ABI;
        if !all_threads {
            // A process with one thread can't get a second one behind our back.
            let count = count_threads().map_err(LandlockError::ThreadsUnknown)?;
            if count != 1 {
                return Err(LandlockError::Threads { count });
            }
        }
        let rights = known(abi);
        let refused = |error: landlock::RulesetError| LandlockError::Refused(io_error(error));
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(rights))
            .and_then(Ruleset::create)
            .map_err(refused)?;
        let mut skipped = Vec::new();
        for granted in &self.paths {
            match granted.open() {
                Ok(file) => ruleset = granted.grant(ruleset, file, rights)?,
                Err(error) if granted.optional && error.kind() == io::ErrorKind::NotFound => {
                    skipped.push(granted.path.clone());
                }
                Err(source) => return Err(granted.failed(source)),
            }
        }
        let status = ruleset
            .all_threads(all_threads)
            .and_then(RulesetCreated::restrict_self)
            .map_err(refused)?;
        if status.ruleset != RulesetStatus::FullyEnforced || status.all_threads != all_threads {
            let reason = "the kernel enforces only a part of the rules";
            return Err(LandlockError::Refused(io::Error::other(reason)));
        }
        Ok(LandlockApplied { abi, gaps, skipped })
    }
}

impl Default for LandlockSandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Granted {
    fn open(&self) -> io::Result<File> {
        // Flags in place of an access mode: a path that may not be read can still be named.
        File::options()
            .read(true)
            .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
            .open(&self.path)
    }

    fn grant(
        &self,
        ruleset: RulesetCreated,
        file: File,
        abi: ABI,
    ) -> Result<RulesetCreated, LandlockError> {
        let metadata = file.metadata().map_err(|source| self.failed(source))?;
        let is_device =
            metadata.file_type().is_char_device() || metadata.file_type().is_block_device();
        let mut access = match self.access {
            Grant::ReadOnly => AccessFs::from_read(abi),
            Grant::ReadWrite | Grant::HarmlessDevice => AccessFs::from_all(abi),
        };
        if !(is_device && self.access == Grant::ReadWrite) {
            access &= !BitFlags::from(AccessFs::IoctlDev);
        }
        // The kernel refuses rights about the entries of what has none (landlock_add_rule(2)).
        if metadata.mode() & libc::S_IFMT != libc::S_IFDIR {
            access &= AccessFs::from_file(abi);
        }
        ruleset
            .add_rule(PathBeneath::new(file, access))
            .map_err(|error| self.failed(io_error(error)))
    }

    fn failed(&self, source: io::Error) -> LandlockError {
        LandlockError::Path {
            path: self.path.clone(),
            source,
        }
    }
}

fn count_threads() -> io::Result<usize> {
    fs::read_dir(Path::new("/proc/self/task")).map(Iterator::count)
}

fn gaps(abi: u32) -> Vec<LandlockGap> {
    [
        (2, LandlockGap::Moves),
        (3, LandlockGap::Truncation),
        (5, LandlockGap::DeviceControl),
    ]
    .into_iter()
    .filter(|(since, _)| abi < *since)
    .map(|(_, gap)| gap)
    .collect()
}

/// The rights about files: none came with 4, 6, 7 and 8, and those of 9 are not about files.
fn known(abi: u32) -> ABI {
    match abi {
        0 => ABI::Unsupported,
        1 => ABI::V1,
        2 => ABI::V2,
        3 | 4 => ABI::V3,
        5..ALL_THREADS_ABI => ABI::V5,
        _ => ABI::V8,
    }
}

/// The system call's own error where there is one.
fn io_error(error: landlock::RulesetError) -> io::Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(found) = cause {
        if let Some(code) = found.downcast_ref().and_then(io::Error::raw_os_error) {
            return io::Error::from_raw_os_error(code);
        }
        cause = found.source();
    }
    io::Error::other(error)
}

impl fmt::Display for LandlockGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeviceControl => "ioctl on devices is not restricted",
            Self::Moves => "files can't be moved between directories",
            Self::Truncation => "truncation of files is not restricted",
        })
    }
}

impl fmt::Display for LandlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(_) => f.write_str("this kernel does not offer Landlock"),
            Self::Partial { abi, gaps } => {
                write!(f, "Landlock ABI {abi} can't enforce everything")?;
                let mut separator = ": ";
                for gap in gaps {
                    write!(f, "{separator}{gap}")?;
                    separator = "; ";
                }
                Ok(())
            }
            Self::Path { path, .. } => write!(f, "`{}` can't be granted", path.display()),
            Self::Refused(_) => f.write_str("the kernel did not take the Landlock rules"),
            Self::Threads { count } => write!(
                f,
                "the process has {count} threads, and before Linux 7.0 Landlock confines only \
                 the calling one: apply it before starting others"
            ),
            Self::ThreadsUnknown(_) => {
                f.write_str("/proc/self/task can't be read, so other threads may exist")
            }
        }
    }
}

impl std::error::Error for LandlockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Missing(source)
            | Self::Path { source, .. }
            | Self::Refused(source)
            | Self::ThreadsUnknown(source) => Some(source),
            Self::Partial { .. } | Self::Threads { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_is_refused_unless_best_effort_was_asked_for() {
        let error = LandlockSandbox::new().apply_as(2).unwrap_err();
        assert!(matches!(
            &error,
            LandlockError::Partial { abi: 2, gaps }
                if *gaps == [LandlockGap::Truncation, LandlockGap::DeviceControl]
        ));
        assert!(error.to_string().contains("truncation"), "{error}");
        assert_eq!(gaps(7), []);
    }

    #[test]
    fn a_process_with_threads_is_refused_before_anything_happens() {
        // The test harness itself runs this on a thread of its own.
        let error = LandlockSandbox::new().apply_as(7).unwrap_err();
        assert!(matches!(error, LandlockError::Threads { count } if count > 1));
        assert!(fs::read("/proc/self/status").is_ok(), "not confined");
    }
}
