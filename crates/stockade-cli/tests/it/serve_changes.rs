//! What changes a session of `serve --stdio` while it stands: snapshots, forks and grants.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use serde_json::json;

use crate::context::Context;
use crate::serve::Client;

#[test]
fn a_snapshot_is_returned_to_and_a_fork_goes_its_own_way() {
    for context in Context::of_each_user() {
        context.file("kept", "old\n");
        context.file("dir/inner", "inner\n");
        let mut client = Client::new(&context);
        let session = client.open(json!({"overlay": true}));
        let name = |name: &str| json!({"session": session, "name": name});
        let script = "echo one > kept; rm -r dir; mkdir dir; echo a > dir/new; ln dir/new twin; \
                      ln -s nowhere link; mkfifo pipe; chmod 711 dir";
        assert_eq!(client.run(&session, script).0, 0);
        let look = "cat kept; find dir twin link pipe -printf '%p %M %n %l\\n' | sort";
        let state = client.run(&session, look).1;
        client.ok("snapshot", name("first"));
        assert_eq!(client.run(&session, look).1, state);
        // Another change, also of the file with two names.
        let script = "echo two > kept; rm -r dir link; echo more >> twin";
        assert_eq!(client.run(&session, script).0, 0);
        client.ok("snapshot", name("second"));
        client.ok("restore", name("first"));
        assert_eq!(client.run(&session, look).1, state);
        assert_eq!(client.run(&session, "cat twin").1, "a\n");
        // What is restored can be changed without changing the snapshot.
        assert_eq!(client.run(&session, "echo three > dir/new").0, 0);
        client.ok("restore", name("first"));
        assert_eq!(client.run(&session, "cat twin").1, "a\n");
        let list = client.ok("snapshots.list", json!({"session": session}));
        assert_eq!(list["snapshots"], json!(["first", "second"]));

        let forked = client.ok("fork", json!({"session": session}));
        let fork = forked["session"].as_str().unwrap().to_owned();
        assert_eq!(client.run(&fork, look).1, state);
        assert_eq!(client.run(&fork, "echo fork > kept").0, 0);
        assert_eq!(client.run(&session, "cat kept").1, "one\n");
        client.ok("commit", json!({"session": fork, "paths": ["kept"]}));
        let host = context.project().join("kept");
        assert_eq!(fs::read_to_string(&host).unwrap(), "fork\n");
        let overlay = forked["overlay"].as_str().unwrap();
        client.ok("discard", json!({"session": fork}));
        client.ok("close", json!({"session": fork}));
        // Nothing is left of a fork without changes.
        let shown = context.stockade(["ws", "list", "--json"]).ends_with(0);
        assert!(!shown.stdout.contains(overlay), "{shown:?}");

        let busy = client.exec(&session, "sleep 1000");
        for method in ["snapshot", "restore"] {
            client.error("busy", method, name("first"));
        }
        client.error("busy", "fork", json!({"session": session}));
        let signal = json!({"session": session, "command": busy, "signal": 9});
        client.ok("signal", signal);
        client.wait(&session, &busy);

        client.ok("snapshots.remove", name("second"));
        client.error("no_such_snapshot", "snapshots.remove", name("second"));
        // A request that can't be carried out costs the sandbox nothing.
        assert_eq!(client.run(&session, "echo here > /tmp/kept").0, 0);
        for bad in ["", "..", "../first", "a/b", "-r", ".x", "a\0b", "a\nb", "é"] {
            client.error("invalid_params", "snapshot", name(bad));
            client.error("invalid_params", "restore", name(bad));
            client.error("invalid_params", "snapshots.remove", name(bad));
        }
        let long = "x".repeat(1 << 20);
        client.error("invalid_params", "snapshot", name(&long));
        client.error("no_such_snapshot", "restore", name("second"));
        assert_eq!(client.run(&session, "cat /tmp/kept").1, "here\n");
        let plain = client.open(json!({}));
        for method in ["snapshot", "restore"] {
            let params = json!({"session": plain, "name": "first"});
            client.error("no_overlay", method, params);
        }
        client.error("no_overlay", "fork", json!({"session": plain}));
        client.leave();
    }
}

