//! Python objects' internals as a ladder: `().__class__.__base__.__subclasses__()`.

use super::ir::{Call, Expr, ExprKind};
use crate::words::Words;

/// Rungs that ordinary code climbs one of, now and then.
static RUNGS: Words = Words::new("program/gadget rungs");
/// Rungs that lead out.
static TOPS: Words = Words::new("program/gadget tops");

/// `x.__globals__`, `frame.f_globals`: the globals of a function or a frame.
pub(crate) fn is_globals(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Attr(_, name)
        if matches!(&**name, "__globals__" | "f_globals" | "f_locals" | "func_globals"))
}

/// Whether `base.attr` is a climb that ordinary code does not make.
pub(crate) fn climbs(base: &Expr, attr: &str) -> bool {
    if !TOPS.contains(&attr) {
        return false;
    }
    let (mut rungs, mut depth) = (1usize, 0usize);
    let mut out = matches!(
        attr,
        "__subclasses__" | "__globals__" | "__builtins__" | "f_globals" | "f_builtins" | "co_code"
    );
    let mut frame = false;
    let mut node = base;
    let literal = loop {
        depth += 1;
        if depth > 32 {
            break false;
        }
        match &node.kind {
            ExprKind::Attr(inner, name) => {
                if RUNGS.contains(&name.as_ref()) {
                    rungs += 1;
                }
                out |= matches!(
                    name.as_ref(),
                    "__subclasses__" | "__globals__" | "__builtins__" | "f_globals" | "f_builtins"
                );
                frame |= matches!(
                    name.as_ref(),
                    "gi_frame"
                        | "cr_frame"
                        | "tb_frame"
                        | "f_back"
                        | "__init__"
                        | "gi_code"
                        | "__code__"
                );
                node = inner;
            }
            ExprKind::Call(call) => match fetched(call) {
                Some((inner, name)) => {
                    if RUNGS.contains(&name) {
                        rungs += 1;
                    }
                    node = inner;
                }
                None => node = &call.callee,
            },
            ExprKind::Index(inner, _) => node = inner,
            ExprKind::Text(_)
            | ExprKind::List(_)
            | ExprKind::Dict(_)
            | ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Function(_)
            | ExprKind::Each(_)
            | ExprKind::Negate(_)
            | ExprKind::Binary(..)
            | ExprKind::Sum(_) => break true,
            ExprKind::Name(name) if &**name == "object" && attr == "__subclasses__" => break true,
            _ => break false,
        }
    };
    literal
        && rungs >= 1
        && matches!(
            attr,
            "__class__"
                | "__base__"
                | "__bases__"
                | "__mro__"
                | "__subclasses__"
                | "co_code"
                | "__globals__"
        )
        || rungs >= 3 && out
        || rungs >= 2 && out && frame
}

/// `getattr(x, "__class__")`, `x.__getattribute__("__class__")`: the object, and which rung of it.
pub(crate) fn fetched(call: &Call) -> Option<(&Expr, &str)> {
    let text = |at: usize| match &call.args.get(at)?.value.kind {
        ExprKind::Text(name) => Some(&**name),
        _ => None,
    };
    match &call.callee.kind {
        ExprKind::Name(name) if &**name == "getattr" => Some((&call.args.first()?.value, text(1)?)),
        ExprKind::Attr(object, name) if &**name == "__getattribute__" => match call.args.len() {
            1 => Some((object, text(0)?)),
            _ => Some((&call.args.first()?.value, text(1)?)),
        },
        _ => None,
    }
}

/// Members that lead from any object to the interpreter's internals.
pub(super) static WAYS_OUT: Words = Words::new("program/gadget ways-out");

/// Whether what is fetched by name is a rung, where ordinary code would write the rung itself.
pub(crate) fn fetches_rung(call: &Call) -> bool {
    let Some((object, name)) = fetched(call) else {
        return false;
    };
    let bound = matches!(&call.callee.kind, ExprKind::Attr(..)) && call.args.len() == 1;
    let literal = matches!(
        object.kind,
        ExprKind::Text(_) | ExprKind::List(_) | ExprKind::Dict(_) | ExprKind::Int(_)
    );
    WAYS_OUT.contains(&name) && (bound || literal)
        || matches!(name, "__subclasses__" | "__globals__") && !bound
}

/// Whether something is picked by position from all loaded classes.
pub(crate) fn picks_class(base: &Expr) -> bool {
    let ExprKind::Call(call) = &base.kind else {
        return false;
    };
    matches!(&call.callee.kind, ExprKind::Attr(_, name) if &**name == "__subclasses__")
}
