//! The file's own classes: what their methods do with what their objects were made of.
//!
//! An object stands for its class alone; fields belong to all objects of a name. Methods that a
//! class inherits from another of the file are not followed.

use std::rc::Rc;

use super::api::Dialect;
use super::eval::Eval;
use super::ir::{Class, ExprKind, Function, Stmt, Text};
use super::value::{Args, Kind, Taint, Value};
use crate::result::Span;

/// What the names of the file's classes begin with, among those of libraries.
const OWN: &str = "class:";

/// The file's class of which this is one, or an object.
pub(super) fn own(path: &str) -> Option<&str> {
    path.strip_prefix(OWN)
}

impl Eval<'_, '_> {
    pub(super) fn class(&mut self, class: &Class) {
        for statement in &class.body {
            if let Stmt::Function(function) = statement
                && let Some(name) = &function.name
            {
                self.methods.insert(name.clone());
                let path = format!("{}.{name}", class.name);
                self.bind(path.into(), Value::of(Kind::Function(Rc::clone(function))));
            }
        }
        let outer = self.class.replace(class.name.clone());
        self.bind(
            class.name.clone(),
            Value::api(format!("{OWN}{}", class.name)),
        );
        let mut scope = super::hash::Map::default();
        let serves = class.bases.iter().any(|base| {
            let base = match &base.kind {
                ExprKind::Name(name) | ExprKind::Attr(_, name) => &**name,
                _ => "",
            };
            base.ends_with("HTTPRequestHandler")
        });
        if serves {
            for field in ["self.path", "self.headers", "self.rfile"] {
                let visitor = Value::unknown(Taint::INPUT | Taint::REQUEST);
                scope.insert(field.into(), visitor);
            }
        }
        self.scopes.push(scope);
        self.body(&class.body);
        let members = self.scopes.pop().unwrap_or_default();
        for (name, value) in members {
            let function = matches!(value.kind, Kind::Function(_)) && self.methods.contains(&name);
            if !value.is_unknown() && !name.contains('.') && !function {
                self.bind(format!("{}.{name}", class.name).into(), value);
                self.methods.insert(name);
            }
        }
        self.class = outer;
    }

    /// The object that a method of the class looked at is called on: its first parameter, `this`.
    pub(super) fn receiver(&self, function: &Function) -> Option<(Text, Value)> {
        let class = self.class.as_ref()?;
        let object = Value::api(format!("{OWN}{class}()"));
        match self.dialect {
            Dialect::Python => {
                let first = function.params.first()?;
                matches!(&*first.name, "self" | "cls").then(|| (first.name.clone(), object))
            }
            Dialect::JavaScript => Some(("this".into(), object)),
            Dialect::Go | Dialect::Shell => None,
        }
    }

    /// `Class(…)`: its constructor runs.
    pub(super) fn construct(&mut self, name: &str, args: &Args, span: Span) -> Value {
        if name.ends_with(')') {
            return Value::unknown(args.taint());
        }
        let object = Value::api(format!("{OWN}{name}()"));
        let constructor = match self.dialect {
            Dialect::Python => "__init__",
            _ => "constructor",
        };
        if let Some(function) = self.own_method(name, constructor, &object) {
            self.invoke(&function, args, span, &[]);
        }
        object
    }

    /// A method of an object of the file's own class, or of the class itself.
    pub(super) fn member_of(&self, path: &str, attr: &str) -> Option<Value> {
        if !self.methods.contains(attr) {
            return None;
        }
        let object = Value::api(format!("{OWN}{path}"));
        self.own_method(path.trim_end_matches("()"), attr, &object)
    }

    fn own_method(&self, class: &str, attr: &str, object: &Value) -> Option<Value> {
        let found = self.lookup(&format!("{class}.{attr}"))?;
        let Kind::Function(function) = &found.kind else {
            return Some(found);
        };
        let takes_object = self.dialect == Dialect::Python
            && function
                .params
                .first()
                .is_some_and(|first| matches!(&*first.name, "self" | "cls"));
        let bound = takes_object && object.as_api().is_some_and(|path| path.ends_with(')'));
        Some(if bound {
            Value::partial(&found, vec![object.clone()])
        } else {
            found
        })
    }
}

/// Whether a function takes nothing but the object it belongs to.
pub(super) fn takes_nothing(function: &Function) -> bool {
    match function.params.as_slice() {
        [] => true,
        [only] => matches!(&*only.name, "self" | "cls"),
        _ => false,
    }
}
