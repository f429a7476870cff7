//! Commands that run other commands, and where in their arguments those stand.

use crate::each::{parallel, xargs};
use crate::interpreters::{code, interpreter, statements};
use crate::model::{Command, Hole, HoleKind, Language, Span, Stdin, Word, program_name};
use crate::options::{after_unknown_values, is_assignment, skip_options};
use crate::shells::{as_someone, dash_c, env_split, multiplexer, remote, shell, sourced};

/// What a command runs.
#[derive(Debug)]
pub(crate) enum Inner {
    /// A command given as words.
    Words(Vec<Word>),
    /// Text for a shell.
    Shell(Word),
    /// Text for a shell, and its `$0`, `$1` …
    Script(Word, Vec<Word>),
    /// Text for a shell, run later.
    Deferred(Word),
    /// Code in another language.
    Code(Language, Word),
}

impl Inner {
    /// Text for an interpreter that was computed from constants.
    pub(crate) fn is_computed(&self) -> bool {
        match self {
            Self::Shell(text) | Self::Script(text, _) | Self::Code(_, text) => {
                text.spelling.computed
            }
            Self::Words(_) | Self::Deferred(_) => false,
        }
    }
}

/// A command whose arguments, after its own options, are another command.
struct Prefix {
    /// Names that behave so.
    names: &'static [&'static str],
    /// Short options that take a value, as letters.
    short: &'static str,
    /// Long options that take their value as the next word.
    long: &'static [&'static str],
    /// Operands before the command.
    operands: usize,
    /// `NAME=value` may come before the command.
    assignments: bool,
}

const fn prefix(names: &'static [&'static str], short: &'static str) -> Prefix {
    Prefix {
        names,
        short,
        long: &[],
        operands: 0,
        assignments: false,
    }
}

const fn after(names: &'static [&'static str], short: &'static str, operands: usize) -> Prefix {
    Prefix {
        names,
        short,
        long: &[],
        operands,
        assignments: false,
    }
}

const PREFIXES: &[Prefix] = &[
    Prefix {
        names: &["sudo", "doas"],
        short: "ugpUChrtTDR",
        long: &[
            "--user",
            "--group",
            "--prompt",
            "--chdir",
            "--host",
            "--close-from",
            "--role",
            "--type",
            "--chroot",
            "--command-timeout",
            "--login-class",
            "--other-user",
        ],
        operands: 0,
        assignments: true,
    },
    Prefix {
        names: &["env"],
        short: "uCPa",
        long: &["--unset", "--chdir", "--argv0"],
        operands: 0,
        assignments: true,
    },
    Prefix {
        names: &["pkexec", "run0"],
        short: "",
        long: &["--user"],
        operands: 0,
        assignments: false,
    },
    prefix(
        &[
            "nohup",
            "setsid",
            "builtin",
            "unbuffer",
            "fakeroot",
            "chronic",
            "caffeinate",
            "eatmydata",
        ],
        "",
    ),
    prefix(
        &[
            "linux64",
            "linux32",
            "setarch",
            "catchsegv",
            "dbus-run-session",
            "dumb-init",
            "tini",
        ],
        "g",
    ),
    prefix(
        &[
            "torsocks",
            "torify",
            "proxychains",
            "proxychains4",
            "tsocks",
        ],
        "f",
    ),
    prefix(&["command"], ""),
    prefix(&["exec"], "a"),
    prefix(&["nice"], "n"),
    prefix(&["ionice"], "cnpPu"),
    prefix(&["time"], "fo"),
    prefix(&["stdbuf"], "ioe"),
    prefix(&["strace", "ltrace"], "eoapsuEIObPSXU"),
    prefix(&["valgrind", "rlwrap", "perf-stat", "xvfb-run"], "sn"),
    prefix(&["unshare"], "SGRw"),
    prefix(&["nsenter"], "tSGNmuinpCUrwW"),
    prefix(&["systemd-run"], "pEMtuH"),
    prefix(
        &[
            "setpriv",
            "numactl",
            "systemd-inhibit",
            "prlimit",
            "runcon",
            "daemonize",
        ],
        "",
    ),
    prefix(&["cgexec"], "g"),
    prefix(&["npx", "bunx", "uvx"], "p"),
    after(&["dtach"], "", 1),
    prefix(&["sshpass"], "pfdP"),
    prefix(&["busybox", "toybox"], ""),
    prefix(&["cpulimit"], "lpe"),
    prefix(&["hyperfine"], "wmMrLpscSniu"),
    prefix(&["firejail"], ""),
    prefix(&["entr"], ""),
    after(&["timeout", "gtimeout"], "sk", 1),
    after(&["chroot"], "", 1),
    after(&["chrt"], "TPD", 1),
    after(&["taskset"], "", 1),
    after(&["gosu", "su-exec"], "", 1),
    after(&["faketime"], "", 1),
    after(&["flock"], "wE", 1),
    after(&["direnv-exec"], "", 1),
    Prefix {
        names: &["xargs", "gxargs"],
        short: "aEIJLnPRsd",
        long: &[
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-lines",
            "--max-procs",
            "--replace",
        ],
        operands: 0,
        assignments: false,
    },
];

