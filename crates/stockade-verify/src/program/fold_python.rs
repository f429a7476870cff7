//! Python's pure functions and string methods.

use super::eval::Eval;
use super::fold::{
    character, decoded, elements, environment, join, join_path, lookup, made_letter, pattern,
    rot13, text_method,
};
use super::namespaces;
use super::places::is_own;
use super::value::{Args, Kind, MAX_COMPUTED_LENGTH, Taint, Value};
use crate::paths::UNKNOWN;
use crate::result::Span;

#[expect(clippy::too_many_lines, reason = "one arm for each function")]
pub(crate) fn call(eval: &mut Eval<'_, '_>, path: &str, args: &Args, span: Span) -> Option<Value> {
    let first = args.first();
    let text = first.and_then(Value::exact);
    Some(match path {
        "chr" | "unichr" => match first?.as_int() {
            Some(int) => character(int)?.with(Taint::SPELLED),
            None => made_letter(first?),
        },
        "ord" => {
            let mut chars = text?.chars();
            let c = chars.next()?;
            Value::of(Kind::Int(i64::from(u32::from(c))))
        }
        "str" | "repr" | "bytes.decode" | "str.lower" | "format" if !args.positional.is_empty() => {
            let value = first?;
            match &value.kind {
                Kind::Text(_) => value.clone(),
                Kind::Int(int) => Value::text(int.to_string()),
                _ => return None,
            }
        }
        "bytes" | "bytearray" => bytes(first?)?,
        "int" => {
            let radix = args
                .get(1, "base")
                .and_then(Value::as_int)
                .and_then(|radix| u32::try_from(radix).ok())
                .unwrap_or(10);
            match (first?.as_int(), text) {
                (Some(int), _) => Value::of(Kind::Int(int)),
                (None, Some(text)) if (2..=36).contains(&radix) => Value::of(Kind::Int(
                    i64::from_str_radix(text.trim().trim_start_matches("0x"), radix).ok()?,
                )),
                _ => return None,
            }
        }
        "list" | "tuple" | "iter" => Value::list(elements(first?)?).with(first?.taint),
        "reversed" => {
            let mut items = elements(first?)?;
            items.reverse();
            Value::list(items)
        }
        "range" => range(args)?,
        "map" => {
            let function = first?.clone();
            let source = args.positional.get(1)?;
            if matches!(&source.kind, Kind::Api(path) if path.starts_with("itertools.")) {
                // As many as before, one after the other.
                return Some(source.clone());
            }
            let items = elements(source)?;
            let mut out = Vec::new();
            for item in items.into_iter().take(1024) {
                let args = Args::of(vec![item]);
                out.push(eval.invoke(&function, &args, span, &[]));
            }
            Value::list(out)
        }
        "zip" => {
            let (a, b) = (elements(first?)?, elements(args.positional.get(1)?)?);
            Value::list(
                a.into_iter()
                    .zip(b)
                    .map(|(a, b)| Value::list(vec![a, b]))
                    .collect(),
            )
        }
        "enumerate" => {
            let items = elements(first?)?;
            let pair = |(at, item): (usize, Value)| {
                Value::list(vec![
                    Value::of(Kind::Int(i64::try_from(at).unwrap_or(0))),
                    item,
                ])
            };
            Value::list(items.into_iter().enumerate().map(pair).collect())
        }
        "len" => Value::of(Kind::Int(
            i64::try_from(match &first?.kind {
                Kind::List(items) => items.len(),
                Kind::Text(text) if !text.contains(UNKNOWN) => text.chars().count(),
                _ => return None,
            })
            .ok()?,
        )),
        "dict" if !args.named.is_empty() => {
            let base = args.positional.first();
            let mut pairs = match base.map(|base| &base.kind) {
                Some(Kind::Dict(pairs)) => pairs.as_ref().clone(),
                _ => Vec::new(),
            };
            let named = args.named.iter();
            pairs.extend(
                named.map(|(name, value)| (Value::of(Kind::Text(name.clone())), value.clone())),
            );
            Value::dict(pairs).with(base.map_or(Taint::NONE, |base| base.taint))
        }
        "getattr" | "object.__getattribute__" | "builtins.getattr" => {
            match args.positional.get(1)?.exact() {
                Some(name) => lookup(eval, first?, name, span),
                None => eval.unnamed_member(first?)?,
            }
        }
        "pkgutil.resolve_name"
        | "pydoc.locate"
        | "django.utils.module_loading.import_string"
        | "werkzeug.utils.import_string"
        | "hydra.utils.get_method"
        | "hydra.utils.get_class" => {
            let mut value = Value::api(text?.replace(':', "."));
            value.indirect = true;
            value
        }
        "setattr" | "builtins.setattr" => {
            eval.put(first?, args.positional.get(1)?, args.positional.get(2)?);
            return None;
        }
        "vars" if first.is_some() => first?.clone(),
        "globals" | "locals" | "vars" => Value::api("globals()"),
        "__import__"
        | "importlib.import_module"
        | "importlib.__import__"
        | "builtins.__import__" => {
            let module = text?;
            let module = module
                .split('.')
                .next()
                .filter(|_| path.contains("__import__"))
                .unwrap_or(module);
            let mut value = eval.dialect.imported(&module.into());
            value.indirect = true;
            value.taint |= first?.taint;
            value
        }
        "staticmethod" | "classmethod" => first?.clone(),
        "functools.reduce" | "reduce" => {
            let function = first?.clone();
            let mut items = elements(args.positional.get(1)?)?.into_iter().take(1024);
            let start = args.positional.get(2).cloned();
            let mut whole = start.or_else(|| items.next())?;
            for item in items {
                let args = Args::of(vec![whole, item]);
                whole = eval.invoke(&function, &args, span, &[]);
            }
            whole
        }
        "functools.partial" => {
            let (callee, rest) = args.positional.split_first()?;
            Value::partial(callee, rest.to_vec())
        }
        "compile" => {
            // Compiled code is still the text; whoever runs it is judged by that.
            first?.clone()
        }
        "os.path.join" | "posixpath.join" | "ntpath.join" => join_path(&args.positional),
        "pathlib.Path" | "Path" | "pathlib.PurePath" | "pathlib.PosixPath" => {
            join_path(&args.positional)
        }
        "pathlib.Path.home" | "Path.home" => Value::text("~"),
        "pathlib.Path.cwd" | "Path.cwd" | "os.getcwd" | "os.getcwdu" => Value::text("."),
        "os.path.abspath" | "os.path.realpath" if is_own(first?) => first?.clone(),
        "os.path.dirname" if is_own(first?) => Value::text("."),
        "os.path.expanduser"
        | "os.path.expandvars"
        | "os.path.abspath"
        | "os.path.realpath"
        | "os.path.normpath"
        | "os.fspath"
        | "os.fsencode"
        | "os.fsdecode"
        | "shlex.quote"
        | "sqlalchemy.text"
        | "sqlalchemy.sql.text"
        | "urllib.parse.unquote"
        | "textwrap.dedent" => first.filter(|value| value.as_text().is_some())?.clone(),
        "os.path.dirname" => {
            let path = first?.as_text()?;
            Value::text(
                path.rsplit_once('/')
                    .map_or(".", |(head, _)| if head.is_empty() { "/" } else { head }),
            )
            .with(first?.taint)
        }
        "os.path.basename" => Value::text(first?.as_text()?.rsplit('/').next()?).with(first?.taint),
        "os.walk" => {
            eval.judge.walks_from(first?.as_text()?, span);
            let directory = first?.clone().with(Taint::WALKED);
            let entry = vec![directory, Value::UNKNOWN, Value::UNKNOWN];
            Value::list(vec![Value::list(entry)])
        }
        "glob.glob" | "glob.iglob" => Value::list(vec![pattern(first?.as_text()?)]),
        "tempfile.NamedTemporaryFile" => Value::of(Kind::Handle(format!("/tmp/{UNKNOWN}").into())),
        "tempfile.mkstemp" => {
            let path: super::ir::Text = format!("/tmp/{UNKNOWN}").into();
            let file = Value::of(Kind::Handle(path.clone()));
            Value::list(vec![file, Value::of(Kind::Text(path))])
        }
        "site.getsitepackages" => Value::list(vec![Value::text("/usr/lib/python3/site-packages")]),
        "site.getusersitepackages"
        | "sysconfig.get_path"
        | "distutils.sysconfig.get_python_lib" => Value::text("/usr/lib/python3/site-packages"),
        "tempfile.gettempdir"
        | "tempfile.mkdtemp"
        | "tempfile.mktemp"
        | "tempfile.TemporaryDirectory" => Value::text("/tmp"),
        "os.getenv" | "os.environ.get" | "os.environ.setdefault" | "environ.get" | "getenv" => {
            environment(first, args.positional.get(1))
        }
        "os.fdopen" => match &first?.kind {
            Kind::Handle(_) => first?.clone(),
            _ => return None,
        },
        "shlex.join" => join(" ", first?.as_list()?),
        "shlex.split" => Value::list(text?.split_whitespace().map(Value::text).collect()),
        "str.join" | "string.join" => {
            join(text.unwrap_or_default(), args.positional.get(1)?.as_list()?)
        }
        "b64decode"
        | "base64.b64decode"
        | "base64.urlsafe_b64decode"
        | "base64.standard_b64decode"
        | "base64.decodebytes"
        | "base64.decodestring"
        | "binascii.a2b_base64" => decoded(text.and_then(stockade_shell::base64), first?.taint),
        "base64.b16decode" | "binascii.unhexlify" | "binascii.a2b_hex" | "bytes.fromhex"
        | "bytearray.fromhex" => decoded(text.and_then(stockade_shell::hex), first?.taint),
        "codecs.decode" | "codecs.encode" => {
            codec(first?, args.get(1, "encoding").and_then(Value::exact)?)?
        }
        _ if path.ends_with(".load_module") => loaded(eval, text?),
        "os.path" | "str.format" => return None,
        _ => return namespaces::call(eval, path, args, span),
    })
}

