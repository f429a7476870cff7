//! The library from outside: real directories, real stores.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

mod crash;
mod crowd;
mod damage;
mod imports;
mod odd_files;
mod overlays;
mod round_trip;
mod stage;
