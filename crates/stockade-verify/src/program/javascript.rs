//! JavaScript's and TypeScript's syntax trees, lowered.

mod expr;

use std::rc::Rc;

use tree_sitter::Node;

use super::api::COUNTED;
use super::ir::{Call, Class, Expr, ExprKind, Function, Param, Program, Stmt, Target, Text};
use super::lowering::{Lower, program};
use super::tree::{Source, children, field, span};

/// Reads a JavaScript text; `None` if parsing was given up.
pub(crate) fn lower(text: &str) -> Option<Program> {
    lower_with(&tree_sitter_javascript::LANGUAGE.into(), text)
}

/// Reads a TypeScript text, with JSX if that is what it turns out to be.
pub(crate) fn lower_typescript(text: &str) -> Option<Program> {
    let plain = lower_with(&tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(), text)?;
    if plain.broken.is_none() {
        return Some(plain);
    }
    match lower_with(&tree_sitter_typescript::LANGUAGE_TSX.into(), text) {
        Some(jsx) if jsx.broken.is_none() => Some(jsx),
        _ => Some(plain),
    }
}

fn lower_with(language: &tree_sitter::Language, text: &str) -> Option<Program> {
    program::<Lowering<'_>>(language, text)
}

struct Lowering<'t> {
    source: Source<'t>,
}

impl<'t> Lower<'t> for Lowering<'t> {
    fn new(source: Source<'t>) -> Self {
        Self { source }
    }

    fn source(&self) -> &Source<'t> {
        &self.source
    }

    fn source_mut(&mut self) -> &mut Source<'t> {
        &mut self.source
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of node")]
    fn statement(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        match node.kind() {
            "comment" | "html_comment" | "hash_bang_line" => self.comment(node),
            "import_statement" => self.import(node, out),
            "export_statement" => {
                let inner = field(node, "declaration").or_else(|| field(node, "value"));
                if let Some(inner) = inner {
                    self.statement(inner, out);
                } else if let Some(source) = field(node, "source") {
                    let path = self.module(source);
                    out.push(Stmt::Import {
                        name: path.clone(),
                        path,
                        span: span(node),
                    });
                }
            }
            "lexical_declaration" | "variable_declaration" | "using_declaration" => {
                for child in children(node) {
                    let (Some(name), Some(value)) = (field(child, "name"), field(child, "value"))
                    else {
                        continue;
                    };
                    let value = self.expr(value);
                    let target = self.target(name);
                    out.push(Stmt::Assign {
                        target,
                        value,
                        op: None,
                    });
                }
            }
            "function_declaration" | "generator_function_declaration" => {
                let function = self.function(node);
                out.push(Stmt::Function(Rc::new(function)));
            }
            "class_declaration" | "abstract_class_declaration" => {
                let class = self.class(node);
                out.push(Stmt::Class(class));
            }
            "return_statement" => {
                let value = children(node).first().map(|value| self.expr(*value));
                out.push(Stmt::Return(value));
            }
            "expression_statement" => {
                for child in children(node) {
                    let value = self.expr(child);
                    out.push(Stmt::Expr(value));
                }
            }
            "for_in_statement" => {
                let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
                    return;
                };
                let target = self.target(left);
                let iter = self.expr(right);
                let mut body = Vec::new();
                if let Some(inner) = field(node, "body") {
                    self.statement(inner, &mut body);
                }
                out.push(Stmt::For { target, iter, body });
            }
            "for_statement" if self.counter(node).is_some() => self.counting(node, out),
            "while_statement" | "for_statement" => {
                let condition = field(node, "condition").map_or("", |condition| {
                    self.source.of(condition).trim_matches(['(', ')', ';', ' '])
                });
                let forever = matches!(condition, "true" | "1" | "!![]" | "!0")
                    || node.kind() == "for_statement" && condition.is_empty();
                let mut inner = Vec::new();
                self.nested(node, &mut inner);
                out.push(if forever {
                    Stmt::Forever(inner)
                } else {
                    Stmt::Block(inner)
                });
            }
            "if_statement"
            | "do_statement"
            | "try_statement"
            | "switch_statement"
            | "switch_body"
            | "switch_case"
            | "switch_default"
            | "catch_clause"
            | "finally_clause"
            | "else_clause"
            | "labeled_statement"
            | "statement_block"
            | "with_statement"
            | "ERROR"
            | "internal_module"
            | "module"
            | "ambient_declaration"
            | "class_static_block" => self.nested(node, out),
            "break_statement" => out.push(Stmt::Break),
            "throw_statement" => {
                self.nested(node, out);
                out.push(Stmt::Break);
            }
            "empty_statement"
            | "continue_statement"
            | "debugger_statement"
            | "interface_declaration"
            | "type_alias_declaration"
            | "statement_identifier"
            | "function_signature"
            | "type_annotation"
            | "type_arguments"
            | "type_parameters"
            | "enum_declaration" => {}
            _ => {
                let value = self.expr(node);
                out.push(Stmt::Expr(value));
            }
        }
    }

    fn expr_kind(&mut self, node: Node<'_>) -> ExprKind {
        self.lowered(node)
    }

    fn target(&mut self, node: Node<'_>) -> Target {
        match node.kind() {
            "identifier" | "shorthand_property_identifier_pattern" => Target::Name(self.text(node)),
            "member_expression" => self.attr_target(field(node, "object"), field(node, "property")),
            "subscript_expression" => {
                self.index_target(field(node, "object"), field(node, "index"))
            }
            "object_pattern" => {
                if !self.source.descend(node) {
                    return Target::Tuple(Vec::new());
                }
                let mut members = Vec::new();
                for child in children(node) {
                    match child.kind() {
                        "shorthand_property_identifier_pattern" => {
                            members.push((self.text(child), Target::Name(self.text(child))));
                        }
                        "pair_pattern" => {
                            if let (Some(key), Some(value)) =
                                (field(child, "key"), field(child, "value"))
                            {
                                let key = joined_key(self.source.of(key));
                                let target = self.target(value);
                                members.push((key, target));
                            }
                        }
                        "object_assignment_pattern" => {
                            if let Some(left) = field(child, "left") {
                                members.push((self.text(left), Target::Name(self.text(left))));
                            }
                        }
                        _ => {}
                    }
                }
                self.source.ascend();
                Target::Object(members)
            }
            "array_pattern" => self.tuple_target(node),
            "assignment_pattern" => field(node, "left")
                .map_or_else(|| Target::Tuple(Vec::new()), |left| self.target(left)),
            "lexical_declaration"
            | "variable_declaration"
            | "variable_declarator"
            | "parenthesized_expression"
            | "non_null_expression" => {
                let inner = field(node, "name").or_else(|| children(node).into_iter().next());
                inner.map_or_else(|| Target::Tuple(Vec::new()), |inner| self.target(inner))
            }
            _ => Target::Tuple(Vec::new()),
        }
    }
}

