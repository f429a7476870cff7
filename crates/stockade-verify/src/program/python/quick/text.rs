//! Text literals of Python, and the expressions in them.

use super::super::super::escapes;
use super::super::super::ir::{Expr, ExprKind};
use super::Reader;
use super::lex::{Tok, quotes};

impl Reader<'_> {
    /// One literal, or several side by side.
    pub(super) fn literals(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let first = self.literal()?;
        if !matches!(self.token.tok, Tok::Text | Tok::Format) {
            return Some(first);
        }
        let mut height = self.height;
        let mut parts = vec![first];
        while matches!(self.token.tok, Tok::Text | Tok::Format) {
            parts.push(self.literal()?);
            height = height.max(self.height);
        }
        let kind = super::super::expr::join_texts(parts);
        self.made(start, kind, height)
    }

    fn literal(&mut self) -> Option<Expr> {
        let start = self.token.start;
        let written = self.word();
        let quote = written.find(['"', '\''])?;
        let (prefix, quoted) = written.split_at(quote);
        let raw = prefix.contains(['r', 'R']);
        if self.token.tok == Tok::Format {
            return self.format(start, raw);
        }
        let length = quotes(quoted.as_bytes());
        let content = quoted.get(length..quoted.len().checked_sub(length)?)?;
        let kind = if raw || !content.contains('\\') {
            ExprKind::Text(content.into())
        } else {
            ExprKind::Text(escapes::python(content, prefix.contains(['b', 'B'])).into())
        };
        self.advance()?;
        self.made(start, kind, 0)
    }

    /// `f"…{expression}…"`; the token is its beginning.
    fn format(&mut self, start: usize, raw: bool) -> Option<Expr> {
        let mark = self.lexer.byte(self.token.end - 1);
        let begins = self.word().find(['"', '\''])?;
        let length = self.word().len() - begins;
        let mut parts: Vec<Expr> = Vec::new();
        let mut text = String::new();
        let mut height = 0;
        let mut from = self.lexer.at;
        let open = std::mem::replace(&mut self.lexer.open, 1);
        loop {
            let at = self.lexer.at;
            let byte = self.lexer.byte(at);
            let doubled = self.lexer.byte(at + 1) == byte;
            match byte {
                b'\n' if length == 1 => return None,
                // `\N{…}` and `\{` are read differently by different readers.
                b'\\' if matches!(self.lexer.byte(at + 1), b'N' | b'{' | b'}') => return None,
                b'\\' => self.lexer.at += 2,
                b'{' | b'}' if doubled => self.lexer.at += 2,
                b'}' | 0 => return None,
                b'{' => {
                    self.content(from, at, raw, &mut text);
                    if !text.is_empty() {
                        let kind = ExprKind::Text(std::mem::take(&mut text).into());
                        parts.push(Expr::new(crate::result::Span::default(), kind));
                    }
                    parts.push(self.interpolation(mark, length)?);
                    height = height.max(self.height);
                    from = self.lexer.at;
                }
                _ if byte == mark && self.lexer.closes(mark, length) => break,
                _ => self.lexer.at += 1,
            }
        }
        self.content(from, self.lexer.at, raw, &mut text);
        self.lexer.at += length;
        self.token.end = self.lexer.at;
        self.lexer.open = open;
        self.advance()?;
        let span = self.span(start);
        let kind = if parts.is_empty() {
            ExprKind::Text(text.into())
        } else {
            if !text.is_empty() {
                parts.push(Expr::new(span, ExprKind::Text(text.into())));
            }
            for part in &mut parts {
                // Pieces of text stand where the whole literal stands.
                if part.span == crate::result::Span::default() {
                    part.span = span;
                }
            }
            ExprKind::Template(parts)
        };
        self.made(start, kind, height)
    }

    fn content(&self, from: usize, to: usize, raw: bool, text: &mut String) {
        let content = self.source(from, to);
        let decoded;
        let content = if raw || !content.contains('\\') {
            content
        } else {
            decoded = escapes::python(content, false);
            decoded.as_str()
        };
        if content.contains(['{', '}']) {
            text.push_str(&content.replace("{{", "{").replace("}}", "}"));
        } else {
            text.push_str(content);
        }
    }

    /// `{expression!r:format}`; what is formatted how is of no interest.
    fn interpolation(&mut self, mark: u8, length: usize) -> Option<Expr> {
        self.lexer.at += 1;
        self.token = self.lexer.next()?;
        let value = if self.is_yield() {
            return None;
        } else {
            self.expressions()?
        };
        let height = self.height;
        self.take("=")?;
        // The token after the expression was read already; what follows it is text again.
        self.lexer.at = self.token.start;
        if self.is("}") {
            self.lexer.open += 1;
        }
        if self.lexer.byte(self.lexer.at) == b'!' {
            self.lexer.at += 2;
        }
        if self.lexer.byte(self.lexer.at) == b':' {
            let mut nested = 0usize;
            loop {
                let byte = self.lexer.byte(self.lexer.at);
                match byte {
                    0 | b'\n' | b'\\' => return None,
                    b'{' => nested += 1,
                    b'}' if nested == 0 => break,
                    b'}' => nested -= 1,
                    _ if byte == mark && self.lexer.closes(mark, length) => return None,
                    _ => {}
                }
                self.lexer.at += 1;
            }
        }
        if self.lexer.byte(self.lexer.at) != b'}' {
            return None;
        }
        self.lexer.at += 1;
        self.height = height;
        Some(value)
    }
}
