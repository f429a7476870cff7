//! Commands that were there all along, but rearranged: a constant text through filters into a
//! shell. Where the text can be worked out it is judged; where not, nobody writes that honestly.

use stockade_shell::{Command, CommandId, Stdin, Word};

use super::Judge;

impl Judge<'_> {
    /// Whether a word is nothing but the output of filters on a constant text. In a longer script
    /// a word that is only in part so may well be what it seems.
    pub(super) fn is_rearranged(&self, word: &Word) -> bool {
        let inner: Vec<CommandId> = word.substitutions().flatten().collect();
        let whole = matches!(word.holes.as_slice(), [hole] if hole.range == (0..word.text.len()));
        (whole || self.is_brief()) && self.rearranges(&inner)
    }

    /// Whether commands only turn a text that is written there into another.
    pub(super) fn rearranges(&self, ids: &[CommandId]) -> bool {
        let commands = || ids.iter().filter_map(|id| self.script.commands.get(*id));
        let filters = commands().filter(|command| is_filter(command)).count();
        let source = commands().any(is_constant);
        let others = commands().filter(|command| !is_filter(command) && !prints(command));
        filters > 0 && source && others.count() == 0
    }
}

/// Passes on its input, changed, and reads nothing else.
fn is_filter(command: &Command) -> bool {
    let file = |word: &Word| word.text.starts_with(['/', '~', '.', '$']);
    matches!(
        command.name(),
        Some(
            "awk"
                | "base32"
                | "base64"
                | "cut"
                | "fold"
                | "gawk"
                | "grep"
                | "head"
                | "mawk"
                | "od"
                | "paste"
                | "perl"
                | "rev"
                | "sed"
                | "sort"
                | "tac"
                | "tail"
                | "tr"
                | "uniq"
                | "xargs"
                | "xxd"
                | "uudecode"
        )
    ) && !command.args().iter().any(file)
        && !command
            .redirects
            .iter()
            .any(|redirect| redirect.op == stockade_shell::RedirectOp::Read)
}

fn prints(command: &Command) -> bool {
    matches!(command.name(), Some("echo" | "printf" | "cat"))
}

/// Its input or what it prints is written in the script, all of it.
fn is_constant(command: &Command) -> bool {
    let known = |word: &Word| word.literal().is_some();
    let given = match &command.stdin {
        Stdin::Text(text) => known(text),
        _ => false,
    };
    let printed = matches!(command.name(), Some("echo" | "printf"))
        && !command.args().is_empty()
        && command.args().iter().all(known);
    given || printed
}
