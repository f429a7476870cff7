//! Functions of the operating system, reached by whatever way: into other processes' memory, the
//! keyboard, stored secrets; and memory taken without measure.

use super::judge::Judge;
use super::value::{Args, Kind, Value};
use crate::result::Span;
use crate::rule::Rule;

/// Bytes that no text, list or buffer of an ordinary program has.
const HUGE: i64 = 1 << 30;

/// What a system's function is for, where that is one thing.
fn purpose(name: &str) -> Option<(Rule, &'static str)> {
    let plain = name.trim_end_matches(['A', 'W']);
    let tampers = matches!(
        plain,
        "CreateRemoteThread"
            | "CreateRemoteThreadEx"
            | "NtAllocateVirtualMemory"
            | "NtCreateThreadEx"
            | "NtMapViewOfSection"
            | "NtQueueApcThread"
            | "NtUnmapViewOfSection"
            | "NtWriteVirtualMemory"
            | "QueueUserAPC"
            | "RtlCreateUserThread"
            | "RtlMoveMemory"
            | "SetThreadContext"
            | "VirtualAlloc"
            | "VirtualAllocEx"
            | "VirtualProtect"
            | "VirtualProtectEx"
            | "WriteProcessMemory"
            | "ZwUnmapViewOfSection"
            | "process_vm_writev"
            | "memfd_create"
    );
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
        if !asks || self.library {
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

    /// A number called as a function: `cast(address, CFUNCTYPE(…))`, `CFUNCTYPE(…)(address)`.
    pub(super) fn calls_address(&mut self, path: &str, args: &Args, span: Span) {
        let function = |value: &Value| {
            matches!(
                value.kind,
                Kind::Function(_) | Kind::Method(_) | Kind::Partial(_)
            )
        };
        let prototype =
            |value: &Value| value.as_api().is_some_and(|path| path.contains("FUNCTYPE"));
        let cast = path.ends_with("cast");
        if args.first().is_some_and(function) || cast && !args.all().any(prototype) {
            return;
        }
        let reason = format!("`{path}` makes a function of an address");
        self.findings
            .weigh(self.brief, Rule::ProcessTamper, span, reason);
    }

    /// `"x" * 10**10`
    pub(crate) fn repeats(&mut self, left: &Value, right: &Value, all: Option<i64>, span: Span) {
        if let Some(all) = all {
            return self.takes(all, span);
        }
        let (one, times) = match (&left.kind, &right.kind) {
            (Kind::Text(text), Kind::Int(times)) | (Kind::Int(times), Kind::Text(text)) => {
                (text.len(), *times)
            }
            (Kind::List(items), Kind::Int(times)) | (Kind::Int(times), Kind::List(items)) => {
                (items.len(), *times)
            }
            _ => return,
        };
        let whole = i64::try_from(one).unwrap_or(i64::MAX).saturating_mul(times);
        self.takes(whole, span);
    }

    /// So much memory at once.
    pub(super) fn takes(&mut self, bytes: i64, span: Span) {
        if bytes >= HUGE {
            let reason = "takes a gigabyte of memory or more at once";
            self.findings
                .weigh(self.brief, Rule::ForkBomb, span, reason);
        }
    }
}
