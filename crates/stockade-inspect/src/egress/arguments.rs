//! The arguments of a command, read as its own option parser would.

use stockade_shell::Word;

/// An option or operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument<'a> {
    /// `--name value`, `--name=value`, `-n value`, `-nvalue`; the name without hyphens.
    Option {
        name: &'a str,
        value: Option<Value<'a>>,
    },
    Operand(&'a Word),
}

/// The value of an option: a word or the end of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    pub(super) text: &'a str,
    pub(super) word: &'a Word,
}

/// Reads arguments. `short` lists the one-letter options that take a value, `long` the others.
pub(super) fn read<'a>(words: &'a [Word], short: &str, long: &[&str]) -> Vec<Argument<'a>> {
    let mut arguments = Vec::new();
    let mut rest = words.iter();
    let mut only_operands = false;
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if only_operands || !text.starts_with('-') || text == "-" {
            arguments.push(Argument::Operand(word));
        } else if text == "--" {
            only_operands = true;
        } else if let Some(name) = text.strip_prefix("--") {
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(Value { text: value, word })),
                None if long.contains(&name) => (
                    name,
                    rest.next().map(|word| Value {
                        text: &word.text,
                        word,
                    }),
                ),
                None => (name, None),
            };
            arguments.push(Argument::Option { name, value });
        } else {
            cluster(word, short, &mut rest, &mut arguments);
        }
    }
    arguments
}

/// `-sSLd value`, `-XPOST`: letters up to the first that takes a value.
fn cluster<'a>(
    word: &'a Word,
    short: &str,
    rest: &mut std::slice::Iter<'a, Word>,
    out: &mut Vec<Argument<'a>>,
) {
    let letters = word.text.get(1..).unwrap_or_default();
    for (at, letter) in letters.char_indices() {
        let end = at + letter.len_utf8();
        let name = letters.get(at..end).unwrap_or_default();
        if !short.contains(letter) {
            out.push(Argument::Option { name, value: None });
            continue;
        }
        let attached = letters.get(end..).unwrap_or_default();
        let value = if attached.is_empty() {
            rest.next().map(|word| Value {
                text: &word.text,
                word,
            })
        } else {
            Some(Value {
                text: attached.strip_prefix('=').unwrap_or(attached),
                word,
            })
        };
        out.push(Argument::Option { name, value });
        return;
    }
}
