//! Statements to commands, in order, with what is known of variables, functions and files.

mod files;
mod steps;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::Limits;
use crate::ast::{FunctionNode, Node, RawAssignment, RawRedirect, RawValue, Simple};
use crate::builtins;
use crate::expand::Value;
use crate::fold;
use crate::lex::Origin;
use crate::model::{
    Assignment, Command, CommandId, Embedded, Function, HoleKind, Pipeline, Place, Problem,
    ProblemKind, Redirect, RedirectOp, Script, Span, Stdin, Word,
};
use crate::parse::Parser;
use crate::wrappers::{self, Inner};

/// Calls of functions within functions that are followed.
const CALL_DEPTH: usize = 4;
/// Commands read again because a function was called with constants.
const CALL_COMMANDS: usize = 5_000;

/// What surrounds a statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    /// The stage that the next simple command itself is.
    stage: Option<(usize, usize)>,
    /// The stage around, for statements in compound commands.
    outer: Option<(usize, usize)>,
    place: Place,
    function: Option<usize>,
    parent: Option<CommandId>,
    stdin: Stdin,
    background: bool,
    /// The output will be used, so it is worth working out.
    wanted: bool,
}

impl Context {
    /// For statements inside a compound command.
    fn within(&self) -> Self {
        let outer = self.stage.or(self.outer);
        Self {
            stage: None,
            outer,
            ..self.clone()
        }
    }

    /// For statements inside a substitution.
    pub(crate) fn inside(&self, place: Place) -> Self {
        Self {
            place,
            wanted: true,
            background: false,
            ..self.within()
        }
    }
}

