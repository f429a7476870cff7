//! Python's syntax tree, lowered.

mod expr;
mod quick;

use std::rc::Rc;

use tree_sitter::Node;

use super::ir::{Arg, Call, Class, Expr, ExprKind, Function, Param, Program, Stmt, Target, Text};
use super::lowering::{Lower, operator, program};
use super::tree::{Source, children, field, span};
use crate::result::Span;

/// Reads a Python text; `None` if parsing was given up.
pub(crate) fn lower(text: &str) -> Option<Program> {
    quick::read(text).or_else(|| by_grammar(text))
}

/// Reads any text by the grammar.
fn by_grammar(text: &str) -> Option<Program> {
    program::<Lowering<'_>>(&tree_sitter_python::LANGUAGE.into(), text)
}

/// An item or a slice as what is assigned to.
fn index_target(kind: ExprKind) -> Option<Target> {
    match kind {
        ExprKind::Index(base, index) => Some(Target::Index(*base, *index)),
        ExprKind::Slice(base, parts) => {
            let parts = parts.into_iter().flatten().map(|part| *part).collect();
            let index = Expr::new(base.span, ExprKind::Many(parts));
            Some(Target::Index(*base, index))
        }
        _ => None,
    }
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
            "comment" => self.comment(node),
            "expression_statement" => {
                for child in children(node) {
                    self.expression_statement(child, out);
                }
            }
            "import_statement" => self.import(node, out),
            "import_from_statement" => self.import_from(node, out),
            "function_definition" => {
                let function = self.function(node, Vec::new());
                out.push(Stmt::Function(Rc::new(function)));
            }
            "class_definition" => {
                let class = self.class(node, Vec::new());
                out.push(Stmt::Class(class));
            }
            "decorated_definition" => self.decorated(node, out),
            "return_statement" => {
                let value = children(node).first().map(|value| self.expr(*value));
                out.push(Stmt::Return(value));
            }
            "for_statement" => {
                let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
                    return;
                };
                let target = self.target(left);
                let iter = self.expr(right);
                let body = field(node, "body")
                    .map(|body| self.block(body))
                    .unwrap_or_default();
                out.push(Stmt::For { target, iter, body });
                if let Some(other) = field(node, "alternative") {
                    self.nested(other, out);
                }
            }
            "with_statement" => {
                for clause in children(node) {
                    if clause.kind() == "with_clause" {
                        for item in children(clause) {
                            if let Some(value) = field(item, "value") {
                                self.with_item(value, out);
                            }
                        }
                    }
                }
                if let Some(body) = field(node, "body") {
                    let body = self.block(body);
                    out.push(Stmt::Block(body));
                }
            }
            "exec_statement" => {
                let args = children(node)
                    .into_iter()
                    .map(|child| Arg {
                        name: None,
                        value: self.expr(child),
                    })
                    .collect();
                let callee = Expr::new(span(node), ExprKind::Name("exec".into()));
                let call = Call {
                    callee,
                    args,
                    constructs: false,
                };
                out.push(Stmt::Expr(Expr::new(
                    span(node),
                    ExprKind::Call(Box::new(call)),
                )));
            }
            "line_continuation"
            | "global_statement"
            | "nonlocal_statement"
            | "pass_statement"
            | "continue_statement"
            | "future_import_statement" => {}
            "break_statement" => out.push(Stmt::Break),
            "raise_statement" => {
                let raised = self.expr(node);
                out.push(Stmt::Expr(raised));
                out.push(Stmt::Break);
            }
            "while_statement" => {
                let condition =
                    field(node, "condition").map_or("", |condition| self.source.of(condition));
                let forever = matches!(condition, "True" | "1");
                let mut inner = Vec::new();
                self.nested(node, &mut inner);
                out.push(if forever {
                    Stmt::Forever(inner)
                } else {
                    Stmt::Block(inner)
                });
            }
            "if_statement"
            | "try_statement"
            | "match_statement"
            | "elif_clause"
            | "else_clause"
            | "except_clause"
            | "except_group_clause"
            | "finally_clause"
            | "case_clause"
            | "block"
            | "ERROR" => {
                self.nested(node, out);
            }
            _ => {
                if node.kind() == "type_alias_statement"
                    && let Some(statement) = self.class_member(node)
                {
                    return out.push(statement);
                }
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
            "identifier" => Target::Name(self.text(node)),
            "attribute" => self.attr_target(field(node, "object"), field(node, "attribute")),
            "subscript" => {
                let kind = self.subscript(node);
                index_target(kind).unwrap_or(Target::Tuple(Vec::new()))
            }
            // `(x) = …`: brackets alone make no tuple.
            "tuple_pattern" if bracketed(node).is_some() => match bracketed(node) {
                Some(inner) => self.target(inner),
                None => Target::Tuple(Vec::new()),
            },
            "pattern_list"
            | "tuple_pattern"
            | "list_pattern"
            | "expression_list"
            | "tuple"
            | "list"
            | "parenthesized_expression" => self.tuple_target(node),
            "list_splat_pattern" | "as_pattern_target" => {
                let inner = children(node).into_iter().next();
                inner.map_or_else(|| Target::Tuple(Vec::new()), |inner| self.target(inner))
            }
            _ => Target::Tuple(Vec::new()),
        }
    }
}

