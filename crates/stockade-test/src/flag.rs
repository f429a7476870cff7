//! The flags of `stockade run` as values.
//!
//! One description drives both doors of the product: it renders to the command line, and it is
//! serialised for a driver program that speaks to the library. Text may hold the placeholders of
//! [`World::expand`](crate::world::World::expand).

use serde::{Deserialize, Serialize};

use crate::world::World;

/// One flag of `stockade run`. Grouped as the table of flags is.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "flag", content = "value", rename_all = "kebab-case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the driver must handle every flag; a new one should break its build"
)]
pub enum Flag {
    /// `--read-only`
    ReadOnly,
    /// `--workspace-write`
    WorkspaceWrite,
    /// `--danger-full-access`
    DangerFullAccess,
    /// `--policy FILE`
    Policy(String),
    /// `--cwd DIR`
    Cwd(String),
    /// `--write PATH`
    Write(String),
    /// `--read PATH`
    Read(String),
    /// `--deny PATH`
    Deny(String),
    /// `--deny-read PATH`
    DenyRead(String),
    /// `--deny-write PATH`
    DenyWrite(String),
    /// `--base host|minimal`
    Base(Base),
    /// `--net off|open`
    Net(Net),
    /// `--allow HOST[:PORT]`
    Allow(String),
    /// `--block HOST[:PORT]`
    Block(String),
    /// `--resolve NAME=IP`
    Resolve(String),
    /// `--net-methods WORD`
    NetMethods(String),
    /// `--mask NAME=HOST`
    Mask(String),
    /// `--upstream URL`
    Upstream(String),
    /// `--unix PATH`
    Unix(String),
    /// `--host-port PORT`
    HostPort(String),
    /// `--expose PORT`
    Expose(String),
    /// `--device PATH`
    Device(String),
    /// `--env K=V`
    Env(String),
    /// `--keep-env NAME`
    KeepEnv(String),
    /// `--pass-fd N`
    PassFd(u32),
    /// `--limit NAME=VALUE`
    Limit(Limit),
    /// `--timeout DURATION`
    Timeout(String),
    /// `--level LEVEL`
    Level(String),
    /// `--backend NAME`
    Backend(String),
    /// `--require CLAUSE`
    Require(String),
    /// `--best-effort`
    BestEffort,
    /// `--seccomp strict|permissive|logging`
    Seccomp(String),
    /// `--git-config`: git configuration may change freely.
    GitConfig,
    /// `--home copy|read-only`
    Home(String),
    /// `--danger-nested-namespaces`: the command may make namespaces of its own.
    NestedNamespaces,
    /// `--danger-hidden-names`
    HiddenNames,
    /// `--overlay`: changes go to a layer over the host's directories.
    Overlay,
    /// `--commit=always`: the overlay's changes are applied at the end, however the command ends.
    Commit,
    /// `--explain`
    Explain,
    /// `--report FILE`
    Report(String),
    /// `--json`
    Json,
    /// `--dry-run`
    DryRun,
}

/// What is readable to begin with.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "the two words of the flag")]
pub enum Base {
    /// Everything but the sensitive paths.
    Host,
    /// System directories only.
    Minimal,
}

/// The two network modes that have a word of their own.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "the two words of the flag")]
pub enum Net {
    /// No network but a private loopback.
    Off,
    /// The host's network.
    Open,
}

/// One resource limit, with its value as the user types it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "limit", content = "value", rename_all = "kebab-case")]
#[expect(clippy::exhaustive_enums, reason = "as for Flag")]
pub enum Limit {
    /// `mem=512M`
    Mem(String),
    /// `pids=64`
    Pids(u32),
    /// `cpu=60s`
    Cpu(String),
    /// `fsize=1G`
    Fsize(String),
    /// `tmp=64M`
    Tmp(String),
    /// `disk=1G`
    Disk(String),
    /// `output=1M`
    Output(String),
}

