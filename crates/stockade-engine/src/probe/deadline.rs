//! Another program, run with a deadline: a backend that hangs must not hang `doctor`.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How much of a program's output is kept.
const KEPT: u64 = 64 * 1024;

/// A program that has ended may leave children that hold its output open; this is how long the
/// output is waited for. A machine that is busy must not make a program's answer empty.
const DRAIN: Duration = Duration::from_secs(5);

/// What became of a program.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "callers must handle each")]
pub enum Ended {
    /// It ended by itself.
    Exited {
        /// How.
        status: ExitStatus,
        /// The beginning of what it wrote; bytes that are not Unicode are replaced.
        stdout: String,
        /// The beginning of its errors.
        stderr: String,
    },
    /// It could not be started or waited for.
    NotStarted(io::Error),
    /// It took too long and was killed.
    TimedOut,
}

/// Runs `command` without input; kills it when `patience` is over.
pub fn run(mut command: Command, patience: Duration) -> Ended {
    command
        // Not the null device: `runsc` gives its standard streams to `nobody` when root starts it.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ended::NotStarted(error),
    };
    drop(child.stdin.take());
    let stdout = collect(child.stdout.take());
    let stderr = collect(child.stderr.take());
    match wait(&mut child, patience) {
        Ok(Some(status)) => Ended::Exited {
            status,
            stdout: stdout.recv_timeout(DRAIN).unwrap_or_default(),
            stderr: stderr.recv_timeout(DRAIN).unwrap_or_default(),
        },
        Ok(None) => Ended::TimedOut,
        Err(error) => Ended::NotStarted(error),
    }
}

fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + patience;
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = pipe.take(KEPT).read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
    }
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_are_kept() {
        let ended = run(
            shell("echo out; echo err >&2; exit 3"),
            Duration::from_secs(100),
        );
        let Ended::Exited {
            status,
            stdout,
            stderr,
        } = ended
        else {
            panic!("{ended:?}");
        };
        assert_eq!(
            (status.code(), stdout.as_str(), stderr.as_str()),
            (Some(3), "out\n", "err\n")
        );
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let ended = run(shell("exec sleep 3600"), Duration::from_millis(50));
        assert!(matches!(ended, Ended::TimedOut), "{ended:?}");
    }

    #[test]
    fn a_missing_program_is_an_answer() {
        let ended = run(Command::new("/nonexistent"), Duration::from_secs(1));
        assert!(matches!(ended, Ended::NotStarted(_)), "{ended:?}");
    }
}
