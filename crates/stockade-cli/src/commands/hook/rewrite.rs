//! The hook itself: the agent's question on stdin, its command in a sandbox as the answer.
//!
//! Whatever goes wrong ends with the code that keeps the command from running.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use stockade_policy::STOCKADE_SANDBOX_ACTIVE;

use super::agent_hook::quote;
use crate::args::HookedAgent;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Code 2 blocks the tool call, for every agent.
const BLOCK: Exit = Exit::Usage;

/// No command is longer.
const MAX_QUESTION_BYTES: u64 = 16 << 20;

#[derive(Debug, Deserialize)]
struct Question {
    #[serde(default)]
    session_id: String,
    #[serde(default)]
    cwd: PathBuf,
    tool_input: Map<String, Value>,
}

pub(super) fn run(agent: HookedAgent) -> Result<Exit, Failure> {
    // The agent itself is in a sandbox, and so are its commands.
    if std::env::var_os(STOCKADE_SANDBOX_ACTIVE).is_some() {
        return Ok(Exit::Success);
    }
    let blocked = |error: anyhow::Error| {
        let what = "the command was blocked: its question to Stockade can't be read";
        Failure::new(BLOCK, error.context(what))
    };
    let mut text = String::new();
    let input = std::io::stdin().lock().take(MAX_QUESTION_BYTES);
    { input }
        .read_to_string(&mut text)
        .map_err(|error| blocked(error.into()))?;
    let question = serde_json::from_str(&text).map_err(|error| blocked(error.into()))?;
    let program = std::env::current_exe().map_err(|error| blocked(error.into()))?;
    let root = ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"]
        .into_iter()
        .find_map(std::env::var_os);
    let answer = answer(agent, question, &program, root.map(PathBuf::from))
        .ok_or_else(|| blocked(anyhow::Error::msg("it has no command")))?;
    output::raw(answer.to_string().as_bytes())?;
    Ok(Exit::Success)
}

/// The question with its command in a sandbox, in the words of the agent.
fn answer(
    agent: HookedAgent,
    question: Question,
    program: &Path,
    root: Option<PathBuf>,
) -> Option<Value> {
    let mut input = question.tool_input;
    let command = input.get("command")?.as_str()?;
    let root = root.unwrap_or(question.cwd);
    let session = session_name(agent, &question.session_id);
    // Claude Code asks its shell where it is; Gemini CLI refuses `$(…)`, and the others don't ask.
    let command = if agent == HookedAgent::Claude {
        followed(program, &root, &session, command)
    } else {
        confined(program, &root, &session, &["--", command])
    };
    input.insert("command".to_owned(), command.clone().into());
    Some(match agent {
        HookedAgent::Claude => json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "updatedInput": input } }),
        // It takes no new input without an approval, and no other field at all.
        HookedAgent::Codex => json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input } }),
        HookedAgent::Gemini => json!({ "hookSpecificOutput": {
            "hookEventName": "BeforeTool", "tool_input": input } }),
        HookedAgent::Opencode => json!({ "command": command }),
    })
}

/// A command in a sandbox; `words` are the last ones of `hook exec`.
pub(super) fn confined(program: &Path, root: &Path, session: &str, words: &[&str]) -> String {
    let program = quote(&program.to_string_lossy());
    let root = quote(&root.to_string_lossy());
    let words: Vec<String> = words.iter().map(|word| quote(word)).collect();
    let words = words.join(" ");
    format!("{program} hook exec --session {session} --root {root} {words}")
}

/// The same, and the agent's shell follows where the command went.
fn followed(program: &Path, root: &Path, session: &str, command: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let file = format!("/tmp/.stockade-{}", now.map_or(0, |since| since.as_nanos()));
    let words = ["--last-directory", &file, "--", command];
    let confined = confined(program, root, session, &words);
    let program = quote(&program.to_string_lossy());
    format!(
        "{confined}; stockade_code=$?; \
         cd -- \"$({program} exec {session} -q -- head -c 4096 {file} 2>/dev/null)\"; \
         (exit $stockade_code)"
    )
}

/// One session for each of the agent's; only plain letters get into the name.
fn session_name(agent: HookedAgent, id: &str) -> String {
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
    let id: String = id.chars().filter(plain).take(40).collect();
    let agent = match agent {
        HookedAgent::Claude => "claude",
        HookedAgent::Codex => "codex",
        HookedAgent::Gemini => "gemini",
        HookedAgent::Opencode => "opencode",
    };
    format!("{agent}-{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(agent: HookedAgent, text: &str) -> Option<Value> {
        let question = serde_json::from_str(text).unwrap();
        answer(agent, question, Path::new("/x y/stockade"), None)
    }

    #[test]
    fn a_command_is_one_word_for_the_shell() {
        let text = r#"{"session_id":"a/../b'c","cwd":"/p","tool_input":{"command":"echo 'x'; rm -rf $HOME","timeout":5}}"#;
        let answer = ask(HookedAgent::Claude, text).unwrap();
        let input = &answer["hookSpecificOutput"]["updatedInput"];
        assert_eq!(input["timeout"], 5);
        let command = input["command"].as_str().unwrap();
        assert!(
            command.starts_with("'/x y/stockade' hook exec --session claude-abc --root '/p'"),
            "{command}"
        );
        assert!(
            command.contains(r"'--' 'echo '\''x'\''; rm -rf $HOME';"),
            "{command}"
        );
    }

    #[test]
    fn dashes_in_a_path_are_no_end_of_flags() {
        let text = r#"{"session_id":"1","cwd":"/a -- b","tool_input":{"command":"ls"}}"#;
        let answer = ask(HookedAgent::Claude, text).unwrap();
        let command = answer["hookSpecificOutput"]["updatedInput"]["command"].clone();
        let command = command.as_str().unwrap();
        assert!(
            command.contains("--root '/a -- b' '--last-directory' '/tmp/"),
            "{command}"
        );
    }

    #[test]
    fn every_agent_gets_the_fields_that_it_takes() {
        let text = r#"{"session_id":"1","cwd":"/p","tool_input":{"command":"ls"}}"#;
        let fields = |agent| {
            let answer = ask(agent, text).unwrap();
            let answer = answer.get("hookSpecificOutput").unwrap_or(&answer).clone();
            let fields: Vec<String> = answer.as_object().unwrap().keys().cloned().collect();
            fields.join(" ")
        };
        assert_eq!(fields(HookedAgent::Claude), "hookEventName updatedInput");
        assert_eq!(
            fields(HookedAgent::Codex),
            "hookEventName permissionDecision updatedInput"
        );
        assert_eq!(fields(HookedAgent::Gemini), "hookEventName tool_input");
        assert_eq!(fields(HookedAgent::Opencode), "command");
    }

    #[test]
    fn a_question_without_a_command_has_no_answer() {
        assert_eq!(ask(HookedAgent::Claude, r#"{"tool_input":{}}"#), None);
        assert_eq!(
            ask(HookedAgent::Claude, r#"{"tool_input":{"command":["ls"]}}"#),
            None
        );
    }
}