fn bytes(value: &Value) -> Option<Value> {
    match &value.kind {
        Kind::Text(_) => Some(value.clone()),
        Kind::List(items) => {
            let chars: Option<String> = items
                .iter()
                .map(|item| {
                    item.as_int()
                        .and_then(|int| u32::try_from(int).ok())
                        .and_then(char::from_u32)
                })
                .collect();
            Some(Value::text(chars?).with(value.taint))
        }
        _ => None,
    }
}

fn range(args: &Args) -> Option<Value> {
    let ints: Option<Vec<i64>> = args.positional.iter().map(Value::as_int).collect();
    let (start, end, step) = match ints?.as_slice() {
        [end] => (0, *end, 1),
        [start, end] => (*start, *end, 1),
        [start, end, step] => (*start, *end, *step),
        _ => return None,
    };
    if step == 0 || end.abs_diff(start) / step.unsigned_abs() > 4096 {
        return None;
    }
    let mut out = Vec::new();
    let mut at = start;
    while (step > 0 && at < end) || (step < 0 && at > end) {
        out.push(Value::of(Kind::Int(at)));
        at = at.checked_add(step)?;
    }
    Some(Value::list(out))
}

fn codec(value: &Value, name: &str) -> Option<Value> {
    let text = value.exact();
    match name.to_ascii_lowercase().replace('-', "_").as_str() {
        "rot13" | "rot_13" => Some(match text {
            Some(text) => Value::text(rot13(text)).with(value.taint | Taint::DECODED),
            None => Value::unknown(value.taint | Taint::DECODED),
        }),
        "hex" | "hex_codec" => Some(decoded(text.and_then(stockade_shell::hex), value.taint)),
        "base64" | "base64_codec" | "base_64" => {
            Some(decoded(text.and_then(stockade_shell::base64), value.taint))
        }
        "utf_8" | "utf8" | "ascii" | "latin1" | "latin_1" | "iso_8859_1" | "unicode_escape"
        | "string_escape" => Some(value.clone()),
        // EBCDIC and other odd code pages serve to hide text.
        name if name.starts_with("cp")
            || name.starts_with("ebcdic")
            || name.starts_with("utf_16")
            || name.starts_with("utf_7")
            || name.starts_with("zlib")
            || name.starts_with("bz2")
            || name.starts_with("punycode") =>
        {
            Some(Value::unknown(value.taint | Taint::DECODED))
        }
        _ => None,
    }
}

