//! Which language a text is in.

/// Languages that are analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// Bash and POSIX shells.
    Bash,
    /// Go.
    Go,
    /// JavaScript, JSX included.
    JavaScript,
    /// Python 3, and 2 as far as the grammar goes.
    Python,
    /// TypeScript.
    TypeScript,
}

impl Language {
    /// All of them, in alphabetic order.
    pub const ALL: [Self; 5] = [
        Self::Bash,
        Self::Go,
        Self::JavaScript,
        Self::Python,
        Self::TypeScript,
    ];

    /// The language's name in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Go => "go",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::TypeScript => "typescript",
        }
    }

    /// The language with this name, in any case; the usual short names are known.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "bash" | "sh" | "shell" | "dash" | "ksh" | "zsh" => Some(Self::Bash),
            "go" | "golang" => Some(Self::Go),
            "javascript" | "js" | "jsx" | "node" | "mjs" | "cjs" => Some(Self::JavaScript),
            "python" | "py" | "python2" | "python3" => Some(Self::Python),
            "typescript" | "ts" | "tsx" => Some(Self::TypeScript),
            _ => None,
        }
    }

    /// The language of a file by its name.
    pub fn from_file_name(name: &str) -> Option<Self> {
        match name {
            ".bashrc" | ".profile" | ".bash_profile" | ".zshrc" | "PKGBUILD" => {
                return Some(Self::Bash);
            }
            "wscript" | "SConstruct" | "SConscript" => return Some(Self::Python),
            _ => {}
        }
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "py" | "pyw" | "pyi" | "pyx" => Some(Self::Python),
            "go" => Some(Self::Go),
            "sh" | "bash" | "ksh" | "zsh" | "dash" | "bats" => Some(Self::Bash),
            "js" | "mjs" | "cjs" | "jsx" => Some(Self::JavaScript),
            "ts" | "tsx" | "mts" | "cts" => Some(Self::TypeScript),
            _ => None,
        }
    }

    /// The language of a text by its first line (`#!`), or else by the look of it.
    pub fn from_content(text: &str) -> Option<Self> {
        let start = text.trim_start_matches('\u{feff}');
        if let Some(line) = start.strip_prefix("#!") {
            let line = line.lines().next().unwrap_or_default();
            let words = line.split([' ', '\t', '/']).filter(|word| !word.is_empty());
            return words.rev().find_map(|word| {
                let stem = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
                match stem {
                    "pypy" | "ipython" => Some(Self::Python),
                    "deno" | "bun" => Some(Self::TypeScript),
                    _ => Self::from_name(stem),
                }
            });
        }
        looks_like(start)
    }
}

/// `lua -e '…'`, `import -window root`: a program's name and an option.
fn is_command(line: &str) -> bool {
    let mut words = line.split(' ');
    let program = words.next().unwrap_or_default();
    let option = words.next().and_then(|word| word.strip_prefix('-'));
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    !program.is_empty()
        && program.chars().all(named)
        && option
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '-'))
}

/// Counts lines that only one language would have, over the head of a text.
fn looks_like(text: &str) -> Option<Language> {
    let mut scores = [0i32; 5];
    if text.lines().next().is_some_and(is_command) {
        scores[Language::Bash as usize] += 8;
    }
    for line in text.lines().take(200) {
        let line = line.trim();
        let mut add = |language: Language, weight| scores[language as usize] += weight;
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| line.starts_with(prefix));
        if starts(&["package "]) && !line.ends_with(';')
            || starts(&["func ", "import ("])
            || line.contains(" := ")
        {
            add(Language::Go, 2);
        }
        if (starts(&[
            "def ", "class ", "if ", "elif ", "for ", "while ", "with ", "try:",
        ]) && line.ends_with(':'))
            || (starts(&["import ", "from "]) && !line.contains(['\'', '"', ';', '{', '(']))
            || starts(&["@", "print(", "raise ", "except"])
        {
            add(Language::Python, 2);
        }
        if starts(&[
            "const ",
            "let ",
            "var ",
            "function ",
            "export ",
            "import {",
            "async function",
            "module.exports",
            "})",
        ]) || line.contains("=> {")
            || line.contains("require(")
            || line.contains("console.log(")
        {
            add(
                Language::JavaScript,
                if line.starts_with("export ") && !line.ends_with([';', '{']) {
                    0
                } else {
                    2
                },
            );
        }
        if starts(&["interface ", "type ", "declare ", "import type "])
            && line.ends_with(['{', ';'])
        {
            add(Language::TypeScript, 3);
        }
        if starts(&[
            "if [", "fi", "done", "esac", "then", "echo ", "sudo ", "cd ", "export ", "set -",
            "curl ", "rm ", "#!/bin/", "apt", "mkdir ",
        ]) || line.ends_with("; then")
            || line.ends_with("; do")
        {
            add(Language::Bash, 2);
        }
    }
    let [_, _, javascript, _, typescript] = &mut scores;
    if *typescript > 0 && *javascript > 0 {
        *typescript += *javascript;
    }
    let best = Language::ALL
        .into_iter()
        .max_by_key(|language| scores[*language as usize])?;
    (scores[best as usize] > 0).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name() {
        assert_eq!(Language::from_name("Golang"), Some(Language::Go));
        assert_eq!(Language::from_name("cobol"), None);
        assert_eq!(
            Language::from_file_name("a.b.TSX"),
            Some(Language::TypeScript)
        );
        assert_eq!(Language::from_file_name("Makefile"), None);
    }

    #[test]
    fn by_first_line() {
        assert_eq!(
            Language::from_content("#!/usr/bin/env -S python3.11 -u\n"),
            Some(Language::Python)
        );
        assert_eq!(
            Language::from_content("#! /bin/bash -e\n"),
            Some(Language::Bash)
        );
        assert_eq!(Language::from_content("#!/usr/bin/perl\n"), None);
    }

    #[test]
    fn by_look() {
        assert_eq!(
            Language::from_content("import os\n\ndef f(x):\n    pass\n"),
            Some(Language::Python)
        );
        assert_eq!(
            Language::from_content("package main\n\nfunc main() {\n\tx := 1\n}\n"),
            Some(Language::Go)
        );
        assert_eq!(
            Language::from_content("const fs = require('fs');\nfs.x();\n"),
            Some(Language::JavaScript)
        );
        assert_eq!(
            Language::from_content("interface A {\n  b: string;\n}\nconst a = 1;\n"),
            Some(Language::TypeScript)
        );
        assert_eq!(
            Language::from_content("cd /tmp && ls\nrm -rf build\n"),
            Some(Language::Bash)
        );
        for command in [
            "lua -e 'require(\"socket\")'",
            "import -window root x.png",
            "node -e 'console.log(1)'",
        ] {
            assert_eq!(Language::from_content(command), Some(Language::Bash));
        }
        assert_eq!(Language::from_content("lorem ipsum"), None);
    }
}
