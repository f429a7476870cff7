//! How much a command may use.

use serde::{Deserialize, Serialize};

/// Limits on memory, processes, disk and time. Zero means no limit, except for the wall time,
/// where it means the default of 300 seconds: a command always ends.
///
/// In JSON, a missing field has the value that [`ResourceLimits::default`] gives it, also when
/// other fields are present: stating a memory limit does not lose the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceLimits {
    /// Memory, in MiB.
    pub max_memory_mb: u64,
    /// Processes and threads at one time.
    pub max_pids: u32,
    /// What may be written, in MiB.
    pub max_disk_mb: u64,
    /// Processor time, in seconds.
    pub cpu_time_secs: u64,
    /// Wall time, in seconds.
    pub timeout_secs: u64,
}

/// Limits of which some are stated, to be laid over others.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StatedLimits {
    max_memory_mb: Option<u64>,
    max_pids: Option<u32>,
    max_disk_mb: Option<u64>,
    cpu_time_secs: Option<u64>,
    timeout_secs: Option<u64>,
}

/// The wall time of a command whose limits state none.
const DEFAULT_TIMEOUT_SECS: u64 = 300;

impl ResourceLimits {
    /// No limits but the default wall time.
    pub const fn unlimited() -> Self {
        Self {
            max_memory_mb: 0,
            max_pids: 0,
            max_disk_mb: 0,
            cpu_time_secs: 0,
            timeout_secs: 0,
        }
    }

    /// For untrusted code.
    pub const fn conservative() -> Self {
        Self {
            max_memory_mb: 512,
            max_pids: 64,
            max_disk_mb: 1024,
            cpu_time_secs: 60,
            timeout_secs: 120,
        }
    }

    /// For ordinary development.
    pub const fn moderate() -> Self {
        Self {
            max_memory_mb: 2048,
            max_pids: 256,
            max_disk_mb: 4096,
            cpu_time_secs: 300,
            timeout_secs: 600,
        }
    }

    /// For heavy builds.
    pub const fn generous() -> Self {
        Self {
            max_memory_mb: 8192,
            max_pids: 1024,
            max_disk_mb: 16384,
            cpu_time_secs: 0,
            timeout_secs: 3600,
        }
    }

    /// Sets the memory limit, in MiB.
    #[must_use]
    pub const fn with_memory_mb(mut self, mb: u64) -> Self {
        self.max_memory_mb = mb;
        self
    }

    /// Sets the limit on processes.
    #[must_use]
    pub const fn with_max_pids(mut self, pids: u32) -> Self {
        self.max_pids = pids;
        self
    }

    /// Sets the limit on what may be written, in MiB.
    #[must_use]
    pub const fn with_disk_mb(mut self, mb: u64) -> Self {
        self.max_disk_mb = mb;
        self
    }

    /// Sets the limit on processor time.
    #[must_use]
    pub const fn with_cpu_time_secs(mut self, secs: u64) -> Self {
        self.cpu_time_secs = secs;
        self
    }

    /// Sets the limit on wall time.
    #[must_use]
    pub const fn with_timeout_secs(mut self, secs: u64) -> Self {
        self.timeout_secs = secs;
        self
    }

    /// Whether any limit is stated.
    pub const fn has_limits(&self) -> bool {
        self.max_memory_mb > 0
            || self.max_pids > 0
            || self.max_disk_mb > 0
            || self.cpu_time_secs > 0
            || self.timeout_secs > 0
    }

    /// The wall time that applies.
    pub const fn effective_timeout_secs(&self) -> u64 {
        if self.timeout_secs > 0 {
            self.timeout_secs
        } else {
            DEFAULT_TIMEOUT_SECS
        }
    }

