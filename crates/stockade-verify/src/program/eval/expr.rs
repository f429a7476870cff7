//! Expressions, each with what is known of its value.

use std::rc::Rc;

use super::Eval;
use super::variables::dotted;
use crate::program::api::Dialect;
use crate::program::fold;
use crate::program::hash::Map;
use crate::program::ir::{Each, Expr, ExprKind, Op, Target, Text};
use crate::program::value::{Kind, MAX_COMPUTED_LENGTH, Taint, Value};

impl Eval<'_, '_> {
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of expression")]
    pub(crate) fn expr(&mut self, expr: &Expr) -> Value {
        if !self.step() {
            return Value::UNKNOWN;
        }
        match &expr.kind {
            ExprKind::Text(text) => {
                if self.dialect != Dialect::Shell {
                    self.judge.literal(text, expr.span);
                }
                Value::of(Kind::Text(text.clone()))
            }
            ExprKind::Int(int) => Value::of(Kind::Int(*int)),
            ExprKind::Bool(flag) => Value::of(Kind::Bool(*flag)),
            ExprKind::Name(name) => self.name(name, expr.span),
            ExprKind::Attr(base, attr) => {
                if let Some(value) = dotted(base, attr).and_then(|path| self.lookup(&path)) {
                    return value;
                }
                let base_value = self.expr(base);
                self.judge.attribute(base, attr, expr.span);
                self.attr(&base_value, attr, expr.span)
            }
            ExprKind::Index(base, index) => {
                let base_value = self.expr(base);
                let index_value = self.expr(index);
                self.judge.indexed(base, &index_value, expr.span);
                self.index(&base_value, &index_value, expr.span)
            }
            ExprKind::Slice(base, parts) => {
                let base = self.expr(base);
                let parts = parts.each_ref().map(|part| {
                    let value = part.as_ref().map(|part| self.expr(part));
                    fold::Bound::of(value.as_ref())
                });
                fold::slice(&base, parts)
            }
            ExprKind::Call(call) => self.call(call, expr.span),
            ExprKind::Binary(op, left, right) => {
                let left = self.expr(left);
                let right = self.expr(right);
                self.binary(*op, &left, &right)
            }
            ExprKind::Sum(terms) => {
                let mut terms = terms.iter();
                let mut sum = terms.next().map_or(Value::UNKNOWN, |term| self.expr(term));
                for term in terms {
                    let term = self.expr(term);
                    sum = self.binary(Op::Add, &sum, &term);
                }
                sum
            }
            ExprKind::Negate(inner) => {
                let inner = self.expr(inner);
                inner.as_int().and_then(i64::checked_neg).map_or_else(
                    || Value::unknown(inner.taint),
                    |int| Value::of(Kind::Int(int)),
                )
            }
            ExprKind::List(items) => {
                let mut values = Vec::with_capacity(items.len().min(MAX_COMPUTED_LENGTH));
                for item in items.iter().take(MAX_COMPUTED_LENGTH) {
                    match &item.kind {
                        ExprKind::Spread(inner) => {
                            let inner = self.expr(inner);
                            match inner.as_list() {
                                Some(inner) => values.extend_from_slice(inner),
                                None => values.push(Value::unknown(inner.taint)),
                            }
                        }
                        _ => values.push(self.expr(item)),
                    }
                }
                Value::list(values)
            }
            ExprKind::Dict(pairs) => {
                let mut out = Vec::with_capacity(pairs.len());
                for (key, value) in pairs {
                    let key = self.expr(key);
                    out.push((key, self.expr(value)));
                }
                if self.judge.context.excerpt && self.dialect == Dialect::JavaScript {
                    self.judge.scripted(&out, expr.span);
                }
                Value::dict(out)
            }
            ExprKind::Template(parts) => {
                let mut whole = Value::text("");
                for part in parts {
                    let part = self.expr(part);
                    whole = whole.concat(&part);
                }
                whole
            }
            ExprKind::Function(function) => {
                self.anonymous.push(Rc::clone(function));
                Value::of(Kind::Function(Rc::clone(function)))
            }
            ExprKind::Either(options) => {
                let mut best = Value::UNKNOWN;
                for option in options {
                    let value = self.expr(option);
                    let mut taint = best.taint | value.taint;
                    if value.is_unknown() {
                        taint |= Taint::OPTION;
                    }
                    if best.is_unknown() && !value.is_unknown() {
                        best = value;
                    }
                    best.taint = taint;
                }
                best
            }
            ExprKind::Assign(target, value) => {
                let value = self.expr(value);
                match target.as_ref() {
                    // In JavaScript this is no declaration: it changes the variable that is there.
                    Target::Name(name) if self.dialect == Dialect::JavaScript => {
                        let mut scopes = self.scopes.iter_mut().rev();
                        match scopes.find(|scope| scope.contains_key(name)) {
                            Some(scope) => {
                                scope.insert(name.clone(), value.clone());
                            }
                            None => self.bind(name.clone(), value.clone()),
                        }
                    }
                    target => self.assign(target, value.clone()),
                }
                value
            }
            ExprKind::Each(each) => self.comprehension(each),
            ExprKind::Many(parts) => self.several(parts),
            ExprKind::Yield(parts) => {
                let element = self.several(parts);
                let taint = element.taint;
                self.returned.push(Value::list(vec![element]));
                // What comes back is sent by whoever asks for the next.
                Value::unknown(taint)
            }
            ExprKind::Spread(inner) => self.expr(inner),
        }
    }

