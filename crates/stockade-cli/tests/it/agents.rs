//! Real agents, which `make test-agents` installs, driven by a model on loopback.

mod definitions;
mod fixture;
mod hooks;
mod inside;
