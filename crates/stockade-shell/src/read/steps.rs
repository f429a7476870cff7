//! Bounds the work of one script. Loops are followed round by round and nest: without a bound, a
//! text of 200 bytes could keep the reader busy for hours.

use super::Reader;
use crate::model::{Problem, ProblemKind, Span};

impl Reader<'_> {
    /// Counts a statement or word; `false`, with the problem noted, when no more may be read.
    /// A single pass takes at most one step for each byte: `a;` is one statement and one word.
    pub(crate) fn step(&mut self) -> bool {
        self.script.steps += 1;
        let single_pass = self.source.len() + self.nested_bytes;
        let in_bounds = self.script.steps <= single_pass + self.limits.repeated_steps;
        if !in_bounds {
            self.too_large();
        }
        in_bounds
    }

    pub(super) fn too_large(&mut self) {
        let whole = Span::new(0, self.source.len());
        let problem = Problem {
            kind: ProblemKind::TooLarge,
            span: whole,
        };
        if self.script.problems.last() != Some(&problem) {
            self.script.problems.push(problem);
        }
    }
}
