//! JSON settings of an agent, changed in one place: everything else stays as the user wrote it.

use std::fmt::Write as _;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The key that holds the lists of hooks.
const HOOKS: &str = "hooks";

/// The values of an object in their order, as they were written.
#[derive(Debug, Default)]
struct Object(Vec<(String, Box<RawValue>)>);

/// A settings file.
#[derive(Debug)]
pub(super) struct Settings(Object);

impl Settings {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = if text.trim().is_empty() { "{}" } else { text };
        let object: Object = serde_json::from_str(text).map_err(|error| error.to_string())?;
        object.check_names()?;
        Ok(Self(object))
    }

    /// The hooks of an event, as they were written.
    pub(super) fn entries(&self, event: &str) -> Result<Vec<String>, String> {
        let entries = self.list(event)?;
        Ok(entries.iter().map(|entry| entry.get().to_owned()).collect())
    }

    /// Adds a hook of an event in front of the others: none that is added later comes first.
    pub(super) fn add(&mut self, event: &str, entry: &serde_json::Value) -> Result<(), String> {
        let mut entries = self.list(event)?;
        entries.insert(0, raw(entry.to_string())?);
        self.set_list(event, &entries)
    }

    pub(super) fn remove(
        &mut self,
        event: &str,
        is_removed: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let mut entries = self.list(event)?;
        entries.retain(|entry| !is_removed(entry.get()));
        self.set_list(event, &entries)
    }

    pub(super) fn to_text(&self) -> String {
        self.0.to_text()
    }

    fn hooks(&self) -> Result<Object, String> {
        let Some(hooks) = self.0.get(HOOKS) else {
            return Ok(Object::default());
        };
        let hooks: Object = serde_json::from_str(hooks.get())
            .map_err(|_| format!("`{HOOKS}` in it is not an object"))?;
        hooks.check_names()?;
        Ok(hooks)
    }

    fn list(&self, event: &str) -> Result<Vec<Box<RawValue>>, String> {
        match self.hooks()?.get(event) {
            None => Ok(Vec::new()),
            Some(list) => serde_json::from_str(list.get())
                .map_err(|_| format!("`{HOOKS}.{event}` in it is not a list")),
        }
    }

    fn set_list(&mut self, event: &str, entries: &[Box<RawValue>]) -> Result<(), String> {
        let entries: Vec<&str> = entries.iter().map(|entry| entry.get()).collect();
        let mut hooks = self.hooks()?;
        hooks.set(event, &format!("[{}]", entries.join(", ")))?;
        self.0.set(HOOKS, &hooks.to_text())
    }
}

impl Object {
    fn get(&self, name: &str) -> Option<&RawValue> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| &**value)
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let value = raw(text.trim_end().to_owned())?;
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// Of two values with one name, readers take one or the other.
    fn check_names(&self) -> Result<(), String> {
        for (at, (name, _)) in self.0.iter().enumerate() {
            if self.0[..at].iter().any(|(other, _)| other == name) {
                return Err(format!("it has `{name}` twice"));
            }
        }
        Ok(())
    }

    fn to_text(&self) -> String {
        let mut text = "{".to_owned();
        for (at, (name, value)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let name = serde_json::Value::from(name.as_str());
            let _ = write!(text, "{comma}\n  {name}: {}", value.get());
        }
        text.push_str("\n}\n");
        text
    }
}

fn raw(text: String) -> Result<Box<RawValue>, String> {
    RawValue::from_string(text).map_err(|error| error.to_string())
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Object;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut object = Object::default();
                while let Some(entry) = map.next_entry()? {
                    object.0.push(entry);
                }
                Ok(object)
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: &str = "{\"z\" : 1.50e1,\n\t\"hooks\": {\"Stop\":[ ], \"PreToolUse\": [{\"b\":1,  \"a\":[]}]}, \"a\":\"\\u00e9\"}";

    fn changed(text: &str) -> Settings {
        let mut settings = Settings::parse(text).unwrap();
        settings
            .add("PreToolUse", &serde_json::json!({ "own": true }))
            .unwrap();
        settings
    }

    #[test]
    fn everything_else_stays_as_it_was_written() {
        let settings = changed(ODD);
        let text = settings.to_text();
        for piece in [
            "\"z\": 1.50e1",
            "{\"b\":1,  \"a\":[]}",
            "\"a\": \"\\u00e9\"",
            "[ ]",
        ] {
            assert!(text.contains(piece), "{text}");
        }
        let mut again = Settings::parse(&text).unwrap();
        assert_eq!(again.entries("PreToolUse").unwrap().len(), 2);
        again
            .remove("PreToolUse", |entry| entry.contains("own"))
            .unwrap();
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&again.to_text()), value(ODD));
    }

    #[test]
    fn an_empty_file_becomes_one() {
        let text = changed("").to_text();
        assert_eq!(
            Settings::parse(&text)
                .unwrap()
                .entries("PreToolUse")
                .unwrap(),
            ["{\"own\":true}"]
        );
    }

    #[test]
    fn what_is_odd_is_refused() {
        for text in [
            "[]",
            "{\"a\":1,}",
            "// x\n{}",
            "{\"hooks\":{},\"hooks\":{}}",
            "\u{feff}{}",
        ] {
            assert!(Settings::parse(text).is_err(), "{text}");
        }
        for text in ["{\"hooks\":[]}", "{\"hooks\":{\"PreToolUse\":{}}}"] {
            let mut settings = Settings::parse(text).unwrap();
            assert!(
                settings.add("PreToolUse", &serde_json::json!({})).is_err(),
                "{text}"
            );
        }
    }
}
