//! Processes and threads: how many are made, how many are ended.

use super::Deed;
use crate::program::judge::Judge;
use crate::program::value::{Taint, Value};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn judge_processes(&mut self, deed: &Deed<'_>) -> Option<Value> {
        let &Deed {
            entry,
            args: _,
            arg,
            second,
            span,
            endless,
            ..
        } = deed;
        let result = deed.result.clone();
        Some(match entry.action {
            "kill" => {
                let asks = second.and_then(Value::as_int) == Some(0);
                let all = result.taint.has(Taint::PROCESSES) && !asks;
                if all || matches!(arg.and_then(Value::as_int), Some(-1 | 1)) {
                    self.findings
                        .add(Rule::SystemStop, span, "stops every process it may");
                }
                result
            }
            "fork" => {
                let here = self.seen.forks.entry(span.start).or_default();
                *here += 1;
                if endless || *here > 8 {
                    self.findings.add(Rule::ForkBomb, span, "forks without end");
                }
                result
            }
            "processes" => result.with(Taint::PROCESSES),
            _ => return None,
        })
    }
}
