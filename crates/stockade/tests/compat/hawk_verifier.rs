//! Hawk's verifier.

use stockade::compat::hawk::{
    CodeVerifier, VerificationResult, Violation, ViolationType, format_result, new_code_verifier,
};

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("additions", additions),
    ("languages", languages),
    ("lists", lists),
    ("report", report),
    ("verify", verify),
    ("violations", violations),
];

fn lists() {
    let mut verifier: CodeVerifier = new_code_verifier();
    assert!(verifier.blocked_modules.contains(&"unsafe".to_owned()));
    assert!(verifier.blocked_functions.contains(&"eval".to_owned()));
    assert_eq!(verifier.blocked_patterns.len(), 1);
    assert_eq!(verifier.allowed_paths, ["/tmp", "/var/tmp"]);
    // The lists have an effect, and ordinary code passes.
    for (code, language, safe) in [
        ("eval(text)\n", "python", false),
        ("from os import system as s\ns('ls')\n", "python", false),
        (
            "import subprocess\nsubprocess.run('ls', shell=True)\n",
            "python",
            false,
        ),
        (
            "package main\nimport \"unsafe\"\nvar _ = unsafe.Pointer(nil)\n",
            "go",
            false,
        ),
        ("model.eval()\nprint('{}'.format(1))\n", "python", true),
        ("rm -r build\n", "bash", true),
    ] {
        let result = verifier.verify(code, language);
        assert_eq!(result.safe, safe, "{code}: {result:?}");
    }
    let write = "open('/srv/data/f', 'w')\n";
    let before = verifier.verify_python(write).len();
    verifier.allowed_paths.push("/srv/data".to_owned());
    assert!(verifier.verify_python(write).len() < before);
}

fn additions() {
    let mut verifier = new_code_verifier();
    let code = "import requests\nrequests.get('x')\nhelper()\nMARK = 1\n";
    assert!(verifier.verify(code, "python").safe);
    let mut blocked = 0;
    let mut now = |verifier: &CodeVerifier| {
        let before = blocked;
        blocked = verifier.verify_python(code).len();
        blocked > before
    };
    now(&verifier);
    verifier.add_blocked_module("requests");
    assert!(now(&verifier), "the module");
    verifier.add_blocked_function("helper");
    assert!(now(&verifier), "the function");
    verifier.add_blocked_pattern("MARK = [0-9]").unwrap();
    assert!(now(&verifier), "the pattern");
    assert!(verifier.add_blocked_pattern("(").is_err());
}

fn languages() {
    let verifier = new_code_verifier();
    assert!(!verifier.verify_python("exec(x)\n").is_empty());
    assert!(!verifier.verify_bash("rm -rf \"/\"\n").is_empty());
    let go = "package main\nimport \"os/exec\"\nfunc main() { exec.Command(\"sh\").Run() }\n";
    assert!(!verifier.verify_go(go).is_empty());
}

fn verify() {
    let verifier = new_code_verifier();
    let result: VerificationResult = verifier.verify("x = 1\neval(x)\n", "py");
    assert!(!result.safe);
    assert_eq!(result.language, "python");
    assert_eq!(result.violations[0].line, 2);
    let safe = verifier.verify("x = 1\n", "python");
    assert!(safe.safe && safe.violations.is_empty() && safe.warnings.is_empty());
}

fn violations() {
    let found = new_code_verifier().verify_python("import os\nos.system('rm -rf /')\n");
    let first: &Violation = &found[0];
    assert_eq!(first.line, 2);
    assert!(first.code.contains("os.system") && !first.reason.is_empty());
    assert_eq!(first.severity.as_str(), "error");
    let words = [
        "blocked_function",
        "blocked_module",
        "system_call",
        "dangerous_pattern",
        "file_access",
    ];
    let kind: ViolationType = first.kind;
    assert!(words.contains(&kind.as_str()), "{kind:?}");
}

fn report() {
    let verifier = new_code_verifier();
    let unsafe_text = format_result(&verifier.verify("eval(x)\n", "python"));
    assert!(unsafe_text.contains("UNSAFE") && unsafe_text.contains("L1"));
    let safe_text = format_result(&verifier.verify("x = 1\n", "python"));
    assert!(safe_text.contains(": SAFE"), "{safe_text}");
}
