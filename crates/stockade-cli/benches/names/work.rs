//! The pieces of work and their goals.

use std::error::Error;
use std::time::Instant;

use crate::fixture::Fixture;
use crate::way::{Kind, Way};

/// What a number means.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    Milliseconds,
    /// As the command prints it: more is better.
    PerSecond,
}

/// A piece of work in the project directory of the fixture.
pub(crate) struct Work {
    pub(crate) name: &'static str,
    pub(crate) measure: Measure,
    /// Run bare before each measurement, not measured.
    prepare: &'static str,
    script: &'static str,
    direct: f64,
    transaction: f64,
}

/// At most this many times bare on a disk, both ways.
const DISK_GOAL: f64 = 1.5;

impl Work {
    /// The ratio to bare that the way has to keep.
    pub(crate) fn goal(&self, kind: Kind, on_disk: bool) -> Option<f64> {
        let on_tmpfs = match kind {
            Kind::Bare | Kind::Bwrap | Kind::Floor => return None,
            Kind::Direct => self.direct,
            Kind::Transaction => self.transaction,
        };
        let is_time = self.measure == Measure::Milliseconds;
        Some(if on_disk && is_time {
            DISK_GOAL
        } else {
            on_tmpfs
        })
    }

    /// Does it once.
    pub(crate) fn once(&self, way: &Way, fixture: &Fixture) -> Result<f64, Box<dyn Error>> {
        fixture.shell(self.prepare)?;
        let mut command = way.command(&["/bin/sh", "-ec", self.script], &fixture.project());
        let begin = Instant::now();
        let output = command.output()?;
        let time = begin.elapsed();
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{}, {}: {}: {text}", self.name, way.name, output.status).into());
        }
        Ok(match self.measure {
            Measure::Milliseconds => time.as_secs_f64() * 1e3,
            Measure::PerSecond => String::from_utf8(output.stdout)?.trim().parse()?,
        })
    }
}

/// What `make bench` promises about names.
pub(crate) fn all() -> Vec<Work> {
    let time = |name, prepare, script, direct| Work {
        name,
        measure: Measure::Milliseconds,
        prepare,
        script,
        direct,
        transaction: 2.3,
    };
    vec![
        time(
            "tar x, 20,000 files",
            "rm -rf tree",
            "tar xf \"$PWD/../files.tar\"",
            3.0,
        ),
        time(
            "rm -rf, 20,000 files",
            "rm -rf tree; tar xf ../files.tar",
            "rm -rf tree",
            2.5,
        ),
        time(
            "cp -r, 20,000 files",
            "rm -rf copy; test -e tree || tar xf ../files.tar",
            "cp -r tree copy",
            2.2,
        ),
        time(
            "git checkout, 10,000 files",
            "rm -rf tree copy; test -e repository || cp -a ../repository repository
             cd repository; git checkout -qf main",
            "cd repository; git checkout -q other",
            1.8,
        ),
        time(
            "git add + commit, 20,000 files",
            "rm -rf repository fresh; mkdir fresh; cd fresh; git init -q .; tar xf ../../files.tar",
            "cd fresh; git add -A; git commit -qm all",
            1.8,
        ),
        time(
            "5,000 sqlite commits",
            "rm -rf fresh base*",
            "exec /usr/bin/python3 -c '
import sqlite3
base = sqlite3.connect(\"base\", isolation_level=None)
base.execute(\"pragma synchronous=off\"); base.execute(\"create table t (a)\")
for number in range(5000): base.execute(\"insert into t values (?)\", (number,))'",
            1.4,
        ),
        Work {
            name: "64 threads",
            measure: Measure::PerSecond,
            prepare: "rm -rf base* shared t[0-9]*",
            script: "exec ../stress 2",
            direct: 0.15,
            transaction: 0.4,
        },
    ]
}