pub(crate) fn method(
    eval: &mut Eval<'_, '_>,
    base: &Value,
    name: &str,
    args: &Args,
    span: Span,
) -> Option<Value> {
    let first = args.first();
    match (&base.kind, name) {
        (_, "__getattribute__" | "__getattr__") => {
            let name = first?.exact()?;
            Some(lookup(eval, base, name, span))
        }
        (_, "__call__") => Some(eval.invoke(base, args, span, &[])),
        (Kind::Unknown | Kind::Method(_), "load_module") => Some(loaded(eval, first?.exact()?)),
        (Kind::Text(text), _) => {
            if let Some(value) = text_method(text, name, args) {
                return Some(value);
            }
            match name {
                "join" => Some(join(text, &elements(first?)?)),
                "decode" | "encode" => {
                    let encoding = args
                        .get(0, "encoding")
                        .and_then(Value::exact)
                        .unwrap_or("utf-8");
                    eval.judge.code_page(encoding, text.len(), span);
                    codec(base, encoding).or_else(|| Some(base.clone()))
                }
                "format" => Some(format(text, args)),
                "lstrip" | "rstrip" | "strip" => {
                    let set: Vec<char> = first?.exact()?.chars().collect();
                    Some(Value::text(text.trim_matches(set.as_slice())))
                }
                // `Path` values are texts here.
                "joinpath" => {
                    let mut parts = vec![base.clone()];
                    parts.extend(args.positional.iter().cloned());
                    Some(join_path(&parts))
                }
                "expanduser" | "resolve" | "absolute" | "as_posix" => Some(base.clone()),
                "glob" if first.and_then(Value::exact).is_some_and(names_file) => {
                    Some(Value::list(vec![join_path(&[
                        base.clone(),
                        pattern(first?.exact()?),
                    ])]))
                }
                "rglob" | "iterdir" | "glob" => {
                    let below = join_path(&[base.clone(), Value::text(UNKNOWN.to_string())]);
                    Some(Value::list(vec![below.with(Taint::WALKED)]))
                }
                _ => None,
            }
        }
        (Kind::Dict(pairs), "get" | "pop" | "setdefault" | "__getitem__") => {
            let key = first?.exact()?;
            pairs
                .iter()
                .rev()
                .find(|(known, _)| known.as_text() == Some(key))
                .map(|(_, value)| value)
                .or_else(|| {
                    let other = args.positional.get(1)?;
                    matches!(other.kind, Kind::Api(_) | Kind::Function(_)).then_some(other)
                })
                .cloned()
        }
        (Kind::Dict(pairs), "items" | "values" | "keys") => {
            let part = |(key, value): &(Value, Value)| match name {
                "items" => Value::list(vec![key.clone(), value.clone()]),
                "keys" => key.clone(),
                _ => value.clone(),
            };
            let known = !pairs.is_empty() && pairs.len() <= 64;
            known.then(|| Value::list(pairs.iter().map(part).collect()))
        }
        (Kind::List(items), "copy") => Some(Value::list(items.as_ref().clone())),
        _ => None,
    }
}

