//! Builtins that change what names stand for: variables, positional parameters, aliases.

use std::collections::HashMap;

use crate::expand::Value;
use crate::fold;
use crate::model::{Command, Hole, HoleKind, Stdin, Word};
use crate::read::Reader;
use crate::wrappers;

/// Elements of an array that are kept.
const MAX_ARRAY_ELEMENTS: usize = 256;
/// Aliases that are kept.
const MOST_ALIASES: usize = 256;

/// `$SHELL`, `$BASH`: a shell, whichever it is. So is `$0` where someone types.
pub(crate) fn name_shell(command: &mut Command) {
    let typed = command.words.len() == 1 && matches!(command.stdin, Stdin::Text(_) | Stdin::Pipe);
    let Some(first) = command.words.first_mut() else {
        return;
    };
    let [Hole { kind, range }] = first.holes.as_slice() else {
        return;
    };
    let shell = match kind {
        HoleKind::Variable(name) => {
            matches!(name.as_str(), "SHELL" | "BASH") || typed && name == "0"
        }
        _ => false,
    };
    if shell && *range == (0..first.text.len()) {
        "sh".clone_into(&mut first.text);
        first.holes.clear();
    }
}

/// The line that a command becomes when its name is an alias.
pub(crate) fn alias_line(
    aliases: &HashMap<String, Word>,
    command: &Command,
) -> Option<(String, Word)> {
    let name = command.words.first()?.literal()?;
    let body = aliases.get(name)?;
    let mut words = vec![body.clone()];
    words.extend_from_slice(command.args());
    Some((name.to_owned(), wrappers::join(&words)))
}

impl Reader<'_> {
    /// Notes what `unset`, `read`, `mapfile`, `set --`, `printf -v` and `alias` change.
    pub(crate) fn builtin(&mut self, command: &Command) {
        let Some(
            name @ ("unset" | "read" | "set" | "mapfile" | "readarray" | "printf" | "alias"
            | "unalias" | "shift"),
        ) = command.name()
        else {
            return;
        };
        let args = command.args();
        match name {
            "printf" => return self.printed_to(command),
            "shift" => return self.shift(args),
            "alias" => return self.name_aliases(args),
            "set" => return self.set_arguments(args),
            "unalias" => {
                for word in args {
                    self.aliases.remove(&word.text);
                }
                return;
            }
            _ => {}
        }
        let (constant, spelling) = match &command.stdin {
            Stdin::Text(text) if name != "unset" => {
                let known = text
                    .literal()
                    .map(|text| text.trim_end_matches('\n').to_owned());
                (known, text.spelling)
            }
            _ => (None, crate::Spelling::default()),
        };
        let names: Vec<&Word> = args
            .iter()
            .filter(|word| !word.text.starts_with('-'))
            .collect();
        let array = args
            .iter()
            .any(|word| is_cluster(&word.text) && word.text.contains('a'));
        let lines = matches!(name, "mapfile" | "readarray");
        let own = command
            .assignments
            .iter()
            .find(|assignment| assignment.name == "IFS");
        let separators = own.map_or_else(
            || if lines { "\n" } else { " \t\n" }.to_owned(),
            |own| own.value.text.clone(),
        );
        if let (true, Some(text), [name]) = (array || lines, &constant, names.as_slice()) {
            let parts = text
                .split(|c| separators.contains(c))
                .filter(|part| !part.is_empty());
            let word = |part: &str| Word {
                text: part.to_owned(),
                span: command.span,
                spelling,
                ..Word::default()
            };
            let fields = parts.take(MAX_ARRAY_ELEMENTS).map(word).collect();
            let value = Value {
                fields,
                alternatives: false,
            };
            self.variables.insert(name.text.clone(), value);
            return;
        }
        // The last name takes what is left of the line.
        let mut rest = constant.filter(|text| names.len() == 1 || !text.contains('\n'));
        for (at, word) in names.iter().enumerate() {
            let Some(text) = &mut rest else {
                if name == "unset" {
                    self.variables.remove(&word.text);
                } else {
                    self.set_unknown(&word.text);
                }
                continue;
            };
            let line = text.trim_start_matches(|c| separators.contains(c));
            let end = line.find(|c| separators.contains(c)).unwrap_or(line.len());
            let last = at + 1 == names.len();
            let (own, left) = if last {
                (text.as_str(), "")
            } else {
                line.split_at(end)
            };
            let own = if names.len() > 1 {
                own.trim_matches(|c| separators.contains(c))
            } else {
                own
            };
            let value = Word {
                text: own.to_owned(),
                span: command.span,
                spelling,
                ..Word::default()
            };
            self.variables.insert(word.text.clone(), Value::one(value));
            *text = left.to_owned();
        }
    }

    fn set_arguments(&mut self, args: &[Word]) {
        if args.first().is_some_and(|word| word.text == "--") {
            self.arguments = Some(args[1..].to_vec());
        }
    }

    fn shift(&mut self, args: &[Word]) {
        let by = args.first().map_or(Some(1), |word| word.text.parse().ok());
        match (&mut self.arguments, by) {
            (Some(arguments), Some(by)) => {
                arguments.drain(..by.min(arguments.len()));
            }
            _ => self.arguments = None,
        }
    }

    /// `printf -v NAME format …`
    fn printed_to(&mut self, command: &Command) {
        let [option, name, format @ ..] = command.args() else {
            return;
        };
        if option.text != "-v" {
            return;
        }
        let mut words = vec![command.words[0].clone()];
        words.extend_from_slice(format);
        let prints = Command {
            words,
            span: command.span,
            ..Command::default()
        };
        match fold::output(&prints) {
            Some(value) => {
                let value = Value::one(value);
                self.variables.insert(name.text.clone(), value);
            }
            None => self.set_unknown(&name.text),
        }
    }

    /// Notes that a variable has a value, which is not known.
    pub(crate) fn set_unknown(&mut self, name: &str) {
        let text = format!("${name}");
        let hole = Hole {
            range: 0..text.len(),
            kind: HoleKind::Variable(name.to_owned()),
        };
        let value = Word {
            text,
            holes: vec![hole],
            ..Word::default()
        };
        self.variables.insert(name.to_owned(), Value::one(value));
    }

    fn name_aliases(&mut self, args: &[Word]) {
        for word in args {
            let Some(at) = word.text.find('=').filter(|at| *at > 0) else {
                continue;
            };
            if self.aliases.len() < MOST_ALIASES {
                let body = wrappers::rest(word, at + 1);
                self.aliases.insert(word.text[..at].to_owned(), body);
            }
        }
    }
}

/// Short options together: `-ra`.
fn is_cluster(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}
