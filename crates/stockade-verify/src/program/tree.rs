//! Syntax trees: parsing within bounds, and what lowering needs from nodes.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tree_sitter::{Language, Node, ParseOptions, ParseState, Parser, Tree};

use super::hash::Set;
use super::ir::Text;
use crate::result::Span;

/// Nesting that is followed; beyond it the rest is not read.
pub(crate) const DEEPEST: usize = 160;

/// Parses a text; `None` if that takes unreasonably long.
pub(crate) fn parse(language: &Language, text: &str) -> Option<Tree> {
    // What a parser needs for itself it keeps for the next text.
    thread_local! {
        static PARSER: RefCell<Parser> = RefCell::new(Parser::new());
    }
    PARSER.with_borrow_mut(|parser| parse_by(parser, language, text))
}

fn parse_by(parser: &mut Parser, language: &Language, text: &str) -> Option<Tree> {
    parser.reset();
    parser.set_language(language).ok()?;
    let begun = Instant::now();
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    // Recovery from garbage may not end. Counted in steps, so that a text is judged alike on every
    // machine: ordinary code takes at most one for each 50 bytes.
    let mut left = 10_000 + length / 10;
    // And in time, for steps that take long.
    let most = Duration::from_millis(5_000 + length / 500);
    let mut stop = |_: &ParseState| {
        left = left.saturating_sub(1);
        if left == 0 || begun.elapsed() > most {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let bytes = text.as_bytes();
    let options = ParseOptions::new().progress_callback(&mut stop);
    let mut read = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(options))
}

/// What lowering carries along.
pub(crate) struct Source<'t> {
    pub(crate) text: &'t str,
    pub(crate) depth: usize,
    pub(crate) too_deep: Option<Span>,
    pub(crate) comments: Vec<Span>,
    /// Names met so far: the same few make up most of a text.
    names: RefCell<Set<Text>>,
}

impl<'t> Source<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            text,
            depth: 0,
            too_deep: None,
            comments: Vec::new(),
            names: RefCell::default(),
        }
    }

    pub(crate) fn of(&self, node: Node<'_>) -> &'t str {
        self.text
            .get(node.start_byte()..node.end_byte())
            .unwrap_or_default()
    }

    /// The node's text, shared with other nodes of the same text.
    pub(crate) fn name(&self, node: Node<'_>) -> Text {
        let text = self.of(node);
        if text.len() > 48 {
            return text.into();
        }
        let mut names = self.names.borrow_mut();
        if let Some(known) = names.get(text) {
            return Rc::clone(known);
        }
        let new: Text = text.into();
        names.insert(Rc::clone(&new));
        new
    }

    /// Enters a level; `false` when it is one too many.
    pub(crate) fn descend(&mut self, node: Node<'_>) -> bool {
        if self.depth >= DEEPEST {
            self.too_deep.get_or_insert(span(node));
            return false;
        }
        self.depth += 1;
        true
    }

    pub(crate) fn ascend(&mut self) {
        self.depth -= 1;
    }
}

pub(crate) fn span(node: Node<'_>) -> Span {
    Span::new(node.start_byte(), node.end_byte())
}

/// Where the text first stops being what the grammar knows.
pub(crate) fn first_error(root: Node<'_>) -> Option<Span> {
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Some(span(node));
        }
        if node.has_error() && cursor.goto_first_child() {
            continue;
        }
        if !cursor.goto_next_sibling() {
            return None;
        }
    }
}

/// Not a comment, nor the mark of a line that goes on.
fn says_something(node: &Node<'_>) -> bool {
    !matches!(node.kind(), "comment" | "line_continuation")
}

/// Named children, comments left out.
pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    // A cursor is memory of its own; most nodes have one or two children.
    let count = u32::try_from(node.named_child_count()).unwrap_or(u32::MAX);
    if count <= 3 {
        return (0..count)
            .filter_map(|at| node.named_child(at))
            .filter(says_something)
            .collect();
    }
    let mut cursor = node.walk();
    node.named_children(&mut cursor)
        .filter(says_something)
        .collect()
}

pub(crate) fn field<'t>(node: Node<'t>, name: &str) -> Option<Node<'t>> {
    node.child_by_field_name(name)
}
