//! Printing: one table of times, one of promises.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use crate::sample::Samples;

/// How much is promised.
#[derive(Clone, Copy)]
pub(crate) enum Budget {
    Milliseconds(f64),
    Ratio(f64),
}

/// One promise and what was measured.
pub(crate) struct Line {
    what: &'static str,
    value: Option<f64>,
    budget: Budget,
}

impl Line {
    pub(crate) fn new(what: &'static str, value: Option<f64>, budget: Budget) -> Self {
        Self {
            what,
            value,
            budget,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.value.is_some_and(|value| value > self.budget.number())
    }
}

impl Budget {
    fn number(self) -> f64 {
        match self {
            Self::Milliseconds(number) | Self::Ratio(number) => number,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Milliseconds(_) => "ms",
            Self::Ratio(_) => "×",
        }
    }
}

pub(crate) fn print(program: &str, rounds: usize, samples: &[Samples], lines: &[Line]) {
    println!("{program}, {rounds} starts of each, interleaved\n");
    println!(
        "{:<44} {:>9} {:>9} {:>9} {:>7}",
        "", "p50 ms", "p90 ms", "added", "ratio"
    );
    let bare = samples.first().and_then(Samples::p50);
    for row in samples {
        let (Some(p50), Some(p90), Some(bare)) = (row.p50(), row.p90(), bare) else {
            let reason = row.refused.as_deref().unwrap_or("no measurement");
            println!("{:<44} {:>9}  {reason}", row.name, "n/a");
            continue;
        };
        println!(
            "{:<44} {p50:>9.3} {p90:>9.3} {:>9.3} {:>7.2}",
            row.name,
            p50 - bare,
            p50 / bare
        );
    }
    println!();
    for line in lines {
        let budget = format!("at most {:.2} {}", line.budget.number(), line.budget.unit());
        match line.value {
            Some(value) => println!(
                "{:<44} {value:>9.3} {} ({budget}: {})",
                line.what,
                line.budget.unit(),
                if line.is_over() { "OVER" } else { "kept" }
            ),
            None => println!("{:<44} {:>9} ({budget})", line.what, "n/a"),
        }
    }
}
