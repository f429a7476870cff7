//! Holds a container engine of the suite's own, all of which is below one directory.
//!
//! A shell holds it and waits for the end of its own input, whose other end only the suite has:
//! however the suite ends, the engine is stopped by its process id and its directory removed.

use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// Arguments: the directory; the size of a disk for its data, if it is to have one; how the names
/// of the programs begin that it may leave behind; its command line. Prints its process id.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT
dir=$1 size=$2 left=$3
shift 3
if test -n "$size"; then
    mkdir "$dir/data" && mount -t tmpfs -o "size=$size" disk "$dir/data" || exit 1
fi
"$@" > "$dir/log" 2>&1 < /dev/null &
engine=$!
echo "$engine"
exec >/dev/null
cat > /dev/null
kill -TERM "$engine" 2>/dev/null
wait "$engine"
# Killed in a test, it leaves its helpers and what they hold; Podman's stay for minutes anyway.
for process in /proc/[0-9]*; do
    if tr '\0' ' ' < "$process/cmdline" 2>/dev/null | grep -q "^[^ ]*$left.* $dir/"; then
        helper=${process#/proc/}
        for child in $(cat "/proc/$helper/task/$helper/children" 2>/dev/null); do
            kill -KILL "$child" 2>/dev/null
        done
        kill -KILL "$helper" 2>/dev/null
    fi
done
grep " $dir/" /proc/self/mountinfo | cut -d' ' -f5 | sort -r | while read -r point; do
    umount -l "$point"
done
rm -rf "$dir"
"#;

/// How long an engine may take to answer.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(120);

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

/// The directory of an engine that has not been started yet.
pub(crate) struct Place(PathBuf);

impl Place {
    /// Makes it below `parent`, if the engine could run at all: as root, with these programs.
    pub(crate) fn new(parent: &Path, name: &str, programs: &[&str]) -> Result<Self, Failure> {
        if !crate::stage::is_root() {
            return Err("only root can start a container engine".to_owned());
        }
        for program in programs {
            let found = Command::new(program).arg("--version").output();
            found.map_err(|error| format!("no {program}: {error}"))?;
        }
        let dir = parent.join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(Self(dir))
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

/// An engine that runs; dropping it stops it.
#[derive(Debug)]
pub(crate) struct Keeper {
    shell: Child,
    engine: i32,
    socket: PathBuf,
}

impl Keeper {
    /// Starts an engine and waits until it answers at its socket, which is named in its place.
    /// Programs whose names begin with `left` are its own and end with it.
    pub(crate) fn start(
        place: Place,
        socket: &str,
        left: &str,
        disk: Disk,
        command: &[&str],
    ) -> Result<Self, Failure> {
        let Place(dir) = place;
        let told = |error: std::io::Error| format!("{}: {error}", dir.display());
        let size = match disk {
            Disk::Host => String::new(),
            Disk::Small { mib } => format!("{mib}m"),
        };
        // What an engine mounts goes with it, and nobody else sees it come and go: another one that
        // shows the host's mounts in a container must find them all.
        let mut shell = Command::new("unshare")
            .args(["--mount", "--propagation", "slave"])
            .args(["/bin/sh", "-c", SCRIPT, "keeper"])
            .arg(&dir)
            .args([&size, left])
            .args(command)
            // Podman leaves copies of the images that it was given.
            .env("TMPDIR", &dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(told)?;
        let mut said = String::new();
        if let Some(mut output) = shell.stdout.take() {
            output.read_to_string(&mut said).map_err(told)?;
        }
        let started = Self {
            shell,
            engine: said.trim().parse().map_err(|_| "no process id")?,
            socket: dir.join(socket),
        };
        let end = Instant::now() + ENGINE_TIMEOUT;
        while UnixStream::connect(&started.socket).is_err() {
            // A process that has ended has no arguments any more, until its parent asks for it.
            let arguments = fs::read(format!("/proc/{}/cmdline", started.engine));
            if arguments.is_ok_and(|bytes| bytes.is_empty()) || Instant::now() > end {
                let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(5).collect();
                return Err(format!("the engine does not come up: {last:#?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(started)
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> i32 {
        self.engine
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
