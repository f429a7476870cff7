//! The definitions that ship with Stockade, and what is made of them.

use super::base_url::BaseUrl;
use super::{Agent, AgentError, AgentGrants, KeyUse};

fn agent(name: &str) -> Agent {
    Agent::built_in(name).unwrap().unwrap()
}

fn grants(name: &str, variables: &[(&str, &str)]) -> AgentGrants {
    let variable = |name: &str| {
        let found = variables.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    agent(name).grants(variable, |_| false).unwrap()
}

fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

#[test]
fn every_definition_is_read() {
    for name in Agent::built_in_names() {
        let agent = agent(name);
        assert!(!agent.api.is_empty(), "{name}");
        // The user's own files: nothing of them may be kept that decides what the agent does later.
        for state in &agent.state {
            assert!(state.starts_with("~/"), "{name}: {state}");
            let inside = |path: &&String| path.starts_with(state.as_str());
            assert_eq!(agent.protect.iter().find(inside), None, "{name}: {state}");
        }
        let all = agent.grants(|_| Some("https://a.test/v1".to_owned()), |_| true);
        assert!(all.is_ok(), "{name}: {all:?}");
    }
}

#[test]
fn a_key_is_masked_for_the_hosts_of_its_service() {
    let grants = grants("claude", &[("ANTHROPIC_API_KEY", "sk-1")]);
    assert_eq!(texts(&grants.allow), ["api.anthropic.com"]);
    assert_eq!(texts(&grants.mask), ["ANTHROPIC_API_KEY=api.anthropic.com"]);
    assert!(!grants.keep_env.contains(&"ANTHROPIC_API_KEY".to_owned()));
    assert_eq!(grants.deny_read, ["~/.claude/.credentials.json"]);
}

#[test]
fn another_address_replaces_the_hosts() {
    let other = [
        ("ANTHROPIC_API_KEY", "sk-1"),
        ("ANTHROPIC_BASE_URL", "https://gate.test:8443/v1"),
    ];
    let grants = grants("claude", &other);
    assert_eq!(texts(&grants.allow), ["gate.test:8443"]);
    assert_eq!(texts(&grants.mask), ["ANTHROPIC_API_KEY=gate.test:8443"]);
    assert!(grants.keep_env.contains(&"ANTHROPIC_BASE_URL".to_owned()));
}

#[test]
fn a_service_on_this_machine_is_reached_by_its_port() {
    let local = [
        ("OPENAI_API_KEY", "sk-1"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1"),
    ];
    let grants = grants("qwen", &local);
    assert_eq!(grants.host_port, [8080]);
    assert!(grants.allow.is_empty() && grants.mask.is_empty());
    assert!(grants.keep_env.contains(&"OPENAI_API_KEY".to_owned()));
}

#[test]
fn without_a_key_the_login_is_readable() {
    let none = |_: &str| None;
    let with = agent("claude").grants(none, |_| true).unwrap();
    let file = "~/.claude/.credentials.json".to_owned();
    assert_eq!(with.key, KeyUse::Login(vec![file.clone()]));
    assert!(with.write.contains(&file));
    let without = agent("claude").grants(none, |_| false).unwrap();
    assert_eq!(without.key, KeyUse::Missing);
    assert!(!without.write.contains(&file));
    assert_eq!(texts(&without.allow), ["api.anthropic.com"]);
}

#[test]
fn addresses_are_read() {
    let parse = |text| BaseUrl::parse(text).map(|url| (url.is_loopback(), url.pattern()));
    let read = |loopback, pattern: &str| Some((loopback, pattern.to_owned()));
    assert_eq!(parse("https://a.test"), read(false, "a.test:443"));
    assert_eq!(parse("HTTP://a.test/x?y"), read(false, "a.test:80"));
    assert_eq!(parse("http://localhost:1"), read(true, "localhost:1"));
    assert_eq!(parse("http://[::1]:7/v1"), read(true, "[::1]:7"));
    for bad in [
        "",
        "a.test",
        "ftp://a.test",
        "https://",
        "https://u@a.test",
        "http://a:b",
        "http://[::1",
        "http://a.test:99999",
    ] {
        assert_eq!(parse(bad), None, "{bad}");
    }
}

#[test]
fn an_address_that_is_none_is_an_error() {
    let result = agent("claude").grants(|_| Some("nonsense".to_owned()), |_| false);
    let variable = "ANTHROPIC_BASE_URL".to_owned();
    assert_eq!(result, Err(AgentError::BaseUrl { variable }));
}

#[test]
fn unknown_keys_are_refused() {
    let text = "title = \"x\"\nprogram = \"x\"\ninstall = \"x\"\napi = []\nfoo = 1\n";
    assert!(matches!(Agent::parse(text), Err(AgentError::Syntax(text)) if text.contains("foo")));
}

#[test]
fn names_are_plain() {
    assert_eq!(Agent::name_of_file("my-agent.toml"), Some("my-agent"));
    for bad in ["", "..", "a/b", "-a", "a b"] {
        assert_eq!(Agent::file_of_name(bad), None, "{bad}");
    }
}
