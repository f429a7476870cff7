//! `session` and `exec`: a sandbox that stays open, owned by a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::context::{Context, Ran, has};

/// A context with a runtime directory of its own; its sessions are closed when it is dropped.
pub(crate) struct Sessions(pub(crate) Context);

impl Sessions {
    pub(crate) fn new() -> Self {
        Self::in_context(Context::new())
    }

    pub(crate) fn of_each_user() -> Vec<Self> {
        let contexts = Context::of_each_user().into_iter();
        contexts.map(Self::in_context).collect()
    }

    fn in_context(mut context: Context) -> Self {
        let runtime = context.home().join("runtime");
        fs::create_dir(&runtime).unwrap();
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
        context.give(&runtime);
        context.set("XDG_RUNTIME_DIR", runtime);
        Self(context)
    }

    pub(crate) fn socket(&self, name: &str) -> PathBuf {
        self.0.home().join("runtime/stockade").join(name)
    }

    #[track_caller]
    pub(crate) fn open(&self, args: &[&str]) -> String {
        let words = ["session", "open"].iter().chain(args);
        let opened = self.0.stockade(words).ends_with(0);
        opened.stdout.trim_end().to_owned()
    }

    pub(crate) fn exec(&self, name: &str, script: &str) -> Ran {
        self.0.stockade(["exec", name, "--", "sh", "-c", script])
    }

