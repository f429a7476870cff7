//! Libraries whose members are commands: `sh.rm("-rf", x)`, `repo.git.push("--force")`.

use super::api::Dialect;
use super::judge::Judge;
use super::value::{Args, Kind, Value};
use crate::result::Span;

/// What the members of a library run, as the first words of a command.
fn program(dialect: Dialect, library: &str) -> Option<Vec<&str>> {
    let below = |root: &str| {
        let rest = library.strip_prefix(root)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| rest.trim_start_matches('.'))
    };
    let git = library == "git" || library.ends_with(").git") || library.starts_with("simple-git");
    let rest = match dialect {
        Dialect::Python => below("sh")
            .or_else(|| below("plumbum.local"))
            .or_else(|| below("plumbum.cmd")),
        Dialect::JavaScript => below("shelljs"),
        Dialect::Go | Dialect::Shell => None,
    };
    match rest {
        Some(rest) if !rest.contains('(') => {
            Some(rest.split('.').filter(|word| !word.is_empty()).collect())
        }
        None if git && library.contains('(') => Some(vec!["git"]),
        _ => None,
    }
}

impl Judge<'_> {
    /// A member of a library that runs commands by their names.
    pub(super) fn wrapped(&mut self, library: &str, name: &str, args: &Args, span: Span) {
        if let Some(program) = program(self.dialect, library) {
            self.wrapped_command(&program, name, args, span);
        }
    }

    /// `repo.git.push(…)` of a repository that was handed in.
    pub(super) fn wrapped_git(&mut self, base: &Value, name: &str, args: &Args, span: Span) {
        if let Kind::Method(inner) = &base.kind
            && &*inner.1 == "git"
        {
            self.wrapped_command(&["git"], name, args, span);
        }
    }

    fn wrapped_command(&mut self, program: &[&str], name: &str, args: &Args, span: Span) {
        let name = name.trim_start_matches('_').replace('_', "-");
        let mut words: Vec<Value> = program.iter().copied().map(Value::text).collect();
        words.push(Value::text(name.as_str()));
        for value in &args.positional {
            match &value.kind {
                Kind::List(items) => words.extend(items.iter().take(64).cloned()),
                Kind::Dict(pairs) => words.extend(pairs.iter().map(|(key, _)| key.clone())),
                _ => words.push(value.clone()),
            }
        }
        for (key, value) in &args.named {
            if key.starts_with('_') || matches!(value.kind, Kind::Bool(false)) {
                continue;
            }
            let dashes = if key.len() == 1 { "-" } else { "--" };
            words.push(Value::text(format!("{dashes}{}", key.replace('_', "-"))));
            if !matches!(value.kind, Kind::Bool(true)) {
                words.push(value.clone());
            }
        }
        self.argv(&name, Some(&Value::list(words)), &Args::default(), span);
    }
}
