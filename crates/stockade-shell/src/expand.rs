//! Words as the shell would pass them on: braces, tilde, parameters, substitutions, splitting.

use crate::ast::{Parameter, Part, RawWord};
use crate::braces::{self, Piece};
use crate::disguise;
use crate::lex::Origin;
use crate::model::{Hole, HoleKind, Place, Span, Spelling, Word};
use crate::parameter;
use crate::parse::Parser;
use crate::read::{Context, Reader};
use crate::wrappers;

/// A value longer than this is treated as unknown, so that `x=$x$x` can't grow without end.
const MAX_VALUE_BYTES: usize = 1 << 16;
/// A value that would give a word more unknown parts is unknown itself, for the same reason.
const MAX_HOLES: usize = 256;
/// Longer arithmetic expressions are not worked out.
const MOST_ARITHMETIC: usize = 256;
/// Most values of a loop variable that are followed.
const MOST_ALTERNATIVES: usize = 32;

/// What is known about a variable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Value {
    /// Array elements; one for a plain variable.
    pub(crate) fields: Vec<Word>,
    /// The fields are different values at different times: a loop's variable.
    pub(crate) alternatives: bool,
}

impl Value {
    pub(crate) fn one(word: Word) -> Self {
        Self {
            fields: vec![word],
            alternatives: false,
        }
    }
}

/// A word being put together.
#[derive(Default)]
pub(crate) struct Builder {
    done: Vec<Word>,
    text: String,
    holes: Vec<Hole>,
    quoted: bool,
    /// Something was added, be it the empty string in quotes.
    begun: bool,
    splits: bool,
    separators: String,
    tally: Tally,
}

/// Where the text of a word came from, in bytes.
#[derive(Default)]
struct Tally {
    /// Written in this word.
    typed: usize,
    /// From variables with constant values.
    given: usize,
    /// From values that were computed.
    computed: usize,
    /// How many values were a few letters only.
    pieces: usize,
    /// Words that begin in one value and end in the next.
    torn: usize,
    /// The text ends with a letter that a value gave.
    ends_in_value: bool,
}

/// A value that is no longer is a piece of a word, not a word.
const PIECE: usize = 3;
/// So many pieces side by side are no accident.
const MANY_PIECES: usize = 4;

impl Tally {
    fn add(&mut self, value: &Word) {
        let length = value.text.trim().len();
        if value.spelling.computed {
            self.computed += length;
        } else {
            self.given += length;
        }
        let letter = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let known = value.literal().is_some();
        let joins = known && self.ends_in_value && letter(value.text.bytes().next());
        self.torn += usize::from(joins);
        self.ends_in_value = known && letter(value.text.bytes().last());
        let short = (1..=PIECE).contains(&value.text.len());
        self.pieces += usize::from(short && value.literal().is_some());
    }

    fn spelling(&self, text: &str, holes: &[Hole]) -> Spelling {
        let small = self.pieces >= MANY_PIECES && text.len() <= self.pieces * PIECE;
        let open = |at: usize| holes.iter().any(|hole| hole.range.contains(&at));
        let letter = |(at, b): (usize, u8)| b.is_ascii_lowercase() || open(at);
        let letters = || text.len() > 1 && text.bytes().enumerate().all(letter);
        Spelling {
            computed: self.typed == 0
                && (small || self.torn > 0 || self.given == 0 && self.computed > 0),
            disguised: self.pieces > usize::from(self.typed == 0) && letters(),
            from_variables: self.typed == 0 && self.given > 0,
        }
    }
}

impl Builder {
    fn text(&mut self, text: &str) {
        self.begun = true;
        self.tally.typed += text.trim().len();
        self.tally.ends_in_value = false;
        self.text.push_str(text);
    }

    /// Adds letters that were written as numbers.
    fn spelled(&mut self, text: &str) {
        self.begun = true;
        self.tally.computed += text.trim().len();
        self.text.push_str(text);
    }

    fn hole(&mut self, placeholder: &str, kind: HoleKind) {
        let start = self.text.len();
        self.text(placeholder);
        self.holes.push(Hole {
            range: start..self.text.len(),
            kind,
        });
    }

