//! `xargs` and `parallel`: one command for each of many arguments.

use crate::model::{Stdin, Word};
use crate::options::skip_options;
use crate::wrappers::{Inner, concat, join, prefixed};

/// Most commands made from one list of arguments.
const MOST_EXPANDED: usize = 16;

/// `xargs command`, with the words of a known input added or put in the place of `{}`.
pub(crate) fn xargs(name: &str, args: &[Word], stdin: &Stdin) -> Vec<Inner> {
    let Some(Inner::Words(command)) = prefixed(name, args).into_iter().next() else {
        return Vec::new();
    };
    let Stdin::Text(input) = stdin else {
        return vec![Inner::Words(command)];
    };
    let inputs: Vec<Word> = split(input);
    if inputs.is_empty() {
        return vec![Inner::Words(command)];
    }
    let replaced = args
        .iter()
        .find_map(|word| word.text.strip_prefix("-I"))
        .map(|rest| if rest.is_empty() { "{}" } else { rest });
    if let Some(mark) = replaced {
        let inputs = inputs.iter().take(MOST_EXPANDED);
        return inputs
            .map(|input| Inner::Words(substitute(&command, mark, input)))
            .collect();
    }
    let mut words = command;
    words.extend(inputs.into_iter().take(256));
    vec![Inner::Words(words)]
}

/// Options of `parallel` that take the next word.
const PARALLEL: &[&str] = &[
    "--arg-file",
    "--arg-sep",
    "--basefile",
    "--bf",
    "--block",
    "--colsep",
    "--delay",
    "--env",
    "--halt",
    "--header",
    "--jobs",
    "--joblog",
    "--load",
    "--max-args",
    "--max-procs",
    "--memfree",
    "--nice",
    "--recend",
    "--recstart",
    "--results",
    "--retries",
    "--return",
    "--rpl",
    "--sshlogin",
    "--sshloginfile",
    "--tagstring",
    "--timeout",
    "--tmpdir",
    "--wd",
    "--workdir",
];

/// `parallel command ::: arguments`, or with arguments on standard input.
pub(crate) fn parallel(args: &[Word], stdin: &Stdin) -> Vec<Inner> {
    let end = args
        .iter()
        .position(|word| word.text.starts_with(":::"))
        .unwrap_or(args.len());
    let own = &args[..end];
    let start = skip_options(own, "jISNLnPadD", PARALLEL);
    let command = &own[start..];
    let mut inputs: Vec<Word> = args
        .get(end..)
        .unwrap_or_default()
        .iter()
        .filter(|word| !word.text.starts_with(":::"))
        .cloned()
        .collect();
    if let Stdin::Text(text) = stdin {
        inputs.extend(split(text));
    }
    if inputs.is_empty() {
        return if command.is_empty() {
            Vec::new()
        } else {
            vec![Inner::Shell(join(command))]
        };
    }
    let made = inputs.iter().take(MOST_EXPANDED).map(|input| {
        if command.is_empty() {
            return Inner::Shell(input.clone());
        }
        match substitute(command, "{}", input).as_slice() {
            // A command line in one word.
            [line] if command[0].text.contains(' ') => Inner::Shell(line.clone()),
            [line, added] if command[0].text.contains(' ') => {
                Inner::Shell(join(&[line.clone(), added.clone()]))
            }
            words => Inner::Words(words.to_vec()),
        }
    });
    made.collect()
}

/// A command with `mark` replaced by a word, or the word added if there is no mark.
fn substitute(command: &[Word], mark: &str, input: &Word) -> Vec<Word> {
    let mut found = false;
    let mut words: Vec<Word> = command
        .iter()
        .map(|word| match word.text.find(mark) {
            Some(at) if word.literal().is_some() => {
                found = true;
                let head = Word {
                    text: word.text[..at].to_owned(),
                    span: word.span,
                    ..Word::default()
                };
                let tail = Word {
                    text: word.text[at + mark.len()..].to_owned(),
                    ..Word::default()
                };
                concat(concat(head, input), &tail)
            }
            _ => word.clone(),
        })
        .collect();
    if !found {
        words.push(input.clone());
    }
    words
}

/// A text's words, split at blanks, if all of it is known.
pub(crate) fn split(text: &Word) -> Vec<Word> {
    let Some(known) = text.constant() else {
        return Vec::new();
    };
    let word = |part: &str| Word {
        text: part.to_owned(),
        span: text.span,
        spelling: text.spelling,
        ..Word::default()
    };
    known
        .split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|part| !part.is_empty())
        .map(word)
        .collect()
}
