//! Loops without an end of their own: whether they wait for anything, and whether they only grow.

use super::ir::{Expr, ExprKind, Op, Stmt};
use crate::words::Words;

/// Calls that wait: for time, for someone else, for the next piece of something.
static WAITS: Words = Words::new("program/loops waits");

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
        | ExprKind::Many(parts)
        | ExprKind::Yield(parts) => parts.iter().any(waits),
        _ => false,
    }
}

/// Whether all that a loop does is to keep more and more of what it made itself.
pub(super) fn only_grows(body: &[Stmt]) -> bool {
    let mut grown = false;
    let only = body.iter().all(|statement| {
        // A count, or the condition of the loop.
        let idle = matches!(statement,
            Stmt::Assign { value, op: Some(_), .. } | Stmt::Expr(value)
            if matches!(value.kind, ExprKind::Int(_) | ExprKind::Bool(_)));
        let more = match statement {
            Stmt::Block(inner) => only_grows(inner),
            _ => !idle && grows(statement),
        };
        grown |= more;
        idle || more
    });
    only && grown
}

fn grows(statement: &Stmt) -> bool {
    match statement {
        Stmt::Expr(expr) => {
            let ExprKind::Call(call) = &expr.kind else {
                return false;
            };
            let adds = matches!(&call.callee.kind, ExprKind::Attr(_, name)
                if matches!(&**name, "append" | "extend" | "push"));
            adds && call.args.iter().all(|arg| is_made(&arg.value))
        }
        Stmt::Assign {
            value,
            op: Some(Op::Add | Op::Mul),
            ..
        } => !matches!(value.kind, ExprKind::Int(_)) && is_made(value),
        _ => false,
    }
}

/// Whether a value is made of constants alone: `" " * 10**8`, `[bytearray(4096)]`.
fn is_made(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Text(_) | ExprKind::Int(_) | ExprKind::Bool(_) => true,
        ExprKind::Binary(_, left, right) => is_made(left) && is_made(right),
        ExprKind::List(parts) | ExprKind::Sum(parts) => parts.iter().all(is_made),
        ExprKind::Call(call) => {
            matches!(call.callee.kind, ExprKind::Name(_))
                && call.args.iter().all(|arg| is_made(&arg.value))
        }
        _ => false,
    }
}