impl Lowering<'_> {
    /// The variable that `for (…; …; i++)` counts with.
    fn counter(&mut self, node: Node<'_>) -> Option<Text> {
        let update = field(node, "increment").filter(|node| node.kind() == "update_expression")?;
        let name = field(update, "argument").filter(|node| node.kind() == "identifier")?;
        field(node, "condition").filter(|condition| condition.kind() != "empty_statement")?;
        Some(self.text(name))
    }

    /// Such a loop goes through one number after the other.
    fn counting(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let Some(name) = self.counter(node) else {
            return;
        };
        if let Some(initial) = field(node, "initializer") {
            self.statement(initial, out);
        }
        let mut body = Vec::new();
        if let Some(condition) = field(node, "condition") {
            self.statement(condition, &mut body);
        }
        if let Some(inner) = field(node, "body") {
            self.statement(inner, &mut body);
        }
        let callee = Expr::new(span(node), ExprKind::Name(COUNTED.into()));
        let call = Call {
            callee,
            args: Vec::new(),
            constructs: false,
        };
        let iter = Expr::new(span(node), ExprKind::Call(Box::new(call)));
        let target = Target::Name(name);
        out.push(Stmt::For { target, iter, body });
    }

    fn nested(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let body = self.block(node);
        out.push(Stmt::Block(body));
    }

    fn module(&self, node: Node<'_>) -> Text {
        let quoted = self.source.of(node);
        let plain = quoted.trim_matches(['"', '\'', '`']);
        let plain = plain.strip_prefix("node:").unwrap_or(plain);
        let plain = plain.strip_suffix("/promises").unwrap_or(plain);
        if matches!(plain, "fs-extra" | "graceful-fs") {
            "fs".into()
        } else {
            plain.into()
        }
    }

    fn import(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let Some(source) = field(node, "source") else {
            return;
        };
        let path = self.module(source);
        let at = span(node);
        let mut stack = children(node);
        let mut bound = false;
        while let Some(child) = stack.pop() {
            match child.kind() {
                "import_clause" | "named_imports" => stack.extend(children(child)),
                "identifier" => {
                    out.push(Stmt::Import {
                        name: self.text(child),
                        path: path.clone(),
                        span: at,
                    });
                    bound = true;
                }
                "namespace_import" => {
                    if let Some(name) = children(child).first() {
                        out.push(Stmt::Import {
                            name: self.text(*name),
                            path: path.clone(),
                            span: at,
                        });
                        bound = true;
                    }
                }
                "import_specifier" => {
                    if let Some(name) = field(child, "name") {
                        let alias = field(child, "alias").unwrap_or(name);
                        let member = self.source.of(name);
                        let full: Text = if member == "default" {
                            path.clone()
                        } else {
                            format!("{path}.{member}").into()
                        };
                        out.push(Stmt::Import {
                            name: self.text(alias),
                            path: full,
                            span: at,
                        });
                        bound = true;
                    }
                }
                _ => {}
            }
        }
        if !bound {
            out.push(Stmt::Import {
                name: path.clone(),
                path,
                span: at,
            });
        }
    }

    fn class(&mut self, node: Node<'_>) -> Class {
        let name = field(node, "name").map_or_else(|| "".into(), |name| self.text(name));
        let mut bases = Vec::new();
        for child in children(node) {
            if child.kind() == "class_heritage" {
                bases.extend(children(child).into_iter().map(|base| self.expr(base)));
            }
        }
        let mut body = Vec::new();
        if let Some(members) = field(node, "body")
            && self.source.descend(members)
        {
            for member in children(members) {
                match member.kind() {
                    "method_definition" => {
                        let function = self.function(member);
                        body.push(Stmt::Function(Rc::new(function)));
                    }
                    "field_definition" | "public_field_definition" => {
                        let name = field(member, "property").or_else(|| field(member, "name"));
                        if let (Some(value), Some(name)) = (field(member, "value"), name) {
                            let value = self.expr(value);
                            let this = Expr::new(span(name), ExprKind::Name("this".into()));
                            body.push(Stmt::Assign {
                                target: Target::Attr(this, self.text(name)),
                                value,
                                op: None,
                            });
                        }
                    }
                    "class_static_block" => self.nested(member, &mut body),
                    _ => {}
                }
            }
            self.source.ascend();
        }
        Class {
            name,
            bases,
            decorators: Vec::new(),
            body,
        }
    }

    fn function(&mut self, node: Node<'_>) -> Function {
        let name = field(node, "name").map(|name| self.text(name));
        let params = match (field(node, "parameters"), field(node, "parameter")) {
            (Some(list), _) => children(list),
            (None, Some(one)) => vec![one],
            (None, None) => Vec::new(),
        };
        let mut body = Vec::new();
        let params = params
            .into_iter()
            .filter_map(|param| self.param(param, &mut body))
            .collect();
        match field(node, "body") {
            Some(inner) if inner.kind() == "statement_block" => body.extend(self.block(inner)),
            Some(inner) => {
                let value = self.expr(inner);
                body.push(Stmt::Return(Some(value)));
            }
            None => {}
        }
        Function {
            name,
            params,
            body,
            decorators: Vec::new(),
        }
    }

    /// A parameter; one that is taken apart is so by the first statements of the body.
    fn param(&mut self, node: Node<'_>, body: &mut Vec<Stmt>) -> Option<Param> {
        let plain = |name| Param {
            name,
            default: None,
            rest: false,
        };
        match node.kind() {
            "identifier" => Some(plain(self.text(node))),
            "assignment_pattern" => {
                let default = field(node, "right").map(|value| self.expr(value));
                let param = self.param(field(node, "left")?, body)?;
                Some(Param { default, ..param })
            }
            "rest_pattern" => {
                let param = self.param(children(node).first().copied()?, body)?;
                Some(Param {
                    rest: true,
                    ..param
                })
            }
            "required_parameter" | "optional_parameter" => {
                self.param(field(node, "pattern")?, body)
            }
            "object_pattern" | "array_pattern" => {
                let name: Text = format!("<{}>", node.start_byte()).into();
                let target = self.target(node);
                let value = Expr::new(span(node), ExprKind::Name(name.clone()));
                body.push(Stmt::Assign {
                    target,
                    value,
                    op: None,
                });
                Some(plain(name))
            }
            "this" | "comment" | "decorator" => None,
            _ => Some(plain("".into())),
        }
    }
}

/// The key of a pattern; `["ex" + "ec"]` is one too.
fn joined_key(key: &str) -> Text {
    let Some(computed) = key.strip_prefix('[').and_then(|key| key.strip_suffix(']')) else {
        return key.trim_matches(['"', '\'']).into();
    };
    let pieces = computed.split('+');
    let plain = pieces.map(|piece| piece.trim().trim_matches(['"', '\'', '`']));
    plain.collect::<String>().into()
}
