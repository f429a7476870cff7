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

const RUNS: usize = 200;

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
    let directory_in = |place: &str| {
        let mut builder = tempfile::Builder::new();
        builder.prefix("stockade-bench-").tempdir_in(place).unwrap()
    };
    let on_disk = directory_in(env!("CARGO_TARGET_TMPDIR"));
    let mut bench = Bench::new(&program, on_disk.path());
    bench.snapshots(files);
    bench.added_by_overlays("on disk");
    bench.changes_in_overlay();
    let in_memory = directory_in("/dev/shm");
    let bench = Bench::new(&program, in_memory.path());
    make_tree(&bench.tree(), 1_000);
    bench.added_by_overlays("in memory");
}

impl Bench {
    fn new(program: &Path, dir: &Path) -> Self {
        Self {
            program: program.to_owned(),
            dir: dir.to_owned(),
            peak: 0,
        }
    }

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

    /// A script of the shell, for rivals that are several programs.
    fn shell(&mut self, script: &str) -> Duration {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        self.time(command)
    }

    fn snapshots(&mut self, files: usize) {
        let tree = self.tree();
        make_tree(&tree, files);
        let (archived, archive) = self.archive(&tree);
        let git = format!(
            "git --git-dir={} --work-tree={}",
            self.dir.join("git").display(),
            tree.display()
        );
        let _ = self.shell(&format!("{git} init -q && {git} add -A"));
        let copied = self.copy(&tree);
        let dir = tree.to_str().unwrap().to_owned();
        self.peak = 0;
        // Each into an empty store; the better one counts, as with the archive.
        let mut first = Duration::MAX;
        for _ in 0..2 {
            let _ = fs::remove_dir_all(self.dir.join("store"));
            let made = ["ws", "create", "b", "--dir", &dir, "--no-snapshot"];
            let _ = self.time(self.stockade(&made));
            first = first.min(self.time(self.stockade(&["ws", "snapshot", "b"])));
        }
        let size = size_of(&self.dir.join("store"));
        row(
            "tar | zstd -3 -T0",
            archived,
            &format!("{} MB", archive >> 20),
        );
        row("first snapshot", first, &format!("{} MB", size >> 20));
        let _ = self.shell(&format!("{git} status --short"));
        let mut status = Duration::MAX;
        let mut second = Duration::MAX;
        let mut restore = Duration::MAX;
        for round in 0..3 {
            touch_ten(&tree, &format!("{round} a"));
            second = second.min(self.time(self.stockade(&["ws", "snapshot", "b"])));
            status = status.min(self.shell(&format!("{git} status --short")));
            touch_ten(&tree, &format!("{round} b"));
            let last = self.last_snapshot();
            restore = restore.min(self.time(self.stockade(&["ws", "restore", "b", &last])));
        }
        row("git status", status, "");
        row("snapshot after 10 changes", second, "");
        row("restore of 10 changes", restore, "");
        budget("first snapshot / tar | zstd", ratio(first, archived), 1.0);
        #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
        budget(
            "its size / the archive's",
            size as f64 / archive as f64,
            1.3,
        );
        budget(
            "20 x second snapshot / first",
            20.0 * ratio(second, first),
            1.0,
        );
        if let Some((copied, again)) = copied {
            let times = |time| format!("{:.1} x the second snapshot", ratio(time, second));
            row("rsync -a, all files", copied, &times(copied));
            row("rsync -a, of 10 changes", again, &times(again));
            // A copy is what `rsync -a` makes where there is none. No program that looks at every
            // file can be 20 x faster than one that looks at every file and copies ten.
            budget(
                "20 x second snapshot / rsync, all",
                20.0 * ratio(second, copied),
                1.0,
            );
        }
        budget("second snapshot / git status", ratio(second, status), 1.5);
        budget("restore / second snapshot", ratio(restore, second), 2.0);
        #[expect(clippy::cast_precision_loss, reason = "a size for people")]
        budget("peak resident size in MB", self.peak as f64 / 1024.0, 150.0);
    }