    /// The name of the first limit that is wider here than in `other`.
    pub(super) fn wider_than(&self, other: &Self) -> Option<&'static str> {
        let pairs = [
            ("max_memory_mb", self.max_memory_mb, other.max_memory_mb),
            ("max_pids", self.max_pids.into(), other.max_pids.into()),
            ("max_disk_mb", self.max_disk_mb, other.max_disk_mb),
            ("cpu_time_secs", self.cpu_time_secs, other.cpu_time_secs),
            (
                "timeout_secs",
                self.effective_timeout_secs(),
                other.effective_timeout_secs(),
            ),
        ];
        pairs
            .into_iter()
            .find(|(_, new, old)| *old != 0 && (*new == 0 || new > old))
            .map(|(name, _, _)| name)
    }
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self::unlimited().with_timeout_secs(DEFAULT_TIMEOUT_SECS)
    }
}

impl StatedLimits {
    /// The stated limits, and those of `base` where none is stated.
    pub(super) fn over(self, base: ResourceLimits) -> ResourceLimits {
        ResourceLimits {
            max_memory_mb: self.max_memory_mb.unwrap_or(base.max_memory_mb),
            max_pids: self.max_pids.unwrap_or(base.max_pids),
            max_disk_mb: self.max_disk_mb.unwrap_or(base.max_disk_mb),
            cpu_time_secs: self.cpu_time_secs.unwrap_or(base.cpu_time_secs),
            timeout_secs: self.timeout_secs.unwrap_or(base.timeout_secs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets() {
        let row = |l: ResourceLimits| {
            (
                l.max_memory_mb,
                l.max_pids,
                l.max_disk_mb,
                l.cpu_time_secs,
                l.timeout_secs,
            )
        };
        assert_eq!(row(ResourceLimits::default()), (0, 0, 0, 0, 300));
        assert_eq!(row(ResourceLimits::unlimited()), (0, 0, 0, 0, 0));
        assert_eq!(
            row(ResourceLimits::conservative()),
            (512, 64, 1024, 60, 120)
        );
        assert_eq!(row(ResourceLimits::moderate()), (2048, 256, 4096, 300, 600));
        assert_eq!(
            row(ResourceLimits::generous()),
            (8192, 1024, 16384, 0, 3600)
        );
        assert!(ResourceLimits::default().has_limits());
        assert!(!ResourceLimits::unlimited().has_limits());
        assert_eq!(ResourceLimits::unlimited().effective_timeout_secs(), 300);
    }

    #[test]
    fn item_26_each_limit_is_set_alone() {
        let unlimited = ResourceLimits::unlimited;
        let set = [
            (unlimited().with_memory_mb(7).max_memory_mb, 7),
            (unlimited().with_disk_mb(8).max_disk_mb, 8),
            (unlimited().with_cpu_time_secs(9).cpu_time_secs, 9),
            (unlimited().with_timeout_secs(10).timeout_secs, 10),
        ];
        for (value, expected) in set {
            assert_eq!(value, expected);
        }
        let undone = unlimited()
            .with_disk_mb(8)
            .with_cpu_time_secs(9)
            .with_disk_mb(0)
            .with_cpu_time_secs(0);
        assert_eq!(undone, unlimited());
    }

    #[test]
    fn item_26_a_partial_object_keeps_the_default_timeout() {
        let limits: ResourceLimits = serde_json::from_str(r#"{"max_memory_mb":64}"#).unwrap();
        assert_eq!(limits, ResourceLimits::default().with_memory_mb(64));
        assert_eq!(limits.timeout_secs, 300);
    }

    #[test]
    fn item_26_unknown_limits_are_refused() {
        assert!(serde_json::from_str::<ResourceLimits>(r#"{"max_memory":64}"#).is_err());
    }

    #[test]
    fn zero_is_the_widest() {
        let (none, some) = (ResourceLimits::unlimited(), ResourceLimits::conservative());
        assert_eq!(none.wider_than(&some), Some("max_memory_mb"));
        assert_eq!(some.wider_than(&none), None);
        // 0 seconds means 300, which is less than an hour.
        let hour = none.with_timeout_secs(3600);
        assert_eq!(none.wider_than(&hour), None);
        assert_eq!(hour.wider_than(&none), Some("timeout_secs"));
    }
}
