//! `chmod` and `chown`.

use super::gather::stem;
use super::programs::Group;
use super::staging::is_temporary;
use super::{Judge, has, operands};
use crate::paths::{Kind, Place, Root};
use crate::rule::Rule;
use stockade_shell::{Command, Word, is_shell};

impl Judge<'_> {
    pub(super) fn chown(&mut self, name: &str, command: &Command) {
        let args = command.args();
        for word in operands(args).skip(1) {
            let ours = self.place(&word.text);
            let owner = operands(args).next().map_or("", |word| word.text.as_str());
            let back = owner.starts_with("root") || owner.starts_with('0');
            let system = ours.path.starts_with("/etc/") && ours.is(Kind::Credential);
            let special = |kind: &Kind| matches!(kind, Kind::Base) || kind.persists().is_some();
            let special = ours.kinds().iter().any(special) && self.is_brief();
            let own = ours.root == Root::Home || owner.contains(['$', ':']);
            let programs = ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"];
            let program = programs.iter().any(|start| ours.path.starts_with(start));
            let own = own && (!program || owner.contains('$'));
            if name == "chown" && (system || special && !own) && !back {
                let reason = format!("gives {} to {owner}", word.text);
                self.add(Rule::FileMode, command.span, reason);
            }
        }
        if !has(args, "R", &["recursive"]) {
            return;
        }
        for word in operands(args).skip(1) {
            let place = self.place(&word.text);
            let wide = place.is(Kind::System) || place.is_home();
            if wide && word.text != "/home" {
                let reason = format!("`{name}` of everything in {}", word.text);
                self.add(Rule::FileMode, command.span, reason);
            }
        }
    }

    pub(super) fn chmod(&mut self, command: &Command) {
        let args = command.args();
        let span = command.span;
        let recursive = has(args, "R", &["recursive"]);
        let mut words = args.iter().filter(|word| !is_option(word));
        let Some(mode) = words.next().map(|word| Mode::new(&word.text)) else {
            return;
        };
        let targets: Vec<&str> = words.map(|word| word.text.as_str()).collect();
        let places: Vec<Place> = targets.iter().map(|target| self.place(target)).collect();
        let shown = targets.join(" ");
        if mode.sets_id() {
            let reason = format!("makes {shown} run with its owner's rights ({})", mode.text);
            let opens = |place: &Place| {
                let name = place.path.rsplit('/').next().unwrap_or_default();
                is_shell(name) || Group::Interpreters.has(stem(name)) || is_temporary(&place.path)
            };
            if places.iter().any(opens) {
                self.findings.firm(Rule::FileMode, span, reason);
            } else {
                self.add(Rule::FileMode, span, reason);
            }
        }
        let allowed = &self.analysis.verifier.allowed_paths;
        let inside = !places.is_empty() && places.iter().all(|place| place.within(allowed));
        if mode.opens() && (!inside || recursive || mode.octal == Some(0o777)) {
            let reason = format!("lets everyone write {shown} ({})", mode.text);
            self.add(Rule::FileMode, span, reason);
        }
        if recursive
            && places
                .iter()
                .any(|place| place.is(Kind::System) || place.is_home())
        {
            self.add(
                Rule::FileMode,
                span,
                format!("changes the mode of everything in {shown}"),
            );
        }
        let disables = mode.text.ends_with("-x") || mode.octal == Some(0);
        let program = |place: &Place| {
            let all = place.all_inside && place.path.ends_with("bin") && place.is(Kind::System);
            place.is(Kind::Base) && place.path.contains("bin/") || all
        };
        if disables && places.iter().any(program) {
            let reason = format!("keeps everyone from running {shown}");
            self.add(Rule::FileMode, span, reason);
        }
        let closes = mode.octal == Some(0) && self.is_brief();
        let needed = |place: &Place| {
            place.is(Kind::System) || place.is_home() || place.path.starts_with("/etc/")
        };
        if closes && places.iter().any(needed) {
            self.add(Rule::FileMode, span, format!("closes {shown} to all"));
        }
        if closes && places.iter().any(|place| place.is(Kind::Trace)) {
            self.add(Rule::TraceRemoval, span, format!("closes {shown} to all"));
        }
        for place in &places {
            let door = place
                .kinds()
                .iter()
                .any(|kind| matches!(kind, Kind::Disk | Kind::Socket));
            if door || place.path == "/etc/shadow" {
                self.add(
                    Rule::FileMode,
                    span,
                    format!("changes the mode of {}", place.path),
                );
            }
        }
    }
}

/// An option, not a mode such as `-w`.
fn is_option(word: &Word) -> bool {
    let text = word.text.as_str();
    let cluster = text.strip_prefix('-').filter(|rest| !rest.is_empty());
    text.starts_with("--") || cluster.is_some_and(|rest| rest.bytes().all(|b| b"Rvfc".contains(&b)))
}

/// A mode as `chmod` takes it.
struct Mode<'t> {
    text: &'t str,
    octal: Option<u32>,
}

impl<'t> Mode<'t> {
    fn new(text: &'t str) -> Self {
        let octal = u32::from_str_radix(text, 8)
            .ok()
            .filter(|_| text.len() >= 3);
        Self { text, octal }
    }

    /// Whether a symbolic mode gives `what` to any of `who`.
    fn gives(&self, what: char, who: &[char]) -> bool {
        self.octal.is_none()
            && self.text.split(',').any(|part| {
                let split = part.split_once(['+', '=']);
                split.is_some_and(|(whose, bits)| bits.contains(what) && whose.contains(who))
            })
    }

    /// Set-user-id, or set-group-id on what can be executed by the group. On a directory the
    /// latter only passes the group on, and 2775 is what people give directories.
    fn sets_id(&self) -> bool {
        let octal = self.octal.is_some_and(|bits| {
            bits & 0o4000 != 0 || bits & 0o2010 == 0o2010 && bits & 0o777 != 0o775
        });
        let anyone = self.text.starts_with("+s") || self.text.starts_with("+xs");
        octal
            || anyone
            || self.gives('s', &['u', 'a'])
            || self.gives('s', &['g']) && self.gives('x', &['g'])
    }

    /// Others may write; the sticky bit makes a directory safe for that.
    fn opens(&self) -> bool {
        self.octal.is_some_and(|bits| bits & 0o1002 == 0o2) || self.gives('w', &['o', 'a'])
    }
}
