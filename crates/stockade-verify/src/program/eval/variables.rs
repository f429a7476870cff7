//! Variables and fields: what is assigned to them, and what they stand for when they are read.

use super::Eval;
use crate::program::api::Dialect;
use crate::program::ir::{Expr, ExprKind, Target, Text};
use crate::program::spelled;
use crate::program::value::{Kind, Taint, Value};
use crate::result::Span;

impl Eval<'_, '_> {
    pub(in crate::program) fn bind(&mut self, name: Text, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, value);
        }
    }

    pub(super) fn assign(&mut self, target: &Target, value: Value) {
        match target {
            Target::Name(name) => {
                self.bind(name.clone(), value);
            }
            Target::Attr(base, attr) => {
                let base_value = self.expr(base);
                self.judge.replaces(&base_value, attr, base.span);
                self.judge.hooks_up(&base_value, attr, &value, base.span);
                if matches!(&**attr, "Stdin" | "stdin") {
                    self.judge.feeds(value.deep_taint(), base.span);
                }
                if is_prototype(base) {
                    self.judge.pollutes(base.span);
                }
                let compiled = value.as_text().is_some() || value.taint.has(Taint::DECODED);
                if &**attr == "__code__" && compiled && self.dialect == Dialect::Python {
                    self.judge.code("__code__", Some(&value), base.span);
                }
                self.holds(base, &value);
                if let Some(path) = dotted(base, attr) {
                    // Fields live with the module: methods see what others set.
                    self.scopes[0].insert(path, value);
                }
            }
            Target::Index(base, index) => {
                let base_value = self.expr(base);
                let index = self.expr(index);
                if self.dialect == Dialect::Python {
                    self.put(&base_value, &index, &value);
                }
                self.holds(base, &value);
                if is_prototype(base) {
                    self.judge.pollutes(base.span);
                }
                if let ExprKind::Name(name) = &base.kind {
                    self.set_item(name, &base_value, index, value);
                }
            }
            Target::Tuple(targets) => {
                for (at, target) in targets.iter().enumerate() {
                    let item = value.as_list().and_then(|items| items.get(at)).cloned();
                    let part = item.unwrap_or_else(|| self.part_of(&value, at));
                    self.assign(target, part);
                }
            }
            Target::Object(members) => {
                for (key, target) in members {
                    let member = self.attr(&value, key, Span::default());
                    self.assign(target, member);
                }
            }
        }
    }

    /// One of several results: Go's `value, err := f()` gives the first the value.
    fn part_of(&self, value: &Value, at: usize) -> Value {
        match (&value.kind, at) {
            (Kind::Api(_) | Kind::Handle(_) | Kind::Text(_), 0) if self.dialect == Dialect::Go => {
                value.clone()
            }
            _ => Value::unknown(value.taint),
        }
    }

    fn set_item(&mut self, name: &Text, base: &Value, index: Value, value: Value) {
        let Kind::Dict(pairs) = &base.kind else {
            return;
        };
        if pairs.len() < 512 {
            let mut pairs: Vec<_> = pairs.as_ref().clone();
            pairs.push((index, value));
            let dict = Value::dict(pairs);
            self.bind(name.clone(), dict);
        }
    }

    pub(super) fn read_target(&mut self, target: &Target) -> Value {
        match target {
            Target::Name(name) => self.name(name, Span::default()),
            Target::Attr(base, attr) => {
                let path = dotted(base, attr);
                path.and_then(|path| self.lookup(&path)).unwrap_or_default()
            }
            _ => Value::UNKNOWN,
        }
    }

    pub(in crate::program) fn lookup(&self, name: &str) -> Option<Value> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
            .cloned()
    }

    pub(in crate::program) fn name(&mut self, name: &Text, span: Span) -> Value {
        if let Some(value) = self.lookup(name) {
            return value;
        }
        if let Some(plain) = spelled::plain(self.dialect, name) {
            let value = self.name(&plain, span);
            if value.as_api().is_some() {
                self.judge.disguised(&plain, span);
            }
            return value;
        }
        for module in self.starred.iter().rev() {
            let path = format!("{module}.{name}");
            if self.dialect.knows(&path) {
                return Value::api(path);
            }
        }
        if self.defined.contains(name) {
            return Value::UNKNOWN;
        }
        let mut value = self.dialect.global(name);
        let elsewhere = self
            .starred
            .iter()
            .any(|module| !self.dialect.has_module(module));
        if self.open_ended || elsewhere {
            value.taint = value.taint.without(Taint::UNBOUND | Taint::DECODED);
        }
        value
    }
}

/// `object.__proto__`, `object["__proto__"]`, `object.constructor.prototype`
fn is_prototype(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Attr(base, name) => {
            let made_by = matches!(&base.kind, ExprKind::Attr(_, name) if &**name == "constructor");
            &**name == "__proto__" || &**name == "prototype" && made_by
        }
        ExprKind::Index(_, key) => {
            matches!(&key.kind, ExprKind::Text(key) if &**key == "__proto__")
        }
        _ => false,
    }
}

/// `self.x`, `obj.x`: a field of a plain name, as one.
pub(in crate::program) fn dotted(base: &Expr, attr: &str) -> Option<Text> {
    match &base.kind {
        ExprKind::Name(name) => Some(format!("{name}.{attr}").into()),
        _ => None,
    }
}