/// The state of reading one script.
pub(crate) struct Reader<'a> {
    source: &'a str,
    pub(crate) limits: &'a Limits,
    pub(crate) script: Script,
    pub(crate) variables: HashMap<String, Value>,
    /// Some variable is a loop's; spares the search otherwise.
    pub(crate) has_alternatives: bool,
    /// `$1` … of the function being read, if it was called with known words.
    pub(crate) arguments: Option<Vec<Word>>,
    functions: HashMap<String, Rc<FunctionNode>>,
    files: HashMap<String, Word>,
    pub(crate) aliases: HashMap<String, Word>,
    /// Names that stand for other names: `declare -n`.
    pub(crate) references: HashSet<String>,
    depth: usize,
    nested_bytes: usize,
    call_depth: usize,
    called: usize,
    /// Bytes that variables were expanded to.
    pub(crate) expanded_bytes: usize,
    /// Expansions so far that are empty by construction.
    pub(crate) empty_expansions: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: &'a str, limits: &'a Limits) -> Self {
        Self {
            source,
            limits,
            script: Script::default(),
            variables: HashMap::new(),
            has_alternatives: false,
            arguments: None,
            functions: HashMap::new(),
            files: HashMap::new(),
            aliases: HashMap::new(),
            references: HashSet::new(),
            depth: 0,
            nested_bytes: 0,
            call_depth: 0,
            called: 0,
            expanded_bytes: 0,
            empty_expansions: 0,
        }
    }

    pub(crate) fn run(mut self) -> Script {
        let mut parser = Parser::new(self.source, Origin::Exact { base: 0 }, 0, self.limits.depth);
        let nodes = parser.script();
        self.script.problems = parser.problems;
        self.script.comments = parser.comments;
        self.read_nodes(&nodes, &Context::default());
        self.script
    }

    /// Reads statements; the constant text they print, if it is.
    pub(crate) fn read_nodes(&mut self, nodes: &[Node], context: &Context) -> Option<Word> {
        let mut output = Some(Word::default());
        let mut pieces = 0;
        for node in nodes {
            let text = self.node(node, context);
            pieces += usize::from(text.as_ref().is_some_and(|text| !text.text.is_empty()));
            output = output
                .zip(text)
                .map(|(output, text)| wrappers::concat(output, &text));
        }
        output.map(|whole| printed_in_pieces(whole, pieces))
    }

    fn node(&mut self, node: &Node, context: &Context) -> Option<Word> {
        if !self.step() {
            return None;
        }
        if self.script.commands.len() >= self.limits.commands {
            self.too_large();
            return None;
        }
        match node {
            Node::Simple(simple) => self.simple(simple, context),
            Node::Pipeline { stages, span } => self.pipeline(stages, *span, context),
            Node::Background(inner) => {
                let context = Context {
                    background: true,
                    ..context.clone()
                };
                self.node(inner, &context)
            }
            Node::Compound {
                body,
                redirects,
                span,
            } => {
                let inner = self.redirected(redirects, *span, context);
                self.read_nodes(body, &inner)
            }
            Node::For {
                name,
                items,
                body,
                redirects,
                span,
            } => {
                let inner = self.redirected(redirects, *span, context);
                let mut fields = Vec::new();
                for item in items {
                    fields.extend(self.fields(item, context));
                }
                if context.wanted && !name.is_empty() && self.can_unroll(&fields) {
                    return self.unroll(name, fields, body, &inner);
                }
                if fields.is_empty() || name.is_empty() {
                    self.set_unknown(name);
                } else {
                    self.has_alternatives = true;
                    self.variables.insert(
                        name.clone(),
                        Value {
                            fields,
                            alternatives: true,
                        },
                    );
                }
                self.read_nodes(body, &inner);
                None
            }
            Node::Words {
                words,
                body,
                redirects,
                span,
            } => {
                let inner = self.redirected(redirects, *span, context);
                for word in words {
                    self.single(word, &inner);
                }
                self.read_nodes(body, &inner);
                None
            }
            Node::Function(function) => {
                self.define(function, context);
                None
            }
        }
    }

    /// Whether a loop over constants is short enough to be followed round by round.
    fn can_unroll(&self, fields: &[Word]) -> bool {
        let known = fields.iter().all(|field| field.literal().is_some());
        known && !fields.is_empty() && self.called + fields.len() < CALL_COMMANDS
    }

    /// Reads a loop's body once for each value; the text that all rounds print.
    fn unroll(
        &mut self,
        name: &str,
        fields: Vec<Word>,
        body: &[Node],
        context: &Context,
    ) -> Option<Word> {
        let rounds = fields.len();
        let mut output = Some(Word::default());
        for field in fields {
            let before = self.script.commands.len();
            self.variables.insert(name.to_owned(), Value::one(field));
            let text = self.read_nodes(body, context);
            output = output
                .zip(text)
                .map(|(output, text)| wrappers::concat(output, &text));
            self.called += self.script.commands.len() - before;
            if output.is_none() || self.called >= CALL_COMMANDS {
                return None;
            }
        }
        output.map(|whole| printed_in_pieces(whole, rounds))
    }

    fn pipeline(&mut self, stages: &[Node], span: Span, context: &Context) -> Option<Word> {
        let id = self.new_pipeline(stages.len(), span, context);
        let mut stdin = context.stdin.clone();
        let mut output = None;
        for (at, stage) in stages.iter().enumerate() {
            let wanted = context.wanted || at + 1 < stages.len();
            let inner = Context {
                stage: Some((id, at)),
                stdin,
                wanted,
                ..context.clone()
            };
            output = self.node(stage, &inner);
            stdin = output.clone().map_or(Stdin::Pipe, Stdin::Text);
        }
        self.script.pipelines[id].commands.end = self.script.commands.len();
        output
    }

    fn new_pipeline(&mut self, stages: usize, span: Span, context: &Context) -> usize {
        let start = self.script.commands.len();
        let outer = context.stage.or(context.outer);
        self.script.pipelines.push(Pipeline {
            stages,
            outer,
            commands: start..start,
            span,
        });
        self.script.pipelines.len() - 1
    }

    /// The context inside a compound command, its redirections noted as a command without words.
    fn redirected(&mut self, redirects: &[RawRedirect], span: Span, context: &Context) -> Context {
        let mut inner = context.within();
        if redirects.is_empty() {
            return inner;
        }
        let redirects = self.redirects(redirects, context);
        inner.stdin = stdin_after(&redirects, &inner.stdin);
        let command = Command {
            span,
            redirects,
            ..Command::default()
        };
        self.push(command, context);
        inner
    }

    fn redirects(&mut self, raw: &[RawRedirect], context: &Context) -> Vec<Redirect> {
        raw.iter()
            .map(|redirect| Redirect {
                op: redirect.op,
                fd: redirect.fd,
                target: self.single(&redirect.target, context),
                span: redirect.span,
            })
            .collect()
    }

    fn push(&mut self, mut command: Command, context: &Context) -> CommandId {
        let (pipeline, stage) = context.stage.unwrap_or_else(|| {
            let id = self.new_pipeline(1, command.span, context);
            self.script.pipelines[id].commands.end += 1;
            (id, 0)
        });
        command.pipeline = pipeline;
        command.stage = stage;
        command.parent = context.parent;
        command.place = context.place;
        command.function = context.function;
        command.background = context.background;
        self.script.commands.push(command);
        self.script.commands.len() - 1
    }

    fn simple(&mut self, simple: &Simple, context: &Context) -> Option<Word> {
        let empty_before = self.empty_expansions;
        let values = self.values(&simple.assignments, context);
        let mut words = Vec::with_capacity(simple.words.len());
        for raw in &simple.words {
            words.extend(self.fields(raw, context));
        }
        let redirects = self.redirects(&simple.redirects, context);
        let stdin = stdin_after(&redirects, &context.stdin);
        let declares = matches!(
            words.first().map(|word| word.text.as_str()),
            None | Some("export" | "declare" | "typeset" | "local" | "readonly")
        );
        if declares {
            self.assign(&simple.assignments, &values);
            let refers = |word: &Word| word.text.starts_with('-') && word.text.contains('n');
            if words.len() > 1 && words.iter().any(refers) {
                let names = simple.assignments.iter().map(|raw| raw.name.clone());
                self.references.extend(names.take(256));
            }
        }
        let assignments = simple
            .assignments
            .iter()
            .zip(&values)
            .map(|(raw, fields)| Assignment {
                name: raw.name.clone(),
                value: wrappers::join(fields),
                span: raw.span,
            })
            .collect();
        let command = Command {
            span: simple.span,
            words,
            assignments,
            redirects,
            stdin,
            empty_expansions: self.empty_expansions - empty_before,
            ..Command::default()
        };
        self.command(command, context)
    }

    /// Notes a command and whatever it starts; its constant output, if that is wanted.
    fn command(&mut self, mut command: Command, context: &Context) -> Option<Word> {
        if self.script.commands.len() >= self.limits.commands {
            self.too_large();
            return None;
        }
        builtins::name_shell(&mut command);
        self.builtin(&command);
        let name = command.name();
        let writes = command
            .redirects
            .iter()
            .any(|redirect| redirect.op.writes());
        let folds = (context.wanted || writes) && name.is_some_and(fold::may_fold);
        let output = if folds { fold::output(&command) } else { None };
        let output = output.or_else(|| self.written_text(&command).filter(|_| context.wanted));
        if writes || matches!(name, Some("tee" | "sed")) {
            self.note_files(&command, output.as_ref());
        }
        self.note_descriptors(&command);
        let output = if command.words.is_empty() {
            self.printed(&command)
        } else {
            output
        };
        let inner = wrappers::unwrap(&command.words, &command.stdin);
        let reads = self.read_from_file(&command);
        let called = name.and_then(|name| self.functions.get(name)).cloned();
        let alias = builtins::alias_line(&self.aliases, &command);
        let arguments = called.as_ref().map(|_| command.args().to_vec());
        command.runs_computed = inner.iter().chain(&reads).any(Inner::is_computed);
        let stdin = command.stdin.clone();
        let id = self.push(command, context);
        let (pipeline, stage) = (
            self.script.commands[id].pipeline,
            self.script.commands[id].stage,
        );
        let inner_context = Context {
            stage: Some((pipeline, stage)),
            parent: Some(id),
            stdin,
            ..context.clone()
        };
        if let Some((function, arguments)) = called.zip(arguments) {
            self.call(&function, arguments, &inner_context);
        }
        if let Some((name, line)) = alias {
            self.expand_alias(&name, &line, &inner_context);
        }
        let mut inner_output = None;
        for item in inner.into_iter().chain(reads) {
            inner_output = self.inner(item, id, &inner_context);
        }
        self.script.pipelines[pipeline].commands.end = self.script.commands.len();
        output.or(inner_output)
    }

    fn inner(&mut self, item: Inner, id: CommandId, context: &Context) -> Option<Word> {
        let deeper = Context { ..context.clone() };
        match item {
            Inner::Words(words) => {
                if self.depth >= self.limits.depth {
                    self.too_deep(words.first().map_or_else(Span::default, |word| word.span));
                    return None;
                }
                let span = Span::new(words.first()?.span.start, words.last()?.span.end);
                let stdin = context.stdin.clone();
                self.depth += 1;
                let output = self.command(
                    Command {
                        span,
                        words,
                        stdin,
                        ..Command::default()
                    },
                    &deeper,
                );
                self.depth -= 1;
                output
            }
            Inner::Shell(text) => {
                let mut within = deeper.within();
                // What the shell has read as commands is not there to be read again.
                if matches!(&within.stdin, Stdin::Text(input) if *input == text) {
                    within.stdin = Stdin::Inherited;
                }
                self.nested(&text, &within)
            }
            Inner::Script(text, mut given) => {
                let zero = Value::one(given.remove(0));
                let outer = self.arguments.replace(given);
                let before = self.variables.insert("0".to_owned(), zero);
                let output = self.nested(&text, &deeper.within());
                self.arguments = outer;
                match before {
                    Some(value) => self.variables.insert("0".to_owned(), value),
                    None => self.variables.remove("0"),
                };
                output
            }
            Inner::Deferred(text) => {
                let context = Context {
                    place: Place::Deferred,
                    ..deeper.within()
                };
                self.nested(&text, &context);
                None
            }
            Inner::Code(language, code) => {
                self.script.embedded.push(Embedded {
                    language,
                    code,
                    command: id,
                });
                None
            }
        }
    }

    fn too_deep(&mut self, span: Span) {
        self.script.problems.push(Problem {
            kind: ProblemKind::TooDeep,
            span,
        });
    }

    /// Reads text that a shell is given.
    pub(crate) fn nested(&mut self, word: &Word, context: &Context) -> Option<Word> {
        if word.text.trim().is_empty() {
            return Some(Word::default());
        }
        if self.depth >= self.limits.depth {
            self.too_deep(word.span);
            return None;
        }
        self.nested_bytes += word.text.len();
        if self.nested_bytes > self.limits.nested_bytes {
            self.too_large();
            return None;
        }
        let (text, origin) = self.source_of(word);
        let mut parser = Parser::new(&text, origin, self.depth, self.limits.depth);
        let nodes = parser.script();
        self.script.problems.append(&mut parser.problems);
        self.depth += 1;
        let output = self.read_nodes(&nodes, context);
        self.depth -= 1;
        output
    }

    /// The text of a word to be read again, its unknown parts as variables, and where it stands.
    fn source_of(&mut self, word: &Word) -> (String, Origin) {
        if word
            .holes
            .iter()
            .all(|hole| matches!(hole.kind, HoleKind::Glob | HoleKind::Tilde))
        {
            let origin = exact_origin(self.source, word).unwrap_or(Origin::Within(word.span));
            return (word.text.clone(), origin);
        }
        let mut text = String::with_capacity(word.text.len() + 16);
        let mut from = 0;
        for hole in &word.holes {
            text.push_str(&word.text[from..hole.range.start]);
            from = hole.range.end;
            match &hole.kind {
                HoleKind::Variable(name) => braced(&mut text, name),
                HoleKind::Glob | HoleKind::Tilde => text.push_str(&word.text[hole.range.clone()]),
                HoleKind::Arithmetic => text.push_str("${_}"),
                HoleKind::Substitution { .. } | HoleKind::Process { .. } => {
                    // A variable of our own stands for the output, so that the link is kept.
                    let name = format!("__output_{}", self.variables.len());
                    braced(&mut text, &name);
                    let placeholder = word.text[hole.range.clone()].to_owned();
                    let mut hole = hole.clone();
                    hole.range = 0..placeholder.len();
                    let value = Word {
                        text: placeholder,
                        span: word.span,
                        holes: vec![hole],
                        ..Word::default()
                    };
                    self.variables.insert(name, Value::one(value));
                }
            }
        }
        text.push_str(&word.text[from..]);
        (text, Origin::Within(word.span))
    }

    fn values(&mut self, raw: &[RawAssignment], context: &Context) -> Vec<Vec<Word>> {
        raw.iter()
            .map(|assignment| match &assignment.value {
                RawValue::Scalar(word) => vec![self.single(word, context)],
                RawValue::Array(items) => items
                    .iter()
                    .flat_map(|item| self.fields(item, context))
                    .collect(),
            })
            .collect()
    }

    fn assign(&mut self, raw: &[RawAssignment], values: &[Vec<Word>]) {
        for (raw, fields) in raw.iter().zip(values) {
            let fields = fields.clone();
            let old = if raw.append {
                self.variables.remove(&raw.name)
            } else {
                None
            };
            let value = match old {
                Some(mut old) if matches!(raw.value, RawValue::Scalar(_)) => {
                    let last = old
                        .fields
                        .last_mut()
                        .map(std::mem::take)
                        .unwrap_or_default();
                    Value::one(wrappers::concat(last, &fields[0]))
                }
                Some(mut old) => {
                    old.fields.extend(fields);
                    old
                }
                None => Value {
                    fields,
                    alternatives: false,
                },
            };
            if value.fields.len() < 1024 {
                self.variables.insert(raw.name.clone(), value);
            }
        }
    }

    fn define(&mut self, function: &Rc<FunctionNode>, context: &Context) {
        let start = self.script.commands.len();
        let index = self.script.functions.len();
        self.script.functions.push(Function {
            name: function.name.clone(),
            span: function.span,
            commands: start..start,
        });
        let inner = Context {
            function: Some(index),
            ..context.within()
        };
        let arguments = self.arguments.take();
        self.node(&function.body, &inner);
        self.arguments = arguments;
        self.script.functions[index].commands.end = self.script.commands.len();
        self.functions
            .insert(function.name.clone(), Rc::clone(function));
    }

    /// Reads a function's body again with the words it is called with.
    fn call(&mut self, function: &Rc<FunctionNode>, arguments: Vec<Word>, context: &Context) {
        let told = |word: &Word| word.constant().is_some() || word.substitutions().next().is_some();
        let known = arguments.iter().any(told);
        if !known || self.call_depth >= CALL_DEPTH || self.called >= CALL_COMMANDS {
            return;
        }
        let before = self.script.commands.len();
        let outer = self.arguments.replace(arguments);
        self.call_depth += 1;
        self.node(&function.body, &context.within());
        self.call_depth -= 1;
        self.arguments = outer;
        self.called += self.script.commands.len() - before;
    }

    /// Reads a command line whose first word was an alias, as the shell does once.
    fn expand_alias(&mut self, name: &str, line: &Word, context: &Context) {
        if self.called >= CALL_COMMANDS {
            return;
        }
        let before = self.script.commands.len();
        let body = self.aliases.remove(name);
        self.nested(line, &context.within());
        self.aliases
            .extend(body.map(|body| (name.to_owned(), body)));
        self.called += self.script.commands.len() - before;
    }
}

