//! Against a real engine of the test's own: containers that stay, images, and what goes wrong.
#![cfg(target_os = "linux")]
#![expect(
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "one engine for one long story; a test may stop at what it did not expect"
)]

mod faults;
mod images;
mod scene;
mod serve;
