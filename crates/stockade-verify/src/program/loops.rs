//! Loops without an end of their own: whether they wait for anything, and whether they only grow.

use super::ir::{Expr, ExprKind, Op, Stmt};

/// Calls that wait: for time, for someone else, for the next piece of something.
const WAITS: &[&str] = &[
    "sleep",
    "wait",
    "select",
    "poll",
    "accept",
    "recv",
    "recvfrom",
    "read",
    "readline",
    "input",
    "get",
    "next",
    "join",
    "acquire",
    "Sleep",
    "Wait",
    "Accept",
    "Read",
    "ReadString",
    "Scan",
    "After",
    "Lock",
    "question",
    "delay",
    "setTimeout",
    "usleep",
    "receive",
    "pop",
    "heappop",
];

/// Whether something in the loop waits.
pub(super) fn is_paced(body: &[Stmt]) -> bool {
    body.iter().any(|statement| match statement {
        Stmt::Expr(expr) | Stmt::Assign { value: expr, .. } | Stmt::Return(Some(expr)) => {
            waits(expr)
        }
        Stmt::For { iter, body, .. } => waits(iter) || is_paced(body),
        Stmt::Block(body) | Stmt::Forever(body) => is_paced(body),
        _ => false,
    })
}

fn waits(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Call(call) => {
            let name = match &call.callee.kind {
                ExprKind::Name(name) | ExprKind::Attr(_, name) => &**name,
                _ => "",
            };
            // `requests.get` asks, it does not wait for anyone to ask.
            let library = matches!(&call.callee.kind, ExprKind::Attr(base, _)
                if matches!(&base.kind, ExprKind::Name(base)
                    if matches!(&**base, "requests" | "httpx" | "http" | "https" | "axios")));
            let waiting = WAITS.contains(&name) && !library;
            waiting || waits(&call.callee) || call.args.iter().any(|arg| waits(&arg.value))
        }
        ExprKind::Attr(base, _) | ExprKind::Negate(base) | ExprKind::Spread(base) => waits(base),
        ExprKind::Assign(_, value) => waits(value),
        ExprKind::Binary(_, left, right) | ExprKind::Index(left, right) => {
            waits(left) || waits(right)
        }
        ExprKind::Sum(parts)
        | ExprKind::List(parts)
        | ExprKind::Template(parts)
        | ExprKind::Either(parts)
        | ExprKind::Many(parts) => parts.iter().any(waits),
        _ => false,
    }
}

/// Whether all that the loop does is to keep more and more.
pub(super) fn only_grows(body: &[Stmt]) -> bool {
    let grows = |statement: &Stmt| match statement {
        Stmt::Expr(expr) => is_growth(expr),
        Stmt::Assign {
            value,
            op: Some(Op::Add | Op::Mul),
            ..
        } => is_plain(value) && !matches!(value.kind, ExprKind::Int(_)),
        _ => false,
    };
    let shows = |statement: &Stmt| {
        matches!(statement, Stmt::Expr(Expr { kind: ExprKind::Call(call), .. })
            if matches!(&call.callee.kind, ExprKind::Name(name) if &**name == "print"))
    };
    let constant = |statement: &Stmt| {
        matches!(statement, Stmt::Expr(expr) if matches!(expr.kind, ExprKind::Bool(_) | ExprKind::Int(_)))
            || matches!(statement, Stmt::Expr(Expr { kind: ExprKind::Name(name), .. }) if &**name == "True")
    };
    let body = flat(body);
    body.iter().any(|statement| grows(statement))
        && body
            .iter()
            .all(|statement| grows(statement) || shows(statement) || constant(statement))
}

/// Statements without the blocks around them.
fn flat(body: &[Stmt]) -> Vec<&Stmt> {
    let mut out = Vec::new();
    for statement in body.iter().take(16) {
        match statement {
            Stmt::Block(inner) => out.extend(flat(inner)),
            other => out.push(other),
        }
    }
    out
}

/// `list.append(…)`, `list.push(…)` of something made on the spot.
fn is_growth(expr: &Expr) -> bool {
    let ExprKind::Call(call) = &expr.kind else {
        return false;
    };
    let ExprKind::Attr(_, name) = &call.callee.kind else {
        return false;
    };
    let keeps = matches!(&**name, "append" | "extend" | "push" | "write");
    keeps && !call.args.is_empty() && call.args.iter().all(|arg| is_plain(&arg.value))
}

/// Made of constants and names; no call but of what makes room.
fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Text(_) | ExprKind::Int(_) | ExprKind::Name(_) => true,
        ExprKind::Binary(_, left, right) => is_plain(left) && is_plain(right),
        ExprKind::Sum(parts) | ExprKind::List(parts) => parts.iter().all(is_plain),
        ExprKind::Call(call) => {
            let makes = match &call.callee.kind {
                ExprKind::Name(name) => matches!(&**name, "bytearray" | "bytes" | "range" | "list"),
                ExprKind::Attr(_, name) => {
                    matches!(&**name, "urandom" | "alloc" | "repeat" | "fill")
                }
                _ => false,
            };
            makes && call.args.iter().all(|arg| is_plain(&arg.value))
        }
        _ => false,
    }
}
