//! The rules: their stable ids, and what `rules/rules.toml` says of each.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::result::{Confidence, Severity, ViolationType};

macro_rules! rules {
    ($($name:ident => $id:literal,)*) => {
        /// A rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Rule {
            $($name,)*
        }

        impl Rule {
            /// All rules, by id.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// The stable id.
            pub(crate) const fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)*
                }
            }
        }
    };
}

rules! {
    AccountChange => "account-change",
    AccountRead => "account-read",
    BlockedFunction => "blocked-function",
    BlockedModule => "blocked-module",
    BlockedPattern => "blocked-pattern",
    CodeDynamic => "code-dynamic",
    CodeHidden => "code-hidden",
    ContainerEscape => "container-escape",
    CredentialRead => "credential-read",
    Deserialize => "deserialize",
    DestroyData => "destroy-data",
    DestroyDisk => "destroy-disk",
    DestroyFiles => "destroy-files",
    DestroyHistory => "destroy-history",
    DownloadRun => "download-run",
    ExecProcess => "exec-process",
    ExecShell => "exec-shell",
    Exfiltration => "exfiltration",
    FileDelete => "file-delete",
    FileMode => "file-mode",
    FileWrite => "file-write",
    ForkBomb => "fork-bomb",
    KernelChange => "kernel-change",
    LowLevel => "low-level",
    NetworkAccess => "network-access",
    NetworkFlood => "network-flood",
    NetworkHost => "network-host",
    NetworkListen => "network-listen",
    ObfuscatedCommand => "obfuscated-command",
    ObfuscatedName => "obfuscated-name",
    ObfuscatedText => "obfuscated-text",
    PersistenceCron => "persistence-cron",
    PersistenceGitHook => "persistence-git-hook",
    PersistenceInstallHook => "persistence-install-hook",
    PersistencePreload => "persistence-preload",
    PersistenceShellRc => "persistence-shell-rc",
    PersistenceSshKey => "persistence-ssh-key",
    PersistenceStartup => "persistence-startup",
    PrivilegeChange => "privilege-change",
    ProcessTamper => "process-tamper",
    ProtectionOff => "protection-off",
    ReverseShell => "reverse-shell",
    SandboxGadget => "sandbox-gadget",
    ShellEscape => "shell-escape",
    SqlInjection => "sql-injection",
    Surveillance => "surveillance",
    SystemStop => "system-stop",
    SystemSurvey => "system-survey",
    TraceRemoval => "trace-removal",
    Unreadable => "unreadable",
}

/// What kind of text a finding stands in, where that changes how much it weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Setting {
    /// A script of many different commands, which administers or builds something.
    Long,
    /// A file that declares itself a script.
    Script,
}

/// What is known about a rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RuleInfo {
    /// The stable id.
    #[serde(skip)]
    pub id: &'static str,
    /// What its violations are about.
    #[serde(rename = "type")]
    pub kind: ViolationType,
    /// The weight of its violations, unless the circumstances make one lighter.
    pub severity: Severity,
    /// How sure it is.
    pub confidence: Confidence,
    /// Where its errors become warnings.
    #[serde(default)]
    pub softened_in: Vec<Setting>,
    /// What it finds, in one line.
    pub title: String,
    /// What would be safe.
    pub advice: String,
}

/// Every rule, ordered by id.
pub fn rules() -> impl Iterator<Item = &'static RuleInfo> {
    Rule::ALL.iter().map(|rule| rule.info())
}

impl Rule {
    pub(crate) fn info(self) -> &'static RuleInfo {
        &catalogue()[self as usize]
    }

    pub(crate) fn from_id(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.id() == id)
    }
}

fn catalogue() -> &'static [RuleInfo] {
    static CATALOGUE: OnceLock<Vec<RuleInfo>> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        let mut parsed: HashMap<String, RuleInfo> =
            toml::from_str(include_str!("../rules/rules.toml")).unwrap_or_default();
        let fallback = |id| RuleInfo {
            id,
            kind: ViolationType::DangerousPattern,
            severity: Severity::Error,
            confidence: Confidence::Medium,
            softened_in: Vec::new(),
            title: id.to_owned(),
            advice: String::new(),
        };
        let info = |rule: &Rule| {
            let mut info = parsed
                .remove(rule.id())
                .unwrap_or_else(|| fallback(rule.id()));
            info.id = rule.id();
            info
        };
        Rule::ALL.iter().map(info).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_file_and_the_rules_agree() {
        let parsed: HashMap<String, RuleInfo> =
            toml::from_str(include_str!("../rules/rules.toml")).unwrap();
        let mut ids: Vec<_> = parsed.keys().map(String::as_str).collect();
        ids.sort_unstable();
        let expected: Vec<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert_eq!(ids, expected);
        for info in rules() {
            assert!(
                !info.advice.is_empty() && !info.title.ends_with('.'),
                "{}",
                info.id
            );
        }
    }
}
