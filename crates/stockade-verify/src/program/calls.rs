//! Calls: of the file's own functions, of libraries, of functions handed to others.

use std::rc::Rc;

use super::api::Dialect;
use super::callbacks::{handed, returns_made, rewrites, walked};
use super::classes;
use super::eval::{CALL_DEPTH, ENTRIES, Eval, INLINED, RECURSION, statement_span};
use super::hash::Map;
use super::ir::{Call, Expr, ExprKind, Function};
use super::value::{Args, Kind, Taint, Value};
use crate::result::Span;
use crate::rule::Rule;

impl Eval<'_, '_> {
    /// `require("child_" + "process")`: a module's name, in pieces for no reason but one.
    fn pieced_import(&mut self, path: &str, call: &Call, args: &Args, span: Span) {
        let imports = |path| {
            self.dialect
                .entry(path)
                .is_some_and(|entry| entry.action == "import")
        };
        let Some(ExprKind::Sum(parts)) = call.args.first().map(|arg| &arg.value.kind) else {
            return;
        };
        let constant = parts
            .iter()
            .all(|part| matches!(part.kind, ExprKind::Text(_)));
        let module = args.positional.first().and_then(Value::exact);
        if let Some(module) = module.filter(|_| constant && imports(path))
            && self.dialect.has_module(module)
        {
            self.judge.hidden_import(module, span);
        }
    }

    pub(super) fn call(&mut self, call: &Call, span: Span) -> Value {
        if self.dialect == Dialect::Shell {
            return self.command(call, span);
        }
        let callee = self.expr(&call.callee);
        let mut args = Args::default();
        let mut functions = Vec::new();
        for arg in &call.args {
            let spread = matches!(arg.value.kind, ExprKind::Spread(_));
            let value = self.expr(&arg.value);
            if let Kind::Function(function) = &value.kind {
                functions.push(Rc::clone(function));
            }
            match (&arg.name, value.as_list()) {
                (Some(name), _) => args.named.push((name.clone(), value)),
                (None, Some(items)) if spread => args.positional.extend_from_slice(items),
                (None, _) => args.positional.push(value),
            }
        }
        self.judge.fetches(call, span);
        if let (true, None, ExprKind::Name(name)) =
            (call.constructs, callee.as_api(), &call.callee.kind)
        {
            self.judge.serves(name, &args, span);
        }
        if callee
            .as_api()
            .is_some_and(|path| path.starts_with("Object."))
            && args.taint().has(Taint::ENVIRONMENT)
        {
            self.judge.walks_environment(span);
        }
        match callee.as_api() {
            None => self.judge.blocked_call(&call.callee, span),
            Some(path) => self.pieced_import(path, call, &args, span),
        }
        if self.is_hidden_global(&call.callee) {
            self.judge.hidden_global(span);
        }
        self.judge.constructs = call.constructs;
        let result = self.invoke(&callee, &args, span, &functions);
        self.keeps(&call.callee, &args);
        result
    }

    /// `self[decode(x)]`: a global function by a name that another function makes up.
    fn is_hidden_global(&mut self, callee: &Expr) -> bool {
        let ExprKind::Index(base, key) = &callee.kind else {
            return false;
        };
        // `require(f(1))[f(2)](…)`
        if let (ExprKind::Call(module), ExprKind::Call(_)) = (&base.kind, &key.kind) {
            let imports =
                matches!(&module.callee.kind, ExprKind::Name(name) if &**name == "require");
            let made = module
                .args
                .first()
                .is_some_and(|arg| matches!(arg.value.kind, ExprKind::Call(_)));
            return imports && made && self.dialect == Dialect::JavaScript;
        }
        let (ExprKind::Name(name), ExprKind::Call(_)) = (&base.kind, &key.kind) else {
            return false;
        };
        let global = matches!(&**name, "globalThis" | "global" | "window" | "self");
        global
            && self.dialect == Dialect::JavaScript
            && self.name(name, base.span).as_api() == Some(name)
    }

