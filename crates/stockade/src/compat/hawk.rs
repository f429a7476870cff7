//! The Hawk-compatible API: modes, its configuration document, a shell command in a sandbox, and
//! what Hawk has around it.
//!
//! `docs/compat-apis.md` lists every symbol of Hawk's package and where it is here.
//!
//! | part | here | feature |
//! |---|---|---|
//! | modes, the configuration document | [`Mode`], [`SandboxConfig`], [`Config`] | |
//! | a command | [`wrap_command`], [`Config::run`] | |
//! | what this machine has | [`select_sandbox`], [`landlock_available`], [`Door::available`](super::Door::available) | |
//! | restrictions of this process | [`LandlockSandbox`], [`apply_seccomp`] | |
//! | Seatbelt | [`SeatbeltPolicy`] | |
//! | directories with a history | `SandboxManager` | `overlay` |
//! | a proxy | `NetworkProxy` | `network` |
//! | containers | `ContainerSandbox`, `DevEnvManager` | `container` |
//! | judging code | `new_code_verifier` | `verify` |
//! | inspecting text | `AdversaryInspector`, `EgressInspector` | `inspect` |
//!
//! # Differences
//! - The mode has an effect: `strict` can't write, `workspace` writes its directory and a private
//!   `/tmp` only. Credentials are hidden, and the environment is an allowlist.
//! - Where nothing can confine the command there is an error and no command.
//! - `chroot` is a root of the command's own with the system's directories only.
//! - A share of the CPU (`max_cpu_pct`) can't be held by the engine, so asking for one is an
//!   error, and the default configuration has none.
//! - What a document leaves out is not granted.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::path::{Path, PathBuf};
//! use stockade::compat::hawk::{SandboxConfig, wrap_command};
//!
//! let config = SandboxConfig {
//!     mode: "workspace".parse()?,
//!     workspace_dir: PathBuf::from("/home/me/project"),
//!     allow_network: false,
//! };
//! let wrapped = wrap_command("make test", &config, Path::new("/usr/local/bin/stockade"))?;
//! let status = std::process::Command::new(&wrapped.program)
//!     .args(&wrapped.args)
//!     .current_dir(&wrapped.cwd)
//!     .env_clear()
//!     .envs(&wrapped.env)
//!     .status()?;
//! # let _ = status;
//! # Ok(())
//! # }
//! ```

mod config;
mod confine;
#[cfg(feature = "container")]
mod container;
#[cfg(feature = "container")]
mod dev_env;
#[cfg(feature = "inspect")]
mod inspect;
#[cfg(feature = "overlay")]
mod manager;
mod mode;
#[cfg(feature = "network")]
mod proxy;
mod seatbelt;
mod select;
#[cfg(feature = "verify")]
mod verifier;
mod wrap;

pub use config::{Config, Kind, default_config};
pub use confine::{apply_seccomp, default_seccomp_profile};
#[cfg(feature = "container")]
pub use container::{
    CONTAINER_IMAGE_TAG, ContainerSandbox, ContainerSandboxError, default_container_image,
    gvisor_docker_args,
};
#[cfg(feature = "container")]
pub use dev_env::DevEnvManager;
#[cfg(feature = "inspect")]
pub use inspect::EgressInspector;
#[cfg(feature = "overlay")]
pub use manager::{SandboxManager, SandboxManagerError, SandboxState};
pub use mode::{Mode, context_with_mode, mode_from_context};
#[cfg(feature = "network")]
pub use proxy::{NetworkProxy, NetworkProxyError};
pub use seatbelt::{
    SeatbeltPolicy, default_hawk_policy, generate_seatbelt_profile, run_seatbelted,
};
#[cfg(feature = "container")]
pub use select::{docker_available, gvisor_available};
pub use select::{landlock_available, select_sandbox};
#[cfg(feature = "container")]
pub use stockade_container::{CachedImage, SwapRequest};
pub use stockade_engine::seatbelt::seatbelt_available;
pub use stockade_engine::{LandlockSandbox, SandboxSelection};
#[cfg(feature = "inspect")]
pub use stockade_inspect::{
    AdversaryInspector, Finding, FindingType, InspectionResult, ThreatLevel,
};
pub use stockade_policy::profile::Level as IsolationLevel;
#[cfg(feature = "network")]
pub use stockade_proxy::{
    ProxyConfig, ProxyLogEntry, ProxyMode, ProxyStats, default_development_config,
};
#[cfg(feature = "verify")]
pub use stockade_verify::{
    CodeVerifier, VerificationResult, Violation, ViolationType, format_result,
};
#[cfg(feature = "overlay")]
pub use stockade_workspace::Status;
#[cfg(feature = "verify")]
pub use verifier::new_code_verifier;
pub use wrap::{SandboxConfig, wrap_command};

/// What runs commands under a [`Config`].
pub use super::Door as Sandbox;
