//! Containers as sandboxes: Docker and Podman by their socket, gVisor as their runtime.
//!
//! | part | does |
//! |---|---|
//! | [`DockerBackend`] | carries out a plan of Stockade in a container, with the same view, report and exit codes |
//! | [`ContainerSandbox`] | a container that stays, for many commands; its image can be swapped under it |
//! | [`DevEnvManager`] | images built once per project, kept and known again by what they are made of |
//! | [`Images`] | images with no registry: from a directory, an archive, or the host's own programs |
//!
//! Every container is hardened alike ([`settings`]): no network, no capability, no new privileges,
//! our filter, a read-only root, limits, the caller's user, an unique name and an owner's label; the
//! engine's own socket is never inside. Whoever may speak to that socket is root on the host, so
//! nothing of what runs inside may decide what is sent to it: requests are made of the plan alone.
//!
//! Only this crate speaks to an engine. It owns a private single-threaded runtime and blocks.
#![cfg(target_os = "linux")]

mod backend;
mod devenv;
mod engine;
mod entry;
pub mod guard;
mod image;
mod podman;
mod pump;
mod request;
mod sandbox;
pub mod settings;
mod usage;
mod words;

pub use backend::DockerBackend;
pub use devenv::{CachedImage, DevEnvError, DevEnvManager, SwapRequest, Teller};
pub use engine::{Engine, EngineError};
pub use image::{ImageInfo, Images};
pub use sandbox::{ContainerError, ContainerSandbox, ExecOutput};
