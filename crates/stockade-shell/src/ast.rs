//! The shape of a script before expansion. It owns its text, so that a function defined in one
//! source (`eval`) can be called from another.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::model::{RedirectOp, Span};

/// A statement.
#[derive(Debug)]
pub(crate) enum Node {
    Simple(Simple),
    Pipeline {
        stages: Vec<Node>,
        span: Span,
    },
    /// `{ … }`, `( … )`, loops, conditionals: statements in order, then redirections.
    Compound {
        body: Vec<Node>,
        redirects: Vec<RawRedirect>,
        span: Span,
    },
    For {
        name: String,
        items: Vec<RawWord>,
        body: Vec<Node>,
        redirects: Vec<RawRedirect>,
        span: Span,
    },
    /// `case`, `[[ … ]]`, `(( … ))`: words looked at for the substitutions in them, then bodies.
    Words {
        words: Vec<RawWord>,
        body: Vec<Node>,
        redirects: Vec<RawRedirect>,
        span: Span,
    },
    Function(Rc<FunctionNode>),
    Background(Box<Node>),
}

#[derive(Debug)]
pub(crate) struct FunctionNode {
    pub(crate) name: String,
    pub(crate) body: Node,
    pub(crate) span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct Simple {
    pub(crate) assignments: Vec<RawAssignment>,
    pub(crate) words: Vec<RawWord>,
    pub(crate) redirects: Vec<RawRedirect>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) struct RawAssignment {
    pub(crate) name: String,
    pub(crate) append: bool,
    pub(crate) value: RawValue,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum RawValue {
    Scalar(RawWord),
    Array(Vec<RawWord>),
}

#[derive(Debug)]
pub(crate) struct RawRedirect {
    pub(crate) op: RedirectOp,
    pub(crate) fd: Option<u32>,
    pub(crate) target: RawWord,
    pub(crate) span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct RawWord {
    pub(crate) parts: Vec<Part>,
    pub(crate) span: Span,
}

/// A piece of a word.
#[derive(Debug)]
pub(crate) enum Part {
    /// Unquoted text without special characters.
    Text(String),
    /// Text after `\`, in single quotes, or in `$'…'` with escapes decoded.
    Quoted(String),
    /// Text in `$'…'` in which letters were written as numbers.
    Escaped(String),
    /// Within double quotes.
    Double(Vec<Part>),
    /// An unquoted `*`, `?` or `[`, or an extended pattern in full.
    Glob(String),
    /// An unquoted `{`, `,` or `}`, which may belong to a brace expansion.
    Brace(char),
    Parameter(Parameter),
    Substitution(Vec<Node>),
    Process(Vec<Node>),
    Arithmetic(String),
    /// The body of a here-document, read after the line that asks for it.
    Here(Rc<OnceCell<RawWord>>),
}

/// `$name` or `${…}`.
#[derive(Debug, Default)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// `[…]` as written, without brackets.
    pub(crate) index: Option<String>,
    /// `${!name}`
    pub(crate) indirect: bool,
    /// `${#name}`
    pub(crate) length: bool,
    /// What follows the name, with its operand.
    pub(crate) operation: Option<(String, RawWord)>,
}
