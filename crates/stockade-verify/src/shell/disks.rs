//! Disks and memory: what fills, formats or divides them.

use stockade_shell::{Command, CommandId, Word};

use super::{Judge, has, operands, value_of};
use crate::files::Writing;
use crate::paths::{Kind, Place, Root};
use crate::result::Span;
use crate::rule::Rule;

/// More than anyone has to spare: half a terabyte.
const HUGE: u64 = 500 << 30;

impl Judge<'_> {
    /// `cat /dev/zero > file`, `yes > file`
    pub(super) fn fills_disk(
        &mut self,
        id: CommandId,
        command: &Command,
        target: &str,
        span: Span,
    ) {
        let sums = |name: &str| name.ends_with("sum") || matches!(name, "gzip" | "bzip2" | "xz");
        let huge = command.name() == Some("head")
            && value_of(command.args(), 'c', &["bytes"])
                .is_some_and(|size| bytes(size) > HUGE / 10);
        let endless = huge
            || command.name() == Some("yes")
            || command
                .name()
                .is_some_and(|name| name == "cat" || sums(name))
                && command.args().iter().any(|word| {
                    matches!(
                        word.text.as_str(),
                        "/dev/zero" | "/dev/urandom" | "/dev/random"
                    )
                });
        // The same through programs that hand on what they read.
        let passes = command.name().is_some_and(|name| {
            matches!(
                name,
                "base64" | "xxd" | "od" | "tr" | "cat" | "tee" | "gzip" | "openssl"
            )
        });
        let upstream = if passes {
            self.script.upstream(id)
        } else {
            Vec::new()
        };
        let mut sources = upstream.iter().map(|other| &self.script.commands[*other]);
        let cut = |other: &Command| matches!(other.name(), Some("head" | "dd" | "fold" | "grep"));
        let endless = endless
            || !sources.clone().any(cut)
                && sources.any(|other| {
                    let random =
                        |word: &Word| matches!(word.text.as_str(), "/dev/zero" | "/dev/urandom");
                    other.name() == Some("yes")
                        || other.name() == Some("cat") && other.args().iter().any(random)
                });
        if endless && target == "/dev/null" && self.is_brief() {
            let reason = "does nothing but keep the machine busy, without end";
            self.add(Rule::ForkBomb, span, reason);
        } else if endless && !self.place(target).is(Kind::Sink) {
            self.add(Rule::DestroyDisk, span, "fills the disk");
        }
    }

    /// `> /var/lib/db/data`, `cat /dev/null > /srv/x`: nothing is left of it.
    pub(super) fn empties(&mut self, command: &Command, target: &str, replaces: bool) {
        let args = command.args();
        let nothing = match command.name() {
            None => command.words.is_empty() && command.assignments.is_empty(),
            Some(":" | "true") => true,
            Some("cat") => args.iter().all(|word| word.text == "/dev/null") && !args.is_empty(),
            Some("echo") => args
                .iter()
                .all(|word| word.text == "-n" || word.text.is_empty()),
            _ => false,
        };
        if replaces && nothing {
            self.empties_kept(target, command.span);
        }
    }

    /// What services keep, emptied.
    pub(super) fn empties_kept(&mut self, file: &str, span: Span) {
        let place = self.place(file);
        let kept = [
            "/var/lib/",
            "/srv/",
            "/var/www/",
            "/var/spool/",
            "/var/backups/",
        ];
        let kept = kept.iter().any(|start| place.path.starts_with(start));
        if kept && self.is_brief() {
            let reason = format!("empties {}", place.path);
            self.add(Rule::DestroyFiles, span, reason);
        }
    }

    /// `tail /dev/zero`: keeps reading until the memory is full.
    pub(super) fn reads_without_end(&mut self, id: CommandId, name: &str, command: &Command) {
        let keeps = matches!(
            name,
            "tail" | "sort" | "tac" | "rev" | "shuf" | "wc" | "strings"
        );
        let endless = |word: &Word| matches!(word.text.as_str(), "/dev/zero" | "/dev/urandom");
        let alone = self.script.pipelines[command.pipeline].stages == 1;
        let piped = matches!(name, "tail" | "sort" | "tac" | "rev" | "shuf")
            && operands(command.args()).next().is_none()
            && self.script.upstream(id).into_iter().any(|other| {
                let other = &self.script.commands[other];
                let size = value_of(other.args(), 'c', &["bytes"]).map(bytes);
                let much = size.is_none_or(|size| size > 1 << 30);
                matches!(other.name(), Some("cat" | "head" | "dd" | "pv" | "yes"))
                    && much
                    && other
                        .args()
                        .iter()
                        .any(|word| endless(word) || word.text == "if=/dev/zero")
            });
        if piped {
            let reason = "keeps more than there is memory for";
            self.add(Rule::ForkBomb, command.span, reason);
        }
        if keeps && alone && command.args().iter().any(endless) && !has(command.args(), "c", &[]) {
            let reason = "reads what never ends";
            self.add(Rule::ForkBomb, command.span, reason);
        }
    }

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

    pub(super) fn partition(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let dry = |word: &Word| {
            matches!(
                word.text.as_str(),
                "print" | "-n" | "--no-act" | "--no-action"
            )
        };
        let shows = has(args, "l", &["list", "print", "dump"]) || args.iter().any(dry);
        let changes = match name {
            "hdparm" => has(args, "", &["security-erase", "trim-sector-ranges"]),
            _ => !shows,
        };
        let disk = operands(args).any(|word| Place::new(&word.text).is(Kind::Disk));
        if changes && disk {
            let reason = format!("`{name}` changes how a disk is divided");
            // Told in advance what to do, it asks nobody.
            let told = !matches!(command.stdin, stockade_shell::Stdin::Inherited);
            self.findings
                .weigh(told, Rule::DestroyDisk, command.span, reason);
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
