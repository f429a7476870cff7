//! Runs a program on what is known, to learn which functions it calls with what.
//!
//! Every statement is looked at once, in order, branches one after the other; functions of the
//! file are entered when called with something known, and once more on their own. Loops over
//! constant lists are followed. Nothing outside the text is touched, and steps are counted.

mod expr;
mod members;
mod variables;

pub(super) use variables::dotted;

use std::rc::Rc;

use super::api::Dialect;
use super::attack;
use super::cloud::is_cloud;
use super::hash::{Map, Set};
use super::ir::{Expr, Function, Program, Stmt, Target, Text};
use super::judge::{Judge, Pace};
use super::loops;
use super::names;
use super::spelled;
use super::value::{Args, Kind, Taint, Value};
use crate::paths::UNKNOWN;
use crate::result::Span;
use crate::rule::Rule;

/// Steps for one text.
const STEPS: usize = 3_000_000;
/// Calls of the file's functions inside one another.
pub(super) const CALL_DEPTH: usize = 6;
/// Calls of one function inside itself.
pub(super) const RECURSION: usize = 2;
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
    /// Functions that are being looked at with arguments, the innermost last.
    pub(super) active: Vec<*const Function>,
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
            active: Vec::new(),
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

    /// Looks at one statement of a program that is lowered as it goes; whether to go on.
    pub(super) fn run_statement(&mut self, statement: &Stmt) -> bool {
        self.statement(statement, &mut Vec::new());
        self.step()
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
                let span = value.span;
                let mut value = self.expr(value);
                if let Some(op) = op {
                    let old = self.read_target(target);
                    if let Target::Name(name) = target {
                        self.adds_outside(name, value.deep_taint());
                    }
                    value = self.binary(*op, &old, &value);
                }
                if let (Target::Name(name), true) = (target, self.class.is_some()) {
                    self.judge.member_runs(name, &value, span);
                }
                self.assign(target, value);
            }
            Stmt::Import { name, path, span } => {
                self.judge.import(path, *span);
                let plain = spelled::plain(self.dialect, path);
                if let Some(plain) = &plain {
                    self.judge.disguised(plain, *span);
                }
                let path = plain.as_ref().unwrap_or(path);
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
                let span = iter.span;
                let words = attack::is_wordlist(iter);
                let mut iter = self.expr(iter);
                if words {
                    iter.taint |= Taint::TRIED;
                }
                self.each(target, &iter, span, |this| this.statements(body, functions));
            }
            Stmt::Block(body) => self.statements(body, functions),
            Stmt::Break => {}
            Stmt::Forever(body) => {
                if loops::only_grows(body) {
                    let reason = "fills the memory without end";
                    let span = statement_span(body);
                    self.judge.findings.add(Rule::ForkBomb, span, reason);
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

    /// Runs `body` for each element of a constant list, else once with the unknown.
    fn each(&mut self, target: &Target, iter: &Value, span: Span, mut body: impl FnMut(&mut Self)) {
        let items = match &iter.kind {
            Kind::List(items) => Some(Rc::clone(items)),
            Kind::Text(text) if !text.contains(UNKNOWN) && text.len() <= LOOP => {
                let items = text.chars().map(|c| Value::text(c.to_string())).collect();
                Some(Rc::new(items))
            }
            _ => None,
        };
        let tried = attack::tried(iter);
        if iter.taint.has(Taint::ENVIRONMENT) && iter.as_api().is_some() {
            self.judge.walks_environment(span);
        }
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
}

/// Where the first statement of a loop or function stands.
pub(super) fn statement_span(body: &[Stmt]) -> Span {
    body.iter()
        .find_map(|statement| match statement {
            Stmt::Expr(expr) | Stmt::Assign { value: expr, .. } | Stmt::Return(Some(expr)) => {
                Some(expr.span)
            }
            Stmt::Block(inner) => Some(statement_span(inner)),
            _ => None,
        })
        .unwrap_or_default()
}