/// Subcommands after which a command follows: `poetry run …`.
const RUNNERS: &[(&str, &[&str])] = &[
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("uv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("conda", &["run"]),
    ("bundle", &["exec"]),
    ("rustup", &["run"]),
    ("direnv", &["exec"]),
    ("perf", &["stat", "record"]),
    ("git", &["bisect"]),
    ("start-stop-daemon", &[]),
];

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "fish", "rzsh", "csh", "tcsh",
    "pdksh", "yash",
];

/// Whether a program's name is a shell's.
pub fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// What a command's words, with what is known of its standard input, make it run.
pub(crate) fn unwrap(words: &[Word], stdin: &Stdin) -> Vec<Inner> {
    let Some(first) = words.first() else {
        return Vec::new();
    };
    let Some(name) = first.constant().map(program_name) else {
        return after_unknown(words).into_iter().collect();
    };
    let args = &words[1..];
    let mut out = Vec::new();
    match name {
        "eval" => push_shell(&mut out, args),
        "trap" if args.len() > 1 => out.push(Inner::Deferred(args[0].clone())),
        "alias" => {
            out.extend(
                args.iter()
                    .filter_map(|word| Some(Inner::Deferred(rest(word, word.text.find('=')? + 1)))),
            );
        }
        "find" | "gfind" | "fd" | "fdfind" => out.extend(find_exec(args)),
        "parallel" => out.extend(parallel(args, stdin)),
        "xargs" | "gxargs" => out.extend(xargs(name, args, stdin)),
        "watch" => push_shell(&mut out, &args[skip_options(args, "n", &["--interval"])..]),
        "ssh" | "mosh" | "autossh" | "plink" | "dbclient" => out.extend(remote(args, stdin)),
        "su" | "runuser" => out.extend(as_someone(args, stdin)),
        "sg" | "script" | "flock" | "capsh" | "npx" | "bunx" | "pwsh" => {
            out.extend(dash_c(args));
        }
        "npm" | "pnpm" if args.first().is_some_and(|word| word.text == "exec") => {
            out.extend(dash_c(args));
        }
        "xterm" | "konsole" | "alacritty" | "x-terminal-emulator" | "gnome-terminal" => {
            let told = |word: &Word| matches!(word.text.as_str(), "-e" | "--" | "-x");
            if let Some(at) = args.iter().position(told) {
                push_shell(&mut out, &args[at + 1..]);
            }
        }
        "gdb" | "lldb" => out.extend(crate::escapes::debugger(args)),
        "crontab" | "at" | "batch" => {}
        "docker" | "podman" | "nerdctl" | "docker-compose" | "kubectl" | "oc" | "lxc" | "incus" => {
            out.extend(crate::containers::exec(args));
        }
        "ansible" | "aws" | "az" | "salt" | "vagrant" | "gcloud" | "adb" | "pssh"
        | "parallel-ssh" | "heroku" | "fly" | "flyctl" => {
            out.extend(crate::containers::elsewhere(name, args));
        }
        "tmux" | "screen" => out.extend(multiplexer(args)),
        "env" => out.extend(env_split(args)),
        "awk" | "gawk" | "mawk" | "nawk" => {
            let start = skip_options(args, "Fvf", &[]);
            let from_file = args[..start].iter().any(|word| word.text.starts_with("-f"));
            if let (false, Some(program)) = (from_file, args.get(start)) {
                out.push(Inner::Code(Language::Awk, program.clone()));
            }
        }
        "sqlite3" | "sqlite" => {
            let start = skip_options(args, "", &["-cmd"]);
            out.extend(
                args.get(start + 1..)
                    .unwrap_or_default()
                    .iter()
                    .map(|w| Inner::Code(Language::Sql, w.clone())),
            );
            push_stdin(&mut out, Language::Sql, stdin);
        }
        "deno" if args.first().is_some_and(|word| word.text == "eval") => {
            out.extend(
                args.get(1)
                    .map(|word| Inner::Code(Language::JavaScript, word.clone())),
            );
        }
        _ if is_shell(name) => out.extend(shell(args, stdin)),
        "." | "source" => out.extend(sourced(args, stdin)),
        _ => {
            if let Some(interpreter) = interpreter(name) {
                out.extend(code(&interpreter, args, stdin));
            }
            // `python manage.py shell -c …`, `php artisan tinker …`
            let script = args.first().map_or(name, |word| word.text.as_str());
            let script = script.rsplit('/').next().unwrap_or(script);
            let of = matches!(script, "manage.py" | "artisan");
            out.extend(statements(if of { script } else { name }, args, stdin));
        }
    }
    if out.is_empty() {
        match crate::runners::unwrap(name, args) {
            Some(inner) => out.push(inner),
            None => out.extend(prefixed(name, args)),
        }
    }
    crate::escapes::push(&mut out, name, args, stdin);
    out
}

