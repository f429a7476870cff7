//! Turns the data files of this crate into Rust tables, and stops the build at a word it does not
//! know: `data/formats.list` (formats of secrets), `data/passwords.list` (commands and calls that
//! take a password), `data/words.list` (words that decide about names and values),
//! `data/injection-rules.list` and `data/injection-words.list`.
#![expect(
    clippy::expect_used,
    reason = "a build script stops at what it can't read"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

const ALPHABETS: [(&str, &str); 12] = [
    ("alnum", "Alnum"),
    ("base64", "Base64"),
    ("base64url", "Base64Url"),
    ("digit", "Digit"),
    ("dotted", "Dotted"),
    ("hex", "Hex"),
    ("lower", "Lower"),
    ("lowerhex", "LowerHex"),
    ("padded", "Padded"),
    ("secret", "Secret"),
    ("upper", "Upper"),
    ("uuid", "Uuid"),
];
const LEVELS: [(&str, &str); 4] = [
    ("low", "Low"),
    ("medium", "Medium"),
    ("high", "High"),
    ("critical", "Critical"),
];
/// A text of this length can be looked for in one pass over the input.
const MIN_ANCHOR_BYTES: usize = 3;

fn main() {
    write(
        "secrets",
        &[
            ("formats", formats),
            ("passwords", passwords),
            ("words", words),
        ],
    );
    write("injection_rules", &[("injection-rules", injection_rules)]);
    write("injection_words", &[("injection-words", injection_words)]);
}

/// Appends the Rust for a data file.
type Reader = fn(&str, &mut String);

