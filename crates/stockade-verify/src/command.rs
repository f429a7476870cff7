//! A command about to be started: its words as one shell command, and the script it runs.

use crate::language::Language;
use crate::result::VerificationResult;
use crate::verifier::CodeVerifier;

impl CodeVerifier {
    /// Analyses a command given as its words, such as `["bash", "-c", "…"]`: the program, its
    /// arguments, and code among them in whatever language its interpreter takes.
    pub fn verify_command<S: AsRef<str>>(&self, words: &[S]) -> VerificationResult {
        let line: Vec<String> = words.iter().map(|word| quote(word.as_ref())).collect();
        self.verify_as(&line.join(" "), Language::Bash)
    }
}

/// A word as shell text that stands for exactly itself.
fn quote(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./=:,+@%^".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Which of a command's words is a file that it runs as a script: the first operand of an
/// interpreter, or the program itself if it is given by a path.
pub fn script_word<S: AsRef<str>>(words: &[S]) -> Option<usize> {
    let mut at = 0;
    loop {
        let program = words.get(at)?.as_ref();
        let name = program.rsplit('/').next().unwrap_or(program);
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        if matches!(
            name,
            "env" | "nohup" | "nice" | "sudo" | "doas" | "time" | "exec" | "setsid" | "stdbuf"
        ) {
            at += 1;
            while words
                .get(at)
                .is_some_and(|word| word.as_ref().starts_with('-') || word.as_ref().contains('='))
            {
                at += 1;
            }
            continue;
        }
        let interpreter = stockade_shell::is_shell(name)
            || matches!(
                stem,
                "python" | "pypy" | "node" | "nodejs" | "deno" | "bun" | "ts-node" | "tsx"
            );
        if !interpreter {
            return program.contains('/').then_some(at);
        }
        return operand(words, at + 1, stem);
    }
}

/// The first operand of an interpreter; `None` if code comes from an option or standard input.
fn operand<S: AsRef<str>>(words: &[S], from: usize, interpreter: &str) -> Option<usize> {
    let shell = stockade_shell::is_shell(interpreter);
    let mut at = from;
    while let Some(word) = words.get(at).map(AsRef::as_ref) {
        if word == "--" {
            return (at + 1 < words.len()).then_some(at + 1);
        }
        if word == "run" && matches!(interpreter, "deno" | "bun") {
            at += 1;
            continue;
        }
        let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty()) else {
            return (word != "-").then_some(at);
        };
        let code = match interpreter {
            _ if shell => !option.starts_with('-') && option.contains('c'),
            "python" | "pypy" => !option.starts_with('-') && option.contains(['c', 'm']),
            _ => matches!(option, "e" | "p" | "-eval" | "-print" | "pe"),
        };
        if code {
            return None;
        }
        let takes_value = match interpreter {
            _ if shell => {
                option.ends_with(['o', 'O']) || matches!(option, "-rcfile" | "-init-file")
            }
            "python" | "pypy" => matches!(option, "W" | "X"),
            _ => matches!(option, "r" | "-require" | "-import" | "-loader"),
        };
        at += 1 + usize::from(takes_value);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_among_the_words() {
        fn script(line: &str) -> Option<&str> {
            let words: Vec<&str> = line.split(' ').collect();
            script_word(&words).map(|at| words[at])
        }
        assert_eq!(script("bash -x -o pipefail a.sh b"), Some("a.sh"));
        assert_eq!(script("python3.11 -u -W ignore a.py"), Some("a.py"));
        assert_eq!(script("env X=1 node --require x a.js"), Some("a.js"));
        assert_eq!(script("./a.sh x"), Some("./a.sh"));
        assert_eq!(script("bash -lc x"), None);
        assert_eq!(script("python -m pytest"), None);
        assert_eq!(script("node -e x"), None);
        assert_eq!(script("ls a.sh"), None);
        assert_eq!(script("sh"), None);
        assert_eq!(script_word::<&str>(&[]), None);
    }

    #[test]
    fn words_stay_words() {
        let verifier = CodeVerifier::new();
        assert!(
            verifier
                .verify_command(&["echo", "$(rm -rf /)", "; rm -rf /", "it's"])
                .safe
        );
        assert!(!verifier.verify_command(&["bash", "-c", "rm -rf '/'"]).safe);
        assert!(
            !verifier
                .verify_command(&["python3", "-c", "import shutil\nshutil.rmtree('/')"])
                .safe
        );
        assert!(!verifier.verify_command(&["rm", "-rf", "/"]).safe);
    }
}
