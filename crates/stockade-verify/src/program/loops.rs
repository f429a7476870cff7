//! Loops without an end of their own: whether they wait for anything, and whether they only grow.

use super::ir::{Expr, ExprKind, Op, Stmt, Target};

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
    "<-",
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
        | ExprKind::Many(parts)
        | ExprKind::Yield(parts) => parts.iter().any(waits),
        _ => false,
    }
}

/// What a loop without an end does to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// Keeps more and more.
    Grows,
    /// Starts one after the other.
    Multiplies,
    /// Writes the same without end.
    Repeats,
}

/// The one thing that a loop does besides counting and saying so, if that takes all there is.
pub(super) fn excess(body: &[Stmt]) -> Option<Excess> {
    let body = flat(body);
    let makes = body.iter().any(|statement| {
        matches!(statement, Stmt::Assign { value, .. }
            if is_maker(value) || matches!(called(value), Some((_, "Command"))))
    });
    let of = |statement: &Stmt| match statement {
        Stmt::Expr(expr) if is_growth(expr) => Some(Excess::Grows),
        Stmt::Expr(expr) if starts(expr, makes) => Some(Excess::Multiplies),
        Stmt::Expr(expr) if shows(expr) => Some(Excess::Repeats),
        // `text += text`, where that is an expression.
        Stmt::Expr(Expr {
            kind: ExprKind::Assign(target, value),
            ..
        }) if doubles(target, value) => Some(Excess::Grows),
        Stmt::Assign {
            value,
            op: Some(Op::Add | Op::Mul),
            ..
        } if is_plain(value) && !matches!(value.kind, ExprKind::Int(_)) => Some(Excess::Grows),
        Stmt::Assign {
            target: Target::Attr(..) | Target::Index(..),
            value,
            op: None,
        } if is_made(value) => Some(Excess::Grows),
        Stmt::Assign {
            value, op: None, ..
        } if appends(value) => Some(Excess::Grows),
        _ => None,
    };
    let all = body
        .iter()
        .all(|statement| of(statement).is_some() || is_idle(statement));
    let found = |what| body.iter().any(|statement| of(statement) == Some(what));
    [Excess::Multiplies, Excess::Grows, Excess::Repeats]
        .into_iter()
        .find(|what| all && found(*what))
}

/// Counts, conditions, names given, room made and filled: nothing that waits or ends.
fn is_idle(statement: &Stmt) -> bool {
    match statement {
        Stmt::Expr(expr) => is_idle_expr(expr),
        // A count.
        Stmt::Assign {
            value, op: Some(_), ..
        } => matches!(value.kind, ExprKind::Int(_)),
        Stmt::Assign {
            value, op: None, ..
        } => {
            let made = [
                "open",
                "Create",
                "createWriteStream",
                "Command",
                "Sprintf",
                "Sprint",
            ];
            let made = called(value).is_some_and(|(_, name)| made.contains(&name));
            let named = matches!(value.kind, ExprKind::Attr(..) | ExprKind::Name(_));
            made || named || is_maker(value) || is_room(value)
        }
        _ => false,
    }
}

/// A condition, or a call that only makes or ends something.
fn is_idle_expr(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Text(_) | ExprKind::Name(_) => true,
        // `nil`, `None`
        ExprKind::Many(parts) => parts.is_empty(),
        ExprKind::Attr(base, _) | ExprKind::Negate(base) => is_idle_expr(base),
        ExprKind::Binary(_, left, right) => is_idle_expr(left) && is_idle_expr(right),
        ExprKind::Call(_) => {
            let ends = [
                "flush",
                "fsync",
                "sync",
                "Sync",
                "fdatasync",
                "close",
                "Close",
                "closeSync",
                "seek",
                "Seek",
            ];
            // `rand.Read(buffer)`
            let random = matches!(called(expr), Some((base, "Read" | "read"))
                if matches!(&base.kind, ExprKind::Name(name) if &**name == "rand"));
            let ends = called(expr).is_some_and(|(_, name)| ends.contains(&name));
            random || ends || is_room(expr)
        }
        _ => false,
    }
}

/// `"x" * 1000`, `make([]byte, n)`, `Buffer.alloc(n)`
fn is_room(value: &Expr) -> bool {
    let makes = [
        "make",
        "Repeat",
        "alloc",
        "bytearray",
        "urandom",
        "ones",
        "zeros",
    ];
    is_plain(value) || called(value).is_some_and(|(_, name)| makes.contains(&name))
}

/// What is started: threads, processes, workers.
const MAKERS: &[&str] = &[
    "Thread",
    "Process",
    "Popen",
    "Worker",
    "fork",
    "spawn",
    "go",
    "startfile",
    "start_new_thread",
    "start_new",
];

fn called(expr: &Expr) -> Option<(&Expr, &str)> {
    let ExprKind::Call(call) = &expr.kind else {
        return None;
    };
    match &call.callee.kind {
        ExprKind::Name(name) => Some((&call.callee, name)),
        ExprKind::Attr(base, name) => Some((base, name)),
        _ => None,
    }
}

