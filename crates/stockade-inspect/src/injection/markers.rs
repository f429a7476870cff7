//! Marks that only a chat template, an agent's protocol or a forger writes.
//!
//! Text that a tool returns has no business to open a turn of the conversation, to call a tool
//! or to speak as the system. The marks of the common model families, of tool calls and of MCP.

use super::lexicon::{AI, SYSTEM};
use super::matcher::Signal;
use super::rules::{Rule, Theme};
use super::words::Word;
use crate::trigger::Triggers;

const fn forged(weight: f32) -> Rule {
    Rule {
        id: "injection.forged-role",
        theme: Theme::Forgery,
        weight,
        is_role: false,
        steps: &[],
    }
}

const fn called(weight: f32) -> Rule {
    Rule {
        id: "injection.forged-call",
        theme: Theme::Forgery,
        weight,
        is_role: false,
        steps: &[],
    }
}

/// A mark of a template that nothing else uses.
static TEMPLATE: Rule = forged(5.2);
/// A mark that ends or continues a forged turn.
static TURN: Rule = forged(3.0);
/// A mark that other text uses too.
static HINT: Rule = forged(2.0);
/// A forged tool call.
static CALL: Rule = called(5.2);
/// What may be a forged tool call.
static CALL_HINT: Rule = called(2.2);

const MARKS: [(&str, &Rule); 79] = [
    // ChatML and its descendants.
    ("<|im_start|>", &TEMPLATE),
    ("<|im_end|>", &TURN),
    ("<|im_sep|>", &TURN),
    ("<|system|>", &TEMPLATE),
    ("<|user|>", &TURN),
    ("<|assistant|>", &TURN),
    ("<|developer|>", &TEMPLATE),
    ("<|endoftext|>", &TURN),
    ("<|end|>", &TURN),
    ("<|start|>", &TURN),
    ("<|channel|>", &TURN),
    ("<|endofprompt|>", &TURN),
    // Llama.
    ("[INST]", &TEMPLATE),
    ("[/INST]", &TURN),
    ("<<SYS>>", &TEMPLATE),
    ("<</SYS>>", &TURN),
    ("<|start_header_id|>", &TEMPLATE),
    ("<|end_header_id|>", &TURN),
    ("<|eot_id|>", &TURN),
    ("<|begin_of_text|>", &TURN),
    ("<|python_tag|>", &CALL),
    // Gemma, DeepSeek, Cohere, Phi, Mistral.
    ("<start_of_turn>", &TEMPLATE),
    ("<end_of_turn>", &TURN),
    ("<\u{ff5c}user\u{ff5c}>", &TEMPLATE),
    ("<|start_of_turn_token|>", &TEMPLATE),
    ("<|system_token|>", &TEMPLATE),
    ("[SYSTEM_PROMPT]", &TEMPLATE),
    ("[AVAILABLE_TOOLS]", &CALL),
    ("[TOOL_CALLS]", &CALL),
    ("[TOOL_RESULTS]", &CALL),
    // Alpaca, Vicuna, plain transcripts.
    ("### instruction:", &TURN),
    ("### system:", &TURN),
    ("### system prompt", &TURN),
    ("### response:", &HINT),
    ("### human:", &TURN),
    ("### assistant:", &TURN),
    ("\n\nhuman:", &TURN),
    ("\n\nassistant:", &TURN),
    // The same in a JSON string.
    ("\\n\\nhuman:", &TURN),
    ("\\n\\nassistant:", &TURN),
    ("system prompt:", &HINT),
    ("system message:", &HINT),
    // Tags and brackets that pose as the system.
    ("[SYSTEM]", &TURN),
    ("[/SYSTEM]", &TURN),
    ("<system>", &TURN),
    ("</system>", &HINT),
    ("<system_prompt>", &TURN),
    ("<system-reminder>", &TURN),
    ("<system mode", &TURN),
    ("<important>", &HINT),
    ("<information>", &HINT),
    ("<instructions>", &HINT),
    ("</instructions>", &HINT),
    ("</user_data>", &HINT),
    ("</context>", &HINT),
    ("[agent]", &HINT),
    ("[/agent]", &HINT),
    ("[ADMIN]", &HINT),
    ("[SYSTEM MESSAGE", &TURN),
    ("[SYSTEM NOTE", &TURN),
    ("assistant: sure", &TURN),
    ("\"role\": \"system\"", &HINT),
    ("\"role\":\"system\"", &HINT),
    // Tool calls and MCP.
    ("<tool_call>", &CALL),
    ("to=functions.", &CALL),
    ("<function_calls>", &CALL),
    ("</function_calls>", &CALL),
    ("<function_results>", &CALL),
    ("</function_results>", &CALL),
    ("</tool_result>", &CALL_HINT),
    ("</tool_response>", &CALL_HINT),
    ("<invoke name=", &CALL),
    ("<tool_response>", &CALL_HINT),
    ("<tool_result>", &CALL_HINT),
    ("\"tools/call\"", &CALL_HINT),
    ("\"tool_calls\":", &CALL_HINT),
    ("\"tool_call\":", &CALL_HINT),
    ("\"function_call\":", &CALL_HINT),
    ("\"tool_use\"", &CALL_HINT),
];

const LITERALS: [&str; MARKS.len()] = {
    let mut literals = [""; MARKS.len()];
    let mut at = 0;
    while at < MARKS.len() {
        literals[at] = MARKS[at].0;
        at += 1;
    }
    literals
};

static TRIGGERS: Triggers<{ MARKS.len() }> = Triggers::new(&LITERALS);

/// Every mark in the text, as signals at the place among the words.
pub(super) fn signals(text: &[u8], words: &[Word], out: &mut Vec<Signal>) {
    let mut hit = |at: usize, mark: usize| {
        let Some((literal, rule)) = MARKS.get(mark) else {
            return;
        };
        // `[INST]` opens a turn, `[inst]` is a list of one: capitals are meant.
        let capitals = literal.bytes().any(|byte| byte.is_ascii_uppercase());
        if capitals && text.get(at..at + literal.len()) != Some(literal.as_bytes()) {
            return;
        }
        let next = words.partition_point(|word| word.range().start < at);
        let index = words
            .get(next)
            .or(words.last())
            .map_or(0, |word| word.index);
        out.push(Signal {
            rule,
            weight: rule.weight,
            words: index..index + 1,
            bytes: at..at + literal.len(),
        });
    };
    // Where a mark can begin: at some signs, at a blank line, or at a word that rules know. This is
    // much less than to look everywhere.
    for at in memchr::memchr3_iter(b'<', b'[', b'"', text) {
        TRIGGERS.at(text, at, &mut hit);
    }
    for start in ["### ", "\n\n", "\\n\\n", "to=functions."] {
        for at in memchr::memmem::find_iter(text, start) {
            TRIGGERS.at(text, at, &mut hit);
        }
    }
    for word in words.iter().filter(|word| word.has(SYSTEM | AI)) {
        TRIGGERS.at(text, word.range().start, &mut hit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::words;

    #[test]
    fn every_mark_is_found_wherever_it_stands() {
        for (literal, _) in MARKS {
            let text = format!("some text {literal} more of it");
            let mut found = Vec::new();
            signals(text.as_bytes(), &words::read(text.as_bytes()), &mut found);
            let whole = 10..10 + literal.len();
            assert!(
                found.iter().any(|signal| signal.bytes == whole),
                "{literal:?}: {found:?}"
            );
        }
    }
}
