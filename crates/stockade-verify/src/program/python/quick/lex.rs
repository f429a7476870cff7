//! Tokens of Python, one at a time.

use crate::result::Span;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok {
    Name,
    /// A number with nothing but digits, a base and a suffix.
    Int,
    Float,
    /// A whole literal without expressions in it.
    Text,
    /// The beginning of a literal with expressions in it, up to and with its quotes.
    Format,
    /// An operator or bracket, by its characters.
    Op(&'static str),
    Word(Word),
    Newline,
    Indent,
    Dedent,
    End,
}

/// Reserved words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    And,
    As,
    Assert,
    Async,
    Await,
    Break,
    Class,
    Continue,
    Def,
    Del,
    Elif,
    Else,
    Except,
    False,
    Finally,
    For,
    From,
    Global,
    If,
    Import,
    In,
    Is,
    Lambda,
    None,
    Nonlocal,
    Not,
    Or,
    Pass,
    Raise,
    Return,
    True,
    Try,
    While,
    With,
    Yield,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) tok: Tok,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Reads tokens. Whatever it does not know for certain ends the reading with `None`.
pub(super) struct Lexer<'t> {
    pub(super) text: &'t str,
    bytes: &'t [u8],
    pub(super) at: usize,
    /// Brackets that are open: inside, lines mean nothing.
    pub(super) open: usize,
    indents: Vec<usize>,
    /// Blocks that end before the next token.
    dedents: usize,
    line_begins: bool,
    /// Nothing stands on this line yet.
    fresh: bool,
    ended: bool,
    pub(super) comments: Vec<Span>,
}

