//! The flags that make a policy: shared by `run`, `explain` and `policy show`, so that one can
//! ask about the very run one is about to start.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Flags in the words of the user; text that the policy crate parses stays text here.
#[derive(Debug, Default, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that is there or not"
)]
pub(crate) struct PolicyArgs {
    /// Nothing is writable but a private /tmp
    #[arg(long, group = "base_policy", help_heading = "Policy")]
    pub(crate) read_only: bool,

    /// The current directory and a private /tmp are writable; no network (the default)
    #[arg(long, group = "base_policy", help_heading = "Policy")]
    pub(crate) workspace_write: bool,

    /// No confinement at all: the command runs as you
    #[arg(long, group = "base_policy", help_heading = "Policy")]
    pub(crate) danger_full_access: bool,

    /// Profile in TOML, or a policy in JSON
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    pub(crate) policy: Option<PathBuf>,

    /// Directory the command starts in and the policy is about
    #[arg(short = 'C', long, value_name = "DIR", help_heading = "Policy")]
    pub(crate) cwd: Option<PathBuf>,

    /// Make a path or glob writable
    #[arg(short, long, value_name = "PATH", help_heading = "Files")]
    pub(crate) write: Vec<OsString>,

    /// Make a path or glob readable
    #[arg(short, long, value_name = "PATH", help_heading = "Files")]
    pub(crate) read: Vec<OsString>,

    /// Neither read nor write a path or glob
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    pub(crate) deny: Vec<OsString>,

    /// Hide a path or glob
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    pub(crate) deny_read: Vec<OsString>,

    /// Keep a path or glob as it is
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    pub(crate) deny_write: Vec<OsString>,

    /// What is readable to begin with: everything but the sensitive paths, or system directories
    #[arg(long, value_name = "BASE", value_enum, help_heading = "Files")]
    pub(crate) base: Option<Base>,

    /// Let git write configuration keys that can run code
    #[arg(long, help_heading = "Files")]
    pub(crate) git_config: bool,

    /// No network but a private loopback (the default), or all of it
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        conflicts_with = "allow",
        help_heading = "Network"
    )]
    pub(crate) net: Option<NetMode>,

    /// Let connections to a host through; ports 443 and 80 unless one is given
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Network")]
    pub(crate) allow: Vec<OsString>,

    /// Refuse connections to a host, whatever else allows them
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Network")]
    pub(crate) block: Vec<OsString>,

    /// Pin a name to an address, which this grants, private or not
    #[arg(long, value_name = "NAME=IP", help_heading = "Network")]
    pub(crate) resolve: Vec<OsString>,

    /// Let the command connect to this Unix socket
    #[arg(long, value_name = "PATH", help_heading = "Network")]
    pub(crate) unix: Vec<OsString>,

    /// Let the command reach this port of the host's loopback
    #[arg(long, value_name = "PORT", value_parser = port(), help_heading = "Network")]
    pub(crate) host_port: Vec<u16>,

    /// Let the host reach this port inside
    #[arg(long, value_name = "PORT", value_parser = port(), help_heading = "Network")]
    pub(crate) expose: Vec<u16>,

    /// Make a device usable
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    pub(crate) device: Vec<OsString>,

    /// Set a variable
    #[arg(long, value_name = "K=V", help_heading = "Environment")]
    pub(crate) env: Vec<OsString>,

    /// Pass a variable on as it is
    #[arg(long, value_name = "NAME", help_heading = "Environment")]
    pub(crate) keep_env: Vec<OsString>,

    /// Pass an open file descriptor on
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(i32).range(0..),
        help_heading = "Environment"
    )]
    pub(crate) pass_fd: Vec<i32>,

    /// mem=512M, pids=64, cpu=60s, fsize=1G, tmp=64M or output=1M
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Limits")]
    pub(crate) limit: Vec<OsString>,

    /// Wall-time limit, such as 30s or 5m; exit code 124 when it is reached
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub(crate) timeout: Option<OsString>,

    /// off, default, enhanced, container or maximum
    #[arg(long, value_name = "LEVEL", help_heading = "Isolation")]
    pub(crate) level: Option<OsString>,

    /// Use this backend and no other
    #[arg(long, value_name = "NAME", help_heading = "Isolation")]
    pub(crate) backend: Option<OsString>,

    /// Refuse to start unless this clause of the policy is fully enforced
    #[arg(long, value_name = "CLAUSE", help_heading = "Isolation")]
    pub(crate) require: Vec<OsString>,

    /// Start even if parts of the policy can't be enforced here; the report names them
    #[arg(long, help_heading = "Isolation")]
    pub(crate) best_effort: bool,

    /// System call filter: strict, permissive or logging
    #[arg(long, value_name = "PROFILE", help_heading = "Isolation")]
    pub(crate) seccomp: Option<OsString>,

    /// Let the command make namespaces of its own, which weakens the boundary
    #[arg(long, help_heading = "Isolation")]
    pub(crate) danger_nested_namespaces: bool,
}

/// What is readable to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Base {
    Host,
    Minimal,
}

/// The two network modes that are not a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetMode {
    Off,
    Open,
}

fn port() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..)
}
