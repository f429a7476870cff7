//! The keys of a profile file: the one list that the reader, the schema and the messages share.

use stockade_rules::Access;

use super::limits::LimitKey;

/// A key of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    /// The table it stands in; empty at the top.
    pub(super) table: &'static str,
    /// Its name.
    pub(super) name: &'static str,
    /// What it sets.
    pub(super) setting: Setting,
    /// What a project's file may do with it.
    pub(super) project: Project,
    /// The flag that does the same, for hints.
    pub(super) flag: Option<&'static str>,
    /// What it means, for the schema.
    pub(super) doc: &'static str,
}

/// What a key sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    Allow,
    Backend,
    Base,
    BestEffort,
    Block,
    Devices,
    EnvKeep,
    EnvSet,
    Expose,
    Extends,
    GitConfig,
    HiddenNames,
    Home,
    HostPort,
    Level,
    Limit(LimitKey),
    Mask,
    Methods,
    Nested,
    NetworkMode,
    Paths(Access),
    Require,
    Resolve,
    SeccompBlock,
    SeccompMode,
    Unix,
    Version,
}

/// What a project's file may do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Project {
    /// It can only narrow.
    Free,
    /// It may, as long as the value is no wider than what is there.
    Compared,
    /// It grants, so it may not.
    Refused,
}

/// A table that may be written as one word instead: `network = "off"`.
pub(super) const SHORT: &[(&str, &str)] = &[("network", "mode"), ("seccomp", "profile")];

use Project::{Compared, Free, Refused};

const fn key(
    (table, name): (&'static str, &'static str),
    setting: Setting,
    project: Project,
    flag: Option<&'static str>,
    doc: &'static str,
) -> Key {
    Key {
        table,
        name,
        setting,
        project,
        flag,
        doc,
    }
}

