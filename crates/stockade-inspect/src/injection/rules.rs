//! The rules: sequences of meanings with room between them, each worth a weight.
//!
//! A weight is the logarithm of how much likelier the sequence is in an attack than in ordinary
//! output. Few rules suffice alone; the score of a passage adds up what different rules say
//! about it.

use super::lexicon::*;

/// One sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) id: &'static str,
    pub(super) theme: Theme,
    pub(super) weight: f32,
    pub(super) steps: &'static [Step],
}

/// A word of a sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The word has one of these meanings …
    pub(super) any: Class,
    /// … and all of these.
    pub(super) all: Class,
    /// At most this many words before it.
    pub(super) gap: u32,
}

/// What a rule is about. Weights of one theme add up with diminishing returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Theme {
    Address,
    Authority,
    Chat,
    Concealment,
    Disguise,
    Embedded,
    Exfiltration,
    Forgery,
    Jailbreak,
    Override,
    Payload,
    Persona,
    Request,
    Reveal,
    Tool,
    Urgency,
}

impl Theme {
    pub(super) const COUNT: usize = 16;

    /// What a person is told.
    pub(super) const fn message(self) -> &'static str {
        match self {
            Self::Address => "speaks to an AI agent",
            Self::Authority => "claims authority over the agent",
            Self::Chat => "talks to a chat partner",
            Self::Concealment => "asks to hide something from the user",
            Self::Disguise => "is disguised",
            Self::Embedded => "stands where data should stand",
            Self::Exfiltration => "asks to send data somewhere",
            Self::Forgery => "forges a role, system message or tool call",
            Self::Jailbreak => "tries to lift the agent's restrictions",
            Self::Override => "tries to replace the agent's instructions",
            Self::Payload => "dictates what the agent should answer",
            Self::Persona => "gives the agent a new role",
            Self::Request => "asks for an action in place of the user",
            Self::Reveal => "asks for secrets or the system prompt",
            Self::Tool => "tells the agent to use a tool",
            Self::Urgency => "presses for urgency",
        }
    }
}

const fn rule(id: &'static str, theme: Theme, weight: f32, steps: &'static [Step]) -> Rule {
    Rule { id, theme, weight, steps }
}

/// A word with one of these meanings, directly after the last.
const fn w(any: Class) -> Step {
    Step { any, all: 0, gap: 0 }
}

/// The same with up to `gap` words between.
const fn g(gap: u32, any: Class) -> Step {
    Step { any, all: 0, gap }
}

/// A word that starts a sentence, line or field.
const fn start(any: Class) -> Step {
    Step { any, all: START, gap: 0 }
}

/// A word that starts the value of a field: `"note": "Please …`.
const fn field(any: Class) -> Step {
    Step { any, all: FIELD, gap: 0 }
}

/// A word of another language than English.
const fn foreign(gap: u32, any: Class) -> Step {
    Step { any, all: FOREIGN, gap }
}

/// A word spelled so that a search misses it.
const fn disguised(any: Class) -> Step {
    Step { any, all: DISGUISED, gap: 0 }
}

use Theme::{
    Address, Authority, Chat, Concealment, Disguise, Embedded, Exfiltration, Jailbreak, Override, Payload, Persona, Request,
    Reveal, Tool, Urgency,
};

