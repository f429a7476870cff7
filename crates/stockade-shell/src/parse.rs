//! Words to statements, tolerant of errors: whatever can still be read is read.
//!
//! Not a general grammar on purpose. A sandboxed command's author chooses the text, and general
//! grammars recover from errors by guessing: a word such as `w"h"o'am'\i` may fall apart, `<>` or a
//! leading brace expansion may swallow the command. Here every word ends where the shell ends it.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::ast::{FunctionNode, Node, Part, RawAssignment, RawRedirect, RawValue, RawWord, Simple};
use crate::lex::{Origin, is_meta, is_name, is_name_start};
use crate::model::{Problem, ProblemKind, RedirectOp, Span};

/// The reader of one text.
pub(crate) struct Parser<'a> {
    pub(crate) text: &'a str,
    pub(crate) pos: usize,
    origin: Origin,
    depth: usize,
    max_depth: usize,
    /// Open `(` around the current position: a `)` ends the list.
    parens: usize,
    pending: Vec<PendingHere>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) comments: Vec<Span>,
}

/// A here-document whose operator was read and whose body comes after the line.
struct PendingHere {
    body: Rc<OnceCell<RawWord>>,
    delimiter: String,
    strip_tabs: bool,
    quoted: bool,
}

/// Words that end a list of statements, by the construct it stands in.
type Enders = &'static [&'static str];

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, origin: Origin, depth: usize, max_depth: usize) -> Self {
        Self {
            text,
            pos: 0,
            origin,
            depth,
            max_depth,
            parens: 0,
            pending: Vec::new(),
            problems: Vec::new(),
            comments: Vec::new(),
        }
    }

    /// Reads the whole text.
    pub(crate) fn script(&mut self) -> Vec<Node> {
        let mut nodes = Vec::new();
        while self.pos < self.text.len() {
            let before = self.pos;
            nodes.extend(self.list(&[]));
            if self.pos == before {
                // A stray `)`, `;;` or the like.
                self.unexpected();
            }
        }
        nodes
    }

    pub(crate) fn at(&self, pos: usize) -> Option<u8> {
        self.text.as_bytes().get(pos).copied()
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.at(self.pos)
    }

    /// The first character boundary at or after `pos`.
    pub(crate) fn char_end(&self, pos: usize) -> usize {
        let mut pos = pos.min(self.text.len());
        while !self.text.is_char_boundary(pos) {
            pos += 1;
        }
        pos
    }

    pub(crate) fn span(&self, start: usize, end: usize) -> Span {
        self.origin.span(start, end)
    }

    /// Enters one level of nesting; `false`, with the rest skipped, when that is too deep.
    pub(crate) fn descend(&mut self, start: usize) -> bool {
        if self.depth >= self.max_depth {
            self.problem(ProblemKind::TooDeep, start);
            self.pos = self.text.len();
            return false;
        }
        self.depth += 1;
        true
    }

    pub(crate) fn ascend(&mut self) {
        self.depth -= 1;
    }

    fn unexpected(&mut self) {
        let start = self.pos;
        self.pos = self.char_end(self.pos + 1);
        let span = self.span(start, self.pos);
        self.problems.push(Problem {
            kind: ProblemKind::Unexpected,
            span,
        });
    }

    /// The statements up to the `)` that ends a substitution or subshell, and that `)`.
    pub(crate) fn nested_until_paren(&mut self) -> Vec<Node> {
        let start = self.pos;
        if !self.descend(start) {
            return Vec::new();
        }
        self.parens += 1;
        let mut nodes = Vec::new();
        loop {
            let before = self.pos;
            nodes.extend(self.list(&[]));
            match self.peek() {
                Some(b')') => {
                    self.pos += 1;
                    break;
                }
                None => {
                    self.problem(ProblemKind::Unterminated, start);
                    break;
                }
                Some(_) if self.pos == before => self.unexpected(),
                Some(_) => {}
            }
        }
        self.parens -= 1;
        self.ascend();
        nodes
    }

    /// The statements of a text of its own, at `base` in this one if it stands there unchanged.
    pub(crate) fn nested_text(&mut self, text: &str, base: Option<usize>, at: usize) -> Vec<Node> {
        let start = self.pos;
        if !self.descend(start) {
            return Vec::new();
        }
        let origin = match (self.origin, base) {
            (Origin::Exact { base: outer }, Some(base)) => Origin::Exact { base: outer + base },
            (origin, _) => {
                Origin::Within(origin.span(at, at + text.len().min(self.text.len() - at)))
            }
        };
        let mut inner = Parser::new(text, origin, self.depth, self.max_depth);
        let nodes = inner.script();
        self.problems.append(&mut inner.problems);
        self.ascend();
        nodes
    }

    /// Skips blanks, continuations and comments; newlines too if `lines`.
    fn blanks(&mut self, lines: bool) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.pos += 1,
                Some(b'\\') if self.at(self.pos + 1) == Some(b'\n') => self.pos += 2,
                Some(b'\n') if lines => self.newline(),
                Some(b'#') => {
                    let start = self.pos;
                    let end = self.text[start..]
                        .find('\n')
                        .map_or(self.text.len(), |n| start + n);
                    self.comments.push(self.span(start, end));
                    self.pos = end;
                }
                _ => return,
            }
        }
    }

    /// Takes a newline and the here-documents that begin after it.
    fn newline(&mut self) {
        self.pos += 1;
        for here in std::mem::take(&mut self.pending) {
            let word = self.here_body(&here);
            // Set once: each pending document is taken from the list here and nowhere else.
            let _ = here.body.set(word);
        }
    }

    fn here_body(&mut self, here: &PendingHere) -> RawWord {
        let start = self.pos;
        let mut body = String::new();
        let mut ended = false;
        let mut end = start;
        while self.pos < self.text.len() {
            let rest = &self.text[self.pos..];
            let line_end = rest.find('\n').map_or(rest.len(), |n| n + 1);
            let line = &rest[..line_end];
            let stripped = if here.strip_tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            self.pos += line_end;
            if stripped.trim_end_matches(['\n', '\r']) == here.delimiter {
                ended = true;
                break;
            }
            body.push_str(stripped);
            end = self.pos;
        }
        if !ended {
            self.problem(ProblemKind::Unterminated, start);
        }
        let span = self.span(start, end);
        let exact = body.len() == end - start;
        if here.quoted || !body.contains(['$', '`', '\\']) {
            return RawWord {
                parts: vec![Part::Quoted(body)],
                span,
            };
        }
        if !self.descend(start) {
            return RawWord {
                parts: vec![Part::Quoted(body)],
                span,
            };
        }
        let origin = match self.origin {
            Origin::Exact { base } if exact => Origin::Exact { base: base + start },
            _ => Origin::Within(span),
        };
        let mut inner = Parser::new(&body, origin, self.depth, self.max_depth);
        let mut word = inner.here_text();
        self.problems.append(&mut inner.problems);
        word.span = span;
        self.ascend();
        word
    }

    /// Statements up to one of `enders`, a `)` of an enclosing parenthesis, or something that
    /// can't begin a statement.
    fn list(&mut self, enders: Enders) -> Vec<Node> {
        let mut nodes = Vec::new();
        loop {
            self.blanks(true);
            match self.peek() {
                Some(b';')
                    if self.at(self.pos + 1) != Some(b';')
                        && self.at(self.pos + 1) != Some(b'&') =>
                {
                    self.pos += 1;
                    continue;
                }
                Some(b'&') if self.at(self.pos + 1) != Some(b'>') => {
                    self.pos += 1;
                    continue;
                }
                Some(b'|') => {
                    // A pipe with nothing before it: what follows still runs.
                    self.unexpected();
                    continue;
                }
                None | Some(b')' | b';') => break,
                Some(_) => {}
            }
            if self.keyword().is_some_and(|word| enders.contains(&word)) {
                break;
            }
            let before = self.pos;
            if let Some(node) = self.pipeline() {
                let node = if self.background() {
                    Node::Background(Box::new(node))
                } else {
                    node
                };
                nodes.push(node);
            }
            if self.pos == before {
                self.unexpected();
            }
        }
        nodes
    }

    fn background(&mut self) -> bool {
        self.blanks(false);
        self.peek() == Some(b'&') && !matches!(self.at(self.pos + 1), Some(b'&' | b'>'))
    }

    /// The unquoted word here if it is a plain one, without taking it.
    fn keyword(&self) -> Option<&'a str> {
        let rest = &self.text.as_bytes()[self.pos..];
        let length = rest.iter().take(16).take_while(|b| !is_meta(**b)).count();
        let word = &self.text.get(self.pos..self.pos + length)?;
        (!word.is_empty()).then_some(word)
    }

    fn take_keyword(&mut self, word: &str) -> bool {
        self.blanks(true);
        if self.keyword() == Some(word) {
            self.pos += word.len();
            return true;
        }
        false
    }

    fn pipeline(&mut self) -> Option<Node> {
        let start = self.pos;
        let mut stages = Vec::new();
        loop {
            while let Some("!" | "time" | "coproc") = self.keyword() {
                self.pos += self.keyword().map_or(0, str::len);
                self.blanks(false);
                while self.keyword() == Some("-p") {
                    self.pos += 2;
                    self.blanks(false);
                }
            }
            stages.extend(self.statement());
            self.blanks(false);
            if self.peek() == Some(b'|') && self.at(self.pos + 1) != Some(b'|') {
                self.pos += 1 + usize::from(self.at(self.pos + 1) == Some(b'&'));
                self.blanks(true);
                continue;
            }
            break;
        }
        let and = self.peek() == Some(b'&') && self.at(self.pos + 1) == Some(b'&');
        if and || self.peek() == Some(b'|') {
            self.pos += 2;
        }
        if stages.len() > 1 {
            let span = self.span(start, self.pos);
            Some(Node::Pipeline { stages, span })
        } else {
            stages.pop()
        }
    }

    fn statement(&mut self) -> Option<Node> {
        let start = self.pos;
        if !self.descend(start) {
            return None;
        }
        let node = self.statement_inner(start);
        self.ascend();
        node
    }

    fn statement_inner(&mut self, start: usize) -> Option<Node> {
        if self.peek() == Some(b'(') {
            if self.at(start + 1) == Some(b'(') {
                self.pos += 2;
                let inner = self.arithmetic();
                let words = vec![RawWord {
                    parts: vec![Part::Arithmetic(inner)],
                    span: self.span(start, self.pos),
                }];
                return Some(self.finish_words(start, words, Vec::new()));
            }
            self.pos += 1;
            let body = self.nested_until_paren();
            return Some(self.finish_compound(start, body));
        }
        match self.keyword() {
            Some("{") => {
                self.pos += 1;
                let body = self.list(&["}"]);
                self.take_keyword("}");
                Some(self.finish_compound(start, body))
            }
            Some("if") => Some(self.sections(start, &["then", "elif", "else", "fi"])),
            Some("while" | "until") => Some(self.sections(start, &["do", "done"])),
            Some("for" | "select") => Some(self.for_loop(start)),
            Some("case") => Some(self.case(start)),
            Some("[[") => Some(self.condition(start)),
            Some("function") => self.function(start),
            Some("then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "in" | "}") => {
                // Out of place: its construct was not recognised. What follows still counts.
                self.pos += self.keyword().map_or(1, str::len);
                None
            }
            _ => self.simple(start),
        }
    }

    /// Lists one after another, each ended by one of `enders`, the last of which ends it all.
    fn sections(&mut self, start: usize, enders: Enders) -> Node {
        self.pos += self.keyword().map_or(0, str::len);
        let mut body = Vec::new();
        loop {
            body.extend(self.list(enders));
            match self.keyword() {
                Some(word) if enders.contains(&word) => {
                    self.pos += word.len();
                    if Some(&word) == enders.last() {
                        break;
                    }
                }
                _ => break,
            }
        }
        self.finish_compound(start, body)
    }

    fn for_loop(&mut self, start: usize) -> Node {
        self.pos += self.keyword().map_or(0, str::len);
        self.blanks(false);
        let mut items = Vec::new();
        let mut name = String::new();
        if self.peek() == Some(b'(') && self.at(self.pos + 1) == Some(b'(') {
            self.pos += 2;
            let inner = self.arithmetic();
            items.push(RawWord {
                parts: vec![Part::Arithmetic(inner)],
                span: self.span(start, self.pos),
            });
        } else {
            name = self.name();
            if self.take_keyword("in") {
                loop {
                    self.blanks(false);
                    match self.word() {
                        Some(word) => items.push(word),
                        None => break,
                    }
                }
            }
        }
        self.blanks(false);
        if self.peek() == Some(b';') {
            self.pos += 1;
        }
        let body = if self.take_keyword("do") {
            let body = self.list(&["done"]);
            self.take_keyword("done");
            body
        } else if self.take_keyword("{") {
            let body = self.list(&["}"]);
            self.take_keyword("}");
            body
        } else {
            Vec::new()
        };
        let redirects = self.redirects();
        Node::For {
            name,
            items,
            body,
            redirects,
            span: self.span(start, self.pos),
        }
    }

    fn case(&mut self, start: usize) -> Node {
        self.pos += 4;
        self.blanks(false);
        let mut words: Vec<_> = self.word().into_iter().collect();
        let mut body = Vec::new();
        if self.take_keyword("in") {
            loop {
                self.blanks(true);
                if self.peek().is_none() || self.take_keyword("esac") {
                    break;
                }
                self.case_patterns(&mut words);
                body.extend(self.list(&["esac"]));
                if self.peek() == Some(b';') {
                    while matches!(self.peek(), Some(b';' | b'&')) {
                        self.pos += 1;
                    }
                } else if self.peek() == Some(b')') {
                    // The end of an enclosing parenthesis, or a pattern that was not understood.
                    if self.parens > 0 {
                        break;
                    }
                    self.unexpected();
                }
            }
        }
        self.finish_words(start, words, body)
    }

    fn case_patterns(&mut self, words: &mut Vec<RawWord>) {
        if self.peek() == Some(b'(') {
            self.pos += 1;
        }
        loop {
            self.blanks(true);
            let before = self.pos;
            words.extend(self.word());
            self.blanks(false);
            match self.peek() {
                Some(b'|') => self.pos += 1,
                Some(b')') => {
                    self.pos += 1;
                    return;
                }
                None => return,
                Some(_) if self.pos == before => return self.unexpected(),
                Some(_) => {}
            }
        }
    }

    /// `[[ … ]]`: its words, for what is substituted in them.
    fn condition(&mut self, start: usize) -> Node {
        self.pos += 2;
        let mut words = Vec::new();
        loop {
            self.blanks(true);
            if self.peek().is_none() || self.keyword() == Some("]]") {
                self.pos = (self.pos + 2).min(self.text.len());
                break;
            }
            match self.word() {
                Some(word) => words.push(word),
                // `<`, `>`, `(`, `&&` … are operators here.
                None => self.pos = self.char_end(self.pos + 1),
            }
        }
        self.finish_words(start, words, Vec::new())
    }

    fn function(&mut self, start: usize) -> Option<Node> {
        self.pos += "function".len();
        self.blanks(false);
        let from = self.pos;
        self.word()?;
        let name = self.text[from..self.pos].to_owned();
        self.blanks(false);
        if self.peek() == Some(b'(') {
            self.balanced(b'(', b')');
        }
        self.function_body(start, name)
    }

    fn function_body(&mut self, start: usize, name: String) -> Option<Node> {
        self.blanks(true);
        let body = self.statement()?;
        let span = self.span(start, self.pos);
        Some(Node::Function(Rc::new(FunctionNode { name, body, span })))
    }

    fn finish_compound(&mut self, start: usize, body: Vec<Node>) -> Node {
        let redirects = self.redirects();
        Node::Compound {
            body,
            redirects,
            span: self.span(start, self.pos),
        }
    }

    fn finish_words(&mut self, start: usize, words: Vec<RawWord>, body: Vec<Node>) -> Node {
        let redirects = self.redirects();
        Node::Words {
            words,
            body,
            redirects,
            span: self.span(start, self.pos),
        }
    }

    fn redirects(&mut self) -> Vec<RawRedirect> {
        let mut redirects = Vec::new();
        loop {
            self.blanks(false);
            match self.redirect() {
                Some(redirect) => redirects.push(redirect),
                None => return redirects,
            }
        }
    }

    fn simple(&mut self, start: usize) -> Option<Node> {
        let mut simple = Simple::default();
        let mut end = start;
        loop {
            self.blanks(false);
            if let Some(redirect) = self.redirect() {
                simple.redirects.push(redirect);
                end = self.pos;
                continue;
            }
            if (simple.words.is_empty() || declares(&simple.words))
                && let Some(assignment) = self.assignment()
            {
                simple.assignments.push(assignment);
                end = self.pos;
                continue;
            }
            let from = self.pos;
            let Some(word) = self.word() else {
                break;
            };
            end = self.pos;
            if simple.words.is_empty() && simple.assignments.is_empty() && self.opens_function() {
                let name = self.text[from..self.pos].to_owned();
                self.blanks(false);
                self.balanced(b'(', b')');
                return self.function_body(start, name);
            }
            simple.words.push(word);
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty() {
            return None;
        }
        simple.span = self.span(start, end);
        Some(Node::Simple(simple))
    }

    /// Whether `()` follows, as after the name of a function.
    fn opens_function(&self) -> bool {
        let mut rest = self.text.as_bytes()[self.pos..]
            .iter()
            .skip_while(|b| matches!(b, b' ' | b'\t'));
        rest.next() == Some(&b'(') && rest.find(|b| !matches!(b, b' ' | b'\t')) == Some(&b')')
    }

    /// `NAME=value`, `NAME+=value`, `NAME[index]=value`, `NAME=(…)`.
    fn assignment(&mut self) -> Option<RawAssignment> {
        let start = self.pos;
        if !self.peek().is_some_and(is_name_start) {
            return None;
        }
        let mut pos = start;
        while self.at(pos).is_some_and(is_name) {
            pos += 1;
        }
        let name = self.text[start..pos].to_owned();
        if self.at(pos) == Some(b'[') {
            let close = self.text.as_bytes()[pos..]
                .iter()
                .take(128)
                .position(|b| *b == b']')?;
            pos += close + 1;
        }
        let append = self.at(pos) == Some(b'+');
        pos += usize::from(append);
        if self.at(pos) != Some(b'=') {
            return None;
        }
        self.pos = pos + 1;
        let value = if self.peek() == Some(b'(') {
            self.pos += 1;
            let mut items = Vec::new();
            loop {
                self.blanks(true);
                match self.word() {
                    Some(word) => items.push(word),
                    None => break,
                }
            }
            if self.peek() == Some(b')') {
                self.pos += 1;
            }
            RawValue::Array(items)
        } else {
            RawValue::Scalar(self.word().unwrap_or_default())
        };
        Some(RawAssignment {
            name,
            append,
            value,
            span: self.span(start, self.pos),
        })
    }

    fn redirect(&mut self) -> Option<RawRedirect> {
        const OPERATORS: &[(&str, RedirectOp)] = &[
            ("&>>", RedirectOp::AppendBoth),
            ("&>", RedirectOp::WriteBoth),
            ("<<<", RedirectOp::HereString),
            ("<<-", RedirectOp::HereDocument),
            ("<<", RedirectOp::HereDocument),
            ("<>", RedirectOp::ReadWrite),
            ("<&", RedirectOp::DuplicateIn),
            (">&", RedirectOp::DuplicateOut),
            (">>", RedirectOp::Append),
            (">|", RedirectOp::Write),
            ("<", RedirectOp::Read),
            (">", RedirectOp::Write),
        ];
        let start = self.pos;
        let fd_end = self.descriptor_end();
        let rest = self.text.get(fd_end..)?;
        if !rest.starts_with(['<', '>', '&']) {
            return None;
        }
        let &(symbol, op) = OPERATORS
            .iter()
            .find(|(symbol, _)| rest.starts_with(symbol))?;
        if matches!(op, RedirectOp::Read | RedirectOp::Write) && rest[1..].starts_with('(') {
            return None;
        }
        let fd = self.text[start..fd_end].parse().ok();
        self.pos = fd_end + symbol.len();
        while let Some(b' ' | b'\t') = self.peek() {
            self.pos += 1;
        }
        let from = self.pos;
        let target = self.word().unwrap_or_else(|| RawWord {
            parts: Vec::new(),
            span: self.span(from, from),
        });
        let (op, target) = match op {
            RedirectOp::HereDocument => (op, self.start_here(from, symbol == "<<-")),
            RedirectOp::DuplicateOut if !duplicates(&self.text[from..self.pos]) => {
                (RedirectOp::WriteBoth, target)
            }
            _ => (op, target),
        };
        Some(RawRedirect {
            op,
            fd,
            target,
            span: self.span(start, self.pos),
        })
    }

    /// The end of `12` or `{name}` right before a redirection operator; else the position itself.
    fn descriptor_end(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut pos = self.pos;
        if self.peek() == Some(b'{') {
            pos += 1;
            while self.at(pos).is_some_and(is_name) {
                pos += 1;
            }
            if self.at(pos) != Some(b'}') {
                return self.pos;
            }
            pos += 1;
        } else {
            while bytes.get(pos).is_some_and(u8::is_ascii_digit) {
                pos += 1;
            }
        }
        if matches!(self.at(pos), Some(b'<' | b'>')) {
            pos
        } else {
            self.pos
        }
    }

    /// Notes a here-document whose delimiter stands at `from`; its body is filled in afterwards.
    fn start_here(&mut self, from: usize, strip_tabs: bool) -> RawWord {
        let written = &self.text[from..self.pos];
        let quoted = written.contains(['\'', '"', '\\']);
        let delimiter: String = written
            .chars()
            .filter(|c| !matches!(c, '\'' | '"' | '\\'))
            .collect();
        let body = Rc::new(OnceCell::new());
        self.pending.push(PendingHere {
            body: Rc::clone(&body),
            delimiter,
            strip_tabs,
            quoted,
        });
        RawWord {
            parts: vec![Part::Here(body)],
            span: self.span(from, self.pos),
        }
    }
}

/// Whether the target of `>&` is a descriptor (`1`, `-`, `2-`, `$fd`) rather than a file.
fn duplicates(target: &str) -> bool {
    target.starts_with('$') || target.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// Whether assignments may follow as arguments.
fn declares(words: &[RawWord]) -> bool {
    let Some(Part::Text(name)) = words.first().and_then(|word| word.parts.first()) else {
        return false;
    };
    matches!(
        name.as_str(),
        "export" | "declare" | "typeset" | "local" | "readonly"
    )
}