/// A script that sends what the launcher sends to grant a socket, on each socket of each process that
/// it can see, and prints how many it could send to.
fn forge_grant(socket: &Path) -> String {
    format!(
        "python3 -c '
import ctypes, glob, os, socket
call = ctypes.CDLL(None, use_errno=True).syscall
done = 0
own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for link in glob.glob(\"/proc/[0-9]*/fd/*\"):
    try:
        if not os.readlink(link).startswith(\"socket\"): continue
        pid, fd = int(link.split(\"/\")[2]), int(link.split(\"/\")[4])
        if pid == os.getpid(): continue
        held = call(434, pid, 0)
        stolen = call(438, held, fd, 0)
        if stolen < 0: continue
        socket.send_fds(socket.socket(fileno=stolen), [b\"\\0{}\\0\"], [other.fileno()])
        done += 1
    except OSError: pass
print(done, \"sockets\")'",
        socket.display()
    )
}

/// A client of a host, which says whether it was let pass.
const ASK: &str = "python3 -c 'import sys, urllib.request as r; \
                   print(r.urlopen(sys.argv[1], timeout=20).read().decode())' http://";

#[test]
fn hosts_and_sockets_are_granted_while_commands_run() {
    for context in Context::of_each_user() {
        let web = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = web.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in web.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n";
                let _ = stream.write_all(format!("{head}hello").as_bytes());
            }
        });
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = place.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.write_all(b"hello");
            }
        });
        let connect = format!(
            "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{}\"); \
             print(s.recv(9).decode())'",
            path.display()
        );
        let hosts = [format!("first.test:{port}"), format!("second.test:{port}")];
        let pins = ["first.test=127.0.0.1", "second.test=127.0.0.1"];
        let mut client = Client::new(&context);
        let session = client.open(json!({"allow": [hosts[0]], "resolve": pins}));
        let ask = |host: &str| format!("{ASK}{host}/");
        assert_eq!(client.run(&session, &ask(&hosts[0])).1, "hello\n");
        // A command that waits, asks for both, and is not disturbed.
        let script = format!(
            "echo kept > /tmp/kept; {} 2>/dev/null && exit 8; {connect} 2>/dev/null && exit 9; \
             echo ready; read word; {} && {connect}",
            ask(&hosts[1]),
            ask(&hosts[1])
        );
        let waiting = client.exec_with(json!({
            "session": session, "argv": ["sh", "-c", script], "stdin": true,
        }));
        while !client.text(&waiting, "stdout").contains("ready") {
            let note = client.next();
            client.notes.push(note["params"].clone());
        }
        // Whatever sockets a command finds, no message on them is taken for a grant.
        assert_eq!(context.other(&["sh", "-c", &connect]).stdout, "hello\n");
        let forged = client.run(&session, &format!("{}; {connect}", forge_grant(&path)));
        assert_ne!(forged.0, 0, "{forged:?}");
        assert!(forged.1.ends_with(" sockets\n"), "{forged:?}");
        let grants = json!({"session": session, "hosts": [hosts[1]], "sockets": [path]});
        let allowed = client.ok("allow", grants);
        assert_eq!(allowed["rebuilt"], false, "{allowed}");
        let word = json!({
            "session": session, "command": waiting, "data": {"text": "go\n"}, "eof": true,
        });
        client.ok("stdin", word);
        let ended = client.wait(&session, &waiting);
        assert_eq!(ended["exit_code"], 0, "{ended} {:?}", client.notes);
        assert_eq!(client.text(&waiting, "stdout"), "ready\nhello\nhello\n");
        assert_eq!(client.run(&session, "cat /tmp/kept").1, "kept\n");
        // What was not granted is still refused.
        let third = format!("third.test:{port}");
        assert_ne!(client.run(&session, &ask(&third)).0, 0);
        // A session without a network has nobody who could let a host pass.
        let off = client.open(json!({"resolve": pins}));
        client.run(&off, "echo kept > /tmp/kept");
        let busy = client.exec(&off, "sleep 1000");
        client.error(
            "busy",
            "allow",
            json!({"session": off, "hosts": [hosts[1]]}),
        );
        let signal = json!({"session": off, "command": busy, "signal": 9});
        client.ok("signal", signal);
        client.wait(&off, &busy);
        let allowed = client.ok("allow", json!({"session": off, "hosts": [hosts[1]]}));
        assert_eq!(allowed["rebuilt"], true);
        assert_eq!(client.run(&off, &ask(&hosts[1])).1, "hello\n");
        client.leave();
    }
}
