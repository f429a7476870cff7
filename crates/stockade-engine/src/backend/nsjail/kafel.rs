//! The filter in Kafel, the only language in which nsjail takes one.
//!
//! In it the first entry that matches decides, as in a [`FilterSpec`], so nothing is lost. Calls
//! go by number: Kafel's own table of names is older than ours. Its program compares the
//! architecture itself, but knows nothing of the x32 bit; so every call that may pass is listed
//! and the default refuses, for numbers with that bit as for those that nobody knows.

use std::fmt::{self, Write};

use stockade_linux::seccomp::{Action, Condition, FilterSpec, Width};

/// The filter as a policy.
pub(super) fn policy(spec: &FilterSpec) -> String {
    let mut blocks: Vec<(Action, Vec<Entry>)> = Vec::new();
    let mut always: Vec<(Action, Vec<Entry>)> = Vec::new();
    for (name, number) in spec.arch.table() {
        let rule = spec.rule(name);
        for case in rule.iter().flat_map(|rule| &rule.cases) {
            let entry = Entry {
                number: *number,
                when: case.when.clone(),
            };
            match blocks.last_mut() {
                Some((action, entries)) if *action == case.then => entries.push(entry),
                _ => blocks.push((case.then, vec![entry])),
            }
        }
        let action = rule.map_or(spec.default, |rule| rule.otherwise);
        let entry = Entry {
            number: *number,
            when: Vec::new(),
        };
        match always.iter_mut().find(|(known, _)| *known == action) {
            Some((_, entries)) => entries.push(entry),
            None => always.push((action, vec![entry])),
        }
    }
    blocks.extend(always);
    let blocks = blocks.iter().map(|(action, entries)| {
        let entries: Vec<String> = entries.iter().map(Entry::to_string).collect();
        format!("{} {{\n{}\n}}", word(*action), entries.join(",\n"))
    });
    let blocks: Vec<String> = blocks.collect();
    let rest = spec.unknown.stricter(spec.x32);
    format!(
        "POLICY stockade {{\n{}\n}}\nUSE stockade DEFAULT {}\n",
        blocks.join(",\n"),
        word(rest)
    )
}

/// A call, and what must hold of its arguments.
struct Entry {
    number: u32,
    when: Vec<Condition>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SYSCALL[{}]", self.number)?;
        if self.when.is_empty() {
            return Ok(());
        }
        let mut all = String::new();
        for condition in &self.when {
            if !all.is_empty() {
                all.push_str(" && ");
            }
            let bits = match condition.width {
                Width::Full64 => u64::MAX,
                // The upper half of the register means nothing to the kernel.
                Width::Low32 => u64::from(u32::MAX),
            };
            let (mask, value) = (condition.mask & bits, condition.value & bits);
            write!(all, "(a{} & {mask:#x}) == {value:#x}", condition.arg)?;
        }
        write!(f, "(a0, a1, a2, a3, a4, a5) {{ {all} }}")
    }
}

fn word(action: Action) -> String {
    match action {
        Action::Allow => "ALLOW".to_owned(),
        Action::Errno(number) => format!("ERRNO({number})"),
        Action::Log => "LOG".to_owned(),
        // Nobody is there to answer; and what is not known is not let through.
        _ => "KILL".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use stockade_linux::seccomp::{Arch, ProfileOptions, SyscallData, X32_BIT};

    use super::*;

    /// What the text decides: the first entry that matches.
    fn decide(text: &str, number: u32, args: [u64; 6]) -> String {
        let mut action = "";
        for line in text.lines() {
            if let Some(block) = line.strip_suffix(" {").filter(|_| !line.contains("POLICY")) {
                action = block;
            } else if let Some(entry) = line.strip_prefix("SYSCALL[") {
                let (listed, rest) = entry.split_once(']').unwrap();
                let holds = rest.split(['{', '}']).nth(1).is_none_or(|conditions| {
                    conditions.split(" && ").all(|one| condition(one, args))
                });
                if listed.parse() == Ok(number) && holds {
                    return action.to_owned();
                }
            } else if let Some((_, default)) = line.split_once(" DEFAULT ") {
                return default.to_owned();
            }
        }
        panic!("no default");
    }

    fn condition(text: &str, args: [u64; 6]) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [argument, "&", mask, "==", value] = words[..] else {
            panic!("{text}");
        };
        let hex = |word: &str| {
            let digits = word.trim_end_matches(')').strip_prefix("0x").unwrap();
            u64::from_str_radix(digits, 16).unwrap()
        };
        let index: usize = argument.strip_prefix("(a").unwrap().parse().unwrap();
        args[index] & hex(mask) == hex(value)
    }

    #[test]
    fn the_text_decides_as_the_filter_does() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let spec = ProfileOptions::unmediated().filter(arch).unwrap();
            let text = policy(&spec);
            let mut values: Vec<u64> = vec![0, 1, u64::MAX, 1 << 32];
            let conditions = spec.rules.iter().flat_map(|rule| &rule.cases);
            values.extend(
                conditions
                    .flat_map(|case| &case.when)
                    .map(|when| when.value),
            );
            values.extend(values.clone().iter().map(|value| value | (1 << 40)));
            values.sort_unstable();
            values.dedup();
            let conditional: Vec<u32> = spec
                .rules
                .iter()
                .filter(|rule| !rule.cases.is_empty())
                .flat_map(|rule| rule.syscalls.iter().filter_map(|name| arch.number(name)))
                .collect();
            for number in (0..600).chain([X32_BIT, X32_BIT + 165, u32::MAX]) {
                let few = [0_u64];
                let values = if conditional.contains(&number) {
                    &values[..]
                } else {
                    &few[..]
                };
                for value in values {
                    let args = [*value; 6];
                    let data = SyscallData {
                        number,
                        arch: arch.audit(),
                        args,
                    };
                    let expected = spec.verdict(&data);
                    let decided = decide(&text, number, args);
                    if number >= X32_BIT {
                        assert!(decided.starts_with("ERRNO") || decided == "KILL");
                    } else {
                        assert_eq!(decided, word(expected), "{number} {value:#x}");
                    }
                }
            }
        }
    }
}
