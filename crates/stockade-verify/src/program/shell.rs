//! Shell scripts in the form of the other languages: a command is a call and its output the value;
//! pipes, redirections and substitutions hand values on.

mod commands;
mod contents;

pub(crate) use commands::runs_input;
pub(super) use contents::Contents;

use std::cell::Cell;
use std::ops::Range;

use stockade_shell::{Command, CommandId, HoleKind, RedirectOp, Script, Stdin, Word};

use super::ir::{Arg, Call, Expr, ExprKind, Stmt, Target, Text};
use crate::result::Span;

/// Names of arguments that are no words of the command.
pub(super) const INPUT: &str = "stdin";
pub(super) const READ: &str = "<";
pub(super) const WRITE: &str = ">";
pub(super) const APPEND: &str = ">>";

/// Marks a command whose last word is nothing but the value of variables.
pub(super) const FROM_VARIABLES: &str = "$";

/// The callee of a group or loop: it prints what the commands in it print.
pub(super) const GROUP: &str = "{";

/// The callee of `<(…)`: a file with what the commands in it print.
pub(super) const PROCESS: &str = "<(";

/// Commands of a group that are looked at for what it prints.
const MAX_GROUP_COMMANDS: usize = 64;

/// Commands whose outputs are put together as text; of more than these only the kind of data counts.
const MAX_JOINED: usize = 16;

/// Outputs of commands that are handed to others, over the whole script.
const MAX_HANDED_OUTPUTS: usize = 200_000;

/// Hands out the commands of a script as assignments, as long as `each` wants more: `#3` is the
/// output of the command with that id. What a command is given by others stands before it.
pub(super) fn lower(script: &Script, mut each: impl FnMut(&Stmt) -> bool) {
    let mut lowering = Lowering {
        script,
        body: Vec::new(),
        groups: Vec::new(),
        spare: Cell::new(MAX_HANDED_OUTPUTS),
    };
    for id in 0..script.commands.len() {
        lowering.command(id);
        if !lowering.body.drain(..).all(|statement| each(&statement)) {
            return;
        }
    }
    while let Some(group) = lowering.groups.pop() {
        lowering.close(group);
    }
    lowering.body.iter().all(each);
}

struct Lowering<'s> {
    script: &'s Script,
    body: Vec<Stmt>,
    /// Groups and loops with redirections whose commands are being lowered.
    groups: Vec<CommandId>,
    /// How many outputs may still be handed on.
    spare: Cell<usize>,
}

