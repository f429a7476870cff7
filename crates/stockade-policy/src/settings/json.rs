//! JSON.

use serde_json::Value;

use super::secrets::{clean, harmless, is_secret_name};

pub(super) fn copy(text: &str) -> Option<String> {
    let Value::Object(settings) = serde_json::from_str(text).ok()? else {
        return None;
    };
    let mut copy = serde_json::to_string_pretty(&cleaned(Value::Object(settings))?).ok()?;
    copy.push('\n');
    Some(copy)
}

/// A value without secrets; none if it is one.
fn cleaned(value: Value) -> Option<Value> {
    Some(match value {
        Value::String(text) => Value::String(clean(&text)?),
        Value::Array(items) => Value::Array(items.into_iter().filter_map(cleaned).collect()),
        Value::Object(entries) => Value::Object(
            entries
                .into_iter()
                .filter(|(name, _)| harmless(name).is_some() && !is_secret_name(name))
                .filter_map(|(name, value)| Some((name, cleaned(value)?)))
                .collect(),
        ),
        Value::Number(number) => {
            clean(&number.to_string())?;
            Value::Number(number)
        }
        other => other,
    })
}
