//! The merged profile as people read it: one setting to a line, with its origin.

use std::fmt;

use stockade_rules::Origin;

use super::Profile;
use super::printable::printable_text;
use super::sourced::Sourced;

/// A profile that prints itself; see [`Profile::show`].
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(&'a Profile);

impl Profile {
    /// The profile as text, with the origin of each line.
    pub fn show(&self) -> Shown<'_> {
        Shown(self)
    }
}

/// A block of lines under one heading.
struct Block {
    heading: &'static str,
    lines: Vec<Line>,
}

struct Line {
    key: String,
    value: String,
    origin: String,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocks = [
            choices(self.0),
            paths(self.0),
            network(self.0),
            environment(self.0),
            limits(self.0),
        ];
        let lines = || blocks.iter().flat_map(|block| &block.lines);
        let keys = lines().map(|line| width(&line.key)).max().unwrap_or(0);
        // One very long path does not push every origin off the screen.
        let values = lines()
            .map(|line| width(&line.value))
            .filter(|width| *width <= 60);
        let values = values.max().unwrap_or(0);
        let mut first = true;
        for block in blocks.iter().filter(|block| !block.lines.is_empty()) {
            if !std::mem::take(&mut first) {
                writeln!(f)?;
            }
            if !block.heading.is_empty() {
                writeln!(f, "[{}]", block.heading)?;
            }
            for Line { key, value, origin } in &block.lines {
                writeln!(f, "{key:keys$}  {value:values$}  # {origin}")?;
            }
        }
        Ok(())
    }
}

impl Block {
    fn new(heading: &'static str) -> Self {
        Self {
            heading,
            lines: Vec::new(),
        }
    }

    fn line(&mut self, key: &impl ToString, value: &impl ToString, origin: &Origin) {
        self.lines.push(Line {
            key: key.to_string(),
            value: printable_text(value),
            origin: printable_text(origin),
        });
    }

    fn one(&mut self, key: &str, setting: &Sourced<impl fmt::Display>) {
        self.line(&key, &setting.value, &setting.origin);
    }

    fn each(&mut self, key: &str, settings: &[Sourced<impl fmt::Display>]) {
        for setting in settings {
            self.one(key, setting);
        }
    }
}

fn choices(profile: &Profile) -> Block {
    let mut block = Block::new("");
    block.one("policy", &profile.base_policy);
    block.one("level", &profile.level);
    if let Some(backend) = &profile.backend {
        block.one("backend", backend);
    }
    block.each("require", &profile.require);
    block.one("seccomp", &profile.seccomp.mode);
    block.each("seccomp block", &profile.seccomp.block);
    block.one("best_effort", &profile.best_effort);
    block.one("git_config", &profile.git_config);
    block.one("home", &profile.home);
    block.one(
        "danger_nested_namespaces",
        &profile.danger_nested_namespaces,
    );
    block.each("device", &profile.devices);
    block
}

fn paths(profile: &Profile) -> Block {
    let mut block = Block::new("filesystem");
    block.one("base", &profile.base);
    let mut rules: Vec<_> = profile.rules.iter().collect();
    rules.sort_by_cached_key(|rule| (rule.pattern.to_string(), rule.access.to_string()));
    for rule in rules {
        block.line(&rule.access, &rule.pattern, &rule.origin);
    }
    block
}

fn network(profile: &Profile) -> Block {
    let mut block = Block::new("network");
    let network = &profile.network;
    block.one("mode", &network.mode);
    block.each("allow", &network.allow);
    block.each("block", &network.block);
    block.each("resolve", &network.resolve);
    if network.methods.value.is_limited() {
        block.one("methods", &network.methods);
    }
    if network.danger_hidden_names.value {
        block.one("danger_hidden_names", &network.danger_hidden_names);
    }
    block.each("mask", &network.mask);
    block.each("unix", &network.unix);
    block.each("expose", &network.expose);
    block.each("host_port", &network.host_port);
    block
}

fn environment(profile: &Profile) -> Block {
    let mut block = Block::new("environment");
    for set in &profile.environment.set {
        let (name, value) = (set.value.name(), set.value.value());
        let pair = format!("{name}={}", value.display());
        block.line(&"set", &pair, &set.origin);
    }
    block.each("keep", &profile.environment.keep);
    block
}

fn limits(profile: &Profile) -> Block {
    let mut block = Block::new("limits");
    for (key, limit) in profile.limits.iter() {
        block.one(key.as_str(), &limit);
    }
    block
}

fn width(text: &str) -> usize {
    text.chars().count()
}
