//! Other files of a rebase or cherry-pick in progress.

use std::collections::BTreeSet;

use super::config;
use crate::protected::judge::{Effect, Refusal};

/// The merge strategies that are part of git. Any other is a program, and one with a slash in its
/// name is looked up in the working tree.
pub(super) const STRATEGIES: &[&str] =
    &["octopus", "ort", "ours", "recursive", "resolve", "subtree"];

const STRATEGY_REASON: &str = "git runs `git-merge-STRATEGY`";

/// Judges `sequencer/opts`, which has the form of a configuration.
///
/// # Errors
/// If it chooses a strategy that git has not built in, or git can't read it.
pub fn judge_options(old: &[u8], new: &[u8]) -> Result<(), Refusal> {
    let new = config::parse(new).ok_or_else(|| Refusal::unreadable("not a git configuration"))?;
    let old: BTreeSet<_> = config::parse(old).unwrap_or_default().into_iter().collect();
    let mut settings = new.iter().filter(|setting| !old.contains(setting));
    let chooses_program = settings.any(|setting| {
        let value = setting.value.as_deref().unwrap_or_default();
        setting.key == b"options.strategy" && !is_strategy(value)
    });
    if chooses_program {
        let key = "options.strategy";
        return Err(Refusal::new(key, Effect::RunsProgram, STRATEGY_REASON));
    }
    Ok(())
}

/// Judges `rebase-merge/strategy`: a name in one line.
///
/// # Errors
/// If git has not built in the strategy.
pub fn judge_strategy(text: &[u8]) -> Result<(), Refusal> {
    let name = text.strip_suffix(b"\n").unwrap_or(text);
    let name = name.strip_suffix(b"\r").unwrap_or(name);
    if name.is_empty() || is_strategy(name) {
        Ok(())
    } else {
        let key = String::from_utf8_lossy(&name[..name.len().min(80)]);
        let key = key.escape_debug().to_string();
        Err(Refusal::new(key, Effect::RunsProgram, STRATEGY_REASON))
    }
}

fn is_strategy(name: &[u8]) -> bool {
    STRATEGIES.iter().any(|known| known.as_bytes() == name)
}

/// Judges `rebase-merge/author-script`: three variables in the form of a shell script.
///
/// # Errors
/// If it sets anything else.
pub fn judge_author_script(text: &[u8]) -> Result<(), Refusal> {
    const VARIABLES: &[&str] = &["GIT_AUTHOR_DATE", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_NAME"];
    // Old versions drop the quotes, then take each line, and what follows a NUL byte, as a
    // variable.
    for line in text.split(|byte| matches!(byte, b'\n' | 0)) {
        let known = VARIABLES.iter().any(|name| {
            let rest = line.strip_prefix(name.as_bytes());
            rest.is_some_and(|rest| rest.starts_with(b"="))
        });
        if !line.is_empty() && !known {
            let name: Vec<u8> = line
                .iter()
                .copied()
                .take_while(|byte| *byte != b'=')
                .take(80)
                .collect();
            let key = String::from_utf8_lossy(&name).escape_debug().to_string();
            let reason = "it becomes an environment variable of `git commit`";
            return Err(Refusal::new(key, Effect::RunsProgram, reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_built_in_strategies() {
        assert!(judge_strategy(b"ort\n").is_ok());
        assert!(judge_strategy(b"").is_ok());
        for name in ["x", "x/evil", "ort\nx", "ort\n\n", "-s"] {
            assert!(judge_strategy(name.as_bytes()).is_err(), "{name:?}");
        }
        let options =
            |strategy: &str| format!("[options]\n\tedit = true\n\tstrategy = {strategy}\n");
        let judge = |old: &str, new: &str| judge_options(old.as_bytes(), new.as_bytes());
        assert!(judge("", &options("recursive")).is_ok());
        assert!(judge("", &options("x/evil")).is_err());
        assert!(judge(&options("mine"), &options("mine")).is_ok());
        assert!(judge("", "[options]\n\tsignoff = true\n").is_ok());
        assert!(judge("", "[options\n").is_err());
    }

    #[test]
    fn an_author_script_sets_the_author() {
        let script =
            "GIT_AUTHOR_NAME='A'\\''B'\nGIT_AUTHOR_EMAIL='a@b'\nGIT_AUTHOR_DATE='@1 +0000'\n";
        assert!(judge_author_script(script.as_bytes()).is_ok());
        assert!(judge_author_script(b"").is_ok());
        for line in [
            "GIT_EDITOR='x'",
            "x",
            "GIT_AUTHOR_NAMES=x",
            "GIT_AUTHOR_NAME='a\nLD_PRELOAD=x'",
        ] {
            assert!(
                judge_author_script(format!("{script}{line}\n").as_bytes()).is_err(),
                "{line}"
            );
        }
        assert!(judge_author_script(b"GIT_AUTHOR_NAME=a\0LD_PRELOAD=x\n").is_err());
    }
}
