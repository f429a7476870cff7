//! What well-known programs miss inside, told when one of them fails.

use std::ffi::OsStr;
use std::path::Path;

/// What a program reads or does that a sandbox keeps from it.
struct Program {
    names: &'static [&'static str],
    /// Variables that it reads and that are credentials, sockets or search paths.
    variables: &'static [&'static str],
    /// What switches its own sandbox off, which can't be made inside.
    own_sandbox: Option<&'static str>,
}

const fn reads(names: &'static [&'static str], variables: &'static [&'static str]) -> Program {
    Program {
        names,
        variables,
        own_sandbox: None,
    }
}

const fn confines(names: &'static [&'static str], switch: &'static str) -> Program {
    Program {
        names,
        variables: &[],
        own_sandbox: Some(switch),
    }
}

const PROGRAMS: &[Program] = &[
    reads(&["aider", "llm"], &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]),
    reads(
        &["aws"],
        &["AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SECRET_ACCESS_KEY"],
    ),
    confines(&["bwrap"], "leave bwrap out"),
    confines(
        &["chrome", "chromium", "chromium-browser", "google-chrome"],
        "start it with --no-sandbox",
    ),
    reads(
        &["claude"],
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
        ],
    ),
    Program {
        names: &["codex"],
        variables: &["OPENAI_API_KEY", "OPENAI_BASE_URL"],
        own_sandbox: Some("start it with --sandbox danger-full-access"),
    },
    reads(&["gemini"], &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
    reads(&["gh"], &["GH_TOKEN", "GITHUB_TOKEN"]),
    reads(&["git", "rsync", "scp", "ssh"], &["SSH_AUTH_SOCK"]),
    reads(&["kubectl"], &["KUBECONFIG"]),
    reads(&["node"], &["NODE_PATH"]),
    reads(&["npm", "pnpm", "yarn"], &["NODE_AUTH_TOKEN", "NPM_TOKEN"]),
    reads(&["opencode"], &["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]),
    reads(&["psql"], &["PGPASSWORD"]),
    reads(&["python", "python3"], &["PYTHONPATH"]),
    reads(
        &["qwen"],
        &["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"],
    ),
    reads(&["twine"], &["TWINE_PASSWORD", "TWINE_USERNAME"]),
    reads(&["vault"], &["VAULT_TOKEN"]),
];

/// What may be why `program` failed; `removed` are the variables that it did not get.
pub(super) fn about(program: &OsStr, removed: &[String]) -> Vec<String> {
    let name = Path::new(program).file_name().and_then(OsStr::to_str);
    let Some(name) = name else {
        return Vec::new();
    };
    let found = PROGRAMS.iter().find(|known| known.names.contains(&name));
    let Some(known) = found else {
        return Vec::new();
    };
    let missed = known.variables.iter();
    let missed = missed.filter(|variable| removed.iter().any(|removed| removed == *variable));
    let mut advice: Vec<String> = missed
        .map(|variable| {
            format!(
                "`{name}` reads {variable}, which was not handed on; --keep-env {variable} keeps it"
            )
        })
        .collect();
    advice.extend(known.own_sandbox.map(|switch| {
        format!("`{name}` can't make a sandbox of its own inside: {switch}, this one holds")
    }));
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_program_reads_is_named() {
        let removed = ["ANTHROPIC_API_KEY".to_owned(), "OTHER_TOKEN".to_owned()];
        let told = about(OsStr::new("/usr/bin/claude"), &removed);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("--keep-env ANTHROPIC_API_KEY"));
        assert!(about(OsStr::new("make"), &removed).is_empty());
        assert!(about(OsStr::new("chromium"), &[])[0].contains("--no-sandbox"));
    }

    #[test]
    fn each_program_is_listed_once_and_in_order() {
        let names: Vec<&str> = PROGRAMS
            .iter()
            .flat_map(|known| known.names)
            .copied()
            .collect();
        let mut distinct = names.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len());
    }
}
