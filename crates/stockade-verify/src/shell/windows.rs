//! Windows programs that attacks live off, met in commands that programs start.

use stockade_shell::Command;

use super::Judge;
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn windows(&mut self, name: &str, command: &Command) {
        let name = name.strip_suffix(".exe").unwrap_or(name);
        let args: Vec<String> = command
            .args()
            .iter()
            .map(|word| word.text.to_ascii_lowercase())
            .collect();
        let any = |parts: &[&str]| {
            args.iter()
                .any(|arg| parts.iter().any(|part| arg.contains(part)))
        };
        let span = command.span;
        match name {
            "rundll32" | "regsvr32" | "mshta" | "installutil" | "msbuild" | "regasm" | "cmstp" => {
                self.add(
                    Rule::ShellEscape,
                    span,
                    format!("`{name}` runs code from a library or page"),
                );
            }
            "powershell" | "pwsh" => {
                let hides = any(&["-enc", "-nop ", "hidden", "bypass", "frombase64string"]);
                let fetches = any(&[
                    "downloadstring",
                    "downloadfile",
                    "webclient",
                    "invoke-webrequest",
                    "iwr",
                    "invoke-expression",
                    "iex",
                ]);
                if fetches || any(&["-enc"]) {
                    self.add(
                        Rule::DownloadRun,
                        span,
                        "fetches and runs code out of sight",
                    );
                } else if hides {
                    self.add(
                        Rule::ObfuscatedCommand,
                        span,
                        "runs out of sight, past the execution policy",
                    );
                }
            }
            "certutil" if any(&["urlcache", "-decode", "/decode"]) => {
                self.add(Rule::DownloadRun, span, "fetches or decodes a payload")
            }
            "bitsadmin" if any(&["/transfer", "/addfile"]) => {
                self.add(Rule::DownloadRun, span, "fetches a payload")
            }
            "schtasks" if any(&["/create"]) => {
                self.add(Rule::PersistenceCron, span, "schedules a task")
            }
            "reg" if any(&["add"]) && any(&["currentversion\\run", "currentversion\\\\run"]) => {
                self.add(
                    Rule::PersistenceStartup,
                    span,
                    "adds itself to what starts with the session",
                );
            }
            "reg" if any(&["save", "export"]) && any(&["sam", "security"]) => {
                self.add(Rule::CredentialRead, span, "copies the password store")
            }
            "vssadmin" | "wbadmin" | "wmic" if any(&["delete"]) => {
                self.add(Rule::DestroyData, span, "deletes backups")
            }
            "wevtutil" if any(&["cl", "clear-log"]) => {
                self.add(Rule::TraceRemoval, span, "clears the event log")
            }
            "net" | "net1" if any(&["/add"]) && any(&["user", "localgroup"]) => {
                self.add(Rule::AccountChange, span, "adds an account")
            }
            "netsh" if any(&["advfirewall", "firewall"]) && any(&["off", "disable"]) => {
                self.add(Rule::ProtectionOff, span, "switches the firewall off")
            }
            "format" if any(&["c:", "d:"]) && !any(&["--help"]) => {
                self.add(Rule::DestroyDisk, span, "formats a drive")
            }
            "cipher" if any(&["/w"]) => self.add(Rule::TraceRemoval, span, "overwrites free space"),
            "rd" | "rmdir" | "del"
                if any(&["/s"]) && any(&["c:\\", "c:/", "%systemroot%", "%userprofile%"]) =>
            {
                self.add(Rule::DestroyFiles, span, "deletes a drive or a home");
            }
            _ => {}
        }
    }

    /// Code on the command line of interpreters that are not known better.
    pub(super) fn foreign_code(&mut self, name: &str, command: &Command) {
        const INTERPRETERS: &[&str] = &[
            "julia",
            "octave",
            "octave-cli",
            "jrunscript",
            "jjs",
            "R",
            "Rscript",
            "elvish",
            "guile",
            "osascript",
            "tclsh",
            "groovy",
            "scala",
            "expect",
            "ghci",
            "erl",
            "elixir",
            "irb",
            "sbcl",
            "swift",
        ];
        if !INTERPRETERS.contains(&name) {
            return;
        }
        let args = command.args();
        for (at, word) in args.iter().enumerate() {
            if matches!(word.text.as_str(), "-e" | "-c" | "--eval" | "-E" | "--exec") {
                if let Some(code) = args.get(at + 1) {
                    self.analysis.nested(
                        crate::analysis::Nested::Foreign(None),
                        &code.text,
                        command.span,
                        None,
                        self.findings,
                    );
                }
            }
        }
    }
}
