//! The JSON schema of the profile file, made from the same list of keys that the reader uses.

use serde_json::{Map, Value, json};

use super::choice::{Backend, Base, HomeMode, Level, NetworkMode, SeccompMode};
use super::clause::Clause;
use crate::host::Methods;

use super::keys::{Key, SHORT, Setting, keys_of, tables};

/// The schema, as `stockade policy schema` prints it.
pub fn schema() -> String {
    let mut properties = properties("");
    for table in tables() {
        let whole = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": Value::Object(self::properties(table)),
        });
        let short = SHORT.iter().find(|(short, _)| *short == table);
        let short = short.and_then(|(_, only)| keys_of(table).find(|key| key.name == *only));
        let schema = match short {
            Some(key) => json!({ "anyOf": [whole, kind(key)] }),
            None => whole,
        };
        properties.insert(table.to_owned(), schema);
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Stockade profile",
        "description": "What a sandbox may touch. A project's stockade.toml may only narrow.",
        "type": "object",
        "required": ["version"],
        "additionalProperties": false,
        "properties": Value::Object(properties),
    });
    format!("{schema:#}\n")
}

fn properties(table: &str) -> Map<String, Value> {
    keys_of(table)
        .map(|key| {
            let mut schema = kind(key);
            schema["description"] = key.doc.into();
            (key.name.to_owned(), schema)
        })
        .collect()
}

/// What may be written for a key.
fn kind(key: &Key) -> Value {
    let words = |words: &[&str]| json!({ "type": "string", "enum": words });
    let list = |of: Value| json!({ "type": "array", "items": of });
    match key.setting {
        Setting::Version => json!({ "const": 1 }),
        Setting::Extends => json!({ "type": "string" }),
        Setting::Backend => words(Backend::WORDS),
        Setting::Base => words(Base::WORDS),
        Setting::Home => words(HomeMode::WORDS),
        Setting::Level => words(Level::WORDS),
        Setting::NetworkMode => words(NetworkMode::WORDS),
        Setting::Methods => words(Methods::WORDS),
        Setting::SeccompMode => words(SeccompMode::WORDS),
        Setting::Require => list(words(Clause::WORDS)),
        Setting::BestEffort | Setting::GitConfig | Setting::HiddenNames | Setting::Nested => {
            json!({ "type": "boolean" })
        }
        Setting::Limit(_) => json!({ "type": ["string", "integer"] }),
        Setting::Expose | Setting::HostPort => {
            list(json!({ "type": "integer", "minimum": 1, "maximum": 65535 }))
        }
        Setting::EnvSet => json!({
            "type": "object",
            "additionalProperties": { "type": "string" },
        }),
        Setting::Allow
        | Setting::Block
        | Setting::Devices
        | Setting::EnvKeep
        | Setting::Mask
        | Setting::Paths(_)
        | Setting::Resolve
        | Setting::SeccompBlock
        | Setting::Unix => list(json!({ "type": "string" })),
    }
}
