//! Commands that a program starts to carry its data to other machines.

use super::judge::Judge;
use super::send::is_login;
use super::value::{Args, Taint, Value};
use crate::paths::UNKNOWN;
use crate::result::Span;

/// Programs that carry what they are given to other machines.
const TALKERS: &[&str] = &[
    "curl", "dig", "ftp", "host", "http", "https", "mail", "mailx", "mutt", "nc", "ncat", "netcat",
    "nslookup", "openssl", "sendmail", "socat", "telnet", "websocat", "wget", "xh",
];

impl Judge<'_> {
    /// Secrets among the words of a command, or fed to it, that talks to other machines.
    pub(super) fn gives_away(&mut self, path: &str, words: &[Value], args: &Args, span: Span) {
        let Some((program, rest)) = words.split_first() else {
            return;
        };
        let program = program.as_text().unwrap_or_default();
        let mut before = "";
        let mut carried: Vec<Value> = args.named("input").cloned().into_iter().collect();
        for word in rest {
            let text = word.as_text().unwrap_or_default();
            let signs = match before {
                "-u" | "--user" => true,
                "-H" | "--header" => text
                    .split(':')
                    .next()
                    .is_some_and(|name| is_login(name) || name.contains(UNKNOWN)),
                _ => false,
            };
            if !signs {
                carried.push(word.clone());
            }
            before = text;
        }
        self.hands_out(path, program, carried, span);
    }

    /// The same of a command in one text, where which part is the secret is not known.
    pub(super) fn gives_away_in(&mut self, path: &str, command: &str, taint: Taint, span: Span) {
        let program = command.split_whitespace().next().unwrap_or_default();
        let mut words = command.split_whitespace();
        let signed = words.any(|word| matches!(word, "-H" | "--header" | "-u" | "--user"));
        if !signed {
            self.hands_out(path, program, vec![Value::unknown(taint)], span);
        }
    }

    fn hands_out(&mut self, path: &str, program: &str, carried: Vec<Value>, span: Span) {
        let program = program.rsplit('/').next().unwrap_or(program);
        let program = program.trim_end_matches(".exe");
        if !TALKERS.contains(&program) {
            return;
        }
        let args = Args::of(carried);
        let names = args.taint().has(Taint::IDENTITY);
        if names && matches!(program, "curl" | "wget" | "nc" | "ncat" | "netcat") {
            self.sends(path, &args, span);
        } else {
            self.sends_unknown(path, &args, span);
        }
    }
}
