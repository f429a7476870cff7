//! Pure functions on known values: what strings, lists and lookups become.

use super::api::{Dialect, variable};
use super::eval::Eval;
use super::ir::{Op, Text};
use super::value::{Args, Kind, MAX_COMPUTED_LENGTH, Taint, Value, one_slash};
use super::{fold_go, fold_javascript, fold_python};
use crate::paths::UNKNOWN;
use crate::result::Span;

/// A call whose result is known without knowing the world.
pub(crate) fn call(eval: &mut Eval<'_, '_>, path: &str, args: &Args, span: Span) -> Option<Value> {
    match eval.dialect {
        Dialect::Python => fold_python::call(eval, path, args, span),
        Dialect::JavaScript => fold_javascript::call(eval, path, args, span),
        Dialect::Go => fold_go::call(path, args),
        Dialect::Shell => None,
    }
}

/// `f.call(…)`, `f.apply(…)`, `f.bind(…)` of a library function: the call itself, as indirect as the
/// lookup was.
pub(crate) fn applied(
    eval: &mut Eval<'_, '_>,
    callee: &Value,
    path: &str,
    args: &Args,
    span: Span,
) -> Option<Value> {
    if eval.dialect != Dialect::JavaScript {
        return None;
    }
    let (base, name) = path.rsplit_once('.')?;
    let mut base = Value::api(base).with(callee.taint);
    base.indirect = callee.indirect;
    fold_javascript::applied(eval, &base, name, args, span)
}

/// A method of a value that is not an API.
pub(crate) fn method(
    eval: &mut Eval<'_, '_>,
    base: &Value,
    name: &str,
    args: &Args,
    span: Span,
) -> Option<Value> {
    let folded = match eval.dialect {
        Dialect::Python => fold_python::method(eval, base, name, args, span),
        Dialect::JavaScript => fold_javascript::method(eval, base, name, args, span),
        Dialect::Go | Dialect::Shell => None,
    };
    folded.map(|value| value.with(base.taint))
}

/// `base[index]` for constants.
pub(crate) fn item(base: &Value, index: &Value) -> Value {
    let Some(at) = index.as_int() else {
        return Value::unknown(base.deep_taint());
    };
    let pick = |length: usize| {
        let length = i64::try_from(length).ok()?;
        usize::try_from(if at < 0 { length + at } else { at }).ok()
    };
    match &base.kind {
        Kind::List(items) => pick(items.len())
            .and_then(|at| items.get(at))
            .cloned()
            .unwrap_or_else(|| Value::unknown(base.taint)),
        Kind::Text(text) if !text.contains(UNKNOWN) => {
            let c = pick(text.chars().count()).and_then(|at| text.chars().nth(at));
            c.map_or_else(
                || Value::unknown(base.taint),
                |c| Value::text(c.to_string()).with(base.taint),
            )
        }
        Kind::Api(_) => base.clone(),
        _ => Value::unknown(base.deep_taint()),
    }
}

/// A bound of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Absent,
    Known(i64),
    Unknown,
}

impl Bound {
    /// The bound that an argument gives.
    pub(crate) fn of(value: Option<&Value>) -> Self {
        match value.map(Value::as_int) {
            None => Self::Absent,
            Some(Some(int)) => Self::Known(int),
            Some(None) => Self::Unknown,
        }
    }
}

/// `base[start:end:step]` for constants.
pub(crate) fn slice(base: &Value, parts: [Bound; 3]) -> Value {
    if parts.contains(&Bound::Unknown) {
        return Value::unknown(base.taint);
    }
    let known = parts.map(|part| match part {
        Bound::Known(int) => Some(int),
        Bound::Absent | Bound::Unknown => None,
    });
    let pick = |length: usize| -> Vec<usize> {
        let count = i64::try_from(length).unwrap_or(i64::MAX);
        let step = known[2].unwrap_or(1);
        let clamp = |at: i64| (if at < 0 { at.saturating_add(count) } else { at }).clamp(-1, count);
        let mut out = Vec::new();
        if step > 0 {
            let start = known[0].map_or(0, clamp).max(0);
            let end = known[1].map_or(count, clamp);
            let mut at = start;
            while at < end {
                out.extend(usize::try_from(at));
                at = at.saturating_add(step);
            }
        } else if step < 0 {
            let mut at = known[0].map_or(count - 1, clamp).min(count - 1);
            let end = known[1].map_or(-1, clamp);
            while at > end {
                out.extend(usize::try_from(at));
                at = at.saturating_add(step);
            }
        }
        out
    };
    match &base.kind {
        Kind::Text(text) if !text.contains(UNKNOWN) => {
            let chars: Vec<char> = text.chars().collect();
            let text: String = pick(chars.len())
                .into_iter()
                .filter_map(|at| chars.get(at))
                .collect();
            let backwards = known[2].is_some_and(|step| step < 0);
            let spelled = if backwards {
                Taint::SPELLED
            } else {
                Taint::NONE
            };
            Value::text(text).with(base.taint | spelled)
        }
        Kind::List(items) => {
            let picked = pick(items.len())
                .into_iter()
                .filter_map(|at| items.get(at).cloned())
                .collect();
            Value::list(picked).with(base.taint)
        }
        _ => Value::unknown(base.taint),
    }
}

