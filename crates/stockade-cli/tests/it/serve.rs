//! `serve --stdio`: sandboxes for a program that speaks JSON-RPC.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::context::Context;
use crate::session::await_that;

/// A client of a server of its own.
pub(crate) struct Client {
    pub(crate) server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last_id: u64,
    pub(crate) notes: Vec<Value>,
    answers: Vec<Value>,
}

impl Client {
    /// Starts a server and greets it.
    pub(crate) fn new(context: &Context) -> Self {
        let mut client = Self::silent(context);
        client.ok("initialize", json!({"protocol": 1, "client": "test"}));
        client
    }

    fn silent(context: &Context) -> Self {
        let mut command = context.command(["serve", "--stdio"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        Self {
            input: server.stdin.take(),
            output: BufReader::new(server.stdout.take().unwrap()),
            server,
            last_id: 0,
            notes: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    pub(crate) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request without waiting for its answer.
    #[expect(clippy::needless_pass_by_value, reason = "callers make it on the spot")]
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send_line(message.to_string().as_bytes());
        id
    }

    pub(crate) fn answer_to(&mut self, id: u64) -> Value {
        loop {
            let mut answers = self.answers.iter();
            if let Some(at) = answers.position(|answer| answer["id"] == id) {
                return self.answers.swap_remove(at);
            }
            let message = self.next();
            if message["id"].is_null() {
                self.notes.push(message["params"].clone());
            } else {
                self.answers.push(message);
            }
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer_to(id)
    }

    #[track_caller]
    pub(crate) fn ok(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The error of a request, whose kind must be this one.
    #[track_caller]
    pub(crate) fn error(&mut self, kind: &str, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        assert_eq!(answer["error"]["data"]["kind"], kind, "{method}: {answer}");
        answer["error"].clone()
    }

    pub(crate) fn open(&mut self, params: Value) -> String {
        self.ok("open", params)["session"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub(crate) fn exec(&mut self, session: &str, script: &str) -> String {
        self.exec_with(json!({"session": session, "argv": ["sh", "-c", script]}))
    }

    pub(crate) fn exec_with(&mut self, params: Value) -> String {
        self.ok("exec", params)["command"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub(crate) fn wait(&mut self, session: &str, command: &str) -> Value {
        self.ok("wait", json!({"session": session, "command": command}))
    }

    /// What a command has written so far.
    pub(crate) fn text(&self, command: &str, stream: &str) -> String {
        let notes = self.notes.iter();
        let mine = notes.filter(|note| note["command"] == command && note["stream"] == stream);
        mine.map(|note| note["data"]["text"].as_str().unwrap())
            .collect()
    }

    /// Runs a script to its end: its code and what it printed.
    pub(crate) fn run(&mut self, session: &str, script: &str) -> (i64, String) {
        let command = self.exec(session, script);
        let ended = self.wait(session, &command);
        (
            ended["exit_code"].as_i64().unwrap(),
            self.text(&command, "stdout"),
        )
    }

    /// Closes the connection and waits for the server's end.
    pub(crate) fn leave(mut self) {
        self.input = None;
        assert!(self.server.wait().unwrap().success());
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that failed leaves it running.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn commands_stream_their_output_and_take_input() {
    for context in Context::of_each_user() {
        let mut client = Client::new(&context);
        let session = client.open(json!({}));
        let script = "echo out; echo err >&2; cat; echo $WORD; exit 3";
        let command = client.exec_with(json!({
            "session": session, "argv": ["sh", "-c", script], "stdin": true, "env": {"WORD": "w"},
        }));
        let about = json!({"session": session, "command": command});
        let input = |text: &str, eof: bool| {
            let mut params = about.clone();
            params["data"] = json!({"text": text});
            params["eof"] = json!(eof);
            params
        };
        client.ok("stdin", input("one ", false));
        client.ok("stdin", input("two\n", true));
        let ended = client.wait(&session, &command);
        assert_eq!(
            (&ended["exit_code"], &ended["ending"]),
            (&json!(3), &json!("exited"))
        );
        assert_eq!(client.text(&command, "stdout"), "out\none two\nw\n");
        assert_eq!(client.text(&command, "stderr"), "err\n");
        client.error("no_such_command", "wait", about);
        let late = client.exec_with(json!({
            "session": session, "argv": ["sleep", "1000"], "timeout_ms": 50,
        }));
        let ended = client.wait(&session, &late);
        assert_eq!(
            (&ended["exit_code"], &ended["ending"]),
            (&json!(124), &json!("timed_out"))
        );
        client.error(
            "not_started",
            "exec",
            json!({"session": session, "argv": ["no-such-program"]}),
        );
        client.leave();
    }
}

#[test]
fn bytes_that_are_no_text_pass() {
    for context in Context::of_each_user() {
        let mut client = Client::new(&context);
        let session = client.open(json!({}));
        let raw = json!({"base64": "/wD+"});
        client.ok(
            "files.write",
            json!({"session": session, "path": "raw", "data": raw}),
        );
        assert_eq!(
            fs::read(context.project().join("raw")).unwrap(),
            [0xff, 0, 0xfe]
        );
        let read = client.ok("files.read", json!({"session": session, "path": "raw"}));
        assert_eq!(read, json!({"data": raw, "eof": true}));
        let command = client.exec(&session, "cat raw");
        client.wait(&session, &command);
        assert_eq!(client.notes[0]["data"], raw);
    }
}

#[test]
fn signals_and_sizes_reach_the_command() {
    for context in Context::of_each_user() {
        let mut client = Client::new(&context);
        let session = client.open(json!({}));
        let script = "trap 'echo caught; exit 9' USR1; echo ready; while true; do sleep 0.05; done";
        let command = client.exec(&session, script);
        while client.text(&command, "stdout").is_empty() {
            let note = client.next();
            client.notes.push(note["params"].clone());
        }
        let signal = json!({"session": session, "command": command, "signal": 10});
        client.ok("signal", signal);
        assert_eq!(client.wait(&session, &command)["exit_code"], 9);
        for _ in 0..10 {
            let sized = client.exec_with(json!({
                "session": session, "argv": ["stty", "size"], "terminal": {"rows": 24, "cols": 80},
            }));
            client.wait(&session, &sized);
            assert_eq!(client.text(&sized, "terminal"), "24 80\r\n");
        }
        // A terminal is an input that is always open.
        for stdin in [false, true] {
            let terminal = client.exec_with(json!({
                "session": session, "argv": ["sh", "-c", "read line; stty size"],
                "terminal": {"rows": 24, "cols": 80}, "stdin": stdin,
            }));
            let about = json!({"session": session, "command": terminal});
            let mut size = about.clone();
            size["size"] = json!({"rows": 33, "cols": 44});
            client.ok("resize", size);
            let mut input = about.clone();
            input["data"] = json!({"text": "go\n"});
            client.ok("stdin", input);
            client.wait(&session, &terminal);
            let text = client.text(&terminal, "terminal");
            assert!(text.contains("33 44"), "{:?}", client.notes);
        }
        let killed = client.exec(&session, "sleep 1000");
        client.ok(
            "signal",
            json!({"session": session, "command": killed, "signal": 9}),
        );
        assert_eq!(client.wait(&session, &killed)["ending"], "killed");
    }
}

#[test]
fn a_bad_message_gets_an_error_and_breaks_nothing() {
    for context in Context::of_each_user() {
        let mut client = Client::silent(&context);
        client.error("not_initialized", "open", json!({}));
        client.error(
            "unsupported_version",
            "initialize",
            json!({"protocol": 999}),
        );
        client.ok("initialize", json!({"protocol": 1}));
        let session = client.open(json!({}));
        let running = client.exec(&session, "sleep 0.1; echo still here");
        let long = vec![b'x'; (8 << 20) + 1];
        for (line, kind) in [
            (&b"{"[..], "parse"),
            (b"\xff\xfe", "parse"),
            (&long, "parse"),
            (b"[]", "invalid_request"),
            (
                b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"open\"}",
                "invalid_request",
            ),
        ] {
            client.send_line(line);
            let mut answer = client.next();
            while answer["method"] == "output" {
                client.notes.push(answer["params"].clone());
                answer = client.next();
            }
            assert_eq!(answer["error"]["data"]["kind"], kind, "{answer}");
        }
        client.error("no_such_method", "no-such-method", json!({}));
        client.error("invalid_params", "exec", json!({"session": session}));
        client.error(
            "invalid_params",
            "exec",
            json!({"session": session, "argv": []}),
        );
        client.error("invalid_params", "open", json!({"no_such_key": 1}));
        client.error(
            "no_such_session",
            "exec",
            json!({"session": "s99", "argv": ["true"]}),
        );
        client.error("policy", "open", json!({"limits": ["nonsense"]}));
        client.error("policy", "open", json!({"workspace": "/nowhere"}));
        let nul = json!({"session": session, "argv": ["a\u{0}b"]});
        assert!(client.call("exec", nul)["error"]["code"].is_i64());
        assert_eq!(client.wait(&session, &running)["exit_code"], 0);
        assert_eq!(client.text(&running, "stdout"), "still here\n");
        client.leave();
    }
}

#[test]
fn files_are_those_that_the_sandbox_sees() {
    for context in Context::of_each_user() {
        let secret = context.home().join(".ssh/id_ed25519");
        fs::create_dir(secret.parent().unwrap()).unwrap();
        fs::write(&secret, "the secret").unwrap();
        let project = context.project();
        symlink(&secret, project.join("link")).unwrap();
        symlink(secret.parent().unwrap(), project.join("dir")).unwrap();
        fs::write(project.join("plain"), "plain").unwrap();
        // The control: whoever follows these outside reads the secret.
        for path in ["link", "dir/id_ed25519"] {
            assert_eq!(
                fs::read_to_string(project.join(path)).unwrap(),
                "the secret"
            );
        }
        let mut client = Client::new(&context);
        let session = client.open(json!({}));
        let read = |client: &mut Client, path: &str| {
            client.call("files.read", json!({"session": session, "path": path}))
        };
        assert_eq!(
            read(&mut client, "plain")["result"]["data"]["text"],
            "plain"
        );
        for path in ["link", "dir/id_ed25519", secret.to_str().unwrap()] {
            let answer = read(&mut client, path);
            assert!(
                answer["error"]["data"]["errno"].is_i64(),
                "{path}: {answer}"
            );
            assert!(!answer.to_string().contains("the secret"), "{answer}");
            let write = json!({"session": session, "path": path, "data": {"text": "changed"}});
            client.call("files.write", write);
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "the secret");
        // A link that is planted by a command leads no further than the command itself gets.
        client.run(&session, &format!("ln -s {} planted", secret.display()));
        assert!(read(&mut client, "planted")["error"].is_object());
        // And what only the sandbox has is there.
        client.run(&session, "echo inside > /tmp/only-inside");
        assert_eq!(
            read(&mut client, "/tmp/only-inside")["result"]["data"]["text"],
            "inside\n"
        );
        let denied = json!({"session": session, "path": "/etc/new", "data": {"text": ""}});
        let denied = client.error("denied", "files.write", denied);
        assert_eq!(denied["data"]["denials"][0]["grant"], "--write /etc");
        let stat = client.ok("files.stat", json!({"session": session, "path": "link"}));
        assert_eq!(
            (&stat["kind"], &stat["target"]),
            (&json!("symlink"), &json!(secret))
        );
        let list = client.ok("files.list", json!({"session": session, "path": "."}));
        let names: Vec<_> = list["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| &e["name"])
            .collect();
        assert_eq!(names, ["dir", "link", "plain", "planted"]);
        client.leave();
    }
}

#[test]
fn the_program_of_the_file_process_can_not_be_changed() {
    for context in Context::of_each_user() {
        let mut client = Client::new(&context);
        let session = client.open(json!({}));
        // A FIFO keeps the process inside alive while a command looks at its descriptors.
        client.run(&session, "mkfifo fifo");
        let reading = client.send("files.read", json!({"session": session, "path": "fifo"}));
        let script = "for i in $(seq 1000); do for p in /proc/[0-9]*; do \
        if tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q [s]tockade-files; then \
        (echo x > $p/fd/0) 2>/dev/null && echo WRITTEN; (echo x > $p/exe) 2>/dev/null && echo WRITTEN; \
        echo seen; echo done > fifo; exit; fi; done; done";
        let command = client.exec(&session, script);
        let ended = client.send("wait", json!({"session": session, "command": command}));
        let read = client.answer_to(reading);
        client.answer_to(ended);
        assert_eq!(read["result"]["data"]["text"], "done\n", "{read}");
        assert_eq!(client.text(&command, "stdout"), "seen\n");
    }
}

#[test]
fn the_ending_tells_whose_cpu_time_was_counted() {
    for context in Context::of_each_user() {
        let mut client = Client::new(&context);
        let session = client.open(json!({}));
        let command = client.exec(&session, "true");
        let ended = client.wait(&session, &command);
        assert_eq!(ended["usage_scope"], "waited", "{ended}");
    }
}

#[test]
fn output_waits_for_credit_and_holds_nobody_else_up() {
    for context in Context::of_each_user() {
        let mut client = Client::new(&context);
        let session = client.open(json!({}));
        let flood = client.exec_with(json!({"session": session, "argv": ["yes"], "credit": 1000}));
        let other = client.run(&session, "echo quick");
        assert_eq!(other, (0, "quick\n".to_owned()));
        let about = json!({"session": session, "command": flood, "bytes": 500});
        client.ok("credit", about);
        while client.text(&flood, "stdout").len() < 1500 {
            let note = client.next();
            client.notes.push(note["params"].clone());
        }
        client.run(&session, "true");
        assert_eq!(client.text(&flood, "stdout").len(), 1500);
        client.ok(
            "signal",
            json!({"session": session, "command": flood, "signal": 9}),
        );
        client.wait(&session, &flood);
        client.leave();
    }
}

#[test]
fn a_client_that_does_not_read_slows_only_itself() {
    for context in Context::of_each_user() {
        let mut deaf = Client::new(&context);
        let session = deaf.open(json!({}));
        deaf.exec_with(json!({"session": session, "argv": ["yes"]}));
        let mut other = Client::new(&context);
        let session = other.open(json!({}));
        assert_eq!(other.run(&session, "echo fine").1, "fine\n");
        // Its death frees everything, though nobody ever read.
        deaf.leave();
        other.leave();
    }
}

/// The id outside of a process that a script in a session started.
fn outer_pid(mark: &str) -> Option<Pid> {
    fs::read_dir("/proc").unwrap().find_map(|entry| {
        let entry = entry.ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let is_it =
            line.starts_with(b"sleep") && line.windows(mark.len()).any(|w| w == mark.as_bytes());
        is_it
            .then(|| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
            .flatten()
    })
}

#[test]
fn nothing_is_left_when_the_client_or_the_server_dies() {
    for context in Context::of_each_user() {
        for (mark, is_killed) in [("98761", false), ("98762", true)] {
            let mut client = Client::new(&context);
            let session = client.open(json!({}));
            client.exec(&session, &format!("setsid sleep {mark} & sleep {mark}"));
            await_that("the command starts", || outer_pid(mark).is_some());
            let pid = outer_pid(mark).unwrap();
            if is_killed {
                let server = Pid::from_raw(i32::try_from(client.server.id()).unwrap()).unwrap();
                kill_process(server, Signal::KILL).unwrap();
            } else {
                client.input = None;
            }
            client.server.wait().unwrap();
            await_that("a process is left", || {
                test_kill_process(pid).is_err() && outer_pid(mark).is_none()
            });
        }
    }
}

#[test]
fn changes_are_shown_committed_by_path_and_discarded() {
    for context in Context::of_each_user() {
        context.file("kept", "old\n");
        let mut client = Client::new(&context);
        let session = client.open(json!({"overlay": true}));
        client.run(&session, "echo new > kept; echo a > one; echo b > two");
        let diff = client.ok("diff", json!({"session": session, "text": true}));
        let kinds: Vec<_> = diff["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| (&c["path"], &c["kind"]))
            .collect();
        assert_eq!(
            kinds,
            [
                (&json!("kept"), &json!("modified")),
                (&json!("one"), &json!("added")),
                (&json!("two"), &json!("added")),
            ]
        );
        assert!(
            diff["changes"][0]["text"]
                .as_str()
                .unwrap()
                .contains("-old\n+new\n"),
            "{diff}"
        );
        let project = context.project();
        assert_eq!(fs::read_to_string(project.join("kept")).unwrap(), "old\n");
        let busy = client.exec(&session, "sleep 1000");
        client.error("busy", "commit", json!({"session": session}));
        client.ok(
            "signal",
            json!({"session": session, "command": busy, "signal": 9}),
        );
        client.wait(&session, &busy);
        let done = client.ok("commit", json!({"session": session, "paths": ["one"]}));
        assert_eq!(done["written"], 1);
        assert_eq!(fs::read_to_string(project.join("one")).unwrap(), "a\n");
        assert!(!project.join("two").exists());
        fs::write(project.join("kept"), "meanwhile\n").unwrap();
        let conflict = client.error("conflict", "commit", json!({"session": session}));
        assert!(
            conflict["data"]["paths"][0]
                .as_str()
                .unwrap()
                .ends_with("kept"),
            "{conflict}"
        );
        client.ok("discard", json!({"session": session}));
        assert_eq!(
            client.ok("diff", json!({"session": session}))["changes"],
            json!([])
        );
        assert_eq!(client.run(&session, "cat kept").1, "meanwhile\n");
        let plain = client.open(json!({}));
        client.error("no_overlay", "diff", json!({"session": plain}));
        client.leave();
    }
}

#[test]
fn grants_can_be_added_between_commands() {
    for context in Context::of_each_user() {
        // Not below /tmp, which is private inside.
        let extra = tempfile::tempdir_in("/var/tmp").unwrap();
        let extra = extra.path();
        context.give(extra);
        let script = format!("echo x > {}/file", extra.display());
        let mut client = Client::new(&context);
        let session = client.open(json!({}));
        let command = client.exec(&session, &script);
        let ended = client.wait(&session, &command);
        assert_eq!(
            ended["denials"][0]["grant"],
            format!("--write {}", extra.display()),
            "{ended}"
        );
        client.error(
            "policy",
            "allow",
            json!({"session": session, "hosts": ["no host"]}),
        );
        assert_ne!(client.run(&session, &script).0, 0);
        client.ok("allow", json!({"session": session, "write": [extra]}));
        assert_eq!(client.run(&session, &script).0, 0);
        let report = client.ok("report", json!({"session": session}));
        assert_eq!(report["backend"], "native");
        client.ok("close", json!({"session": session}));
        client.error("no_such_session", "report", json!({"session": session}));
        client.leave();
    }
}

#[test]
fn sessions_and_commands_are_bounded() {
    for context in Context::of_each_user() {
        let mut client = Client::silent(&context);
        let limits = client.ok("initialize", json!({"protocol": 1}))["limits"].clone();
        let session = client.open(json!({}));
        for _ in 0..limits["commands"].as_u64().unwrap() {
            client.exec_with(json!({"session": session, "argv": ["true"]}));
        }
        let more = json!({"session": session, "argv": ["true"]});
        client.error("limit_reached", "exec", more);
        client.ok("close", json!({"session": session}));
        for _ in 0..limits["sessions"].as_u64().unwrap() {
            client.open(json!({}));
        }
        client.error("limit_reached", "open", json!({}));
        client.leave();
    }
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/protocol.schema.json"
    );
    let context = Context::new();
    let made = context.stockade(["serve", "--schema"]).ends_with(0).stdout;
    let published = fs::read_to_string(path).unwrap();
    assert_eq!(
        published, made,
        "stockade serve --schema > docs/protocol.schema.json"
    );
}

/// Whether `found` is `expected`, in which `"[..]"` stands for anything and further keys may follow.
fn is_like(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(any), _) if any == "[..]" => true,
        (Value::Object(expected), Value::Object(found)) => expected
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| is_like(value, found))),
        _ => expected == found,
    }
}

/// In docs/protocol.md `> ` begins a message to the server and `< ` one from it.
#[test]
fn the_examples_of_the_protocol_work() {
    for context in Context::of_each_user() {
        let text = include_str!("../../../../docs/protocol.md");
        let blocks = text.split("```jsonl\n").skip(1);
        let lines = blocks.flat_map(|rest| rest.split("```").next().unwrap().lines());
        let mut client = Client::silent(&context);
        let mut count = 0;
        for line in lines {
            if let Some(message) = line.strip_prefix("> ") {
                client.send_line(message.as_bytes());
            } else if let Some(expected) = line.strip_prefix("< ") {
                let expected: Value = serde_json::from_str(expected).unwrap();
                let found = client.next();
                assert!(is_like(&expected, &found), "{expected}\nis not\n{found}");
                count += 1;
            }
        }
        assert!(count > 10, "{count}");
        client.leave();
    }
}
