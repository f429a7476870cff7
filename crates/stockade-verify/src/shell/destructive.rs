//! Service clients: commands that delete what a service holds, from `rules/destructive.list`.

use std::collections::HashMap;
use std::sync::OnceLock;

use stockade_shell::Command;

use super::Judge;
use crate::hosts;
use crate::rule::Rule;

struct Entry {
    /// Alternatives for each word, in order.
    needs: Vec<Vec<&'static str>>,
    absent: Vec<&'static str>,
}

impl Judge<'_> {
    pub(super) fn destructive(&mut self, name: &str, command: &Command) {
        let args: Vec<String> = command
            .args()
            .iter()
            .map(|word| word.text.to_ascii_lowercase())
            .collect();
        let program = match name {
            "python" | "python3" => args
                .iter()
                .find_map(|arg| arg.rsplit('/').next().filter(|file| *file == "manage.py"))
                .unwrap_or(name),
            _ => name,
        };
        let table = table();
        let found = table
            .get(program)
            .is_some_and(|entries| entries.iter().any(|entry| entry.matches(&args)));
        if found {
            let shown: Vec<&str> = args.iter().take(4).map(String::as_str).collect();
            self.add(
                Rule::DestroyData,
                command.span,
                format!("`{name} {}` deletes what a service holds", shown.join(" ")),
            );
        }
        if matches!(name, "curl" | "http" | "https" | "xh" | "wget") {
            self.rest_delete(command, &args);
        }
    }

    /// `curl -X DELETE` of something other than a page on this machine's own test server.
    fn rest_delete(&mut self, command: &Command, args: &[String]) {
        let method = args.windows(2).any(|pair| {
            matches!(pair[0].as_str(), "-x" | "--request" | "--method") && pair[1] == "delete"
        }) || args.iter().any(|arg| {
            matches!(
                arg.as_str(),
                "-xdelete" | "--request=delete" | "--method=delete" | "delete"
            )
        });
        let url = args.iter().find(|arg| {
            hosts::is_url(arg) || arg.starts_with("localhost") || arg.contains(":9200")
        });
        if let (true, Some(url)) = (method, url) {
            self.add(
                Rule::DestroyData,
                command.span,
                format!("deletes {url} through its interface"),
            );
        }
    }
}

impl Entry {
    fn matches(&self, args: &[String]) -> bool {
        if args.iter().any(|arg| self.absent.contains(&arg.as_str())) {
            return false;
        }
        let mut rest = args.iter();
        self.needs.iter().all(|choices| {
            let flag = choices.iter().all(|choice| choice.starts_with('-'));
            let fits = |arg: &String| choices.iter().any(|choice| fits(choice, arg));
            // Options may stand anywhere; words keep their order.
            if flag {
                args.iter().any(fits)
            } else {
                rest.any(fits)
            }
        })
    }
}

fn fits(choice: &str, arg: &str) -> bool {
    match (choice.strip_prefix('*'), choice.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(tail), Some(_)) => arg.contains(tail.trim_end_matches('*')),
        (Some(tail), None) => arg.ends_with(tail),
        _ if choice.len() == 2 && choice.starts_with('-') => {
            arg.starts_with('-') && !arg.starts_with("--") && arg.contains(&choice[1..])
        }
        _ => arg == choice,
    }
}

fn table() -> &'static HashMap<&'static str, Vec<Entry>> {
    static TABLE: OnceLock<HashMap<&'static str, Vec<Entry>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: HashMap<&'static str, Vec<Entry>> = HashMap::new();
        for line in include_str!("../../rules/destructive.list").lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split(' ');
            let programs = words.next().unwrap_or_default();
            let (absent, needs): (Vec<&str>, Vec<&str>) =
                words.partition(|word| word.starts_with('!'));
            for program in programs.split('|') {
                let needs = needs.iter().map(|word| word.split('|').collect()).collect();
                let absent = absent.iter().map(|word| &word[1..]).collect();
                table
                    .entry(program)
                    .or_default()
                    .push(Entry { needs, absent });
            }
        }
        table
    })
}
