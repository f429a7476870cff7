//! Python's syntax tree, lowered.

use std::rc::Rc;

use tree_sitter::Node;

use super::escapes;
use super::ir::{
    Arg, Call, Class, Each, Expr, ExprKind, Function, Op, Param, Program, Stmt, Target, Text,
};
use super::tree::{Source, children, field, parse, span};
use crate::result::Span;

/// Reads a Python text; `None` if parsing was given up.
pub(crate) fn lower(text: &str) -> Option<Program> {
    let tree = parse(&tree_sitter_python::LANGUAGE.into(), text)?;
    let root = tree.root_node();
    let mut lowering = Lowering {
        source: Source::new(text),
        comments: Vec::new(),
    };
    lowering.source.broken = root.has_error();
    let body = lowering.block(root);
    Some(Program {
        body,
        comments: lowering.comments,
        broken: lowering.source.broken,
        fragment: false,
        too_deep: lowering.source.too_deep,
    })
}

struct Lowering<'t> {
    source: Source<'t>,
    comments: Vec<Span>,
}

impl Lowering<'_> {
    fn text(&self, node: Node<'_>) -> Text {
        self.source.of(node).into()
    }

    fn block(&mut self, node: Node<'_>) -> Vec<Stmt> {
        let mut out = Vec::new();
        if !self.source.descend(node) {
            return out;
        }
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            if child.kind() == "comment" {
                self.comments.push(span(child));
            } else {
                self.statement(child, &mut out);
            }
        }
        self.source.ascend();
        out
    }

    fn statement(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        match node.kind() {
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
            "global_statement"
            | "nonlocal_statement"
            | "pass_statement"
            | "break_statement"
            | "continue_statement"
            | "future_import_statement" => {}
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
                let value = self.expr(node);
                out.push(Stmt::Expr(value));
            }
        }
    }

    /// Conditions as expressions, bodies as blocks.
    fn nested(&mut self, node: Node<'_>, out: &mut Vec<Stmt>) {
        if !self.source.descend(node) {
            return;
        }
        let mut inner = Vec::new();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "comment" => self.comments.push(span(child)),
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
        let value = self.expr(value);
        out.push(Stmt::Expr(value));
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
            span: span(node),
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

    fn target(&mut self, node: Node<'_>) -> Target {
        match node.kind() {
            "identifier" => Target::Name(self.text(node)),
            "attribute" => match (field(node, "object"), field(node, "attribute")) {
                (Some(object), Some(attribute)) => {
                    let object = self.expr(object);
                    Target::Attr(object, self.text(attribute))
                }
                _ => Target::Tuple(Vec::new()),
            },
            "subscript" => match (field(node, "value"), field(node, "subscript")) {
                (Some(value), Some(index)) => {
                    let value = self.expr(value);
                    let index = self.expr(index);
                    Target::Index(value, index)
                }
                _ => Target::Tuple(Vec::new()),
            },
            "pattern_list"
            | "tuple_pattern"
            | "list_pattern"
            | "expression_list"
            | "tuple"
            | "list"
            | "parenthesized_expression" => {
                if !self.source.descend(node) {
                    return Target::Tuple(Vec::new());
                }
                let targets = children(node)
                    .into_iter()
                    .map(|child| self.target(child))
                    .collect();
                self.source.ascend();
                Target::Tuple(targets)
            }
            "list_splat_pattern" | "as_pattern_target" => {
                let inner = children(node).into_iter().next();
                inner.map_or_else(|| Target::Tuple(Vec::new()), |inner| self.target(inner))
            }
            _ => Target::Tuple(Vec::new()),
        }
    }

    fn argument(&mut self, node: Node<'_>) -> Arg {
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

    fn expr(&mut self, node: Node<'_>) -> Expr {
        if !self.source.descend(node) {
            return Expr::new(span(node), ExprKind::Many(Vec::new()));
        }
        let kind = self.expr_kind(node);
        self.source.ascend();
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

    fn expr_kind(&mut self, node: Node<'_>) -> ExprKind {
        match node.kind() {
            "identifier" => ExprKind::Name(self.text(node)),
            "string" => self.string(node),
            "concatenated_string" => {
                let parts = self.all(node);
                join_texts(parts)
            }
            "integer" => escapes::integer(self.source.of(node))
                .map_or_else(|| ExprKind::Many(Vec::new()), ExprKind::Int),
            "true" => ExprKind::Bool(true),
            "false" => ExprKind::Bool(false),
            "attribute" => match (self.boxed(field(node, "object")), field(node, "attribute")) {
                (Some(object), Some(attribute)) => ExprKind::Attr(object, self.text(attribute)),
                _ => ExprKind::Many(Vec::new()),
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
                    (None, _) => ExprKind::Many(Vec::new()),
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
            "list_comprehension" | "generator_expression" | "set_comprehension" => {
                self.comprehension(node)
            }
            "lambda" => {
                let function = self.function(node, Vec::new());
                ExprKind::Function(Rc::new(function))
            }
            "named_expression" => match (field(node, "name"), self.boxed(field(node, "value"))) {
                (Some(name), Some(value)) => {
                    ExprKind::Assign(Box::new(Target::Name(self.text(name))), value)
                }
                _ => ExprKind::Many(Vec::new()),
            },
            "list_splat" | "dictionary_splat" => {
                let inner = children(node).into_iter().next();
                self.boxed(inner)
                    .map_or_else(|| ExprKind::Many(Vec::new()), ExprKind::Spread)
            }
            "comment" | "none" | "ellipsis" | "float" | "type" | "string_content" => {
                ExprKind::Many(Vec::new())
            }
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

    fn subscript(&mut self, node: Node<'_>) -> ExprKind {
        let (Some(value), Some(index)) = (field(node, "value"), field(node, "subscript")) else {
            return ExprKind::Many(Vec::new());
        };
        let value = Box::new(self.expr(value));
        if index.kind() != "slice" {
            let index = Box::new(self.expr(index));
            return ExprKind::Index(value, index);
        }
        // `a:b:c`, each part optional: told apart by the colons.
        let mut parts = [None, None, None];
        let mut at = 0;
        let mut cursor = index.walk();
        for child in index.children(&mut cursor) {
            if child.kind() == ":" {
                at += 1;
            } else if child.is_named() && at < 3 {
                parts[at] = Some(Box::new(self.expr(child)));
            }
        }
        ExprKind::Slice(value, parts)
    }

    fn call(&mut self, node: Node<'_>) -> ExprKind {
        let Some(function) = field(node, "function") else {
            return ExprKind::Many(Vec::new());
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
        ExprKind::Call(Box::new(Call {
            callee,
            args,
            constructs: false,
        }))
    }

    fn binary(&mut self, node: Node<'_>) -> ExprKind {
        let op_of = |this: &Self, node: Node<'_>| {
            field(node, "operator").map_or("", |op| this.source.of(op))
        };
        if op_of(self, node) == "+" {
            let mut terms = Vec::new();
            let mut left = node;
            while left.kind() == "binary_operator" && op_of(self, left) == "+" {
                terms.extend(field(left, "right"));
                match field(left, "left") {
                    Some(next) => left = next,
                    None => break,
                }
            }
            terms.push(left);
            let terms = terms
                .into_iter()
                .rev()
                .map(|term| self.expr(term))
                .collect();
            return ExprKind::Sum(terms);
        }
        let op = operator(op_of(self, node));
        match (
            self.boxed(field(node, "left")),
            self.boxed(field(node, "right")),
        ) {
            (Some(left), Some(right)) => ExprKind::Binary(op, left, right),
            _ => ExprKind::Many(Vec::new()),
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
                pairs.push((Expr::new(span(child), ExprKind::Many(Vec::new())), value));
            }
        }
        ExprKind::Dict(pairs)
    }

    fn comprehension(&mut self, node: Node<'_>) -> ExprKind {
        let Some(body) = field(node, "body") else {
            return ExprKind::Many(Vec::new());
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
        let mut prefix = "";
        let mut parts: Vec<Expr> = Vec::new();
        let mut text = String::new();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "string_start" => prefix = self.source.of(child).trim_end_matches(['"', '\'']),
                "string_content" => {
                    let raw = prefix.contains(['r', 'R']);
                    let bytes = prefix.contains(['b', 'B']);
                    let content = self.source.of(child);
                    let content = if raw {
                        content.to_owned()
                    } else {
                        escapes::python(content, bytes)
                    };
                    if prefix.contains(['f', 'F']) {
                        text.push_str(&content.replace("{{", "{").replace("}}", "}"));
                    } else {
                        text.push_str(&content);
                    }
                }
                "interpolation" => {
                    if !text.is_empty() {
                        parts.push(Expr::new(
                            span(node),
                            ExprKind::Text(std::mem::take(&mut text).into()),
                        ));
                    }
                    let inner = field(child, "expression");
                    parts.extend(inner.map(|inner| self.expr(inner)));
                }
                _ => {}
            }
        }
        if parts.is_empty() {
            return ExprKind::Text(text.into());
        }
        if !text.is_empty() {
            parts.push(Expr::new(span(node), ExprKind::Text(text.into())));
        }
        ExprKind::Template(parts)
    }
}

/// Adjacent literals as one.
fn join_texts(parts: Vec<Expr>) -> ExprKind {
    let all = parts.iter().map(|part| match &part.kind {
        ExprKind::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    match all.collect::<Option<Vec<_>>>() {
        Some(texts) => ExprKind::Text(texts.concat().into()),
        None => ExprKind::Template(parts),
    }
}

/// Statements met where an expression stands, as a function that is called.
pub(crate) fn statements_as_expression(body: Vec<Stmt>) -> ExprKind {
    let span = Span::default();
    let function = Function {
        name: None,
        params: Vec::new(),
        body,
        decorators: Vec::new(),
        span,
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
