//! By what a file is known to be unchanged, and when that can be believed.

use crate::codec::Reader;
use crate::files::Stat;
use crate::tree::Time;

/// The parts of a [`Stat`] that must not have changed. Not the device: its number may change when
/// the machine is started again.
pub(crate) const KEY: usize = 64;

pub(crate) fn key(stat: &Stat) -> [u8; KEY] {
    let mut key = [0; KEY];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        key[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&stat.ino.to_le_bytes());
    put(&stat.mode.to_le_bytes());
    put(&stat.nlink.to_le_bytes());
    put(&stat.uid.to_le_bytes());
    put(&stat.gid.to_le_bytes());
    put(&stat.rdev.to_le_bytes());
    put(&stat.size.to_le_bytes());
    for time in [stat.mtime, stat.ctime] {
        put(&time.seconds.to_le_bytes());
        put(&time.nanos.to_le_bytes());
    }
    key
}

/// What [`key`] was made of, on this device.
pub(super) fn stat(key: &[u8], dev: u64) -> Option<Stat> {
    let mut from = Reader::new(key);
    let u32 = |from: &mut Reader<'_>| from.u32_fixed().ok();
    let u64 = |from: &mut Reader<'_>| from.u64_fixed().ok();
    let time = |from: &mut Reader<'_>| {
        Some(Time {
            seconds: from.u64_fixed().ok()?.cast_signed(),
            nanos: from.u32_fixed().ok()?,
        })
    };
    Some(Stat {
        dev,
        ino: u64(&mut from)?,
        mode: u32(&mut from)?,
        nlink: u32(&mut from)?,
        uid: u32(&mut from)?,
        gid: u32(&mut from)?,
        rdev: u64(&mut from)?,
        size: u64(&mut from)?,
        mtime: time(&mut from)?,
        ctime: time(&mut from)?,
    })
}

/// The same where the device does not matter.
pub(crate) fn stat_of_key(key: &[u8; KEY]) -> Option<Stat> {
    stat(key, 0)
}

/// Whether a change after `looked` would certainly show. The change time can't be set by programs;
/// where it has a fraction of a second, the file system keeps fractions, as fine as the kernel's
/// clock ticks. Where it has none it may be one that keeps (two) seconds. A time in the future,
/// after the clock was set back, is never certain.
pub(super) fn is_certain(stat: &Stat, looked: Time) -> bool {
    const TICKS: u128 = 100_000_000;
    const SECONDS: u128 = 2_000_000_000;
    let margin = if stat.ctime.nanos == 0 {
        SECONDS
    } else {
        TICKS
    };
    nanos(stat.ctime) + margin.cast_signed() < nanos(looked)
        && (stat.ctime.nanos != 0 || nanos(stat.mtime) + margin.cast_signed() < nanos(looked))
}

fn nanos(time: Time) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

/// This moment, by the clock that file times come from.
pub(crate) fn now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    Time {
        seconds: now.tv_sec,
        nanos: u32::try_from(now.tv_nsec).unwrap_or(0),
    }
}

/// This moment, by the finest clock: no file that was changed before has a later time.
pub(crate) fn exactly_now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Time {
        seconds: now.tv_sec,
        nanos: u32::try_from(now.tv_nsec).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanos: u32) -> Time {
        Time { seconds, nanos }
    }

    #[test]
    fn what_changed_a_moment_ago_is_not_believed() {
        let changed = |time| Stat {
            ctime: time,
            mtime: time,
            ..Stat::default()
        };
        let looked = at(1000, 500_000_000);
        assert!(is_certain(&changed(at(999, 5)), looked));
        assert!(!is_certain(&changed(at(1000, 450_000_000)), looked));
        assert!(!is_certain(&changed(at(1000, 500_000_001)), looked));
        // Whole seconds: perhaps a file system that keeps no fractions.
        assert!(!is_certain(&changed(at(999, 0)), looked));
        assert!(is_certain(&changed(at(998, 0)), looked));
        // The clock was set back.
        assert!(!is_certain(&changed(at(2000, 1)), looked));
    }

    #[test]
    fn a_key_is_all_but_the_device() {
        let whole = Stat {
            dev: 1,
            ino: u64::MAX,
            mode: 3,
            nlink: 4,
            uid: 5,
            gid: 6,
            rdev: 7,
            size: 8,
            mtime: at(-9, 10),
            ctime: at(11, 12),
        };
        assert_eq!(stat(&key(&whole), 1), Some(whole));
        assert_eq!(stat(&key(&whole)[1..], 1), None);
    }
}
