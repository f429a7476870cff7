//! `stockade batch`: every task has one result, whatever happens meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::context::{Context, Ran, run};

const MAX_WAIT_SECONDS: u64 = 120;

fn context() -> Context {
    let mut context = Context::new();
    let temporary = context.home().join("tmp");
    fs::create_dir(&temporary).unwrap();
    context.set("TMPDIR", temporary);
    context
}

fn write_tasks(context: &Context, tasks: &[Value]) {
    let lines: Vec<String> = tasks.iter().map(Value::to_string).collect();
    context.file("tasks.jsonl", &(lines.join("\n") + "\n"));
}

fn results(text: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let result: Value = serde_json::from_str(line).unwrap();
        assert_eq!(result["schema"], 1);
        let key = result["id"].as_str().map_or_else(
            || format!("line {}", result["line"]),
            std::borrow::ToOwned::to_owned,
        );
        assert!(found.insert(key, result).is_none(), "twice: {line}");
    }
    found
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(MAX_WAIT_SECONDS);
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn spawn(context: &Context, words: &[&str]) -> Child {
    let mut command = context.command(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn finish(child: Child) -> Ran {
    use std::os::unix::process::ExitStatusExt;
    let output = child.wait_with_output().unwrap();
    let code = output.status.code();
    Ran {
        code: code.unwrap_or_else(|| 128 + output.status.signal().unwrap()),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn lines_of(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

fn is_empty(context: &Context) -> bool {
    fs::read_dir(context.home().join("tmp"))
        .unwrap()
        .next()
        .is_none()
}

#[test]
fn each_task_has_the_result_of_its_command() {
    let context = context();
    let shell = |id: &str, script: &str| json!({"id": id, "argv": ["sh", "-c", script]});
    write_tasks(
        &context,
        &[
            shell("code", "echo out; echo err >&2; exit 3"),
            shell("signal", "kill -KILL $$"),
            json!({"id": "input", "argv": ["cat"], "stdin": {"base64": "AP8="}}),
            json!({"id": "time", "argv": ["sleep", "60"], "policy": {"timeout_ms": 100}}),
            shell("long", "head -c 3000000 /dev/zero"),
            shell("refused", "echo x > /etc/stockade-batch-test"),
            json!({"id": "missing", "argv": ["no-such-program"]}),
            json!({"id": "policy", "argv": ["true"], "policy": {"allow": ["a b"]}}),
            json!({"id": "code", "argv": ["true"]}),
            json!({"id": "files", "argv": ["sh", "-c", "cat in/a; echo changed > in/a; echo n > new"],
                   "files": {"in/a": {"text": "given\n"}}}),
            json!({"id": "outside", "argv": ["true"], "files": {"../a": {"text": ""}}}),
        ],
    );
    let ran = context
        .stockade(["batch", "--max-output", "1000", "tasks.jsonl"])
        .ends_with(1);
    let found = results(&ran.stdout);
    let field = |id: &str, name: &str| found[id][name].clone();
    assert_eq!(field("code", "exit_code"), 3);
    assert_eq!(field("code", "stdout"), json!({"text": "out\n"}));
    assert_eq!(field("code", "stderr"), json!({"text": "err\n"}));
    assert_eq!(field("code", "attempts"), 1);
    assert_eq!(field("code", "backend"), "native");
    assert_eq!(field("signal", "signal"), 9);
    assert_eq!(field("input", "stdout"), json!({"base64": "AP8="}));
    assert_eq!(field("time", "ending"), "timed_out");
    assert_eq!(field("long", "truncated"), true);
    assert_eq!(
        field("long", "stdout")["text"].as_str().unwrap().len(),
        1000
    );
    assert_eq!(field("refused", "denials")[0]["operation"], "create");
    assert!(!Path::new("/etc/stockade-batch-test").exists());
    assert_eq!(field("missing", "error")["code"], 127);
    assert_eq!(field("policy", "error")["code"], 2);
    assert!(found.contains_key("line 9"), "{found:#?}");
    assert_eq!(field("files", "stdout"), json!({"text": "given\n"}));
    let changes = field("files", "changes");
    assert_eq!(changes[0]["path"], "in/a", "{changes:#}");
    assert_eq!(changes[0]["text"], "@@ -1 +1 @@\n-given\n+changed\n");
    assert_eq!(changes[1]["path"], "new", "{changes:#}");
    assert_eq!(field("outside", "error")["code"], 2);
    assert_eq!(found.len(), 11);
    assert!(is_empty(&context));
}

#[test]
fn what_the_machine_did_wrong_is_tried_again() {
    let context = context();
    let script = "echo >> runs; while ! test -e go; do sleep 0.02; done; exit 5";
    write_tasks(
        &context,
        &[json!({"id": "a", "argv": ["sh", "-c", script]})],
    );
    let runs = context.project().join("runs");
    let batch = spawn(&context, &["batch", "tasks.jsonl"]);
    wait_until("the task did not start", || lines_of(&runs) == 1);
    let mut kill = Command::new("pkill");
    kill.args(["-KILL", "-P", &batch.id().to_string()]);
    run(kill).ends_with(0);
    wait_until("the task was not started again", || lines_of(&runs) == 2);
    context.file("go", "");
    let ran = finish(batch).ends_with(0);
    let found = results(&ran.stdout);
    assert_eq!(found["a"]["attempts"], 2, "{found:#?}");
    assert_eq!(found["a"]["exit_code"], 5, "{found:#?}");
}

/// Kills one sandbox in twenty while tasks run: every task has one result, and it is the command's.
#[test]
fn sandboxes_that_are_killed_at_random_lose_no_task() {
    const TASKS: usize = 100;
    const KILLS: usize = 5;
    let context = context();
    let tasks: Vec<Value> = (0..TASKS)
        .map(|number| {
            let script = format!("sleep 0.05; echo {number}; echo >> runs");
            json!({"id": number.to_string(), "argv": ["sh", "-c", script]})
        })
        .collect();
    write_tasks(&context, &tasks);
    let runs = context.project().join("runs");
    let words = ["batch", "--parallel", "4", "--retries", "9", "tasks.jsonl"];
    // Results wait in a pipe that nobody reads, and tasks with them.
    let output = context.home().join("results.jsonl");
    let mut command = context.command(words);
    command.stdout(fs::File::create(&output).unwrap());
    let batch = command.spawn().unwrap();
    for kill in 0..KILLS {
        let due = (kill + 1) * TASKS / (KILLS + 2);
        wait_until("the batch does not go on", || lines_of(&runs) >= due);
        wait_until("no sandbox was there to kill", || {
            let mut command = Command::new("pkill");
            command.args(["-KILL", "--newest", "-P", &batch.id().to_string()]);
            run(command).code == 0
        });
    }
    finish(batch).ends_with(0);
    let found = results(&fs::read_to_string(output).unwrap());
    assert_eq!(found.len(), TASKS);
    for (id, result) in &found {
        let text = format!("{id}\n");
        assert_eq!(
            result["stdout"]["text"].as_str(),
            Some(&*text),
            "{result:#}"
        );
        assert_eq!(result["exit_code"], 0, "{result:#}");
    }
    assert!(found.values().any(|result| result["attempts"] != 1));
}

/// Kills a batch again and again; at the end every task has a result, and those that had one when
/// the batch was killed were not run again.
#[test]
fn a_batch_that_is_killed_goes_on_where_it_was() {
    const TASKS: usize = 40;
    let context = context();
    let tasks: Vec<Value> = (0..TASKS)
        .map(|number| {
            let script = format!("echo >> run-{number}; sleep 0.02");
            json!({"id": number.to_string(), "argv": ["sh", "-c", script]})
        })
        .collect();
    write_tasks(&context, &tasks);
    let journal = context.home().join("journal");
    let words = [
        "batch",
        "--journal",
        journal.to_str().unwrap(),
        "tasks.jsonl",
    ];
    let run_count = |id: &str| lines_of(&context.project().join(format!("run-{id}")));
    for kill_after in [1, 6, 13, 20] {
        let mut batch = spawn(&context, &words);
        wait_until("no task ends", || lines_of(&journal) >= kill_after);
        batch.kill().unwrap();
        batch.wait().unwrap();
        let finished = fs::read_to_string(&journal).unwrap();
        let finished: Vec<(String, usize)> = finished
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .map(|line| line["task"]["id"].as_str().unwrap().to_owned())
            .map(|id| (id.clone(), run_count(&id)))
            .collect();
        assert!(finished.len() >= kill_after && finished.len() < TASKS);
        // The next one begins with what this one left.
        let next = context
            .stockade(["batch", "--journal", journal.to_str().unwrap(), "/dev/null"])
            .ends_with(0);
        assert_eq!(next.stdout, "");
        assert!(is_empty(&context), "the killed batch's directory is left");
        for (id, count) in finished {
            assert_eq!(run_count(&id), count, "{id} ran although it was finished");
        }
    }
    let ran = context.stockade(words).ends_with(0);
    let found = results(&ran.stdout);
    assert_eq!(found.len(), TASKS);
    assert!(found.values().all(|result| result["exit_code"] == 0));
    let other = json!({"id": "0", "argv": ["false"]});
    write_tasks(&context, &[other]);
    let changed = context.stockade(words).ends_with(2);
    assert!(
        changed.stderr.contains("another task with the id `0`"),
        "{changed:#?}"
    );
}

#[test]
fn an_interrupt_ends_everything_and_leaves_nothing() {
    for signal in ["INT", "TERM"] {
        let context = context();
        let token = format!("86{}.{signal}", std::process::id());
        let script = format!("echo >> runs; exec -a {token} sleep 600");
        let task = |id: &str| json!({"id": id, "argv": ["bash", "-c", script], "policy": {"overlay": false}});
        // The input stays open, so that workers wait for tasks.
        let mut command = context.command(["batch", "--parallel", "4"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut batch = command.spawn().unwrap();
        let mut input = batch.stdin.take().unwrap();
        writeln!(input, "{}\n{}", task("a"), task("b")).unwrap();
        let runs = context.project().join("runs");
        wait_until("the tasks did not start", || lines_of(&runs) == 2);
        let mut kill = Command::new("kill");
        kill.args([&format!("-{signal}"), &batch.id().to_string()]);
        run(kill).ends_with(0);
        let ran = finish(batch).ends_with(if signal == "INT" { 130 } else { 143 });
        drop(input);
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.contains("--journal"), "{ran:#?}");
        assert!(is_empty(&context));
        let mut left = Command::new("pgrep");
        left.args(["-f", &token]);
        assert_eq!(run(left).stdout, "");
    }
}

/// A sandbox may write where temporary files are, and leave there what the next batch looks at.
#[test]
fn what_others_planted_is_neither_waited_for_nor_followed() {
    let context = context();
    let temporary = context.home().join("tmp");
    let outside = context.home().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("lock"), "").unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    let planted = ["pipe", "link", "with-link", "abandoned"].map(|name| {
        let planted = temporary.join(format!("stockade-batch-{name}"));
        fs::create_dir(&planted).unwrap();
        planted
    });
    let [pipe, link, with_link, abandoned] = &planted;
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe.join("lock"), 0o600.into()).unwrap();
    std::os::unix::fs::symlink(outside.join("lock"), link.join("lock")).unwrap();
    std::os::unix::fs::symlink(&outside, temporary.join("stockade-batch-0")).unwrap();
    for planted in [with_link, abandoned] {
        fs::write(planted.join("lock"), "").unwrap();
    }
    std::os::unix::fs::symlink(&outside, with_link.join("link")).unwrap();
    write_tasks(&context, &[json!({"id": "a", "argv": ["true"]})]);
    let ran = context.stockade(["batch", "tasks.jsonl"]).ends_with(0);
    assert_eq!(results(&ran.stdout).len(), 1);
    assert!(outside.join("kept").exists() && outside.join("lock").exists());
    assert!(!abandoned.exists() && !with_link.exists());
}

#[test]
fn bad_input_is_told() {
    let context = context();
    let missing = context.stockade(["batch", "no-such-file"]).ends_with(2);
    assert!(missing.stderr.contains("no-such-file"), "{missing:#?}");
    let journal = context.file("tasks.jsonl", "{\"id\": \"a\", \"argv\": [\"true\"]}\n");
    let words = ["batch", "--journal", journal.to_str().unwrap(), "/dev/null"];
    let wrong = context.stockade(words).ends_with(2);
    assert!(wrong.stderr.contains("not the journal"), "{wrong:#?}");
    let zero = context.stockade(["batch", "--parallel", "0"]);
    assert_eq!(zero.code, 2, "{zero:#?}");
}