/// `Thread(target=f)`, `new Worker(file)`
fn is_maker(expr: &Expr) -> bool {
    called(expr).is_some_and(|(_, name)| MAKERS.contains(&name))
}

/// `Thread(target=f).start()`, `fork()`; `x.start()` of what was made before.
fn starts(expr: &Expr, makes: bool) -> bool {
    match called(expr) {
        Some((base, "start" | "run")) => makes || is_maker(base),
        Some((base, "Start")) => makes || matches!(called(base), Some((_, "Command"))),
        // `spawn(…).unref()`, `spawn(…).on("exit", f)`
        Some((base, "unref" | "on" | "once" | "detach")) => starts(base, makes),
        Some((base, "open" | "open_new_tab" | "open_new")) => {
            matches!(&base.kind, ExprKind::Name(name) if &**name == "webbrowser")
        }
        Some((_, name)) => MAKERS.contains(&name),
        None => false,
    }
}

/// `print(…)` and its kin, of something made on the spot.
fn shows(expr: &Expr) -> bool {
    let ExprKind::Call(call) = &expr.kind else {
        return false;
    };
    let prints = match &call.callee.kind {
        ExprKind::Name(name) => matches!(&**name, "print" | "alert"),
        ExprKind::Attr(base, name) => {
            let base = matches!(&base.kind, ExprKind::Name(base)
                if matches!(&**base, "console" | "fmt" | "window"));
            base && matches!(
                &**name,
                "log" | "error" | "Println" | "Print" | "Printf" | "alert"
            )
        }
        _ => false,
    };
    prints && call.args.iter().all(|arg| is_plain(&arg.value))
}

/// Statements without the blocks and inner loops around them.
fn flat(body: &[Stmt]) -> Vec<&Stmt> {
    let mut out = Vec::new();
    for statement in body {
        // A loop that does so much does more than one thing.
        if out.len() > 64 {
            out.push(&Stmt::Break);
            break;
        }
        match statement {
            Stmt::Block(inner) => out.extend(flat(inner)),
            Stmt::For { iter, body, .. } if is_range(iter) => out.extend(flat(body)),
            other => out.push(other),
        }
    }
    out
}

/// Numbers, or the elements of what has a name.
fn is_range(iter: &Expr) -> bool {
    let counts = ["range", "xrange", "len", "enumerate"];
    let counts = |name: &str| counts.contains(&name);
    match &iter.kind {
        ExprKind::Call(call) => {
            called(iter).is_some_and(|(_, name)| counts(name))
                && call.args.iter().all(|arg| is_range(&arg.value))
        }
        _ => is_plain(iter),
    }
}

/// `list.append(…)`, `list.push(…)` of something made on the spot.
fn is_growth(expr: &Expr) -> bool {
    let ExprKind::Call(call) = &expr.kind else {
        return false;
    };
    let ExprKind::Attr(_, name) = &call.callee.kind else {
        return false;
    };
    let files = matches!(
        &**name,
        "writeFileSync" | "appendFileSync" | "WriteFile" | "write_bytes" | "write_text"
    );
    if files {
        return call.args.last().is_some_and(|arg| is_room(&arg.value))
            || call.args.get(1).is_some_and(|arg| is_room(&arg.value));
    }
    let keeps = matches!(
        &**name,
        "append" | "extend" | "push" | "write" | "Write" | "WriteString"
    );
    keeps && !call.args.is_empty() && call.args.iter().all(|arg| is_plain(&arg.value))
}

/// `Node()`, `np.ones(…)`: something new, kept.
fn is_made(expr: &Expr) -> bool {
    match called(expr) {
        Some((_, name)) => {
            name.starts_with(|c: char| c.is_ascii_uppercase())
                && matches!(&expr.kind, ExprKind::Call(call) if call.args.is_empty())
                || matches!(name, "ones" | "zeros" | "bytearray" | "urandom" | "alloc")
        }
        None => false,
    }
}

/// `a = a + a`, `a = a + "…"`
fn doubles(target: &Target, value: &Expr) -> bool {
    let Target::Name(name) = target else {
        return false;
    };
    match &value.kind {
        ExprKind::Sum(parts) => {
            let own = matches!(parts.first().map(|part| &part.kind), Some(ExprKind::Name(first)) if first == name);
            let number = matches!(parts.get(1).map(|part| &part.kind), Some(ExprKind::Int(_)));
            own && !number && parts.iter().all(is_plain)
        }
        ExprKind::Binary(Op::Add, left, right) => {
            let own = matches!(&left.kind, ExprKind::Name(first) if first == name);
            own && is_plain(right) && !matches!(right.kind, ExprKind::Int(_))
        }
        _ => false,
    }
}

/// Go's `append(list, make(…))`
fn appends(expr: &Expr) -> bool {
    let ExprKind::Call(call) = &expr.kind else {
        return false;
    };
    let name = matches!(&call.callee.kind, ExprKind::Name(name) if &**name == "append");
    let made =
        |value: &Expr| is_plain(value) || matches!(called(value), Some((_, "make" | "Repeat")));
    name && call.args.len() > 1 && call.args.iter().all(|arg| made(&arg.value))
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
