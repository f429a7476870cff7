//! What is known about a value, and where it came from.

use std::ops::{BitOr, BitOrAssign};
use std::rc::Rc;

use super::ir::{Function, Text};
use crate::paths::UNKNOWN;

/// Longer texts and lists are not computed.
pub(crate) const MAX_COMPUTED_LENGTH: usize = 1 << 18;

/// Where a value came from; several at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taint(u32);

impl Taint {
    pub(crate) const NONE: Self = Self(0);
    /// A parameter of a function that nobody in the file calls.
    pub(crate) const PARAM: Self = Self(1);
    /// Arguments, standard input, requests.
    pub(crate) const INPUT: Self = Self(1 << 1);
    pub(crate) const DOWNLOADED: Self = Self(1 << 2);
    /// Decoded, decrypted or unpacked.
    pub(crate) const DECODED: Self = Self(1 << 3);
    /// The content of a file.
    pub(crate) const FILE: Self = Self(1 << 4);
    /// The whole environment, or a variable that holds a secret.
    pub(crate) const ENVIRONMENT: Self = Self(1 << 5);
    /// The content of a credential store.
    pub(crate) const SECRET: Self = Self(1 << 6);
    /// Names of this machine and its users.
    pub(crate) const IDENTITY: Self = Self(1 << 7);
    /// A name that the file never defines.
    pub(crate) const UNBOUND: Self = Self(1 << 8);
    /// Received from a socket.
    pub(crate) const SOCKET: Self = Self(1 << 9);
    /// The output of a command.
    pub(crate) const OUTPUT: Self = Self(1 << 10);
    /// Encrypted.
    pub(crate) const ENCRYPTED: Self = Self(1 << 11);
    /// The content of a file that is neither the program's own nor a temporary one.
    pub(crate) const FOREIGN: Self = Self(1 << 12);
    /// Text put together from numbers or read backwards.
    pub(crate) const SPELLED: Self = Self(1 << 13);
    /// The content of a file in a place where anyone may put one.
    pub(crate) const LOOSE: Self = Self(1 << 15);
    /// One number after the other.
    pub(crate) const SERIES: Self = Self(1 << 14);

