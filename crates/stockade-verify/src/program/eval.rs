//! Runs a program on what is known, to learn which functions it calls with what.
//!
//! Every statement is looked at once, in order, branches one after the other; functions of the
//! file are entered when called with something known, and once more on their own. Loops over
//! constant lists are followed. Nothing outside the text is touched, and steps are counted.

use std::rc::Rc;

use super::api::Dialect;
use super::attack;
use super::classes;
use super::hash::{Map, Set};
use super::ir::{Each, Expr, ExprKind, Function, Op, Program, Stmt, Target, Text};
use super::judge::{Judge, Pace, is_cloud};
use super::loops;
use super::names;
use super::value::{Args, Kind, LONGEST, Taint, Value};
use crate::paths::UNKNOWN;
use crate::result::Span;

/// Steps for one text.
const STEPS: usize = 3_000_000;
/// Calls of the file's functions inside one another.
pub(super) const CALL_DEPTH: usize = 6;
/// Times one function is entered with arguments.
pub(super) const ENTRIES: usize = 12;
/// Steps inside functions entered with arguments, over the whole text.
pub(super) const INLINED: usize = 200_000;
/// Iterations of constant loops, over the whole text.
const ITERATIONS: usize = 20_000;
/// Iterations of one loop.
const LOOP: usize = 1_024;

/// The evaluator.
pub(crate) struct Eval<'j, 'a> {
    pub(crate) dialect: Dialect,
    pub(crate) judge: &'j mut Judge<'a>,
    pub(super) scopes: Vec<Map<Text, Value>>,
    /// Modules whose members are names here.
    starred: Vec<Text>,
    /// Names the file defines anywhere.
    defined: Set<Text>,
    pub(super) steps: usize,
    iterations: usize,
    pub(super) calls: usize,
    pub(super) returned: Vec<Value>,
    /// How often each function was entered with arguments.
    pub(super) entered: Map<*const Function, usize>,
    pub(super) inlined: usize,
    /// Functions without a name of their own that were met and not entered yet.
    pub(super) anonymous: Vec<Rc<Function>>,
    /// Names may be defined in files that are not here.
    open_ended: bool,
    /// Depth of loops without a known end.
    pub(crate) endless: usize,
    /// Names of methods and members of the file's classes.
    pub(super) methods: Set<Text>,
    /// What functions that are given nothing return.
    pub(super) constant: Map<*const Function, Value>,
    /// The class whose body is looked at.
    pub(super) class: Option<Text>,
    /// Hurried inside a loop without an end that waits for nothing.
    pace: Pace,
}

impl<'j, 'a> Eval<'j, 'a> {
    pub(crate) fn new(dialect: Dialect, judge: &'j mut Judge<'a>) -> Self {
        Self {
            dialect,
            judge,
            scopes: vec![Map::default()],
            starred: Vec::new(),
            defined: Set::default(),
            steps: 0,
            iterations: 0,
            calls: 0,
            returned: Vec::new(),
            entered: Map::default(),
            inlined: 0,
            anonymous: Vec::new(),
            open_ended: false,
            endless: 0,
            methods: Set::default(),
            constant: Map::default(),
            class: None,
            pace: Pace::Calm,
        }
    }

    /// Looks at a whole program; whether it was looked at to the end.
    pub(crate) fn run(&mut self, program: &Program) -> bool {
        names::defined(&program.body, &mut self.defined);
        self.open_ended = !program.fragment && self.dialect == Dialect::Go;
        self.body(&program.body);
        self.steps < STEPS
    }

