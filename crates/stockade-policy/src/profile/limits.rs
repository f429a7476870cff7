//! Limits on what a sandbox may use up: on by default, generous, each with its origin.
//!
//! They protect the host and its other users from a fork bomb, a leak or a loop. They are no
//! boundary: what may be read or written is decided elsewhere.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use stockade_rules::Origin;

use crate::model::ResourceLimits;

use super::duration::{format_duration, parse_duration};
use super::size::{format_size, parse_size};
use super::sourced::Sourced;
use super::words::words;

words! {
    /// What can be limited, as `--limit KEY=VALUE` and `[limits]` spell it.
    pub enum LimitKey("limit") {
        /// Memory of the whole sandbox, in bytes.
        Memory = "mem",
        /// Processes and threads that exist at a time.
        Pids = "pids",
        /// CPU time.
        CpuTime = "cpu",
        /// Size of a single file that is written, in bytes.
        FileSize = "fsize",
        /// Size of the private `/tmp`, in bytes.
        TmpSize = "tmp",
        /// Free space that a writable file system may lose while the command runs, in bytes.
        Disk = "disk",
        /// Bytes written to stdout and stderr together.
        Output = "output",
        /// Open files of a process.
        OpenFiles = "files",
        /// Wall time of the run.
        WallTime = "timeout",
    }
}

/// How the value of a limit is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Bytes,
    Count,
    Time,
}

/// One limit as a person states it: `mem=512M`, `pids=unlimited`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LimitSetting {
    key: LimitKey,
    /// Bytes, a count or milliseconds; none is unlimited.
    amount: Option<u64>,
}

/// Why a text is no [`LimitSetting`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// There is no `=`.
    #[error("`{0}` is not of the form KEY=VALUE, such as mem=512M")]
    Form(String),
    /// The key is not known.
    #[error(transparent)]
    Key(#[from] super::UnknownWord),
    /// The value can't be read.
    #[error("limit `{key}`: {reason}")]
    Value {
        /// Which limit.
        key: LimitKey,
        /// What is wrong.
        reason: String,
    },
}

/// The limits of one sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits([Sourced<Option<u64>>; LimitKey::ALL.len()]);

impl LimitKey {
    fn unit(self) -> Unit {
        match self {
            Self::Memory | Self::FileSize | Self::TmpSize | Self::Disk | Self::Output => {
                Unit::Bytes
            }
            Self::Pids | Self::OpenFiles => Unit::Count,
            Self::CpuTime | Self::WallTime => Unit::Time,
        }
    }

    /// What holds when nobody says anything.
    ///
    /// Wide enough for a large build or a long session, small enough that a machine survives.
    /// Output is not bounded: counting it needs a pump between the command and its reader, which
    /// costs every pipe, so it is there only when asked for. Neither is disk space: what others
    /// write to the same file system counts too, so a limit that nobody asked for would end runs
    /// that did nothing wrong. Nor is memory: sanitizers, Go, Java and wasm runtimes reserve terabytes
    /// of which they use little, and without a control group only reservations can be limited.
    fn built_in(self) -> Option<u64> {
        const GIB: u64 = 1 << 30;
        const HOUR: u64 = 3_600_000;
        match self {
            Self::Pids => Some(4096),
            Self::CpuTime => Some(12 * HOUR),
            Self::FileSize => Some(16 * GIB),
            Self::TmpSize => Some(4 * GIB),
            Self::Disk | Self::Memory | Self::Output => None,
            Self::OpenFiles => Some(65_536),
            Self::WallTime => Some(24 * HOUR),
        }
    }

    fn format(self, amount: Option<u64>) -> String {
        match (amount, self.unit()) {
            (None, _) => "unlimited".to_owned(),
            (Some(bytes), Unit::Bytes) => format_size(bytes),
            (Some(count), Unit::Count) => count.to_string(),
            (Some(millis), Unit::Time) => format_duration(Duration::from_millis(millis)),
        }
    }
}

impl LimitSetting {
    pub(super) fn new(key: LimitKey, amount: Option<u64>) -> Self {
        Self { key, amount }
    }

    /// Reads a value for `key`: a size, a count, a time, or `unlimited`.
    ///
    /// # Errors
    /// If the text is no value of that kind, or zero: under a limit of zero nothing can run.
    pub fn parse(key: LimitKey, text: &str) -> Result<Self, LimitError> {
        let fail = |reason: String| LimitError::Value { key, reason };
        if text == "unlimited" {
            return Ok(Self { key, amount: None });
        }
        let amount = match key.unit() {
            Unit::Bytes => parse_size(text).map_err(fail)?,
            Unit::Time => {
                let span = parse_duration(text).map_err(fail)?;
                u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
            }
            Unit::Count => text
                .trim()
                .parse()
                .map_err(|_| fail(format!("`{}` is not a whole number", text.escape_debug())))?,
        };
        if amount == 0 {
            return Err(fail(
                "nothing can run under a limit of 0; write `unlimited` for none".to_owned(),
            ));
        }
        Ok(Self {
            key,
            amount: Some(amount),
        })
    }

    /// A limit on wall time.
    pub fn wall_time(span: Duration) -> Self {
        Self {
            key: LimitKey::WallTime,
            amount: Some(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// Which limit it sets.
    pub fn key(self) -> LimitKey {
        self.key
    }
}

/// `mem=512M`, as `--limit` takes it.
impl FromStr for LimitSetting {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| LimitError::Form(text.escape_debug().to_string()))?;
        Self::parse(key.trim().parse()?, value.trim())
    }
}

impl fmt::Display for LimitSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.key.format(self.amount))
    }
}

