//! Python objects' internals as a ladder: `().__class__.__base__.__subclasses__()`.

use super::ir::{Expr, ExprKind};

/// Rungs that ordinary code climbs one of, now and then.
const RUNGS: &[&str] = &[
    "__class__",
    "__base__",
    "__bases__",
    "__mro__",
    "mro",
    "__subclasses__",
    "__globals__",
    "__builtins__",
    "__init__",
    "__getitem__",
    "f_globals",
    "f_builtins",
    "f_back",
    "gi_frame",
    "cr_frame",
    "tb_frame",
    "ag_frame",
    "gi_code",
    "__code__",
    "co_code",
    "__closure__",
    "__reduce__",
    "__reduce_ex__",
    "__loader__",
    "__spec__",
    "__traceback__",
];
/// Rungs that lead out.
const TOPS: &[&str] = &[
    "__subclasses__",
    "__globals__",
    "__builtins__",
    "f_globals",
    "f_builtins",
    "gi_frame",
    "co_code",
    "__bases__",
    "__base__",
    "__mro__",
    "__class__",
    "__str__",
];

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
            ExprKind::Call(call) => node = &call.callee,
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

/// Whether something is picked by position from all loaded classes.
pub(crate) fn picks_class(base: &Expr) -> bool {
    let ExprKind::Call(call) = &base.kind else {
        return false;
    };
    matches!(&call.callee.kind, ExprKind::Attr(_, name) if &**name == "__subclasses__")
}