/// Blocks inside one another.
const MOST_INDENTS: usize = 40;

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            open: 0,
            indents: vec![0],
            dedents: 0,
            line_begins: true,
            fresh: true,
            ended: false,
            comments: Vec::new(),
        }
    }

    pub(super) fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    fn token(&self, tok: Tok, start: usize) -> Token {
        Token {
            tok,
            start,
            end: self.at,
        }
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        if self.dedents > 0 {
            self.dedents -= 1;
            return Some(self.token(Tok::Dedent, self.at));
        }
        if self.line_begins && self.open == 0 {
            self.line_begins = false;
            match self.indentation()? {
                Tok::Newline => {}
                tok => return Some(self.token(tok, self.at)),
            }
        }
        self.blanks()?;
        let start = self.at;
        let Some(first) = self.bytes.get(start).copied() else {
            return self.end();
        };
        self.fresh = first == b'\n';
        match first {
            b'\n' => {
                self.at += 1;
                self.line_begins = true;
                Some(Token {
                    tok: Tok::Newline,
                    start,
                    end: start,
                })
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.name(start),
            b'0'..=b'9' => Some(self.number(start)),
            b'.' if self.byte(start + 1).is_ascii_digit() => Some(self.number(start)),
            b'"' | b'\'' => self.literal(start, start),
            _ => self.operator(start),
        }
    }

    /// Spaces, continued lines and comments; ends of lines too inside brackets.
    fn blanks(&mut self) -> Option<()> {
        loop {
            match self.byte(self.at) {
                b' ' | b'\t' | b'\x0c' => self.at += 1,
                b'\r' if self.byte(self.at + 1) == b'\n' => self.at += 1,
                b'\n' if self.open > 0 => self.at += 1,
                b'\\' => match (self.byte(self.at + 1), self.byte(self.at + 2)) {
                    (b'\n', _) => self.at += 2,
                    (b'\r', b'\n') => self.at += 3,
                    _ => return None,
                },
                b'#' => self.comment(),
                _ => return Some(()),
            }
        }
    }

    fn comment(&mut self) {
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        let length = length - usize::from(rest[..length].ends_with(b"\r"));
        self.at += length;
        self.comments.push(Span::new(start, self.at));
    }

    /// The first line that says something: `Indent` or `Dedent` if it opens or closes a block.
    fn indentation(&mut self) -> Option<Tok> {
        let mut width;
        loop {
            width = 0;
            let mut begun = self.at;
            loop {
                match self.byte(self.at) {
                    b' ' => width += 1,
                    b'\t' => width += 8,
                    // A new page begins at the margin.
                    b'\x0c' => {
                        width = 0;
                        begun = self.at + 1;
                    }
                    _ => break,
                }
                self.at += 1;
            }
            // Whether a tab after spaces is wider depends on who reads it.
            let blank = &self.bytes[begun..self.at];
            if blank.contains(&b'\t') && blank.contains(&b' ') {
                return None;
            }
            match self.byte(self.at) {
                b'#' => self.comment(),
                b'\\' => return None,
                _ => {}
            }
            match (self.byte(self.at), self.byte(self.at + 1)) {
                (b'\n', _) => self.at += 1,
                (b'\r', b'\n') => self.at += 2,
                _ => break,
            }
        }
        if self.at == self.bytes.len() {
            return Some(Tok::Newline);
        }
        let current = self.indents.last().copied().unwrap_or(0);
        if width > current {
            self.indents.push(width);
            (self.indents.len() <= MOST_INDENTS).then_some(())?;
            return Some(Tok::Indent);
        }
        while self.indents.last().is_some_and(|indent| *indent > width) {
            self.indents.pop();
            self.dedents += 1;
        }
        if self.indents.last() != Some(&width) {
            return None;
        }
        if self.dedents > 0 {
            self.dedents -= 1;
            return Some(Tok::Dedent);
        }
        Some(Tok::Newline)
    }

    fn end(&mut self) -> Option<Token> {
        if self.open > 0 {
            return None;
        }
        if !self.ended {
            self.ended = true;
            self.dedents = self.indents.len() - 1;
            if !self.fresh {
                return Some(self.token(Tok::Newline, self.at));
            }
        }
        if self.dedents > 0 {
            self.dedents -= 1;
            return Some(self.token(Tok::Dedent, self.at));
        }
        Some(self.token(Tok::End, self.at))
    }

    fn name(&mut self, start: usize) -> Option<Token> {
        let rest = &self.bytes[start..];
        let length = rest
            .iter()
            .position(|b| !(b.is_ascii_alphanumeric() || *b == b'_'))
            .unwrap_or(rest.len());
        self.at = start + length;
        let after = self.byte(self.at);
        // Names in other scripts are left to the grammar.
        if after >= 0x80 {
            return None;
        }
        if matches!(after, b'"' | b'\'') {
            return self.literal(start, self.at);
        }
        let word = reserved(&rest[..length]);
        Some(self.token(word.map_or(Tok::Name, Tok::Word), start))
    }

    fn number(&mut self, start: usize) -> Token {
        let mut float = false;
        let based = self.byte(start) == b'0'
            && matches!(
                self.byte(start + 1),
                b'x' | b'X' | b'o' | b'O' | b'b' | b'B'
            );
        loop {
            match self.byte(self.at) {
                b'.' if !based && !float => float = true,
                b'e' | b'E' if !based => {
                    float = true;
                    if matches!(self.byte(self.at + 1), b'+' | b'-') {
                        self.at += 1;
                    }
                }
                b'0'..=b'9' | b'_' | b'j' | b'J' | b'l' | b'L' => {}
                b if based && b.is_ascii_alphanumeric() => {}
                _ => break,
            }
            self.at += 1;
        }
        self.token(if float { Tok::Float } else { Tok::Int }, start)
    }

    /// A literal: its prefix begins at `start`, its quotes stand at `quote`.
    fn literal(&mut self, start: usize, quote: usize) -> Option<Token> {
        let prefix = &self.bytes[start..quote];
        let known = prefix
            .iter()
            .all(|b| matches!(b.to_ascii_lowercase(), b'r' | b'b' | b'u' | b'f'));
        if prefix.len() > 2 || !known {
            return None;
        }
        let length = quotes(&self.bytes[quote..]);
        self.at = quote + length;
        if prefix.iter().any(|b| b.eq_ignore_ascii_case(&b'f')) {
            return Some(self.token(Tok::Format, start));
        }
        let mark = self.bytes[quote];
        loop {
            match self.bytes.get(self.at).copied()? {
                b'\\' => self.at += 2,
                b'\n' if length == 1 => return None,
                b if b == mark && self.closes(mark, length) => {
                    self.at += length;
                    return Some(self.token(Tok::Text, start));
                }
                _ => self.at += 1,
            }
        }
    }

    /// Whether the quotes here end a literal that began with `length` of them.
    pub(super) fn closes(&self, mark: u8, length: usize) -> bool {
        (0..length).all(|next| self.byte(self.at + next) == mark)
    }

    fn operator(&mut self, start: usize) -> Option<Token> {
        const LONG: &[&str] = &[
            "**=", "//=", ">>=", "<<=", "...", "==", "!=", "<=", ">=", ":=", "->", "+=", "-=",
            "*=", "/=", "%=", "@=", "&=", "|=", "^=", "**", "//", "<<", ">>",
        ];
        const SHORT: &[&str] = &[
            "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=", "+", "-", "*", "/", "%", "@",
            "&", "|", "^", "~", "<", ">", "!",
        ];
        let rest = &self.bytes[start..];
        let second = rest.get(1).copied().unwrap_or(0);
        let long = matches!(second, b'=' | b'*' | b'/' | b'<' | b'>' | b'.')
            .then(|| LONG.iter().find(|op| rest.starts_with(op.as_bytes())))
            .flatten();
        let op = match long {
            Some(op) => op,
            None => SHORT.iter().find(|op| op.as_bytes()[0] == rest[0])?,
        };
        self.at += op.len();
        match *op {
            "(" | "[" | "{" => self.open += 1,
            ")" | "]" | "}" => self.open = self.open.checked_sub(1)?,
            _ => {}
        }
        Some(self.token(Tok::Op(op), start))
    }
}

