//! JavaScript's pure functions, string and array methods.

use std::rc::Rc;

use super::eval::Eval;
use super::fold::{
    Bound, character, decoded, elements, environment, join, join_path, lookup, made_letter,
    pattern, text_method,
};
use super::ir::{Expr, ExprKind, Function, Stmt};
use super::value::{Args, Kind, Taint, Value};
use crate::result::Span;

#[expect(clippy::too_many_lines, reason = "one arm for each function")]
pub(crate) fn call(eval: &mut Eval<'_, '_>, path: &str, args: &Args, span: Span) -> Option<Value> {
    let first = args.first();
    let text = first.and_then(Value::exact);
    Some(match path {
        "require"
        | "import"
        | "process.mainModule.require"
        | "module.require"
        | "module._load"
        | "Module._load" => {
            let module = text?;
            let module = module.strip_prefix("node:").unwrap_or(module);
            let module = module.strip_suffix("/promises").unwrap_or(module);
            let module = if matches!(module, "fs-extra" | "graceful-fs" | "original-fs") {
                "fs"
            } else {
                module
            };
            let mut value = Value::api(module);
            value.indirect = first?.indirect;
            value.taint |= first?.taint;
            value
        }
        "Function" => {
            let code = args.positional.last().and_then(Value::exact)?;
            let code = code.trim().trim_end_matches(';');
            match code.strip_prefix("return ")?.trim_end_matches("()") {
                "this" | "globalThis" | "self" | "window" | "global" => Value::api("Function#this"),
                _ => return None,
            }
        }
        "Function#this" => {
            let mut value = Value::api("globalThis");
            value.indirect = true;
            value
        }
        "module.createRequire" => Value::api("require"),
        // The file of a package that is installed.
        "require.resolve" | "import.meta.resolve" if !text?.starts_with('.') => {
            Value::text(format!("node_modules/{}/index.js", text?))
        }
        "Blob" | "File" => join("", first?.as_list()?),
        "URL.createObjectURL" => first.filter(|value| value.as_text().is_some())?.clone(),
        "String.fromCharCode" | "String.fromCodePoint" => {
            let chars: Option<Vec<Value>> = args
                .positional
                .iter()
                .map(|value| value.as_int().and_then(character))
                .collect();
            match chars {
                Some(chars) => join("", &chars).with(Taint::SPELLED),
                None => made_letter(&Value::unknown(args.taint())),
            }
        }
        "String" | "String.raw" => match &first?.kind {
            Kind::Text(_) => first?.clone(),
            Kind::Int(int) => Value::text(int.to_string()),
            _ => return None,
        },
        "parseInt" | "Number" => {
            let radix = args
                .positional
                .get(1)
                .and_then(Value::as_int)
                .and_then(|radix| u32::try_from(radix).ok())
                .unwrap_or(10);
            match (first?.as_int(), text) {
                (Some(int), _) => Value::of(Kind::Int(int)),
                (None, Some(text)) if (2..=36).contains(&radix) => {
                    Value::of(Kind::Int(i64::from_str_radix(text, radix).ok()?))
                }
                _ => return None,
            }
        }
        "atob" => decoded(text.and_then(stockade_shell::base64), first?.taint),
        "unescape" | "decodeURIComponent" | "decodeURI" => match text {
            Some(text) => {
                // Letters need no escape, unless they are to be hidden.
                let hidden = text.matches("%6").count() + text.matches("%7").count() >= 8;
                let spelled = if hidden { Taint::SPELLED } else { Taint::NONE };
                Value::text(percent_decoded(text)).with(first?.taint | spelled)
            }
            None => return None,
        },
        "Buffer.from" | "Buffer" => {
            let bytes = match args.positional.get(1).and_then(Value::exact) {
                Some("base64" | "base64url") => Some(text.and_then(stockade_shell::base64)),
                Some("hex") => Some(text.and_then(stockade_shell::hex)),
                _ => None,
            };
            match (bytes, &first?.kind) {
                (Some(bytes), _) => decoded(bytes, first?.taint),
                (None, Kind::Text(_)) => first?.clone(),
                (None, Kind::List(items)) => {
                    let chars: Option<Vec<Value>> = items
                        .iter()
                        .map(|item| item.as_int().and_then(character))
                        .collect();
                    join("", &chars?)
                }
                _ => return None,
            }
        }
        "glob.sync" | "glob.globSync" | "glob.glob" | "fast-glob.sync" | "fast-glob"
        | "globby.sync" | "globby" | "globby.globbySync" => {
            Value::list(vec![pattern(first?.as_text()?)])
        }
        "path.join" | "path.resolve" => join_path(&args.positional),
        "os.homedir" => Value::text("~"),
        "os.tmpdir" => Value::text("/tmp"),
        "process.cwd" => Value::text("."),
        "Reflect.get" => lookup(eval, first?, args.positional.get(1)?.exact()?, span),
        "Reflect.apply" | "Reflect.construct" => {
            let at = if path == "Reflect.apply" { 2 } else { 1 };
            let given = args.positional.get(at).and_then(Value::as_list);
            let inner = Args::of(given.unwrap_or_default().to_vec());
            eval.invoke(first?, &inner, span, &[])
        }
        "Object.getOwnPropertyDescriptor" => {
            let member = lookup(eval, first?, args.positional.get(1)?.exact()?, span);
            let pair = (Value::text("value"), member);
            Value::dict(vec![pair])
        }
        "Object.keys" | "Object.getOwnPropertyNames" | "Object.entries" | "Object.values" => {
            let base = first?.as_api()?;
            Value::api(format!(
                "{base}#{}",
                if path.ends_with("entries") {
                    "entries"
                } else {
                    "keys"
                }
            ))
            .with(first?.taint)
        }
        "path.normalize" | "util.promisify" | "Object.freeze" | "Promise.resolve"
        | "Array.from" => first?.clone(),
        "process.env" => environment(first, None),
        _ => return member_call(eval, path, args, span),
    })
}

