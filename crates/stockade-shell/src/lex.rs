//! Characters to words: quoting, expansions, here-documents.

use crate::ast::{Node, Parameter, Part, RawWord};
use crate::escape;
use crate::model::{Problem, ProblemKind, Span};
use crate::parse::Parser;

/// Characters that end an unquoted word.
pub(crate) const fn is_meta(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b'\r' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')'
    )
}

pub(crate) const fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(crate) const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What ends the text being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// An unquoted word: a metacharacter.
    Meta,
    /// The closing double quote.
    DoubleQuote,
    /// The `}` of `${…}`, with the quoting of what is around it.
    Brace { quoted: bool },
    /// The end of the text: a here-document's body.
    End,
}

impl Until {
    /// Whether single quotes, patterns and braces are ordinary characters here.
    const fn quoted(self) -> bool {
        matches!(
            self,
            Self::DoubleQuote | Self::End | Self::Brace { quoted: true }
        )
    }
}

impl Parser<'_> {
    /// Reads the word at the current position; `None` if there is none.
    pub(crate) fn word(&mut self) -> Option<RawWord> {
        let start = self.pos;
        let parts = self.parts(Until::Meta);
        (self.pos > start).then(|| RawWord {
            parts,
            span: self.span(start, self.pos),
        })
    }

    /// Reads a whole text as the inside of a here-document whose delimiter is not quoted.
    pub(crate) fn here_text(&mut self) -> RawWord {
        let parts = vec![Part::Double(self.parts(Until::End))];
        RawWord {
            parts,
            span: self.span(0, self.pos),
        }
    }

    fn parts(&mut self, until: Until) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let quoted = until.quoted();
        while let Some(byte) = self.peek() {
            match byte {
                b'"' if until == Until::DoubleQuote => break,
                b'}' if matches!(until, Until::Brace { .. }) => break,
                b'\\' => self.backslash(quoted, &mut text, &mut parts),
                b'$' => self.dollar(quoted, &mut text, &mut parts),
                b'`' => {
                    let nodes = self.backquote();
                    push(&mut parts, &mut text, Part::Substitution(nodes));
                }
                b'"' if until != Until::End => {
                    let inner = self.double_quote();
                    push(&mut parts, &mut text, Part::Double(inner));
                }
                b'\'' if !quoted => {
                    let inner = self.single_quote();
                    push(&mut parts, &mut text, Part::Quoted(inner));
                }
                _ if quoted => self.plain(&mut text, |b| {
                    matches!(b, b'"' | b'}' | b'\\' | b'$' | b'`')
                }),
                b'(' if until == Until::Meta && extended_pattern(&mut parts, &mut text) => {
                    let pattern = self.balanced(b'(', b')');
                    if let Some(Part::Glob(prefix)) = parts.last_mut() {
                        prefix.push_str(&pattern);
                    }
                }
                b'<' | b'>' if until == Until::Meta && self.at(self.pos + 1) == Some(b'(') => {
                    self.pos += 2;
                    let nodes = self.nested_until_paren();
                    push(&mut parts, &mut text, Part::Process(nodes));
                }
                _ if until == Until::Meta && is_meta(byte) => break,
                b'*' | b'?' => {
                    self.pos += 1;
                    push(
                        &mut parts,
                        &mut text,
                        Part::Glob(char::from(byte).to_string()),
                    );
                }
                b'[' if self.bracket_closes() => {
                    self.pos += 1;
                    push(&mut parts, &mut text, Part::Glob("[".to_owned()));
                }
                b'{' | b'}' | b',' => {
                    self.pos += 1;
                    push(&mut parts, &mut text, Part::Brace(char::from(byte)));
                }
                _ => self.plain(&mut text, |b| {
                    is_meta(b)
                        || matches!(
                            b,
                            b'"' | b'\''
                                | b'\\'
                                | b'$'
                                | b'`'
                                | b'*'
                                | b'?'
                                | b'['
                                | b'{'
                                | b'}'
                                | b','
                        )
                }),
            }
        }
        flush(&mut parts, &mut text);
        parts
    }

    /// Takes one character, then all up to the next special one.
    fn plain(&mut self, text: &mut String, special: impl Fn(u8) -> bool) {
        let start = self.pos;
        self.pos += 1;
        while self.peek().is_some_and(|b| !special(b)) {
            self.pos += 1;
        }
        text.push_str(&self.text[start..self.char_end(self.pos)]);
        self.pos = self.char_end(self.pos);
    }

    fn backslash(&mut self, quoted: bool, text: &mut String, parts: &mut Vec<Part>) {
        let next = self.at(self.pos + 1);
        match next {
            Some(b'\n') => self.pos += 2,
            Some(b'\r') if self.at(self.pos + 2) == Some(b'\n') => self.pos += 3,
            None => {
                self.pos += 1;
                text.push('\\');
            }
            Some(b) if quoted && !matches!(b, b'$' | b'`' | b'"' | b'\\') => {
                self.pos += 1;
                text.push('\\');
            }
            Some(_) => {
                let start = self.pos + 1;
                let end = self.char_end(start + 1);
                let escaped = self.text[start..end].to_owned();
                self.pos = end;
                push(parts, text, Part::Quoted(escaped));
            }
        }
    }

    fn single_quote(&mut self) -> String {
        let start = self.pos + 1;
        if let Some(length) = self.text[start..].find('\'') {
            self.pos = start + length + 1;
            self.text[start..start + length].to_owned()
        } else {
            self.problem(ProblemKind::Unterminated, self.pos);
            self.pos = self.text.len();
            self.text[start..].to_owned()
        }
    }

    fn double_quote(&mut self) -> Vec<Part> {
        let start = self.pos;
        self.pos += 1;
        if !self.descend(start) {
            return Vec::new();
        }
        let parts = self.parts(Until::DoubleQuote);
        self.ascend();
        if self.peek() == Some(b'"') {
            self.pos += 1;
        } else {
            self.problem(ProblemKind::Unterminated, start);
        }
        parts
    }

    fn dollar(&mut self, quoted: bool, text: &mut String, parts: &mut Vec<Part>) {
        let start = self.pos;
        match self.at(start + 1) {
            Some(b'\'') if !quoted => {
                self.pos += 2;
                let from = self.pos;
                let decoded = self.ansi_quote();
                let numbers = escape::spells_letters(&self.text[from..self.pos]);
                let part = if numbers {
                    Part::Escaped(decoded)
                } else {
                    Part::Quoted(decoded)
                };
                push(parts, text, part);
            }
            Some(b'"') if !quoted => {
                self.pos += 1;
                let inner = self.double_quote();
                push(parts, text, Part::Double(inner));
            }
            Some(b'(') if self.at(start + 2) == Some(b'(') && self.arithmetic_ends(start + 3) => {
                self.pos = start + 3;
                let inner = self.arithmetic();
                push(parts, text, Part::Arithmetic(inner));
            }
            Some(b'(') => {
                self.pos += 2;
                let nodes = self.nested_until_paren();
                push(parts, text, Part::Substitution(nodes));
            }
            Some(b'{') => {
                self.pos += 2;
                let parameter = self.braced_parameter(quoted);
                push(parts, text, Part::Parameter(parameter));
            }
            Some(b'[') => {
                self.pos += 1;
                let inner = self.balanced(b'[', b']');
                push(parts, text, Part::Arithmetic(inner));
            }
            Some(b) if is_name_start(b) => {
                self.pos += 1;
                let name = self.name();
                push(
                    parts,
                    text,
                    Part::Parameter(Parameter {
                        name,
                        ..Parameter::default()
                    }),
                );
            }
            Some(b @ (b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' | b'0'..=b'9')) => {
                self.pos += 2;
                let name = char::from(b).to_string();
                push(
                    parts,
                    text,
                    Part::Parameter(Parameter {
                        name,
                        ..Parameter::default()
                    }),
                );
            }
            _ => {
                self.pos += 1;
                text.push('$');
            }
        }
    }

    pub(crate) fn name(&mut self) -> String {
        let start = self.pos;
        while self.peek().is_some_and(is_name) {
            self.pos += 1;
        }
        self.text[start..self.pos].to_owned()
    }

    fn ansi_quote(&mut self) -> String {
        let start = self.pos;
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.pos = (self.pos + 2).min(self.text.len()),
                b'\'' => {
                    let inner = escape::ansi(&self.text[start..self.pos]);
                    self.pos += 1;
                    return inner;
                }
                _ => self.pos += 1,
            }
        }
        self.pos = self.char_end(self.pos);
        self.problem(ProblemKind::Unterminated, start);
        escape::ansi(&self.text[start..])
    }

    fn braced_parameter(&mut self, quoted: bool) -> Parameter {
        let start = self.pos;
        let mut parameter = Parameter::default();
        if self.peek() == Some(b'#') && self.at(self.pos + 1).is_some_and(|b| b != b'}') {
            parameter.length = true;
            self.pos += 1;
        } else if self.peek() == Some(b'!') && self.at(self.pos + 1).is_some_and(is_name) {
            parameter.indirect = true;
            self.pos += 1;
        }
        parameter.name = match self.peek() {
            Some(b) if is_name(b) => self.name(),
            Some(b @ (b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')) => {
                self.pos += 1;
                char::from(b).to_string()
            }
            _ => String::new(),
        };
        if self.peek() == Some(b'[') {
            let index = self.balanced(b'[', b']');
            parameter.index = Some(
                index
                    .trim_start_matches('[')
                    .trim_end_matches(']')
                    .to_owned(),
            );
        }
        if self.peek().is_some_and(|b| b != b'}') {
            let operator = self.operator();
            if self.descend(start) {
                let from = self.pos;
                let parts = self.parts(Until::Brace { quoted });
                self.ascend();
                let operand = RawWord {
                    parts,
                    span: self.span(from, self.pos),
                };
                parameter.operation = Some((operator, operand));
            }
        }
        if self.peek() == Some(b'}') {
            self.pos += 1;
        } else {
            self.problem(ProblemKind::Unterminated, start);
        }
        parameter
    }

    fn operator(&mut self) -> String {
        const OPERATORS: &[&str] = &[
            ":-", ":=", ":+", ":?", "##", "%%", "//", "/#", "/%", "^^", ",,", "~~", "-", "=", "+",
            "?", "#", "%", "/", "^", ",", "~", ":", "@",
        ];
        let rest = &self.text[self.pos..];
        let found = OPERATORS
            .iter()
            .find(|operator| rest.starts_with(**operator));
        let operator = found.copied().unwrap_or_default().to_owned();
        self.pos += operator.len();
        operator
    }

    /// Takes a bracketed text whole, brackets included.
    pub(crate) fn balanced(&mut self, open: u8, close: u8) -> String {
        let start = self.pos;
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            self.pos += 1;
            if byte == open {
                depth += 1;
            } else if byte == close {
                depth -= 1;
                if depth == 0 {
                    return self.text[start..self.pos].to_owned();
                }
            }
        }
        self.problem(ProblemKind::Unterminated, start);
        self.text[start..].to_owned()
    }

    /// Whether the text from `from` is arithmetic, that is ends in `))` at its own depth.
    fn arithmetic_ends(&self, from: usize) -> bool {
        let mut depth = 0usize;
        let mut pos = from;
        while let Some(byte) = self.at(pos) {
            match byte {
                b'(' => depth += 1,
                b')' if depth > 0 => depth -= 1,
                b')' => return self.at(pos + 1) == Some(b')'),
                _ => {}
            }
            pos += 1;
        }
        true
    }

    /// Takes the inside of `$(( … ))` or `(( … ))` and its end.
    pub(crate) fn arithmetic(&mut self) -> String {
        let start = self.pos;
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => depth += 1,
                b')' if depth > 0 => depth -= 1,
                b')' => {
                    let inner = self.text[start..self.pos].to_owned();
                    self.pos = (self.pos + 2).min(self.text.len());
                    self.pos = self.char_end(self.pos);
                    return inner;
                }
                _ => {}
            }
            self.pos += 1;
        }
        self.problem(ProblemKind::Unterminated, start);
        self.text[start..].to_owned()
    }

    /// The commands of `` `…` ``, whose `\`, `$` and `` ` `` lose one backslash first.
    fn backquote(&mut self) -> Vec<Node> {
        let start = self.pos + 1;
        let mut pos = start;
        let mut escaped = false;
        let end = loop {
            match self.at(pos) {
                None => {
                    self.problem(ProblemKind::Unterminated, self.pos);
                    break self.text.len();
                }
                Some(b'`') => break pos,
                Some(b'\\') => {
                    escaped = true;
                    pos = (pos + 2).min(self.text.len());
                }
                Some(_) => pos += 1,
            }
        };
        let end = self.char_end(end);
        self.pos = (end + 1).min(self.text.len());
        let inner = &self.text[start..end];
        if escaped {
            let inner = escape::backquoted(inner);
            self.nested_text(&inner, None, start)
        } else {
            self.nested_text(inner, Some(start), start)
        }
    }

    /// Whether a `]` closes the `[` here within the same word. Looks a bounded way ahead.
    fn bracket_closes(&self) -> bool {
        self.text.as_bytes()[self.pos + 1..]
            .iter()
            .take(128)
            .take_while(|b| !is_meta(**b))
            .any(|b| *b == b']')
    }

    pub(crate) fn problem(&mut self, kind: ProblemKind, start: usize) {
        let span = self.span(start, self.text.len());
        self.problems.push(Problem { kind, span });
    }
}

