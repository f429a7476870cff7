//! `stockade explain`: what is decided about a path or a host, by which rule, what would change it.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use stockade_policy::host::Host;
use stockade_policy::profile::{
    NetworkExplanation, PathExplanation, PathVerdict, Profile, explain_network, explain_path,
};
use stockade_rules::{AbsPath, Access, Kind, Origin, Rank};

use crate::args::ExplainArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BAD, BOLD, DIM, Format, GOOD, printable};
use crate::resolve::Place;

/// The ports that are meant where none is named.
const USUAL_PORTS: [u16; 2] = [443, 80];

/// What was asked about.
#[derive(Debug, PartialEq, Eq)]
enum Subject {
    Host(Host, Option<u16>),
    Path(PathBuf),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Network(Vec<NetworkExplanation>),
    Path {
        /// The path as it was asked, where a link leads elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        asked: Option<AbsPath>,
        #[serde(flatten)]
        explanation: PathExplanation,
    },
}

pub(crate) fn run(args: &ExplainArgs) -> Result<Exit, Failure> {
    let place = Place::enter(args.policy.cwd.as_deref())?;
    let profile = in_effect(place.profile(&args.policy)?);
    let format = Format::of(args.output.json);
    for warning in &profile.warnings {
        output::warn(warning, format);
    }
    let exists = |name: &OsStr| Path::new(name).symlink_metadata().is_ok();
    let answer = match subject(&args.subject, exists)? {
        Subject::Host(host, port) => {
            let ports = port.map_or(USUAL_PORTS.to_vec(), |port| vec![port]);
            let explain = |port: u16| explain_network(&profile, &host, port);
            Answer::Network(ports.into_iter().map(explain).collect())
        }
        Subject::Path(path) => explain_landing(&profile, &place, &path)?,
    };
    match format {
        Format::Json => output::json(&answer)?,
        Format::Text => output::text(|out| print(&answer, out))?,
    }
    Ok(Exit::Success)
}

/// The profile with the rules that `run` would plan with here; without a sandbox as it is.
#[cfg(target_os = "linux")]
fn in_effect(mut profile: Profile) -> Profile {
    use stockade_policy::profile::BasePolicy::{ReadOnly, WorkspaceWrite};
    if matches!(profile.base_policy.value, ReadOnly | WorkspaceWrite) {
        let (rules, warnings) = stockade_engine::effective_rules(&profile);
        profile.rules = rules;
        profile.warnings.extend(warnings);
    }
    profile
}

#[cfg(not(target_os = "linux"))]
fn in_effect(profile: Profile) -> Profile {
    profile
}

/// Rules are about where an operation lands, so links are followed first.
fn explain_landing(profile: &Profile, place: &Place, path: &Path) -> Result<Answer, Failure> {
    let around = &place.around;
    let asked = AbsPath::resolve(path.as_os_str(), &around.cwd, around.home.as_ref())
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    let lands = landing(&asked);
    let mut explanation = explain_path(profile, &lands);
    if explanation.note.is_none() && is_judged_at_commit(profile, &lands) {
        explanation.note = Some("`run --overlay` can write it; `ws commit` keeps it back");
    }
    Ok(Answer::Path {
        explanation: with_working_grant(profile, &lands, explanation),
        asked: (asked != lands).then_some(asked),
    })
}

/// Only what exists can be granted: to make a path, its directory.
#[cfg(target_os = "linux")]
fn with_working_grant(
    profile: &Profile,
    path: &AbsPath,
    mut explanation: PathExplanation,
) -> PathExplanation {
    if let Some(grant) = &mut explanation.write.grant
        && grant.starts_with("--write")
        && !path.as_path().exists()
    {
        *grant = stockade_engine::Grant::of_name(path, &profile.writable_roots).to_string();
    }
    explanation
}

#[cfg(not(target_os = "linux"))]
fn with_working_grant(_: &Profile, _: &AbsPath, explanation: PathExplanation) -> PathExplanation {
    explanation
}

/// Whether a path is denied only because it makes code run on the host later.
fn is_judged_at_commit(profile: &Profile, path: &AbsPath) -> bool {
    let decision = profile.rules.decide(Kind::Write, path.as_path());
    let mut roots = profile.writable_roots.iter();
    let is_default = decision
        .rule
        .is_some_and(|rule| rule.rank == Rank::Default && rule.access == Access::DenyWrite);
    !decision.allowed && is_default && roots.any(|root| path.is_within(root))
}

/// The path with the links of its longest existing part resolved.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing is done with the path but to talk about it"
)]
fn landing(path: &AbsPath) -> AbsPath {
    let mut rest = PathBuf::new();
    let mut part = path.as_path();
    loop {
        if let Ok(real) = std::fs::canonicalize(part) {
            return AbsPath::new(real.join(&rest)).unwrap_or_else(|_| path.clone());
        }
        let (Some(parent), Some(name)) = (part.parent(), part.file_name()) else {
            return path.clone();
        };
        rest = if rest.as_os_str().is_empty() {
            PathBuf::from(name)
        } else {
            Path::new(name).join(rest)
        };
        part = parent;
    }
}

/// Tells hosts from paths; `exists` decides where both would do.
fn subject(text: &OsStr, exists: impl Fn(&OsStr) -> bool) -> Result<Subject, Failure> {
    let path = || Ok(Subject::Path(PathBuf::from(text)));
    let Some(word) = text.to_str() else {
        return path();
    };
    if let Some((scheme, rest)) = word.split_once("://") {
        return url(word, scheme, rest);
    }
    if word.contains('/') || word.starts_with(['~', '.']) {
        return path();
    }
    match host_and_port(word) {
        Some((host, Some(port))) => Ok(Subject::Host(host, Some(port))),
        Some((host @ Host::Ip(_), None)) => Ok(Subject::Host(host, None)),
        Some((host, None)) if !exists(text) && (word.contains('.') || word == "localhost") => {
            Ok(Subject::Host(host, None))
        }
        None if !exists(text) && names_no_port(word) => Err(Failure::text(
            Exit::Usage,
            format!("`{word}` has no port from 1 to 65535"),
        )
        .hint(format!("if it is a file, write `./{word}`"))),
        _ => path(),
    }
}

