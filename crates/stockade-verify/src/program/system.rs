//! Functions of the operating system, reached by whatever way: into other processes' memory, the
//! keyboard, stored secrets.

use super::judge::Judge;
use super::value::{Args, Kind, Value};
use crate::result::Span;
use crate::rule::Rule;
use crate::words::Words;

/// Functions that put code into memory or another process.
static TAMPERING: Words = Words::new("program/system tampering");

/// What a system's function is for, where that is one thing.
fn purpose(name: &str) -> Option<(Rule, &'static str)> {
    let plain = name.trim_end_matches(['A', 'W']);
    let tampers = TAMPERING.contains(&plain);
    if tampers {
        return Some((
            Rule::ProcessTamper,
            "puts code into memory or another process",
        ));
    }
    match plain {
        "GetAsyncKeyState" | "SetWindowsHookEx" | "GetKeyboardState" => {
            Some((Rule::Surveillance, "records what the user types"))
        }
        "CryptUnprotectData" | "CredEnumerate" | "MiniDumpWriteDump" | "LsaRetrievePrivateData" => {
            Some((Rule::CredentialRead, "reads stored credentials"))
        }
        "NtRaiseHardError"
        | "RtlSetProcessIsCritical"
        | "NtShutdownSystem"
        | "InitiateSystemShutdown" => Some((Rule::SystemStop, "stops the machine")),
        "BlockInput" => Some((Rule::ProcessTamper, "locks the user out")),
        "AmsiScanBuffer" | "EtwEventWrite" => Some((
            Rule::ProtectionOff,
            "is what protection hangs on; others only patch it",
        )),
        _ => None,
    }
}

impl Judge<'_> {
    /// A function of the system, called by its name: of a loaded library, of any object.
    pub(super) fn system_function(&mut self, name: &str, span: Span) {
        if !name.starts_with(|c: char| c.is_ascii_uppercase() || c == 'p' || c == 'm') {
            return;
        }
        if let Some((rule, what)) = purpose(name) {
            self.findings.add(rule, span, format!("`{name}` {what}"));
        }
    }

    /// `library.NewProc("VirtualAlloc")`: looked up to be called.
    pub(super) fn looks_up(&mut self, method: &str, args: &Args, span: Span) {
        let asks = matches!(
            method,
            "NewProc" | "MustFindProc" | "FindProc" | "GetProcAddress" | "func" | "Library"
        );
        if !asks || self.context.library {
            return;
        }
        for value in args.all() {
            if let Some(name) = value.exact() {
                self.system_function(name, span);
            }
            // `ffi.Library("kernel32", {VirtualAlloc: …})`
            if let Kind::Dict(pairs) = &value.kind {
                for (key, _) in pairs.iter().take(64) {
                    self.system_function(key.exact().unwrap_or_default(), span);
                }
            }
        }
    }

    /// `libc.mmap(0, n, 7, …)`: memory that can be written and run.
    pub(super) fn maps_code(&mut self, name: &str, args: &Args, span: Span) {
        let prot = match name {
            "mmap" | "mprotect" | "pkey_mprotect" => args.positional.get(2),
            _ => return,
        };
        let bits = prot.and_then(Value::as_int).unwrap_or(0);
        if bits & 0b110 == 0b110 {
            let reason = format!("`{name}` makes memory that can be run as code");
            self.findings.add(Rule::ProcessTamper, span, reason);
        }
    }
}