/// A module that a loader gives, not an import.
fn loaded(eval: &Eval<'_, '_>, module: &str) -> Value {
    let mut value = eval.dialect.imported(&module.into());
    value.indirect = true;
    value
}

/// A pattern whose last part is one name: `.mozilla/*/cookies.sqlite`.
fn names_file(pattern: &str) -> bool {
    pattern
        .rsplit('/')
        .next()
        .is_some_and(|last| !last.contains(['*', '?', '[']))
}

/// `str.format`: positions, names, `{:c}`.
fn format(text: &str, args: &Args) -> Value {
    let mut out = String::new();
    let mut taint = Taint::NONE;
    let mut next = 0usize;
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        out.push_str(&rest[..open]);
        let mark = &rest[open..=open];
        let after = &rest[open + 1..];
        if after.starts_with(mark) {
            out.push_str(mark);
            rest = &after[1..];
            continue;
        }
        let Some(close) = after.find('}').filter(|_| mark == "{") else {
            rest = after;
            continue;
        };
        let (name, spec) = after[..close]
            .split_once(':')
            .unwrap_or((&after[..close], ""));
        let name = name.split(['.', '[', '!']).next().unwrap_or(name);
        let value = if name.is_empty() {
            next += 1;
            args.positional.get(next - 1)
        } else {
            name.parse::<usize>()
                .ok()
                .map_or_else(|| args.named(name), |at| args.positional.get(at))
        };
        match value {
            Some(value) => {
                taint |= value.taint;
                match (spec, value.as_int()) {
                    ("c", Some(int)) => {
                        out.extend(u32::try_from(int).ok().and_then(char::from_u32));
                    }
                    _ => out.push_str(&value.piece()),
                }
            }
            None => out.push(UNKNOWN),
        }
        rest = &after[close + 1..];
        if out.len() > MAX_COMPUTED_LENGTH {
            return Value::unknown(taint);
        }
    }
    out.push_str(rest);
    Value::text(out).with(taint)
}
