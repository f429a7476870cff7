//! Hawk's verifier, with its lists filled in.

use stockade_verify::CodeVerifier;

/// Go packages that step around the language.
const BLOCKED_MODULES: [&str; 2] = ["syscall", "unsafe"];

/// Functions that run text as code or as a command.
const BLOCKED_FUNCTIONS: [&str; 6] = [
    "__import__",
    "eval",
    "exec",
    "os.system",
    "pickle.load",
    "pickle.loads",
];

/// A shell started by a call that need not start one.
const BLOCKED_PATTERN: &str = r"subprocess\.(call|Popen|run)\(.*shell\s*=\s*True";

/// A verifier whose lists have Hawk's defaults, beside the rules that every verifier has.
///
/// Hawk's list of commands (`rm`, `rmdir`, `kill`, `format`) is left out: the rules judge what
/// these commands are about to remove or end, and a list would refuse every use of them.
pub fn new_code_verifier() -> CodeVerifier {
    let mut verifier = CodeVerifier::new();
    for module in BLOCKED_MODULES {
        verifier.add_blocked_module(module);
    }
    for function in BLOCKED_FUNCTIONS {
        verifier.add_blocked_function(function);
    }
    let added = verifier.add_blocked_pattern(BLOCKED_PATTERN);
    debug_assert!(added.is_ok(), "the pattern is a regular expression");
    verifier
}