/// The one thing between brackets, if no comma follows it.
fn bracketed(node: Node<'_>) -> Option<Node<'_>> {
    let all: Vec<Node<'_>> = (0..node.child_count())
        .filter_map(|at| node.child(at))
        .filter(|child| child.kind() != "comment")
        .collect();
    match all.as_slice() {
        [_, inner, _] if inner.is_named() => Some(*inner),
        _ => None,
    }
}

impl Lowering<'_> {
    /// Conditions as expressions, bodies as blocks.
    fn nested(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        if !self.source.descend(node) {
            return;
        }
        let mut inner = Vec::new();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "comment" => self.comment(child),
                "line_continuation" => {}
                "block" => {
                    let body = self.block(child);
                    inner.push(Stmt::Block(body));
                }
                _ => self.statement(child, &mut inner),
            }
        }
        self.source.ascend();
        out.push(Stmt::Block(inner));
    }

    fn with_item(&mut self, value: Node<'_>, out: &mut Vec<Stmt>) {
        if value.kind() == "as_pattern" {
            let parts = children(value);
            let (Some(context), Some(alias)) = (parts.first(), field(value, "alias")) else {
                return;
            };
            let context = self.expr(*context);
            let target = children(alias).first().map(|target| self.target(*target));
            if let Some(target) = target {
                return out.push(Stmt::Assign {
                    target,
                    value: context,
                    op: None,
                });
            }
            return out.push(Stmt::Expr(context));
        }
        // `with a if b else c as d`: the grammar takes `c as d` for one.
        if value.kind() == "conditional_expression"
            && let [first, condition, last] = children(value).as_slice()
            && let (Some(other), Some(alias)) = (last.named_child(0), field(*last, "alias"))
        {
            let parts = [*first, other, *condition].map(|part| self.expr(part));
            let whole = Span::new(value.start_byte(), other.end_byte());
            let target = children(alias).first().map(|target| self.target(*target));
            return out.push(Stmt::Assign {
                target: target.unwrap_or(Target::Tuple(Vec::new())),
                value: Expr::new(whole, ExprKind::Either(parts.into())),
                op: None,
            });
        }
        let value = self.expr(value);
        out.push(Stmt::Expr(value));
    }

    /// `type(x).y = z`, which the grammar takes for a declaration of a type.
    fn class_member(&mut self, node: Node<'_>) -> Option<Stmt> {
        let left = field(node, "left")?.named_child(0)?;
        let right = field(node, "right")?.named_child(0)?;
        let name = self.text(field(left, "attribute").filter(|_| left.kind() == "attribute")?);
        let base = self.of_class(field(left, "object")?, node.start_byte(), 0)?;
        let value = self.expr(right);
        Some(Stmt::Assign {
            target: Target::Attr(base, name),
            value,
            op: None,
        })
    }

    fn of_class(&mut self, node: Node<'_>, start: usize, depth: usize) -> Option<Expr> {
        let whole = Span::new(start, node.end_byte());
        let kind = match node.kind() {
            "attribute" if depth < 16 => {
                let name = self.text(field(node, "attribute")?);
                let base = self.of_class(field(node, "object")?, start, depth + 1)?;
                ExprKind::Attr(Box::new(base), name)
            }
            "parenthesized_expression" => {
                let value = self.expr(node.named_child(0)?);
                let callee = Span::new(start, start + "type".len());
                ExprKind::Call(Box::new(Call {
                    callee: Expr::new(callee, ExprKind::Name("type".into())),
                    args: vec![Arg { name: None, value }],
                    constructs: false,
                }))
            }
            _ => return None,
        };
        Some(Expr::new(whole, kind))
    }

    fn expression_statement(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        match node.kind() {
            "assignment" => {
                // `a = b = value`: from the right.
                let mut targets = Vec::new();
                let mut node = node;
                loop {
                    targets.extend(field(node, "left"));
                    match field(node, "right") {
                        Some(right) if right.kind() == "assignment" => node = right,
                        Some(right) => {
                            let value = self.expr(right);
                            let mut targets = targets.into_iter().rev();
                            let Some(first) = targets.next() else {
                                return;
                            };
                            let first_name =
                                (first.kind() == "identifier").then(|| self.text(first));
                            let target = self.target(first);
                            out.push(Stmt::Assign {
                                target,
                                value,
                                op: None,
                            });
                            for other in targets {
                                let target = self.target(other);
                                let value = match &first_name {
                                    Some(name) => {
                                        Expr::new(span(first), ExprKind::Name(name.clone()))
                                    }
                                    None => Expr::new(span(first), ExprKind::Many(Vec::new())),
                                };
                                out.push(Stmt::Assign {
                                    target,
                                    value,
                                    op: None,
                                });
                            }
                            return;
                        }
                        None => return,
                    }
                }
            }
            "augmented_assignment" => {
                let (Some(left), Some(right)) = (field(node, "left"), field(node, "right")) else {
                    return;
                };
                let op = field(node, "operator").map_or("", |op| self.source.of(op));
                let op = operator(op.trim_end_matches('='));
                let target = self.target(left);
                let value = self.expr(right);
                out.push(Stmt::Assign {
                    target,
                    value,
                    op: Some(op),
                });
            }
            _ => {
                let value = self.expr(node);
                out.push(Stmt::Expr(value));
            }
        }
    }

    fn import(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        for child in children(node) {
            if child.kind() == "aliased_import" {
                let (Some(name), Some(alias)) = (field(child, "name"), field(child, "alias"))
                else {
                    continue;
                };
                out.push(Stmt::Import {
                    name: self.text(alias),
                    path: self.text(name),
                    span: span(child),
                });
            } else {
                // `import a.b` binds `a`; the whole path is still what is imported.
                let path = self.text(child);
                let root: Text = path.split('.').next().unwrap_or(&path).into();
                if root != path {
                    out.push(Stmt::Import {
                        name: path.clone(),
                        path,
                        span: span(child),
                    });
                }
                out.push(Stmt::Import {
                    name: root.clone(),
                    path: root,
                    span: span(child),
                });
            }
        }
    }

    fn import_from(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let Some(module) = field(node, "module_name") else {
            return;
        };
        let path = self.text(module);
        let mut cursor = node.walk();
        let names: Vec<Node<'_>> = node.children_by_field_name("name", &mut cursor).collect();
        if names.is_empty() {
            out.push(Stmt::ImportAll {
                path,
                span: span(node),
            });
            return;
        }
        for name in names {
            let (member, alias) = if name.kind() == "aliased_import" {
                let Some((member, alias)) = field(name, "name").zip(field(name, "alias")) else {
                    continue;
                };
                (self.text(member), self.text(alias))
            } else {
                (self.text(name), self.text(name))
            };
            let path = format!("{path}.{member}").into();
            out.push(Stmt::Import {
                name: alias,
                path,
                span: span(name),
            });
        }
    }

    fn decorated(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let mut decorators = Vec::new();
        for child in children(node) {
            if child.kind() == "decorator" {
                decorators.extend(
                    children(child)
                        .first()
                        .map(|decorator| self.expr(*decorator)),
                );
            }
        }
        match field(node, "definition") {
            Some(definition) if definition.kind() == "class_definition" => {
                let class = self.class(definition, decorators);
                out.push(Stmt::Class(class));
            }
            Some(definition) => {
                let function = self.function(definition, decorators);
                out.push(Stmt::Function(Rc::new(function)));
            }
            None => {}
        }
    }

    fn class(&mut self, node: Node<'_>, decorators: Vec<Expr>) -> Class {
        let name = field(node, "name").map_or_else(|| "".into(), |name| self.text(name));
        let bases = field(node, "superclasses")
            .map(children)
            .unwrap_or_default();
        let bases = bases
            .into_iter()
            .map(|base| self.argument(base).value)
            .collect();
        let body = field(node, "body")
            .map(|body| self.block(body))
            .unwrap_or_default();
        Class {
            name,
            bases,
            decorators,
            body,
        }
    }

    fn function(&mut self, node: Node<'_>, decorators: Vec<Expr>) -> Function {
        let name = field(node, "name").map(|name| self.text(name));
        let params = field(node, "parameters")
            .map(|params| self.params(params))
            .unwrap_or_default();
        let body = match field(node, "body") {
            Some(body) if body.kind() == "block" => self.block(body),
            Some(body) => {
                let value = self.expr(body);
                vec![Stmt::Return(Some(value))]
            }
            None => Vec::new(),
        };
        Function {
            name,
            params,
            body,
            decorators,
        }
    }

    fn params(&mut self, node: Node<'_>) -> Vec<Param> {
        let mut out = Vec::new();
        for child in children(node) {
            let (name, value) = match child.kind() {
                "identifier" => (Some(child), None),
                "default_parameter" | "typed_default_parameter" => {
                    (field(child, "name"), field(child, "value"))
                }
                "typed_parameter" | "list_splat_pattern" | "dictionary_splat_pattern" => {
                    (children(child).into_iter().next(), None)
                }
                _ => (None, None),
            };
            let rest = child.kind() == "list_splat_pattern";
            if let Some(name) = name {
                let default = value.map(|value| self.expr(value));
                out.push(Param {
                    name: self.text(name),
                    default,
                    rest,
                });
            }
        }
        out
    }
}
