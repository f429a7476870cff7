//! A container engine of the suite's own: everything it has is below one directory.
//!
//! A shell holds it and waits for the end of its own input, whose other end only the suite has:
//! however the suite ends, the engine is stopped by its process id and its directory removed.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// Arguments: the directory, and the size of a disk for its data, if it is to have one; then it is
/// in a mount namespace of its own, and the disk goes with it. Prints the engine's process id.
const KEEPER: &str = r#"
trap '' INT TERM HUP QUIT
if test -n "$2"; then
    mkdir "$1/data" && mount -t tmpfs -o "size=$2" disk "$1/data" || exit 1
fi
dockerd --config-file "$1/daemon.json" > "$1/log" 2>&1 < /dev/null &
engine=$!
echo "$engine"
exec >/dev/null
cat > /dev/null
kill -TERM "$engine" 2>/dev/null
wait "$engine"
# Killed in a test, it leaves its containerd and what that holds.
for file in "$1"/exec/containerd/containerd.pid; do
    test -s "$file" && kill -KILL "$(cat "$file")" 2>/dev/null
done
for process in /proc/[0-9]*; do
    if tr '\0' ' ' < "$process/cmdline" 2>/dev/null | grep -q "^[^ ]*containerd-shim.* $1/"; then
        shim=${process#/proc/}
        for child in $(cat "/proc/$shim/task/$shim/children" 2>/dev/null); do
            kill -KILL "$child" 2>/dev/null
        done
        kill -KILL "$shim" 2>/dev/null
    fi
done
grep " $1/" /proc/self/mountinfo | cut -d' ' -f5 | sort -r | while read -r point; do
    umount -l "$point"
done
rm -rf "$1"
"#;

/// Where an engine's data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "tests name one")]
pub enum Disk {
    /// In its directory.
    Host,
    /// On a disk of its own, which nobody else sees.
    Small {
        /// Its size.
        mib: u32,
    },
}

/// An engine that runs; dropping it stops it.
#[derive(Debug)]
pub struct Dockerd {
    keeper: Child,
    engine: i32,
    dir: PathBuf,
}

impl Dockerd {
    /// Starts one below `parent`; why not, if it can't be.
    ///
    /// # Errors
    /// If there is no `dockerd`, this is not root, or it does not come up.
    pub fn start(parent: &Path) -> Result<Self, Failure> {
        Self::start_on(parent, Disk::Host)
    }

    /// The same with its data on this disk.
    ///
    /// # Errors
    /// As [`Dockerd::start`].
    pub fn start_on(parent: &Path, disk: Disk) -> Result<Self, Failure> {
        if !crate::stage::is_root() {
            return Err("only root can start a container engine".to_owned());
        }
        for program in ["dockerd", "containerd", "runc"] {
            let found = Command::new(program).arg("--version").output();
            found.map_err(|error| format!("no {program}: {error}"))?;
        }
        let dir = parent.join(format!("engine-{}", std::process::id()));
        let told = |error: std::io::Error| format!("{}: {error}", dir.display());
        fs::create_dir(&dir).map_err(told)?;
        let place = |name: &str| dir.join(name).display().to_string();
        let config = serde_json::json!({
            "hosts": [format!("unix://{}", place("docker.sock"))],
            "data-root": place("data"),
            "exec-root": place("exec"),
            "pidfile": place("pid"),
            "iptables": false,
            "ip6tables": false,
            "bridge": "none",
            "storage-driver": "vfs",
            "runtimes": { "runsc": {
                "path": "/usr/bin/runsc",
                "runtimeArgs": ["--network=none", "--ignore-cgroups"],
            } },
        });
        fs::write(dir.join("daemon.json"), config.to_string()).map_err(told)?;
        let (around, size) = match disk {
            Disk::Host => ("env", String::new()),
            Disk::Small { mib } => ("unshare -m", format!("{mib}m")),
        };
        let mut words = around.split(' ');
        let mut keeper = Command::new(words.next().unwrap_or_default())
            .args(words)
            .args(["/bin/sh", "-c", KEEPER, "keeper"])
            .arg(&dir)
            .arg(size)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(told)?;
        let mut said = String::new();
        if let Some(mut output) = keeper.stdout.take() {
            output.read_to_string(&mut said).map_err(told)?;
        }
        let engine = said
            .trim()
            .parse()
            .map_err(|_| "no process id".to_owned())?;
        let started = Self {
            keeper,
            engine,
            dir,
        };
        started.await_socket()?;
        Ok(started)
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("docker.sock")
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.engine
    }

    fn await_socket(&self) -> Result<(), Failure> {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            if std::os::unix::net::UnixStream::connect(self.socket()).is_ok() {
                return Ok(());
            }
            if Instant::now() > end {
                let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(5).collect();
                return Err(format!("the engine does not come up: {last:#?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

impl crate::matrix::Guard for Dockerd {}
