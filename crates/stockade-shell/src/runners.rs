//! Programs that start another command with an environment, a lock, a queue or a machine of theirs.

use crate::model::Word;
use crate::options::skip_options;
use crate::wrappers::{Inner, join, rest};

/// The command stands after `--`.
const DASHED: &[&str] = &[
    "aws-vault",
    "chamber",
    "colima",
    "direnv",
    "distrobox",
    "doppler",
    "dotenv",
    "dotenvx",
    "fab",
    "foreman",
    "infisical",
    "lerna",
    "lima",
    "limactl",
    "mise",
    "multipass",
    "npm",
    "nq",
    "nx",
    "op",
    "pnpm",
    "pueue",
    "sem",
    "teller",
    "toolbox",
    "toolbx",
    "ts",
    "tsp",
    "turbo",
    "watchexec",
    "wsl",
    "yarn",
];

/// The command stands after the program's own options.
const PLAIN: &[(&str, &str)] = &[
    ("clush", "wgxlftuX"),
    ("dsh", "gmMr"),
    ("pdsh", "wxlftuRg"),
    ("cross-env", ""),
    ("dbus-launch", ""),
    ("flatpak-spawn", ""),
    ("lima", ""),
    ("mpiexec", "nH"),
    ("mpirun", "nH"),
    ("nq", ""),
    ("srun", "nNcptJ"),
    ("sem", "j"),
    ("ts", ""),
    ("tsp", ""),
    ("watchexec", "wei"),
    ("with-contenv", ""),
];

/// An option's value, or the words after it, are the command.
const OPTIONS: &[(&str, &[&str])] = &[
    ("nix-shell", &["--run", "--command"]),
    ("nix", &["-c", "--command"]),
    ("nodemon", &["--exec", "-x"]),
    ("repo", &["-c"]),
    ("sbatch", &["--wrap"]),
    ("entr", &["-s"]),
    ("wsl", &["-e", "--exec"]),
    ("pueue", &["add"]),
    ("git", &["foreach", "--exec", "-x"]),
    ("machinectl", &["shell"]),
];

/// The command that such a program runs.
pub(crate) fn unwrap(name: &str, args: &[Word]) -> Option<Inner> {
    if let Some((_, options)) = OPTIONS.iter().find(|(one, _)| *one == name)
        && let Some(inner) = told(name, options, args)
    {
        return Some(inner);
    }
    if DASHED.contains(&name)
        && let Some(at) = args.iter().position(|word| word.text == "--")
    {
        let given = &args[at + 1..];
        return (!given.is_empty()).then(|| Inner::Words(given.to_vec()));
    }
    let (_, values) = PLAIN.iter().find(|(one, _)| *one == name)?;
    match args.get(skip_options(args, values, &[])..)? {
        [] => None,
        // A command line in one word.
        [line] if line.text.contains(' ') => Some(Inner::Shell(line.clone())),
        given => Some(Inner::Words(given.to_vec())),
    }
}

fn told(name: &str, options: &[&str], args: &[Word]) -> Option<Inner> {
    for (at, word) in args.iter().enumerate() {
        let text = word.text.as_str();
        let inline = options.iter().find(|option| {
            let value = text.strip_prefix(**option);
            option.starts_with("--") && value.is_some_and(|value| value.starts_with('='))
        });
        if let Some(option) = inline {
            return Some(Inner::Shell(rest(word, option.len() + 1)));
        }
        if !options.contains(&text) {
            continue;
        }
        let given = &args[at + 1..];
        // `git rebase -x command`, but `git log -x`, `git commit --exec` are not of this kind.
        let runs = name != "git" || {
            let verb = args.first().map_or("", |word| word.text.as_str());
            matches!(
                (verb, text),
                ("submodule", "foreach") | ("rebase", "-x" | "--exec")
            )
        };
        let given = match given {
            [first, rest @ ..] if first.text == "--recursive" => rest,
            given => given,
        };
        return match given {
            [] => None,
            [line, ..] if runs && line.text.contains(' ') => Some(Inner::Shell(line.clone())),
            words if runs => Some(Inner::Shell(join(words))),
            _ => None,
        };
    }
    None
}