/// `left op right`
pub(crate) fn binary(dialect: Dialect, op: Op, left: &Value, right: &Value) -> Value {
    let taint = left.taint | right.taint;
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        let result = match op {
            Op::Add => a.checked_add(b),
            Op::Sub => a.checked_sub(b),
            Op::Mul => a.checked_mul(b),
            Op::Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            Op::Div => a.checked_div(b),
            Op::Rem => a.checked_rem_euclid(b),
            Op::Xor => Some(a ^ b),
            Op::And => Some(a & b),
            Op::Or => Some(a | b),
            Op::Shl => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)),
            Op::Shr => u32::try_from(b).ok().and_then(|b| a.checked_shr(b)),
            Op::Other => None,
        };
        return result.map_or_else(|| Value::unknown(taint), |int| Value::of(Kind::Int(int)));
    }
    match (op, &left.kind, &right.kind) {
        (Op::Add, Kind::List(a), Kind::List(b)) if a.len() + b.len() <= MAX_COMPUTED_LENGTH => {
            let mut items = a.as_ref().clone();
            items.extend_from_slice(b);
            Value::list(items)
        }
        (Op::Add, Kind::Text(_), _) | (Op::Add, _, Kind::Text(_)) => left.concat(right),
        (Op::Mul, Kind::Text(text), Kind::Int(times))
        | (Op::Mul, Kind::Int(times), Kind::Text(text)) => {
            let times = usize::try_from(*times).unwrap_or(0);
            if text.len().saturating_mul(times) > MAX_COMPUTED_LENGTH {
                return Value::unknown(taint);
            }
            Value::text(text.repeat(times)).with(taint)
        }
        // Flags: `os.O_CREAT | os.O_WRONLY` is both.
        (Op::Or, Kind::Api(_) | Kind::List(_), _) | (Op::Or, _, Kind::Api(_)) => {
            let mut flags = left
                .as_list()
                .map_or_else(|| vec![left.clone()], <[Value]>::to_vec);
            flags.push(right.clone());
            if flags.len() > 64 {
                Value::unknown(taint)
            } else {
                Value::list(flags)
            }
        }
        (Op::Div, Kind::Text(_), _) if dialect == Dialect::Python => {
            join_path(&[left.clone(), right.clone()]).with(taint)
        }
        (Op::Rem, Kind::Text(format), _) if dialect == Dialect::Python => {
            let values: Vec<Value> = right
                .as_list()
                .map_or_else(|| vec![right.clone()], <[Value]>::to_vec);
            percent(format, &values).with(taint)
        }
        _ => Value::unknown(taint),
    }
}

/// `%s`-style formatting.
pub(crate) fn percent(format: &str, values: &[Value]) -> Value {
    let mut out = String::new();
    let mut taint = Taint::NONE;
    let mut values = values.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        if chars.next_if_eq(&'(').is_some() {
            while chars.next().is_some_and(|c| c != ')') {}
            out.push(UNKNOWN);
        } else {
            let mut conversion = 's';
            let value = values.next().cloned().unwrap_or_default();
            while let Some(c) = chars.peek().copied() {
                chars.next();
                conversion = c;
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
            taint |= value.taint;
            match (conversion, value.as_int()) {
                ('c', Some(int)) => out.extend(u32::try_from(int).ok().and_then(char::from_u32)),
                ('x', Some(int)) => out.push_str(&hexadecimal(int)),
                _ => out.push_str(&value.piece()),
            }
            continue;
        }
        while let Some(c) = chars.peek().copied() {
            chars.next();
            if c.is_ascii_alphabetic() {
                break;
            }
        }
    }
    Value::text(out).with(taint)
}

fn hexadecimal(int: i64) -> String {
    format!("{int:x}")
}

/// Paths put together, as `os.path.join` and its kin do.
pub(crate) fn join_path(parts: &[Value]) -> Value {
    let mut out = String::new();
    let mut taint = Taint::NONE;
    for part in parts {
        let piece = part.piece();
        taint |= part.taint;
        if piece.starts_with('/') || piece.starts_with('~') {
            out.clear();
        } else if !out.is_empty() && !out.ends_with('/') {
            out.push('/');
        }
        out.push_str(&piece);
    }
    if out.is_empty() {
        out.push('.');
    }
    Value::text(one_slash(out)).with(taint)
}

/// What stands for each file that a pattern finds.
pub(crate) fn pattern(text: &str) -> Value {
    let pattern = text.replace('*', &UNKNOWN.to_string());
    let all = pattern.rsplit('/').next().is_some_and(|last| {
        let rest = last.trim_matches(UNKNOWN);
        rest.is_empty() || rest == "."
    });
    let walked = if all { Taint::WALKED } else { Taint::NONE };
    Value::text(pattern).with(walked)
}

