//! The rules: sequences of meanings with room between them, each worth a weight.
//!
//! A weight is the logarithm of how much likelier the sequence is in an attack than in ordinary
//! output. Few rules suffice alone; the score of a passage adds up what different rules say
//! about it.

mod table;

use super::lexicon::{Class, DISGUISED, FIELD, FOREIGN, START};
pub(super) use table::RULES;

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
    /// Speaks against an attack: its weights are negative.
    Benign,
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
    pub(super) const COUNT: usize = 17;

    /// What a person is told.
    pub(super) const fn message(self) -> &'static str {
        match self {
            Self::Address => "speaks to an AI agent",
            Self::Authority => "claims authority over the agent",
            Self::Benign => "is advice to people",
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
    Rule {
        id,
        theme,
        weight,
        steps,
    }
}

/// A word with one of these meanings, directly after the last.
const fn w(any: Class) -> Step {
    Step {
        any,
        all: 0,
        gap: 0,
    }
}

/// The same with up to `gap` words between.
const fn g(gap: u32, any: Class) -> Step {
    Step { any, all: 0, gap }
}

/// A word that starts a sentence, line or field.
const fn start(any: Class) -> Step {
    Step {
        any,
        all: START,
        gap: 0,
    }
}

/// A word right after the last that starts anew, as after a colon: `assistant: send …`.
const fn fresh(any: Class) -> Step {
    Step {
        any,
        all: START,
        gap: 2,
    }
}

/// A word that starts the value of a field: `"note": "Please …`.
const fn field(any: Class) -> Step {
    Step {
        any,
        all: FIELD,
        gap: 0,
    }
}

/// A word of another language than English.
const fn foreign(gap: u32, any: Class) -> Step {
    Step {
        any,
        all: FOREIGN,
        gap,
    }
}

/// A word spelled so that a search misses it.
const fn disguised(any: Class) -> Step {
    Step {
        any,
        all: DISGUISED,
        gap: 0,
    }
}