/// How many quotes a literal begins with: one or three.
pub(in super::super) fn quotes(bytes: &[u8]) -> usize {
    match bytes {
        [first, second, third, ..] if first == second && second == third => 3,
        _ => 1,
    }
}

fn reserved(name: &[u8]) -> Option<Word> {
    let word = match name.len() {
        2 => match name {
            b"as" => Word::As,
            b"if" => Word::If,
            b"in" => Word::In,
            b"is" => Word::Is,
            b"or" => Word::Or,
            _ => return None,
        },
        3 => match name {
            b"and" => Word::And,
            b"def" => Word::Def,
            b"del" => Word::Del,
            b"for" => Word::For,
            b"not" => Word::Not,
            b"try" => Word::Try,
            _ => return None,
        },
        4 => match name {
            b"elif" => Word::Elif,
            b"else" => Word::Else,
            b"from" => Word::From,
            b"None" => Word::None,
            b"pass" => Word::Pass,
            b"True" => Word::True,
            b"with" => Word::With,
            _ => return None,
        },
        5 => match name {
            b"async" => Word::Async,
            b"await" => Word::Await,
            b"break" => Word::Break,
            b"class" => Word::Class,
            b"False" => Word::False,
            b"raise" => Word::Raise,
            b"while" => Word::While,
            b"yield" => Word::Yield,
            _ => return None,
        },
        6 => match name {
            b"assert" => Word::Assert,
            b"except" => Word::Except,
            b"global" => Word::Global,
            b"import" => Word::Import,
            b"lambda" => Word::Lambda,
            b"return" => Word::Return,
            _ => return None,
        },
        7 => (name == b"finally").then_some(Word::Finally)?,
        8 => match name {
            b"continue" => Word::Continue,
            b"nonlocal" => Word::Nonlocal,
            _ => return None,
        },
        _ => return None,
    };
    Some(word)
}
