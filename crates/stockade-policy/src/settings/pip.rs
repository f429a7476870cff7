//! The dialect of Python's `configparser`: `name = value` or `name: value`, continued by lines that
//! are indented further.

use std::fmt::Write as _;

use super::secrets::{clean, harmless, is_secret_name};

pub(super) fn copy(text: &str) -> Option<String> {
    let mut copy = String::new();
    let mut current: Option<Setting<'_>> = None;
    // Whether what follows is in a section, and in one that is kept.
    let (mut in_section, mut is_kept) = (false, false);
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(setting) = &mut current
            && indent > setting.indent
        {
            setting.lines.push(trimmed);
            continue;
        }
        if let Some(setting) = current.take() {
            setting.put(is_kept, &mut copy);
        }
        if let Some(section) = trimmed.strip_prefix('[') {
            let section = section.split_once(']')?.0;
            in_section = true;
            is_kept = harmless(section).is_some() && !is_secret_name(section);
            if is_kept {
                let _ = writeln!(copy, "[{section}]");
            }
            continue;
        }
        // The parser of the client refuses both.
        let (name, value) = trimmed.split_once(['=', ':'])?;
        if !in_section {
            return None;
        }
        current = Some(Setting {
            indent,
            name: name.trim(),
            lines: vec![value.trim()],
        });
    }
    if let Some(setting) = current {
        setting.put(is_kept, &mut copy);
    }
    Some(copy)
}

struct Setting<'a> {
    indent: usize,
    name: &'a str,
    lines: Vec<&'a str>,
}

impl Setting<'_> {
    /// Adds the setting without its secrets, if more than a secret is left.
    fn put(&self, is_kept: bool, copy: &mut String) {
        if !is_kept || harmless(self.name).is_none() || is_secret_name(self.name) {
            return;
        }
        let lines: Option<Vec<String>> = self.lines.iter().map(|line| clean(line)).collect();
        if let Some(lines) = lines
            && clean(&lines.join(" ")).is_some()
        {
            let _ = writeln!(copy, "{} = {}", self.name, lines.join("\n    "));
        }
    }
}