/// Every key.
#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    key(("", "version"), Setting::Version, Free, None,
        "The version of this format: 1."),
    key(("", "extends"), Setting::Extends, Compared, None,
        "A built-in (read-only, workspace-write, minimal, danger-full-access) or another file, \
         relative to this one; what stands here comes on top."),
    key(("", "level"), Setting::Level, Compared, Some("--level"),
        "How strong the isolation must be."),
    key(("", "backend"), Setting::Backend, Refused, Some("--backend"),
        "What must enforce the policy."),
    key(("", "require"), Setting::Require, Free, Some("--require"),
        "Clauses that must hold fully, or the command is not started."),
    key(("", "best_effort"), Setting::BestEffort, Compared, Some("--best-effort"),
        "Run even where the policy can't be enforced in full."),
    key(("", "git_config"), Setting::GitConfig, Compared, Some("--git-config"),
        "Let git's configuration inside writable roots be written."),
    key(("", "home"), Setting::Home, Compared, Some("--home"),
        "What becomes of writes to the home directory: copy (a private layer takes them and is dropped \
         at the end), keep (the layer is there again in the next run in this workspace) or read-only \
         (they are refused)."),
    key(("", "devices"), Setting::Devices, Refused, Some("--device"),
        "Device nodes beyond the harmless ones."),
    key(("", "danger_nested_namespaces"), Setting::Nested, Compared,
        Some("--danger-nested-namespaces"),
        "Let the command make namespaces of its own."),
    key(("filesystem", "base"), Setting::Base, Compared, Some("--base"),
        "What is readable to begin with: everything but the sensitive paths, or system \
         directories only."),
    key(("filesystem", "read"), Setting::Paths(Access::Read), Refused, Some("--read"),
        "Paths or patterns that may be read."),
    key(("filesystem", "write"), Setting::Paths(Access::Write), Refused, Some("--write"),
        "Paths or patterns that may be read and written."),
    key(("filesystem", "deny"), Setting::Paths(Access::Deny), Free, Some("--deny"),
        "Paths or patterns that may be neither read nor written."),
    key(("filesystem", "deny_read"), Setting::Paths(Access::DenyRead), Free, Some("--deny-read"),
        "Paths or patterns that are hidden: neither read nor written."),
    key(("filesystem", "deny_write"), Setting::Paths(Access::DenyWrite), Free,
        Some("--deny-write"),
        "Paths or patterns that may not be written."),
    key(("network", "mode"), Setting::NetworkMode, Compared, Some("--net"),
        "How much of the network there is. Not needed beside `allow`."),
    key(("network", "allow"), Setting::Allow, Refused, Some("--allow"),
        "HOST or HOST:PORT that may be reached; ports 80 and 443 when none is given."),
    key(("network", "block"), Setting::Block, Free, Some("--block"),
        "HOST or HOST:PORT that may not be reached; wins over `allow`."),
    key(("network", "resolve"), Setting::Resolve, Refused, Some("--resolve"),
        "NAME=ADDRESS: what a name means inside, private addresses included."),
    key(("network", "methods"), Setting::Methods, Compared, Some("--net-methods"),
        "Which HTTP methods pass: all, or those that only ask (GET, HEAD, OPTIONS); then what is no \
         HTTP is refused."),
    key(("network", "danger_hidden_names"), Setting::HiddenNames, Compared,
        Some("--danger-hidden-names"),
        "Let connections pass that do not show which name they are for: TLS without a server name \
         or with an encrypted one, HTTP/2 without TLS."),
    key(("network", "mask"), Setting::Mask, Refused, Some("--mask"),
        "NAME=HOST[,HOST]: a variable that holds a placeholder inside; the proxy puts its value into \
         headers of requests to these hosts."),
    key(("network", "unix"), Setting::Unix, Refused, Some("--unix"),
        "Unix sockets of the host that may be connected to."),
    key(("network", "expose"), Setting::Expose, Refused, Some("--expose"),
        "Ports on which the host reaches servers inside."),
    key(("network", "host_port"), Setting::HostPort, Refused, Some("--host-port"),
        "Ports of the host's loopback that can be reached from inside."),
    key(("environment", "set"), Setting::EnvSet, Refused, Some("--env"),
        "Variables and their values."),
    key(("environment", "keep"), Setting::EnvKeep, Refused, Some("--keep-env"),
        "Variables to hand on from the host."),
    key(("limits", "mem"), Setting::Limit(LimitKey::Memory), Compared, Some("--limit"),
        "Memory, such as \"512M\"."),
    key(("limits", "pids"), Setting::Limit(LimitKey::Pids), Compared, Some("--limit"),
        "Processes and threads."),
    key(("limits", "cpu"), Setting::Limit(LimitKey::CpuTime), Compared, Some("--limit"),
        "CPU time, such as \"60s\"."),
    key(("limits", "fsize"), Setting::Limit(LimitKey::FileSize), Compared, Some("--limit"),
        "Size of one file."),
    key(("limits", "tmp"), Setting::Limit(LimitKey::TmpSize), Compared, Some("--limit"),
        "Size of the private /tmp."),
    key(("limits", "disk"), Setting::Limit(LimitKey::Disk), Compared, Some("--limit"),
        "Free space that a writable file system may lose."),
    key(("limits", "output"), Setting::Limit(LimitKey::Output), Compared, Some("--limit"),
        "Bytes on stdout and stderr."),
    key(("limits", "files"), Setting::Limit(LimitKey::OpenFiles), Compared, Some("--limit"),
        "Open files of a process."),
    key(("limits", "timeout"), Setting::Limit(LimitKey::WallTime), Compared, Some("--timeout"),
        "Wall time of the run, such as \"5m\"."),
    key(("seccomp", "profile"), Setting::SeccompMode, Compared, Some("--seccomp"),
        "Which filter of system calls."),
    key(("seccomp", "block"), Setting::SeccompBlock, Free, None,
        "System calls to refuse as well."),
];

/// The names of the tables.
pub(super) fn tables() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    KEYS.iter()
        .map(|key| key.table)
        .filter(move |table| std::mem::replace(&mut last, table) != *table)
}

/// The keys of a table.
pub(super) fn keys_of(table: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.table == table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_grouped_and_unique() {
        let tables: Vec<_> = tables().collect();
        assert_eq!(
            tables,
            ["filesystem", "network", "environment", "limits", "seccomp"]
        );
        let mut names: Vec<_> = KEYS.iter().map(|key| (key.table, key.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), KEYS.len());
    }

    #[test]
    fn limits_are_spelt_as_in_flags() {
        for key in KEYS {
            if let Setting::Limit(limit) = key.setting {
                assert_eq!(key.name, limit.as_str());
            }
        }
        assert_eq!(keys_of("limits").count(), LimitKey::ALL.len());
    }

    #[test]
    fn every_key_that_grants_is_kept_from_projects() {
        for key in KEYS {
            let narrows = matches!(
                key.setting,
                Setting::Version
                    | Setting::Require
                    | Setting::Block
                    | Setting::SeccompBlock
                    | Setting::Paths(Access::Deny | Access::DenyRead | Access::DenyWrite)
            );
            assert_eq!(key.project == Free, narrows, "{}", key.name);
        }
    }
}