impl Lowering<'_> {
    fn command(&mut self, id: CommandId) {
        let script = self.script;
        let command = &script.commands[id];
        while let Some(group) = self.groups.last().copied()
            && script.commands[group].span.end <= command.span.start
        {
            self.groups.pop();
            self.close(group);
        }
        for set in &command.assignments {
            let value = self.word(&set.value);
            self.assign(set.name.as_str().into(), value);
        }
        if command.words.is_empty() {
            if !command.redirects.is_empty() {
                self.groups.push(id);
            }
            return;
        }
        let call = self.call(id, command);
        self.assign(output(id), call);
        if matches!(command.name(), Some("read" | "mapfile" | "readarray")) {
            let names = command
                .args()
                .iter()
                .filter(|word| !word.text.starts_with('-'));
            for name in names {
                let read = Expr::new(command.span, ExprKind::Name(output(id)));
                self.assign(name.text.as_str().into(), read);
            }
        }
    }

    fn assign(&mut self, name: Text, value: Expr) {
        self.body.push(Stmt::Assign {
            target: Target::Name(name),
            value,
            op: None,
        });
    }

    /// The redirections of a group, after all of its commands.
    fn close(&mut self, id: CommandId) {
        let group = &self.script.commands[id];
        let inside = self.script.commands[id + 1..].iter();
        let inside = inside
            .take(MAX_GROUP_COMMANDS)
            .take_while(|command| command.span.start < group.span.end);
        let inside = id + 1..id + 1 + inside.count();
        let mut args = vec![named(INPUT, self.outputs(inside, group.span))];
        self.redirects(group, &mut args);
        let call = call(Expr::new(group.span, ExprKind::Text(GROUP.into())), args);
        self.assign(output(id), Expr::new(group.span, call));
    }

    fn call(&self, id: CommandId, command: &Command) -> Expr {
        let script = self.script;
        let parent = command
            .parent
            .and_then(|parent| script.commands[parent].name());
        let mut args: Vec<Arg> = command
            .args()
            .iter()
            .map(|word| positional(self.word(word)))
            .collect();
        let piped = || script.piped_from(id);
        let input = self.names(piped(), command.span);
        args.extend(input.map(|input| named(INPUT, input)));
        if let Stdin::Text(text) = &command.stdin {
            args.push(named(INPUT, self.word(text)));
        }
        let last = command.args().last();
        if last.is_some_and(|word| word.spelling.from_variables) {
            let mark = Expr::new(command.span, ExprKind::Bool(true));
            args.push(named(FROM_VARIABLES, mark));
        }
        if matches!(parent, Some("xargs" | "parallel")) {
            args.extend(self.names(piped(), command.span).map(positional));
        }
        self.redirects(command, &mut args);
        for group in self.groups.iter().rev().take(1) {
            let group = &script.commands[*group];
            for redirect in group
                .redirects
                .iter()
                .filter(|own| own.op == RedirectOp::Read)
            {
                args.push(named(READ, self.word(&redirect.target)));
            }
        }
        Expr::new(command.span, call(self.word(&command.words[0]), args))
    }

    fn redirects(&self, command: &Command, args: &mut Vec<Arg>) {
        for redirect in &command.redirects {
            let name = match redirect.op {
                RedirectOp::Read => READ,
                RedirectOp::HereString | RedirectOp::HereDocument => INPUT,
                _ if redirect.fd.is_some_and(|fd| fd != 1) => continue,
                RedirectOp::Append | RedirectOp::AppendBoth => APPEND,
                op if op.writes() => WRITE,
                _ => continue,
            };
            args.push(named(name, self.word(&redirect.target)));
        }
    }

    /// A word: text, variables and the output of commands, one after the other.
    fn word(&self, word: &Word) -> Expr {
        let mut parts = Vec::new();
        let mut done = 0;
        for hole in &word.holes {
            let kind = match &hole.kind {
                HoleKind::Variable(name) => ExprKind::Name(name.as_str().into()),
                HoleKind::Substitution { commands } => {
                    self.outputs(commands.clone(), word.span).kind
                }
                HoleKind::Process { commands, .. } => {
                    let printed = self.outputs(commands.clone(), word.span);
                    let callee = Expr::new(word.span, ExprKind::Text(PROCESS.into()));
                    call(callee, vec![named(INPUT, printed)])
                }
                _ => continue,
            };
            let before = word.text.get(done..hole.range.start).unwrap_or_default();
            if !before.is_empty() {
                parts.push(Expr::new(word.span, ExprKind::Text(before.into())));
            }
            parts.push(Expr::new(word.span, kind));
            done = hole.range.end;
        }
        let rest = word.text.get(done..).unwrap_or_default();
        let rest = Expr::new(word.span, ExprKind::Text(rest.into()));
        if parts.is_empty() {
            return rest;
        }
        parts.push(rest);
        Expr::new(word.span, ExprKind::Template(parts))
    }

    /// What the commands of a substitution or group print.
    fn outputs(&self, commands: Range<CommandId>, span: Span) -> Expr {
        let printed = self.names(self.script.printed_by(commands), span);
        printed.unwrap_or_else(|| Expr::new(span, ExprKind::Many(Vec::new())))
    }

    /// What commands print, one after the other.
    fn names(&self, ids: Vec<CommandId>, span: Span) -> Option<Expr> {
        let count = ids.len().min(MAX_GROUP_COMMANDS).min(self.spare.get());
        self.spare.set(self.spare.get() - count);
        let names = ids.into_iter().take(count).rev();
        let mut names: Vec<Expr> = names
            .map(|id| Expr::new(span, ExprKind::Name(output(id))))
            .collect();
        match count {
            0 | 1 => names.pop(),
            2..=MAX_JOINED => Some(Expr::new(span, ExprKind::Template(names))),
            _ => Some(Expr::new(span, ExprKind::Many(names))),
        }
    }
}

/// The name of a command's output.
fn output(id: CommandId) -> Text {
    format!("#{id}").into()
}

fn call(callee: Expr, args: Vec<Arg>) -> ExprKind {
    ExprKind::Call(Box::new(Call {
        callee,
        args,
        constructs: false,
    }))
}

fn positional(value: Expr) -> Arg {
    Arg { name: None, value }
}

fn named(name: &str, value: Expr) -> Arg {
    Arg {
        name: Some(name.into()),
        value,
    }
}