/// Reads data files into one file of Rust.
fn write(name: &str, sources: &[(&str, Reader)]) {
    let mut out = String::new();
    for (file, read) in sources {
        let path = Path::new("data").join(format!("{file}.list"));
        println!("cargo::rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).expect("the data files are part of the crate");
        read(&text, &mut out);
    }
    let target = env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR");
    let target = Path::new(&target).join(format!("{name}.rs"));
    fs::write(target, out).expect("OUT_DIR can be written");
}

/// Calls `each(number, line)` for every line that is neither blank nor a comment.
fn lines(text: &str, mut each: impl FnMut(usize, &str)) {
    for (number, line) in text.lines().enumerate() {
        if !line.trim().is_empty() && !line.starts_with('#') {
            each(number + 1, line.trim_end());
        }
    }
}

fn lookup(table: &[(&str, &'static str)], word: &str, file: &str, number: usize) -> &'static str {
    let found = table.iter().find(|(known, _)| *known == word);
    found.map_or_else(
        || panic!("data/{file}.list:{number}: `{word}` is not known"),
        |(_, rust)| rust,
    )
}

fn formats(text: &str, out: &mut String) {
    let mut seen = BTreeSet::new();
    let mut rows = String::new();
    let mut anchors: Vec<(String, usize)> = Vec::new();
    let mut count = 0;
    lines(text, |number, line| {
        if line.starts_with(['+', '-']) {
            return;
        }
        let mut columns = line.split_whitespace();
        let mut column = |name: &str| {
            let next = columns.next();
            next.unwrap_or_else(|| panic!("data/formats.list:{number}: the {name} is missing"))
        };
        let (rule, flags, pattern) = (column("rule"), column("level"), column("pattern"));
        let name = columns.collect::<Vec<_>>().join(" ");
        assert!(
            !name.is_empty(),
            "data/formats.list:{number}: the name is missing"
        );
        let flags = Flags::read(flags, number);
        for pattern in alternatives(pattern) {
            assert!(
                seen.insert((rule.to_owned(), pattern.clone(), flags.after.clone())),
                "data/formats.list:{number}: `{pattern}` is there twice"
            );
            let parts = parts(&pattern, number);
            let anchor = anchor(&parts);
            for word in &flags.after {
                anchors.push((word.clone(), count));
            }
            if let (true, Some(at)) = (flags.after.is_empty(), anchor) {
                anchors.push((parts[at].clone().unwrap_or_else(|text| text), count));
            }
            let parts: Vec<String> = parts
                .iter()
                .map(|part| match part {
                    Ok(run) => run.clone(),
                    Err(text) => format!("Part::Text({text:?})"),
                })
                .collect();
            let _ = writeln!(
                rows,
                "    Format {{ rule: \"secret.{rule}\", name: {name:?}, level: ThreatLevel::{}, check: Check::{}, near: &{:?}, after: {}, anchor: {}, parts: &[{}] }},",
                flags.level,
                flags.check,
                flags.near,
                !flags.after.is_empty(),
                anchor.unwrap_or(0),
                parts.join(", ")
            );
            if anchor.is_none() && flags.after.is_empty() {
                anchors.push((String::new(), count));
            }
            count += 1;
        }
    });
    let _ = writeln!(
        out,
        "pub(in crate::secrets) const FORMATS: &[Format] = &[\n{rows}];"
    );
    let _ = writeln!(
        out,
        "/// Texts to look for, each with the format it belongs to."
    );
    let _ = writeln!(
        out,
        "pub(in crate::secrets) const ANCHORS: &[(&str, usize)] = &["
    );
    for (text, format) in anchors.iter().filter(|(text, _)| !text.is_empty()) {
        assert!(
            text.len() >= MIN_ANCHOR_BYTES,
            "data/formats.list: `{text}` is too short"
        );
        let _ = writeln!(out, "    ({text:?}, {format}),");
    }
    let runs: Vec<usize> = anchors
        .iter()
        .filter(|(text, _)| text.is_empty())
        .map(|(_, format)| *format)
        .collect();
    let _ = writeln!(
        out,
        "];\n/// Formats that are tried at each long run of letters and digits."
    );
    let _ = writeln!(
        out,
        "pub(in crate::secrets) const RUN_FORMATS: &[usize] = &{runs:?};"
    );
}

struct Flags {
    level: &'static str,
    check: &'static str,
    near: Vec<String>,
    after: Vec<String>,
}

impl Flags {
    fn read(flags: &str, number: usize) -> Self {
        let mut all = flags.split(',');
        let level = lookup(&LEVELS, all.next().unwrap_or_default(), "formats", number);
        let mut read = Self {
            level,
            check: "None",
            near: Vec::new(),
            after: Vec::new(),
        };
        for flag in all {
            let list = |words: &str| words.split('|').map(str::to_owned).collect();
            match flag.split_once('=') {
                Some(("near", words)) => read.near = list(words),
                Some(("after", words)) => read.after = list(words),
                _ => {
                    read.check = lookup(
                        &[("crc32", "Crc"), ("random", "Random")],
                        flag,
                        "formats",
                        number,
                    );
                }
            }
        }
        read
    }
}

/// `a(b|c)d` as `abd`, `acd`.
fn alternatives(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('(') else {
        return vec![pattern.to_owned()];
    };
    let (inner, after) = rest.split_once(')').expect("a parenthesis is closed");
    inner
        .split('|')
        .flat_map(|choice| alternatives(&format!("{before}{choice}{after}")))
        .collect()
}

/// Runs as Rust in `Ok`, texts in `Err`.
fn parts(pattern: &str, number: usize) -> Vec<Result<String, String>> {
    let mut parts = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let Some(inner) = rest.strip_prefix('{') else {
            let end = rest.find('{').unwrap_or(rest.len());
            parts.push(Err(rest[..end].to_owned()));
            rest = &rest[end..];
            continue;
        };
        let (run, after) = inner
            .split_once('}')
            .unwrap_or_else(|| panic!("data/formats.list:{number}: `{{` is not closed"));
        let (alphabet, length) = run
            .split_once(':')
            .unwrap_or_else(|| panic!("data/formats.list:{number}: `{run}` has no length"));
        let (least, most) = length.split_once('-').unwrap_or((length, length));
        let size = |text: &str| -> usize {
            text.parse()
                .unwrap_or_else(|_| panic!("data/formats.list:{number}: `{text}` is no number"))
        };
        assert!(
            size(least) <= size(most),
            "data/formats.list:{number}: `{length}` is empty"
        );
        let alphabet = lookup(&ALPHABETS, alphabet, "formats", number);
        parts.push(Ok(format!(
            "Part::Run(Alphabet::{alphabet}, {}, {})",
            size(least),
            size(most)
        )));
        rest = after;
    }
    parts
}

/// The longest text of a pattern, if it is long enough to be looked for.
fn anchor(parts: &[Result<String, String>]) -> Option<usize> {
    let length = |part: &Result<String, String>| part.as_ref().err().map_or(0, String::len);
    (0..parts.len())
        .rev()
        .max_by_key(|at| length(&parts[*at]))
        .filter(|at| length(&parts[*at]) >= MIN_ANCHOR_BYTES)
}

/// `command | way` and `call | place`.
fn passwords(text: &str, out: &mut String) {
    let mut commands = String::new();
    let mut calls = String::new();
    lines(text, |number, line| {
        let (text, way) = line
            .split_once(" | ")
            .unwrap_or_else(|| panic!("data/passwords.list:{number}: ` | ` is missing"));
        let text = text.trim_start();
        let words: Vec<&str> = way.split_whitespace().collect();
        let way = match words[..] {
            ["attached", flag] => format!("Way::Attached({flag:?})"),
            ["apart", flag] => format!("Way::Apart({flag:?})"),
            ["inside", flag, mark] => format!(
                "Way::Inside({flag:?}, b{:?})",
                mark.chars().next().unwrap_or(' ')
            ),
            ["last"] => "Way::Last".to_owned(),
            ["word", place] => format!("Way::Word({place})"),
            ["argument", place] => {
                let _ = writeln!(calls, "    ({text:?}, {place}),");
                return;
            }
            _ => panic!("data/passwords.list:{number}: `{way}` is not known"),
        };
        let _ = writeln!(commands, "    ({text:?}, {way}),");
    });
    let _ = writeln!(
        out,
        "pub(in crate::secrets) const COMMANDS: &[(&str, Way)] = &[\n{commands}];"
    );
    let _ = writeln!(
        out,
        "pub(in crate::secrets) const CALLS: &[(&str, usize)] = &[\n{calls}];"
    );
}

/// `NAME: word word …`; a word in quotes may hold blanks.
fn words(text: &str, out: &mut String) {
    lines(text, |number, line| {
        let (name, words) = line
            .split_once(": ")
            .unwrap_or_else(|| panic!("data/words.list:{number}: `: ` is missing"));
        let mut list = Vec::new();
        for (at, piece) in words.split('"').enumerate() {
            if at % 2 == 1 {
                list.push(piece);
            } else {
                list.extend(piece.split_whitespace());
            }
        }
        let distinct: BTreeSet<&str> = list.iter().copied().collect();
        assert_eq!(
            distinct.len(),
            list.len(),
            "data/words.list:{number}: a word is there twice"
        );
        let _ = writeln!(
            out,
            "pub(in crate::secrets) const {name}: &[&str] = &{list:?};"
        );
    });
}

/// `rule theme weight step…`; the compiler knows the themes and meanings.
fn injection_rules(text: &str, out: &mut String) {
    let _ = writeln!(out, "pub(in crate::injection) const RULES: &[Rule] = &[");
    lines(text, |number, line| {
        let mut columns = line.split_whitespace();
        let mut column = |name: &str| {
            let next = columns.next();
            next.unwrap_or_else(|| panic!("data/injection-rules.list:{number}: no {name}"))
        };
        let (id, theme, weight) = (column("rule"), column("theme"), column("weight"));
        let (theme, is_role) = match theme.split_once('/') {
            None => (theme, false),
            Some((theme, "role")) => (theme, true),
            Some((_, flag)) => panic!("data/injection-rules.list:{number}: `{flag}` is not known"),
        };
        let weight: f32 = weight.parse().unwrap_or_else(|_| {
            panic!("data/injection-rules.list:{number}: `{weight}` is no weight")
        });
        let steps: Vec<String> = columns.map(|step| injection_step(step, number)).collect();
        assert!(
            !steps.is_empty(),
            "data/injection-rules.list:{number}: no steps"
        );
        let _ = writeln!(
            out,
            "    Rule {{ id: {id:?}, theme: Theme::{theme}, weight: {weight:?}, is_role: {is_role}, steps: &[{}] }},",
            steps.join(", ")
        );
    });
    let _ = writeln!(out, "];");
}

/// `2+SEND|TELL&START`
fn injection_step(step: &str, number: usize) -> String {
    let (gap, rest) = step.split_once('+').unwrap_or(("0", step));
    let gap: u32 = gap
        .parse()
        .unwrap_or_else(|_| panic!("data/injection-rules.list:{number}: `{gap}` is no gap"));
    let mut parts = rest.split('&');
    let any = meanings(parts.next().unwrap_or_default().split('|'));
    let all = meanings(parts);
    let all = if all.is_empty() { "0" } else { all.as_str() };
    format!("Step {{ any: {any}, all: {all}, gap: {gap} }}")
}

fn meanings<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("lexicon::{name}")).collect();
    names.join(" | ")
}

/// `MEANING|MEANING: word word …` in the sections `[english]` and `[foreign]`.
fn injection_words(text: &str, out: &mut String) {
    let mut is_open = false;
    lines(text, |number, line| {
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            let end = if is_open { "];\n" } else { "" };
            let name = section.to_uppercase();
            let _ = writeln!(out, "{end}pub(super) const {name}: &[(Class, &str)] = &[");
            is_open = true;
            return;
        }
        let (names, words) = line
            .split_once(": ")
            .unwrap_or_else(|| panic!("data/injection-words.list:{number}: `: ` is missing"));
        let _ = writeln!(out, "    ({}, {words:?}),", meanings(names.split('|')));
    });
    let _ = writeln!(out, "];");
}