/// Calls of members that every function or enumeration has.
fn member_call(eval: &mut Eval<'_, '_>, path: &str, args: &Args, span: Span) -> Option<Value> {
    let (base, name) = path.rsplit_once('.')?;
    if let Some((object, what)) = base.rsplit_once('#') {
        // Going through an API's members to find one by its name.
        if !matches!(name, "find" | "filter") {
            return None;
        }
        let Kind::Function(function) = &args.first()?.kind else {
            return None;
        };
        let key = compared(function)?;
        let member = lookup(eval, &Value::api(object), &key, span);
        let mut found = if what == "entries" {
            Value::list(vec![Value::text(key.as_str()), member])
        } else {
            Value::text(key.as_str())
        };
        found.indirect = true;
        return Some(if name == "filter" {
            Value::list(vec![found])
        } else {
            found
        });
    }
    None
}

/// `f.call(…)`, `f.apply(…)`, `f.bind(…)`.
pub(crate) fn applied(
    eval: &mut Eval<'_, '_>,
    base: &Value,
    name: &str,
    args: &Args,
    span: Span,
) -> Option<Value> {
    let rest = args.positional.get(1..).unwrap_or_default().to_vec();
    match name {
        "call" => Some(eval.invoke(base, &Args::of(rest), span, &[])),
        "apply" => {
            let positional = rest
                .first()
                .and_then(Value::as_list)
                .unwrap_or_default()
                .to_vec();
            Some(eval.invoke(base, &Args::of(positional), span, &[]))
        }
        // A promise of a module gives the module.
        "then" if base.as_api().is_some_and(|path| !path.contains('(')) => {
            let callback = args.positional.first()?.clone();
            let given = Args::of(vec![base.clone()]);
            Some(eval.invoke(&callback, &given, span, &[]))
        }
        "bind" => Some(Value::partial(base, rest)),
        _ => None,
    }
}