    /// Several things, one after the other; of one alone its value.
    fn several(&mut self, parts: &[Expr]) -> Value {
        let mut taint = Taint::NONE;
        let mut last = Value::UNKNOWN;
        for part in parts {
            last = self.expr(part);
            taint |= last.taint;
            self.enter_if_function(&last);
        }
        match parts {
            [_] => last,
            _ => Value::unknown(taint),
        }
    }

    fn comprehension(&mut self, each: &Each) -> Value {
        let [(target, iter)] = each.loops.as_slice() else {
            self.scopes.push(Map::default());
            let taint = self.nested_loops(&each.loops, &each.element);
            self.leave(&each.loops);
            return Value::unknown(taint);
        };
        let span = iter.span;
        let iter = self.expr(iter);
        let mut items = Vec::new();
        self.scopes.push(Map::default());
        self.each(target, &iter, span, |this| {
            let item = this.expr(&each.element);
            items.push(item);
        });
        self.leave(&each.loops);
        let known = iter.as_list().is_some() || iter.exact().is_some();
        if known {
            Value::list(items)
        } else {
            Value::unknown(
                items
                    .iter()
                    .fold(iter.deep_taint(), |taint, item| taint | item.taint),
            )
        }
    }

    /// The end of a comprehension: what it assigns stays, what it loops over does not.
    fn leave(&mut self, loops: &[(Target, Expr)]) {
        let inner = self.scopes.pop().unwrap_or_default();
        let own = |name: &Text| loops.iter().any(|(target, _)| target.binds(name));
        for (name, value) in inner {
            if !own(&name) {
                self.bind(name, value);
            }
        }
    }

    /// Several loops of a comprehension, one inside the other; where its elements come from.
    fn nested_loops(&mut self, loops: &[(Target, Expr)], element: &Expr) -> Taint {
        let Some(((target, iter), inner)) = loops.split_first() else {
            return self.expr(element).taint;
        };
        let span = iter.span;
        let iter = self.expr(iter);
        let mut taint = Taint::NONE;
        self.each(target, &iter, span, |this| {
            taint |= this.nested_loops(inner, element);
        });
        taint
    }

    pub(super) fn binary(&mut self, op: Op, left: &Value, right: &Value) -> Value {
        fold::binary(self.dialect, op, left, right)
    }
}
