//! Output of commands that only rearrange constants: `echo`, `printf`, `base64 -d`, `rev`, `tr`.
//!
//! Nothing is run. What these commands would print is worked out so that text hidden behind them
//! can be read; anything not understood gives `None`.

use std::fmt::Write as _;

use crate::escape;
use crate::model::{Command, HoleKind, Spelling, Stdin, Word};
use crate::wrappers;

/// Longer texts are not folded.
const MAX_FOLDED_BYTES: usize = 1 << 20;

/// Whether [`output`] could know what this command prints.
pub(crate) fn may_fold(name: &str) -> bool {
    matches!(
        name,
        "echo"
            | "printf"
            | "cat"
            | "rev"
            | "tac"
            | "tr"
            | "base64"
            | "base32"
            | "xxd"
            | "openssl"
            | "head"
            | "cut"
            | "sed"
            | "tee"
            | "realpath"
            | "readlink"
            | "dirname"
            | "type"
            | "which"
            | "command"
    )
}

/// What the command writes to its standard output, if that is constant. Texts that are passed on
/// unchanged keep their unknown parts.
pub(crate) fn output(command: &Command) -> Option<Word> {
    let name = command.name()?;
    let words = command.args();
    match (name, &command.stdin) {
        ("cat" | "tee", Stdin::Text(text))
            if name == "tee" || words.iter().all(|w| w.text == "-") =>
        {
            return Some(text.clone());
        }
        ("cat", _) if !words.is_empty() => return process_outputs(words),
        ("echo", _) if !words.first().is_some_and(|word| word.text.starts_with('-')) => {
            let mut text = wrappers::join(words);
            text.text.push('\n');
            text.span = command.span;
            return Some(text);
        }
        _ => {}
    }
    let text = literal_output(command, name)?;
    (text.len() <= MAX_FOLDED_BYTES).then(|| Word {
        spelling: Spelling {
            computed: is_computed(command, name, &text),
            ..Spelling::default()
        },
        text,
        span: command.span,
        ..Word::default()
    })
}

/// What `cat <(…) <(…)` prints. A text that is put together like that was not meant to be read.
fn process_outputs(words: &[Word]) -> Option<Word> {
    let printed = |word: &Word| match word.holes.as_slice() {
        [hole] if hole.range.len() == word.text.len() => match &hole.kind {
            HoleKind::Process { output, .. } => output.as_deref().cloned(),
            _ => None,
        },
        _ => None,
    };
    let printed: Option<Vec<Word>> = words.iter().map(printed).collect();
    let join = |left: Word, right: Word| wrappers::concat(left, &right);
    let mut whole = printed?.into_iter().reduce(join)?;
    whole.spelling.computed |= words.len() > 1;
    Some(whole)
}

/// Whether the command that a text begins with could not be read in the text it was made from.
pub(crate) fn is_hidden(from: &str, text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    first.len() > 1 && !from.contains(first)
}

/// Whether an output is another text than the one that was written.
fn is_computed(command: &Command, name: &str, output: &str) -> bool {
    let args = command.args();
    match name {
        "echo" | "printf" => {
            let numbers = args.iter().any(|word| escape::spells_letters(&word.text));
            let values = args.get(1..).unwrap_or_default();
            let letters = values.len() >= 4 && output.len() <= values.len() * 3;
            let mut texts = args.iter().filter(|word| word.text.len() > 2);
            let first = texts.next().is_some_and(|word| word.spelling.computed);
            let given = first && texts.all(|word| word.spelling.computed);
            numbers || name == "printf" && letters || given
        }
        "which" | "command" | "type" | "realpath" | "readlink" | "dirname" => false,
        _ => match &command.stdin {
            Stdin::Text(input) => input.spelling.computed || is_hidden(&input.text, output),
            _ => false,
        },
    }
}

