//! The front door: hosts, overlays, helpers and denials, with nothing set up beside it.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::Duration;

use stockade::{Ending, Error, Grant, Sandbox, SandboxBuilder, Stdio, Subject};

use crate::builder::shell;
use crate::{Test, dir};

pub(crate) const TESTS: &[Test] = &[
    ("a_command_can_be_started_again", again),
    ("a_command_has_its_own_directory_and_time", own_settings),
    ("a_host_that_is_allowed_is_reached", allowed_host),
    ("changes_wait_for_a_commit", overlay),
    ("denials_are_typed", denials),
    (
        "one_overlay_has_one_command_at_a_time",
        overlay_is_exclusive,
    ),
    ("wrong_values_are_named", wrong_values),
];

fn builder(workspace: &Path) -> SandboxBuilder {
    let mut builder = Sandbox::builder();
    builder.workspace(workspace);
    builder
}

/// A server on the loopback that answers `n` connections.
pub(crate) fn server(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let mut stream = stream.unwrap();
            // All of the request: whoever closes with bytes unread resets the connection.
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                request.extend(byte);
            }
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nanswered\n");
        }
    });
    address
}

/// Asks a host by name, as a client that knows of no proxy.
pub(crate) fn request(host: &str, port: u16) -> String {
    format!(
        "exec 3<>/dev/tcp/{host}/{port} && printf 'GET / HTTP/1.0\\r\\nHost: {host}\\r\\n\\r\\n' >&3 \
         && cat <&3"
    )
}

fn allowed_host() {
    let place = dir();
    let port = server(2).port();
    let run = |sandbox: &Sandbox, host: &str| {
        let mut command = sandbox.command("bash");
        command.args(["-c", &request(host, port)]).output().unwrap()
    };
    // The control: without a sandbox the server answers.
    let bare = std::process::Command::new("bash")
        .args(["-c", &request("127.0.0.1", port)])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&bare.stdout).contains("answered"));
    let mut open = builder(place.path());
    open.allow(format!("api.test:{port}"))
        .resolve("api.test=127.0.0.1");
    let sandbox = open.build().unwrap();
    let output = run(&sandbox, "api.test");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("answered"), "{output:?}");
    let output = run(&sandbox, "other.test");
    assert!(!output.success());
    let denial = output.denials().first().unwrap();
    let Subject::Host { host, .. } = &denial.subject else {
        panic!("{denial:?}");
    };
    assert_eq!(host, "other.test");
    assert!(matches!(&denial.grant, Grant::Allow(_)), "{denial:?}");
}

fn overlay() {
    let (place, store) = (dir(), dir());
    fs::write(place.path().join("old"), "as it was").unwrap();
    let mut builder = builder(place.path());
    let sandbox = builder.overlay_in(store.path()).build().unwrap();
    let script = "echo new > new; echo changed > old; mkdir -p .git/hooks; \
                  echo x > .git/hooks/pre-commit";
    assert!(shell(&sandbox, script).status().unwrap().success());
    assert!(!place.path().join("new").exists());
    assert_eq!(fs::read(place.path().join("old")).unwrap(), b"as it was");
    let changes = sandbox.diff().unwrap().changes;
    let named = |name: &str| changes.iter().any(|change| change.path.ends_with(name));
    assert!(named("new") && named("old"), "{changes:?}");
    let report = sandbox.commit().unwrap();
    assert_eq!(fs::read(place.path().join("old")).unwrap(), b"changed\n");
    assert_eq!(fs::read(place.path().join("new")).unwrap(), b"new\n");
    // What would run on the host is kept back.
    let hook = place.path().join(".git/hooks/pre-commit");
    assert!(!hook.exists());
    assert!(
        report.kept_back.iter().any(|kept| kept.path == hook),
        "{report:?}"
    );
    sandbox.discard().unwrap();

    assert!(shell(&sandbox, "rm old").status().unwrap().success());
    sandbox.discard().unwrap();
    assert!(place.path().join("old").exists());
    let none = self::builder(place.path()).build().unwrap();
    assert!(matches!(none.commit(), Err(Error::NoOverlay)));
}

fn overlay_is_exclusive() {
    let (place, store) = (dir(), dir());
    let mut builder = builder(place.path());
    let sandbox = builder.overlay_in(store.path()).build().unwrap();
    let mut child = sandbox
        .command("cat")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let second = sandbox.command("true").status();
    assert!(matches!(second, Err(Error::Overlay(_))), "{second:?}");
    assert!(child.wait().unwrap().success());
    assert!(sandbox.command("true").status().unwrap().success());
}

fn denials() {
    let (inside, outside) = (dir(), dir());
    let target = outside.path().join("f");
    let script = format!("echo x > '{}'", target.display());
    let sandbox = builder(inside.path()).build().unwrap();
    let output = shell(&sandbox, &script).output().unwrap();
    let denial = output.denials().first().unwrap();
    assert_eq!(denial.subject, Subject::Path(target.clone()));
    let line = denial.grant.profile_line().unwrap();
    let expected = format!("filesystem.write = [\"{}\"]", outside.path().display());
    assert_eq!(line, expected);
    // The grant, as the flag and as the line, lets it pass.
    let mut granted = builder(inside.path());
    let flag = denial.grant.to_string();
    granted.write(flag.strip_prefix("--write ").unwrap());
    let finished = shell(&granted.build().unwrap(), &script).status().unwrap();
    assert!(finished.success() && target.exists());
    fs::remove_file(&target).unwrap();
    let profile = inside.path().join("profile.toml");
    fs::write(&profile, format!("version = 1\n{line}\n")).unwrap();
    let mut granted = builder(inside.path());
    let sandbox = granted.profile_file(&profile).build().unwrap();
    assert!(shell(&sandbox, &script).status().unwrap().success());
    assert!(target.exists());
}

fn own_settings() {
    let place = dir();
    fs::create_dir(place.path().join("below")).unwrap();
    let sandbox = builder(place.path()).build().unwrap();
    let mut command = shell(&sandbox, "pwd; echo $WORD; echo x > ../made");
    let output = command
        .current_dir("below")
        .env("WORD", "w")
        .output()
        .unwrap();
    let expected = format!("{}\nw\n", place.path().join("below").display());
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    // The policy is still about the workspace.
    assert!(place.path().join("made").exists());
    let mut endless = shell(&sandbox, "sleep 3600");
    let output = endless
        .timeout(Duration::from_millis(300))
        .output()
        .unwrap();
    assert_eq!(output.ending(), Ending::TimedOut);
}

fn again() {
    let place = dir();
    let sandbox = builder(place.path()).build().unwrap();
    let mut command = shell(&sandbox, "echo once >> f");
    for count in 1..=3 {
        assert!(command.status().unwrap().success());
        let lines = fs::read_to_string(place.path().join("f")).unwrap();
        assert_eq!(lines.lines().count(), count);
    }
}

fn wrong_values() {
    let refused = |change: fn(&mut SandboxBuilder)| {
        let mut builder = Sandbox::builder();
        change(&mut builder);
        builder.build().unwrap_err().to_string()
    };
    for (text, word) in [
        (refused(|b| _ = b.allow("http://x")), "http://x"),
        (refused(|b| _ = b.limit("mem=lots")), "mem=lots"),
        (refused(|b| _ = b.resolve("x")), "`x`"),
        (refused(|b| _ = b.workspace("/a\0b")), "workspace"),
    ] {
        assert!(text.contains(word), "{text}");
    }
}
