//! Code in languages without a grammar here (Perl, Ruby, PHP, Lua, awk, SQL): strings and calls.
//!
//! Judged by what its string literals hold and which calls stand beside them. Weaker than parsing;
//! reported with the same rules.

use stockade_shell::Language;

use crate::analysis::Analysis;
use crate::files::{Files, Speaker, Writing};
use crate::findings::Findings;
use crate::hosts;
use crate::paths::Place;
use crate::result::Span;
use crate::rule::Rule;

/// Judges a text in a foreign language. Findings have the span of the whole text.
pub(crate) fn judge(
    language: Option<Language>,
    text: &str,
    analysis: &Analysis<'_>,
    findings: &mut Findings,
) {
    let span = Span::new(0, text.len());
    let lower = text.to_ascii_lowercase();
    if language == Some(Language::Sql) {
        return sql(&lower, span, findings);
    }
    let socket = [
        "socket",
        "fsockopen",
        "tcpsocket",
        "/inet/",
        "pfsockopen",
        "stream_socket_client",
        "connect(",
        "net.dial",
        "java.net",
    ]
    .iter()
    .any(|mark| lower.contains(mark));
    let runs = [
        "exec",
        "system",
        "popen",
        "spawn",
        "shell_exec",
        "passthru",
        "proc_open",
        "`",
        "os.execute",
        "io.popen",
        "|&",
        "processbuilder",
        "runtime.getruntime",
    ]
    .iter()
    .any(|mark| lower.contains(mark));
    let shell = lower.contains("/bin/sh")
        || lower.contains("/bin/bash")
        || lower.contains("cmd.exe")
        || lower.contains("powershell");
    if socket && runs {
        findings.add(
            Rule::ReverseShell,
            span,
            "connects to the network and runs commands",
        );
    } else if runs && shell {
        findings.add(Rule::ShellEscape, span, "starts a shell");
    }
    let decodes = [
        "base64_decode",
        "decode_base64",
        "unpack(\"h",
        "unpack('h",
        "gzinflate",
        "str_rot13",
        "base64.decode",
        "unpack1",
    ]
    .iter()
    .any(|mark| lower.contains(mark));
    let evaluates = [
        "eval",
        "assert(",
        "create_function",
        "instance_eval",
        "load(",
    ]
    .iter()
    .any(|mark| lower.contains(mark));
    if decodes && (evaluates || runs) {
        findings.add(Rule::CodeHidden, span, "runs decoded text");
    }
    let writes = [
        "file_put_contents",
        "fwrite",
        "\"w",
        "'w",
        "write",
        "print >",
        "fputs",
        ">",
    ]
    .iter()
    .any(|mark| lower.contains(mark));
    let deletes = [
        "unlink",
        "rm_rf",
        "rmtree",
        "rm_r",
        "remove_tree",
        "remove_entry",
        "fileutils.rm",
        "os.remove",
        "delete(",
    ]
    .iter()
    .any(|mark| lower.contains(mark));
    let files = Files {
        allowed: &analysis.verifier.allowed_paths,
        speaker: Speaker::Program,
    };
    for literal in literals(text) {
        if hosts::is_url(literal) {
            if let Some(reason) = hosts::suspicion(literal) {
                findings.add(Rule::NetworkHost, span, format!("talks to {reason}"));
            } else if evaluates
                && (lower.contains("file_get_contents")
                    || lower.contains("open-uri")
                    || lower.contains("lwp"))
            {
                findings.add(Rule::DownloadRun, span, "runs what it downloads");
            }
            continue;
        }
        if literal.starts_with(['/', '~']) && literal.len() < 512 {
            let place = Place::new(literal);
            if deletes {
                files.delete(&place, crate::files::Deletion::ForcedTree, span, findings);
            }
            if writes
                && (place.kinds().iter().any(|kind| kind.persists().is_some())
                    || !runs && !deletes && !literal.contains(' '))
            {
                files.write(&place, Writing::Append, span, findings);
            }
            files.read(&place, span, findings);
        }
        if runs && literal.contains(' ') || lower.contains("system") || lower.contains('`') {
            analysis.command_text(literal, span, findings);
        }
    }
    if matches!(
        language,
        Some(Language::Perl | Language::Ruby | Language::Php)
    ) {
        for command in backquoted(text) {
            analysis.command_text(command, span, findings);
        }
    }
}

fn sql(lower: &str, span: Span, findings: &mut Findings) {
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let pair = |first: &str, second: &[&str]| {
        words
            .windows(2)
            .any(|pair| pair[0] == first && second.contains(&pair[1]))
    };
    if pair(
        "drop",
        &[
            "table",
            "database",
            "schema",
            "index",
            "view",
            "user",
            "role",
            "column",
            "tablespace",
        ],
    ) || words.contains(&"truncate")
    {
        findings.add(Rule::DestroyData, span, "drops or empties tables");
    }
    for statement in lower.split(';') {
        let statement = statement.trim_start();
        let all = !statement.contains("where") && !statement.contains("limit");
        if statement.starts_with("delete from") && all
            || statement.starts_with("update ") && statement.contains(" set ") && all
        {
            findings.add(Rule::DestroyData, span, "changes every row of a table");
        }
    }
    if lower.contains("copy ") && lower.contains(" program ")
        || lower.contains("xp_cmdshell")
        || lower.contains("into outfile")
        || lower.contains("pg_read_file")
        || lower.contains("load_file(")
        || lower.contains("load_extension(")
    {
        findings.add(
            Rule::ShellEscape,
            span,
            "reaches files or programs through the database",
        );
    }
    if pair("grant", &["all"]) || pair("alter", &["role", "user", "system"]) {
        findings.warn(Rule::AccountChange, span, "changes rights in the database");
    }
}

/// The insides of quoted strings.
fn literals(text: &str) -> impl Iterator<Item = &str> {
    quoted(text, &['"', '\''])
}

fn backquoted(text: &str) -> impl Iterator<Item = &str> {
    quoted(text, &['`'])
}

fn quoted<'t>(text: &'t str, marks: &'static [char]) -> impl Iterator<Item = &'t str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(marks)?;
        let mark = rest[start..].chars().next()?;
        let inside = &rest[start + 1..];
        let end = inside.find(mark)?;
        rest = &inside[end + 1..];
        Some(&inside[..end])
    })
    .take(512)
}
