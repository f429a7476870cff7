//! Python's namespaces as mappings: `os.__dict__.get(…)`, `globals()["f"] = …`, `operator.itemgetter(…)`.

use super::api::Dialect;
use super::eval::Eval;
use super::fold::lookup;
use super::judge::is_dangerous;
use super::value::{Args, Kind, Value};
use crate::result::Span;
use crate::words::Words;

/// Methods that look a name up in a mapping, or an attribute up in an object.
static LOOKS_UP: Words = Words::new("program/namespaces looks-up");

/// Whether a name is one of these methods.
pub(super) fn looks_up(name: &str) -> bool {
    LOOKS_UP.contains(&name)
}

/// A lookup in the namespace of a module, by a method of it or of the class that it belongs to.
pub(super) fn call(eval: &mut Eval<'_, '_>, path: &str, args: &Args, span: Span) -> Option<Value> {
    let (owner, name) = path.rsplit_once('.')?;
    if eval.dialect.knows(path) {
        return None;
    }
    let given = args.positional.as_slice();
    match name {
        "__setitem__" | "__setattr__" if given.len() >= 2 => {
            let (base, rest) = unbound(owner, given);
            let [key, value] = rest else { return None };
            eval.put(&base, key, value);
            return Some(Value::UNKNOWN);
        }
        "update" if given.len() == 1 => {
            let Kind::Dict(pairs) = &given[0].kind else {
                return None;
            };
            let base = Value::api(owner);
            for (key, value) in pairs.iter().take(64) {
                eval.put(&base, key, value);
            }
            return None;
        }
        _ if !looks_up(name) => return None,
        _ => {}
    }
    let (base, rest) = unbound(owner, given);
    let key = rest.first()?.exact()?;
    if name.starts_with("__") {
        return Some(lookup(eval, &base, key, span));
    }
    match base.as_api()? {
        "globals()" => Some(eval.index(&base, &Value::text(key), span)),
        module => {
            let known = eval.dialect.knows(&format!("{module}.{key}"))
                || eval.was_put(module, key).is_some()
                || module == "builtins" && eval.dialect.knows(key);
            if known {
                return Some(eval.index(&base, &Value::text(key), span));
            }
            let mut other = rest.get(1)?.clone();
            other.indirect = true;
            matches!(other.kind, Kind::Api(_) | Kind::Function(_)).then_some(other)
        }
    }
}

/// `dict.get(mapping, key)` is `mapping.get(key)`.
fn unbound<'v>(owner: &str, given: &'v [Value]) -> (Value, &'v [Value]) {
    let class =
        matches!(owner, "dict" | "object" | "type" | "type()") || owner.ends_with("__class__");
    match given.split_first() {
        Some((base, rest)) if class => (base.clone(), rest),
        _ => (Value::api(owner), given),
    }
}

impl Eval<'_, '_> {
    /// A function put into a namespace under a name: it is called by that name from now on.
    pub(super) fn put(&mut self, base: &Value, key: &Value, value: &Value) {
        let (Some(module), Some(key)) = (base.as_api(), key.exact()) else {
            return;
        };
        // What does no harm would only hide what was there before.
        let matters = match &value.kind {
            Kind::Api(path) => self
                .dialect
                .entry(path)
                .is_some_and(|entry| is_dangerous(entry.action)),
            Kind::Function(_) | Kind::Partial(_) => true,
            _ => false,
        };
        if !matters {
            return;
        }
        let name = match module {
            "globals()" | "builtins" | "__builtins__" => key.to_owned(),
            _ if module.contains('(') => return,
            _ => format!("{module}.{key}"),
        };
        let mut value = value.clone();
        value.indirect = true;
        self.scopes[0].insert(name.into(), value);
    }

    /// What was put into the namespace of a module under a name.
    pub(super) fn was_put(&self, module: &str, key: &str) -> Option<Value> {
        let holds = self.dialect == Dialect::Python && !module.contains('(');
        holds.then(|| self.lookup(&format!("{module}.{key}")))?
    }
}
