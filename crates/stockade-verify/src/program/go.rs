//! Go's syntax tree, lowered.

mod expr;

use std::rc::Rc;

use tree_sitter::Node;

use super::api::go_package_name;
use super::ir::{Arg, Call, Expr, ExprKind, Function, Op, Param, Program, Stmt, Target, Text};
use super::lowering::{Lower, operator, program};
use super::tree::{Source, children, field, span};
use expr::exchange;

/// Reads a Go text; `None` if parsing was given up.
pub(crate) fn lower(text: &str) -> Option<Program> {
    let mut lowered = program::<Lowering<'_>>(&tree_sitter_go::LANGUAGE.into(), text)?;
    lowered.fragment = !text.contains("package ");
    Some(lowered)
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

    fn statement(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        match node.kind() {
            "comment" => {
                self.comment(node);
                if self.source.of(node).starts_with("//go:linkname") {
                    // The compiler obeys this comment: it reaches another package's private names.
                    out.push(Stmt::Import {
                        name: "//go:linkname".into(),
                        path: "//go:linkname".into(),
                        span: span(node),
                    });
                }
            }
            "import_spec" => self.import(node, out),
            "function_declaration" | "method_declaration" => {
                let function = self.function(node);
                out.push(Stmt::Function(Rc::new(function)));
            }
            "short_var_declaration" | "assignment_statement" => self.assignment(node, out),
            "import_declaration" | "import_spec_list" | "var_declaration" | "const_declaration"
            | "var_spec_list" => {
                for child in children(node) {
                    self.statement(child, out);
                }
            }
            "var_spec" | "const_spec" => self.variable(node, out),
            "return_statement" => {
                let values: Vec<Expr> = self.list(children(node).first().copied());
                let value = match values.len() {
                    0 => None,
                    _ => values.into_iter().next(),
                };
                out.push(Stmt::Return(value));
            }
            "for_statement" => self.for_loop(node, out),
            "send_statement" => {
                let parts = self.all(node);
                out.push(Stmt::Expr(Expr::new(span(node), exchange(parts))));
            }
            "break_statement" => out.push(Stmt::Break),
            "expression_statement" => {
                for child in children(node) {
                    let expr = self.expr(child);
                    out.push(Stmt::Expr(expr));
                }
            }
            "inc_statement" | "dec_statement" => self.count(node, out),
            "package_clause"
            | "type_declaration"
            | "continue_statement"
            | "empty_statement"
            | "fallthrough_statement"
            | "goto_statement"
            | "label_name" => {}
            "if_statement"
            | "block"
            | "statement_list"
            | "expression_switch_statement"
            | "type_switch_statement"
            | "expression_case"
            | "type_case"
            | "default_case"
            | "select_statement"
            | "communication_case"
            | "labeled_statement"
            | "defer_statement"
            | "ERROR"
            | "for_clause" => {
                let body = self.block(node);
                out.push(Stmt::Block(body));
            }
            "go_statement" => {
                // What runs beside the rest, as a call of the word itself.
                let args = children(node).into_iter().map(|child| Arg {
                    name: None,
                    value: self.expr(child),
                });
                let call = Call {
                    args: args.collect(),
                    callee: Expr::new(span(node), ExprKind::Name("go".into())),
                    constructs: false,
                };
                let value = Expr::new(span(node), ExprKind::Call(Box::new(call)));
                out.push(Stmt::Expr(value));
            }
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
            "identifier" => Target::Name(self.text(node)),
            "selector_expression" => self.attr_target(field(node, "operand"), field(node, "field")),
            "index_expression" => self.index_target(field(node, "operand"), field(node, "index")),
            _ => Target::Tuple(Vec::new()),
        }
    }
}

