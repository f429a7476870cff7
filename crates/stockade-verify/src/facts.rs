//! What is known about programs, as data: `rules/sources.list`, `rules/sinks.list` and
//! `rules/flows.list`. The build reads this file too and fails on what it does not understand.

use std::collections::HashMap;

/// A kind of data, by where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Data {
    Computed,
    Decoded,
    Digested,
    Downloaded,
    Pasted,
    Received,
}

/// What a program does with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Effect {
    MakesExecutable,
    RunsFile,
    RunsInput,
    /// The data is the command's own name.
    RunsOutput,
    RunsText,
    Unpacks,
}

/// A word that names a section of a list.
pub(crate) trait Section: Copy + PartialEq + 'static {
    const ALL: &[(&str, Self)];

    fn from_name(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(own, _)| *own == name);
        found
            .map(|(_, section)| *section)
            .ok_or_else(|| format!("`{name}` is not known"))
    }
}

impl Section for Data {
    const ALL: &[(&str, Self)] = &[
        ("computed", Self::Computed),
        ("decoded", Self::Decoded),
        ("digested", Self::Digested),
        ("downloaded", Self::Downloaded),
        ("pasted", Self::Pasted),
        ("received", Self::Received),
    ];
}

impl Section for Effect {
    const ALL: &[(&str, Self)] = &[
        ("makes-executable", Self::MakesExecutable),
        ("runs-file", Self::RunsFile),
        ("runs-input", Self::RunsInput),
        ("runs-output", Self::RunsOutput),
        ("runs-text", Self::RunsText),
        ("unpacks", Self::Unpacks),
    ];
}

/// Which arguments a program must be given for a line to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Whatever they are.
    Any,
    /// At least one.
    Some,
    /// One that is this word or has this option.
    Word(&'static str),
    /// One with this text inside, blanks aside.
    Text(&'static str),
}

impl Shape {
    pub(crate) fn fits(self, args: &[&str]) -> bool {
        match self {
            Self::Any => true,
            Self::Some => !args.is_empty(),
            Self::Word(word) => args.iter().any(|arg| is_option(arg, word)),
            Self::Text(text) => args.iter().any(|arg| arg.replace(' ', "").contains(text)),
        }
    }
}

/// Whether an argument is a word, or an option alone, in a cluster or with a value.
fn is_option(arg: &str, word: &str) -> bool {
    if let Some(letter) = word.strip_prefix('-').filter(|rest| rest.len() == 1) {
        let cluster = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let letters = |cluster: &str| cluster.bytes().all(|b| b.is_ascii_alphanumeric());
        return cluster.is_some_and(|cluster| letters(cluster) && cluster.contains(letter));
    }
    let value = arg.strip_prefix(word).filter(|_| word.starts_with("--"));
    arg == word || value.is_some_and(|value| value.starts_with('='))
}

/// The programs of each section of a list.
pub(crate) type Table<S> = HashMap<&'static str, Vec<(Shape, S)>>;

/// Reads a list of sections.
pub(crate) fn table<S: Section>(text: &'static str) -> Result<Table<S>, String> {
    let mut table: Table<S> = HashMap::new();
    let mut section = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let header = line.strip_prefix('[');
        if let Some(name) = header.and_then(|line| line.strip_suffix(']')) {
            section = Some(S::from_name(name)?);
            continue;
        }
        for word in line.split_ascii_whitespace() {
            let section = section.ok_or_else(|| format!("`{word}` stands before any section"))?;
            let (program, shape) = match word.split_once('/') {
                None => (word, Shape::Any),
                Some((program, "*")) => (program, Shape::Some),
                Some((program, rest)) => match rest.strip_prefix('~') {
                    Some(text) => (program, Shape::Text(text)),
                    None => (program, Shape::Word(rest)),
                },
            };
            let entries = table.entry(program).or_default();
            if entries.contains(&(shape, section)) {
                return Err(format!("`{word}` stands there twice"));
            }
            entries.push((shape, section));
        }
    }
    Ok(table)
}

/// That a kind of data reaches an effect, and what is said about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) data: Data,
    /// `None`: any effect.
    pub(crate) effect: Option<Effect>,
    /// The rule's id.
    pub(crate) rule: &'static str,
    pub(crate) reason: &'static str,
}

/// Reads the list of flows.
pub(crate) fn flows(text: &'static str) -> Result<Vec<Flow>, String> {
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &'static str| {
        let mut rest = line;
        let mut word = || {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after.trim_start();
            word
        };
        let (data, effect, rule) = (word(), word(), word());
        Ok(Flow {
            data: Data::from_name(data)?,
            effect: match effect {
                "*" => None,
                name => Some(Effect::from_name(name)?),
            },
            rule,
            reason: rest,
        })
    };
    lines.map(read).collect()
}
