//! Programs that every project runs.

use crate::words::Words;

/// Programs that change what is mounted, who sees what, what a program may.
pub(super) static RIGHTS: Words = Words::new("program/tools rights");

/// Tools that build, test or publish a project.
pub(super) static TOOLS: Words = Words::new("program/tools tools");

/// Whether a command is for tools alone that build, test or publish a project. What they are told
/// to do was judged already.
pub(super) fn builds(command: &str) -> bool {
    let parts = command.split(['&', '|', ';', '\n']).map(str::trim);
    let mut parts = parts.filter(|part| !part.is_empty()).peekable();
    parts.peek().is_some()
        && !command.contains(['`', '$', '<', '('])
        && parts.all(|part| {
            let tool = part.split_whitespace().next();
            tool.is_some_and(|tool| TOOLS.contains(&tool))
        })
}
