//! Every line of `data/formats.list` is tried: an example made of its pattern is found, look-alikes
//! of it are not.

use super::*;
use crate::engine::Kinds;
use crate::inspector::inspect_all;

/// A small generator with a fixed start, so that a failure can be repeated.
struct Generator(u64);

impl Generator {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn run(&mut self, alphabet: Alphabet, length: usize) -> String {
        // Signs at the ends of a value are taken for punctuation.
        let signs = |at: usize| at != 0 && at + 1 != length;
        let all: Vec<u8> = (0..128).filter(|byte| alphabet.has(*byte)).collect();
        (0..length)
            .map(|at| {
                loop {
                    let byte = all[self.next(all.len())];
                    if byte.is_ascii_alphanumeric() || signs(at) {
                        return char::from(byte);
                    }
                }
            })
            .collect()
    }

    fn example(&mut self, format: &Format, shorten: usize) -> String {
        let mut text = String::new();
        for (place, part) in format.parts.iter().enumerate() {
            match *part {
                Part::Text(literal) => text.push_str(literal),
                Part::Run(alphabet, least, _) => {
                    let is_last = format.parts[place + 1..]
                        .iter()
                        .all(|part| matches!(part, Part::Text(_)));
                    text.push_str(&self.run(alphabet, least - if is_last { shorten } else { 0 }));
                }
            }
        }
        if format.check == Check::Crc && shorten == 0 {
            let Some(Part::Text(prefix)) = format.parts.first() else {
                panic!("a checksum needs a prefix")
            };
            let random = text[prefix.len()..text.len() - 6].to_owned();
            text = format!("{prefix}{}", checksum::tests::sealed(&random));
        }
        text
    }
}

fn context(format: &Format) -> String {
    let words = format.near.iter().map(|word| (*word).to_owned());
    let mut before: Vec<String> = words.collect();
    if format.after {
        let place = FORMATS
            .iter()
            .position(|other| std::ptr::eq(other, format))
            .unwrap();
        before.extend(
            ANCHORS
                .iter()
                .filter(|(_, at)| *at == place)
                .map(|(word, _)| (*word).to_owned()),
        );
    }
    before.truncate(1);
    before.concat()
}

fn rules(text: &str) -> Vec<&'static str> {
    let found = inspect_all(Kinds::SECRETS, [""; 0], text).findings;
    found.into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn an_example_of_each_format_is_found() {
    let mut generator = Generator(7);
    let mut missed = Vec::new();
    for format in FORMATS {
        // A random value lacks digits now and then, which `random` asks for.
        let found = (0..4).any(|_| {
            let text = format!("{} {}\n", context(format), generator.example(format, 0));
            let found = rules(&text);
            let better = found
                .iter()
                .any(|rule| FORMATS.iter().any(|other| other.rule == *rule));
            found.contains(&format.rule) || better
        });
        if !found {
            missed.push(format!("{} {:?}", format.rule, format.parts));
        }
    }
    assert!(
        missed.is_empty(),
        "{} not found:\n{}",
        missed.len(),
        missed.join("\n")
    );
}

#[test]
fn look_alikes_of_each_format_are_quiet() {
    let mut generator = Generator(11);
    let mut wrong = Vec::new();
    for format in FORMATS {
        let example = generator.example(format, 0);
        let filled: String = match format.parts.first() {
            Some(Part::Text(prefix)) => {
                format!("{prefix}{}", "x".repeat(example.len() - prefix.len()))
            }
            _ => "x".repeat(example.len()),
        };
        let joined = format!("word{example}");
        // After a word that announces it, a value may follow any sign.
        let starts_inside = format.after
            || matches!(format.parts.first(), Some(Part::Text(text)) if text.starts_with('/'))
            || matches!(format.parts.first(), Some(Part::Run(Alphabet::Digit, ..)));
        // One byte less than the format has, if no other format of the rule is that short.
        let short = generator.example(format, 1);
        let is_alone = FORMATS
            .iter()
            .filter(|other| other.rule == format.rule)
            .count()
            == 1;
        for (text, applies) in [(filled, true), (joined, !starts_inside), (short, is_alone)] {
            let text = format!("{} {text}\n", context(format));
            if applies && rules(&text).contains(&format.rule) {
                wrong.push(format!("{} {text}", format.rule));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} found:\n{}",
        wrong.len(),
        wrong.concat()
    );
}

#[test]
fn examples_and_look_alikes_in_the_data_are_judged_as_written() {
    let mut rule = String::new();
    for line in include_str!("../../../data/formats.list").lines() {
        match line.as_bytes() {
            [b'+', b' ', ..] => assert!(rules(&line[2..]).contains(&rule.as_str()), "{line}"),
            [b'-', b' ', ..] => assert!(!rules(&line[2..]).contains(&rule.as_str()), "{line}"),
            [b'#', ..] | [] => {}
            _ => rule = format!("secret.{}", line.split_whitespace().next().unwrap()),
        }
    }
}

#[test]
fn a_value_with_something_pasted_behind_it_is_evidence_as_a_whole() {
    let text = "x ghp_q7Jz0TnV4dKpW2mXc8RbYh5LsGfE1a2Bc4Deextra y";
    let found = inspect_all(Kinds::SECRETS, [""; 0], text).findings;
    let span = found.first().expect("the token is found").span;
    let place = |offset| usize::try_from(offset).unwrap();
    assert_eq!(
        &text[place(span.start)..place(span.end)],
        text.split(' ').nth(1).unwrap()
    );
}