/// Every rule.
pub(super) const RULES: &[Rule] = &[
    // Replace the instructions.
    rule("injection.override", Override, 4.0, &[w(DROP), g(2, YOUR), g(2, INSTR)]),
    rule("injection.override", Override, 4.0, &[w(DROP), g(1, ALL), g(1, PRIOR), g(1, TASK | INSTR)]),
    rule("injection.override", Override, 2.6, &[start(HALT), g(2, REPEAT | WRITE | SAY)]),
    rule("injection.override-foreign", Override, 3.5, &[foreign(0, OVERRIDE), foreign(14, REVEAL | SEND | SAY)]),
    rule("injection.next-task", Override, 2.0, &[start(NOW), g(1, WRITE | REVEAL | RESPOND | SAY | TRANSLATE)]),
    rule("injection.next-task", Override, 2.0, &[w(ME), g(3, FOLLOWING | NEW), g(1, TASK | QUESTION)]),
    rule("injection.override", Override, 7.0, &[w(OVERRIDE), g(4, PRIOR), g(3, INSTR | ORDER | TASK | TEXT | CONVERSATION)]),
    rule("injection.override", Override, 7.0, &[w(OVERRIDE), g(4, INSTR | ORDER), g(3, PRIOR | TOLD)]),
    rule("injection.override", Override, 5.0, &[w(OVERRIDE), g(2, ALL | YOUR | THESE), g(3, INSTR)]),
    rule("injection.override", Override, 4.5, &[w(OVERRIDE), g(2, EVERYTHING | ALL), g(4, PRIOR | TOLD)]),
    rule("injection.override", Override, 3.0, &[start(OVERRIDE), g(1, EVERYTHING | ALL)]),
    rule("injection.override", Override, 2.6, &[start(OVERRIDE), g(2, PRIOR)]),
    rule("injection.override", Override, 1.5, &[w(OVERRIDE), g(2, PRIOR)]),
    rule("injection.override", Override, 3.6, &[w(OVERRIDE), g(4, THEN), g(1, SAY)]),
    rule("injection.override", Override, 2.0, &[w(OVERRIDE), g(2, YOUR), g(3, RESTRICT | TASK | MODEL)]),
    rule("injection.override", Override, 5.0, &[w(NOT), g(1, FOLLOW), g(3, PRIOR | ALL | YOUR), g(3, INSTR)]),
    rule("injection.override", Override, 4.5, &[w(NOT), g(1, FOLLOW), g(3, INSTR), g(4, TOLD | PRIOR)]),
    rule("injection.override", Override, 4.0, &[w(NOT), g(1, DO | CONTINUE | FOLLOW), g(2, PRIOR), g(1, TASK | INSTR | ORDER | QUESTION)]),
    rule("injection.override", Override, 4.5, &[w(PRIOR), g(1, INSTR), g(2, VOID)]),
    rule("injection.override", Override, 3.0, &[w(NOT), w(MIND), g(3, USER | PRIOR | ALL)]),
    rule("injection.override", Override, 1.8, &[w(YOU), w(MUST), g(1, FOLLOW)]),
    rule("injection.override", Override, 1.2, &[start(INSTEAD), g(1, REVEAL | RESPOND | TRANSLATE | ACTION | SEND)]),
    rule("injection.override", Override, 4.0, &[w(INSTEAD), g(3, FOLLOW), g(3, INSTR)]),
    rule("injection.override-foreign", Override, 7.0, &[foreign(0, OVERRIDE), foreign(4, INSTR | PRIOR)]),
    rule("injection.override-foreign", Override, 7.0, &[foreign(0, INSTR), foreign(4, OVERRIDE)]),
    rule("injection.override-foreign", Override, 5.5, &[foreign(0, OVERRIDE), foreign(3, ALL | EVERYTHING)]),
    rule("injection.override-foreign", Override, 5.5, &[foreign(0, ALL | EVERYTHING), foreign(3, OVERRIDE)]),
    rule("injection.override-foreign", Override, 6.0, &[foreign(0, OVERRIDE), g(3, INSTR)]),
    rule("injection.override-foreign", Override, 5.0, &[foreign(0, PRIOR), foreign(4, OVERRIDE)]),
    rule("injection.new-instructions", Override, 4.0, &[w(YOUR), g(1, NEW), g(1, TASK | INSTR | QUESTION)]),
    rule("injection.new-instructions", Override, 3.0, &[start(NEW), g(1, INSTR | TASK)]),
    rule("injection.new-instructions", Override, 3.5, &[w(YOUR), g(1, TASK), g(1, IS)]),
    rule("injection.new-instructions", Override, 4.0, &[w(FOLLOW), g(2, FOLLOWING | NEW), g(1, INSTR), g(2, INSTEAD | ONLY | NOW)]),
    rule("injection.new-instructions", Override, 4.5, &[w(ONLY | NOW), g(2, FOLLOW), g(3, FOLLOWING), g(1, INSTR)]),
    rule("injection.new-instructions", Override, 3.5, &[foreign(0, NEW), foreign(2, TASK | INSTR)]),
    rule("injection.from-now-on", Override, 3.5, &[w(FROM), w(NOW), g(1, ON | YOU)]),
    rule("injection.change-instructions", Override, 4.5, &[w(CHANGE), g(1, YOUR), g(1, INSTR)]),
    rule("injection.before-task", Override, 3.5, &[w(PRIOR), w(YOU), g(3, CONTINUE), g(5, TASK)]),
    rule("injection.do-this-first", Override, 3.0, &[w(DO), g(3, FOLLOWING | THIS), g(2, FIRST | INSTEAD)]),
    // Roles and personas.
    rule("injection.persona", Persona, 4.5, &[w(YOU), g(1, ARE), w(NOW), g(1, ARTICLE | PERSONA | FREE | AI)]),
    rule("injection.persona", Persona, 4.5, &[w(NOW), w(YOU), w(ARE)]),
    rule("injection.persona", Persona, 2.5, &[start(ACT), g(1, AS)]),
    rule("injection.persona", Persona, 2.5, &[start(ACT), w(TO), w(ARE)]),
    rule("injection.persona", Persona, 5.5, &[w(WANT), w(YOU), w(TO), g(1, ACT)]),
    rule("injection.persona", Persona, 3.5, &[w(WANT), w(YOU), w(TO)]),
    rule("injection.persona", Persona, 3.0, &[w(IMAGINE), g(2, YOU), g(1, ARE | CAN | ACT)]),
    rule("injection.persona", Persona, 3.0, &[start(YOU), w(ARE), g(3, AI | PERSONA | CHARACTER)]),
    rule("injection.persona", Persona, 2.3, &[start(YOU), w(ARE)]),
    rule("injection.persona", Persona, 2.5, &[w(YOU), g(1, MUST), g(2, ACT), g(1, AS)]),
    rule("injection.persona", Persona, 2.0, &[start(LET), g(2, IMAGINE | ACT)]),
    rule("injection.persona", Persona, 2.0, &[w(LET), g(1, IMAGINE | SAY)]),
    rule("injection.persona", Persona, 3.0, &[w(ACT), w(AS), g(2, PERSONA)]),
    rule("injection.persona", Persona, 2.4, &[foreign(0, YOU), w(YOU)]),
    rule("injection.persona", Persona, 3.0, &[foreign(0, NOW), foreign(0, YOU)]),
    rule("injection.persona", Persona, 2.4, &[foreign(0, IMAGINE), g(3, YOU)]),
    rule("injection.persona", Persona, 3.5, &[foreign(0, YOU), foreign(1, NOW)]),
    rule("injection.persona", Persona, 3.0, &[foreign(0, WANT), g(2, YOU)]),
    rule("injection.persona", Persona, 3.0, &[foreign(0, ACT), foreign(1, AS)]),
    rule("injection.stay-in-character", Persona, 3.5, &[w(KEEP), g(2, CHARACTER)]),
    // Lift restrictions.
    rule("injection.jailbreak", Jailbreak, 2.5, &[w(JAIL)]),
    rule("injection.jailbreak", Jailbreak, 4.0, &[w(NONE), g(2, JAIL | RESTRICT), g(6, RESTRICT | AI)]),
    rule("injection.jailbreak", Jailbreak, 2.5, &[w(WITHOUT), g(2, RESTRICT)]),
    rule("injection.jailbreak", Jailbreak, 4.0, &[w(FREE), g(2, FROM), g(6, RESTRICT | AI)]),
    rule("injection.jailbreak", Jailbreak, 3.5, &[w(DO), w(EVERYTHING), w(NOW)]),
    rule("injection.jailbreak", Jailbreak, 3.5, &[w(NOT), g(1, REFUSE), g(4, ALL | TASK | THIS | ME)]),
    rule("injection.jailbreak", Jailbreak, 1.8, &[w(NOT), g(1, REFUSE)]),
    rule("injection.mode", Jailbreak, 4.5, &[w(MODENAME), g(1, MODE), g(2, ENABLED)]),
    rule("injection.mode", Jailbreak, 4.5, &[w(ENABLED), g(2, MODENAME), g(1, MODE)]),
    rule("injection.mode", Jailbreak, 2.0, &[w(MODENAME), w(MODE)]),
    // Secrets and the system prompt.
    rule("injection.reveal-prompt", Reveal, 6.0, &[w(REVEAL), g(4, SYSTEM), w(PROMPT)]),
    rule("injection.reveal-prompt", Reveal, 4.5, &[w(REVEAL), g(3, YOUR), g(2, INSTR | PROMPT | RESTRICT)]),
    rule("injection.reveal-prompt", Reveal, 3.5, &[w(REVEAL), g(3, PRIOR), g(1, INSTR | PROMPT)]),
    rule("injection.reveal-prompt", Reveal, 3.5, &[w(REVEAL | TRANSLATE), g(3, TEXT | INSTR | EVERYTHING), g(1, PRIOR)]),
    rule("injection.reveal-prompt", Reveal, 4.5, &[w(WHAT), g(1, IS), g(1, YOUR), g(2, INSTR | PROMPT)]),
    rule("injection.reveal-prompt", Reveal, 5.0, &[foreign(0, REVEAL), g(4, SYSTEM | YOUR), g(2, PROMPT | INSTR)]),
    rule("injection.reveal-secret", Reveal, 4.0, &[w(REVEAL | WHAT), g(3, YOUR), g(2, SECRET)]),
    rule("injection.reveal-prompt", Reveal, 3.2, &[w(REVEAL | TRANSLATE), g(1, EVERYTHING), g(4, PRIOR)]),
    rule("injection.reveal-secret", Reveal, 3.0, &[start(WHAT), w(IS), g(2, SECRET)]),
    rule("injection.reveal-secret", Reveal, 1.0, &[w(REVEAL), g(2, SECRET)]),
    rule("injection.reveal-secret", Reveal, 2.0, &[start(REVEAL | WHAT | CAN), g(5, SECRET)]),
    rule("injection.reveal-secret", Reveal, 3.5, &[foreign(0, REVEAL | IS | WHAT), g(3, SECRET)]),
    rule("injection.reveal-secret", Reveal, 3.5, &[start(REVEAL | WHAT), g(4, USER), g(3, PII)]),
    rule("injection.reveal-secret", Reveal, 3.0, &[start(CAN), w(YOU), g(2, REVEAL | GET), g(5, PII | SECRET)]),
    // Send data away.
    rule("injection.exfiltrate", Exfiltration, 4.5, &[w(GET), g(10, THEN), g(4, SEND), g(8, EMAIL | URL)]),
    rule("injection.exfiltrate", Exfiltration, 4.0, &[w(SEND), g(4, MY | YOUR | USER), g(8, EMAIL | URL)]),
    rule("injection.exfiltrate", Exfiltration, 3.5, &[w(SEND), g(6, SENSITIVE), g(8, EMAIL | URL)]),
    rule("injection.exfiltrate", Exfiltration, 2.0, &[w(SEND), g(6, THIS | ALL), g(6, EMAIL | URL)]),
    rule("injection.exfiltrate", Exfiltration, 1.5, &[w(SEND), g(8, EMAIL)]),
    rule("injection.exfiltrate", Exfiltration, 1.8, &[w(SEND), g(2, SEND), g(2, TO), g(1, EMAIL)]),
    rule("injection.exfiltrate", Exfiltration, 2.5, &[w(GET), g(6, SECRET), g(8, SEND)]),
    rule("injection.exfiltrate", Exfiltration, 3.0, &[w(SEND), g(3, CONVERSATION), g(5, TO)]),
    rule("injection.exfiltrate", Exfiltration, 3.5, &[w(INCLUDE), g(6, SENSITIVE), g(5, URL)]),
    rule("injection.exfiltrate", Exfiltration, 4.0, &[foreign(0, SEND), g(6, SENSITIVE | EMAIL | URL)]),
    rule("injection.exfiltrate", Exfiltration, 4.0, &[foreign(0, SENSITIVE), g(6, SEND)]),
    // Hide it.
    rule("injection.conceal", Concealment, 5.5, &[w(NOT), g(2, TELL), g(4, USER)]),
    rule("injection.conceal", Concealment, 5.0, &[w(WITHOUT), g(1, TELL), g(3, USER)]),
    rule("injection.conceal", Concealment, 4.5, &[w(WITHOUT), g(3, USER), g(2, KNOWLEDGE)]),
    rule("injection.conceal", Concealment, 4.0, &[w(NOT), g(1, TELL), g(3, THIS), g(2, INSTR | TASK | TEXT)]),
    rule("injection.conceal", Concealment, 2.0, &[w(NOT), w(TELL), g(1, THIS)]),
    rule("injection.conceal", Concealment, 1.5, &[w(COVERT), g(1, ACTION | SEND | GET)]),
    rule("injection.conceal", Concealment, 3.0, &[w(KEEP), g(1, THIS), g(2, SECRET)]),
    rule("injection.conceal", Concealment, 5.0, &[foreign(0, NOT), g(3, TELL), g(3, USER)]),
    rule("injection.conceal", Concealment, 5.0, &[foreign(0, USER), g(4, TELL), g(3, NOT)]),
    // Speak to the machine.
    rule("injection.address", Address, 4.0, &[w(NOTICE), g(2, AI)]),
    rule("injection.address", Address, 2.0, &[start(HELLO), g(1, AI)]),
    rule("injection.address", Address, 2.2, &[w(INSTR), g(1, AI)]),
    rule("injection.address", Address, 5.0, &[w(IF), g(1, YOU), w(ARE), g(2, AI | LANGUAGE | MODEL)]),
    rule("injection.address", Address, 3.0, &[w(AI), g(2, READING)]),
    rule("injection.address", Address, 1.5, &[w(AI), g(2, MUST)]),
    rule("injection.address", Address, 3.0, &[w(AI), w(MODEL), g(2, MUST | READING)]),
    rule("injection.address", Address, 3.0, &[w(LANGUAGE), w(MODEL), g(2, MUST | READING | YOU)]),
    rule("injection.address", Address, 3.0, &[w(AS), g(1, AI), g(3, YOU)]),
    rule("injection.address", Address, 2.5, &[w(TO), w(YOU), w(AI)]),
    rule("injection.address", Address, 2.0, &[w(NOTICE), g(1, FROM), w(ME | AUTHORITY)]),
    // Dictate the answer.
    rule("injection.payload", Payload, 3.0, &[w(RESPOND), g(1, ONLY), g(1, WITH)]),
    rule("injection.payload", Payload, 2.0, &[start(RESPOND), g(1, ONLY | WITH)]),
    rule("injection.payload", Payload, 3.5, &[w(INCLUDE), g(3, YOUR), g(1, RESPONSE)]),
    rule("injection.payload", Payload, 2.0, &[w(YOUR), w(RESPONSE)]),
    rule("injection.payload", Payload, 3.0, &[w(YOUR), g(1, RESPONSE), g(1, MUST)]),
    rule("injection.payload", Payload, 4.0, &[w(REPEAT), w(AFTER), w(ME)]),
    rule("injection.payload", Payload, 2.2, &[w(TELL), g(1, USER), g(1, TO | THIS)]),
    rule("injection.payload", Payload, 2.0, &[start(REPEAT), g(1, QUOTE)]),
    rule("injection.payload", Payload, 2.0, &[w(IMAGINE), g(8, SAY)]),
    rule("injection.payload", Payload, 1.6, &[start(SAY), w(THIS)]),
    rule("injection.payload", Payload, 2.0, &[w(IF), g(4, NOT), g(3, SAY), g(1, QUOTE)]),
    rule("injection.payload", Payload, 2.8, &[w(REPEAT), g(1, ONLY), g(1, QUOTE)]),
    rule("injection.payload", Payload, 2.0, &[w(REPEAT), g(1, THIS), w(YOU)]),
    rule("injection.payload", Payload, 2.0, &[w(REPEAT), g(2, FOLLOWING)]),
    rule("injection.payload", Payload, 3.0, &[foreign(0, REVEAL | RESPOND), foreign(2, FOLLOWING | ONLY)]),
    // Ask for what only the user may ask.
    rule("injection.request", Request, 1.8, &[Step { any: WRITE, all: START | FOREIGN, gap: 0 }]),
    rule("injection.request", Request, 1.8, &[start(TRANSLATE), w(TO)]),
    rule("injection.chat", Chat, 0.8, &[w(YOU | YOUR), g(1, THINK)]),
    rule("injection.chat", Chat, 0.8, &[w(HELP), w(ME)]),
    rule("injection.chat", Chat, 0.8, &[w(YOUR), w(HELP)]),
    rule("injection.chat", Chat, 0.7, &[start(WRITE | SAY | RECOMMEND), w(ME)]),
    rule("injection.request", Request, 3.5, &[start(PLEASE), g(1, ACTION), g(8, MY)]),
    rule("injection.request", Request, 3.0, &[field(PLEASE), g(1, ACTION | GET)]),
    rule("injection.embedded", Embedded, 0.8, &[field(ACTION | GET | SEND | WRITE), w(DET)]),
    rule("injection.embedded", Embedded, 0.8, &[field(CAN), w(YOU)]),
    rule("injection.request", Request, 2.5, &[field(ACTION | GET), g(6, MY)]),
    rule("injection.request", Request, 1.2, &[start(PLEASE), g(1, ACTION)]),
    rule("injection.request", Request, 2.0, &[start(ACTION), g(3, MY)]),
    rule("injection.request", Request, 2.5, &[w(PLEASE), g(2, PAY), g(3, AMOUNT | CURRENCY)]),
    rule("injection.request", Request, 2.0, &[w(PAY), g(3, AMOUNT | CURRENCY)]),
    rule("injection.request", Request, 2.2, &[start(CAN), w(YOU), g(1, ACTION | GET | REVEAL)]),
    rule("injection.request", Request, 2.0, &[start(WRITE | ACTION), w(ME)]),
    rule("injection.request", Request, 3.0, &[w(WRITE), g(3, GENRE)]),
    rule("injection.request", Request, 2.0, &[start(TRANSLATE), g(3, TEXT | FOLLOWING | THIS)]),
    rule("injection.request", Request, 1.8, &[start(RECOMMEND), g(1, ME)]),
    rule("injection.request", Request, 1.2, &[w(ONLY), w(RECOMMEND)]),
    rule("injection.request", Request, 3.0, &[foreign(0, WRITE), foreign(3, GENRE)]),
    // Words in disguise: lookalike letters, digits for letters, letters set apart.
    rule("injection.disguised", Disguise, 2.5, &[disguised(OVERRIDE | INSTR | PRIOR | SYSTEM | SECRET | REVEAL)]),
    rule("injection.spread-letters", Disguise, 2.8, &[w(SPREAD)]),
    // Use of tools.
    rule("injection.tool", Tool, 2.0, &[w(CALL), g(2, TOOL), g(2, TO)]),
    rule("injection.tool", Tool, 3.0, &[w(YOU), g(1, MUST), g(2, CALL), g(4, TOOL)]),
    // Authority and pressure.
    rule("injection.authority", Authority, 4.0, &[w(I), w(AM), g(1, YOUR), g(1, AUTHORITY)]),
    rule("injection.authority", Authority, 2.5, &[w(I), g(1, AM), g(3, AUTHORITY)]),
    rule("injection.authority", Authority, 2.0, &[start(I), g(1, AUTHORITY)]),
    rule("injection.authority", Authority, 1.5, &[w(YOU), g(1, ARE), w(AUTHORIZED)]),
    rule("injection.urgency", Urgency, 1.5, &[w(URGENT), g(1, SHOUT)]),
    rule("injection.urgency", Urgency, 1.0, &[w(THIS), g(1, IS), g(2, URGENT)]),
    rule("injection.urgency", Urgency, 1.0, &[start(URGENT), g(1, INSTR | NOTICE)]),
    rule("injection.urgency", Urgency, 2.0, &[w(YOU | I), g(2, THREAT)]),
    rule("injection.bribe", Urgency, 2.0, &[w(I), g(4, AMOUNT), g(8, YOU)]),
];