    /// Calls a value. Functions among the arguments are entered with what the call would give them.
    pub(crate) fn invoke(
        &mut self,
        callee: &Value,
        args: &Args,
        span: Span,
        functions: &[Rc<Function>],
    ) -> Value {
        if !self.step() {
            return Value::UNKNOWN;
        }
        let mut result = match &callee.kind {
            Kind::Function(function) => return self.enter(&Rc::clone(function), args),
            Kind::Partial(inner) => {
                let mut whole = args.clone();
                whole.positional.splice(0..0, inner.1.iter().cloned());
                return self.invoke(&inner.0, &whole, span, functions);
            }
            Kind::Api(path) if classes::own(path).is_some() => {
                let own = classes::own(path).unwrap_or(path).to_owned();
                return self.construct(&own, args, span);
            }
            Kind::Api(path) => {
                if self.multiplies(path, functions) {
                    let reason = "starts one after the other without end";
                    self.judge.findings.add(Rule::ForkBomb, span, reason);
                }
                if let Some(value) = super::fold::applied(self, callee, path, args, span) {
                    return value;
                }
                if let Some(value) = super::fold::call(self, path, args, span) {
                    let indirect = callee.indirect;
                    self.judge.folded(path, args, &value, span, indirect);
                    value
                } else {
                    self.judge.call(path, callee, args, span, self.endless > 0)
                }
            }
            Kind::Method(inner) => {
                let (base, name) = inner.as_ref();
                match super::fold::method(self, base, name, args, span) {
                    Some(value) => value,
                    None => self.judge.method(base, name, args, span, callee.indirect),
                }
            }
            Kind::Handle(path) => {
                let path = path.clone();
                Value::of(Kind::Handle(path))
            }
            _ => {
                self.judge.unknown_call(callee, span);
                Value::unknown(callee.taint | args.taint().without(Taint::UNBOUND))
            }
        };
        self.callbacks(callee, args, span);
        if functions.is_empty() {
            return result;
        }
        for function in functions {
            let given = result.taint | callee.deep_taint();
            let count = function.params.len();
            let from_list = args
                .all()
                .find_map(Value::as_list)
                .and_then(<[Value]>::first)
                .cloned();
            let item = walked(callee, args)
                .or(from_list)
                .unwrap_or_else(|| Value::unknown(given));
            let inner = match handed(callee, function, args) {
                Some(items) => Args::of(items),
                None => Args::of(vec![item.with(given); count]),
            };
            let returned = returns_made(callee);
            let wanted = returned && (given.has(Taint::FILE) || rewrites(callee));
            let made = self.enter_for(function, &inner, wanted);
            if returned {
                result.taint |= made.taint.without(Taint::UNBOUND | Taint::PARAM);
            }
        }
        result
    }

    /// Enters a function of the file with arguments that tell something; what it returns.
    pub(super) fn enter(&mut self, function: &Rc<Function>, args: &Args) -> Value {
        self.enter_for(function, args, false)
    }

    /// The same; `wanted` whatever the arguments tell.
    fn enter_for(&mut self, function: &Rc<Function>, args: &Args, wanted: bool) -> Value {
        let nothing = classes::takes_nothing(function);
        if nothing && let Some(known) = self.constant.get(&Rc::as_ptr(function)) {
            return known.clone();
        }
        let telling = wanted || nothing || args.all().any(tells);
        if !telling || self.calls >= CALL_DEPTH || self.inlined > INLINED {
            return Value::unknown(args.taint());
        }
        // What a function does for one file of a directory it does for those below.
        let here = Rc::as_ptr(function);
        if self.active.iter().filter(|active| **active == here).count() >= RECURSION {
            return Value::unknown(args.taint());
        }
        let entered = self.entered.entry(here).or_default();
        *entered += 1;
        if *entered > ENTRIES {
            return Value::unknown(args.taint());
        }
        let mut scope = Map::default();
        for (at, param) in function.params.iter().enumerate() {
            let given = args.get(at, &param.name).cloned();
            let value = match given {
                _ if param.rest => {
                    Value::list(args.positional.get(at..).unwrap_or_default().to_vec())
                }
                Some(value) => value,
                None => {
                    let default = param.default.as_ref();
                    default.map_or(Value::UNKNOWN, |default| self.expr(default))
                }
            };
            scope.insert(param.name.clone(), value);
        }
        let before = self.steps;
        self.calls += 1;
        self.active.push(here);
        self.scopes.push(scope);
        let outer = std::mem::take(&mut self.returned);
        let anonymous = self.anonymous.len();
        // Functions defined inside are looked at where this one is looked at on its own.
        self.statements(&function.body, &mut Vec::new());
        self.enter_anonymous(anonymous);
        let returned = std::mem::replace(&mut self.returned, outer);
        self.scopes.pop();
        self.active.pop();
        self.calls -= 1;
        self.inlined += self.steps - before;
        let taint = returned
            .iter()
            .fold(Taint::NONE, |taint, value| taint | value.taint);
        let known = returned.into_iter().find(|value| !value.is_unknown());
        let result = known.unwrap_or_default().with(taint);
        if nothing {
            self.constant.insert(Rc::as_ptr(function), result.clone());
        }
        result
    }

