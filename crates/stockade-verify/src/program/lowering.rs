//! Syntax trees to one form: what lowering any of the languages has in common.

use std::rc::Rc;

use tree_sitter::{Language, Node};

use super::ir::{Call, Expr, ExprKind, Function, Op, Program, Stmt, Target, Text};
use super::tree::{Source, children, first_error, parse, span};
use crate::result::Span;

/// Lowers a language's syntax tree, node by node.
pub(crate) trait Lower<'t>: Sized {
    fn new(source: Source<'t>) -> Self;

    fn source(&self) -> &Source<'t>;

    fn source_mut(&mut self) -> &mut Source<'t>;

    fn statement(&mut self, node: Node<'_>, out: &mut Vec<Stmt>);

    fn expr_kind(&mut self, node: Node<'_>) -> ExprKind;

    fn target(&mut self, node: Node<'_>) -> Target;

    fn text(&self, node: Node<'_>) -> Text {
        self.source().name(node)
    }

    fn comment(&mut self, node: Node<'_>) {
        self.source_mut().comments.push(span(node));
    }

    fn block(&mut self, node: Node<'_>) -> Vec<Stmt> {
        let mut out = Vec::new();
        if !self.source_mut().descend(node) {
            return out;
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            self.statement(child, &mut out);
        }
        self.source_mut().ascend();
        out
    }

    fn expr(&mut self, node: Node<'_>) -> Expr {
        if !self.source_mut().descend(node) {
            return Expr::new(span(node), nothing());
        }
        let kind = self.expr_kind(node);
        self.source_mut().ascend();
        Expr::new(span(node), kind)
    }

    fn boxed(&mut self, node: Option<Node<'_>>) -> Option<Box<Expr>> {
        node.map(|node| Box::new(self.expr(node)))
    }

    fn all(&mut self, node: Node<'_>) -> Vec<Expr> {
        children(node)
            .into_iter()
            .map(|child| self.expr(child))
            .collect()
    }

    fn operator_of(&self, node: Node<'_>) -> &'t str {
        node.child_by_field_name("operator")
            .map_or("", |operator| self.source().of(operator))
    }

    /// `left op right`
    fn plain_binary(&mut self, node: Node<'_>) -> ExprKind {
        let op = operator(self.operator_of(node));
        let left = self.boxed(node.child_by_field_name("left"));
        let right = self.boxed(node.child_by_field_name("right"));
        match (left, right) {
            (Some(left), Some(right)) => ExprKind::Binary(op, left, right),
            _ => nothing(),
        }
    }

    /// The terms of `a op b op c …`, which the tree nests to the left, in order.
    fn chain(&mut self, node: Node<'_>) -> Vec<Expr> {
        let op = self.operator_of(node);
        let mut terms = Vec::new();
        let mut left = node;
        while left.kind() == node.kind() && self.operator_of(left) == op {
            terms.extend(left.child_by_field_name("right"));
            match left.child_by_field_name("left") {
                Some(next) => left = next,
                None => break,
            }
        }
        terms.push(left);
        terms
            .into_iter()
            .rev()
            .map(|term| self.expr(term))
            .collect()
    }

    /// `(a, b) = …`
    fn tuple_target(&mut self, node: Node<'_>) -> Target {
        if !self.source_mut().descend(node) {
            return Target::Tuple(Vec::new());
        }
        let targets = children(node)
            .into_iter()
            .map(|child| self.target(child))
            .collect();
        self.source_mut().ascend();
        Target::Tuple(targets)
    }

    /// `base.name = …`
    fn attr_target(&mut self, base: Option<Node<'_>>, name: Option<Node<'_>>) -> Target {
        match (base, name) {
            (Some(base), Some(name)) => {
                let base = self.expr(base);
                Target::Attr(base, self.text(name))
            }
            _ => Target::Tuple(Vec::new()),
        }
    }

    /// `base[index] = …`
    fn index_target(&mut self, base: Option<Node<'_>>, index: Option<Node<'_>>) -> Target {
        match (base, index) {
            (Some(base), Some(index)) => {
                let base = self.expr(base);
                let index = self.expr(index);
                Target::Index(base, index)
            }
            _ => Target::Tuple(Vec::new()),
        }
    }
}

/// Reads a text; `None` if parsing was given up.
pub(crate) fn program<'t, L: Lower<'t>>(language: &Language, text: &'t str) -> Option<Program> {
    let tree = parse(language, text)?;
    let root = tree.root_node();
    let mut lowering = L::new(Source::new(text));
    let broken = first_error(root);
    let body = lowering.block(root);
    let source = lowering.source_mut();
    Some(Program {
        body,
        comments: std::mem::take(&mut source.comments),
        broken,
        fragment: false,
        too_deep: source.too_deep,
    })
}

/// An expression without a value of interest.
pub(crate) fn nothing() -> ExprKind {
    ExprKind::Many(Vec::new())
}

/// Statements met where an expression stands, as a function that is called.
pub(crate) fn statements_as_expression(body: Vec<Stmt>) -> ExprKind {
    let span = Span::default();
    let function = Function {
        name: None,
        params: Vec::new(),
        body,
        decorators: Vec::new(),
    };
    let callee = Expr::new(span, ExprKind::Function(Rc::new(function)));
    ExprKind::Call(Box::new(Call {
        callee,
        args: Vec::new(),
        constructs: false,
    }))
}

pub(crate) fn operator(text: &str) -> Op {
    match text {
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "**" => Op::Pow,
        "/" | "//" => Op::Div,
        "%" => Op::Rem,
        "^" => Op::Xor,
        "&" => Op::And,
        "|" => Op::Or,
        "<<" => Op::Shl,
        ">>" => Op::Shr,
        _ => Op::Other,
    }
}
