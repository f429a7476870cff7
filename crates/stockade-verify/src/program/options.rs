//! What options say, whatever takes them: commands to run, files to attach.

use super::judge::Judge;
use super::value::{Args, Kind, Value};

/// Options inside options that are looked at, and how many in all.
const DEPTH: usize = 4;
const MAX_OPTIONS: usize = 128;
impl Judge<'_> {}

/// Values in the objects and lists of arguments, each with the name that it stands under; lists
/// too. Not all, where there are very many.
pub(super) fn leaves(args: &Args) -> Vec<(&str, &Value)> {
    let mut out = Vec::new();
    for (name, value) in &args.named {
        gather(name, value, DEPTH, &mut out);
    }
    for value in &args.positional {
        gather("", value, DEPTH, &mut out);
    }
    out
}

fn gather<'v>(name: &'v str, value: &'v Value, depth: usize, out: &mut Vec<(&'v str, &'v Value)>) {
    if out.len() >= MAX_OPTIONS {
        return;
    }
    match &value.kind {
        Kind::Dict(pairs) if depth > 0 => {
            for (key, value) in pairs.iter().take(MAX_OPTIONS) {
                gather(key.exact().unwrap_or_default(), value, depth - 1, out);
            }
        }
        Kind::List(items) if depth > 0 => {
            out.push((name, value));
            for item in items.iter().take(MAX_OPTIONS) {
                gather(name, item, depth - 1, out);
            }
        }
        Kind::Text(_) => out.push((name, value)),
        _ => {}
    }
}
