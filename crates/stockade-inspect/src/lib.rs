//! wip
mod finding;
mod normalize;
mod peek;
mod redact;
mod secrets;
mod trigger;
