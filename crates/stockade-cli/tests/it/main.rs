//! The command line, seen from outside: what it prints, where, and how it ends.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]
#![cfg(target_os = "linux")]

mod backends;
mod bad_input;
mod basics;
mod containers;
mod context;
mod crowd;
mod doctor;
mod explain;
mod front;
mod inspect;
mod network;
mod policy;
mod proxy;
mod run;
mod tiers;
mod transform;
mod verify;
mod ws;
mod ws_differences;
mod ws_lives;
mod ws_places;
