//! Expressions of JavaScript.

use std::rc::Rc;

use tree_sitter::Node;

use super::super::escapes;
use super::super::ir::{Arg, Call, Expr, ExprKind, Op, Stmt};
use super::super::lowering::{Lower, nothing, operator, statements_as_expression};
use super::super::tree::{children, field, span};
use super::Lowering;
use crate::result::Span;

impl Lowering<'_> {
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of node")]
    pub(super) fn lowered(&mut self, node: Node<'_>) -> ExprKind {
        match node.kind() {
            "identifier" | "this" | "shorthand_property_identifier" => {
                ExprKind::Name(self.text(node))
            }
            "import" => ExprKind::Name("import".into()),
            "string" => {
                let quoted = self.source.of(node);
                let inner = quoted
                    .get(1..quoted.len().saturating_sub(1))
                    .unwrap_or_default();
                ExprKind::Text(escapes::javascript(inner).into())
            }
            "template_string" => self.template(node),
            "number" => escapes::integer(self.source.of(node)).map_or_else(nothing, ExprKind::Int),
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "member_expression" => {
                match (self.boxed(field(node, "object")), field(node, "property")) {
                    (Some(object), Some(property)) => ExprKind::Attr(object, self.text(property)),
                    _ => nothing(),
                }
            }
            "subscript_expression" => match (
                self.boxed(field(node, "object")),
                self.boxed(field(node, "index")),
            ) {
                (Some(object), Some(index)) => ExprKind::Index(object, index),
                _ => nothing(),
            },
            "call_expression" => self.call(node, field(node, "function"), false),
            "new_expression" => self.call(node, field(node, "constructor"), true),
            "binary_expression" => self.binary(node),
            "unary_expression" => {
                let op = field(node, "operator").map_or("", |op| self.source.of(op));
                match (self.boxed(field(node, "argument")), op) {
                    (Some(argument), "-") => ExprKind::Negate(argument),
                    (Some(argument), _) => {
                        ExprKind::Many(vec![*argument, Expr::new(span(node), nothing())])
                    }
                    (None, _) => nothing(),
                }
            }
            "ternary_expression" => {
                let parts = [
                    field(node, "consequence"),
                    field(node, "alternative"),
                    field(node, "condition"),
                ];
                ExprKind::Either(
                    parts
                        .into_iter()
                        .flatten()
                        .map(|part| self.expr(part))
                        .collect(),
                )
            }
            "assignment_expression" => {
                match (field(node, "left"), self.boxed(field(node, "right"))) {
                    (Some(left), Some(value)) => {
                        ExprKind::Assign(Box::new(self.target(left)), value)
                    }
                    _ => nothing(),
                }
            }
            "augmented_assignment_expression" => {
                let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
                    return nothing();
                };
                let op = field(node, "operator").map_or("", |op| self.source.of(op));
                let op = operator(op.trim_end_matches('='));
                let old = self.boxed(Some(left));
                let right = self.boxed(Some(right));
                match (old, right) {
                    (Some(old), Some(right)) => {
                        let value = Expr::new(
                            span(node),
                            if op == Op::Add {
                                ExprKind::Sum(vec![*old, *right])
                            } else {
                                ExprKind::Binary(op, old, right)
                            },
                        );
                        ExprKind::Assign(Box::new(self.target(left)), Box::new(value))
                    }
                    _ => nothing(),
                }
            }
            "sequence_expression" => {
                let mut parts = self.all(node);
                // `(0, eval)(…)`: the last one is the value.
                match parts.pop() {
                    Some(last) => {
                        parts.insert(0, last);
                        ExprKind::Either(parts)
                    }
                    None => nothing(),
                }
            }
            "parenthesized_expression"
            | "await_expression"
            | "non_null_expression"
            | "as_expression"
            | "satisfies_expression"
            | "type_assertion"
            | "instantiation_expression" => {
                let inner = children(node).into_iter().find(|child| {
                    !child.kind().ends_with("type") && !child.kind().starts_with("type_")
                });
                inner.map_or_else(nothing, |inner| self.expr_kind_of(inner))
            }
            "array" => ExprKind::List(self.all(node)),
            "object" => self.object(node),
            "arrow_function" | "function_expression" | "generator_function" => {
                let function = self.function(node);
                ExprKind::Function(Rc::new(function))
            }
            "class" => {
                let class = self.class(node);
                statements_as_expression(vec![Stmt::Class(class)])
            }
            "spread_element" => {
                let inner = children(node).into_iter().next();
                self.boxed(inner).map_or_else(nothing, ExprKind::Spread)
            }
            "comment" => {
                self.comment(node);
                nothing()
            }
            // A text that is looked for, not one that is anything.
            "regex" => {
                let pattern = ExprKind::Text(self.text(node));
                ExprKind::Many(vec![
                    Expr::new(span(node), pattern),
                    Expr::new(span(node), nothing()),
                ])
            }
            "null"
            | "undefined"
            | "super"
            | "jsx_text"
            | "type_arguments"
            | "property_identifier" => nothing(),
            "lexical_declaration"
            | "variable_declaration"
            | "function_declaration"
            | "expression_statement"
            | "statement_block"
            | "if_statement"
            | "for_statement"
            | "for_in_statement"
            | "while_statement"
            | "try_statement"
            | "return_statement"
            | "import_statement"
            | "export_statement"
            | "class_declaration" => {
                let mut out = Vec::new();
                self.statement(node, &mut out);
                statements_as_expression(out)
            }
            "yield_expression" => ExprKind::Yield(self.all(node)),
            _ => ExprKind::Many(self.all(node)),
        }
    }

    fn expr_kind_of(&mut self, node: Node<'_>) -> ExprKind {
        self.expr(node).kind
    }

    fn call(&mut self, node: Node<'_>, callee: Option<Node<'_>>, constructs: bool) -> ExprKind {
        let Some(callee) = callee else {
            return nothing();
        };
        let callee = self.expr(callee);
        let args = match field(node, "arguments") {
            // A tagged template: f`…`
            Some(template) if template.kind() == "template_string" => vec![Arg {
                name: None,
                value: self.expr(template),
            }],
            Some(list) => children(list)
                .into_iter()
                .map(|arg| Arg {
                    name: None,
                    value: self.expr(arg),
                })
                .collect(),
            None => Vec::new(),
        };
        ExprKind::Call(Box::new(Call {
            callee,
            args,
            constructs,
        }))
    }

    fn binary(&mut self, node: Node<'_>) -> ExprKind {
        match self.operator_of(node) {
            "+" => ExprKind::Sum(self.chain(node)),
            "||" | "&&" | "??" => ExprKind::Either(self.chain(node)),
            _ => self.plain_binary(node),
        }
    }

    fn object(&mut self, node: Node<'_>) -> ExprKind {
        let mut pairs = Vec::new();
        for child in children(node) {
            match child.kind() {
                "pair" => {
                    if let (Some(key), Some(value)) = (field(child, "key"), field(child, "value")) {
                        let name = match key.kind() {
                            "computed_property_name" | "string" => self.expr(key),
                            _ => Expr::new(span(key), ExprKind::Text(self.text(key))),
                        };
                        pairs.push((name, self.expr(value)));
                    }
                }
                "method_definition" => {
                    let function = self.function(child);
                    let name = function.name.clone().unwrap_or_else(|| "".into());
                    pairs.push((
                        Expr::new(span(child), ExprKind::Text(name)),
                        Expr::new(span(child), ExprKind::Function(Rc::new(function))),
                    ));
                }
                "shorthand_property_identifier" => {
                    let name = Expr::new(span(child), ExprKind::Text(self.text(child)));
                    pairs.push((name, self.expr(child)));
                }
                _ => {
                    let value = self.expr(child);
                    pairs.push((Expr::new(span(child), nothing()), value));
                }
            }
        }
        ExprKind::Dict(pairs)
    }

    fn template(&mut self, node: Node<'_>) -> ExprKind {
        let mut parts = Vec::new();
        let mut at = node.start_byte() + 1;
        let text_between = |from: usize, to: usize, this: &Self| {
            let raw = this.source.text.get(from..to).unwrap_or_default();
            (!raw.is_empty()).then(|| {
                Expr::new(
                    Span::new(from, to),
                    ExprKind::Text(escapes::javascript(raw).into()),
                )
            })
        };
        for child in children(node) {
            if child.kind() == "template_substitution" {
                parts.extend(text_between(at, child.start_byte(), self));
                let inner = children(child).into_iter().next();
                parts.extend(inner.map(|inner| self.expr(inner)));
                at = child.end_byte();
            }
        }
        parts.extend(text_between(at, node.end_byte().saturating_sub(1), self));
        match parts.as_slice() {
            [] => ExprKind::Text("".into()),
            [
                Expr {
                    kind: ExprKind::Text(text),
                    ..
                },
            ] => ExprKind::Text(text.clone()),
            _ => ExprKind::Template(parts),
        }
    }
}