/// Whether it is a host with a number that is no port.
fn names_no_port(word: &str) -> bool {
    word.rsplit_once(':').is_some_and(|(host, port)| {
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        is_number && Host::parse(host).is_ok()
    })
}

/// A pasted address of a page is a question about its host.
fn url(whole: &str, scheme: &str, rest: &str) -> Result<Subject, Failure> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let usual = match scheme {
        "https" | "wss" => Some(443),
        "http" | "ws" => Some(80),
        "ssh" => Some(22),
        _ => None,
    };
    match host_and_port(host) {
        Some((host, port)) => Ok(Subject::Host(host, port.or(usual))),
        None => Err(
            Failure::text(Exit::Usage, format!("`{whole}` names no host"))
                .hint("ask with a name and a port: stockade explain example.com:443"),
        ),
    }
}

fn host_and_port(word: &str) -> Option<(Host, Option<u16>)> {
    if let Ok(host) = Host::parse(word) {
        return Some((host, None));
    }
    let (host, port) = word.rsplit_once(':')?;
    let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
    Some((Host::parse(host).ok()?, Some(port)))
}

fn print(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    match answer {
        Answer::Network(ports) => ports.iter().try_for_each(|port| print_network(port, out)),
        Answer::Path { asked, explanation } => {
            if let Some(asked) = asked {
                write!(out, "{BOLD}{}{BOLD:#} → ", shown(asked))?;
            }
            writeln!(out, "{BOLD}{}{BOLD:#}", shown(&explanation.path))?;
            print_verdict("read", &explanation.read, out)?;
            print_verdict("write", &explanation.write, out)?;
            print_note(explanation.note, out)
        }
    }
}

fn shown(path: &AbsPath) -> String {
    printable(&path.to_string()).into_owned()
}

fn print_network(answer: &NetworkExplanation, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{BOLD}{}:{}{BOLD:#}", answer.host, answer.port)?;
    let rule = answer.rule.as_deref().unwrap_or(&answer.reason);
    print_line(
        "connect",
        answer.allowed,
        rule,
        Some(answer.origin.as_str()),
        out,
    )?;
    print_grant(answer.grant.as_deref(), out)?;
    for (what, text) in answer.requests() {
        writeln!(out, "  {what:<8} {}", printable(&text))?;
    }
    print_note(answer.note, out)
}

fn print_verdict(what: &str, verdict: &PathVerdict, out: &mut dyn Write) -> io::Result<()> {
    let rule = verdict.rule.as_deref().unwrap_or("no rule speaks about it");
    let origin = verdict.origin.as_ref().map(Origin::as_str);
    print_line(what, verdict.allowed, rule, origin, out)?;
    print_grant(verdict.grant.as_deref(), out)
}

fn print_line(
    what: &str,
    allowed: bool,
    rule: &str,
    origin: Option<&str>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (style, word) = if allowed {
        (GOOD, "allowed")
    } else {
        (BAD, "denied")
    };
    write!(
        out,
        "  {what:<8} {style}{word:<8}{style:#} {}",
        printable(rule)
    )?;
    match origin {
        Some(origin) => writeln!(out, " {DIM}({}){DIM:#}", printable(origin)),
        None => writeln!(out),
    }
}

fn print_grant(grant: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    match grant {
        Some(grant) => writeln!(
            out,
            "  {:<8} {DIM}to allow it:{DIM:#} {}",
            "",
            printable(grant)
        ),
        None => Ok(()),
    }
}

fn print_note(note: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    match note {
        Some(note) => writeln!(out, "  {DIM}note:{DIM:#} {note}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: &str) -> Subject {
        subject(OsStr::new(word), |name| name == "there.txt").unwrap()
    }

    fn host(name: &str, port: Option<u16>) -> Subject {
        Subject::Host(Host::parse(name).unwrap(), port)
    }

    #[test]
    fn hosts_and_paths_are_told_apart() {
        for path in [
            "/etc",
            "~/.ssh",
            "./api.test",
            ".env",
            "a/b",
            "Makefile",
            "there.txt",
        ] {
            assert_eq!(read(path), Subject::Path(path.into()), "{path}");
        }
        assert_eq!(read("api.test"), host("api.test", None));
        assert_eq!(read("api.test:8443"), host("api.test", Some(8443)));
        assert_eq!(read("localhost"), host("localhost", None));
        assert_eq!(read("git:22"), host("git", Some(22)));
        assert_eq!(read("127.0.0.1"), host("127.0.0.1", None));
        assert_eq!(read("[::1]:80"), host("::1", Some(80)));
        assert_eq!(read("https://api.test/x?y"), host("api.test", Some(443)));
        assert_eq!(
            read("ssh://git@api.test:2222/x"),
            host("api.test", Some(2222))
        );
        // No port and no host: then it can only be a file.
        for path in ["a:", "a:b", ""] {
            assert_eq!(read(path), Subject::Path(path.into()), "{path}");
        }
        for nonsense in ["https:///x", "a:0", "api.test:99999"] {
            assert!(subject(OsStr::new(nonsense), |_| false).is_err());
        }
        let there = subject(OsStr::new("a:0"), |_| true).unwrap();
        assert_eq!(there, Subject::Path("a:0".into()));
    }
}
