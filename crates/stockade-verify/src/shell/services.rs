//! Clients of services: what they are told to do away with, whatever the service is.
//!
//! The programs are a list (`services` in `rules/programs.list`); what they do is read from the
//! verb among their leading words, so that a kind of resource nobody listed is judged as well.

use stockade_shell::{Command, Word};

use super::Judge;
use super::programs::Group;
use crate::rule::Rule;
use crate::words::Words;

/// Verbs after which something is gone.
static DELETES: Words = Words::new("shell/services deletes");

/// Verbs of other things; what comes after them are names.
static OTHERS: Words = Words::new("shell/services others");

/// Things so small that a line of a script may well delete one.
static SMALL: Words = Words::new("shell/services small");

/// First words that are about the client's own settings.
static OWN: Words = Words::new("shell/services own");

/// Options of these clients that take the next word.
static VALUES: Words = Words::new("shell/services values");

/// Options with which nothing happens.
static DRY: Words = Words::new("shell/services dry");

/// Leading words that are looked at.
const LEADING: usize = 5;

impl Judge<'_> {
    /// `aws glue delete-database`, `heroku pipelines:destroy`, `aliyun ecs DeleteInstance`.
    pub(super) fn service_deletes(&mut self, name: &str, command: &Command) {
        if !Group::Services.has(name) {
            return;
        }
        let args = command.args();
        if args.iter().any(|word| DRY.contains(&word.text.as_str())) {
            return;
        }
        if let Some(verb) = deleting_verb(name, args) {
            let reason = format!("`{name}` is told to {verb} what a service holds");
            self.add(Rule::DestroyData, command.span, reason);
        }
    }
}

fn deleting_verb(name: &str, args: &[Word]) -> Option<&'static str> {
    let mut value = false;
    let mut leading = 0;
    for word in args {
        let text = word.text.as_str();
        if std::mem::take(&mut value) {
            continue;
        }
        if text.starts_with('-') {
            value = VALUES.contains(&text);
            continue;
        }
        leading += 1;
        // The second word is what Amazon's client does, the rest is about what.
        let most = if name == "aws" { 2 } else { LEADING };
        if leading > most || text.len() > 64 || word.literal().is_none() {
            return None;
        }
        if leading == 1 && OWN.contains(&text.split(':').next().unwrap_or(text)) && name != "consul"
        {
            return None;
        }
        let parts = parts(text);
        for part in &parts {
            if let Some(verb) = DELETES.iter().find(|verb| *verb == part) {
                let small = parts.iter().any(|part| SMALL.contains(&part.as_str()));
                return Some(*verb).filter(|_| !small);
            }
            if OTHERS.contains(&part.as_str()) && leading > 1 {
                return None;
            }
        }
    }
    None
}

/// The words in a name: `delete-key`, `pg:backups:delete`, `vm.destroy`, `DeleteInstance`.
fn parts(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if begins || !c.is_alphanumeric() {
            out.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(last) = out.last_mut()
        {
            last.extend(c.to_lowercase());
        }
        before = c;
    }
    out.retain(|part| !part.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn names_have_parts() {
        assert_eq!(parts("pg:backups:delete"), ["pg", "backups", "delete"]);
        assert_eq!(parts("DeleteInstance"), ["delete", "instance"]);
        assert_eq!(parts("vm.destroy"), ["vm", "destroy"]);
        assert_eq!(parts("--"), [""; 0]);
    }
}
