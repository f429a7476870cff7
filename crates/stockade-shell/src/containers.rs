//! Commands that run another one inside a container that is there already, or on other machines.

use crate::model::Word;
use crate::options::skip_options;
use crate::wrappers::{Inner, join};

/// Options of `exec` that take a value.
const SHORT: &str = "ewucnf";
const LONG: &[&str] = &[
    "--env",
    "--env-file",
    "--workdir",
    "--user",
    "--container",
    "--namespace",
    "--context",
    "--detach-keys",
    "--index",
    "--file",
    "--project-name",
];

/// `docker exec [options] CONTAINER command …`, `kubectl exec POD -- command …`.
pub(crate) fn exec(args: &[Word]) -> Option<Inner> {
    let at = args.iter().take(8).position(|word| word.text == "exec")?;
    let rest = &args[at + 1..];
    let command = match rest.iter().position(|word| word.text == "--") {
        Some(dashes) => &rest[dashes + 1..],
        None => rest.get(skip_options(rest, SHORT, LONG) + 1..)?,
    };
    (!command.is_empty()).then(|| Inner::Words(command.to_vec()))
}

/// `ansible all -m shell -a 'command'`, `salt '*' cmd.run 'command'`, `adb shell command`.
pub(crate) fn elsewhere(name: &str, args: &[Word]) -> Option<Inner> {
    let after = |option: &[&str]| {
        let at = args
            .iter()
            .position(|word| option.contains(&word.text.as_str()))?;
        args.get(at + 1).cloned()
    };
    match name {
        "ansible" => {
            let module = after(&["-m", "--module-name"]);
            let runs = module
                .is_none_or(|module| matches!(module.text.as_str(), "shell" | "command" | "raw"));
            runs.then(|| after(&["-a", "--args"])).flatten()
        }
        "salt" => after(&["cmd.run", "cmd.shell"]),
        "vagrant" => after(&["-c", "--command"]),
        "gcloud" | "fly" | "flyctl" => {
            let joined = args
                .iter()
                .find_map(|word| word.text.strip_prefix("--command="));
            let joined = joined.map(|text| Word {
                text: text.to_owned(),
                ..Word::default()
            });
            joined.or_else(|| after(&["--command", "-C"]))
        }
        "aws" => args.iter().find_map(|word| {
            // `--parameters 'commands=["…"]'`
            let (_, text) = word.text.split_once("commands=")?;
            let text = text
                .trim_matches(['[', ']', '"', '\''])
                .replace("\",\"", "\n");
            Some(Word {
                text,
                ..Word::default()
            })
        }),
        "az" => after(&["--scripts"]),
        "adb" | "heroku" => {
            let told = |word: &Word| matches!(word.text.as_str(), "shell" | "run");
            let at = args.iter().position(told)?;
            let given = &args[at + 1..];
            (!given.is_empty()).then(|| join(given))
        }
        _ => args.last().cloned(),
    }
    .map(Inner::Shell)
}
