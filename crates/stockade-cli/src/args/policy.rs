//! The flags that make a policy: shared by `run`, `explain` and `policy show`, so that one can
//! ask about the very run one is about to start.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, RangedI64ValueParser, TypedValueParser};
use stockade_policy::profile::{
    Backend, Base, BasePolicy, Clause, Flags, HomeMode, Level, LimitSetting, NetworkMode,
    ProfileName, SeccompMode, UnknownWord, parse_duration,
};

use super::HostArgs;

/// The words of `--net`; the third mode, a list, is what `--allow` makes.
const NET_WORDS: [&str; 2] = [NetworkMode::Off.as_str(), NetworkMode::Open.as_str()];

/// Flags in the words of the user. Names of hosts, limits and levels are read right here, so that
/// a slip is a usage error; paths stay text, since what they mean depends on where one stands.
#[derive(Clone, Debug, Default, Args)]
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

    /// Profile by its name; `stockade policy list` shows them
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with_all = ["policy", "base_policy"],
        help_heading = "Policy"
    )]
    pub(crate) profile: Option<ProfileName>,

    /// Policy in JSON in this variable, and variables for the command in those whose names begin
    /// with it: how a program hands over a policy that an argument would show to everyone
    #[arg(long, value_name = "NAME", hide = true, conflicts_with = "base_policy")]
    pub(crate) policy_env: Option<OsString>,

    /// Working directory, and the workspace of the policy
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

    /// Make a path or glob read-only
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    pub(crate) deny_write: Vec<OsString>,

    /// What is readable to begin with: everything but the sensitive paths, or system directories
    #[arg(long, value_name = "BASE", value_parser = words::<Base>(Base::WORDS), help_heading = "Files")]
    pub(crate) base: Option<Base>,

    /// Writes to the home directory: drop them at the end, keep or refuse them [copy]
    #[arg(long, value_name = "MODE", value_parser = words::<HomeMode>(HomeMode::WORDS), help_heading = "Files")]
    pub(crate) home: Option<HomeMode>,

    /// Let git write configuration keys that can run code
    #[arg(long, help_heading = "Files")]
    pub(crate) git_config: bool,

    /// No network but a private loopback (the default), or all of it
    #[arg(
        long,
        value_name = "MODE",
        value_parser = words::<NetworkMode>(&NET_WORDS),
        conflicts_with_all = ["allow", "danger_allow"],
        help_heading = "Network"
    )]
    pub(crate) net: Option<NetworkMode>,

    #[command(flatten)]
    pub(crate) hosts: HostArgs,

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

    /// mem=512M, pids=64, cpu=60s, fsize=1G, tmp=64M, disk=10G or output=1M
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Limits")]
    pub(crate) limit: Vec<LimitSetting>,

    /// Wall-time limit, such as 30s or 5m; exit code 124 when it is reached
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Limits")]
    pub(crate) timeout: Option<Duration>,

    /// How strong the isolation must be; falling below it is an error
    #[arg(
        long,
        value_name = "LEVEL",
        value_parser = words::<Level>(Level::WORDS),
        help_heading = "Isolation"
    )]
    pub(crate) level: Option<Level>,

    /// Use this backend and no other
    #[arg(
        long,
        value_name = "NAME",
        value_parser = words::<Backend>(Backend::WORDS),
        help_heading = "Isolation"
    )]
    pub(crate) backend: Option<Backend>,

    /// Refuse to start unless this clause of the policy is fully enforced
    #[arg(
        long,
        value_name = "CLAUSE",
        value_parser = words::<Clause>(Clause::WORDS),
        help_heading = "Isolation"
    )]
    pub(crate) require: Vec<Clause>,

    /// Start even if parts of the policy can't be enforced here; the report names them
    #[arg(long, help_heading = "Isolation")]
    pub(crate) best_effort: bool,

    /// Which system calls are refused
    #[arg(
        long,
        value_name = "PROFILE",
        value_parser = words::<SeccompMode>(SeccompMode::WORDS),
        help_heading = "Isolation"
    )]
    pub(crate) seccomp: Option<SeccompMode>,

    /// Let the command make namespaces of its own, which weakens the boundary
    #[arg(long, help_heading = "Isolation")]
    pub(crate) danger_nested_namespaces: bool,

    /// Hidden paths of the agent that is to run; no flag sets them.
    #[arg(skip)]
    pub(crate) reveal: Vec<OsString>,
}

impl PolicyArgs {
    /// The same in the words of the policy crate. What is left out is not about the policy:
    /// `--policy`, `--profile`, `--policy-env`, `--cwd`, `--pass-fd`, and what is revealed to an agent.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            base_policy: self.base_policy(),
            base: self.base,
            read: self.read.clone(),
            write: self.write.clone(),
            deny: self.deny.clone(),
            deny_read: self.deny_read.clone(),
            deny_write: self.deny_write.clone(),
            net: self.net,
            allow: self.hosts.allowed().cloned().collect(),
            presets: self.hosts.presets().collect(),
            block: self.hosts.block.clone(),
            resolve: self.hosts.resolve.clone(),
            net_methods: self.hosts.net_methods,
            danger_hidden_names: self.hosts.danger_hidden_names,
            mask: self.hosts.mask.clone(),
            unix: self.unix.clone(),
            host_port: self.host_port.clone(),
            expose: self.expose.clone(),
            device: self.device.clone(),
            env: self.env.clone(),
            keep_env: self.keep_env.clone(),
            limit: self.limit.clone(),
            timeout: self.timeout,
            level: self.level,
            backend: self.backend,
            require: self.require.clone(),
            best_effort: self.best_effort,
            seccomp: self.seccomp,
            home: self.home,
            git_config: self.git_config,
            danger_nested_namespaces: self.danger_nested_namespaces,
        }
    }

    fn base_policy(&self) -> Option<BasePolicy> {
        [
            (self.read_only, BasePolicy::ReadOnly),
            (self.workspace_write, BasePolicy::WorkspaceWrite),
            (self.danger_full_access, BasePolicy::DangerFullAccess),
        ]
        .into_iter()
        .find_map(|(typed, policy)| typed.then_some(policy))
    }
}

fn port() -> RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(1..)
}

/// One word of a list, which completions and refusals show.
pub(super) fn words<T>(known: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = UnknownWord> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(known).try_map(|word| word.parse::<T>())
}