pub(crate) fn push_shell(out: &mut Vec<Inner>, words: &[Word]) {
    if !words.is_empty() {
        out.push(Inner::Shell(join(words)));
    }
}

pub(crate) fn push_stdin(out: &mut Vec<Inner>, language: Language, stdin: &Stdin) {
    if let Stdin::Text(text) = stdin {
        out.push(Inner::Code(language, text.clone()));
    }
}

/// `$SUDO rm -rf /`: an unknown name may be empty or a wrapper, and then the next word runs.
fn after_unknown(words: &[Word]) -> Option<Inner> {
    let wholly = matches!(
        words[0].holes.as_slice(),
        [Hole { kind: HoleKind::Variable(_), range }] if *range == (0..words[0].text.len())
    );
    let next = words.get(1)?.literal()?;
    let plausible = !next.is_empty()
        && next
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b == b'-' || b.is_ascii_digit());
    let plausible = plausible && next.starts_with(|c: char| c.is_ascii_lowercase());
    (wholly && plausible).then(|| Inner::Words(words[1..].to_vec()))
}

/// The command after a prefix command's own arguments.
pub(crate) fn prefixed(name: &str, args: &[Word]) -> Vec<Inner> {
    if let Some((_, verbs)) = RUNNERS.iter().find(|(runner, _)| *runner == name) {
        return after_verb(verbs, args).into_iter().collect();
    }
    let Some(prefix) = PREFIXES.iter().find(|prefix| prefix.names.contains(&name)) else {
        return Vec::new();
    };
    let queries = name == "command"
        && args
            .first()
            .is_some_and(|word| matches!(word.text.as_str(), "-v" | "-V"));
    if queries {
        return Vec::new();
    }
    let at = skip_options(args, prefix.short, prefix.long);
    let later = after_unknown_values(args, at, prefix.short, prefix.long);
    let command = |mut at: usize| {
        if name == "env" && args.get(at).is_some_and(|word| word.text == "-") {
            at += 1;
        }
        if prefix.assignments {
            let set = args[at..].iter().take_while(|word| is_assignment(word));
            at += set.count();
        }
        let rest = args.get(at + prefix.operands..)?;
        (!rest.is_empty()).then(|| Inner::Words(rest.to_vec()))
    };
    [Some(at), later]
        .into_iter()
        .flatten()
        .filter_map(command)
        .collect()
}

fn after_verb(verbs: &[&str], args: &[Word]) -> Option<Inner> {
    let verb = args
        .iter()
        .position(|word| verbs.contains(&word.text.as_str()))?;
    let rest = &args[verb + 1..];
    let rest = rest.strip_prefix_words("run");
    let at = skip_options(
        rest,
        "npe",
        &["--name", "--prefix", "--with", "--python", "--package"],
    );
    let rest = rest.get(at..)?;
    (!rest.is_empty()).then(|| Inner::Words(rest.to_vec()))
}

