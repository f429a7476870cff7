//! From rules to statements, weakest first.
//!
//! The decision function weighs by depth, then by rank, then denial over permission. A subtree has
//! one depth, so subtrees are written in the order of their weight. A pattern has a depth of its
//! own at every match: it is written before all subtrees, and again after each subtree that says
//! the opposite, for what it matches strictly below that. Where one pattern allows what another
//! denies the denial is written last, whichever matches deeper: the profile may be stricter than
//! the decision there, never wider.

use std::fmt::Write as _;

use stockade_rules::{AbsPath, Kind, PathGlob, PathRule, Pattern, Rank};

use super::canonical::{canonical, canonical_glob};
use super::statement::{Filter, Statement, quoted, regex, text};
use super::{SeatbeltError, SeatbeltNetwork, SeatbeltPolicy};

const READ: &str = "file-read*";
const WRITE: &str = "file-write*";
const UNLINK: &str = "file-write-unlink";

/// The text that `sandbox-exec -p` reads.
///
/// # Errors
/// If a path is not UTF-8.
pub fn generate_seatbelt_profile(policy: &SeatbeltPolicy) -> Result<String, SeatbeltError> {
    let mut out = String::from("(version 1)\n(deny default)\n");
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    if policy.allow_process {
        line("(allow process-exec* process-fork)");
        line("(allow signal process-info* (target same-sandbox))");
    }
    if policy.allow_sysctl {
        line("(allow sysctl-read)");
    }
    for service in &policy.mach_services {
        line(&format!(
            "(allow mach-lookup (global-name {}))",
            quoted(service)
        ));
    }
    line("(allow ipc-posix-sem)");
    // Programs find their way with these; what is in a file or directory is not told by them.
    line("(allow file-read-metadata file-test-existence)");
    line("(allow file-read* (literal \"/\"))");
    for kind in [Kind::Read, Kind::Write] {
        for statement in statements(policy, kind)? {
            line(&statement.to_string());
        }
    }
    for path in rename_guards(policy) {
        let filter = Some(Filter::Literal(text(&path)?.to_owned()));
        let statement = Statement {
            allows: false,
            operations: UNLINK,
            filter,
        };
        line(&statement.to_string());
    }
    for statement in devices(policy) {
        line(statement);
    }
    write_network(policy, &mut out)?;
    Ok(out)
}

/// A rule that speaks about this kind of access.
struct Spoken<'a> {
    rule: &'a PathRule,
    allows: bool,
}

fn statements(policy: &SeatbeltPolicy, kind: Kind) -> Result<Vec<Statement>, SeatbeltError> {
    let operations = match kind {
        Kind::Read => READ,
        Kind::Write => WRITE,
    };
    let spoken = policy.rules.iter().filter_map(|rule| {
        let allows = rule.access.allows(kind)?;
        Some(Spoken { rule, allows })
    });
    let mut subtrees: Vec<(AbsPath, Rank, bool)> = Vec::new();
    let mut globs: Vec<(PathGlob, Rank, bool)> = Vec::new();
    for Spoken { rule, allows } in spoken {
        match &rule.pattern {
            Pattern::Subtree(path) => subtrees.push((canonical(path), rule.rank, allows)),
            Pattern::Glob(glob) => globs.push((canonical_glob(glob), rule.rank, allows)),
        }
    }
    // Permissions first, so that denials come last.
    globs.sort_by_key(|(.., allows)| !*allows);
    subtrees.sort_by_key(|(path, rank, allows)| (path.depth(), *rank, !*allows));

    let mut out = Vec::new();
    let root = AbsPath::root();
    let every: Vec<_> = globs.iter().collect();
    write_globs(&every, &root, operations, &mut out)?;
    for (path, rank, allows) in &subtrees {
        out.push(Statement {
            allows: *allows,
            operations,
            filter: Some(Filter::Subpath(text(path)?.to_owned())),
        });
        // What matches this very path and weighs more.
        let same = globs
            .iter()
            .filter(|(glob, ..)| glob.matches(path.as_path()));
        let strongest = same.map(|(_, rank, allows)| (*rank, !*allows)).max();
        let lifted =
            strongest.is_some_and(|weight| weight > (*rank, !*allows) && weight.1 == *allows);
        let now = *allows != lifted;
        if lifted {
            out.push(Statement {
                allows: now,
                operations,
                filter: Some(Filter::Subpath(text(path)?.to_owned())),
            });
        }
        let against: Vec<_> = globs
            .iter()
            .filter(|(glob, _, glob_allows)| *glob_allows != now && glob.reaches_below(path))
            .collect();
        let allows_again = against.iter().any(|(.., allows)| *allows);
        write_globs(&against, path, operations, &mut out)?;
        if allows_again {
            // What was just allowed again may be denied by another pattern.
            let denials = globs
                .iter()
                .filter(|(glob, _, allows)| !*allows && glob.reaches_below(path));
            write_globs(&denials.collect::<Vec<_>>(), path, operations, &mut out)?;
        }
    }
    Ok(out)
}

