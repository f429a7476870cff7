//! Disks and memory: what fills, formats or divides them.

use stockade_shell::{Command, Word};

use super::{Judge, operands};
use crate::files::Writing;
use crate::paths::Root;
use crate::rule::Rule;

/// More than anyone has to spare: half a terabyte.
const HUGE: u64 = 500 << 30;

impl Judge<'_> {
    pub(super) fn dd(&mut self, command: &Command) {
        let args = command.args();
        let starts = |prefix: &str| args.iter().any(|word| word.text.starts_with(prefix));
        let endless = ["if=/dev/zero", "if=/dev/urandom", "if=/dev/random"]
            .iter()
            .any(|source| starts(source));
        let bounded = starts("count=") && dd_size(args) < HUGE;
        if endless && starts("of=") && !starts("of=/dev/") && !bounded {
            self.add(Rule::DestroyDisk, command.span, "fills the disk");
        }
        for word in args {
            if let Some(target) = word.text.strip_prefix("of=") {
                self.write_at(target, Writing::Replace, command.span);
            }
            if let Some(source) = word.text.strip_prefix("if=") {
                self.read_at(source, command.span);
            }
        }
    }

    pub(super) fn format_disk(&mut self, command: &Command) {
        // A file of the work is an image, whatever is made in it.
        let image = |word: &Word| {
            let place = self.place(&word.text);
            matches!(place.root, Root::Inside) && word.literal().is_some()
        };
        let mut targets = operands(command.args()).peekable();
        if targets.peek().is_some() {
            let certain = targets.any(|word| !image(word));
            let reason = "formats a file system";
            self.findings
                .weigh(certain, Rule::DestroyDisk, command.span, reason);
        }
    }
}

/// How much `dd` is told to write.
fn dd_size(args: &[Word]) -> u64 {
    let value = |name: &str| {
        let text = args.iter().find_map(|word| word.text.strip_prefix(name));
        text.map(bytes)
    };
    let count = value("count=").unwrap_or(0);
    count.saturating_mul(value("bs=").unwrap_or(512))
}

/// A number with a unit, as `dd` and `head` take it; nothing if it is not one.
fn bytes(text: &str) -> u64 {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text[digits.len()..].chars().next() {
        Some('k' | 'K') => 1 << 10,
        Some('m' | 'M') => 1 << 20,
        Some('g' | 'G') => 1 << 30,
        Some('t' | 'T') => 1 << 40,
        _ => 1u64,
    };
    digits
        .parse::<u64>()
        .map_or(0, |number| number.saturating_mul(unit))
}
