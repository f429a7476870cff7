//! Expressions of Python, by precedence.

use std::rc::Rc;

use super::super::super::escapes;
use super::super::super::ir::{Arg, Call, Each, Expr, ExprKind, Function, Op, Stmt, Target};
use super::super::super::lowering::{nothing, operator};
use super::lex::{Tok, Word};
use super::{HIGHEST, Reader, target_of};

impl Reader<'_> {
    /// An expression that ends where the last token ended; `height` is that of its deepest part.
    pub(super) fn made(&mut self, start: usize, kind: ExprKind, height: usize) -> Option<Expr> {
        self.height = height + 1;
        (self.height < HIGHEST).then(|| Expr::new(self.span(start), kind))
    }

    pub(super) fn is_yield(&self) -> bool {
        self.is_word(Word::Yield)
    }

    /// `a` or `a, b`
    pub(super) fn expressions(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let first = self.expression()?;
        if !self.is(",") {
            return Some(first);
        }
        let mut height = self.height;
        let mut items = vec![first];
        while self.take(",")? {
            let ends = match self.token.tok {
                Tok::Newline => true,
                Tok::Op(op) => matches!(op, ")" | "]" | "}" | ":" | "=" | ";"),
                _ => false,
            };
            if ends {
                break;
            }
            items.push(self.expression()?);
            height = height.max(self.height);
        }
        self.made(start, ExprKind::List(items), height)
    }

    pub(super) fn yielded(&mut self) -> Option<Expr> {
        let start = self.token.start;
        self.advance()?;
        let mut parts = Vec::new();
        self.height = 0;
        if self.take_word(Word::From)? {
            parts.push(self.expression()?);
        } else {
            let ends = match self.token.tok {
                Tok::Newline => true,
                Tok::Op(op) => matches!(op, ")" | "]" | "}" | ";" | "=" | ","),
                _ => false,
            };
            if !ends {
                parts.push(self.expressions()?);
            }
        }
        let height = self.height;
        self.made(start, ExprKind::Yield(parts), height)
    }

    /// An expression, or `name := expression`.
    pub(super) fn named_expression(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let expr = self.expression()?;
        if !self.is(":=") {
            return Some(expr);
        }
        let ExprKind::Name(name) = expr.kind else {
            return None;
        };
        self.advance()?;
        let value = self.expression()?;
        let height = self.height;
        let kind = ExprKind::Assign(Box::new(Target::Name(name)), Box::new(value));
        self.made(start, kind, height)
    }

    pub(super) fn expression(&mut self) -> Option<Expr> {
        self.depth += 1;
        if self.depth >= HIGHEST {
            return None;
        }
        let start = self.token.start;
        let expr = if self.is_word(Word::Lambda) {
            self.lambda()?
        } else {
            let value = self.disjunction()?;
            if self.is_word(Word::If) {
                let mut height = self.height;
                self.advance()?;
                let condition = self.disjunction()?;
                height = height.max(self.height);
                if !self.take_word(Word::Else)? {
                    return None;
                }
                let other = self.expression()?;
                height = height.max(self.height);
                // The values first, the condition for the calls in it.
                let kind = ExprKind::Either(vec![value, other, condition]);
                self.made(start, kind, height)?
            } else {
                value
            }
        };
        self.depth -= 1;
        Some(expr)
    }

    fn lambda(&mut self) -> Option<Expr> {
        let start = self.token.start;
        self.advance()?;
        let params = self.params(":")?;
        let height = self.height;
        self.expect(":")?;
        let value = self.expression()?;
        let height = height.max(self.height);
        let function = Function {
            name: None,
            params,
            body: vec![Stmt::Return(Some(value))],
            decorators: Vec::new(),
        };
        self.made(start, ExprKind::Function(Rc::new(function)), height)
    }

    fn disjunction(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let mut left = self.conjunction()?;
        while self.is_word(Word::Or) {
            let height = self.height;
            self.advance()?;
            let right = self.conjunction()?;
            let height = height.max(self.height);
            left = self.made(start, ExprKind::Either(vec![left, right]), height)?;
        }
        Some(left)
    }

    fn conjunction(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let mut left = self.inversion()?;
        while self.is_word(Word::And) {
            let height = self.height;
            self.advance()?;
            let right = self.inversion()?;
            let height = height.max(self.height);
            left = self.made(start, ExprKind::Either(vec![left, right]), height)?;
        }
        Some(left)
    }

    fn inversion(&mut self) -> Option<Expr> {
        if !self.is_word(Word::Not) {
            return self.comparison();
        }
        let start = self.token.start;
        self.advance()?;
        self.depth += 1;
        if self.depth >= HIGHEST {
            return None;
        }
        let inner = self.inversion()?;
        self.depth -= 1;
        let height = self.height;
        self.made(start, ExprKind::Many(vec![inner]), height)
    }

    fn comparison(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let first = self.binary(0)?;
        if !self.compares()? {
            return Some(first);
        }
        let mut height = self.height;
        let mut operands = vec![first];
        loop {
            operands.push(self.binary(0)?);
            height = height.max(self.height);
            if !self.compares()? {
                break;
            }
        }
        self.made(start, ExprKind::Many(operands), height)
    }

    /// Takes an operator that compares.
    fn compares(&mut self) -> Option<bool> {
        match self.token.tok {
            Tok::Op("<" | ">" | "==" | "!=" | "<=" | ">=") | Tok::Word(Word::In) => {
                let less = self.is("<");
                self.advance()?;
                // `<>` of Python 2.
                if less && self.is(">") {
                    return None;
                }
            }
            Tok::Word(Word::Is) => {
                self.advance()?;
                self.take_word(Word::Not)?;
            }
            Tok::Word(Word::Not) => {
                self.advance()?;
                if !self.take_word(Word::In)? {
                    return None;
                }
            }
            _ => return Some(false),
        }
        Some(true)
    }

    /// Operators that bind at least as strongly as `level` says.
    fn binary(&mut self, level: u8) -> Option<Expr> {
        let start = self.token.start;
        let mut left = self.unary()?;
        let mut is_sum = false;
        while let Tok::Op(op) = self.token.tok {
            let strength = match op {
                "|" => 1,
                // As in the grammar; Python has these two the other way round.
                "&" => 2,
                "^" => 3,
                "<<" | ">>" => 4,
                "+" | "-" => 5,
                "*" | "/" | "//" | "%" | "@" => 6,
                _ => break,
            };
            if strength <= level {
                break;
            }
            let height = self.height;
            self.advance()?;
            let right = self.binary(strength)?;
            if op == "+" {
                // A chain of sums is flat, and as high as its highest term.
                let kind = match left.kind {
                    ExprKind::Sum(mut terms) if is_sum => {
                        let height = (height - 1).max(self.height);
                        terms.push(right);
                        left = self.made(start, ExprKind::Sum(terms), height)?;
                        continue;
                    }
                    kind => {
                        let left = Expr::new(left.span, kind);
                        ExprKind::Sum(vec![left, right])
                    }
                };
                let height = height.max(self.height);
                left = self.made(start, kind, height)?;
                is_sum = true;
                continue;
            }
            is_sum = false;
            let height = height.max(self.height);
            let kind = ExprKind::Binary(operator(op), Box::new(left), Box::new(right));
            left = self.made(start, kind, height)?;
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr> {
        let Tok::Op(op @ ("-" | "+" | "~")) = self.token.tok else {
            return self.power();
        };
        let start = self.token.start;
        self.advance()?;
        self.depth += 1;
        if self.depth >= HIGHEST {
            return None;
        }
        let inner = self.unary()?;
        self.depth -= 1;
        let height = self.height;
        let kind = if op == "-" {
            ExprKind::Negate(Box::new(inner))
        } else {
            inner.kind
        };
        self.made(start, kind, height)
    }

    fn power(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let awaits = self.take_word(Word::Await)?;
        let mut base = self.primary()?;
        if awaits {
            base.span = self.span(start);
        }
        if !self.is("**") {
            return Some(base);
        }
        if awaits {
            return None;
        }
        let height = self.height;
        self.advance()?;
        self.depth += 1;
        if self.depth >= HIGHEST {
            return None;
        }
        let exponent = self.unary()?;
        self.depth -= 1;
        let height = height.max(self.height);
        let kind = ExprKind::Binary(Op::Pow, Box::new(base), Box::new(exponent));
        self.made(start, kind, height)
    }

    /// An atom with what follows it: members, calls, items.
    fn primary(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let mut expr = self.atom()?;
        loop {
            let height = self.height;
            let Tok::Op(op) = self.token.tok else {
                return Some(expr);
            };
            match op {
                "." => {
                    self.advance()?;
                    let name = self.name()?;
                    let kind = ExprKind::Attr(Box::new(expr), name);
                    expr = self.made(start, kind, height)?;
                }
                "(" => {
                    let open = self.token.start;
                    self.advance()?;
                    self.height = 0;
                    let mut args = self.arguments()?;
                    // A lone comprehension has the brackets of the call.
                    if let [only] = args.as_mut_slice()
                        && only.name.is_none()
                        && only.value.span.start == usize::MAX
                    {
                        only.value.span = self.span(open);
                        respan(&mut only.value);
                    }
                    let height = height.max(self.height);
                    let kind = ExprKind::Call(Box::new(Call {
                        callee: expr,
                        args,
                        constructs: false,
                    }));
                    expr = self.made(start, kind, height)?;
                }
                "[" => {
                    self.advance()?;
                    self.height = 0;
                    let kind = self.subscript(Box::new(expr))?;
                    let height = height.max(self.height);
                    expr = self.made(start, kind, height)?;
                }
                _ => return Some(expr),
            }
        }
    }

    /// After `[`: an item or a slice. Of several, all are looked at.
    fn subscript(&mut self, base: Box<Expr>) -> Option<ExprKind> {
        let start = self.token.start;
        let mut parts = [None, None, None];
        let mut at = 0;
        let mut height = 0;
        if !self.is(":") {
            if self.is("*") {
                return None;
            }
            parts[0] = Some(Box::new(self.named_expression()?));
            height = self.height;
        }
        while at < 2 && self.take(":")? {
            at += 1;
            if !self.is(":") && !self.is("]") && !self.is(",") {
                parts[at] = Some(Box::new(self.expression()?));
                height = height.max(self.height);
            }
        }
        if self.take("]")? {
            self.height = height;
            if at > 0 {
                return Some(ExprKind::Slice(base, parts));
            }
            let [index, _, _] = parts;
            return Some(ExprKind::Index(base, index?));
        }
        // `a[1, 2]`; slices among several are left to the grammar.
        if at > 0 || !self.is(",") {
            return None;
        }
        let mut items: Vec<Expr> = parts.into_iter().flatten().map(|part| *part).collect();
        let mut end = self.before;
        while self.take(",")? {
            if self.is("]") {
                break;
            }
            items.push(self.expression()?);
            height = height.max(self.height);
            end = self.before;
        }
        self.expect("]")?;
        self.height = height + 1;
        let index = if items.len() == 1 {
            items.pop()?
        } else {
            Expr::new(crate::result::Span::new(start, end), ExprKind::List(items))
        };
        Some(ExprKind::Index(base, Box::new(index)))
    }

    /// After `(`: arguments, up to and with `)`.
    pub(super) fn arguments(&mut self) -> Option<Vec<Arg>> {
        let mut args = Vec::new();
        let mut height = 0;
        while !self.is(")") {
            let start = self.token.start;
            let spread = self.take("*")? || self.take("**")?;
            let mut value = if spread {
                let inner = self.expression()?;
                let height = self.height;
                self.made(start, ExprKind::Spread(Box::new(inner)), height)?
            } else {
                self.named_expression()?
            };
            height = height.max(self.height);
            let mut name = None;
            if self.is("=") {
                let ExprKind::Name(known) = value.kind else {
                    return None;
                };
                self.advance()?;
                name = Some(known);
                value = self.expression()?;
                height = height.max(self.height);
            }
            if matches!(self.token.tok, Tok::Word(Word::For | Word::Async)) {
                if spread || name.is_some() {
                    return None;
                }
                let kind = self.comprehension(value, height, usize::MAX)?;
                height = self.height;
                let span = crate::result::Span::new(usize::MAX, usize::MAX);
                value = Expr::new(span, kind);
                args.push(Arg { name, value });
                // With other arguments it would need brackets of its own.
                if args.len() > 1 || !self.is(")") {
                    return None;
                }
                break;
            }
            args.push(Arg { name, value });
            if !self.take(",")? {
                break;
            }
        }
        self.expect(")")?;
        self.height = height;
        Some(args)
    }

    /// The clauses after an element. The span of the whole is not known yet where `start` is none.
    pub(super) fn comprehension(
        &mut self,
        element: Expr,
        height: usize,
        start: usize,
    ) -> Option<ExprKind> {
        let mut height = height;
        let mut loops = Vec::new();
        let mut conditions = Vec::new();
        loop {
            let clause = self.token.start;
            if self.take_word(Word::If)? {
                let condition = self.disjunction_or_named()?;
                height = height.max(self.height);
                let kind = ExprKind::Many(vec![condition]);
                conditions.push(self.made(clause, kind, height)?);
                continue;
            }
            self.take_word(Word::Async)?;
            if !self.take_word(Word::For)? {
                break;
            }
            let target = self.loop_target()?;
            if !self.take_word(Word::In)? {
                return None;
            }
            let iter = self.disjunction()?;
            height = height.max(self.height);
            loops.push((target, iter));
        }
        self.height = height + 2;
        let each = ExprKind::Each(Box::new(Each { element, loops }));
        if conditions.is_empty() {
            return Some(each);
        }
        let span = crate::result::Span::new(start, usize::MAX);
        conditions.push(Expr::new(span, each));
        Some(ExprKind::Many(conditions))
    }

    fn disjunction_or_named(&mut self) -> Option<Expr> {
        let condition = self.disjunction()?;
        // `if x := …` and `if a if b else c` are left to the grammar.
        let plain = !self.is(":=") && !self.is_word(Word::Else);
        plain.then_some(condition)
    }

    /// `a`, `a, b` or `(a, b)` before `in`.
    pub(super) fn loop_target(&mut self) -> Option<Target> {
        let first = self.target()?;
        if !self.is(",") {
            return Some(first);
        }
        let mut targets = vec![first];
        while self.take(",")? {
            if self.is_word(Word::In) {
                break;
            }
            targets.push(self.target()?);
        }
        Some(Target::Tuple(targets))
    }

    fn target(&mut self) -> Option<Target> {
        self.take("*")?;
        let expr = self.primary()?;
        target_of(expr)
    }

    fn atom(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let kind = match self.token.tok {
            Tok::Name => {
                let name = self.name()?;
                ExprKind::Name(name)
            }
            Tok::Text | Tok::Format => return self.literals(),
            Tok::Int => {
                let kind = escapes::integer(self.word()).map_or_else(nothing, ExprKind::Int);
                self.advance()?;
                kind
            }
            Tok::Word(word @ (Word::True | Word::False)) => {
                self.advance()?;
                ExprKind::Bool(word == Word::True)
            }
            Tok::Float | Tok::Word(Word::None) | Tok::Op("...") => {
                self.advance()?;
                nothing()
            }
            Tok::Op("(") => return self.bracketed(),
            Tok::Op("[") => return self.list(),
            Tok::Op("{") => return self.braced(),
            _ => return None,
        };
        self.made(start, kind, 0)
    }

    /// An element of a list: `a`, `*a`, `a := b`.
    fn element(&mut self) -> Option<Expr> {
        let start = self.token.start;
        if self.take("*")? {
            let inner = self.expression()?;
            let height = self.height;
            return self.made(start, ExprKind::Spread(Box::new(inner)), height);
        }
        self.named_expression()
    }

    fn begins_clause(&self) -> bool {
        matches!(self.token.tok, Tok::Word(Word::For | Word::Async))
    }

    /// Elements up to `end`, the first of which was read.
    fn elements(&mut self, first: Expr, end: &str) -> Option<(Vec<Expr>, usize)> {
        let mut height = self.height;
        let mut items = vec![first];
        while self.take(",")? {
            if self.is(end) {
                break;
            }
            items.push(self.element()?);
            height = height.max(self.height);
        }
        Some((items, height))
    }

    /// A comprehension in brackets of its own.
    fn enclosed(&mut self, start: usize, element: Expr, end: &str) -> Option<Expr> {
        let height = self.height;
        let kind = self.comprehension(element, height, start)?;
        let height = self.height;
        self.expect(end)?;
        let mut expr = self.made(start, kind, height)?;
        respan(&mut expr);
        Some(expr)
    }

    fn bracketed(&mut self) -> Option<Expr> {
        let start = self.token.start;
        self.advance()?;
        if self.take(")")? {
            return self.made(start, ExprKind::List(Vec::new()), 0);
        }
        let first = if self.is_yield() {
            self.yielded()?
        } else {
            self.element()?
        };
        if self.begins_clause() {
            return self.enclosed(start, first, ")");
        }
        if self.take(")")? {
            if matches!(first.kind, ExprKind::Spread(_)) {
                return None;
            }
            let height = self.height;
            return self.made(start, first.kind, height);
        }
        let (items, height) = self.elements(first, ")")?;
        self.expect(")")?;
        self.made(start, ExprKind::List(items), height)
    }

    fn list(&mut self) -> Option<Expr> {
        let start = self.token.start;
        self.advance()?;
        if self.take("]")? {
            return self.made(start, ExprKind::List(Vec::new()), 0);
        }
        let first = self.element()?;
        if self.begins_clause() {
            return self.enclosed(start, first, "]");
        }
        let (items, height) = self.elements(first, "]")?;
        self.expect("]")?;
        self.made(start, ExprKind::List(items), height)
    }

    /// A dictionary or a set.
    fn braced(&mut self) -> Option<Expr> {
        let start = self.token.start;
        self.advance()?;
        let mut pairs = Vec::new();
        let mut height = 0;
        while !self.is("}") {
            let begun = self.token.start;
            if self.take("**")? {
                let inner = self.expression()?;
                height = height.max(self.height + 1);
                let value = ExprKind::Spread(Box::new(inner));
                let span = self.span(begun);
                pairs.push((Expr::new(span, nothing()), Expr::new(span, value)));
            } else {
                let key = self.element()?;
                height = height.max(self.height);
                if !self.is(":") {
                    // A set, or nothing that is known here.
                    return if pairs.is_empty() {
                        self.set(start, key)
                    } else {
                        None
                    };
                }
                self.advance()?;
                let value = self.expression()?;
                height = height.max(self.height);
                if self.begins_clause() {
                    let pair = self.made(begun, ExprKind::Many(vec![key, value]), height)?;
                    return if pairs.is_empty() {
                        self.enclosed(start, pair, "}")
                    } else {
                        None
                    };
                }
                pairs.push((key, value));
            }
            if !self.take(",")? {
                break;
            }
        }
        self.expect("}")?;
        self.made(start, ExprKind::Dict(pairs), height)
    }

    fn set(&mut self, start: usize, first: Expr) -> Option<Expr> {
        if self.begins_clause() {
            return self.enclosed(start, first, "}");
        }
        let (items, height) = self.elements(first, "}")?;
        self.expect("}")?;
        self.made(start, ExprKind::List(items), height)
    }
}

/// The last part of a comprehension with conditions stands where the whole stands.
fn respan(whole: &mut Expr) {
    let span = whole.span;
    if let ExprKind::Many(parts) = &mut whole.kind
        && let Some(last) = parts.last_mut()
        && last.span.end == usize::MAX
    {
        last.span = span;
    }
}
