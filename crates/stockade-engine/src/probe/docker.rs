//! The Docker daemon: its socket is asked, since a client without a daemon confines nothing.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::{Docker, Support};

const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// An honest daemon's answers are smaller by far.
const LONGEST_ANSWER: u64 = 4 << 20;

const START: &str = /*hint*/
    "start the daemon (`systemctl start docker`), or set DOCKER_HOST to its \
                     socket; it is only needed for `--level container`";

pub(super) fn probe() -> Docker {
    let candidates = match env::var("DOCKER_HOST") {
        Err(_) => usual_sockets(),
        Ok(host) => {
            let Some(path) = host.strip_prefix("unix://") else {
                let reason = format!("DOCKER_HOST is `{host}`; only Unix sockets are used");
                return nothing(None, reason);
            };
            vec![PathBuf::from(path)]
        }
    };
    let mut last = None;
    for socket in candidates {
        match ask(&socket, "/_ping") {
            Ok(_) => return details(socket),
            Err(error) => last = Some((socket, error)),
        }
    }
    match last {
        Some((socket, error)) => {
            let reason = format!("`{}` does not answer: {error}", socket.display());
            nothing(Some(socket), reason)
        }
        None => broken(),
    }
}

pub(super) fn broken() -> Docker {
    nothing(None, "the probe itself failed".to_owned())
}

fn nothing(socket: Option<PathBuf>, reason: String) -> Docker {
    Docker {
        support: Support::none("docker", reason, Some(START.to_owned())),
        socket,
        version: None,
        runtimes: Vec::new(),
    }
}

fn details(socket: PathBuf) -> Docker {
    let json = |path: &str| -> Option<Value> {
        let body = ask(&socket, path).ok()?;
        serde_json::from_slice(&body).ok()
    };
    let version =
        json("/version").and_then(|answer| Some(answer.get("Version")?.as_str()?.to_owned()));
    let runtimes = json("/info")
        .and_then(|answer| {
            let runtimes = answer.get("Runtimes")?.as_object()?;
            Some(runtimes.keys().cloned().collect())
        })
        .unwrap_or_default();
    Docker {
        support: Support::Full,
        socket: Some(socket),
        version,
        runtimes,
    }
}

/// The system's daemon, then a rootless one.
fn usual_sockets() -> Vec<PathBuf> {
    let rootless = env::var_os("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("docker.sock"));
    [Some(PathBuf::from("/var/run/docker.sock")), rootless]
        .into_iter()
        .flatten()
        .collect()
}

/// HTTP/1.0, so that the answer ends with the connection and needs no decoding.
fn ask(socket: &Path, path: &str) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
    stream.set_write_timeout(Some(PROBE_TIMEOUT))?;
    // In one piece: a server that answers early would reset the connection under a second one.
    let request = format!("GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    body_of_success(&answer).ok_or_else(|| {
        let line = answer
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or_default();
        io::Error::other(format!("answered `{}`", String::from_utf8_lossy(line)))
    })
}

fn body_of_success(answer: &[u8]) -> Option<Vec<u8>> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let (head, body) = answer.split_at(end);
    let mut words = head.split(|byte| *byte == b' ');
    (words.next()?.starts_with(b"HTTP/1.") && words.next()? == b"200").then(|| body[4..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_200_is_an_answer() {
        let ok = b"HTTP/1.0 200 OK\r\nA: b\r\n\r\nOK";
        assert_eq!(body_of_success(ok).as_deref(), Some(&b"OK"[..]));
        for bad in [
            &b"HTTP/1.1 500 Oops\r\n\r\nno"[..],
            b"SSH-2.0-x\r\n\r\n",
            b"HTTP/1.0 200 OK\r\n",
            b"",
        ] {
            assert_eq!(body_of_success(bad), None);
        }
    }

    #[test]
    fn a_socket_that_nobody_serves_is_no_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docker.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        drop(listener);
        assert!(ask(&path, "/_ping").is_err());
    }

    #[test]
    fn a_daemon_that_answers_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("docker.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || {
            for body in [
                r#"{"Version":"27.1"}"#,
                r#"{"Runtimes":{"runc":{},"runsc":{}}}"#,
            ] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 512];
                assert!(stream.read(&mut request).unwrap() > 0);
                let answer = format!("HTTP/1.0 200 OK\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let found = details(path);
        server.join().unwrap();
        assert_eq!(found.version.as_deref(), Some("27.1"));
        assert_eq!(found.runtimes, ["runc", "runsc"]);
    }
}