    fn end_field(&mut self, span: Span) {
        let tally = std::mem::take(&mut self.tally);
        if std::mem::take(&mut self.begun) {
            self.done.push(Word {
                spelling: tally.spelling(&self.text, &self.holes),
                text: std::mem::take(&mut self.text),
                span,
                holes: std::mem::take(&mut self.holes),
                quoted: std::mem::take(&mut self.quoted),
            });
        }
    }

    /// Adds a known value. Unquoted, it splits into fields and its pattern characters are live.
    fn value(&mut self, value: &Word, quoted: bool, span: Span) {
        self.tally.add(value);
        if quoted || !self.splits {
            self.begun = true;
            let offset = self.text.len();
            self.text.push_str(&value.text);
            let shift = |hole: &Hole| Hole {
                range: hole.range.start + offset..hole.range.end + offset,
                kind: hole.kind.clone(),
            };
            self.holes.extend(value.holes.iter().map(shift));
            return;
        }
        let mut holes = value.holes.iter().peekable();
        let mut chars = value.text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if let Some(hole) =
                holes.next_if(|hole| hole.range.start == at && !hole.range.is_empty())
            {
                while chars.next_if(|(at, _)| *at < hole.range.end).is_some() {}
                self.hole(&value.text[hole.range.clone()], hole.kind.clone());
            } else if self.separators.contains(c) {
                let joins = self.tally.ends_in_value;
                self.end_field(span);
                self.tally.given = 1;
                self.tally.ends_in_value = joins;
            } else if matches!(c, '*' | '?') {
                self.hole(c.encode_utf8(&mut [0; 4]), HoleKind::Glob);
            } else {
                self.begun = true;
                self.text.push(c);
            }
        }
    }
}

