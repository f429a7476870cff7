//! Workspaces on a tree of 100,000 files and a gigabyte, side by side with what people use.
//!
//! `STOCKADE_BIN` is the program; `STOCKADE_BENCH_FILES` makes the tree smaller.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for the terminal that may stop at what it did not expect"
)]
#![cfg(target_os = "linux")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 60;

struct Bench {
    program: PathBuf,
    dir: PathBuf,
    /// The largest resident size of any command, in KiB.
    peak: u64,
}

fn main() {
    // `cargo bench` hands over a flag of its own.
    let program = std::env::var_os("STOCKADE_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_stockade").into(), PathBuf::from);
    let files = std::env::var("STOCKADE_BENCH_FILES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(100_000);
    let dir = tempfile::Builder::new()
        .prefix("stockade-bench-")
        .tempdir_in(std::env::current_dir().unwrap())
        .unwrap();
    let mut bench = Bench {
        program,
        dir: dir.path().to_owned(),
        peak: 0,
    };
    bench.snapshots(files);
    bench.overlays();
}

impl Bench {
    fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    fn stockade(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .env("STOCKADE_HOME", self.dir.join("store"))
            .current_dir(self.tree());
        command
    }

    /// How long a command takes.
    fn time(&mut self, mut command: Command) -> Duration {
        let begin = Instant::now();
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let status = format!("/proc/{}/status", child.id());
        let ended = loop {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let peak = peak.and_then(|line| line.split_whitespace().next()?.parse().ok());
            self.peak = self.peak.max(peak.unwrap_or(0));
            if let Some(ended) = child.try_wait().unwrap() {
                break ended;
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        assert!(ended.success(), "{command:?}");
        begin.elapsed()
    }

    fn best(&mut self, times: usize, make: impl Fn(&Self) -> Command) -> Duration {
        (0..times).map(|_| self.time(make(self))).min().unwrap()
    }

    fn snapshots(&mut self, files: usize) {
        let tree = self.tree();
        make_tree(&tree, files);
        let shell = |script: String| {
            let mut command = Command::new("sh");
            command.args(["-c", &script]);
            command
        };
        let archive = self.dir.join("archive.tar.zst");
        let tar = format!(
            "tar -C {} -cf - . | zstd -q -3 -T0 -f -o {}",
            tree.display(),
            archive.display()
        );
        let _ = self.time(shell(tar.clone()));
        let tar_time = self.time(shell(format!("{tar} && sync {}", archive.display())));
        let tar_size = fs::metadata(&archive).unwrap().len();
        let git = format!(
            "git --git-dir={} --work-tree={}",
            self.dir.join("git").display(),
            tree.display()
        );
        let _ = self.time(shell(format!("{git} init -q && {git} add -A")));
        let dir = tree.to_str().unwrap().to_owned();
        let _ = self.time(self.stockade(&["ws", "create", "b", "--dir", &dir, "--no-snapshot"]));
        self.peak = 0;
        let first = self.time(self.stockade(&["ws", "snapshot", "b"]));
        let size = size_of(&self.dir.join("store"));
        let _ = self.time(shell(format!("{git} status --short")));
        touch_ten(&tree, "a");
        let second = self.time(self.stockade(&["ws", "snapshot", "b"]));
        let status = self.time(shell(format!("{git} status --short")));
        touch_ten(&tree, "b");
        let third = self.time(self.stockade(&["ws", "snapshot", "b"]));
        let status = status.min(self.time(shell(format!("{git} status --short"))));
        let second = second.min(third);
        touch_ten(&tree, "c");
        let output = self
            .stockade(&["ws", "snapshots", "b"])
            .output()
            .unwrap()
            .stdout;
        let text = String::from_utf8(output).unwrap();
        let last = text
            .lines()
            .last()
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned();
        let restore = self.time(self.stockade(&["ws", "restore", "b", &last]));
        let peak = self.peak;
        row(
            "tar | zstd -3 -T0",
            tar_time,
            &format!("{} MB", tar_size >> 20),
        );
        let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        let larger = size as f64 / tar_size as f64;
        row(
            "first snapshot",
            first,
            &format!(
                "{:.2} x tar, {} MB, {larger:.2} x its size",
                ratio(first, tar_time),
                size >> 20
            ),
        );
        row("git status", status, "");
        row(
            "snapshot after 10 changes",
            second,
            &format!(
                "{:.0} x faster than the first, {:.2} x git status",
                ratio(first, second),
                ratio(second, status)
            ),
        );
        row(
            "restore of 10 changes",
            restore,
            &format!("{:.2} x that snapshot", ratio(restore, second)),
        );
        if Command::new("rsync").arg("--version").output().is_ok() {
            let copy = self.dir.join("copy");
            let rsync = format!("rsync -a --delete {}/ {}/", tree.display(), copy.display());
            let _ = self.time(shell(rsync.clone()));
            touch_ten(&tree, "d");
            let rsync = self.time(shell(rsync));
            row(
                "rsync -a after 10 changes",
                rsync,
                &format!("the snapshot is {:.0} x faster", ratio(rsync, second)),
            );
        }
        println!("{:<28} {peak} KiB", "peak resident size");
    }

    fn overlays(&mut self) {
        let plain = self.best(RUNS, |bench| bench.stockade(&["run", "-q", "--", "true"]));
        let over = self.best(RUNS, |bench| {
            bench.stockade(&["run", "-q", "--overlay=o", "--", "true"])
        });
        row("run -- true", plain, "");
        row(
            "run --overlay -- true",
            over,
            &format!(
                "{:+.2} ms",
                (over.as_secs_f64() - plain.as_secs_f64()) * 1000.0
            ),
        );
        let script = "for i in 0 1 2 3 4 5 6 7 8 9; do echo x >> d$i/f1; done";
        let _ = self.time(self.stockade(&["run", "-q", "--overlay=o", "--", "sh", "-c", script]));
        let diff = self.best(10, |bench| bench.stockade(&["ws", "diff", "o"]));
        row("ws diff after 10 changes", diff, "");
        let commit = self.time(self.stockade(&["ws", "commit", "o"]));
        row("ws commit of them", commit, "");
    }
}

fn row(name: &str, time: Duration, rest: &str) {
    println!(
        "{name:<28} {:>10.2} ms  {rest}",
        time.as_secs_f64() * 1000.0
    );
}

/// Ten kilobytes each, as compressible as source code.
fn make_tree(tree: &Path, files: usize) {
    const WORDS: [&str; 16] = [
        "let",
        "value",
        "=",
        "function(",
        ")",
        "return",
        "{",
        "}",
        "if",
        "else",
        "for",
        "while",
        "match",
        "struct",
        "impl",
        "self",
    ];
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for number in 0..files {
        let directory = tree.join(format!("d{}", number / 100));
        if number % 100 == 0 {
            fs::create_dir_all(&directory).unwrap();
        }
        let length = 2_000 + usize::try_from(next() % 16_000).unwrap();
        let mut text = String::with_capacity(length + 32);
        while text.len() < length {
            let number = next();
            let word = WORDS[usize::try_from(number % 16).unwrap()];
            if number % 5 == 0 {
                write!(text, "{word}_{:x} ", number >> 40).unwrap();
            } else {
                text.push_str(word);
                text.push(if number % 11 == 0 { '\n' } else { ' ' });
            }
        }
        fs::write(directory.join(format!("f{}", number % 100)), text).unwrap();
    }
    // What was written a moment ago is not believed to be unchanged.
    std::thread::sleep(Duration::from_secs(1));
}

fn touch_ten(tree: &Path, text: &str) {
    for number in 0..10 {
        fs::write(tree.join(format!("d{number}/f0")), text).unwrap();
    }
    std::thread::sleep(Duration::from_millis(300));
}

fn size_of(path: &Path) -> u64 {
    let metadata = fs::symlink_metadata(path).unwrap();
    if !metadata.is_dir() {
        return metadata.len();
    }
    fs::read_dir(path)
        .unwrap()
        .map(|entry| size_of(&entry.unwrap().path()))
        .sum()
}
