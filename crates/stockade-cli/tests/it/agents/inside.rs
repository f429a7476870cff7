//! `stockade agent`: each agent whole inside, and bare for comparison.

use std::fs;

use super::definitions::{AIDER, CLAUDE, CODEX, GEMINI, OPENCODE, QWEN};
use super::fixture::{Agent, Fixture, KEY, Reach};
use crate::context::has;

fn is_confined(agent: &'static Agent, test: &str) {
    if !agent.is_installed(test) {
        return;
    }
    // The control: by itself the agent reaches everything.
    let bare = Fixture::new(agent, Reach::Loopback);
    let ran = bare.bare();
    assert_eq!(bare.escapes(), [true; 3], "{ran:#?} {}", bare.report());
    assert!(bare.report().contains(KEY), "{ran:#?} {}", bare.report());
    check_inside(&Fixture::new(agent, Reach::Name), agent);
}

fn check_inside(fixture: &Fixture, agent: &Agent) {
    let ran = fixture.inside().ends_with(0);
    let report = fixture.report();
    assert!(report.contains("planted: "), "{ran:#?}");
    assert_eq!(fixture.escapes(), [false; 3], "{ran:#?} {report}");
    // A placeholder is in the environment, and the model gets the key all the same.
    assert!(
        report.contains("key: ") && !report.contains(KEY),
        "{report}"
    );
    let requests = fixture.requests();
    assert!(!requests.is_empty(), "{ran:#?}");
    assert!(
        requests.iter().all(|one| one["key"] == KEY),
        "{requests:#?}"
    );
    if requests.iter().any(|one| one["answer"] == "call") {
        let result = requests.last().unwrap()["result"].to_string();
        assert!(result.contains("the-tool-ran"), "{requests:#?}");
    }
    if let Some(state) = agent.state {
        let kept = fs::read_dir(fixture.path("home").join(state)).unwrap();
        assert_ne!(kept.count(), 0, "{ran:#?}");
    }
    let explained = format!("`stockade agent {} --dry-run`", agent.name);
    assert!(ran.stderr.contains(&explained), "{ran:#?}");
}

#[test]
fn claude_is_confined() {
    is_confined(&CLAUDE, "agents::claude_is_confined");
}

#[test]
fn codex_is_confined() {
    is_confined(&CODEX, "agents::codex_is_confined");
}

#[test]
fn gemini_is_confined() {
    is_confined(&GEMINI, "agents::gemini_is_confined");
}

#[test]
fn opencode_is_confined() {
    is_confined(&OPENCODE, "agents::opencode_is_confined");
}

#[test]
fn qwen_is_confined() {
    is_confined(&QWEN, "agents::qwen_is_confined");
}

#[test]
fn aider_is_confined() {
    is_confined(&AIDER, "agents::aider_is_confined");
}

#[test]
fn agents_of_an_ordinary_user_are_confined() {
    let test = "agents::agents_of_an_ordinary_user_are_confined";
    if !has(test, "root", &["unshare", "-m", "true"]) {
        return;
    }
    for agent in [&CLAUDE, &CODEX] {
        if agent.is_installed(test) {
            check_inside(&Fixture::new(agent, Reach::Name).of_user(), agent);
        }
    }
}

#[test]
fn the_explanation_is_printed_once() {
    let test = "agents::the_explanation_is_printed_once";
    if !CLAUDE.is_installed(test) {
        return;
    }
    let fixture = Fixture::new(&CLAUDE, Reach::Name);
    // The command of the tool call is refused to change the settings, in every run.
    let explained = || {
        let ran = fixture.inside().ends_with(0);
        let is_refusal = |line: &&str| line.starts_with("warning: refused: ");
        let (refusals, lines): (Vec<&str>, Vec<&str>) = ran.stderr.lines().partition(is_refusal);
        assert_eq!(refusals.len(), 1, "{ran:#?}");
        lines.len()
    };
    assert_eq!((explained(), explained()), (5, 0));
}

/// A model on this machine is reached by its port, with a key that no proxy can put in.
#[test]
fn a_model_on_loopback_is_reached() {
    let test = "agents::a_model_on_loopback_is_reached";
    if !CODEX.is_installed(test) {
        return;
    }
    let fixture = Fixture::new(&CODEX, Reach::Loopback);
    let ran = fixture.inside().ends_with(0);
    assert_eq!(fixture.escapes(), [false; 3], "{ran:#?}");
    assert!(
        ran.stderr.contains("the agent sees OPENAI_API_KEY"),
        "{ran:#?}"
    );
}
