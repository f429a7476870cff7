//! Many sandboxes at once.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use stockade_test::census;

const CROWD: usize = 200;

/// Says that it is there, waits for a word, keeps it in its own `/tmp` and in the project.
const WORK: &str =
    "echo ready; read word; echo $word > /tmp/word; cat /tmp/word > word-$0; cat /tmp/word";

struct One {
    child: Child,
    output: BufReader<ChildStdout>,
}

fn start(directory: &std::path::Path, number: usize) -> One {
    let mut child = Command::new(env!("CARGO_BIN_EXE_stockade"))
        .args(["run", "--", "sh", "-c", WORK])
        .arg(number.to_string())
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    One { child, output }
}

#[test]
fn two_hundred_at_once_start_work_and_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut crowd: Vec<One> = (0..CROWD)
        .map(|number| start(directory.path(), number))
        .collect();
    for one in &mut crowd {
        let mut line = String::new();
        one.output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }
    // Every one of them has begun and none has ended: they are all there at the same time.
    for (number, one) in crowd.iter_mut().enumerate() {
        let mut input = one.child.stdin.take().unwrap();
        writeln!(input, "word {number}").unwrap();
    }
    for (number, mut one) in crowd.into_iter().enumerate() {
        let mut rest = String::new();
        one.output.read_to_string(&mut rest).unwrap();
        assert!(one.child.wait().unwrap().success());
        assert_eq!(rest, format!("word {number}\n"));
        let kept = directory.path().join(format!("word-{number}"));
        assert_eq!(fs::read_to_string(kept).unwrap(), rest);
    }
    let left = census::members(directory.path(), "no token");
    let left: Vec<String> = census::outlive(left, census::TO_DIE)
        .iter()
        .map(census::Member::describe)
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), CROWD);
}