    pub(super) fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps < STEPS
    }

    /// Statements of a module, class or function, then the functions defined there.
    pub(super) fn body(&mut self, body: &[Stmt]) {
        let mut functions = Vec::new();
        let before = self.anonymous.len();
        if self.dialect == Dialect::JavaScript {
            self.hoist(body);
        }
        self.statements(body, &mut functions);
        for function in functions {
            self.enter_alone(&function);
        }
        self.enter_anonymous(before);
    }

    /// Functions are there before the first statement runs.
    fn hoist(&mut self, body: &[Stmt]) {
        for statement in body {
            if let Stmt::Function(function) = statement
                && let Some(name) = &function.name
            {
                self.bind(name.clone(), Value::of(Kind::Function(Rc::clone(function))));
            }
        }
    }

    pub(super) fn statements(&mut self, body: &[Stmt], functions: &mut Vec<Rc<Function>>) {
        for statement in body {
            if !self.step() {
                return;
            }
            self.statement(statement, functions);
        }
    }

    fn statement(&mut self, statement: &Stmt, functions: &mut Vec<Rc<Function>>) {
        match statement {
            Stmt::Expr(expr) => {
                let outer = std::mem::replace(&mut self.judge.pace, self.pace);
                self.expr(expr);
                self.judge.pace = outer;
            }
            Stmt::Assign { target, value, op } => {
                let mut value = self.expr(value);
                if let Some(op) = op {
                    let old = self.read_target(target);
                    if let Target::Name(name) = target {
                        self.adds_outside(name, value.deep_taint());
                    }
                    value = self.binary(*op, &old, &value);
                }
                self.assign(target, value);
            }
            Stmt::Import { name, path, span } => {
                self.judge.import(path, *span);
                let path = match &**path {
                    "fs.promises" | "fs/promises" => "fs".into(),
                    _ => path.clone(),
                };
                // `except ImportError: import other as name`: the module that is known stays.
                let kept = self.dialect == Dialect::Python
                    && !self.dialect.has_module(&path)
                    && self
                        .scopes
                        .last()
                        .and_then(|scope| scope.get(name))
                        .and_then(Value::as_api)
                        .is_some_and(|known| self.dialect.has_module(known));
                if !kept {
                    let value = self.dialect.imported(&path);
                    self.bind(name.clone(), value);
                }
            }
            Stmt::ImportAll { path, span } => {
                self.judge.import(path, *span);
                self.starred.push(path.clone());
            }
            Stmt::Function(function) => {
                self.decorate(&function.decorators, function.name.as_ref());
                if let Some(name) = &function.name {
                    self.bind(name.clone(), Value::of(Kind::Function(Rc::clone(function))));
                }
                functions.push(Rc::clone(function));
            }
            Stmt::Class(class) => {
                for base in &class.bases {
                    self.expr(base);
                }
                self.decorate(&class.decorators, Some(&class.name));
                self.class(class);
            }
            Stmt::Return(value) => {
                if let Some(value) = value {
                    let value = self.expr(value);
                    self.returned.push(value);
                }
            }
            Stmt::For { target, iter, body } => {
                let iter = self.expr(iter);
                self.each(target, &iter, |this| this.statements(body, functions));
            }
            Stmt::Block(body) => self.statements(body, functions),
            Stmt::Forever(body) => {
                if let Some(excess) = loops::excess(body) {
                    self.judge.exceeds(excess, statement_span(body));
                }
                // Of loops inside one another the outermost is looked at, and each text once.
                let pace = match self.endless {
                    0 if !loops::is_paced(body) => Pace::Hurried,
                    0 => Pace::Calm,
                    _ => self.pace,
                };
                let outer = std::mem::replace(&mut self.pace, pace);
                self.endless += 1;
                self.statements(body, functions);
                self.endless -= 1;
                self.pace = outer;
            }
        }
    }

    /// From here on everything is done again and again, if `again`; how it was before.
    pub(super) fn hurries(&mut self, again: bool) -> Pace {
        let outer = self.pace;
        if again {
            self.endless += 1;
            self.pace = Pace::Hurried;
        }
        outer
    }

    /// The end of that.
    pub(super) fn calms(&mut self, again: bool, outer: Pace) {
        if again {
            self.endless -= 1;
            self.pace = outer;
        }
    }

    /// Runs `body` for each element of a constant list, else once with the unknown.
    fn each(&mut self, target: &Target, iter: &Value, mut body: impl FnMut(&mut Self)) {
        let items = match &iter.kind {
            Kind::List(items) => Some(Rc::clone(items)),
            Kind::Text(text) if !text.contains(UNKNOWN) && text.len() <= LOOP => {
                let items = text.chars().map(|c| Value::text(c.to_string())).collect();
                Some(Rc::new(items))
            }
            _ => None,
        };
        let tried = attack::tried(iter);
        match items {
            Some(items) if !items.is_empty() => {
                for item in items.iter().take(LOOP) {
                    self.iterations += 1;
                    if self.iterations > ITERATIONS || self.steps >= STEPS {
                        break;
                    }
                    self.assign(target, item.clone().with(iter.taint | tried));
                    body(self);
                }
            }
            _ => {
                self.assign(target, self.element_of(iter).with(tried));
                body(self);
            }
        }
    }

    /// An element of something that is not a constant list.
    fn element_of(&self, iter: &Value) -> Value {
        let taint = iter.deep_taint();
        // The pattern of what was found stands for each of it.
        if taint.has(Taint::WALKED) && iter.as_text().is_some() {
            return iter.clone();
        }
        if let Some(path) = iter.as_api() {
            let element = format!("{path}[]");
            if self.dialect.knows(&element) {
                return Value::api(element).with(taint);
            }
            if is_cloud(path) {
                return Value::api(element).with(taint);
            }
            if path == "range()" {
                return Value::unknown(taint | Taint::SERIES);
            }
        }
        Value::unknown(taint)
    }

    /// Decorators are calls: with what they decorate, from the innermost outwards.
    fn decorate(&mut self, decorators: &[Expr], name: Option<&Text>) {
        let mut value = name.map_or(Value::UNKNOWN, |_| Value::UNKNOWN);
        for decorator in decorators.iter().rev() {
            let callee = self.expr(decorator);
            let args = Args::of(vec![value]);
            value = self.invoke(&callee, &args, decorator.span, &[]);
        }
    }

    pub(super) fn bind(&mut self, name: Text, value: Value) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, value);
        }
    }

    fn assign(&mut self, target: &Target, value: Value) {
        match target {
            Target::Name(name) => {
                self.bind(name.clone(), value);
            }
            Target::Attr(base, attr) => {
                let base_value = self.expr(base);
                self.judge.replaces(&base_value, attr, base.span);
                if is_prototype(base) {
                    self.judge.pollutes(base.span);
                }
                self.attr_set(attr, &value, base.span);
                self.holds(base, &value);
                if let Some(path) = dotted(base, attr) {
                    // Fields live with the module: methods see what others set.
                    self.scopes[0].insert(path, value);
                }
            }
            Target::Index(base, index) => {
                let base_value = self.expr(base);
                let index = self.expr(index);
                self.judge.item_set(&base_value, &index, &value, base.span);
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

    fn read_target(&mut self, target: &Target) -> Value {
        match target {
            Target::Name(name) => self.name(name, Span::default()),
            Target::Attr(base, attr) => {
                let path = dotted(base, attr);
                path.and_then(|path| self.lookup(&path)).unwrap_or_default()
            }
            _ => Value::UNKNOWN,
        }
    }

    pub(super) fn lookup(&self, name: &str) -> Option<Value> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name))
            .cloned()
    }

    pub(super) fn name(&mut self, name: &Text, _span: Span) -> Value {
        if let Some(value) = self.lookup(name) {
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

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of expression")]
    pub(crate) fn expr(&mut self, expr: &Expr) -> Value {
        if !self.step() {
            return Value::UNKNOWN;
        }
        match &expr.kind {
            ExprKind::Text(text) => {
                self.judge.literal(text, expr.span);
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
                self.judge.indexed(base, expr.span);
                self.index(&base_value, &index_value, expr.span)
            }
            ExprKind::Slice(base, parts) => {
                let base = self.expr(base);
                let parts = parts.each_ref().map(|part| {
                    let value = part.as_ref().map(|part| self.expr(part));
                    super::fold::Bound::of(value.as_ref())
                });
                super::fold::slice(&base, parts)
            }
            ExprKind::Call(call) => self.call(call, expr.span),
            ExprKind::Binary(op, left, right) => {
                let left = self.expr(left);
                let right = self.expr(right);
                if *op == Op::Mul {
                    self.judge.repeats(&left, &right, expr.span);
                }
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
                let mut values = Vec::with_capacity(items.len().min(LONGEST));
                for item in items.iter().take(LONGEST) {
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
                if self.judge.brief && self.dialect == Dialect::JavaScript {
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
                    let taint = best.taint | value.taint;
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
            ExprKind::Many(parts) => {
                let mut taint = Taint::NONE;
                let mut last = Value::UNKNOWN;
                for part in parts {
                    last = self.expr(part);
                    taint |= last.taint;
                    self.enter_if_function(&last);
                }
                if parts.len() == 1 {
                    last
                } else {
                    Value::unknown(taint)
                }
            }
            ExprKind::Spread(inner) => self.expr(inner),
        }
    }

    fn comprehension(&mut self, each: &Each) -> Value {
        let [(target, iter)] = each.loops.as_slice() else {
            self.scopes.push(Map::default());
            let taint = self.nested_loops(&each.loops, &each.element);
            self.scopes.pop();
            return Value::unknown(taint);
        };
        let iter = self.expr(iter);
        let mut items = Vec::new();
        self.scopes.push(Map::default());
        self.each(target, &iter, |this| {
            let item = this.expr(&each.element);
            items.push(item);
        });
        self.scopes.pop();
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

    /// Several loops of a comprehension, one inside the other; where its elements come from.
    fn nested_loops(&mut self, loops: &[(Target, Expr)], element: &Expr) -> Taint {
        let Some(((target, iter), inner)) = loops.split_first() else {
            return self.expr(element).taint;
        };
        let iter = self.expr(iter);
        let mut taint = Taint::NONE;
        self.each(target, &iter, |this| {
            taint |= this.nested_loops(inner, element);
        });
        taint
    }

    fn binary(&mut self, op: Op, left: &Value, right: &Value) -> Value {
        super::fold::binary(self.dialect, op, left, right)
    }

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
                let mut value = self.dialect.member(path, attr);
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
            _ => {
                let _ = span;
                method(base, attr)
            }
        }
    }

    pub(super) fn index(&mut self, base: &Value, index: &Value, span: Span) -> Value {
        match (&base.kind, index.exact()) {
            (_, Some("__builtins__")) => {
                let mut value = Value::api("builtins");
                value.indirect = true;
                value
            }
            (Kind::Api(path), Some(key)) if &**path == "globals()" => {
                let mut value = self.name(&key.into(), span);
                value.indirect = true;
                value
            }
            (Kind::Api(path), Some(key)) => {
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
                    Dialect::JavaScript => Value::UNKNOWN,
                }
            }
            _ => super::fold::item(base, index),
        }
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

/// Where the first statement of a loop stands.
fn statement_span(body: &[Stmt]) -> Span {
    body.iter()
        .find_map(|statement| match statement {
            Stmt::Expr(expr) | Stmt::Assign { value: expr, .. } => Some(expr.span),
            Stmt::Block(inner) => Some(statement_span(inner)),
            _ => None,
        })
        .unwrap_or_default()
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

/// What a member has of its owner's origin. One variable is not the whole environment.
fn inherited(path: &str, base: &Value) -> Taint {
    match path {
        "os.environ" | "process.env" => base.taint.without(Taint::ENVIRONMENT),
        _ => base.taint,
    }
}

/// `self.x`, `obj.x`: a field of a plain name, as one.
pub(super) fn dotted(base: &Expr, attr: &str) -> Option<Text> {
    match &base.kind {
        ExprKind::Name(name) => Some(format!("{name}.{attr}").into()),
        _ => None,
    }
}
