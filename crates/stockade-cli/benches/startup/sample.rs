//! Measuring: start, wait, subtract.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A command to start again and again.
pub(crate) struct Row {
    name: &'static str,
    argv: Vec<String>,
    cwd: PathBuf,
}

/// What was measured for one row; nothing if the command does not work here.
pub(crate) struct Samples {
    /// The row.
    pub(crate) name: &'static str,
    sorted: Vec<Duration>,
    /// Why there is nothing.
    pub(crate) refused: Option<String>,
}

impl Row {
    pub(crate) fn new(name: &'static str, argv: Vec<String>, cwd: &Path) -> Self {
        Self {
            name,
            argv,
            cwd: cwd.to_owned(),
        }
    }

    /// The standard library uses `posix_spawn` here, since nothing but a change of directory needs
    /// to happen in between.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command
            .args(&self.argv[1..])
            .current_dir(&self.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn works(&self) -> Result<(), String> {
        let output = self
            .command()
            .stderr(Stdio::piped())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text.lines().next().unwrap_or_default();
        Err(format!("{}: {line}", output.status))
    }

    fn once(&self) -> Option<Duration> {
        let mut command = self.command();
        let begin = Instant::now();
        let status = command.status().ok()?;
        status.success().then(|| begin.elapsed())
    }
}

impl Samples {
    /// Milliseconds.
    pub(crate) fn p50(&self) -> Option<f64> {
        self.percentile(50)
    }

    /// Milliseconds.
    pub(crate) fn p90(&self) -> Option<f64> {
        self.percentile(90)
    }

    fn percentile(&self, percent: usize) -> Option<f64> {
        let index = self.sorted.len() * percent / 100;
        Some(self.sorted.get(index)?.as_secs_f64() * 1e3)
    }
}

/// One start of each row per round, each time in another order: the kernel takes the namespaces of
/// one command apart while the next one starts, so that every row must have every other before it.
pub(crate) fn interleaved(rows: &[Row], rounds: usize) -> Vec<Samples> {
    let mut all: Vec<Samples> = rows
        .iter()
        .map(|row| Samples {
            name: row.name,
            sorted: Vec::with_capacity(rounds),
            refused: row.works().err(),
        })
        .collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let mut random = Random(1);
    for _ in 0..rounds {
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        for &number in &order {
            let (row, samples) = (&rows[number], &mut all[number]);
            if samples.refused.is_none() {
                match row.once() {
                    Some(time) => samples.sorted.push(time),
                    None => samples.refused = Some("failed during the measurement".to_owned()),
                }
            }
        }
    }
    for samples in &mut all {
        if samples.refused.is_some() {
            samples.sorted.clear();
        }
        samples.sorted.sort_unstable();
    }
    all
}

/// The same numbers in every run: Knuth's linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit
    }
}
