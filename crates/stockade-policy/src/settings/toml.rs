//! TOML.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::secrets::{clean, harmless, is_secret_name};

pub(super) fn copy(text: &str) -> Option<String> {
    let mut copy = String::new();
    put_table("", text.parse::<Table>().ok()?, &mut copy)?;
    Some(copy)
}

/// Writes a table: its values first, then a section for each table in it.
fn put_table(header: &str, table: Table, copy: &mut String) -> Option<()> {
    let kept = table
        .into_iter()
        .filter(|(name, _)| harmless(name).is_some() && !is_secret_name(name));
    let (tables, values): (Vec<_>, Vec<_>) = kept.partition(|(_, value)| value.is_table());
    if !header.is_empty() {
        let _ = writeln!(copy, "[{header}]");
    }
    for (name, value) in values {
        if let Some(value) = inline(value) {
            let _ = writeln!(copy, "{} = {value}", quoted(&name)?);
        }
    }
    for (name, value) in tables {
        if let Value::Table(table) = value {
            let name = quoted(&name)?;
            let header = match header {
                "" => name,
                _ => format!("{header}.{name}"),
            };
            put_table(&header, table, copy)?;
        }
    }
    Some(())
}

/// A value on one line, without secrets; none if it is or has one.
fn inline(value: Value) -> Option<String> {
    Some(match value {
        Value::String(text) => quoted(&clean(&text)?)?,
        Value::Integer(number) => clean(&number.to_string())?,
        Value::Float(number) => clean(&number.to_string())?,
        Value::Boolean(value) => value.to_string(),
        Value::Datetime(time) => time.to_string(),
        Value::Array(items) => {
            // A list without one of its words may mean something else.
            let items: Option<Vec<String>> = items.into_iter().map(inline).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Table(table) => {
            let kept = table
                .into_iter()
                .filter(|(name, _)| harmless(name).is_some() && !is_secret_name(name));
            let pairs: Option<Vec<String>> = kept
                .filter_map(|(name, value)| Some((name, inline(value)?)))
                .map(|(name, value)| Some(format!("{} = {value}", quoted(&name)?)))
                .collect();
            format!("{{ {} }}", pairs?.join(", "))
        }
    })
}

/// A string of JSON is a basic string of TOML, except for the character DEL.
fn quoted(text: &str) -> Option<String> {
    if text.contains('\u{7f}') {
        return None;
    }
    serde_json::to_string(text).ok()
}
