//! The schema and the reader know the same keys.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::profile::keys::KEYS;

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().unwrap().iter()
}

/// `table.key` for every key in the schema.
fn keys_of_schema() -> BTreeSet<String> {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let mut keys = BTreeSet::new();
    for (name, value) in properties(&schema) {
        let table = value["anyOf"].get(0).unwrap_or(value);
        if table["additionalProperties"] == false {
            keys.extend(properties(table).map(|(key, _)| format!("{name}.{key}")));
        } else {
            keys.insert(name.clone());
        }
    }
    keys
}

#[test]
fn the_reader_takes_every_key_of_the_schema_and_no_other() {
    let path = |key: &str| match key.split_once('.') {
        Some((table, key)) => format!("[{table}]\n{key} = {{}}"),
        None => format!("{key} = {{}}"),
    };
    let is_unknown = |key: &str| {
        matches!(
            user(&path(key)),
            Err(ProfileError::Load(LoadError::UnknownKey(_)))
        )
    };
    let schema = keys_of_schema();
    for key in &schema {
        assert!(!is_unknown(key), "{key}");
    }
    for key in KEYS {
        let name = if key.table.is_empty() {
            key.name.to_owned()
        } else {
            format!("{}.{}", key.table, key.name)
        };
        assert!(schema.contains(&name), "{name}");
    }
    for key in ["nothing", "filesystem.nothing", "network.read", "mem"] {
        assert!(is_unknown(key) && !schema.contains(key), "{key}");
    }
}

#[test]
fn the_schema_is_what_it_was() {
    insta::assert_snapshot!(schema());
}
