//! Commands that run another one inside a container that is there already.

use crate::model::Word;
use crate::wrappers::{Inner, skip_options};

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
