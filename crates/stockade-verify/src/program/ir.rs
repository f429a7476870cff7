//! What programs in Python, Go and JavaScript have in common, as far as judging them needs.

use std::rc::Rc;

use crate::result::Span;

pub(crate) type Text = Rc<str>;

/// An expression.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) span: Span,
    pub(crate) kind: ExprKind,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    /// A constant string, or bytes read as Latin-1.
    Text(Text),
    Int(i64),
    Bool(bool),
    Name(Text),
    Attr(Box<Expr>, Text),
    Index(Box<Expr>, Box<Expr>),
    /// `base[start:end:step]`
    Slice(Box<Expr>, [Option<Box<Expr>>; 3]),
    Call(Box<Call>),
    Binary(Op, Box<Expr>, Box<Expr>),
    /// `a + b + c + …`, flat, so that long ones need no depth.
    Sum(Vec<Expr>),
    Negate(Box<Expr>),
    /// Lists, tuples, sets, composite literals.
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    /// Text with expressions inside: f-strings, template literals.
    Template(Vec<Expr>),
    Function(Rc<Function>),
    /// One of them, at run time.
    Either(Vec<Expr>),
    Assign(Box<Target>, Box<Expr>),
    /// A comprehension.
    Each(Box<Each>),
    /// Several things evaluated, with no value of interest.
    Many(Vec<Expr>),
    /// `*args`, `...args`
    Spread(Box<Expr>),
    /// `yield x`: an element of what the function returns.
    Yield(Vec<Expr>),
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) callee: Expr,
    pub(crate) args: Vec<Arg>,
    /// `new X(…)`
    pub(crate) constructs: bool,
}

#[derive(Debug)]
pub(crate) struct Arg {
    pub(crate) name: Option<Text>,
    pub(crate) value: Expr,
}

#[derive(Debug)]
pub(crate) struct Each {
    pub(crate) element: Expr,
    pub(crate) loops: Vec<(Target, Expr)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Add,
    Sub,
    Mul,
    Pow,
    Div,
    Rem,
    Xor,
    And,
    Or,
    Shl,
    Shr,
    /// Comparisons and everything else: no constant value.
    Other,
}

/// What is assigned to.
#[derive(Debug)]
pub(crate) enum Target {
    Name(Text),
    Attr(Expr, Text),
    Index(Expr, Expr),
    Tuple(Vec<Target>),
    /// `{key: target}`
    Object(Vec<(Text, Target)>),
}

impl Target {
    /// Whether a name is among what is assigned to.
    pub(crate) fn binds(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => &**own == name,
            Self::Tuple(targets) => targets.iter().any(|target| target.binds(name)),
            Self::Object(members) => members.iter().any(|(_, target)| target.binds(name)),
            Self::Attr(..) | Self::Index(..) => false,
        }
    }
}

/// A statement.
#[derive(Debug)]
pub(crate) enum Stmt {
    Expr(Expr),
    /// `target = value`; with an operator, `target op= value`.
    Assign {
        target: Target,
        value: Expr,
        op: Option<Op>,
    },
    /// A name bound to a module or a member of one.
    Import {
        name: Text,
        path: Text,
        span: Span,
    },
    /// All members of a module.
    ImportAll {
        path: Text,
        span: Span,
    },
    Function(Rc<Function>),
    Class(Class),
    Return(Option<Expr>),
    For {
        target: Target,
        iter: Expr,
        body: Vec<Stmt>,
    },
    /// Statements that may run: both branches of a condition, a loop's or handler's body.
    Block(Vec<Stmt>),
    /// A loop without an end of its own: `while True`.
    Forever(Vec<Stmt>),
    /// The end of a loop, or an error that ends more.
    Break,
}

#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) name: Text,
    pub(crate) bases: Vec<Expr>,
    pub(crate) decorators: Vec<Expr>,
    pub(crate) body: Vec<Stmt>,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Option<Text>,
    pub(crate) params: Vec<Param>,
    pub(crate) body: Vec<Stmt>,
    pub(crate) decorators: Vec<Expr>,
}

#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: Text,
    pub(crate) default: Option<Expr>,
    /// `*args`
    pub(crate) rest: bool,
}

/// A whole file.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) body: Vec<Stmt>,
    pub(crate) comments: Vec<Span>,
    /// Syntax errors were met.
    pub(crate) broken: Option<Span>,
    /// A piece of a file, not a whole one.
    pub(crate) fragment: bool,
    /// Something was nested too deep to be read.
    pub(crate) too_deep: Option<Span>,
}

impl Expr {
    pub(crate) fn new(span: Span, kind: ExprKind) -> Self {
        Self { span, kind }
    }
}