fn literal_output(command: &Command, name: &str) -> Option<String> {
    // Patterns are passed on as they are; whoever takes them takes what they stand for.
    let known = |word: &'_ Word| match name {
        "echo" | "printf" => word.constant().is_some(),
        _ => word.literal().is_some(),
    };
    if !command.args().iter().all(known) {
        return None;
    }
    let args: Vec<&str> = command
        .args()
        .iter()
        .map(|word| word.text.as_str())
        .collect();
    let input = match &command.stdin {
        Stdin::Text(text) => text.literal(),
        _ => None,
    };
    match name {
        "echo" => Some(echo(&args)),
        "printf" => printf(&args),
        "rev" if args.is_empty() => Some(input?.split_inclusive('\n').map(reverse_line).collect()),
        "tac" if args.is_empty() => {
            let lines: Vec<_> = input?.lines().rev().collect();
            Some(lines.join("\n") + "\n")
        }
        "tr" => translate(&args, input?),
        "base64" | "base32" | "xxd" | "openssl" => decode(name, &args, input?),
        "sed" => crate::sed::output(&args, input?),
        "cut" => cut(&args, input?),
        "realpath" | "readlink" | "dirname" => {
            let path = args.iter().rfind(|arg| !arg.starts_with('-'))?;
            let resolves = name != "readlink" || args.len() > 1;
            match path
                .rsplit_once('/')
                .filter(|_| path.starts_with('/') && resolves)?
            {
                (parent, _) if name == "dirname" => {
                    Some(parent.to_owned() + if parent.is_empty() { "/" } else { "" })
                }
                _ => Some((*path).to_owned()),
            }
        }
        // Where a program is, is the program.
        "which" | "command" | "type" => match args.as_slice() {
            [program] if name == "which" => Some((*program).to_owned()),
            ["-v" | "-pv", program] if name == "command" => Some((*program).to_owned()),
            ["-P" | "-p", program] if name == "type" => Some((*program).to_owned()),
            _ => None,
        },
        _ => None,
    }
}

fn echo(args: &[&str]) -> String {
    let flags = args
        .iter()
        .take_while(|arg| {
            arg.len() > 1 && arg.starts_with('-') && arg[1..].bytes().all(|b| b"neE".contains(&b))
        })
        .count();
    let (flags, words) = args.split_at(flags);
    let text = words.join(" ");
    let mut text = if flags.iter().any(|flag| flag.contains('e')) {
        escape::echo(&text)
    } else {
        text
    };
    if !flags.iter().any(|flag| flag.contains('n')) {
        text.push('\n');
    }
    text
}

fn printf(args: &[&str]) -> Option<String> {
    let mut args = args;
    if args.first() == Some(&"-v") {
        return None;
    }
    if args.first() == Some(&"--") {
        args = &args[1..];
    }
    let (format, mut values) = args
        .split_first()
        .map(|(f, v)| (escape::printf(f), v.iter()))?;
    let mut out = String::new();
    loop {
        let before = values.len();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut conversion = chars.next()?;
            while matches!(conversion, '-' | '0'..='9' | '.' | '+' | ' ' | '#' | '\'') {
                conversion = chars.next()?;
            }
            let mut value = || values.next().copied().unwrap_or_default();
            match conversion {
                '%' => out.push('%'),
                's' | 'q' => out.push_str(value()),
                'b' => out.push_str(&escape::echo(value())),
                'c' => out.extend(value().chars().next()),
                'd' | 'i' | 'u' => out.push_str(&number(value())?.to_string()),
                'x' => write!(out, "{:x}", number(value())?).ok()?,
                'o' => write!(out, "{:o}", number(value())?).ok()?,
                _ => return None,
            }
            if out.len() > MAX_FOLDED_BYTES {
                return None;
            }
        }
        if values.len() == 0 || values.len() == before {
            return Some(out);
        }
    }
}

fn number(text: &str) -> Option<i64> {
    if let Some(quoted) = text.strip_prefix(['\'', '"']) {
        return quoted.chars().next().map(|c| i64::from(u32::from(c)));
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).ok();
    }
    if text.is_empty() {
        Some(0)
    } else {
        text.parse().ok()
    }
}

fn reverse_line(line: &str) -> String {
    let (text, end) = line
        .strip_suffix('\n')
        .map_or((line, ""), |text| (text, "\n"));
    text.chars().rev().chain(end.chars()).collect()
}

/// A set of `tr`: characters and ranges.
fn set(text: &str) -> Option<Vec<char>> {
    let decoded = escape::printf(text);
    let named = decoded
        .replace("[:lower:]", "a-z")
        .replace("[:upper:]", "A-Z")
        .replace("[:digit:]", "0-9")
        .replace("[:space:]", " \t\n");
    let chars: Vec<char> = named
        .trim_matches(|c| c == '[' || c == ']')
        .chars()
        .collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if at + 2 < chars.len() && chars[at + 1] == '-' && chars[at] <= chars[at + 2] {
            out.extend(chars[at]..=chars[at + 2]);
            at += 3;
        } else {
            out.push(chars[at]);
            at += 1;
        }
        if out.len() > 4096 {
            return None;
        }
    }
    Some(out)
}

