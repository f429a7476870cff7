//! Dependencies point down, and the helper stays small.
//!
//! Read from `cargo metadata`, so that a new edge has to be argued for here, in review, and not
//! only typed into a manifest.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Who may use whom inside the workspace; what is not listed may use nothing of it.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "stockade-cli",
        &[
            "stockade",
            "stockade-container",
            "stockade-engine",
            "stockade-inspect",
            "stockade-linux",
            "stockade-mcp",
            "stockade-policy",
            "stockade-proxy",
            "stockade-rules",
            "stockade-serve",
            "stockade-verify",
            "stockade-workspace",
        ],
    ),
    ("stockade-mcp", &["stockade-serve"]),
    (
        "stockade-serve",
        &[
            "stockade",
            "stockade-engine",
            "stockade-linux",
            "stockade-workspace",
        ],
    ),
    (
        "stockade",
        &[
            "stockade-container",
            "stockade-engine",
            "stockade-inspect",
            "stockade-linux",
            "stockade-policy",
            "stockade-proxy",
            "stockade-rules",
            "stockade-verify",
            "stockade-workspace",
        ],
    ),
    (
        "stockade-engine",
        &["stockade-linux", "stockade-policy", "stockade-rules"],
    ),
    (
        "stockade-container",
        &[
            "stockade-engine",
            "stockade-linux",
            "stockade-policy",
            "stockade-rules",
        ],
    ),
    ("stockade-init", &["stockade-linux"]),
    ("stockade-linux", &["stockade-rules"]),
    ("stockade-policy", &["stockade-rules"]),
    ("stockade-proxy", &["stockade-engine", "stockade-policy"]),
    ("stockade-verify", &["stockade-shell"]),
    ("stockade-inspect", &["stockade-shell", "stockade-verify"]),
];

/// What must never be linked into the helper: it builds the jail, so all of it is trusted.
const NOT_IN_THE_HELPER: &[&str] = &["tokio", "clap", "regex", "toml", "cc", "anyhow"];

/// How many crates the helper is made of, itself and build-time macros included.
const HELPER_CRATES: usize = 25;

/// No source file is longer: past this it holds more than one idea. Tables have one by nature.
const LONGEST_FILE: usize = 800;
const TABLES: &[&str] = &["crates/stockade-linux/src/seccomp/table"];

struct Graph {
    names: BTreeMap<String, String>,
    members: BTreeSet<String>,
    /// From a package's id to those of its dependencies, with the kinds of each edge.
    edges: BTreeMap<String, Vec<(String, Vec<String>)>>,
}

impl Graph {
    fn read() -> Self {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--offline"])
            .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{complaint}");
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let kind = |kind: &Value| kind["kind"].as_str().unwrap_or("normal").to_owned();
        let list = |value: &Value| value.as_array().unwrap().clone();
        Self {
            names: list(&metadata["packages"])
                .iter()
                .map(|package| (text(&package["id"]), text(&package["name"])))
                .collect(),
            members: list(&metadata["workspace_members"])
                .iter()
                .map(text)
                .collect(),
            edges: list(&metadata["resolve"]["nodes"])
                .iter()
                .map(|node| {
                    let deps = list(&node["deps"]).into_iter().map(|dep| {
                        let kinds = list(&dep["dep_kinds"]).iter().map(kind).collect();
                        (text(&dep["pkg"]), kinds)
                    });
                    (text(&node["id"]), deps.collect())
                })
                .collect(),
        }
    }

    fn id(&self, name: &str) -> &str {
        let found = self.members.iter().find(|id| self.names[*id] == name);
        found.unwrap_or_else(|| panic!("{name} is no member"))
    }

    /// The names of all packages that `root` is made of, along edges of these kinds.
    fn closure(&self, root: &str, kinds: &[&str]) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        let mut next = vec![self.id(root)];
        while let Some(id) = next.pop() {
            if seen.insert(id) {
                let wanted = |(_, found): &&(String, Vec<String>)| {
                    found.iter().any(|kind| kinds.contains(&kind.as_str()))
                };
                next.extend(
                    self.edges[id]
                        .iter()
                        .filter(wanted)
                        .map(|(id, _)| id.as_str()),
                );
            }
        }
        seen.into_iter().map(|id| self.names[id].as_str()).collect()
    }
}

#[test]
fn dependencies_point_down() {
    let graph = Graph::read();
    for id in &graph.members {
        let name = graph.names[id].as_str();
        // The harness is for tests alone and may use what it tests.
        if name == "stockade-test" {
            continue;
        }
        let allowed = ALLOWED
            .iter()
            .find(|(user, _)| *user == name)
            .map_or(&[][..], |(_, used)| used);
        for (dependency, kinds) in &graph.edges[id] {
            let inside = graph.members.contains(dependency);
            let shipped = kinds.iter().any(|kind| kind != "dev");
            let dependency = graph.names[dependency].as_str();
            assert!(
                !(inside && shipped) || allowed.contains(&dependency),
                "{name} must not depend on {dependency}"
            );
        }
    }
}

/// What the helper is made of when it is built. Not from the metadata, which joins the features
/// that all members and their build scripts ask of a crate.
fn helper(kinds: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-p", "stockade-init", "-e", kinds])
        .args(["--prefix", "none", "--target", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let names = lines.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_helper_stays_small() {
    let parts = helper("normal");
    assert!(parts.contains("rustix"), "{parts:?}");
    assert!(
        parts.len() <= HELPER_CRATES,
        "the helper is made of {} crates: {parts:?}",
        parts.len()
    );
    let built_with = helper("normal,build");
    for unwanted in NOT_IN_THE_HELPER {
        assert!(
            !built_with.contains(*unwanted),
            "{unwanted} is in the helper"
        );
    }
}

#[test]
fn only_the_command_line_parses_command_lines() {
    let graph = Graph::read();
    for library in [
        "stockade-engine",
        "stockade-linux",
        "stockade-policy",
        "stockade-rules",
    ] {
        let parts = graph.closure(library, &["normal", "build"]);
        for unwanted in ["clap", "anyhow", "tokio"] {
            assert!(!parts.contains(unwanted), "{unwanted} is in {library}");
        }
    }
    // The walk itself must be able to find something.
    assert!(graph.closure("stockade-cli", &["normal"]).contains("clap"));
}

#[test]
fn no_file_outgrows_its_idea() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = Command::new("git")
        .args(["ls-files", "crates/*.rs"])
        .current_dir(&root)
        .output();
    // A source archive has no history to list; there the rule was kept before.
    let Some(listed) = listed.ok().filter(|listed| listed.status.success()) else {
        return;
    };
    let mut seen = 0;
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        if TABLES.iter().any(|table| name.starts_with(table)) {
            continue;
        }
        let lines = std::fs::read_to_string(root.join(name)).map_or(0, |text| text.lines().count());
        assert!(lines <= LONGEST_FILE, "{name} has {lines} lines");
        seen += 1;
    }
    assert!(seen > 50, "only {seen} files were found");
}