fn write_globs(
    globs: &[&(PathGlob, Rank, bool)],
    dir: &AbsPath,
    operations: &'static str,
    out: &mut Vec<Statement>,
) -> Result<(), SeatbeltError> {
    for (glob, _, allows) in globs {
        for remainder in glob.below(dir) {
            out.push(Statement {
                allows: *allows,
                operations,
                filter: Some(Filter::Regex(regex(dir, &remainder)?)),
            });
        }
    }
    Ok(())
}

/// Directories above a denied path that could be renamed away with it: their own names may not be
/// given up.
fn rename_guards(policy: &SeatbeltPolicy) -> Vec<AbsPath> {
    let mut guards = Vec::new();
    for rule in &policy.rules {
        let Pattern::Subtree(path) = &rule.pattern else {
            continue;
        };
        if rule.access.allows(Kind::Write) != Some(false) {
            continue;
        }
        let mut above = path.parent();
        while let Some(directory) = above {
            let writable = policy
                .rules
                .decide(Kind::Write, directory.as_path())
                .allowed;
            let guard = canonical(&directory);
            if writable && !guards.contains(&guard) {
                guards.push(guard);
            }
            above = directory.parent();
        }
    }
    guards.sort();
    guards
}

/// Nodes that do no harm, and the terminal.
fn devices(policy: &SeatbeltPolicy) -> Vec<&'static str> {
    let mut lines = vec![
        "(allow file-read* file-write-data file-ioctl (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/dtracehelper\"))",
        "(allow file-read* (literal \"/dev/random\") (literal \"/dev/urandom\") (subpath \"/dev/fd\"))",
        "(allow file-write-data (subpath \"/dev/fd\"))",
    ];
    if policy.allow_terminal {
        lines.extend([
            "(allow pseudo-tty)",
            "(allow file-read* file-write-data file-ioctl (literal \"/dev/tty\") (literal \"/dev/ptmx\") (regex \"^/dev/ttys[0-9]+$\"))",
        ]);
    }
    lines
}

fn write_network(policy: &SeatbeltPolicy, out: &mut String) -> Result<(), SeatbeltError> {
    // Writing to a string can't fail.
    let _ = match policy.network {
        SeatbeltNetwork::Off => Ok(()),
        SeatbeltNetwork::Proxy(port) => writeln!(
            out,
            "(allow network-outbound (remote ip \"localhost:{port}\"))"
        ),
        SeatbeltNetwork::Open => writeln!(out, "(allow network* system-socket)"),
    };
    for socket in &policy.unix_sockets {
        let path = canonical(socket);
        let _ = writeln!(
            out,
            "(allow network-outbound (literal {}))",
            quoted(text(&path)?)
        );
    }
    Ok(())
}
