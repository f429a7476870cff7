//! Expressions of Python.

use std::rc::Rc;

use tree_sitter::Node;

use super::super::escapes;
use super::super::ir::{Arg, Call, Each, Expr, ExprKind, Target};
use super::super::lowering::{Lower, nothing, statements_as_expression};
use super::super::tree::{children, field, span};
use super::Lowering;
use crate::result::Span;

impl Lowering<'_> {
    pub(super) fn argument(&mut self, node: Node<'_>) -> Arg {
        if node.kind() == "keyword_argument"
            && let (Some(name), Some(value)) = (field(node, "name"), field(node, "value"))
        {
            return Arg {
                name: Some(self.text(name)),
                value: self.expr(value),
            };
        }
        Arg {
            name: None,
            value: self.expr(node),
        }
    }

    pub(super) fn lowered(&mut self, node: Node<'_>) -> ExprKind {
        match node.kind() {
            "identifier" => ExprKind::Name(self.text(node)),
            "string" => self.string(node),
            "concatenated_string" => {
                let parts = self.all(node);
                join_texts(parts)
            }
            "integer" => escapes::integer(self.source.of(node)).map_or_else(nothing, ExprKind::Int),
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "attribute" => match (self.boxed(field(node, "object")), field(node, "attribute")) {
                (Some(object), Some(attribute)) => {
                    let attribute = self.text(attribute);
                    below_star(*object, node, |object| ExprKind::Attr(object, attribute))
                }
                _ => nothing(),
            },
            "subscript" => self.subscript(node),
            "call" => self.call(node),
            "binary_operator" => self.binary(node),
            "boolean_operator" => ExprKind::Either(self.all(node)),
            "conditional_expression" => {
                // `a if condition else b`: the values first, the condition for the calls in it.
                let mut parts = self.all(node);
                if parts.len() == 3 {
                    parts.swap(1, 2);
                }
                ExprKind::Either(parts)
            }
            "unary_operator" => {
                let negative = self.source.of(node).starts_with('-');
                match (self.boxed(field(node, "argument")), negative) {
                    (Some(argument), true) => ExprKind::Negate(argument),
                    (Some(argument), false) => argument.kind,
                    (None, _) => nothing(),
                }
            }
            "parenthesized_expression" | "await" => {
                let mut inner = self.all(node);
                if inner.len() == 1 {
                    inner.swap_remove(0).kind
                } else {
                    ExprKind::Many(inner)
                }
            }
            "list" | "tuple" | "set" | "expression_list" | "pattern_list" => {
                ExprKind::List(self.all(node))
            }
            "dictionary" => self.dictionary(node),
            "list_comprehension"
            | "generator_expression"
            | "set_comprehension"
            | "dictionary_comprehension" => self.comprehension(node),
            "lambda" => {
                let function = self.function(node, Vec::new());
                ExprKind::Function(Rc::new(function))
            }
            "named_expression" => match (field(node, "name"), self.boxed(field(node, "value"))) {
                (Some(name), Some(value)) => {
                    ExprKind::Assign(Box::new(Target::Name(self.text(name))), value)
                }
                _ => nothing(),
            },
            "list_splat" | "dictionary_splat" => {
                let inner = children(node).into_iter().next();
                self.boxed(inner).map_or_else(nothing, ExprKind::Spread)
            }
            "yield" => ExprKind::Yield(self.all(node)),
            "comment" | "none" | "ellipsis" | "float" | "type" | "string_content" => nothing(),
            "assignment" | "augmented_assignment" => {
                let mut out = Vec::new();
                self.expression_statement(node, &mut out);
                statements_as_expression(out)
            }
            "function_definition"
            | "class_definition"
            | "decorated_definition"
            | "import_statement"
            | "import_from_statement"
            | "expression_statement"
            | "if_statement"
            | "for_statement"
            | "while_statement"
            | "try_statement"
            | "with_statement"
            | "return_statement"
            | "block" => {
                // Inside an erroneous region: statements where an expression was expected.
                let mut out = Vec::new();
                self.statement(node, &mut out);
                statements_as_expression(out)
            }
            _ => ExprKind::Many(self.all(node)),
        }
    }

    pub(super) fn subscript(&mut self, node: Node<'_>) -> ExprKind {
        let (Some(value), Some(index)) = (field(node, "value"), field(node, "subscript")) else {
            return nothing();
        };
        let value = self.expr(value);
        let mut cursor = node.walk();
        let all: Vec<_> = node
            .children_by_field_name("subscript", &mut cursor)
            .filter(Node::is_named)
            .collect();
        if let [first, .., last] = all.as_slice() {
            let span = crate::result::Span::new(first.start_byte(), last.end_byte());
            let items = all.iter().map(|item| self.expr(*item)).collect();
            let index = Expr::new(span, ExprKind::List(items));
            return below_star(value, node, |value| ExprKind::Index(value, Box::new(index)));
        }
        if index.kind() != "slice" {
            let index = Box::new(self.expr(index));
            return below_star(value, node, |value| ExprKind::Index(value, index));
        }
        // `a:b:c`, each part optional: told apart by the colons.
        let mut parts = [None, None, None];
        let mut at = 0;
        let mut cursor = index.walk();
        for child in index.children(&mut cursor) {
            if child.kind() == ":" {
                at += 1;
            } else if child.is_named() && !child.is_extra() && at < 3 {
                parts[at] = Some(Box::new(self.expr(child)));
            }
        }
        below_star(value, node, |value| ExprKind::Slice(value, parts))
    }

    fn call(&mut self, node: Node<'_>) -> ExprKind {
        let Some(function) = field(node, "function") else {
            return nothing();
        };
        let callee = self.expr(function);
        let args = match field(node, "arguments") {
            Some(list) if list.kind() == "argument_list" => children(list)
                .into_iter()
                .map(|arg| self.argument(arg))
                .collect(),
            Some(generator) => vec![Arg {
                name: None,
                value: self.expr(generator),
            }],
            None => Vec::new(),
        };
        below_star(callee, node, |callee| {
            ExprKind::Call(Box::new(Call {
                callee: *callee,
                args,
                constructs: false,
            }))
        })
    }

    fn binary(&mut self, node: Node<'_>) -> ExprKind {
        match self.operator_of(node) {
            "+" => ExprKind::Sum(self.chain(node)),
            _ => self.plain_binary(node),
        }
    }

    fn dictionary(&mut self, node: Node<'_>) -> ExprKind {
        let mut pairs = Vec::new();
        for child in children(node) {
            if let (Some(key), Some(value)) = (field(child, "key"), field(child, "value")) {
                let key = self.expr(key);
                pairs.push((key, self.expr(value)));
            } else {
                let value = self.expr(child);
                pairs.push((Expr::new(span(child), nothing()), value));
            }
        }
        ExprKind::Dict(pairs)
    }

    fn comprehension(&mut self, node: Node<'_>) -> ExprKind {
        let Some(body) = field(node, "body") else {
            return nothing();
        };
        let element = self.expr(body);
        let mut loops = Vec::new();
        let mut conditions = Vec::new();
        for child in children(node) {
            match child.kind() {
                "for_in_clause" => {
                    if let (Some(left), Some(right)) = (field(child, "left"), field(child, "right"))
                    {
                        let target = self.target(left);
                        loops.push((target, self.expr(right)));
                    }
                }
                "if_clause" => conditions.push(self.expr(child)),
                _ => {}
            }
        }
        if !conditions.is_empty() {
            // Conditions are looked at for the calls in them; which elements they drop is unknown.
            conditions.push(Expr::new(
                span(node),
                ExprKind::Each(Box::new(Each { element, loops })),
            ));
            return ExprKind::Many(conditions);
        }
        ExprKind::Each(Box::new(Each { element, loops }))
    }

    fn string(&mut self, node: Node<'_>) -> ExprKind {
        let written = self.source.of(node);
        let quote = written.find(['"', '\'']).unwrap_or(0);
        let (prefix, quoted) = written.split_at(quote);
        let bytes = prefix.contains(['b', 'B']);
        let raw = prefix.contains(['r', 'R']);
        let length = super::quick::quotes(quoted.as_bytes());
        let inside = quoted.get(length..quoted.len().saturating_sub(length));
        if let Some(content) = inside.filter(|_| !prefix.contains(['f', 'F', 't', 'T'])) {
            return ExprKind::Text(if raw {
                content.into()
            } else {
                escapes::python(content, bytes).into()
            });
        }
        // What stands between the expressions, as it stands: the tree leaves some of it out.
        let content = |from: usize, to: usize| {
            let content = self.source.text.get(from..to).unwrap_or_default();
            let decoded = if raw {
                content.to_owned()
            } else {
                escapes::python(content, bytes)
            };
            decoded.replace("{{", "{").replace("}}", "}")
        };
        let whole = span(node);
        let mut from = whole.start + quote + length;
        let mut pieces = Vec::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if child.kind() == "interpolation" {
                pieces.push((content(from, child.start_byte()), Some(child)));
                from = child.end_byte();
            }
        }
        let last = content(from, whole.end.saturating_sub(length).max(from));
        if pieces.is_empty() {
            return ExprKind::Text(last.into());
        }
        pieces.push((last, None));
        let mut parts: Vec<Expr> = Vec::new();
        for (text, child) in pieces {
            if !text.is_empty() {
                parts.push(Expr::new(whole, ExprKind::Text(text.into())));
            }
            let inner = child.and_then(|child| field(child, "expression"));
            parts.extend(inner.map(|inner| self.expr(inner)));
        }
        ExprKind::Template(parts)
    }
}

/// Adjacent literals as one.
pub(super) fn join_texts(parts: Vec<Expr>) -> ExprKind {
    let all = parts.iter().map(|part| match &part.kind {
        ExprKind::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    match all.collect::<Option<Vec<_>>>() {
        Some(texts) => ExprKind::Text(texts.concat().into()),
        None => ExprKind::Template(parts),
    }
}

/// What is made of a value. Of `[*a.b]`, `f(a(), *b.c())` and `[*a[0]]` the grammar makes `(*a).b` and
/// so on: the star is put back in front of all.
fn below_star(value: Expr, whole: Node<'_>, make: impl FnOnce(Box<Expr>) -> ExprKind) -> ExprKind {
    match value.kind {
        ExprKind::Spread(inner) => {
            let span = Span::new(inner.span.start, whole.end_byte());
            ExprKind::Spread(Box::new(Expr::new(span, make(inner))))
        }
        kind => make(Box::new(Expr::new(value.span, kind))),
    }
}
