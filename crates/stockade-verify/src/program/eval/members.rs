//! Members and elements of values, by name, by text and by number.

use super::Eval;
use crate::program::api::Dialect;
use crate::program::classes;
use crate::program::fold;
use crate::program::ir::Text;
use crate::program::spelled;
use crate::program::value::{Args, Kind, Taint, Value};
use crate::result::Span;

impl Eval<'_, '_> {
    /// A member of a value.
    pub(crate) fn attr(&mut self, base: &Value, attr: &Text, span: Span) -> Value {
        match &base.kind {
            Kind::Api(path) if classes::own(path).is_some() => {
                let found = self.member_of(classes::own(path).unwrap_or(path), attr);
                found.unwrap_or_else(|| method(&Value::unknown(base.taint), attr))
            }
            Kind::Api(path) if &**attr == "constructor" && path.ends_with("constructor") => {
                let mut value = Value::api("Function");
                value.indirect = true;
                value
            }
            Kind::Api(path) => {
                let plain = spelled::plain(self.dialect, attr);
                if let Some(plain) = &plain {
                    self.judge.disguised(plain, span);
                }
                let mut value = self.dialect.member(path, plain.as_ref().unwrap_or(attr));
                if &**path == "stat" {
                    self.judge
                        .names_owner_bit(value.as_api().unwrap_or_default(), span);
                }
                value.taint |= inherited(path, base);
                value.indirect |= base.indirect;
                value
            }
            Kind::Handle(path) if &**attr == "name" => Value::of(Kind::Text(path.clone())),
            Kind::Dict(pairs) if self.dialect == Dialect::JavaScript => {
                let found = pairs
                    .iter()
                    .rev()
                    .find(|(key, _)| key.as_text() == Some(attr));
                found.map_or_else(|| method(base, attr), |(_, value)| value.clone())
            }
            // Whatever it belongs to, it is the module that some library imported.
            Kind::Unknown | Kind::Method(_)
                if self.dialect == Dialect::Python && is_module(attr) =>
            {
                let mut value = Value::api(attr.trim_start_matches('_'));
                value.indirect = base.indirect;
                value
            }
            _ => method(base, attr),
        }
    }

    pub(in crate::program) fn index(&mut self, base: &Value, index: &Value, span: Span) -> Value {
        match (&base.kind, index.exact()) {
            (_, Some("__builtins__")) => {
                let mut value = Value::api("builtins");
                value.indirect = true;
                value
            }
            // `local["rm"]["-rf", x]`: a command, put together to be run.
            (Kind::Api(path), _)
                if path.starts_with("plumbum.local.") || path.starts_with("plumbum.cmd.") =>
            {
                let words = index
                    .as_list()
                    .map_or_else(|| vec![index.clone()], <[_]>::to_vec);
                let path = path.clone();
                self.judge.call(&path, base, &Args::of(words), span, false);
                base.clone()
            }
            (Kind::Api(path), Some(key)) if &**path == "globals()" => {
                let mut value = self.name(&key.into(), span);
                value.indirect = true;
                value
            }
            (Kind::Api(path), Some(key)) => {
                if let Some(value) = self.was_put(path, key) {
                    return value;
                }
                let key: Text = key.into();
                let mut value = self.dialect.item(path, &key);
                value.taint |= inherited(path, base);
                value.indirect = true;
                value
            }
            (Kind::Dict(pairs), Some(key)) => {
                let found = pairs
                    .iter()
                    .rev()
                    .find(|(known, _)| known.as_text() == Some(key));
                found.map_or_else(|| Value::unknown(base.taint), |(_, value)| value.clone())
            }
            (
                Kind::Method(_) | Kind::Unknown | Kind::Text(_) | Kind::Function(_) | Kind::List(_),
                Some(key),
            ) => {
                let mut value = self.attr(base, &key.into(), span);
                value.indirect = true;
                value
            }
            // The program's own name is not what someone types.
            (Kind::Api(path), None)
                if index.as_int() == Some(0)
                    && matches!(&**path, "os.Args" | "sys.argv" | "process.argv") =>
            {
                match self.dialect {
                    Dialect::Go => Value::text("/proc/self/exe"),
                    Dialect::Python => Value::api("__file__"),
                    Dialect::JavaScript | Dialect::Shell => Value::UNKNOWN,
                }
            }
            (Kind::Api(_), None) if index.as_int().is_none() => self
                .unnamed_member(base)
                .unwrap_or_else(|| fold::item(base, index)),
            _ => fold::item(base, index),
        }
    }

    /// A member of a module that starts programs, by a name that is only known as it runs. A few
    /// lines have no other reason for that than to hide which.
    pub(in crate::program) fn unnamed_member(&self, base: &Value) -> Option<Value> {
        let starts = matches!(
            base.as_api()?,
            "child_process" | "os" | "subprocess" | "builtins" | "vm"
        );
        if !starts || !self.judge.context.excerpt {
            return None;
        }
        let mut value = Value::unknown(Taint::DECODED);
        value.indirect = true;
        Some(value)
    }
}

fn method(base: &Value, name: &Text) -> Value {
    // The constructor of any function makes functions from text.
    if &**name == "constructor" && matches!(base.kind, Kind::Method(_) | Kind::Function(_)) {
        let mut value = Value::api("Function");
        value.indirect = true;
        return value;
    }
    Value::method(base, name)
}

/// Modules that start programs or reach everything, as members of whatever imported them.
fn is_module(attr: &str) -> bool {
    matches!(
        attr,
        "os" | "_os" | "subprocess" | "_subprocess" | "builtins" | "__builtins__"
    )
}

/// What a member has of its owner's origin. One variable is not the whole environment.
fn inherited(path: &str, base: &Value) -> Taint {
    match path {
        "os.environ" | "process.env" => base.taint.without(Taint::ENVIRONMENT),
        _ => base.taint,
    }
}