fn translate(args: &[&str], input: &str) -> Option<String> {
    match args {
        ["-d" | "--delete", from] => {
            let from = set(from)?;
            Some(input.chars().filter(|c| !from.contains(c)).collect())
        }
        [from, to] if !from.starts_with('-') => {
            let (from, to) = (set(from)?, set(to)?);
            let last = to.last().copied()?;
            let swap = |c: char| {
                let at = from.iter().position(|f| *f == c);
                at.map_or(c, |at| to.get(at).copied().unwrap_or(last))
            };
            Some(input.chars().map(swap).collect())
        }
        _ => None,
    }
}

fn decode(name: &str, args: &[&str], input: &str) -> Option<String> {
    let decodes = |flag: &&str| {
        matches!(
            *flag,
            "-d" | "-D"
                | "--decode"
                | "-di"
                | "-id"
                | "-w0"
                | "-i"
                | "-A"
                | "-a"
                | "-r"
                | "-p"
                | "-ps"
                | "enc"
                | "-base64"
                | "base64"
                | "-rp"
                | "-pr"
                | "-"
        )
    };
    if !args.iter().all(decodes) || !args.iter().any(|a| a.contains(['d', 'D', 'r'])) {
        return None;
    }
    let bytes = match name {
        "base64" | "openssl" => base64(input)?,
        "base32" => base32(input)?,
        _ => hex(input)?,
    };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes base64 with either alphabet, blanks ignored; `None` if anything else is in it.
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let value = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    bits(text, 6, value)
}

fn base32(text: &str) -> Option<Vec<u8>> {
    let value = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'2'..=b'7' => Some(b - b'2' + 26),
        _ => None,
    };
    bits(text, 5, value)
}

/// Decodes pairs of hexadecimal digits, blanks ignored; `None` if anything else is in it.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    let value = |b: u8| {
        char::from(b)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    bits(text, 4, value)
}

fn bits(text: &str, width: u32, value: impl Fn(u8) -> Option<u8>) -> Option<Vec<u8>> {
    if text.len() > MAX_FOLDED_BYTES * 2 {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    let (mut held, mut count) = (0u32, 0u32);
    for byte in text.bytes() {
        if byte.is_ascii_whitespace() || byte == b'=' {
            continue;
        }
        held = held << width | u32::from(value(byte)?);
        count += width;
        if count >= 8 {
            count -= 8;
            out.push((held >> count & 0xff).to_le_bytes()[0]);
            held &= (1 << count) - 1;
        }
    }
    Some(out)
}

/// `cut -c A-B` of one line.
fn cut(args: &[&str], input: &str) -> Option<String> {
    let range = match args {
        ["-c" | "-b", range] => *range,
        [one] => one.strip_prefix("-c").or_else(|| one.strip_prefix("-b"))?,
        _ => return None,
    };
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let first: usize = if first.is_empty() {
        1
    } else {
        first.parse().ok()?
    };
    let last: usize = if last.is_empty() {
        usize::MAX
    } else {
        last.parse().ok()?
    };
    let keep = |line: &str| -> String {
        line.chars()
            .skip(first.saturating_sub(1))
            .take(last.saturating_sub(first.saturating_sub(1)))
            .collect()
    };
    Some(input.lines().map(|line| keep(line) + "\n").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printf_reuses_its_format() {
        assert_eq!(
            printf(&["%s-%d\\n", "a", "1", "b", "0x10"]).unwrap(),
            "a-1\nb-16\n"
        );
        assert_eq!(printf(&["\\x72\\155"]).unwrap(), "rm");
        assert_eq!(printf(&["%*d", "1"]), None);
    }

    #[test]
    fn echo_knows_its_flags() {
        assert_eq!(echo(&["-ne", "a\\tb"]), "a\tb");
        assert_eq!(echo(&["-x", "b"]), "-x b\n");
    }

    #[test]
    fn translations() {
        assert_eq!(translate(&["a-z", "b-za"], "ql").unwrap(), "rm");
        assert_eq!(translate(&["-d", "X"], "rXm").unwrap(), "rm");
        assert_eq!(translate(&["A-Za-z", "N-ZA-Mn-za-m"], "ez").unwrap(), "rm");
    }

    #[test]
    fn decoders() {
        assert_eq!(base64("cm0gLXJmIC8=").unwrap(), b"rm -rf /");
        assert_eq!(hex("726d 0a").unwrap(), b"rm\n");
        assert_eq!(base64("rm -rf!"), None);
        assert_eq!(cut(&["-c2-3"], "arm\n").unwrap(), "rm\n");
        assert_eq!(crate::sed::output(&["s/X//g"], "rXm").unwrap(), "rm");
    }
}