/// The first text that a function compares with or returns.
fn compared(function: &Function) -> Option<String> {
    fn in_expr(expr: &Expr) -> Option<String> {
        match &expr.kind {
            ExprKind::Text(text) => Some(text.to_string()),
            ExprKind::Binary(_, left, right) => in_expr(right).or_else(|| in_expr(left)),
            ExprKind::Many(parts) | ExprKind::Either(parts) | ExprKind::Yield(parts) => {
                parts.iter().find_map(in_expr)
            }
            _ => None,
        }
    }
    function.body.iter().find_map(|statement| match statement {
        Stmt::Return(Some(expr)) | Stmt::Expr(expr) => in_expr(expr),
        _ => None,
    })
}

pub(crate) fn method(
    eval: &mut Eval<'_, '_>,
    base: &Value,
    name: &str,
    args: &Args,
    span: Span,
) -> Option<Value> {
    let first = args.first();
    if let Kind::Function(_) | Kind::Partial(_) | Kind::Method(_) = base.kind
        && let Some(value) = applied(eval, base, name, args, span)
    {
        return Some(value);
    }
    match (&base.kind, name) {
        (Kind::Text(text), _) => {
            if let Some(value) = text_method(text, name, args) {
                return Some(value);
            }
            match name {
                "toString" if matches!(first.and_then(Value::exact), Some("hex" | "base64")) => {
                    Some(Value::unknown(base.taint))
                }
                "toString" | "valueOf" | "normalize" => Some(base.clone()),
                "concat" => {
                    let mut parts = vec![base.clone()];
                    parts.extend(args.positional.iter().cloned());
                    Some(join("", &parts))
                }
                "slice" | "substring" | "substr" => {
                    let start = first?.as_int()?;
                    let end = match (name, Bound::of(args.positional.get(1))) {
                        ("substr", Bound::Known(length)) => {
                            Bound::Known(start.checked_add(length)?)
                        }
                        (_, end) => end,
                    };
                    Some(super::fold::slice(
                        base,
                        [Bound::Known(start), end, Bound::Absent],
                    ))
                }
                _ => None,
            }
        }
        (Kind::List(items), "join") => {
            Some(join(first.and_then(Value::exact).unwrap_or(","), items))
        }
        (Kind::List(items), "reverse") => Some(Value::list(items.iter().rev().cloned().collect())),
        (Kind::List(items), "concat") => {
            let mut all = items.as_ref().clone();
            all.extend(elements(first?)?);
            Some(Value::list(all))
        }
        (Kind::List(_), "slice") => {
            let bounds = [
                Bound::of(first),
                Bound::of(args.positional.get(1)),
                Bound::Absent,
            ];
            Some(super::fold::slice(base, bounds))
        }
        (Kind::List(items), "map" | "forEach" | "flatMap") => {
            let function = first?.clone();
            let items = Rc::clone(items);
            let mut out = Vec::new();
            for item in items.iter().take(1024) {
                let args = Args::of(vec![item.clone()]);
                out.push(eval.invoke(&function, &args, span, &[]));
            }
            Some(Value::list(out))
        }
        (Kind::Int(int), "toString") => {
            let radix = first.and_then(Value::as_int).unwrap_or(10);
            Some(Value::text(if radix == 36 {
                base36(*int)
            } else {
                int.to_string()
            }))
        }
        _ => None,
    }
}

fn base36(int: i64) -> String {
    let mut digits = Vec::new();
    let mut rest = int.unsigned_abs();
    loop {
        let digit = u32::try_from(rest % 36).unwrap_or(0);
        digits.extend(char::from_digit(digit, 36));
        rest /= 36;
        if rest == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes
            .get(at + 1..at + 3)
            .and_then(|pair| std::str::from_utf8(pair).ok())
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
