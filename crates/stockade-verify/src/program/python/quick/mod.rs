//! Valid Python, read by descent.
//!
//! The grammar reads anything, and most of the time of a verification is spent in it. Nearly all
//! files are plain and valid: this reader takes those, several times faster, and yields exactly
//! what lowering the grammar's tree yields. Whatever it does not know for certain (old and very
//! new syntax, names in other scripts, deep nesting, errors) it leaves to the grammar, by `None`.

mod expr;
mod lex;
mod text;

use std::rc::Rc;

use super::super::hash::Set;
use super::super::ir::{Class, Expr, ExprKind, Function, Param, Program, Stmt, Target, Text};
use super::super::lowering::operator;
use crate::result::Span;
use lex::{Lexer, Tok, Token, Word};

pub(super) use lex::quotes;

/// Expressions inside one another; what the grammar's reader allows is more.
const HIGHEST: usize = 48;

/// Reads a text that is plain and valid.
pub(super) fn read(text: &str) -> Option<Program> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut reader = Reader {
        lexer,
        token,
        before: 0,
        depth: 0,
        height: 0,
        names: Set::default(),
    };
    let mut body = Vec::new();
    while reader.token.tok != Tok::End {
        // An empty text, or the end of one whose last line has no end.
        if reader.token.tok == Tok::Newline {
            reader.advance()?;
        } else {
            reader.statement(&mut body)?;
        }
    }
    Some(Program {
        body,
        comments: reader.lexer.comments,
        ..Program::default()
    })
}

struct Reader<'t> {
    lexer: Lexer<'t>,
    token: Token,
    /// Where the token before this one ended.
    before: usize,
    /// Expressions being read, one inside the other.
    depth: usize,
    /// How deep the expression read last is.
    height: usize,
    names: Set<Text>,
}

impl<'t> Reader<'t> {
    fn advance(&mut self) -> Option<()> {
        self.before = self.token.end;
        self.token = self.lexer.next()?;
        Some(())
    }

    fn is(&self, op: &str) -> bool {
        // Nearly always the first character tells.
        matches!(self.token.tok, Tok::Op(known)
            if known.as_bytes()[0] == op.as_bytes()[0] && known == op)
    }

    fn is_word(&self, word: Word) -> bool {
        self.token.tok == Tok::Word(word)
    }

    fn take(&mut self, op: &str) -> Option<bool> {
        if self.is(op) {
            self.advance()?;
            return Some(true);
        }
        Some(false)
    }

    fn take_word(&mut self, word: Word) -> Option<bool> {
        if self.is_word(word) {
            self.advance()?;
            return Some(true);
        }
        Some(false)
    }

    fn expect(&mut self, op: &str) -> Option<()> {
        self.take(op)?.then_some(())
    }

