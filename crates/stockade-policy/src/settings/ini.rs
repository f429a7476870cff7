//! The dialect of npm: `name = value`, `name[] = value`, `[section]`.

use super::secrets::{clean, harmless, is_secret_name};

pub(super) fn copy(text: &str) -> String {
    let mut copy = String::new();
    let mut is_kept = true;
    for line in text.split(['\r', '\n']).map(str::trim) {
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            is_kept = is_plain(section) && !is_secret_name(section);
            if is_kept {
                copy.push_str(line);
                copy.push('\n');
            }
        } else if is_kept && let Some(line) = setting(line) {
            copy.push_str(&line);
            copy.push('\n');
        }
    }
    copy
}

/// A line without its secrets; none if it is nothing but one.
fn setting(line: &str) -> Option<String> {
    let (name, value) = match line.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (line, None),
    };
    if !is_plain(name) || is_secret_name(name) {
        return None;
    }
    let Some(value) = value else {
        // A name alone is a switch; a text with more in it is not for this client.
        let is_switch = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        return is_switch.then(|| name.to_owned());
    };
    let value = clean(&decoded(value)?)?;
    let is_simple = !value.contains(['"', '\'', ';', '#', '\\', '\n']) && value.trim() == value;
    let value = if is_simple {
        value
    } else {
        serde_json::to_string(&value).ok()?
    };
    Some(format!("{name}={value}"))
}

/// Whether a name is written as it is and holds no secret.
fn is_plain(name: &str) -> bool {
    !name.contains(['"', '\'', '\\', ';', '#']) && harmless(name).is_some()
}

/// What a value stands for; none if it is written in a way that needs more than this to tell.
fn decoded(value: &str) -> Option<String> {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if value.starts_with('"') {
        return serde_json::from_str(value).ok();
    }
    if let Some(inner) = inner('\'') {
        return (!inner.contains(['\'', '"', '\\'])).then(|| inner.to_owned());
    }
    let value = value.split([';', '#']).next().unwrap_or_default().trim();
    (!value.contains(['\\', '\''])).then(|| value.to_owned())
}
