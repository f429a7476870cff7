//! Functions handed to others, which call them with what they have: timers, listeners, threads.

use super::api::Dialect;
use super::eval::Eval;
use super::ir::Function;
use super::value::{Args, Kind, Taint, Value};
use crate::paths::UNKNOWN;
use crate::result::Span;
use std::rc::Rc;

impl Eval<'_, '_> {
    /// Whether whoever is given a function that runs code will call it.
    pub(super) fn calls_back(&self, receiver: &Value, handed: &Value) -> bool {
        let entry = handed.as_api().and_then(|path| self.dialect.entry(path));
        let runs = entry.is_some_and(|entry| {
            entry.action == "code" || entry.action == "shell" && self.dialect == Dialect::Python
        });
        runs && match &receiver.kind {
            Kind::Api(path) => {
                let calls = ["map", "filter", "sorted", "min", "max", "reduce"];
                calls.contains(&&**path) || path.contains("()")
            }
            Kind::Method(inner) => !inner.1.starts_with("assert"),
            _ => false,
        }
    }

    /// Whether a function starts itself as a thread or process, again and again.
    pub(super) fn multiplies(&self, path: &str, functions: &[Rc<Function>]) -> bool {
        let active = |function: &Rc<Function>| self.active.contains(&Rc::as_ptr(function));
        self.endless > 0
            && functions.iter().any(active)
            && self
                .dialect
                .entry(path)
                .is_some_and(|entry| entry.action == "thread")
    }

    /// Library functions handed on to be called: `Thread(target=f, args=…)`, `submit(f, …)`.
    pub(super) fn callbacks(&mut self, receiver: &Value, args: &Args, span: Span) {
        let dangerous = |eval: &Self, value: &Value| {
            let entry = value.as_api().and_then(|path| eval.dialect.entry(path));
            entry.is_some_and(|entry| {
                matches!(
                    entry.action,
                    "shell" | "argv" | "code" | "delete" | "delete-tree"
                )
            })
        };
        let named = ["target", "func", "key", "initializer"]
            .iter()
            .find_map(|name| args.named(name));
        let mut found = None;
        if let Some(callee) = named.filter(|callee| dangerous(self, callee)) {
            let given = args
                .named("args")
                .and_then(Value::as_list)
                .unwrap_or_default();
            found = Some((callee.clone(), given.to_vec()));
        } else if let Some(at) = args
            .positional
            .iter()
            .position(|value| dangerous(self, value))
        {
            let rest = &args.positional[at + 1..];
            let given = match rest {
                [only] => only
                    .as_list()
                    .map_or_else(|| rest.to_vec(), <[Value]>::to_vec),
                _ => rest.to_vec(),
            };
            found = Some((args.positional[at].clone(), given));
        }
        if let Some((callee, mut positional)) = found {
            if positional.is_empty() {
                // `.then(eval)`, `register_function(os.system)`: called with what is not here.
                if !self.calls_back(receiver, &callee) {
                    return;
                }
                positional.push(Value::unknown(receiver.deep_taint()));
            }
            let args = Args::of(positional);
            self.invoke(&callee, &args, span, &[]);
        }
    }

    /// What `__reduce__` returns is called when the object is unpickled: a function, its arguments.
    pub(super) fn unpickled(&mut self, returned: &[Value], span: Span) {
        for value in returned.iter().take(4) {
            if let Some([callee, args, ..]) = value.as_list()
                && let Some(path) = callee.as_api()
            {
                self.judge.unpickles(path, span);
                let args = Args::of(args.as_list().unwrap_or_default().to_vec());
                self.invoke(callee, &args, span, &[]);
            }
        }
    }
}

/// Whether a function gives what the function handed to it returns: `bytes.map(f)`.
pub(super) fn returns_made(callee: &Value) -> bool {
    let name = match &callee.kind {
        Kind::Method(inner) => &*inner.1,
        Kind::Api(path) => path.rsplit('.').next().unwrap_or(path),
        _ => return false,
    };
    matches!(
        name,
        "map" | "flatMap" | "reduce" | "then" | "replace" | "replaceAll" | "from"
    )
}

/// What a function that walks a tree calls back with: a path below where it began.
pub(super) fn walked(callee: &Value, args: &Args) -> Option<Value> {
    let walks = ["path/filepath.Walk", "path/filepath.WalkDir"].contains(&callee.as_api()?);
    let root = args.positional.first()?.as_text().filter(|_| walks)?;
    let below = format!("{}/{UNKNOWN}", root.trim_end_matches('/'));
    Some(Value::text(below).with(Taint::WALKED))
}

/// `text.replace(/./g, c => …)`: the text is made anew, letter by letter.
pub(super) fn rewrites(callee: &Value) -> bool {
    matches!(&callee.kind, Kind::Method(inner) if matches!(&*inner.1, "replace" | "replaceAll"))
}

/// What a function is given with what it is to be called with: `Thread(target=f, args=(a, b))`,
/// `pool.submit(f, a, b)`.
pub(super) fn handed(callee: &Value, function: &Rc<Function>, args: &Args) -> Option<Vec<Value>> {
    let is =
        |value: &Value| matches!(&value.kind, Kind::Function(own) if Rc::ptr_eq(own, function));
    if args.named("target").is_some_and(is) {
        let given = args.named("args")?.as_list()?;
        return Some(given.to_vec());
    }
    let name = match &callee.kind {
        Kind::Method(inner) => &*inner.1,
        Kind::Api(path) => path.rsplit('.').next().unwrap_or(path),
        _ => return None,
    };
    let at = args.positional.iter().position(is)?;
    let rest = args.positional.get(at + 1..)?;
    match name {
        "submit" | "to_thread" | "run_in_executor" | "spawn" if !rest.is_empty() => {
            Some(rest.to_vec())
        }
        "start_new_thread" | "apply_async" | "apply" | "Timer" => {
            Some(rest.first()?.as_list()?.to_vec())
        }
        _ => None,
    }
}