trait StripPrefixWords {
    fn strip_prefix_words(&self, first: &str) -> &Self;
}

impl StripPrefixWords for [Word] {
    fn strip_prefix_words(&self, first: &str) -> &Self {
        match self.split_first() {
            Some((word, rest)) if word.text == first => rest,
            _ => self,
        }
    }
}

/// The command after `-exec` and its kin.
fn find_exec(args: &[Word]) -> Vec<Inner> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(word) = args.get(at) {
        at += 1;
        if !matches!(
            word.text.as_str(),
            "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch"
        ) {
            continue;
        }
        let rest = &args[at..];
        let end = rest
            .iter()
            .position(|word| matches!(word.text.as_str(), ";" | "+" | "\\"))
            .unwrap_or(rest.len());
        if end > 0 {
            out.push(Inner::Words(rest[..end].to_vec()));
        }
        at += end;
    }
    out
}

/// The file that a command runs as a script: `bash x`, `. x`, `./x`, `python x`, `sh < x`.
pub(crate) fn script_file(command: &Command) -> Option<&str> {
    let program = command.words.first()?.literal()?;
    let name = command.name()?;
    let runs = is_shell(name) || interpreter(name).is_some() || matches!(name, "." | "source");
    if runs {
        let operand = command
            .args()
            .iter()
            .find(|word| !word.text.starts_with('-'));
        let input = command
            .redirects
            .iter()
            .find(|redirect| redirect.op == crate::RedirectOp::Read);
        return operand
            .or_else(|| input.map(|redirect| &redirect.target))?
            .literal();
    }
    program.contains('/').then_some(program)
}

/// Text of a script file as what its command makes of it.
pub(crate) fn run_text(command: &Command, text: &Word) -> Option<Inner> {
    let name = command.name()?;
    if let Some(interpreter) = interpreter(name) {
        return Some(Inner::Code(interpreter.language, text.clone()));
    }
    let first = text.text.lines().next().unwrap_or_default();
    let shebang = first
        .strip_prefix("#!")
        .and_then(|line| line.split(['/', ' ']).rfind(|part| !part.is_empty()));
    match shebang.and_then(interpreter).filter(|_| !is_shell(name)) {
        Some(interpreter) => Some(Inner::Code(interpreter.language, text.clone())),
        None => Some(Inner::Shell(text.clone())),
    }
}

/// Words joined by spaces, as `eval` does.
pub(crate) fn join(words: &[Word]) -> Word {
    let mut words_iter = words.iter();
    let Some(first) = words_iter.next() else {
        return Word::default();
    };
    let space = Word {
        text: " ".to_owned(),
        ..Word::default()
    };
    words_iter.fold(first.clone(), |joined, word| {
        let end = word.span.end.max(joined.span.end);
        let mut joined = concat(concat(joined, &space), word);
        joined.span = Span::new(joined.span.start, end);
        joined
    })
}

/// One word after another.
pub(crate) fn concat(mut left: Word, right: &Word) -> Word {
    let offset = left.text.len();
    left.text.push_str(&right.text);
    left.holes.extend(right.holes.iter().map(|hole| Hole {
        range: hole.range.start + offset..hole.range.end + offset,
        kind: hole.kind.clone(),
    }));
    left.quoted |= right.quoted;
    let blank = |text: &str| text.trim().is_empty();
    left.spelling.computed = match (blank(&left.text[..offset]), blank(&right.text)) {
        (true, _) => right.spelling.computed || left.spelling.computed,
        // The command that a text begins with decides.
        _ => left.spelling.computed,
    };
    left
}

/// A word from byte `from` of its text.
pub(crate) fn rest(word: &Word, from: usize) -> Word {
    let holes = word.holes.iter().filter(|hole| hole.range.start >= from);
    Word {
        text: word.text[from..].to_owned(),
        span: word.span,
        holes: holes
            .map(|hole| Hole {
                range: hole.range.start - from..hole.range.end - from,
                kind: hole.kind.clone(),
            })
            .collect(),
        quoted: word.quoted,
        spelling: word.spelling,
    }
}
