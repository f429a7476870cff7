//! Lines that make a program run a shell command: `!command` to an editor, `\\!` to a database
//! client, keys sent to a terminal.

use crate::model::{Stdin, Word};
use crate::wrappers::{Inner, rest};

/// Lines of one text that are looked at.
const MAX_LINES: usize = 64;

/// Programs that take a line that begins with `!` as a command.
fn marks(name: &str) -> &'static [&'static str] {
    match name {
        "ed" | "red" | "ex" | "vi" | "vim" | "nvim" | "rvim" | "rview" | "view" | "vimdiff" => {
            &[":!", "!"]
        }
        "ftp" | "sftp" | "lftp" | "ncftp" | "psftp" | "telnet" | "less" | "more" | "man"
        | "mail" | "mailx" | "mutt" | "gnuplot" | "smbclient" | "tdbtool" | "ginsh" | "cpan"
        | "debugfs" | "dc" => &["!"],
        "mysql" | "mariadb" | "mycli" => &["\\!", "system "],
        "psql" | "pgcli" => &["\\!"],
        "sqlite3" | "sqlite" => &[".shell ", ".system "],
        _ => &[],
    }
}

/// Adds the commands that a program's arguments and input hold for a shell.
pub(crate) fn push(out: &mut Vec<Inner>, name: &str, args: &[Word], stdin: &Stdin) {
    if name == "tmux" || name == "screen" {
        return out.extend(typed(args).map(Inner::Shell));
    }
    if let Some(told) = later(name, args) {
        out.push(Inner::Deferred(told));
    }
    let marks = marks(name);
    if marks.is_empty() {
        return;
    }
    if marks.contains(&":!") {
        out.extend(args.iter().filter_map(through_editor).map(Inner::Shell));
    }
    let told = args.iter().filter_map(|word| {
        let text = word.text.trim_start_matches('+');
        let skipped = word.text.len() - text.len();
        let mark = marks.iter().find(|mark| text.starts_with(**mark))?;
        Some(Inner::Shell(rest(word, skipped + mark.len())))
    });
    out.extend(told);
    let Stdin::Text(input) = stdin else {
        return;
    };
    let Some(text) = input.literal() else {
        return;
    };
    let lines = text.lines().take(MAX_LINES).filter_map(|line| {
        let line = line.trim_start();
        marks.iter().find_map(|mark| line.strip_prefix(mark))
    });
    out.extend(lines.map(|line| {
        Inner::Shell(Word {
            text: line.to_owned(),
            span: input.span,
            ..Word::default()
        })
    }));
}

/// `r !command`, `%!command`, `w !command`: what an editor passes text through.
fn through_editor(word: &Word) -> Option<Word> {
    let at = word.text.find('!')?;
    let before = word.text[..at].trim_start_matches(['+', ':', '-', 'c']);
    let range =
        |c: char| c.is_ascii_digit() || matches!(c, '%' | '.' | ',' | '$' | ' ' | 'r' | 'w');
    (at > 0 && before.chars().all(range) && !before.is_empty()).then(|| rest(word, at + 1))
}

/// `complete -C command`, `bind -x '"key": command'`: run when a key is pressed.
fn later(name: &str, args: &[Word]) -> Option<Word> {
    let option = match name {
        "complete" => "-C",
        "bind" => "-x",
        _ => return None,
    };
    let at = args.iter().position(|word| word.text == option)?;
    let word = args.get(at + 1)?;
    let start = word.text.find("\":").filter(|_| name == "bind");
    Some(rest(word, start.map_or(0, |start| start + 2)))
}

/// `tmux send-keys 'command' Enter`, `screen -X stuff 'command'`.
fn typed(args: &[Word]) -> Option<Word> {
    let keys = |word: &Word| matches!(word.text.as_str(), "send-keys" | "send" | "stuff");
    let at = args.iter().position(keys)?;
    let mut words = args[at + 1..].iter();
    let line = words.find(|word| word.text.contains(' '))?;
    Some(line.clone())
}

/// `gdb --args command`, `gdb -ex '!command'`
pub(crate) fn debugger(args: &[Word]) -> Vec<Inner> {
    let at = args.iter().position(|word| word.text == "--args");
    if let Some(given) = at
        .map(|at| &args[at + 1..])
        .filter(|given| !given.is_empty())
    {
        return vec![Inner::Words(given.to_vec())];
    }
    let told = |word: &Word| {
        let text = word.text.as_str();
        let told = text
            .strip_prefix('!')
            .or_else(|| text.strip_prefix("shell "))?;
        Some(Inner::Shell(rest(word, text.len() - told.len())))
    };
    args.iter().filter_map(told).collect()
}