impl Lowering<'_> {
    fn import(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let Some(path) = field(node, "path") else {
            return;
        };
        let path: Text = self.source.of(path).trim_matches(['"', '`']).into();
        let at = span(node);
        match field(node, "name").map(|name| self.source.of(name)) {
            Some(".") => out.push(Stmt::ImportAll { path, span: at }),
            Some(alias) => out.push(Stmt::Import {
                name: alias.into(),
                path,
                span: at,
            }),
            None => {
                let name = go_package_name(&path).into();
                out.push(Stmt::Import {
                    name,
                    path,
                    span: at,
                });
            }
        }
    }

    fn function(&mut self, node: Node<'_>) -> Function {
        let name = field(node, "name").map(|name| self.text(name));
        let mut params = Vec::new();
        for list in [
            field(node, "receiver").filter(|_| false),
            field(node, "parameters"),
        ]
        .into_iter()
        .flatten()
        {
            for declaration in children(list) {
                let rest = declaration.kind() == "variadic_parameter_declaration";
                let mut cursor = declaration.walk();
                for name in declaration.children_by_field_name("name", &mut cursor) {
                    params.push(Param {
                        name: self.text(name),
                        default: None,
                        rest,
                    });
                }
            }
        }
        let body = field(node, "body")
            .map(|body| self.block(body))
            .unwrap_or_default();
        Function {
            name,
            params,
            body,
            decorators: Vec::new(),
        }
    }

    /// The expressions of a list, or the one expression.
    fn list(&mut self, node: Option<Node<'_>>) -> Vec<Expr> {
        match node {
            Some(node) if node.kind() == "expression_list" => self.all(node),
            Some(node) => vec![self.expr(node)],
            None => Vec::new(),
        }
    }

    fn targets(&mut self, node: Option<Node<'_>>) -> Vec<Target> {
        match node {
            Some(node) if node.kind() == "expression_list" => children(node)
                .into_iter()
                .map(|child| self.target(child))
                .collect(),
            Some(node) => vec![self.target(node)],
            None => Vec::new(),
        }
    }

    fn assignment(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let values = self.list(field(node, "right"));
        let mut targets = self.targets(field(node, "left"));
        let op = field(node, "operator").map_or("=", |op| self.source.of(op));
        let op = (op.len() == 2 && op != ":=").then(|| operator(op.trim_end_matches('=')));
        if values.len() == 1 && targets.len() > 1 {
            let mut values = values;
            out.extend(values.pop().map(|value| Stmt::Assign {
                target: Target::Tuple(targets),
                value,
                op: None,
            }));
            return;
        }
        for (target, value) in targets.drain(..).zip(values) {
            out.push(Stmt::Assign { target, value, op });
        }
    }

    fn variable(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let values = self.list(field(node, "value"));
        let mut cursor = node.walk();
        let names: Vec<Target> = node
            .children_by_field_name("name", &mut cursor)
            .filter(Node::is_named)
            .map(|name| Target::Name(self.text(name)))
            .collect();
        let type_name = field(node, "type");
        if values.is_empty() {
            // `var client http.Client`: an object of that type.
            if let (Some(kind), Some(name)) = (
                type_name.filter(|kind| kind.kind() == "qualified_type"),
                names.into_iter().next(),
            ) {
                let callee = self.qualified(kind);
                let call = Call {
                    callee,
                    args: Vec::new(),
                    constructs: true,
                };
                let value = Expr::new(span(node), ExprKind::Call(Box::new(call)));
                out.push(Stmt::Assign {
                    target: name,
                    value,
                    op: None,
                });
            }
            return;
        }
        for (target, value) in names.into_iter().zip(values) {
            out.push(Stmt::Assign {
                target,
                value,
                op: None,
            });
        }
    }

    /// `n++`, `n--`
    fn count(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let op = match node.kind() {
            "inc_statement" => Op::Add,
            _ => Op::Sub,
        };
        for child in children(node) {
            let target = self.target(child);
            out.push(Stmt::Assign {
                target,
                value: Expr::new(span(node), ExprKind::Int(1)),
                op: Some(op),
            });
        }
    }

    fn for_loop(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        let mut clause = None;
        let mut counted = None;
        let mut bare = true;
        for child in children(node) {
            match child.kind() {
                "range_clause" => clause = Some(child),
                "block" => {}
                // `for i := 0; ; i++`
                "for_clause" if field(child, "condition").is_none() => self.statement(child, out),
                _ => {
                    bare = false;
                    counted = counted.or_else(|| self.counter(child));
                    self.statement(child, out);
                }
            }
        }
        let body = field(node, "body")
            .map(|body| self.block(body))
            .unwrap_or_default();
        match clause {
            Some(clause) => {
                let iter = field(clause, "right").map(|right| self.expr(right));
                let mut targets = self.targets(field(clause, "left"));
                // `for i, x := range xs`: the second is the element.
                let target = if targets.len() > 1 {
                    targets.swap_remove(1)
                } else {
                    Target::Tuple(Vec::new())
                };
                if let Some(iter) = iter {
                    out.push(Stmt::For { target, iter, body });
                }
            }
            None if bare => out.push(Stmt::Forever(body)),
            None if counted.is_some() => {
                out.extend(counted.map(|(target, iter)| Stmt::For { target, iter, body }));
            }
            None => out.push(Stmt::Block(body)),
        }
    }

    /// What `for i := 0; …; i++` goes through: one number after the other.
    fn counter(&mut self, clause: Node<'_>) -> Option<(Target, Expr)> {
        let update = field(clause, "update").filter(|update| update.kind() == "inc_statement")?;
        let name = children(update)
            .into_iter()
            .find(|child| child.kind() == "identifier")?;
        let callee = Expr::new(span(clause), ExprKind::Name("range".into()));
        let call = Call {
            callee,
            args: Vec::new(),
            constructs: false,
        };
        let numbers = Expr::new(span(clause), ExprKind::Call(Box::new(call)));
        Some((Target::Name(self.text(name)), numbers))
    }
}
