//! What each action of the tables means for the verdict.

mod code;
mod data;
mod effects;
mod files;
mod load;
mod machine;
mod network;
mod processes;
mod start;
mod watch;

use super::api::Entry;
use super::judge::{Judge, argument};
use super::value::{Args, Value};
use crate::result::Span;
use crate::rule::Rule;

pub(super) use start::output_taint;

/// A call of a function that the tables list.
struct Deed<'d> {
    path: &'d str,
    entry: Entry,
    args: &'d Args,
    /// The argument that the table points at.
    arg: Option<&'d Value>,
    /// The other one, where it points at two.
    second: Option<&'d Value>,
    span: Span,
    /// In a loop without an end of its own.
    endless: bool,
    /// What is known of the result before looking closer.
    result: Value,
}

impl Deed<'_> {
    /// The argument as text, with what is not known marked in it.
    fn given(&self) -> &str {
        self.arg.and_then(Value::as_text).unwrap_or_default()
    }
}

impl Judge<'_> {
    pub(super) fn act(
        &mut self,
        path: &str,
        entry: Entry,
        args: &Args,
        span: Span,
        endless: bool,
        result: Value,
    ) -> Value {
        if entry.action == "none" {
            return result;
        }
        let deed = Deed {
            path,
            entry,
            args,
            arg: argument(args, entry),
            second: args.positional.get(entry.second),
            span,
            endless,
            result,
        };
        let rule = match entry.action {
            "open" | "js-open" | "go-open" | "read" | "serve" => Some(Rule::CredentialRead),
            "write" => Some(Rule::FileWrite),
            "delete" | "delete-tree" | "js-remove" => Some(Rule::FileDelete),
            _ => None,
        };
        if let Some(rule) = rule {
            self.named_by_visitor(path, rule, deed.arg, span);
        }
        let known = self
            .listed_effect(&deed)
            .or_else(|| self.judge_start(&deed))
            .or_else(|| self.judge_file_access(&deed))
            .or_else(|| self.track_source(&deed))
            .or_else(|| self.judge_network(&deed))
            .or_else(|| self.judge_code(&deed))
            .or_else(|| self.judge_loading(&deed))
            .or_else(|| self.judge_machine(&deed))
            .or_else(|| self.judge_processes(&deed))
            .or_else(|| self.judge_surveillance(&deed));
        known.unwrap_or(deed.result)
    }
}
