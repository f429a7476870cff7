//! What the network refuses to a command of a session is told to that command alone.

use std::io::{Read, Write};

use stockade::{Sandbox, SandboxPolicy, Session, SessionCommand, Stdio};

use crate::dir;
use crate::session::{shell, workspace};

/// Connects to the proxy, says so, and asks for a host when it gets a line; then looks up a name.
fn ask_for<'a>(session: &'a Session, host: &str) -> SessionCommand<'a> {
    let script = format!(
        "place=${{HTTPS_PROXY##*/}}; exec 3<>/dev/tcp/${{place%:*}}/${{place#*:}}; echo ready; \
         read line; printf 'CONNECT tunnel.{host}:443 HTTP/1.1\\r\\n\\r\\n' >&3; \
         head -n 1 <&3; getent hosts name.{host}"
    );
    let mut command = session.command("bash");
    command.args(["-c", &script]);
    command.stdin(Stdio::Piped).stdout(Stdio::Piped);
    command
}

pub(crate) fn own_connections() {
    let place = dir();
    let mut builder = Sandbox::builder();
    builder.policy(SandboxPolicy::workspace_write(vec![]));
    builder.workspace(place.path()).allow("allowed.test");
    let session = builder.build().unwrap().open().unwrap();
    let hosts = ["one.test", "two.test"];
    let mut children = hosts.map(|host| ask_for(&session, host).spawn().unwrap());
    // Both are connected before either asks.
    for child in &mut children {
        let mut ready = [0; 6];
        let stdout = child.stdout.as_mut().unwrap();
        stdout.read_exact(&mut ready).unwrap();
    }
    let quiet = shell(&session, "true").status().unwrap();
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
    }
    for (child, host) in children.iter_mut().zip(hosts) {
        let mut answer = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut answer).unwrap();
        assert!(answer.contains(" 403 "), "{answer}");
        let report = child.wait().unwrap().report;
        let own = [format!("name.{host}"), format!("tunnel.{host}:443")];
        assert_eq!(subjects(&report), own, "{report:?}");
        assert_eq!(report.network.len(), 2, "{report:?}");
    }
    assert_eq!(subjects(&quiet.report), [""; 0]);
    let rest = session.close().unwrap();
    assert_eq!(subjects(&rest), [""; 0], "{rest:?}");
}

pub(crate) fn own_names() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let names = ["one.test", "two.test"];
    let ask = |name| {
        let script = format!("read line; getent hosts {name} {name}");
        let mut command = shell(&session, &script);
        command.stdin(Stdio::Piped).spawn().unwrap()
    };
    let mut children = names.map(ask);
    for child in &mut children {
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
    }
    for (child, name) in children.iter_mut().zip(names) {
        assert_eq!(subjects(&child.wait().unwrap().report), [name]);
    }
    // Whoever asks for a name that another command asked for is told as well.
    let mut again = ask(names[0]);
    drop(again.stdin.take());
    assert_eq!(subjects(&again.wait().unwrap().report), [names[0]]);
}

/// What was refused, in the order of the alphabet.
fn subjects(report: &stockade::Report) -> Vec<String> {
    let denials = report.denials.iter();
    let mut subjects: Vec<_> = denials.map(|one| one.subject.to_string()).collect();
    subjects.sort();
    subjects
}