    fn source(&self, start: usize, end: usize) -> &'t str {
        self.lexer.text.get(start..end).unwrap_or_default()
    }

    fn word(&self) -> &'t str {
        self.source(self.token.start, self.token.end)
    }

    fn span(&self, start: usize) -> Span {
        Span::new(start, self.before)
    }

    /// The same text for the same name.
    fn shared(&mut self, name: &str) -> Text {
        if let Some(known) = self.names.get(name) {
            return Rc::clone(known);
        }
        let new: Text = name.into();
        self.names.insert(Rc::clone(&new));
        new
    }

    fn name(&mut self) -> Option<Text> {
        if self.token.tok != Tok::Name {
            return None;
        }
        let name = self.shared(self.word());
        self.advance()?;
        Some(name)
    }

    /// After a colon: an indented block, or statements on the same line.
    fn block(&mut self) -> Option<Vec<Stmt>> {
        self.expect(":")?;
        let mut out = Vec::new();
        if self.token.tok != Tok::Newline {
            self.simple_statements(&mut out)?;
            return Some(out);
        }
        self.advance()?;
        if self.token.tok != Tok::Indent {
            return None;
        }
        self.advance()?;
        while self.token.tok != Tok::Dedent {
            self.statement(&mut out)?;
        }
        self.advance()?;
        Some(out)
    }

    fn statement(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        let Tok::Word(word) = self.token.tok else {
            return if self.is("@") {
                self.decorated(out)
            } else {
                self.simple_statements(out)
            };
        };
        match word {
            Word::If => {
                let mut inner = Vec::new();
                self.condition(&mut inner)?;
                while self.is_word(Word::Elif) {
                    let mut other = Vec::new();
                    self.condition(&mut other)?;
                    inner.push(Stmt::Block(other));
                }
                self.alternative(Word::Else, &mut inner)?;
                out.push(Stmt::Block(inner));
            }
            Word::While => {
                let mut inner = Vec::new();
                let start = self.token.end;
                self.advance()?;
                let condition = self.named_expression()?;
                let forever = matches!(self.source(start, self.before).trim(), "True" | "1");
                inner.push(Stmt::Expr(condition));
                inner.push(Stmt::Block(self.block()?));
                self.alternative(Word::Else, &mut inner)?;
                let inner = vec![Stmt::Block(inner)];
                out.push(if forever {
                    Stmt::Forever(inner)
                } else {
                    Stmt::Block(inner)
                });
            }
            Word::For => self.for_loop(out)?,
            Word::Try => self.attempt(out)?,
            Word::With => self.with(out)?,
            Word::Def => {
                let function = self.function(Vec::new())?;
                out.push(Stmt::Function(Rc::new(function)));
            }
            Word::Class => {
                let class = self.class(Vec::new())?;
                out.push(Stmt::Class(class));
            }
            Word::Async => {
                self.advance()?;
                match self.token.tok {
                    Tok::Word(Word::Def | Word::For | Word::With) => self.statement(out)?,
                    _ => return None,
                }
            }
            _ => self.simple_statements(out)?,
        }
        Some(())
    }

    /// `if condition: …`, `elif condition: …`
    fn condition(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        self.advance()?;
        let condition = self.named_expression()?;
        out.push(Stmt::Expr(condition));
        out.push(Stmt::Block(self.block()?));
        Some(())
    }

    /// `else: …`, `finally: …`
    fn alternative(&mut self, word: Word, out: &mut Vec<Stmt>) -> Option<()> {
        if self.take_word(word)? {
            let body = self.block()?;
            out.push(Stmt::Block(vec![Stmt::Block(body)]));
        }
        Some(())
    }

    fn for_loop(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        self.advance()?;
        let target = self.loop_target()?;
        if !self.take_word(Word::In)? {
            return None;
        }
        let iter = self.expressions()?;
        let body = self.block()?;
        out.push(Stmt::For { target, iter, body });
        self.alternative(Word::Else, out)
    }

    fn attempt(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        self.advance()?;
        let mut inner = vec![Stmt::Block(self.block()?)];
        while self.take_word(Word::Except)? {
            let mut handler = Vec::new();
            if !self.is(":") {
                let start = self.token.start;
                let mut value = self.expression()?;
                if self.take_word(Word::As)? {
                    let alias = self.token.start;
                    let name = ExprKind::Name(self.name()?);
                    let span = self.span(alias);
                    let name = ExprKind::Many(vec![Expr::new(span, name)]);
                    let parts = ExprKind::Many(vec![value, Expr::new(span, name)]);
                    value = Expr::new(self.span(start), parts);
                }
                handler.push(Stmt::Expr(value));
            }
            handler.push(Stmt::Block(self.block()?));
            inner.push(Stmt::Block(handler));
        }
        self.alternative(Word::Else, &mut inner)?;
        self.alternative(Word::Finally, &mut inner)?;
        out.push(Stmt::Block(inner));
        Some(())
    }

    fn with(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        self.advance()?;
        // `with (…)` may be one expression or several items.
        if self.is("(") {
            return None;
        }
        loop {
            let value = self.expression()?;
            if self.take_word(Word::As)? {
                let target = self.expression()?;
                let target = target_of(target)?;
                out.push(Stmt::Assign {
                    target,
                    value,
                    op: None,
                });
            } else {
                out.push(Stmt::Expr(value));
            }
            if !self.take(",")? {
                break;
            }
        }
        out.push(Stmt::Block(self.block()?));
        Some(())
    }

    fn decorated(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        let mut decorators = Vec::new();
        while self.take("@")? {
            decorators.push(self.named_expression()?);
            if self.token.tok != Tok::Newline {
                return None;
            }
            self.advance()?;
        }
        self.take_word(Word::Async)?;
        match self.token.tok {
            Tok::Word(Word::Def) => {
                let function = self.function(decorators)?;
                out.push(Stmt::Function(Rc::new(function)));
            }
            Tok::Word(Word::Class) => {
                let class = self.class(decorators)?;
                out.push(Stmt::Class(class));
            }
            _ => return None,
        }
        Some(())
    }

    fn class(&mut self, decorators: Vec<Expr>) -> Option<Class> {
        self.advance()?;
        let name = self.name()?;
        let mut bases = Vec::new();
        if self.take("(")? {
            let args = self.arguments()?;
            if args.iter().any(|arg| arg.value.span.start == usize::MAX) {
                return None;
            }
            bases = args.into_iter().map(|arg| arg.value).collect();
        }
        let body = self.block()?;
        Some(Class {
            name,
            bases,
            decorators,
            body,
        })
    }

    fn function(&mut self, decorators: Vec<Expr>) -> Option<Function> {
        self.advance()?;
        let name = Some(self.name()?);
        self.expect("(")?;
        let params = self.params(")")?;
        self.expect(")")?;
        if self.take("->")? {
            self.expression()?;
        }
        let body = self.block()?;
        Some(Function {
            name,
            params,
            body,
            decorators,
        })
    }

    /// Parameters up to `end`, which stays. Only those of `def` have types.
    fn params(&mut self, end: &str) -> Option<Vec<Param>> {
        let mut height = 0;
        let mut out = Vec::new();
        while !self.is(end) {
            let start = self.token.start;
            let marks = if self.take("*")? {
                1
            } else if self.take("**")? {
                2
            } else {
                0
            };
            // `/` and `*` only separate.
            let separates = marks == 0 && self.take("/")? || marks == 1 && self.is(",");
            if !separates {
                let mut name = self.name()?;
                let mut rest = marks == 1;
                if end == ")" && self.take(":")? {
                    // With a type, the grammar counts the stars to the name.
                    if marks > 0 {
                        name = self.source(start, start + marks + name.len()).into();
                        rest = false;
                    }
                    self.expression()?;
                }
                let default = if marks == 0 && self.take("=")? {
                    let default = self.expression()?;
                    height = height.max(self.height);
                    Some(default)
                } else {
                    None
                };
                out.push(Param {
                    name,
                    default,
                    rest,
                });
            }
            if !self.take(",")? {
                break;
            }
        }
        self.height = height;
        Some(out)
    }

    fn simple_statements(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        loop {
            self.simple_statement(out)?;
            if !self.take(";")? || self.token.tok == Tok::Newline {
                break;
            }
        }
        if self.token.tok != Tok::Newline {
            return None;
        }
        self.advance()
    }

    fn at_end(&self) -> bool {
        self.token.tok == Tok::Newline || self.is(";")
    }

    fn simple_statement(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        let start = self.token.start;
        let Tok::Word(word) = self.token.tok else {
            return self.expression_statement(out);
        };
        match word {
            Word::Break => {
                self.advance()?;
                out.push(Stmt::Break);
            }
            Word::Pass | Word::Continue => self.advance()?,
            Word::Global | Word::Nonlocal => {
                self.advance()?;
                self.name()?;
                while self.take(",")? {
                    self.name()?;
                }
            }
            Word::Return => {
                self.advance()?;
                let value = if self.at_end() {
                    None
                } else {
                    Some(self.expressions()?)
                };
                out.push(Stmt::Return(value));
            }
            Word::Import => self.import(out)?,
            Word::From => self.import_from(start, out)?,
            Word::Del | Word::Assert | Word::Raise => {
                self.advance()?;
                let mut parts = Vec::new();
                if !self.at_end() {
                    match word {
                        Word::Del => parts.push(self.expressions()?),
                        _ => parts.push(self.expression()?),
                    }
                }
                let more = match word {
                    Word::Assert => self.take(",")?,
                    Word::Raise => self.take_word(Word::From)?,
                    _ => false,
                };
                if more {
                    parts.push(self.expression()?);
                }
                let span = self.span(start);
                out.push(Stmt::Expr(Expr::new(span, ExprKind::Many(parts))));
                if word == Word::Raise {
                    out.push(Stmt::Break);
                }
            }
            Word::Yield => {
                let value = self.yielded()?;
                out.push(Stmt::Expr(value));
            }
            _ => return self.expression_statement(out),
        }
        Some(())
    }

    fn expression_statement(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        // Statements of Python 2, or functions of Python 3.
        let old = self.token.tok == Tok::Name && matches!(self.word(), "print" | "exec");
        let first = self.expression()?;
        if old && !matches!(first.kind, ExprKind::Call(_)) {
            return None;
        }
        if self.at_end() {
            out.push(Stmt::Expr(first));
            return Some(());
        }
        if old {
            return None;
        }
        if self.is(",") {
            return self.several(first, out);
        }
        if self.take(":")? {
            let target = target_of(first)?;
            self.expression()?;
            if self.take("=")? {
                let value = self.assigned()?;
                out.push(Stmt::Assign {
                    target,
                    value,
                    op: None,
                });
            }
            return Some(());
        }
        if self.is("=") {
            return self.assignment(first, out);
        }
        let Tok::Op(op) = self.token.tok else {
            return None;
        };
        let op = op
            .strip_suffix('=')
            .filter(|op| !matches!(*op, "<" | ">" | "=" | "!" | ":"))?;
        self.advance()?;
        let target = target_of(first)?;
        let value = self.assigned()?;
        out.push(Stmt::Assign {
            target,
            value,
            op: Some(operator(op)),
        });
        Some(())
    }

    /// `a, b` alone, or on the left of an assignment.
    fn several(&mut self, first: Expr, out: &mut Vec<Stmt>) -> Option<()> {
        let start = first.span.start;
        let mut items = vec![first];
        while self.take(",")? {
            if self.at_end() || self.is("=") {
                break;
            }
            items.push(self.expression()?);
        }
        if self.at_end() {
            out.extend(items.into_iter().map(Stmt::Expr));
            return Some(());
        }
        if !self.is("=") {
            return None;
        }
        let list = Expr::new(self.span(start), ExprKind::List(items));
        self.assignment(list, out)
    }

    /// `a = b = value`: from the right.
    fn assignment(&mut self, first: Expr, out: &mut Vec<Stmt>) -> Option<()> {
        let mut targets = Vec::new();
        let mut next = first;
        let value = loop {
            self.expect("=")?;
            let value = self.assigned()?;
            let target = std::mem::replace(&mut next, value);
            targets.push(target);
            if !self.is("=") {
                break next;
            }
        };
        let mut targets = targets.into_iter().rev();
        let nearest = targets.next()?;
        let span = nearest.span;
        let again = match &nearest.kind {
            ExprKind::Name(name) => Some(name.clone()),
            _ => None,
        };
        out.push(Stmt::Assign {
            target: target_of(nearest)?,
            value,
            op: None,
        });
        for target in targets {
            let kind = match &again {
                Some(name) => ExprKind::Name(name.clone()),
                None => ExprKind::Many(Vec::new()),
            };
            out.push(Stmt::Assign {
                target: target_of(target)?,
                value: Expr::new(span, kind),
                op: None,
            });
        }
        Some(())
    }

    /// The right side of an assignment.
    fn assigned(&mut self) -> Option<Expr> {
        if self.is_word(Word::Yield) {
            return self.yielded();
        }
        self.expressions()
    }

    /// `a.b.c` as written.
    fn dotted(&mut self) -> Option<(Text, usize)> {
        let start = self.token.start;
        self.name()?;
        while self.take(".")? {
            self.name()?;
        }
        let text = self.source(start, self.before);
        if text.contains(|c: char| c.is_whitespace() || c == '\\') {
            return None;
        }
        Some((self.shared(text), start))
    }

    fn import(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        self.advance()?;
        loop {
            let (path, start) = self.dotted()?;
            if self.take_word(Word::As)? {
                let name = self.name()?;
                let span = self.span(start);
                out.push(Stmt::Import { name, path, span });
            } else {
                let span = self.span(start);
                let root: Text = path.split('.').next().unwrap_or(&path).into();
                if root != path {
                    let name = path.clone();
                    out.push(Stmt::Import { name, path, span });
                }
                let (name, path) = (root.clone(), root);
                out.push(Stmt::Import { name, path, span });
            }
            if !self.take(",")? {
                return Some(());
            }
        }
    }

    fn import_from(&mut self, start: usize, out: &mut Vec<Stmt>) -> Option<()> {
        self.advance()?;
        let begun = self.token.start;
        while self.take(".")? || self.take("...")? {}
        if self.token.tok == Tok::Name {
            self.dotted()?;
        }
        let path = self.source(begun, self.before);
        if path.is_empty() || path.contains(|c: char| c.is_whitespace() || c == '\\') {
            return None;
        }
        if !self.take_word(Word::Import)? {
            return None;
        }
        let future = path == "__future__";
        if self.take("*")? {
            if future {
                return None;
            }
            let path = self.shared(path);
            let span = self.span(start);
            out.push(Stmt::ImportAll { path, span });
            return Some(());
        }
        let bracketed = self.take("(")?;
        loop {
            let start = self.token.start;
            let member = self.name()?;
            let name = if self.take_word(Word::As)? {
                self.name()?
            } else {
                member.clone()
            };
            if !future {
                out.push(Stmt::Import {
                    name,
                    path: format!("{path}.{member}").into(),
                    span: self.span(start),
                });
            }
            let more = self.take(",")?;
            if !more || bracketed && self.is(")") {
                break;
            }
        }
        if bracketed {
            self.expect(")")?;
        }
        Some(())
    }
}

/// An expression as what is assigned to.
fn target_of(expr: Expr) -> Option<Target> {
    let length = expr.span.end - expr.span.start;
    Some(match expr.kind {
        // With brackets around it, it is a list of one.
        ExprKind::Name(name) if name.len() == length => Target::Name(name),
        ExprKind::Attr(base, name) => Target::Attr(*base, name),
        kind @ (ExprKind::Index(..) | ExprKind::Slice(..)) => super::index_target(kind)?,
        ExprKind::List(items) => {
            let items = items.into_iter().map(target_of);
            Target::Tuple(items.collect::<Option<Vec<_>>>()?)
        }
        ExprKind::Spread(inner) => target_of(*inner)?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