/// A letter made of a number that is not known: text that nobody is to read.
pub(crate) fn made_letter(number: &Value) -> Value {
    Value::unknown(number.taint | Taint::DECODED)
}

/// Elements of a list as one text.
pub(crate) fn join(separator: &str, items: &[Value]) -> Value {
    let mut out = String::new();
    let mut taint = Taint::NONE;
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        out.push_str(&item.piece());
        taint |= item.taint;
        if out.len() > MAX_COMPUTED_LENGTH {
            return Value::unknown(taint);
        }
    }
    Value::text(out).with(taint)
}

/// An environment variable asked for by name.
pub(crate) fn environment(name: Option<&Value>, default: Option<&Value>) -> Value {
    let value = name.and_then(Value::exact).map_or(Value::UNKNOWN, variable);
    match default {
        Some(default) if value.is_unknown() && !default.is_unknown() => {
            default.clone().with(value.taint)
        }
        _ => value,
    }
}

/// Decoded bytes as text, marked.
pub(crate) fn decoded(bytes: Option<Vec<u8>>, taint: Taint) -> Value {
    let taint = taint | Taint::DECODED;
    match bytes {
        Some(bytes) => {
            let text = String::from_utf8(bytes)
                .unwrap_or_else(|error| error.as_bytes().iter().map(|b| char::from(*b)).collect());
            Value::text(text).with(taint)
        }
        None => Value::unknown(taint),
    }
}

pub(crate) fn rot13(text: &str) -> String {
    let turn = |c: char| match c {
        'a'..='z' => char::from((u8::try_from(c).unwrap_or(b'a') - b'a' + 13) % 26 + b'a'),
        'A'..='Z' => char::from((u8::try_from(c).unwrap_or(b'A') - b'A' + 13) % 26 + b'A'),
        other => other,
    };
    text.chars().map(turn).collect()
}

/// A character by its number.
pub(crate) fn character(int: i64) -> Option<Value> {
    u32::try_from(int)
        .ok()
        .and_then(char::from_u32)
        .map(|c| Value::text(c.to_string()))
}

/// The elements of a value that can be gone through.
pub(crate) fn elements(value: &Value) -> Option<Vec<Value>> {
    match &value.kind {
        Kind::List(items) => Some(items.as_ref().clone()),
        Kind::Text(text) if !text.contains(UNKNOWN) && text.len() <= 4096 => Some(
            text.chars()
                .map(|c| Value::text(c.to_string()).with(value.taint))
                .collect(),
        ),
        _ => None,
    }
}

/// Plain text methods that languages share, by either's name.
pub(crate) fn text_method(text: &str, name: &str, args: &Args) -> Option<Value> {
    let known = !text.contains(UNKNOWN);
    let arg = |at: usize| args.positional.get(at).and_then(Value::exact);
    let out: String = match name {
        "upper" | "toUpperCase" => text.to_uppercase(),
        "lower" | "toLowerCase" | "casefold" => text.to_lowercase(),
        "strip" | "trim" | "lstrip" | "rstrip" | "trimStart" | "trimEnd"
            if args.positional.is_empty() =>
        {
            text.trim().to_owned()
        }
        "replace" | "replaceAll" if known => {
            let (from, to) = (arg(0)?, arg(1)?);
            if from.is_empty() || text.len().saturating_mul(to.len() + 1) > MAX_COMPUTED_LENGTH {
                return None;
            }
            text.replace(from, to)
        }
        "swapcase" => text
            .chars()
            .map(|c| {
                if c.is_uppercase() {
                    c.to_ascii_lowercase()
                } else {
                    c.to_ascii_uppercase()
                }
            })
            .collect(),
        "split" if known => {
            let parts: Vec<Value> = match arg(0) {
                Some("") => text.chars().map(|c| Value::text(c.to_string())).collect(),
                Some(separator) => text.split(separator).map(Value::text).collect(),
                None if args.positional.is_empty() => {
                    text.split_whitespace().map(Value::text).collect()
                }
                None => return None,
            };
            return Some(Value::list(parts));
        }
        "charAt" | "at" if known => {
            let at = usize::try_from(args.first()?.as_int()?).ok()?;
            text.chars().nth(at)?.to_string()
        }
        "charCodeAt" | "codePointAt" if known => {
            let at = usize::try_from(args.first().map_or(Some(0), Value::as_int)?).ok()?;
            return Some(Value::of(Kind::Int(i64::from(u32::from(
                text.chars().nth(at)?,
            )))));
        }
        _ => return None,
    };
    Some(Value::text(out))
}

/// A member looked up by a computed name.
pub(crate) fn lookup(eval: &mut Eval<'_, '_>, base: &Value, name: &str, span: Span) -> Value {
    let name: Text = name.into();
    let mut value = eval.attr(base, &name, span);
    value.indirect = true;
    value
}