    /// One of the files that a walk through directories finds.
    pub(crate) const WALKED: Self = Self(1 << 16);
    /// What a visitor of a web server sends.
    pub(crate) const REQUEST: Self = Self(1 << 19);
    /// Ids of processes, all that there are.
    pub(crate) const PROCESSES: Self = Self(1 << 18);
    /// The program's own source.
    pub(crate) const OWN: Self = Self(1 << 20);
    /// One of several, of which not all are known.
    pub(crate) const OPTION: Self = Self(1 << 21);
    /// Downloaded without TLS, from a bare address or from a host with a bad name.
    pub(crate) const EXPOSED: Self = Self(1 << 22);
    /// One of many that a loop goes through.
    pub(crate) const TRIED: Self = Self(1 << 17);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn only(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Taint {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Taint {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Value {
    pub(crate) kind: Kind,
    pub(crate) taint: Taint,
    /// Reached by a computed name (`getattr`, `obj["name"]`), not by writing it.
    pub(crate) indirect: bool,
    /// Values inside values inside values: bounded, so that none is ever deep.
    depth: u8,
}

/// Nesting of lists, objects and bound functions that is kept.
const DEEPEST: u8 = 24;
/// Elements of a list that grows while the program is looked at.
const MAX_LIST_ELEMENTS: usize = 128;

#[derive(Clone, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    Unknown,
    /// Text; [`UNKNOWN`] stands in it for parts that are not known.
    Text(Text),
    Int(i64),
    Bool(bool),
    List(Rc<Vec<Value>>),
    Dict(Rc<Vec<(Value, Value)>>),
    /// A module, function, class or object by its full name: `os.system`, `socket.socket()`.
    Api(Text),
    Function(Rc<Function>),
    /// A method of something that is not an API.
    Method(Rc<(Value, Text)>),
    /// A function with some arguments given already.
    Partial(Rc<(Value, Vec<Value>)>),
    /// An open file.
    Handle(Text),
}

impl Value {
    pub(crate) const UNKNOWN: Self = Self {
        kind: Kind::Unknown,
        taint: Taint::NONE,
        indirect: false,
        depth: 0,
    };

    pub(crate) fn of(kind: Kind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    pub(crate) fn text(text: impl Into<Text>) -> Self {
        Self::of(Kind::Text(text.into()))
    }

    pub(crate) fn api(path: impl Into<Text>) -> Self {
        let path = path.into();
        // No library nests so deep; a loop that calls its own result does.
        if path.len() > 256 {
            return Self::UNKNOWN;
        }
        Self::of(Kind::Api(path))
    }

    pub(crate) fn list(items: Vec<Self>) -> Self {
        let taint = items
            .iter()
            .fold(Taint::NONE, |taint, item| taint | item.taint);
        let depth = items.iter().map(|item| item.depth).max().unwrap_or(0);
        Self::nested(Kind::List(Rc::new(items)), taint, depth)
    }

    pub(crate) fn dict(pairs: Vec<(Self, Self)>) -> Self {
        let taint = pairs
            .iter()
            .fold(Taint::NONE, |taint, (_, value)| taint | value.taint);
        let depth = pairs
            .iter()
            .map(|(_, value)| value.depth)
            .max()
            .unwrap_or(0);
        Self::nested(Kind::Dict(Rc::new(pairs)), taint, depth)
    }

    /// Adds an element to a list, as long as there are not too many.
    pub(crate) fn push(&mut self, item: Self) {
        let Kind::List(items) = &mut self.kind else {
            return;
        };
        self.taint |= item.taint;
        if items.len() >= MAX_LIST_ELEMENTS || item.depth + 1 >= DEEPEST {
            return;
        }
        self.depth = self.depth.max(item.depth + 1);
        Rc::make_mut(items).push(item);
    }

    /// A function with some arguments given already.
    pub(crate) fn partial(callee: &Self, args: Vec<Self>) -> Self {
        let depth = args
            .iter()
            .map(|item| item.depth)
            .max()
            .unwrap_or(0)
            .max(callee.depth);
        let kind = Kind::Partial(Rc::new((callee.clone(), args)));
        let value = Self::nested(kind, callee.taint, depth);
        Self {
            indirect: callee.indirect,
            ..value
        }
    }

    /// A method of a value.
    pub(crate) fn method(base: &Self, name: &Text) -> Self {
        // Of a chain of unknown members only the last matters, save a repository's own commands.
        let repository = matches!(&base.kind, Kind::Method(inner) if &*inner.1 == "git");
        let kept = if base.is_unknown() && !repository {
            Self::unknown(base.taint)
        } else {
            base.clone()
        };
        let depth = kept.depth;
        let value = Self::nested(
            Kind::Method(Rc::new((kept, name.clone()))),
            base.taint,
            depth,
        );
        Self {
            indirect: base.indirect,
            ..value
        }
    }

    fn nested(kind: Kind, taint: Taint, depth: u8) -> Self {
        if depth >= DEEPEST {
            return Self::unknown(taint);
        }
        Self {
            kind,
            taint,
            indirect: false,
            depth: depth + 1,
        }
    }

    pub(crate) fn unknown(taint: Taint) -> Self {
        Self {
            taint,
            ..Self::default()
        }
    }

    pub(crate) fn with(mut self, taint: Taint) -> Self {
        self.taint |= taint;
        self
    }

    /// Text, with the unknown marked in it.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Text, if all of it is known.
    pub(crate) fn exact(&self) -> Option<&str> {
        self.as_text().filter(|text| !text.contains(UNKNOWN))
    }

    pub(crate) fn as_int(&self) -> Option<i64> {
        match self.kind {
            Kind::Int(int) => Some(int),
            Kind::Bool(flag) => Some(i64::from(flag)),
            _ => None,
        }
    }

    pub(crate) fn as_list(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) fn as_api(&self) -> Option<&str> {
        match &self.kind {
            Kind::Api(path) => Some(path),
            _ => None,
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        matches!(self.kind, Kind::Unknown | Kind::Method(_))
    }

    /// The value as a piece of text: known, or the mark.
    pub(crate) fn piece(&self) -> Text {
        match &self.kind {
            Kind::Text(text) => text.clone(),
            Kind::Int(int) => int.to_string().into(),
            Kind::Handle(path) => path.clone(),
            _ => UNKNOWN.to_string().into(),
        }
    }

    /// Text with other text after it.
    pub(crate) fn concat(&self, other: &Self) -> Self {
        let (left, right) = (self.piece(), other.piece());
        let taint = self.taint | other.taint;
        if left.len() + right.len() > MAX_COMPUTED_LENGTH {
            return Self::unknown(taint);
        }
        // Runs of the unknown stay one mark.
        let right = if left.ends_with(UNKNOWN) {
            right.trim_start_matches(UNKNOWN)
        } else {
            &right
        };
        let text: Text = one_slash(format!("{left}{right}")).into();
        Self {
            kind: Kind::Text(text),
            taint,
            indirect: self.indirect || other.indirect,
            depth: 0,
        }
    }

    /// The taint of the value and of everything in it.
    pub(crate) fn deep_taint(&self) -> Taint {
        match &self.kind {
            Kind::List(items) => items
                .iter()
                .take(256)
                .fold(self.taint, |taint, item| taint | item.taint),
            // What is deeper is counted in already: values are made from the inside out.
            Kind::Dict(pairs) => pairs
                .iter()
                .take(256)
                .fold(self.taint, |taint, (_, value)| taint | value.taint),
            Kind::Partial(inner) => self.taint | inner.0.taint,
            Kind::Method(inner) => self.taint | inner.0.taint,
            _ => self.taint,
        }
    }
}

/// A path of Windows below the user's home, with one kind of slash.
pub(crate) fn one_slash(path: String) -> String {
    if path.starts_with("~/") && path.contains('\\') {
        path.replace('\\', "/")
    } else {
        path
    }
}

/// Arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Args {
    pub(crate) positional: Vec<Value>,
    pub(crate) named: Vec<(Text, Value)>,
}

impl Args {
    /// Arguments by position alone.
    pub(crate) fn of(positional: Vec<Value>) -> Self {
        Self {
            positional,
            named: Vec::new(),
        }
    }

    /// The argument at a position, or with a name.
    pub(crate) fn get(&self, at: usize, name: &str) -> Option<&Value> {
        self.positional.get(at).or_else(|| self.named(name))
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Value> {
        self.named
            .iter()
            .find(|(known, _)| **known == *name)
            .map(|(_, value)| value)
    }

    pub(crate) fn first(&self) -> Option<&Value> {
        self.positional
            .first()
            .or_else(|| self.named.first().map(|(_, value)| value))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Value> {
        self.positional
            .iter()
            .chain(self.named.iter().map(|(_, value)| value))
    }

    pub(crate) fn taint(&self) -> Taint {
        self.all()
            .fold(Taint::NONE, |taint, value| taint | value.deep_taint())
    }
}
