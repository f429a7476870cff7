//! Expressions of Go.

use std::rc::Rc;

use tree_sitter::Node;

use super::super::escapes;
use super::super::ir::{Arg, Call, Expr, ExprKind, Op, Text};
use super::super::lowering::{Lower, nothing, statements_as_expression};
use super::super::tree::{children, field, span};
use super::Lowering;
use crate::result::Span;

impl Lowering<'_> {
    #[expect(clippy::too_many_lines, reason = "one arm for each kind of node")]
    pub(super) fn lowered(&mut self, node: Node<'_>) -> ExprKind {
        match node.kind() {
            "identifier" | "field_identifier" | "type_identifier" | "package_identifier" => {
                ExprKind::Name(self.text(node))
            }
            "interpreted_string_literal" => {
                let quoted = self.source.of(node);
                let inner = quoted
                    .get(1..quoted.len().saturating_sub(1))
                    .unwrap_or_default();
                ExprKind::Text(escapes::go(inner).into())
            }
            "raw_string_literal" => ExprKind::Text(self.source.of(node).trim_matches('`').into()),
            "rune_literal" => {
                let inner = self.source.of(node).trim_matches('\'');
                let c = escapes::go(inner).chars().next();
                c.map_or_else(nothing, |c| ExprKind::Int(i64::from(u32::from(c))))
            }
            "int_literal" => {
                let digits = self.source.of(node);
                let octal = digits.len() > 1
                    && digits.starts_with('0')
                    && digits.bytes().all(|b| b.is_ascii_digit());
                let value = if octal {
                    i64::from_str_radix(digits, 8).ok()
                } else {
                    escapes::integer(digits)
                };
                value.map_or_else(nothing, ExprKind::Int)
            }
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "selector_expression" => {
                match (self.boxed(field(node, "operand")), field(node, "field")) {
                    (Some(operand), Some(name)) => ExprKind::Attr(operand, self.text(name)),
                    _ => nothing(),
                }
            }
            "qualified_type" => self.qualified(node).kind,
            "index_expression" => match (
                self.boxed(field(node, "operand")),
                self.boxed(field(node, "index")),
            ) {
                (Some(operand), Some(index)) => ExprKind::Index(operand, index),
                _ => nothing(),
            },
            "slice_expression" => match self.boxed(field(node, "operand")) {
                Some(operand) => {
                    let parts = [
                        self.boxed(field(node, "start")),
                        self.boxed(field(node, "end")),
                        None,
                    ];
                    ExprKind::Slice(operand, parts)
                }
                None => nothing(),
            },
            "call_expression" => {
                let Some(function) = field(node, "function") else {
                    return nothing();
                };
                let callee = self.expr(function);
                let args = field(node, "arguments").map(children).unwrap_or_default();
                let args = args
                    .into_iter()
                    .map(|arg| Arg {
                        name: None,
                        value: self.expr(arg),
                    })
                    .collect();
                ExprKind::Call(Box::new(Call {
                    callee,
                    args,
                    constructs: false,
                }))
            }
            "type_conversion_expression" => self
                .boxed(field(node, "operand"))
                .map_or_else(nothing, |operand| operand.kind),
            "type_assertion_expression" | "parenthesized_expression" => {
                let inner = field(node, "operand").or_else(|| children(node).into_iter().next());
                self.boxed(inner).map_or_else(nothing, |inner| inner.kind)
            }
            "variadic_argument" => {
                let inner = children(node).into_iter().next();
                self.boxed(inner).map_or_else(nothing, ExprKind::Spread)
            }
            "unary_expression" => {
                let op = field(node, "operator").map_or("", |op| self.source.of(op));
                match (self.boxed(field(node, "operand")), op) {
                    (Some(operand), "-") => ExprKind::Negate(operand),
                    (Some(operand), "<-") => exchange(vec![*operand]),
                    (Some(operand), _) => operand.kind,
                    (None, _) => nothing(),
                }
            }
            "binary_expression" => self.binary(node),
            "composite_literal" => self.composite(node),
            "literal_value" => self.literal_value(node),
            "literal_element" => {
                let inner = children(node).into_iter().next();
                self.boxed(inner).map_or_else(nothing, |inner| inner.kind)
            }
            "func_literal" => {
                let function = self.function(node);
                ExprKind::Function(Rc::new(function))
            }
            "nil" | "float_literal" | "imaginary_literal" | "iota" | "slice_type" | "map_type"
            | "pointer_type" | "array_type" | "struct_type" | "interface_type" | "channel_type"
            | "function_type" | "comment" => nothing(),
            "short_var_declaration"
            | "assignment_statement"
            | "if_statement"
            | "for_statement"
            | "return_statement"
            | "block"
            | "function_declaration"
            | "var_declaration"
            | "statement_list" => {
                let mut out = Vec::new();
                self.statement(node, &mut out);
                statements_as_expression(out)
            }
            _ => ExprKind::Many(self.all(node)),
        }
    }

    pub(super) fn qualified(&mut self, node: Node<'_>) -> Expr {
        match (field(node, "package"), field(node, "name")) {
            (Some(package), Some(name)) => {
                let package = Expr::new(span(package), ExprKind::Name(self.text(package)));
                Expr::new(
                    span(node),
                    ExprKind::Attr(Box::new(package), self.text(name)),
                )
            }
            _ => Expr::new(span(node), nothing()),
        }
    }

    fn binary(&mut self, node: Node<'_>) -> ExprKind {
        match self.operator_of(node) {
            "+" => ExprKind::Sum(self.chain(node)),
            // `os.O_CREATE|os.O_WRONLY|…`, from the left.
            "|" => {
                let or = |left: Expr, right: Expr| {
                    let at = Span::new(left.span.start, right.span.end);
                    let kind = ExprKind::Binary(Op::Or, Box::new(left), Box::new(right));
                    Expr::new(at, kind)
                };
                let whole = self.chain(node).into_iter().reduce(or);
                whole.map_or_else(nothing, |whole| whole.kind)
            }
            _ => self.plain_binary(node),
        }
    }

    /// `[]string{…}` is a list; `exec.Cmd{…}` makes an object with named parts.
    fn composite(&mut self, node: Node<'_>) -> ExprKind {
        let body = field(node, "body");
        match field(node, "type") {
            Some(kind) if kind.kind() == "qualified_type" => {
                let callee = self.qualified(kind);
                let mut args = Vec::new();
                for element in body.map(children).unwrap_or_default() {
                    if element.kind() == "keyed_element" {
                        if let Some((key, value)) = self.keyed(element) {
                            let name: Text = match key.kind {
                                ExprKind::Name(name) => name,
                                _ => "".into(),
                            };
                            args.push(Arg {
                                name: Some(name),
                                value,
                            });
                        }
                    } else {
                        args.push(Arg {
                            name: None,
                            value: self.expr(element),
                        });
                    }
                }
                ExprKind::Call(Box::new(Call {
                    callee,
                    args,
                    constructs: true,
                }))
            }
            _ => body.map_or_else(nothing, |body| self.literal_value(body)),
        }
    }

    fn keyed(&mut self, node: Node<'_>) -> Option<(Expr, Expr)> {
        let parts = children(node);
        let key = field(node, "key").or_else(|| parts.first().copied())?;
        let value = field(node, "value").or_else(|| parts.get(1).copied())?;
        Some((self.expr(key), self.expr(value)))
    }

    fn literal_value(&mut self, node: Node<'_>) -> ExprKind {
        let elements = children(node);
        if elements
            .iter()
            .any(|element| element.kind() == "keyed_element")
        {
            let pairs = elements
                .into_iter()
                .filter_map(|element| self.keyed(element))
                .collect();
            return ExprKind::Dict(pairs);
        }
        ExprKind::List(
            elements
                .into_iter()
                .map(|element| self.expr(element))
                .collect(),
        )
    }
}

/// `<-channel`, `channel <- x`: waits for another, as a call of the sign itself.
pub(super) fn exchange(parts: Vec<Expr>) -> ExprKind {
    let span = parts.first().map(|part| part.span).unwrap_or_default();
    let args = parts.into_iter().map(|value| Arg { name: None, value });
    ExprKind::Call(Box::new(Call {
        callee: Expr::new(span, ExprKind::Name("<-".into())),
        args: args.collect(),
        constructs: false,
    }))
}
