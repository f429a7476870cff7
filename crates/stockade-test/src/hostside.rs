//! What waits on the host for the sandboxed command: listeners, a process, a watch on directories.
//!
//! Listeners are bound before the run and drained after it. The kernel queues connections,
//! datagrams and events meanwhile, so no thread is needed and nothing races the judgement.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::fs::inotify;

use crate::Failure;
use crate::world::World;

/// One thing on the host, described by templates.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum HostSide {
    /// A Unix stream listener at a path.
    UnixStream(&'static str),
    /// A Unix datagram socket at a path.
    UnixDatagram(&'static str),
    /// A Unix stream listener with an abstract name.
    Abstract(&'static str),
    /// A TCP listener on every address; defines `@PORT@`.
    Tcp,
    /// A TCP port of loopback that nobody has; defines `@FREE@`.
    FreePort,
    /// A UDP socket on every address; defines `@UDPPORT@`.
    Udp,
    /// Hosts on loopback: HTTP, HTTPS and an echo; defines `@HTTP@`, `@HTTPS@` and `@ECHO@`, and
    /// hears every request. What signed the certificate is in `@W@/ca.pem`.
    Web,
    /// A process of the actor that waits to be killed; defines `@PID@`.
    Process,
    /// A watch for directories being opened or listed.
    Watch(&'static str),
}

/// The same, alive.
#[derive(Debug)]
#[non_exhaustive]
pub enum Waiting {
    /// A stream listener.
    Stream(UnixListener),
    /// Nothing that could be heard.
    Nothing,
    /// A datagram socket.
    Datagram(UnixDatagram),
    /// A TCP listener.
    Tcp(TcpListener),
    /// A UDP socket.
    Udp(UdpSocket),
    /// A process.
    Process(Child),
    /// Hosts in a process of their own, and what they print.
    Web(Child, BufReader<ChildStdout>),
    /// An inotify descriptor.
    Watch(OwnedFd),
}

impl HostSide {
    /// Brings it to life.
    ///
    /// # Errors
    /// If it can't be made.
    pub fn start(&self, world: &mut World) -> Result<Waiting, Failure> {
        let told = |error: std::io::Error| format!("host side {self:?}: {error}");
        Ok(match self {
            Self::UnixStream(path) => {
                let path = world.expand(path);
                let listener = UnixListener::bind(&path).map_err(told)?;
                open_to_all(Path::new(&path)).map_err(told)?;
                listener.set_nonblocking(true).map_err(told)?;
                Waiting::Stream(listener)
            }
            Self::UnixDatagram(path) => {
                let path = world.expand(path);
                let socket = UnixDatagram::bind(&path).map_err(told)?;
                open_to_all(Path::new(&path)).map_err(told)?;
                socket.set_nonblocking(true).map_err(told)?;
                Waiting::Datagram(socket)
            }
            Self::Abstract(name) => {
                let address = SocketAddr::from_abstract_name(world.expand(name)).map_err(told)?;
                let listener = UnixListener::bind_addr(&address).map_err(told)?;
                listener.set_nonblocking(true).map_err(told)?;
                Waiting::Stream(listener)
            }
            Self::Tcp => {
                let listener = TcpListener::bind(("0.0.0.0", 0)).map_err(told)?;
                listener.set_nonblocking(true).map_err(told)?;
                let port = listener.local_addr().map_err(told)?.port();
                world.define("PORT", port.to_string());
                Waiting::Tcp(listener)
            }
            Self::FreePort => {
                let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(told)?;
                let port = listener.local_addr().map_err(told)?.port();
                world.define("FREE", port.to_string());
                Waiting::Nothing
            }
            Self::Udp => {
                let socket = UdpSocket::bind(("0.0.0.0", 0)).map_err(told)?;
                socket.set_nonblocking(true).map_err(told)?;
                let port = socket.local_addr().map_err(told)?.port();
                world.define("UDPPORT", port.to_string());
                Waiting::Udp(socket)
            }
            Self::Process => {
                let mut command = Command::new("/bin/sleep");
                command.arg("600").stdin(Stdio::null()).process_group(0);
                world.actor.apply(&mut command);
                let child = command.spawn().map_err(told)?;
                world.define("PID", child.id().to_string());
                Waiting::Process(child)
            }
            Self::Web => {
                let (child, output) = start_web(world).map_err(told)?;
                Waiting::Web(child, output)
            }
            Self::Watch(dir) => {
                let fd = inotify::init(inotify::CreateFlags::NONBLOCK)
                    .map_err(|e| format!("inotify: {e}"))?;
                let dir = world.expand(dir);
                inotify::add_watch(&fd, dir.as_str(), inotify::WatchFlags::OPEN)
                    .map_err(|e| format!("inotify on {dir}: {e}"))?;
                Waiting::Watch(fd)
            }
        })
    }
}

impl Waiting {
    /// Everything that arrived, and the end of it.
    pub fn finish(self) -> String {
        let mut heard = String::new();
        // Writing to a string can't fail.
        match self {
            Self::Stream(listener) => {
                while let Ok((stream, _)) = listener.accept() {
                    let _ = writeln!(heard, "connected: {}", drain(stream));
                }
            }
            Self::Datagram(socket) => {
                let mut buffer = [0; 4096];
                while let Ok(length) = socket.recv(&mut buffer) {
                    let _ = writeln!(heard, "got: {}", String::from_utf8_lossy(&buffer[..length]));
                }
            }
            Self::Tcp(listener) => {
                while let Ok((stream, _)) = listener.accept() {
                    let _ = stream.set_nonblocking(false);
                    let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
                    let _ = writeln!(heard, "connected: {}", read_some(stream));
                }
            }
            Self::Udp(socket) => {
                let mut buffer = [0; 4096];
                while let Ok(length) = socket.recv(&mut buffer) {
                    let _ = writeln!(heard, "got: {}", String::from_utf8_lossy(&buffer[..length]));
                }
            }
            Self::Process(mut child) => {
                // Whoever was killed by somebody else dies of that, however soon this comes.
                let ours = rustix::process::Signal::ALARM;
                let pid = rustix::process::Pid::from_child(&child);
                let _ = rustix::process::kill_process(pid, ours);
                let signal = child.wait().ok().and_then(|status| status.signal());
                let word = if signal == Some(ours.as_raw()) {
                    "host process alive"
                } else {
                    "host process ended"
                };
                let _ = writeln!(heard, "{word}");
            }
            Self::Nothing => {}
            Self::Web(mut child, mut output) => {
                let _ = child.kill();
                let _ = child.wait();
                let _ = output.read_to_string(&mut heard);
            }
            Self::Watch(fd) => {
                let mut buffer = [MaybeUninit::uninit(); 4096];
                let mut reader = inotify::Reader::new(&fd, &mut buffer);
                while let Ok(event) = reader.next() {
                    let name = event.file_name().map(|n| n.to_string_lossy().into_owned());
                    let _ = writeln!(heard, "opened: {}", name.unwrap_or_else(|| ".".into()));
                }
            }
        }
        heard
    }
}

/// The program of the hosts.
const WEB: &str = include_str!("python/web.py");

fn start_web(world: &mut World) -> std::io::Result<(Child, BufReader<ChildStdout>)> {
    let mut child = Command::new("python3")
        .args(["-c", WEB])
        .arg(world.witness())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let output = child.stdout.take();
    let mut output = BufReader::new(output.ok_or(std::io::ErrorKind::BrokenPipe)?);
    loop {
        let mut line = String::new();
        if output.read_line(&mut line)? == 0 {
            let _ = child.kill();
            return Err(std::io::Error::other("the hosts did not start"));
        }
        match line.trim().split_once(' ') {
            Some(("HTTP", port)) => world.define("HTTP", port.to_owned()),
            Some(("HTTPS", port)) => world.define("HTTPS", port.to_owned()),
            Some(("ECHO", port)) => world.define("ECHO", port.to_owned()),
            _ => return Ok((child, output)),
        }
    }
}

fn open_to_all(path: &Path) -> std::io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777))
}

fn drain(stream: std::os::unix::net::UnixStream) -> String {
    let _ = stream.set_nonblocking(false);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(300)));
    read_some(stream)
}

fn read_some(mut stream: impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    // A peer that is gone, or silent for the timeout, has said all it will.
    let _ = stream.by_ref().take(65_536).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
