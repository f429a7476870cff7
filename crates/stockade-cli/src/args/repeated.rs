//! Flags that are given hundreds of times.
//!
//! The parser takes a microsecond for each of them, more than all else that is done with a path
//! but to ask the kernel about it. Those about paths are taken out of the line in front of it, where
//! that can't change what the line means: behind one of their own kind. The first of them stays, so
//! that the parser sees whether there may be one at all.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::PolicyArgs;

/// What was taken out, for each of [`FLAGS`].
#[derive(Default)]
pub(super) struct Repeated([Vec<OsString>; FLAGS.len()]);

/// The names of flags, and where their values belong.
const FLAGS: [(&[u8], List); 5] = [
    (b"read", |args| &mut args.read),
    (b"write", |args| &mut args.write),
    (b"deny", |args| &mut args.deny),
    (b"deny-read", |args| &mut args.deny_read),
    (b"deny-write", |args| &mut args.deny_write),
];

type List = fn(&mut PolicyArgs) -> &mut Vec<OsString>;

/// One of [`FLAGS`].
struct Flag {
    number: usize,
    /// Where in the word its value begins; none if it is the next word.
    value_at: Option<usize>,
}

impl Flag {
    fn read(word: &OsString) -> Option<Self> {
        let name = word.as_bytes().strip_prefix(b"--")?;
        let equals = name.iter().position(|byte| *byte == b'=');
        let name = &name[..equals.unwrap_or(name.len())];
        Some(Self {
            number: FLAGS.iter().position(|(known, _)| *known == name)?,
            value_at: equals.map(|at| at + "--=".len()),
        })
    }
}

impl Repeated {
    /// Takes them out, and gives back the other words. What is behind `--` is the command's.
    pub(super) fn take_out(line: Vec<OsString>) -> (Vec<OsString>, Self) {
        let (mut others, mut taken) = (Vec::new(), Self::default());
        let mut is_behind_one = false;
        let mut words = line.into_iter().peekable();
        while let Some(mut word) = words.next() {
            if word == "--" {
                others.push(word);
                others.extend(words);
                break;
            }
            // The parser takes no word with a dash in front for the value of a flag.
            let is_value = |next: &OsString| !next.as_bytes().starts_with(b"-");
            let flag = Flag::read(&word)
                .filter(|flag| flag.value_at.is_some() || words.peek().is_some_and(is_value));
            match flag {
                Some(flag) if is_behind_one => {
                    let list = &mut taken.0[flag.number];
                    if list.is_empty() {
                        list.reserve(words.len());
                    }
                    list.extend(match flag.value_at {
                        Some(at) => {
                            let mut bytes = word.into_vec();
                            bytes.drain(..at);
                            Some(OsString::from_vec(bytes))
                        }
                        None => words.next(),
                    });
                }
                Some(flag) => {
                    if flag.value_at.is_none() {
                        others.push(word);
                        word = words.next().unwrap_or_default();
                    }
                    others.push(word);
                    is_behind_one = true;
                }
                None => {
                    others.push(word);
                    is_behind_one = false;
                }
            }
        }
        (others, taken)
    }

    /// Adds them to what the parser made of the others.
    pub(super) fn add_to(self, args: &mut PolicyArgs) {
        for ((_, list), values) in FLAGS.iter().zip(self.0) {
            list(args).extend(values);
        }
    }
}