impl Limits {
    /// No limit at all.
    pub fn unlimited(origin: &Origin) -> Self {
        Self(std::array::from_fn(|_| Sourced::new(None, origin.clone())))
    }

    /// Memory of the whole sandbox, in bytes.
    pub fn memory(&self) -> Option<u64> {
        self.get(LimitKey::Memory).value
    }

    /// Processes and threads that exist at a time.
    pub fn pids(&self) -> Option<u64> {
        self.get(LimitKey::Pids).value
    }

    /// CPU time.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.get(LimitKey::CpuTime).value.map(Duration::from_millis)
    }

    /// Size of a single file, in bytes.
    pub fn file_size(&self) -> Option<u64> {
        self.get(LimitKey::FileSize).value
    }

    /// Size of the private `/tmp`, in bytes.
    pub fn tmp_size(&self) -> Option<u64> {
        self.get(LimitKey::TmpSize).value
    }

    /// Free space that a writable file system may lose while the command runs, in bytes.
    pub fn disk(&self) -> Option<u64> {
        self.get(LimitKey::Disk).value
    }

    /// Bytes on stdout and stderr together.
    pub fn output(&self) -> Option<u64> {
        self.get(LimitKey::Output).value
    }

    /// Open files of a process.
    pub fn open_files(&self) -> Option<u64> {
        self.get(LimitKey::OpenFiles).value
    }

    /// Wall time of the run.
    pub fn wall_time(&self) -> Option<Duration> {
        self.get(LimitKey::WallTime)
            .value
            .map(Duration::from_millis)
    }

    /// One limit in its own unit (bytes, a count or milliseconds), and who set it.
    pub fn get(&self, key: LimitKey) -> &Sourced<Option<u64>> {
        &self.0[key as usize]
    }

    /// Sets one limit.
    pub fn set(&mut self, setting: LimitSetting, origin: Origin) {
        self.0[setting.key as usize] = Sourced::new(setting.amount, origin);
    }

    /// Whether the setting would allow more than there is now.
    pub fn raised_by(&self, setting: LimitSetting) -> bool {
        let amount = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
        amount(setting.amount) > amount(self.get(setting.key).value)
    }

    /// Every limit as people write it, with its origin.
    pub fn iter(&self) -> impl Iterator<Item = (LimitKey, Sourced<String>)> {
        LimitKey::ALL.iter().map(|key| {
            let limit = self.get(*key);
            let text = key.format(limit.value);
            (*key, Sourced::new(text, limit.origin.clone()))
        })
    }
}

/// Zero is no limit there; `max_disk_mb` bounds each file and the private `/tmp`.
impl From<ResourceLimits> for Limits {
    fn from(stated: ResourceLimits) -> Self {
        let mut limits = Self::default();
        for setting in super::from_policy::limits(&stated) {
            limits.set(setting, Origin::fixed("resource limits"));
        }
        limits
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self(std::array::from_fn(|index| {
            Sourced::built_in(LimitKey::ALL[index].built_in())
        }))
    }
}

/// `{"tmp": {"value": 4294967296, "origin": "built-in"}, …}`: bytes, counts, milliseconds.
impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for key in LimitKey::ALL {
            map.serialize_entry(key, self.get(*key))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_sets_one_limit() {
        let mut limits = Limits::default();
        limits.set(
            "mem=512M".parse().unwrap(),
            Origin::flag("--limit mem=512M"),
        );
        limits.set("timeout=1500ms".parse().unwrap(), Origin::flag("t"));
        limits.set("pids=unlimited".parse().unwrap(), Origin::flag("p"));
        assert_eq!(limits.memory(), Some(512 << 20));
        assert_eq!(limits.wall_time(), Some(Duration::from_millis(1500)));
        assert_eq!(limits.pids(), None);
        assert_eq!(limits.tmp_size(), Limits::default().tmp_size());
    }

    #[test]
    fn the_index_of_a_key_is_its_place() {
        for (index, key) in LimitKey::ALL.iter().enumerate() {
            assert_eq!(*key as usize, index);
        }
    }

    #[test]
    fn bad_limits_say_why() {
        for (text, part) in [
            ("mem", "KEY=VALUE"),
            ("memory=1G", "one of mem, pids"),
            ("mem=", "whole number"),
            ("mem=0", "unlimited"),
            ("pids=4k", "whole number"),
            ("cpu=1y", "unknown unit"),
        ] {
            let error = text.parse::<LimitSetting>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn more_is_more_and_unlimited_is_most() {
        let mut limits = Limits::default();
        limits.set("mem=1G".parse().unwrap(), Origin::fixed("test"));
        assert!(!limits.raised_by("mem=1G".parse().unwrap()));
        assert!(!limits.raised_by("mem=1M".parse().unwrap()));
        assert!(limits.raised_by("mem=2G".parse().unwrap()));
        assert!(limits.raised_by("mem=unlimited".parse().unwrap()));
        assert!(!limits.raised_by("output=unlimited".parse().unwrap()));
    }

    #[test]
    fn settings_print_as_they_are_read() {
        for text in ["mem=512M", "pids=64", "cpu=1m", "output=unlimited"] {
            assert_eq!(text.parse::<LimitSetting>().unwrap().to_string(), text);
        }
    }
}
