//! What went wrong, for a person: the thing, the reason, the next step.

use std::fmt::Display;

use serde::Serialize;

use crate::exit::Exit;

/// An error that ends the program.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    error: anyhow::Error,
    hint: Option<String>,
}

/// A failure as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct FailureRecord<'a> {
    code: u8,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl Failure {
    /// A failure that ends with `exit`.
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self {
            exit,
            error: error.into(),
            hint: None,
        }
    }

    /// A failure in words of our own.
    pub(crate) fn text(exit: Exit, text: impl Display) -> Self {
        Self::new(exit, anyhow::Error::msg(text.to_string()))
    }

    /// The same with what the person could do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether whoever reads our output has gone; then there is nobody to tell.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.error.chain().any(|cause| {
            cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        })
    }

    /// The thing and its reasons, outermost first.
    pub(crate) fn message(&self) -> String {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1) {
            let cause = cause.to_string();
            // Some errors already carry their cause in their text.
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        text
    }

    pub(crate) fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn record(&self) -> FailureRecord<'_> {
        FailureRecord {
            code: self.exit.code(),
            message: self.message(),
            hint: self.next_step(),
        }
    }
}

/// Printing failed.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(
            Exit::Negative,
            anyhow::Error::new(error).context("output can't be written"),
        )
    }
}

/// The command was not started.
#[cfg(target_os = "linux")]
impl From<stockade_engine::PlanError> for Failure {
    fn from(error: stockade_engine::PlanError) -> Self {
        let hint = error.hint();
        let failure = Self::new(Exit::NotSetUp, error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once() {
        let inner = std::io::Error::from_raw_os_error(2);
        let wrapped = anyhow::Error::new(inner).context("can't read `x`");
        let failure = Failure::new(Exit::NotSetUp, wrapped);
        let text = failure.message();
        assert!(text.starts_with("can't read `x`: "), "{text}");
        assert_eq!(text.matches("os error 2").count(), 1, "{text}");
    }
}