    pub(crate) fn start(&self, name: &str, script: &str) -> Child {
        let mut command = self.0.command(["exec", name, "--", "sh", "-c", script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The process that owns a session.
    pub(crate) fn owner(&self, name: &str) -> Pid {
        let list = self.0.stockade(["session", "list", "--json"]).json();
        let sessions = list["sessions"].as_array().unwrap();
        let session = sessions.iter().find(|one| one["name"] == name).unwrap();
        pid(session["pid"].as_i64().unwrap())
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        let _ = self.0.command(["session", "close", "--all"]).output();
    }
}

pub(crate) fn pid(number: i64) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

/// Waits for something that happens in a moment.
#[track_caller]
pub(crate) fn await_that(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

fn line_of(child: &mut Child) -> String {
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

pub(crate) fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn a_command_is_told_which_connections_it_was_refused() {
    for sessions in Sessions::of_each_user() {
        sessions.open(&["net", "--allow", "allowed.test"]);
        let hosts = ["one.test", "two.test"];
        let mut children = hosts.map(|host| {
            let script = format!(
                "place=${{HTTPS_PROXY##*/}}; exec 3<>/dev/tcp/${{place%:*}}/${{place#*:}}; \
                 echo ready; read line; printf 'CONNECT {host}:443 HTTP/1.1\\r\\n\\r\\n' >&3; \
                 read answer <&3; exit 3"
            );
            let words = ["exec", "net", "--", "bash", "-c", &script];
            let mut command = sessions.0.command(words);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            command.stderr(Stdio::piped()).spawn().unwrap()
        });
        // Both are connected before either asks.
        for child in &mut children {
            assert_eq!(line_of(child), "ready");
        }
        for child in &mut children {
            child.stdin.take().unwrap().write_all(b"\n").unwrap();
        }
        for (child, (own, other)) in children
            .into_iter()
            .zip([(hosts[0], hosts[1]), (hosts[1], hosts[0])])
        {
            let output = child.wait_with_output().unwrap();
            let told = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(3), "{told}");
            assert!(told.contains(own) && !told.contains(other), "{told}");
        }
    }
}

#[test]
fn a_session_keeps_its_state_until_it_is_closed() {
    let sessions = Sessions::new();
    assert_eq!(sessions.open(&["build"]), "build");
    sessions
        .exec("build", "echo kept > /tmp/state; exit 3")
        .ends_with(3);
    let ran = sessions.exec("build", "cat /tmp/state").ends_with(0);
    assert_eq!(ran.stdout, "kept\n");
    let list = sessions.0.stockade(["session", "list"]).ends_with(0);
    assert!(list.stdout.starts_with("build "), "{list:?}");
    sessions
        .0
        .stockade(["session", "close", "build"])
        .ends_with(0);
    assert!(!exists(&sessions.socket("build")));
    let gone = sessions.exec("build", "true").ends_with(125);
    assert!(
        gone.stderr.contains("there is no session `build`"),
        "{gone:?}"
    );
    assert!(sessions.0.stockade(["session", "list"]).stdout.is_empty());
}

/// Whoever waits for the end of a pipe must not wait for the session.
#[test]
fn the_owner_of_a_session_holds_nothing_of_its_caller() {
    for sessions in Sessions::of_each_user() {
        let open = sessions.0.command(["session", "open", "s"]);
        let words = std::iter::once(open.get_program()).chain(open.get_args());
        let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
        let shell = ["sh", "-c", "exec \"$@\" 7> held", "sh"];
        sessions
            .0
            .other(&[&shell[..], &words].concat())
            .ends_with(0);
        let held = sessions.0.project().join("held");
        let descriptors = format!("/proc/{}/fd", sessions.owner("s").as_raw_nonzero());
        let descriptors: Vec<PathBuf> = fs::read_dir(descriptors)
            .unwrap()
            .map(|entry| fs::read_link(entry.unwrap().path()).unwrap_or_default())
            .collect();
        assert!(
            held.exists() && !descriptors.contains(&held),
            "{descriptors:?}"
        );
    }
}

#[test]
fn sessions_without_a_name_are_numbered() {
    let sessions = Sessions::new();
    assert_eq!(sessions.open(&[]), "s1");
    assert_eq!(sessions.open(&[]), "s2");
    sessions
        .0
        .stockade(["session", "close", "--all"])
        .ends_with(0);
    assert_eq!(sessions.open(&[]), "s1");
}

#[test]
fn exit_codes_are_those_of_run() {
    let sessions = Sessions::new();
    sessions.open(&["a"]);
    let exec = |words: &[&str]| {
        let all = ["exec", "a"].iter().chain(words);
        sessions.0.stockade(all).code
    };
    assert_eq!(exec(&["--", "false"]), 1);
    assert_eq!(exec(&["--", "no-such-program"]), 127);
    assert_eq!(exec(&["--", "/etc/passwd"]), 126);
    assert_eq!(exec(&["--cwd", "/nowhere", "--", "true"]), 125);
    assert_eq!(exec(&["--timeout", "100ms", "--", "sleep", "1000"]), 124);
    assert_eq!(exec(&["--", "sh", "-c", "kill -TERM $$"]), 143);
    assert_eq!(exec(&["--env", "novalue", "--", "true"]), 2);
    assert_eq!(exec(&["--", "true"]), 0);
}

#[test]
fn streams_directory_and_variables_are_the_commands_own() {
    let sessions = Sessions::new();
    fs::create_dir(sessions.0.project().join("sub")).unwrap();
    sessions.open(&["a"]);
    let mut command = sessions.0.command([
        "exec",
        "a",
        "--cwd",
        "sub",
        "--env",
        "WORD=a=b",
        "--",
        "sh",
        "-c",
        "cat; pwd; echo $WORD; echo problem >&2",
    ]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"input\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let sub = sessions.0.project().join("sub");
    let expected = format!("input\n{}\na=b\n", sub.display());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(output.stderr, b"problem\n");
}

#[test]
fn signals_reach_the_command() {
    let sessions = Sessions::new();
    sessions.open(&["a"]);
    let script = "trap 'echo caught; exit 9' USR1; echo ready; while true; do sleep 0.05; done";
    let mut child = sessions.start("a", script);
    assert_eq!(line_of(&mut child), "ready");
    kill_process(pid(child.id().into()), Signal::USR1).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"caught\n");
    assert_eq!(output.status.code(), Some(9));
}

#[test]
fn a_command_ends_with_its_client() {
    let sessions = Sessions::new();
    sessions.open(&["a"]);
    let mut child = sessions.start("a", "echo $$; exec sleep 1000");
    let inner = line_of(&mut child);
    sessions.exec("a", &format!("kill -0 {inner}")).ends_with(0);
    child.kill().unwrap();
    child.wait().unwrap();
    await_that("the command lives on", || {
        sessions
            .exec("a", &format!("kill -0 {inner} 2>/dev/null"))
            .code
            != 0
    });
}

#[test]
fn a_killed_owner_leaves_nothing() {
    let sessions = Sessions::new();
    sessions.open(&["dead"]);
    sessions.open(&["alive"]);
    let mut child = sessions.start("dead", "echo ready; exec sleep 1000");
    assert_eq!(line_of(&mut child), "ready");
    kill_process(sessions.owner("dead"), Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(137));
    let list = sessions.0.stockade(["session", "list"]).ends_with(0);
    assert!(
        !list.stdout.contains("dead") && list.stdout.contains("alive"),
        "{list:?}"
    );
    assert!(
        !exists(&sessions.socket("dead")),
        "the stale socket is removed"
    );
    let again = sessions.exec("dead", "true").ends_with(125);
    assert!(
        again.stderr.contains("there is no session `dead`"),
        "{again:?}"
    );
    sessions.open(&["dead"]);
    sessions.exec("dead", "true").ends_with(0);
    sessions.exec("alive", "true").ends_with(0);
}

#[test]
fn names_are_checked() {
    let sessions = Sessions::new();
    sessions.open(&["a"]);
    let twice = sessions.0.stockade(["session", "open", "a"]).ends_with(125);
    assert!(
        twice.stderr.contains("there is a session `a` already"),
        "{twice:?}"
    );
    for bad in ["../a", "a b", ".lock"] {
        sessions.0.stockade(["session", "open", bad]).ends_with(2);
        sessions
            .0
            .stockade(["exec", bad, "--", "true"])
            .ends_with(2);
        sessions.0.stockade(["session", "close", bad]).ends_with(2);
    }
    sessions
        .0
        .stockade(["session", "close", "b"])
        .ends_with(125);
    sessions.exec("a", "true").ends_with(0);
}

#[test]
fn a_session_needs_a_sandbox_that_has_sessions() {
    let sessions = Sessions::new();
    let open = |flags: &[&str]| {
        let words = ["session", "open", "a"].iter().chain(flags);
        sessions.0.stockade(words).ends_with(125).stderr
    };
    assert!(open(&["--danger-full-access"]).contains("needs a sandbox"));
    let weak = open(&["--backend", "landlock", "--best-effort"]);
    assert!(
        weak.contains("the backend `landlock` has no sessions"),
        "{weak}"
    );
    let test = "a_session_needs_a_sandbox_that_has_sessions";
    if has(test, "backend:bwrap", &["bwrap", "--version"]) {
        let other = open(&["--backend", "bwrap", "--best-effort"]);
        assert!(
            other.contains("the backend `bwrap` has no sessions"),
            "{other}"
        );
    }
    assert!(
        !exists(&sessions.socket("a")),
        "a session that failed leaves no socket"
    );
}

#[test]
fn an_idle_session_closes_itself() {
    let sessions = Sessions::new();
    sessions.open(&["a", "--idle-timeout", "500ms"]);
    let owner = sessions.owner("a");
    // A command that runs keeps it open for longer than that.
    sessions.exec("a", "sleep 1; exit 4").ends_with(4);
    await_that("the session stays open", || !exists(&sessions.socket("a")));
    await_that("the owner lives on", || {
        rustix::process::test_kill_process(owner).is_err()
    });
}

#[test]
fn the_socket_directory_must_be_private() {
    let sessions = Sessions::new();
    sessions.open(&["a"]);
    sessions.0.stockade(["session", "close", "a"]).ends_with(0);
    let directory = sessions.0.home().join("runtime/stockade");
    let mode = fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = sessions.0.stockade(["session", "open", "a"]).ends_with(125);
    assert!(refused.stderr.contains("this user alone"), "{refused:?}");
}

#[test]
fn a_command_can_not_reach_the_socket_of_its_session() {
    let sessions = Sessions::new();
    sessions.open(&["a"]);
    let socket = sessions.socket("a");
    let connect = "import socket,sys; \
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1]); print('in')";
    let words = ["python3", "-c", connect, socket.to_str().unwrap()];
    // The control: outside it works.
    assert_eq!(sessions.0.other(&words).ends_with(0).stdout, "in\n");
    let inside = sessions
        .0
        .stockade(["exec", "a", "--"].iter().chain(&words));
    assert!(inside.code == 1 && inside.stdout.is_empty(), "{inside:?}");
}

#[test]
fn a_denial_is_told_to_the_command_that_caused_it() {
    let sessions = Sessions::new();
    sessions.0.file(".git/HEAD", "ref: refs/heads/main\n");
    fs::create_dir_all(sessions.0.project().join(".git/hooks")).unwrap();
    sessions.open(&["a"]);
    let other = sessions.start("a", "read line; exit 5");
    let denied = sessions
        .exec("a", "echo x > .git/hooks/pre-commit")
        .ends_with(2);
    assert!(denied.stderr.contains("pre-commit"), "{denied:?}");
    let output = other.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), output.stderr.as_slice()),
        (Some(5), &b""[..])
    );
}

#[test]
fn an_overlay_lasts_as_long_as_its_session() {
    let sessions = Sessions::new();
    let file = sessions.0.file("file", "old\n");
    sessions.open(&["a", "--overlay=work"]);
    sessions.exec("a", "echo new > file").ends_with(0);
    assert_eq!(sessions.exec("a", "cat file").stdout, "new\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
    sessions.0.stockade(["session", "close", "a"]).ends_with(0);
    let diff = sessions.0.stockade(["ws", "diff", "work"]);
    assert!(diff.stdout.contains("file"), "{diff:?}");
    sessions.0.stockade(["ws", "commit", "work"]).ends_with(0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
}

#[test]
fn a_terminal_is_relayed() {
    let sessions = Sessions::new();
    sessions.open(&["a"]);
    let script = "test -t 1 && test -t 2 && echo shown > /dev/tty";
    let exec = ["exec", "a", "--tty", "--", "sh", "-c", script];
    let ran = sessions.0.stockade(exec).ends_with(0);
    assert_eq!(ran.stdout, "shown\r\n");
    // The control: without the flag there is none.
    sessions.exec("a", script).ends_with(1);
}

#[test]
fn the_network_is_answered_in_for_all_commands() {
    let sessions = Sessions::new();
    sessions.open(&[
        "a",
        "--allow",
        "allowed.test",
        "--resolve",
        "allowed.test=127.0.0.1",
    ]);
    let lookup = "import socket; print(socket.gethostbyname('allowed.test')[:4])";
    for _ in 0..2 {
        let ran = sessions
            .0
            .stockade(["exec", "a", "--", "python3", "-c", lookup]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (0, "198.\n"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn output_that_nobody_reads_holds_up_only_its_command() {
    let sessions = Sessions::new();
    sessions.open(&["a"]);
    let mut loud = sessions.start("a", "echo ready; exec yes");
    assert_eq!(line_of(&mut loud), "ready");
    for _ in 0..10 {
        sessions.exec("a", "true").ends_with(0);
    }
    let mut more = [0; 1024];
    loud.stdout.as_mut().unwrap().read_exact(&mut more).unwrap();
    loud.kill().unwrap();
    loud.wait().unwrap();
}

#[test]
fn an_overlay_is_changed_between_the_commands_of_a_session() {
    for sessions in Sessions::of_each_user() {
        sessions.0.file("kept", "old\n");
        sessions.open(&["build", "--overlay"]);
        let session = |words: &[&str]| {
            let words = ["session"].iter().chain(words);
            sessions.0.stockade(words)
        };
        let printed = |name: &str, script: &str| sessions.exec(name, script).ends_with(0).stdout;
        printed("build", "echo one > kept; echo a > made");
        session(&["snapshot", "build", "first"]).ends_with(0);
        printed("build", "echo two > kept; rm made");
        let list = session(&["snapshot", "build", "--json"]).ends_with(0);
        assert_eq!(list.json()["snapshots"][0], "first");
        let diff = session(&["diff", "build", "--summary"]).ends_with(0);
        assert!(diff.stdout.contains("kept"), "{diff:?}");
        session(&["restore", "build", "first"]).ends_with(0);
        assert_eq!(printed("build", "cat kept made"), "one\na\n");

        let forked = session(&["fork", "build", "other", "--json"]).ends_with(0);
        assert_eq!(forked.json()["name"], "other");
        printed("other", "echo fork > kept");
        assert_eq!(printed("build", "cat kept"), "one\n");
        session(&["commit", "other", "kept"]).ends_with(0);
        let host = sessions.0.project().join("kept");
        assert_eq!(fs::read_to_string(&host).unwrap(), "fork\n");
        assert!(!sessions.0.project().join("made").exists());
        session(&["discard", "other"]).ends_with(0);
        assert_eq!(printed("other", "cat kept; ls"), "fork\nkept\n");
        let again = session(&["fork", "build", "other"]).ends_with(125);
        assert!(
            again.stderr.contains("a session `other` already"),
            "{again:?}"
        );
        assert_eq!(printed("build", "cat kept"), "one\n");

        let mut running = sessions.start("build", "echo on; read word");
        assert_eq!(line_of(&mut running), "on");
        for words in [
            &["snapshot", "build", "first"][..],
            &["restore", "build", "first"],
            &["fork", "build"],
            &["commit", "build"],
            &["discard", "build"],
        ] {
            let busy = session(words).ends_with(125);
            assert!(busy.stderr.contains("a command runs in it"), "{busy:?}");
        }
        drop(running.stdin.take());
        running.wait().unwrap();
        for bad in ["../first", "a/b", "-x", "", "a b"] {
            let words = ["session", "restore", "build", "--", bad];
            sessions.0.stockade(words).ends_with(2);
        }
        session(&["snapshot", "build", "first", "--remove"]).ends_with(0);
        session(&["restore", "build", "first"]).ends_with(1);
        sessions.open(&["plain"]);
        let plain = session(&["snapshot", "plain", "first"]).ends_with(1);
        assert!(plain.stderr.contains("has no overlay"), "{plain:?}");
        session(&["close", "--all"]).ends_with(0);
    }
}

#[test]
fn the_limit_of_output_holds_for_each_command() {
    for sessions in Sessions::of_each_user() {
        sessions.open(&["build", "--limit", "output=100K"]);
        for _ in 0..2 {
            let short = sessions.exec("build", "head -c 90000 /dev/zero; echo error >&2");
            let short = short.ends_with(0);
            assert_eq!(short.stdout.len(), 90000);
            assert_eq!(short.stderr, "error\n");
        }
        let long = sessions.exec("build", "yes; echo never");
        assert_ne!(long.code, 0);
        assert!(long.stdout.len() <= 200 << 10 && !long.stdout.contains("never"));
        assert!(long.stderr.contains("output"), "{}", long.stderr);
        let words = ["exec", "build", "--tty", "--", "true"];
        let refused = sessions.0.stockade(words).ends_with(125);
        assert!(refused.stderr.contains("on a terminal"), "{refused:?}");
    }
}