    /// How long an archive takes, and its size.
    fn archive(&mut self, tree: &Path) -> (Duration, u64) {
        let archive = self.dir.join("archive.tar.zst");
        let tar = format!(
            "tar -C {} -cf - . | zstd -q -3 -T0 -f -o {out} && sync {out}",
            tree.display(),
            out = archive.display()
        );
        // The first one finds a cold cache.
        let _ = self.shell(&tar);
        let best = self.shell(&tar).min(self.shell(&tar));
        (best, fs::metadata(&archive).unwrap().len())
    }

    /// How long a copy takes, and bringing it up to date after ten changes.
    fn copy(&mut self, tree: &Path) -> Option<(Duration, Duration)> {
        if Command::new("rsync").arg("--version").output().is_err() {
            println!("rsync                        left out: it is not installed");
            return None;
        }
        let copy = self.dir.join("copy");
        let rsync = format!("rsync -a --delete {}/ {}/", tree.display(), copy.display());
        let first = self.shell(&rsync);
        touch_ten(tree, "rsync");
        let again = self.shell(&rsync);
        fs::remove_dir_all(copy).unwrap();
        Some((first, again))
    }

    fn last_snapshot(&self) -> String {
        let listed = self.stockade(&["ws", "snapshots", "b"]).output().unwrap();
        let text = String::from_utf8(listed.stdout).unwrap();
        let last = text.lines().last().unwrap();
        last.split_whitespace().next().unwrap().to_owned()
    }

    /// The kernel tries out the directory that an overlay works in: it makes and removes half a
    /// dozen files whenever it mounts one. So this depends on the file system beneath. One
    /// without a journal (ext4 may have none) looks through all inodes freed in the last minute
    /// for each new one, to leave them alone, and this program has freed a hundred thousand.
    fn added_by_overlays(&self, place: &str) {
        let plain = || quick(self.stockade(&["run", "-q", "--", "true"]));
        let over = || quick(self.stockade(&["run", "-q", "--overlay=o", "--", "true"]));
        let _ = over();
        // In turn, so that whatever else the machine does falls on both.
        let (plain, over): (Vec<_>, Vec<_>) = (0..RUNS).map(|_| (plain(), over())).unzip();
        let (plain, over) = (median(plain), median(over));
        row("run -- true", plain, place);
        row("run --overlay -- true", over, place);
        budget(
            &format!("ms that --overlay adds, {place}"),
            (over.as_secs_f64() - plain.as_secs_f64()) * 1e3,
            2.0,
        );
    }

    fn changes_in_overlay(&mut self) {
        let script = "for i in 0 1 2 3 4 5 6 7 8 9; do echo x >> d$i/f1; done";
        let _ = self.time(self.stockade(&["run", "-q", "--overlay=o", "--", "sh", "-c", script]));
        let diff = (0..20).map(|_| quick(self.stockade(&["ws", "diff", "o"])));
        let diff = median(diff.collect());
        row("ws diff after 10 changes", diff, "");
        let commit = self.time(self.stockade(&["ws", "commit", "o"]));
        row("ws commit of them", commit, "");
        budget("ms for ws diff", diff.as_secs_f64() * 1e3, 20.0);
    }
}

/// How long a short command takes, without looking at its memory.
fn quick(mut command: Command) -> Duration {
    let begin = Instant::now();
    let ended = command.stdout(Stdio::null()).status().unwrap();
    let time = begin.elapsed();
    assert!(ended.success(), "{command:?}");
    time
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn row(name: &str, time: Duration, rest: &str) {
    println!(
        "{name:<28} {:>10.2} ms  {rest}",
        time.as_secs_f64() * 1000.0
    );
}

/// Says whether a figure is what SPECIFICATION.md promises.
fn budget(name: &str, found: f64, most: f64) {
    let word = if found <= most { "kept" } else { "MISSED" };
    println!("  {name:<34} {found:>8.2}  at most {most:<6} {word}");
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