    /// Looks at a function's body with parameters nobody has given.
    pub(super) fn enter_alone(&mut self, function: &Rc<Function>) {
        let mut scope = Map::default();
        for param in &function.params {
            let default = param.default.as_ref().map(|default| self.expr(default));
            let known = default.filter(|value| value.as_api().is_some());
            let value = known
                .or_else(|| self.dialect.parameter(&param.name))
                .unwrap_or_else(|| self.judge.handed_key(&param.name));
            scope.insert(param.name.clone(), value);
        }
        scope.extend(self.receiver(function));
        let class = self.class.take();
        self.judge.function_depth += 1;
        self.entered.entry(Rc::as_ptr(function)).or_default();
        self.scopes.push(scope);
        self.active.push(Rc::as_ptr(function));
        let returned = std::mem::take(&mut self.returned);
        self.body(&function.body);
        let own = std::mem::replace(&mut self.returned, returned);
        self.active.pop();
        self.scopes.pop();
        if matches!(
            function.name.as_deref(),
            Some("__reduce__" | "__reduce_ex__")
        ) {
            self.unpickled(&own, statement_span(&function.body));
        }
        self.class = class;
        self.judge.function_depth -= 1;
    }

    /// Functions that were handed on or kept somewhere: whoever calls them, they are here to be
    /// called.
    pub(super) fn enter_anonymous(&mut self, before: usize) {
        while self.anonymous.len() > before {
            let Some(function) = self.anonymous.pop() else {
                break;
            };
            if !self.entered.contains_key(&Rc::as_ptr(&function)) {
                self.enter_alone(&function);
            }
        }
    }

    /// A function that nothing here calls is still looked at.
    pub(super) fn enter_if_function(&mut self, value: &Value) {
        if let Kind::Function(function) = &value.kind {
            let function = Rc::clone(function);
            if self.calls < CALL_DEPTH {
                self.calls += 1;
                self.enter_alone(&function);
                self.calls -= 1;
            }
        }
    }
}

/// Whether a function may do something else for this argument than for any.
fn tells(value: &Value) -> bool {
    let origin = Taint::INPUT
        | Taint::DOWNLOADED
        | Taint::DECODED
        | Taint::SECRET
        | Taint::ENVIRONMENT
        | Taint::IDENTITY
        | Taint::SERIES
        | Taint::TRIED
        | Taint::WALKED
        | Taint::SOCKET;
    match &value.kind {
        Kind::Api(path) if classes::own(path).is_some() => value.taint.has(origin),
        Kind::Text(_) | Kind::Api(_) | Kind::Function(_) | Kind::Partial(_) | Kind::Handle(_) => {
            true
        }
        Kind::List(items) => items.iter().take(64).any(tells),
        Kind::Dict(pairs) => pairs.iter().take(64).any(|(_, value)| tells(value)),
        Kind::Int(_) | Kind::Bool(_) | Kind::Unknown | Kind::Method(_) => value.taint.has(origin),
    }
}