/// Adds `${name}`.
fn braced(text: &mut String, name: &str) {
    text.push_str("${");
    text.push_str(name);
    text.push('}');
}

/// Where a word's text stands unchanged in the source, quotes aside.
fn exact_origin(source: &str, word: &Word) -> Option<Origin> {
    let written = source.get(word.span.start..word.span.end)?;
    if written == word.text {
        return Some(Origin::Exact {
            base: word.span.start,
        });
    }
    let inside = written.get(1..written.len().checked_sub(1)?)?;
    (inside == word.text).then_some(Origin::Exact {
        base: word.span.start + 1,
    })
}

/// Standard input after redirections.
fn stdin_after(redirects: &[Redirect], before: &Stdin) -> Stdin {
    let last = redirects.iter().rev().find(|redirect| {
        redirect.fd.unwrap_or(0) == 0
            && matches!(
                redirect.op,
                RedirectOp::Read
                    | RedirectOp::ReadWrite
                    | RedirectOp::DuplicateIn
                    | RedirectOp::HereDocument
                    | RedirectOp::HereString
            )
    });
    let Some(redirect) = last else {
        return before.clone();
    };
    match redirect.op {
        RedirectOp::HereDocument | RedirectOp::HereString => Stdin::Text(redirect.target.clone()),
        _ => match redirect.target.holes.first().map(|hole| &hole.kind) {
            Some(HoleKind::Process {
                output: Some(text), ..
            }) => Stdin::Text((**text).clone()),
            Some(HoleKind::Process { .. }) => Stdin::Pipe,
            _ => Stdin::File,
        },
    }
}

/// A text that is printed letter by letter was not meant to be read.
fn printed_in_pieces(mut whole: Word, pieces: usize) -> Word {
    whole.spelling.computed |= pieces >= 4 && whole.text.len() <= pieces * 4;
    whole
}