impl Flag {
    /// The flag as command-line arguments, placeholders expanded.
    pub fn arguments(&self, world: &World) -> Vec<String> {
        let with = |name: &str, value: &str| vec![name.to_owned(), world.expand(value)];
        let alone = |name: &str| vec![name.to_owned()];
        match self {
            Self::ReadOnly => alone("--read-only"),
            Self::WorkspaceWrite => alone("--workspace-write"),
            Self::DangerFullAccess => alone("--danger-full-access"),
            Self::Policy(file) => with("--policy", file),
            Self::Cwd(dir) => with("--cwd", dir),
            Self::Write(path) => with("--write", path),
            Self::Read(path) => with("--read", path),
            Self::Deny(path) => with("--deny", path),
            Self::DenyRead(path) => with("--deny-read", path),
            Self::DenyWrite(path) => with("--deny-write", path),
            Self::Base(Base::Host) => with("--base", "host"),
            Self::Base(Base::Minimal) => with("--base", "minimal"),
            Self::Net(Net::Off) => with("--net", "off"),
            Self::Net(Net::Open) => with("--net", "open"),
            Self::Allow(host) => with("--allow", host),
            Self::Block(host) => with("--block", host),
            Self::Resolve(pin) => with("--resolve", pin),
            Self::NetMethods(which) => with("--net-methods", which),
            Self::Mask(mask) => with("--mask", mask),
            Self::Upstream(url) => with("--upstream", url),
            Self::Unix(path) => with("--unix", path),
            Self::HostPort(port) => with("--host-port", port),
            Self::Expose(port) => with("--expose", port),
            Self::Device(path) => with("--device", path),
            Self::Env(pair) => with("--env", pair),
            Self::KeepEnv(name) => with("--keep-env", name),
            Self::PassFd(fd) => with("--pass-fd", &fd.to_string()),
            Self::Limit(limit) => with("--limit", &limit.text()),
            Self::Timeout(duration) => with("--timeout", duration),
            Self::Level(level) => with("--level", level),
            Self::Backend(name) => with("--backend", name),
            Self::Require(clause) => with("--require", clause),
            Self::BestEffort => alone("--best-effort"),
            Self::Seccomp(profile) => with("--seccomp", profile),
            Self::GitConfig => alone("--git-config"),
            Self::Home(mode) => with("--home", mode),
            Self::NestedNamespaces => alone("--danger-nested-namespaces"),
            Self::HiddenNames => alone("--danger-hidden-names"),
            Self::Overlay => alone("--overlay"),
            Self::Commit => alone("--commit=always"),
            Self::Explain => alone("--explain"),
            Self::Report(file) => with("--report", file),
            Self::Json => alone("--json"),
            Self::DryRun => alone("--dry-run"),
        }
    }

    /// The same flag with its placeholders expanded, for the library driver.
    #[must_use]
    pub fn expanded(&self, world: &World) -> Self {
        let text = |value: &str| world.expand(value);
        match self {
            Self::Policy(file) => Self::Policy(text(file)),
            Self::Cwd(dir) => Self::Cwd(text(dir)),
            Self::Write(path) => Self::Write(text(path)),
            Self::Read(path) => Self::Read(text(path)),
            Self::Deny(path) => Self::Deny(text(path)),
            Self::DenyRead(path) => Self::DenyRead(text(path)),
            Self::DenyWrite(path) => Self::DenyWrite(text(path)),
            Self::Mask(mask) => Self::Mask(text(mask)),
            Self::Upstream(url) => Self::Upstream(text(url)),
            Self::Unix(path) => Self::Unix(text(path)),
            Self::Device(path) => Self::Device(text(path)),
            Self::Env(pair) => Self::Env(text(pair)),
            Self::Report(file) => Self::Report(text(file)),
            Self::Allow(host) => Self::Allow(text(host)),
            Self::Block(host) => Self::Block(text(host)),
            Self::Resolve(pin) => Self::Resolve(text(pin)),
            Self::HostPort(port) => Self::HostPort(text(port)),
            Self::Expose(port) => Self::Expose(text(port)),
            other => other.clone(),
        }
    }
}

impl Limit {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Mem(value) => format!("mem={value}"),
            Self::Pids(value) => format!("pids={value}"),
            Self::Cpu(value) => format!("cpu={value}"),
            Self::Fsize(value) => format!("fsize={value}"),
            Self::Tmp(value) => format!("tmp={value}"),
            Self::Disk(value) => format!("disk={value}"),
            Self::Output(value) => format!("output={value}"),
        }
    }
}
