//! The part of YAML that Yarn writes. Whatever else YAML can express (scalars of several lines,
//! collections on one line, anchors, tags) is not understood.

use std::fmt::Write as _;

use super::secrets::{clean, harmless, is_secret_name};

struct Line<'a> {
    indent: usize,
    /// What the line begins with: `- ` for an item of a list.
    dash: &'static str,
    name: Option<&'a str>,
    value: Option<String>,
    is_kept: bool,
}

pub(super) fn copy(text: &str) -> Option<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if !trimmed.is_empty() && !trimmed.starts_with('#') && trimmed != "---" {
            lines.push(Line::read(line)?);
        }
    }
    drop_secrets(&mut lines);
    drop_empty(&mut lines);
    let mut copy = String::new();
    for line in lines.iter().filter(|line| line.is_kept) {
        let name = line.name.map_or(String::new(), |name| format!("{name}:"));
        let value = line.value.as_deref().unwrap_or_default();
        let space = if name.is_empty() || value.is_empty() {
            ""
        } else {
            " "
        };
        let indent = " ".repeat(line.indent);
        let _ = writeln!(copy, "{indent}{}{name}{space}{value}", line.dash);
    }
    Some(copy)
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let (dash, text) = match text.strip_prefix("- ") {
            Some(text) => ("- ", text.trim_start()),
            None => ("", text),
        };
        let text = text.trim_end();
        let (name, value) = match mapping(text)? {
            (Some(name), value) => (Some(name), value),
            // A line that is neither continues a scalar.
            (None, _) if dash.is_empty() => return None,
            (None, value) => (None, value),
        };
        let is_secret = name.is_some_and(|name| {
            let bare = name.trim_matches(['"', '\'']);
            is_secret_name(bare) || harmless(bare).is_none()
        });
        let decoded = decoded(value)?;
        let cleaned = clean(&decoded);
        let is_kept = !is_secret && cleaned.is_some();
        let value = match cleaned {
            _ if value.is_empty() => None,
            // A plain scalar may be a number or a truth value.
            Some(same) if same == value => Some(same),
            Some(other) => Some(serde_json::to_string(&other).ok()?),
            None => Some(String::new()),
        };
        Some(Self {
            indent,
            dash,
            name,
            value,
            is_kept,
        })
    }

    /// Where what belongs to its name begins.
    fn column(&self) -> usize {
        self.indent + self.dash.len()
    }
}

/// Splits `name: value`, with the name as it is written; none if it can't be told.
fn mapping(text: &str) -> Option<(Option<&str>, &str)> {
    let end = match text.chars().next()? {
        quote @ ('"' | '\'') => {
            let end = text[1..].find(quote)? + 2;
            if text[..end].contains('\\') {
                return None;
            }
            end
        }
        '&' | '*' | '!' | '|' | '>' | '{' | '[' | '%' | '@' | '`' | '?' | '\t' => return None,
        _ => text
            .find(": ")
            .or_else(|| text.strip_suffix(':').map(str::len))
            .unwrap_or(text.len()),
    };
    Some(match text[end..].strip_prefix(':') {
        Some(value) if value.is_empty() || value.starts_with(' ') => {
            (Some(&text[..end]), value.trim())
        }
        Some(_) => return None,
        None => (None, text),
    })
}

/// What a scalar stands for; none if it goes on in the next line or is no scalar.
fn decoded(value: &str) -> Option<String> {
    let value = value.trim();
    match value.chars().next() {
        None => Some(String::new()),
        Some('"') => serde_json::from_str(value).ok(),
        Some('\'') => {
            let inner = value.strip_prefix('\'')?.strip_suffix('\'')?;
            (!inner.replace("''", "").contains('\'')).then(|| inner.replace("''", "'"))
        }
        Some('&' | '*' | '!' | '|' | '>' | '{' | '[' | '%' | '@' | '`' | '#') => None,
        Some(_) => Some(
            value
                .split(" #")
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
        ),
    }
}

/// What lies below a name that is left out is left out as well.
fn drop_secrets(lines: &mut [Line<'_>]) {
    let mut dropped: Option<(usize, bool)> = None;
    for line in lines {
        if let Some((column, is_list_open)) = dropped {
            let is_item = !line.dash.is_empty() && line.indent == column && is_list_open;
            if line.indent > column || is_item {
                line.is_kept = false;
                continue;
            }
            dropped = None;
        }
        if !line.is_kept {
            // A list may be indented as far as its name.
            dropped = Some((line.column(), line.dash.is_empty()));
        }
    }
}

/// A name whose every entry was left out would have no value, which clients refuse.
fn drop_empty(lines: &mut [Line<'_>]) {
    for at in (0..lines.len()).rev() {
        let (column, is_parent) = (lines[at].column(), lines[at].value.is_none());
        let is_named = lines[at].name.is_some() && lines[at].dash.is_empty();
        let below = lines[at + 1..].iter().take_while(|line| {
            line.indent > column || (is_named && line.indent == column && !line.dash.is_empty())
        });
        let kept: Vec<bool> = below.map(|line| line.is_kept).collect();
        if is_parent && !kept.is_empty() && !kept.contains(&true) {
            lines[at].is_kept = false;
        }
    }
}