impl Reader<'_> {
    /// The words that one written word becomes.
    pub(crate) fn fields(&mut self, raw: &RawWord, context: &Context) -> Vec<Word> {
        if let [Part::Text(text)] = raw.parts.as_slice()
            && !text.starts_with('~')
        {
            let text = text.clone();
            return vec![Word {
                text,
                span: raw.span,
                ..Word::default()
            }];
        }
        let mut out = Vec::new();
        for pieces in braces::expand(&raw.parts) {
            out.extend(self.expand(&pieces, raw.span, true, context));
        }
        if let Some(first) = out.first_mut() {
            let unset = disguise::drop_unset(first, |name| self.variables.contains_key(name));
            first.spelling.disguised |= unset || disguise::is_broken_up(&raw.parts);
        }
        out
    }

    /// The one word that a written word becomes where the shell does not split.
    pub(crate) fn single(&mut self, raw: &RawWord, context: &Context) -> Word {
        if let [Part::Here(body)] = raw.parts.as_slice() {
            return body
                .get()
                .map_or_else(Word::default, |body| self.single(body, context));
        }
        let pieces: Vec<_> = raw.parts.iter().map(Piece::Part).collect();
        let mut words = self.expand(&pieces, raw.span, false, context);
        if words.is_empty() {
            Word {
                span: raw.span,
                ..Word::default()
            }
        } else {
            words.swap_remove(0)
        }
    }

    fn expand(
        &mut self,
        pieces: &[Piece<'_>],
        span: Span,
        splits: bool,
        context: &Context,
    ) -> Vec<Word> {
        if !self.step() {
            return Vec::new();
        }
        if let Some(name) = splits.then(|| self.changing(pieces)).flatten() {
            return self.each_alternative(&name, pieces, span, context);
        }
        let separators = self.separators();
        let mut builder = Builder {
            splits,
            separators,
            ..Builder::default()
        };
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Number(number) => builder.text(&number.to_string()),
                Piece::Letter(letter) => builder.text(letter.encode_utf8(&mut [0; 4])),
                Piece::Part(Part::Text(text)) if at == 0 && text.starts_with('~') => {
                    let end = text.find('/').unwrap_or(text.len());
                    builder.hole(&text[..end], HoleKind::Tilde);
                    builder.text(&text[end..]);
                }
                Piece::Part(part) => {
                    let spliced = pieces.len() > 1;
                    self.part(part, false, spliced, &mut builder, span, context);
                }
            }
        }
        builder.end_field(span);
        builder.done
    }

    /// The first loop variable in a word.
    fn changing(&self, pieces: &[Piece<'_>]) -> Option<String> {
        if !self.has_alternatives {
            return None;
        }
        let named = |part: &Part| match part {
            Part::Parameter(parameter) => {
                let value = self.variables.get(&parameter.name)?;
                value.alternatives.then(|| parameter.name.clone())
            }
            _ => None,
        };
        pieces.iter().find_map(|piece| match piece {
            Piece::Part(Part::Double(inner)) => inner.iter().find_map(named),
            Piece::Part(part) => named(part),
            _ => None,
        })
    }

    fn each_alternative(
        &mut self,
        name: &str,
        pieces: &[Piece<'_>],
        span: Span,
        context: &Context,
    ) -> Vec<Word> {
        let Some(value) = self.variables.get(name).cloned() else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for field in value.fields.iter().take(MOST_ALTERNATIVES) {
            self.variables
                .insert(name.to_owned(), Value::one(field.clone()));
            out.extend(self.expand(pieces, span, true, context));
            if out.len() > MOST_ALTERNATIVES * 4 {
                break;
            }
        }
        self.variables.insert(name.to_owned(), value);
        out
    }

    fn separators(&self) -> String {
        self.variables
            .get("IFS")
            .and_then(|value| value.fields.first())
            .and_then(Word::literal)
            .map_or_else(|| " \t\n".to_owned(), str::to_owned)
    }

    fn part(
        &mut self,
        part: &Part,
        quoted: bool,
        spliced: bool,
        builder: &mut Builder,
        span: Span,
        context: &Context,
    ) {
        match part {
            Part::Text(text) => builder.text(text),
            Part::Quoted(text) => {
                builder.quoted = true;
                builder.text(text);
            }
            Part::Escaped(text) => {
                builder.quoted = true;
                builder.spelled(text);
            }
            Part::Double(inner) => {
                builder.quoted = true;
                // `"$@"` alone is as many words as there are parameters, maybe none.
                let only_list = matches!(inner.as_slice(), [Part::Parameter(p)] if p.name == "@");
                builder.begun |= !only_list;
                for part in inner {
                    self.part(
                        part,
                        true,
                        spliced || inner.len() > 1,
                        builder,
                        span,
                        context,
                    );
                }
            }
            Part::Glob(pattern) => builder.hole(pattern, HoleKind::Glob),
            Part::Brace(brace) => builder.text(brace.encode_utf8(&mut [0; 4])),
            // Always a word of its own, which `single` takes.
            Part::Here(_) => {}
            Part::Arithmetic(expression) => {
                if let Some(number) = self.number(expression, span, context) {
                    builder.text(&number.to_string());
                } else {
                    builder.hole("$(())", HoleKind::Arithmetic);
                }
            }
            Part::Substitution(nodes) => {
                let start = self.script.commands.len();
                let output = self.read_nodes(nodes, &context.inside(Place::Substitution));
                match output {
                    Some(mut word) if is_known(&word) && word.text.len() <= MAX_VALUE_BYTES => {
                        word.text.truncate(word.text.trim_end_matches('\n').len());
                        builder.value(&word, quoted, span);
                    }
                    _ => {
                        let commands = start..self.script.commands.len();
                        builder.hole("$()", HoleKind::Substitution { commands });
                    }
                }
            }
            Part::Process(nodes) => {
                let start = self.script.commands.len();
                let output = self.read_nodes(nodes, &context.inside(Place::Process));
                let commands = start..self.script.commands.len();
                builder.hole(
                    "/dev/fd/63",
                    HoleKind::Process {
                        commands,
                        output: output.map(Box::new),
                    },
                );
            }
            Part::Parameter(parameter) => {
                self.parameter(parameter, quoted, spliced, builder, span, context);
            }
        }
    }

    fn parameter(
        &mut self,
        parameter: &Parameter,
        quoted: bool,
        spliced: bool,
        builder: &mut Builder,
        span: Span,
        context: &Context,
    ) {
        if disguise::is_empty_list(parameter) && self.arguments.is_none() {
            self.empty_expansions += 1;
            return;
        }
        let index = parameter.index.as_ref();
        let index = index.map(|index| self.index(index, span, context));
        let mut fields = self.lookup(parameter, index.as_deref());
        if quoted && parameter.operation.is_none() {
            fields = fields.map(|fields| self.joined(parameter, fields));
        }
        let operand = parameter.operation.as_ref().map(|(operator, raw)| {
            let operand = self.single(raw, context);
            (operator.as_str(), operand)
        });
        let text = constant_scalar(parameter, fields.as_deref());
        let result = parameter::apply(parameter, fields, operand.as_ref());
        if let (Some((operator, operand)), Some(text)) = (&operand, text) {
            match (*operator, operand.literal()) {
                // A prompt's text: the commands substituted in it run.
                ("@", Some("P")) => drop(self.expanded(&text, span, context)),
                (":", _) if result.is_none() => {
                    return builder.value(&unknown_slice(&parameter.name), true, span);
                }
                _ => {}
            }
        }
        match result {
            Some(fields) => {
                if let (Some((":=" | "=", _)), [field]) = (&operand, fields.as_slice()) {
                    self.variables
                        .insert(parameter.name.clone(), Value::one(field.clone()));
                }
                for (at, field) in fields.iter().enumerate() {
                    if at > 0 {
                        builder.end_field(span);
                    }
                    self.expanded_bytes += field.text.len();
                    if field.text.len() > MAX_VALUE_BYTES
                        || builder.holes.len() + field.holes.len() > MAX_HOLES
                        || self.expanded_bytes > self.limits.nested_bytes
                    {
                        builder.hole("$_", HoleKind::Variable(parameter.name.clone()));
                    } else {
                        builder.value(field, quoted, span);
                        builder.begun |= quoted;
                    }
                }
            }
            // Without arguments `$@` and `$*` vanish: `who$@ami` is `whoami`.
            None if spliced
                && matches!(parameter.name.as_str(), "@" | "*")
                && parameter.operation.is_none() => {}
            None => {
                let name = self.target(parameter).unwrap_or(&parameter.name).to_owned();
                let placeholder = format!("${name}");
                builder.hole(&placeholder, HoleKind::Variable(name));
            }
        }
    }

    /// The index of an array's element, expanded as far as it is constant.
    fn index(&mut self, index: &str, span: Span, context: &Context) -> String {
        if index.contains(['$', '`']) {
            self.expanded(index, span, context)
                .map_or_else(|| index.to_owned(), |text| text.trim().to_owned())
        } else {
            index.to_owned()
        }
    }

    /// The value of an arithmetic expression, if it is constant. Its commands are noted, once:
    /// expressions nest, and reading each twice would double the work with every level.
    fn number(&mut self, expression: &str, span: Span, context: &Context) -> Option<i64> {
        let known = parameter::arithmetic(expression);
        if known.is_some() {
            return known;
        }
        if expression.len() > MOST_ARITHMETIC {
            self.commands_within(expression, span, context);
            return None;
        }
        let text = if expression.contains(['$', '`']) {
            self.expanded(expression, span, context)?
        } else {
            expression.to_owned()
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '#';
        let mut whole = String::new();
        for part in text.split_inclusive(|c| !is_name(c)) {
            let name = part.trim_end_matches(|c| !is_name(c));
            if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                let value = self.variables.get(name)?.fields.first()?;
                whole.push_str(value.literal()?);
                whole.push_str(&part[name.len()..]);
            } else {
                whole.push_str(part);
            }
        }
        parameter::arithmetic(&whole)
    }

    /// A text as within double quotes, if all of it is constant. Its commands are noted.
    fn expanded(&mut self, text: &str, span: Span, context: &Context) -> Option<String> {
        let mut parser = Parser::new(text, Origin::Within(span), 0, self.limits.depth);
        let raw = parser.here_text();
        let word = self.single(&raw, &context.inside(Place::Substitution));
        word.literal().map(str::to_owned)
    }

    /// The variable that `${!name}` or a reference stands for.
    fn target<'s>(&'s self, parameter: &'s Parameter) -> Option<&'s str> {
        if parameter.indirect || self.references.contains(&parameter.name) {
            let value = self.variables.get(&parameter.name)?;
            return value.fields.first()?.literal();
        }
        Some(&parameter.name)
    }

    /// Commands whose output an arithmetic expression uses: `$(( $(command) + 1 ))`.
    fn commands_within(&mut self, expression: &str, span: Span, context: &Context) {
        if expression.contains("$(") || expression.contains('`') {
            let text = format!(": \"{}\"", expression.replace('"', " "));
            let word = Word {
                text,
                span,
                ..Word::default()
            };
            self.nested(&word, &context.inside(Place::Substitution));
        }
    }

    /// `"${list[*]}"` with an `IFS` of the script's own: one word, joined by its first character.
    fn joined(&self, parameter: &Parameter, fields: Vec<Word>) -> Vec<Word> {
        let all = parameter.name == "*" || parameter.index.as_deref() == Some("*");
        let separator = self.variables.get("IFS");
        let separator = separator.and_then(|value| value.fields.first()?.literal());
        let (true, Some(separator)) = (all, separator) else {
            return fields;
        };
        let between = Word {
            text: separator.chars().take(1).collect(),
            ..Word::default()
        };
        let join =
            |left: Word, right: Word| wrappers::concat(wrappers::concat(left, &between), &right);
        fields.into_iter().reduce(join).into_iter().collect()
    }

    /// The fields of a parameter before its operation; `None` if unknown.
    fn lookup(&self, parameter: &Parameter, index: Option<&str>) -> Option<Vec<Word>> {
        let name = self.target(parameter)?;
        if let Some(arguments) = &self.arguments {
            match name {
                "@" | "*" => return Some(arguments.clone()),
                _ => {}
            }
            if let Ok(at @ 1..) = name.parse::<usize>() {
                return arguments.get(at - 1).map(|word| vec![word.clone()]);
            }
        }
        if name == "IFS" && !self.variables.contains_key(name) {
            let text = " \t\n".to_owned();
            return Some(vec![Word {
                text,
                ..Word::default()
            }]);
        }
        let value = self.variables.get(name)?;
        match index {
            Some("@" | "*") => Some(value.fields.clone()),
            Some(index) => {
                if let Ok(at) = index.parse::<usize>() {
                    return Some(vec![value.fields.get(at)?.clone()]);
                }
                // `declare -A m=([key]=value)`
                let index = index.trim_matches(['"', '\'']);
                let key = format!("[{index}]=");
                let mut fields = value.fields.iter();
                let found = fields.find(|word| word.text.starts_with(&key))?;
                Some(vec![wrappers::rest(found, key.len())])
            }
            None => Some(value.fields.first().cloned().into_iter().collect()),
        }
    }
}

/// The constant value of a plain variable.
fn constant_scalar(parameter: &Parameter, fields: Option<&[Word]>) -> Option<String> {
    let is_list = parameter.index.is_some() || matches!(parameter.name.as_str(), "@" | "*");
    match fields {
        Some([word]) if !is_list => word.literal().map(str::to_owned),
        _ => None,
    }
}

/// Letters of a constant text, picked by a number that is not known: `${text:i:1}` in a loop.
fn unknown_slice(name: &str) -> Word {
    let text = format!("${name}");
    Word {
        holes: vec![Hole {
            range: 0..text.len(),
            kind: HoleKind::Variable(name.to_owned()),
        }],
        text,
        spelling: Spelling {
            computed: true,
            ..Spelling::default()
        },
        ..Word::default()
    }
}

/// Whether a text is known but for a home directory.
fn is_known(word: &Word) -> bool {
    word.holes.iter().all(|hole| match &hole.kind {
        HoleKind::Tilde => true,
        HoleKind::Variable(name) => name == "HOME",
        _ => false,
    })
}