/// Turns a pattern prefix (`@`, `!`, `+`, or a `?`/`*` just read) before `(` into a pattern.
fn extended_pattern(parts: &mut Vec<Part>, text: &mut String) -> bool {
    if text.ends_with(['@', '+', '!']) {
        let prefix = text.pop();
        push(parts, text, Part::Glob(prefix.into_iter().collect()));
        return true;
    }
    text.is_empty()
        && matches!(parts.last(), Some(Part::Glob(glob)) if glob.len() == 1 && glob != "[")
}

fn flush(parts: &mut Vec<Part>, text: &mut String) {
    if !text.is_empty() {
        parts.push(Part::Text(std::mem::take(text)));
    }
}

fn push(parts: &mut Vec<Part>, text: &mut String, part: Part) {
    flush(parts, text);
    parts.push(part);
}

/// The positions of the source that a nested text came from.
#[derive(Clone, Copy)]
pub(crate) enum Origin {
    /// Byte `n` of the text is byte `n + base` of the source.
    Exact { base: usize },
    /// The text was computed; all of it stands for this span.
    Within(Span),
}

impl Origin {
    pub(crate) fn span(self, start: usize, end: usize) -> Span {
        match self {
            Self::Exact { base } => Span::new(base + start, base + end),
            Self::Within(span) => span,
        }
    }
}
