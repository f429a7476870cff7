//! Real agents, which `make test-agents` installs, driven by a model on loopback.

mod fixture;
mod inside;
