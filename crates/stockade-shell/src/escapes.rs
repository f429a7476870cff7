//! Lines that make a program run a shell command: `!command` to an editor, `\\!` to a database
//! client, keys sent to a terminal.

use crate::model::{Stdin, Word};
use crate::wrappers::{Inner, rest};

/// Lines of one text that are looked at.
const MOST: usize = 64;

/// Programs that take a line that begins with `!` as a command.
fn marks(name: &str) -> &'static [&'static str] {
    match name {
        "ed" | "red" | "ex" | "vi" | "vim" | "nvim" | "rvim" | "rview" | "view" | "vimdiff" => {
            &[":!", "!"]
        }
        "ftp" | "sftp" | "lftp" | "ncftp" | "psftp" | "telnet" | "less" | "more" | "man"
        | "mail" | "mailx" | "mutt" | "gnuplot" | "smbclient" | "tdbtool" | "ginsh" | "cpan"
        | "debugfs" | "dc" => &["!"],
        "psql" | "mysql" | "mariadb" | "pgcli" | "mycli" => &["\\!"],
        "sqlite3" | "sqlite" => &[".shell ", ".system "],
        _ => &[],
    }
}

/// Adds the commands that a program's arguments and input hold for a shell.
pub(crate) fn push(out: &mut Vec<Inner>, name: &str, args: &[Word], stdin: &Stdin) {
    if name == "tmux" || name == "screen" {
        return out.extend(typed(args).map(Inner::Shell));
    }
    let marks = marks(name);
    if marks.is_empty() {
        return;
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
    let lines = text.lines().take(MOST).filter_map(|line| {
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

/// `tmux send-keys 'command' Enter`, `screen -X stuff 'command'`.
fn typed(args: &[Word]) -> Option<Word> {
    let keys = |word: &Word| matches!(word.text.as_str(), "send-keys" | "send" | "stuff");
    let at = args.iter().position(keys)?;
    let mut words = args[at + 1..].iter();
    let line = words.find(|word| word.text.contains(' '))?;
    Some(line.clone())
}
