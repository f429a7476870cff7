//! A Podman of the suite's own, as a service: everything it has is below one directory. Held as
//! [`Dockerd`](crate::dockerd::Dockerd) is.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Failure;

/// Argument: the directory. Prints one line when the service has been started.
const KEEPER: &str = r#"
trap '' INT TERM HUP QUIT
podman --root "$1/data" --runroot "$1/run" --tmpdir "$1/tmp" --storage-driver vfs \
    --cgroup-manager cgroupfs --events-backend file \
    system service --time 0 "unix://$1/podman.sock" > "$1/log" 2>&1 < /dev/null &
service=$!
echo started
exec >/dev/null
cat > /dev/null
kill -TERM "$service" 2>/dev/null
wait "$service"
# Each command's monitor stays for minutes, and would then look for the service.
for process in /proc/[0-9]*; do
    if tr '\0' ' ' < "$process/cmdline" 2>/dev/null | grep -q "^[^ ]*conmon .* $1/"; then
        kill -KILL "${process#/proc/}" 2>/dev/null
    fi
done
grep " $1/" /proc/self/mountinfo | cut -d' ' -f5 | sort -r | while read -r point; do
    umount -l "$point"
done
rm -rf "$1"
"#;

/// A service that runs; dropping it stops it.
#[derive(Debug)]
pub struct Podman {
    keeper: Child,
    dir: PathBuf,
}

impl Podman {
    /// Starts one below `parent`; why not, if it can't be.
    ///
    /// # Errors
    /// If there is no `podman`, this is not root, or it does not come up.
    pub fn start(parent: &Path) -> Result<Self, Failure> {
        if !crate::stage::is_root() {
            return Err("only root can start a container engine".to_owned());
        }
        for program in ["podman", "catatonit"] {
            let found = Command::new(program).arg("--version").output();
            found.map_err(|error| format!("no {program}: {error}"))?;
        }
        let dir = parent.join(format!("podman-{}", std::process::id()));
        let told = |error: std::io::Error| format!("{}: {error}", dir.display());
        fs::create_dir(&dir).map_err(told)?;
        let mut keeper = Command::new("/bin/sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&dir)
            // It leaves copies of the images that it was given.
            .env("TMPDIR", &dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(told)?;
        if let Some(mut output) = keeper.stdout.take() {
            output.read_to_string(&mut String::new()).map_err(told)?;
        }
        let started = Self { keeper, dir };
        let end = Instant::now() + Duration::from_secs(30);
        while std::os::unix::net::UnixStream::connect(started.socket()).is_err() {
            if Instant::now() > end {
                let log = fs::read_to_string(started.dir.join("log")).unwrap_or_default();
                return Err(format!("the service does not come up: {log}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(started)
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("podman.sock")
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
