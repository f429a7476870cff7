//! Shells and what hands text to one: `sh -c`, `su -c`, `ssh host`, `env -S`, terminals.

use crate::each::split;
use crate::model::{HoleKind, Stdin, Word};
use crate::options::skip_options;
use crate::wrappers::{Inner, join, push_shell, rest};

/// `ssh host command`, or lines for the shell there; and what is run here to reach it.
pub(crate) fn remote(args: &[Word], stdin: &Stdin) -> Vec<Inner> {
    const VALUES: &str = "bcDEeFIiJLlmOopPQRSWw";
    let mut out = Vec::new();
    for word in args {
        let text = word.text.strip_prefix("-o").unwrap_or(&word.text);
        let lower = text.to_ascii_lowercase();
        let start = ["proxycommand", "localcommand", "knownhostscommand"];
        if let Some(start) = start.iter().find(|start| lower.starts_with(**start)) {
            let from = word.text.len() - text.len() + start.len();
            let value = word.text[from..].trim_start_matches(['=', ' ', ';']);
            out.push(Inner::Shell(rest(word, word.text.len() - value.len())));
        }
    }
    let after = skip_options(args, VALUES, &[]) + 1;
    let there = args.get(after..).unwrap_or_default();
    // Options may also follow the host.
    let there = &there[skip_options(there, VALUES, &[])..];
    match (there, stdin) {
        ([], Stdin::Text(text)) => out.push(Inner::Shell(text.clone())),
        _ => push_shell(&mut out, there),
    }
    out
}

/// `su -c text`, `runuser -u name -- command`, or a shell that reads its input.
pub(crate) fn as_someone(args: &[Word], stdin: &Stdin) -> Option<Inner> {
    let given = args.iter().position(|word| word.text == "--");
    let given = given.map_or(&[][..], |at| &args[at + 1..]);
    let told = args.iter().position(|word| word.text == "-c");
    let told = told.map_or(&[][..], |at| &args[at + 1..]);
    match (dash_c(args), stdin) {
        // Some take all that follows.
        (Some(_), _) if told.len() > 1 && !told[0].text.contains(' ') => {
            Some(Inner::Shell(join(told)))
        }
        (Some(inner), _) => Some(inner),
        (None, _) if !given.is_empty() => Some(Inner::Words(given.to_vec())),
        (None, Stdin::Text(text)) => Some(Inner::Shell(text.clone())),
        _ => None,
    }
}

/// The text after `-c`, wherever it stands.
pub(crate) fn dash_c(args: &[Word]) -> Option<Inner> {
    let flag = args.iter().position(|word| {
        let text = word.text.as_str();
        matches!(text, "--command" | "--session-command")
            || (text.starts_with('-') && !text.starts_with("--") && text.ends_with('c'))
    });
    if let Some(flag) = flag {
        return args.get(flag + 1).map(|word| Inner::Shell(word.clone()));
    }
    let inline = args
        .iter()
        .find(|word| word.text.starts_with("--command="))?;
    Some(Inner::Shell(rest(inline, "--command=".len())))
}

/// `sh -c text`, or text on standard input, or a file that is a process substitution.
pub(crate) fn shell(args: &[Word], stdin: &Stdin) -> Option<Inner> {
    let mut at = 0;
    let mut wants_text = false;
    let mut reads_stdin = false;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        if !text.starts_with(['-', '+']) || text.len() < 2 {
            break;
        }
        let cluster = !text.starts_with("--");
        wants_text |= cluster && text.contains('c');
        reads_stdin |= cluster && text.contains('s');
        let value =
            (cluster && text.ends_with(['o', 'O'])) || matches!(text, "--rcfile" | "--init-file");
        at += 1 + usize::from(value);
    }
    if wants_text {
        let text = args.get(at)?.clone();
        return Some(match &args[at + 1..] {
            [] => Inner::Shell(text),
            given => Inner::Script(text, given.to_vec()),
        });
    }
    let file = args.get(at).map(|word| word.text.as_str());
    if reads_stdin
        || matches!(
            file,
            None | Some("-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
        )
    {
        return match stdin {
            Stdin::Text(text) => Some(Inner::Shell(text.clone())),
            _ => None,
        };
    }
    process_output(args.get(at..)?)
}

/// `. <(command)`, `source /dev/stdin`
pub(crate) fn sourced(args: &[Word], stdin: &Stdin) -> Option<Inner> {
    let input = args.first();
    let input = input.is_some_and(|word| matches!(word.text.as_str(), "/dev/stdin" | "/dev/fd/0"));
    match stdin {
        Stdin::Text(text) if input => Some(Inner::Shell(text.clone())),
        _ => process_output(args),
    }
}

/// Constant text in a process substitution given as a script.
pub(crate) fn process_output(args: &[Word]) -> Option<Inner> {
    let word = args.first()?;
    let output = word.holes.iter().find_map(|hole| match &hole.kind {
        HoleKind::Process { output, .. } => output.clone(),
        _ => None,
    })?;
    Some(Inner::Shell(*output))
}

pub(crate) fn multiplexer(args: &[Word]) -> Option<Inner> {
    let verb = args.iter().position(|word| {
        matches!(
            word.text.as_str(),
            "new"
                | "new-session"
                | "new-window"
                | "neww"
                | "split-window"
                | "-dm"
                | "-dmS"
                | "run"
                | "run-shell"
        )
    })?;
    let named = usize::from(args[verb].text == "-dmS");
    let rest = &args[(verb + 1 + named).min(args.len())..];
    let rest = &rest[skip_options(rest, "censtxyF", &[])..];
    match rest {
        [] => None,
        [text] => Some(Inner::Shell(text.clone())),
        words => Some(Inner::Words(words.to_vec())),
    }
}

/// `env -S 'command line'`.
pub(crate) fn env_split(args: &[Word]) -> Option<Inner> {
    // `-S text`, `-Stext`, `-ivS text`
    let short = |text: &str| {
        let flags = text.strip_prefix('-')?;
        let at = flags.find('S')?;
        let plain = |b: u8| matches!(b, b'i' | b'0' | b'v');
        flags.bytes().take(at).all(plain).then_some(at + 2)
    };
    let long = |text: &str| {
        let rest = text.strip_prefix("--split-string")?;
        (rest.is_empty() || rest.starts_with('=')).then_some(text.len().min(15))
    };
    let option = |word: &Word| short(&word.text).or_else(|| long(&word.text));
    let (at, skip) = args
        .iter()
        .enumerate()
        .find_map(|(at, word)| Some((at, option(word)?)))?;
    let (text, others) = if skip < args[at].text.len() {
        (rest(&args[at], skip), &args[at + 1..])
    } else {
        let (text, others) = args.get(at + 1..)?.split_first()?;
        (text.clone(), others)
    };
    // Only the text is split; words after it stay whole.
    let words = split(&text);
    if others.is_empty() || words.is_empty() || text.text.contains(['"', '\'', '\\']) {
        let mut all = vec![text];
        all.extend_from_slice(others);
        return Some(Inner::Shell(join(&all)));
    }
    Some(Inner::Words([words.as_slice(), others].concat()))
}
