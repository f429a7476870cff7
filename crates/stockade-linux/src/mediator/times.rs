//! Times of files: neither a name nor content, but Landlock does not keep them.

use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;

use super::caller::Caller;
use super::place::Object;
use super::{Answer, Worker};

/// What the second number of an old call counts; the first is seconds always.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// There is no second number: `utime(2)`.
    Second,
    Microsecond,
}

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: UTIME_NOW as _,
};

impl Worker<'_, '_> {
    /// `utimensat(2)`; without a path it is about the descriptor.
    pub(super) fn set_times(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        times: u64,
        flags: u64,
    ) -> Result<Answer, Errno> {
        let object = if path == 0 {
            self.object_behind(caller, directory)?
        } else {
            self.object_at(caller, directory, path, flags)?
        };
        let times = match times {
            0 => [NOW; 2],
            address => {
                let mut fields = [[0; 8]; 4];
                caller.bytes(address, fields.as_flattened_mut())?;
                let [a, b, c, d] = fields.map(i64::from_ne_bytes);
                [(a, b), (c, d)].map(|(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec })
            }
        };
        self.change_times(caller, &object, times)
    }

    /// `utime(2)`, `utimes(2)`, `futimesat(2)`.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn set_old_times(
        &mut self,
        caller: &Caller,
        directory: u64,
        path: u64,
        times: u64,
        unit: Unit,
    ) -> Result<Answer, Errno> {
        let object = self.object_at(caller, directory, path, 0)?;
        let times = match (times, unit) {
            (0, _) => [NOW; 2],
            (address, Unit::Second) => {
                let mut fields = [[0; 8]; 2];
                caller.bytes(address, fields.as_flattened_mut())?;
                fields
                    .map(i64::from_ne_bytes)
                    .map(|tv_sec| Timespec { tv_sec, tv_nsec: 0 })
            }
            (address, Unit::Microsecond) => {
                let mut fields = [[0; 8]; 4];
                caller.bytes(address, fields.as_flattened_mut())?;
                let [a, b, c, d] = fields.map(i64::from_ne_bytes);
                if [b, d].iter().any(|micros| !(0..1_000_000).contains(micros)) {
                    return Err(Errno::INVAL);
                }
                [(a, b), (c, d)].map(|(tv_sec, micros)| Timespec {
                    tv_sec,
                    tv_nsec: micros * 1000,
                })
            }
        };
        self.change_times(caller, &object, times)
    }

    fn change_times(
        &mut self,
        caller: &Caller,
        object: &Object,
        [last_access, last_modification]: [Timespec; 2],
    ) -> Result<Answer, Errno> {
        self.judge_attribute(caller, object)?;
        let times = Timestamps {
            last_access,
            last_modification,
        };
        let own = &self.shared.own_descriptors;
        rustix::fs::utimensat(own, object.number(), &times, AtFlags::empty())?;
        Ok(Answer::Value(0))
    }
}
