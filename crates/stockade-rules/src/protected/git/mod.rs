//! What git reads, parsed as git does, and judged by what it makes git do.

pub mod config;
pub mod index;
mod keys;
pub mod link;
pub mod object;
pub mod redirect;
pub mod sequencer;
pub mod todo;
mod values;
mod words;

pub use config::ConfigContext;
pub use keys::{KEYS, Key, Value, entries_for};
pub use words::split_command_line;
