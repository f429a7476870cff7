//! What is read, and that nothing grows on the way there and back.

use std::collections::BTreeMap;
use std::io;

use proptest::prelude::*;
use stockade_rules::{AbsPath, Kind};

use super::*;
use crate::host::{Host, NetVerdict};
use crate::model::Surroundings;
use crate::profile::{Loader, Profile, Sources};

struct OneFile(String);

impl Loader for OneFile {
    fn read(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        if path.as_path().ends_with("imported.toml") {
            return Ok(self.0.clone().into_bytes());
        }
        Err(io::ErrorKind::NotFound.into())
    }

    fn exists(&self, _: &AbsPath) -> bool {
        false
    }
}

fn abs(text: &str) -> AbsPath {
    AbsPath::new(text).unwrap()
}

fn profile(draft: &Draft) -> Profile {
    let around = Surroundings::new(abs("/home/u/ws")).with_home(abs("/home/u"));
    let sources = Sources {
        policy: Some(abs("/imported.toml")),
        ..Sources::new(around)
    };
    let text = draft.to_string();
    Profile::resolve(&sources, &OneFile(text.clone()))
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn text(format: ImportFormat, source: &str) -> (String, String) {
    let imported = import(format, source).unwrap();
    profile(&imported.draft);
    (imported.draft.to_string(), imported.notes.join("\n"))
}

#[test]
fn srt() {
    let source = r#"{"network":{"allowedDomains":["*.a.test","b.test:443","*.c.test","c.test","*"],"deniedDomains":["x.a.test"],
        "allowUnixSockets":["/run/x.sock"]},
        "filesystem":{"denyRead":["~/notes"],"allowWrite":[".","/srv/x"],"denyWrite":["/srv"]}}"#;
    assert_eq!(
        ImportFormat::guess("s.json", source),
        Some(ImportFormat::Srt)
    );
    let (text, notes) = text(ImportFormat::Srt, source);
    assert!(
        text.contains(r#"allow = ["*.a.test", "b.test:443", "*.c.test", "c.test"]"#),
        "{text}"
    );
    // `*.a.test` does not include `a.test` there.
    assert!(text.contains(r#"block = ["a.test", "x.a.test"]"#), "{text}");
    assert!(text.contains(r#"write = ["."]"#), "{text}");
    assert!(notes.contains("the host `*` is left out"), "{notes}");
    assert!(notes.contains("`/srv/x` stays read-only"), "{notes}");
}

#[test]
fn claude() {
    let source = r#"{"sandbox":{"enabled":true,"network":{"allowedDomains":["a.test"]},"excludedCommands":["docker"]},
        "permissions":{"allow":["Bash(npm test)","Edit(/docs/**)","WebFetch(domain:b.test)"],
        "deny":["Read(./.env)","Edit(//etc/x)"],"additionalDirectories":["../lib"]}}"#;
    assert_eq!(
        ImportFormat::guess("settings.json", source),
        Some(ImportFormat::Claude)
    );
    let (text, notes) = text(ImportFormat::Claude, source);
    for piece in [
        "extends = \"workspace-write\"",
        r#"write = ["../lib", "./docs"]"#,
        r#"deny_read = ["./.env"]"#,
        r#"deny_write = ["/etc/x"]"#,
        r#"allow = ["a.test", "b.test"]"#,
    ] {
        assert!(text.contains(piece), "{piece}\n{text}");
    }
    assert!(
        notes.contains("`docker` is confined too") && notes.contains("`Bash(npm test)`"),
        "{notes}"
    );
}

#[test]
fn codex() {
    let source = "sandbox_mode = \"workspace-write\"\napproval_policy = \"never\"\n\
                  [sandbox_workspace_write]\nwritable_roots = [\"/srv\"]\nnetwork_access = true\n";
    assert_eq!(
        ImportFormat::guess("config.toml", source),
        Some(ImportFormat::Codex)
    );
    let (text, notes) = text(ImportFormat::Codex, source);
    assert!(
        text.contains("write = [\"/srv\"]") && text.contains("mode = \"open\""),
        "{text}"
    );
    assert!(notes.contains("`approval_policy` is left out"), "{notes}");
    assert!(import(ImportFormat::Codex, "sandbox_mode = \"x\"").is_err());
}

#[test]
fn bwrap() {
    let source = "bwrap --ro-bind /usr /usr --bind /srv/x /srv/x --ro-bind /a /b --tmpfs /home \\\n \
                  --unshare-net --cap-add ALL --setenv A b -- sh -c 'rm --bind / /'";
    assert_eq!(
        ImportFormat::guess("words", source),
        Some(ImportFormat::Bwrap)
    );
    let (text, notes) = text(ImportFormat::Bwrap, source);
    for piece in [
        "base = \"minimal\"",
        "read = [\"/usr\"]",
        "write = [\"/srv/x\"]",
        "deny_read = [\"/home\"]",
        "mode = \"off\"",
        "set = { \"A\" = \"b\" }",
    ] {
        assert!(text.contains(piece), "{piece}\n{text}");
    }
    assert!(
        notes.contains("--ro-bind /a /b") && notes.contains("`--cap-add`"),
        "{notes}"
    );
}

#[test]
fn dockerfile() {
    let source = "FROM debian\nUSER app\nWORKDIR /srv\nENV A=b \\\n  C=d\nEXPOSE 8080 53/udp\n";
    assert_eq!(
        ImportFormat::guess("x", source),
        Some(ImportFormat::Dockerfile)
    );
    let (text, notes) = text(ImportFormat::Dockerfile, source);
    assert!(
        text.contains("expose = [8080]") && text.contains("\"C\" = \"d\""),
        "{text}"
    );
    assert!(
        ["USER app", "WORKDIR /srv", "53/udp"]
            .iter()
            .all(|note| notes.contains(note)),
        "{notes}"
    );
}

#[test]
fn what_can_not_be_said_is_refused() {
    let mut draft = Draft {
        allow: vec!["a.test".to_owned()],
        ..Draft::default()
    };
    let refused = |draft: &Draft, format| export(&profile(draft), format).unwrap_err().to_string();
    assert!(refused(&draft, ExportFormat::Codex).contains("list of hosts"));
    assert!(refused(&draft, ExportFormat::Bwrap).contains("list of hosts"));
    draft.deny_read.push("**/*.pem".to_owned());
    assert!(refused(&draft, ExportFormat::Srt).contains("**/*.pem"));
}

const PATHS: &[&str] = &[
    "/home/u/ws",
    "/home/u/ws/a",
    "/home/u/ws/a/b",
    "/home/u/notes",
    "/srv",
    "/srv/x",
    "/srv/x/y",
];
const PROBES: &[&str] = &[
    "/home/u/ws/f",
    "/home/u/ws/a/f",
    "/home/u/ws/a/b/f",
    "/home/u/notes/f",
    "/home/u/.ssh/id",
    "/srv/f",
    "/srv/x/f",
    "/srv/x/y/f",
    "/etc/f",
    "/opt/f",
    "/usr/f",
    "/home/u/ws/.git/hooks/f",
];
const HOSTS: &[&str] = &[
    "a.test",
    "*.a.test",
    "b.a.test:22",
    "*.b.a.test:443",
    "c.test:8080",
];
const BLOCKS: &[&str] = &["a.test", "*.b.a.test", "c.test"];
const HOST_PROBES: &[&str] = &["a.test", "b.a.test", "x.b.a.test", "c.test", "d.test"];
const PORTS: &[u16] = &[22, 80, 443, 8080];

fn some(of: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(of), 0..4)
        .prop_map(|words| words.into_iter().map(str::to_owned).collect())
}

fn drafts() -> impl Strategy<Value = Draft> {
    let modes = [None, Some(crate::profile::NetworkMode::Open)];
    let bases = [
        crate::profile::BuiltIn::ReadOnly,
        crate::profile::BuiltIn::WorkspaceWrite,
    ];
    let files = (some(PATHS), some(PATHS), some(PATHS), some(PATHS));
    let network = (
        some(HOSTS),
        some(BLOCKS),
        prop::sample::select(modes.to_vec()),
    );
    (
        files,
        network,
        prop::sample::select(bases.to_vec()),
        any::<bool>(),
    )
        .prop_map(
            |((read, write, deny_read, deny_write), (allow, block, mode), extends, is_minimal)| {
                Draft {
                    extends: Some(extends),
                    is_minimal,
                    read,
                    write,
                    deny_read,
                    deny_write,
                    mode,
                    allow,
                    block,
                    set: BTreeMap::new(),
                    ..Draft::default()
                }
            },
        )
}

fn check(format: ExportFormat, back: ImportFormat, draft: &Draft) -> Result<(), TestCaseError> {
    let before = profile(draft);
    let Ok(exported) = export(&before, format) else {
        return Ok(());
    };
    let imported = import(back, &exported.text).unwrap();
    let after = profile(&imported.draft);
    for probe in PROBES {
        for kind in [Kind::Read, Kind::Write] {
            let allows = |profile: &Profile| profile.rules.decide(kind, probe.as_ref()).allowed;
            prop_assert!(
                !allows(&after) || allows(&before),
                "{kind:?} {probe}\n{draft}\n{}\n{}",
                exported.text,
                imported.draft
            );
        }
    }
    for host in HOST_PROBES {
        for port in PORTS {
            let host = Host::parse(host).unwrap();
            let allows = |profile: &Profile| {
                profile.network.decide(&host, *port).verdict == NetVerdict::Allow
            };
            prop_assert!(
                !allows(&after) || allows(&before),
                "{host}:{port}\n{draft}\n{}\n{}",
                exported.text,
                imported.draft
            );
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn nothing_grows_by_way_of_srt(draft in drafts()) {
        check(ExportFormat::Srt, ImportFormat::Srt, &draft)?;
    }

    #[test]
    fn nothing_grows_by_way_of_codex(draft in drafts()) {
        check(ExportFormat::Codex, ImportFormat::Codex, &draft)?;
    }

    #[test]
    fn nothing_grows_by_way_of_bwrap(draft in drafts()) {
        check(ExportFormat::Bwrap, ImportFormat::Bwrap, &draft)?;
    }
}
