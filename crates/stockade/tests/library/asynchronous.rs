//! The verbs for programs on tokio.

use std::time::Duration;

use stockade::{Ending, Sandbox, Stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};

use crate::builder::shell;
use crate::{Test, dir};

pub(crate) const TESTS: &[Test] = &[
    ("a_cancelled_command_is_killed", cancelled),
    ("both_outputs_are_collected", both_outputs),
    ("limits_hold_while_nobody_waits", limits),
    ("many_commands_run_on_one_thread", many),
    ("output_streams", streams),
];

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn both_outputs() {
    let place = dir();
    let sandbox = Sandbox::builder().workspace(place.path()).build().unwrap();
    let script = "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero; exit 3";
    let output = runtime().block_on(shell(&sandbox, script).output_async());
    let output = output.unwrap();
    assert_eq!(output.ending(), Ending::Exited(3));
    assert_eq!(output.stdout.len(), 1_000_000);
    assert_eq!(output.stderr.len(), 1_000_000);
}

fn streams() {
    let place = dir();
    let sandbox = Sandbox::builder().workspace(place.path()).build().unwrap();
    runtime().block_on(async {
        let mut command = sandbox.command("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn_async().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        for word in [b"one", b"two"] {
            // What was written comes back before the input has ended.
            child.stdin.as_mut().unwrap().write_all(word).await.unwrap();
            let mut echo = [0; 3];
            stdout.read_exact(&mut echo).await.unwrap();
            assert_eq!(&echo, word);
        }
        assert!(child.wait().await.unwrap().success());
    });
}

/// Everything that holds the pipe is dead when the pipe is at its end.
fn cancelled() {
    let place = dir();
    let sandbox = Sandbox::builder().workspace(place.path()).build().unwrap();
    runtime().block_on(async {
        let mut command = shell(&sandbox, "setsid sleep 3600 & echo begun; sleep 3600");
        let mut child = command.stdout(Stdio::piped()).spawn_async().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut begun = [0; 6];
        stdout.read_exact(&mut begun).await.unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(10), child.wait());
        assert!(waiting.await.is_err(), "the command has ended by itself");
        drop(child);
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty());
    });
}

fn limits() {
    let place = dir();
    let mut builder = Sandbox::builder();
    builder.workspace(place.path()).limit("output=100K");
    let sandbox = builder.build().unwrap();
    runtime().block_on(async {
        let output = shell(&sandbox, "yes").output_async().await.unwrap();
        assert_eq!(output.ending(), Ending::OutputLimit);
        assert_eq!(output.stdout.len(), 102_400);
        let mut command = shell(&sandbox, "while :; do echo more; sleep 0.1; done");
        command.timeout(Duration::from_millis(500));
        let mut child = command.stdout(Stdio::piped()).spawn_async().unwrap();
        let mut text = Vec::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_end(&mut text).await.unwrap();
        assert_eq!(child.wait().await.unwrap().report.ending, Ending::TimedOut);
    });
}

fn many() {
    let place = dir();
    let sandbox = Sandbox::builder().workspace(place.path()).build().unwrap();
    runtime().block_on(async {
        let run = async |word: u32| {
            let mut command = shell(&sandbox, &format!("sleep 0.2; echo {word}"));
            command.output_async().await.unwrap().stdout
        };
        let (one, two, three) = tokio::join!(run(1), run(2), run(3));
        assert_eq!([one, two, three], [b"1\n", b"2\n", b"3\n"]);
    });
}
