//! What one run of the suite needs from the host, and the promise to give it all back.
//!
//! The stage is a directory for fixtures, a copy of the program under test that every user can
//! execute, and, if the suite is root, an ordinary user of its own. A watcher process in a process
//! group of its own holds the read end of a pipe whose write end only the suite has: when the
//! suite ends, in whatever way, the watcher sees end of file and takes everything down. No signal
//! handler could do that after SIGKILL.
//!
//! Fixtures live below `/var/tmp` (or `STOCKADE_TEST_DIR`), not `/tmp`: the sandbox replaces
//! `/tmp`, and a denial that only came from that would prove nothing.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::Failure;

/// Names of users and directories of the suite begin with this, followed by its pid.
const PREFIX: &str = "stk-test-";

/// Takes the stage down once its standard input ends. Arguments: directory, user name or nothing.
const WATCHER: &str = r#"
trap '' INT TERM HUP QUIT
cat > /dev/null
if [ -n "$2" ]; then
    pkill -KILL -u "$2"
    # Another suite may hold the lock on the password file for a moment.
    for attempt in $(seq 100); do
        userdel -f "$2" > /dev/null 2>&1
        id "$2" > /dev/null 2>&1 || break
        sleep 0.2
    done
fi
# Fixtures may have odd modes; an ordinary suite needs them back to remove anything.
chmod -R u+rwX "$1" > /dev/null 2>&1
rm -rf --one-file-system "$1"
"#;

/// One of the users that cases run as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// `root` or `user`: the second half of the test's name.
    pub role: Role,
    /// Name in the password file.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Whether the suite must change its identity to become this user.
    foreign: bool,
}

/// Which of the two users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "there are two")]
pub enum Role {
    /// The superuser.
    Root,
    /// Anybody else.
    User,
}

impl Role {
    /// The role as it stands in a test's name.
    pub fn label(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
        }
    }
}

impl Actor {
    /// Makes a file that belongs to this user: programs open `/dev/stdout` again.
    ///
    /// # Errors
    /// If it can't be made or given away.
    pub fn create(&self, path: &Path) -> io::Result<fs::File> {
        let file = fs::File::create(path)?;
        if self.foreign {
            std::os::unix::fs::fchown(&file, Some(self.uid), Some(self.gid))?;
        }
        Ok(file)
    }

    /// Makes the command run as this user. Dropping to it clears supplementary groups too.
    pub fn apply(&self, command: &mut Command) {
        if self.foreign {
            command.uid(self.uid).gid(self.gid);
        }
    }
}

/// The stage; dropping it takes everything down and waits for that.
#[derive(Debug)]
pub struct Stage {
    /// Everything the suite makes is below this directory.
    pub dir: PathBuf,
    /// What all fixtures share, by name.
    pub shared: Vec<(&'static str, String)>,
    /// Who cases run as.
    pub actors: Vec<Actor>,
    counter: AtomicU32,
    watcher: Child,
    lifeline: Option<ChildStdin>,
}

impl Stage {
    /// Prepares the directory, the users and the watcher.
    ///
    /// # Errors
    /// If any of them can't be made; what was made by then is removed.
    pub fn set() -> Result<Self, Failure> {
        let root = is_root();
        if root {
            remove_stale();
        }
        let parent = std::env::var_os("STOCKADE_TEST_DIR").map_or("/var/tmp".into(), PathBuf::from);
        let pid = std::process::id();
        let dir = parent.join(format!("{PREFIX}{pid}"));
        fs::create_dir(&dir).map_err(|e| format!("can't make {}: {e}", dir.display()))?;
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755))
            .map_err(|e| format!("mode of {}: {e}", dir.display()))?;

        let name = if root {
            format!("{PREFIX}{pid}")
        } else {
            String::new()
        };
        let mut watcher = Command::new("/bin/sh")
            .args(["-c", WATCHER, "watcher"])
            .arg(&dir)
            .arg(&name)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|e| format!("can't start the watcher: {e}"))?;
        let lifeline = watcher.stdin.take();
        let mut stage = Self {
            dir,
            shared: Vec::new(),
            actors: Vec::new(),
            counter: AtomicU32::new(0),
            watcher,
            lifeline,
        };
        stage.actors = if root {
            let home = stage.dir.join("home");
            let user = add_user(&name, &home)?;
            let superuser = Actor {
                role: Role::Root,
                name: "root".into(),
                uid: 0,
                gid: 0,
                foreign: false,
            };
            vec![user, superuser]
        } else {
            let uid = rustix::process::getuid().as_raw();
            let name = user_name(uid).unwrap_or_else(|| uid.to_string());
            let gid = rustix::process::getgid().as_raw();
            vec![Actor {
                role: Role::User,
                name,
                uid,
                gid,
                foreign: false,
            }]
        };
        Ok(stage)
    }

    /// A number nobody else on this stage has.
    pub fn next(&self) -> u32 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// Copies a program to where every actor can execute it.
    ///
    /// # Errors
    /// If it can't be copied.
    pub fn install(&self, program: &Path) -> Result<PathBuf, Failure> {
        let told = |e: io::Error| format!("can't copy {}: {e}", program.display());
        let bin = self.dir.join("bin");
        fs::create_dir_all(&bin).map_err(told)?;
        let name = program
            .file_name()
            .ok_or_else(|| format!("no file: {}", program.display()))?;
        let copy = bin.join(name);
        fs::copy(program, &copy).map_err(told)?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).map_err(told)?;
        Ok(copy)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // Nothing to do about a watcher that can't be waited for; the suite checks what is left.
        let _ = self.watcher.wait();
    }
}

/// Whether the suite runs as the superuser, and so has both users.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn add_user(name: &str, home: &Path) -> Result<Actor, Failure> {
    let end = Instant::now() + Duration::from_secs(60);
    // useradd refuses while another suite holds the lock on the password file.
    loop {
        let output = Command::new("useradd")
            .args(["--no-create-home", "--shell", "/bin/sh", "--home-dir"])
            .arg(home)
            .arg(name)
            .output()
            .map_err(|e| format!("can't start useradd: {e}"))?;
        if let Some((uid, gid)) = look_up(name) {
            fs::create_dir(home)
                .and_then(|()| std::os::unix::fs::chown(home, Some(uid), Some(gid)))
                .map_err(|e| format!("home of {name}: {e}"))?;
            return Ok(Actor {
                role: Role::User,
                name: name.into(),
                uid,
                gid,
                foreign: true,
            });
        }
        if Instant::now() > end {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(format!("useradd {name}: {complaint}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn passwd() -> Vec<(String, u32, u32)> {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?.to_owned();
            let uid = fields.nth(1)?.parse().ok()?;
            Some((name, uid, fields.next()?.parse().ok()?))
        })
        .collect()
}

fn look_up(name: &str) -> Option<(u32, u32)> {
    passwd()
        .into_iter()
        .find(|entry| entry.0 == name)
        .map(|(_, uid, gid)| (uid, gid))
}

fn user_name(uid: u32) -> Option<String> {
    passwd()
        .into_iter()
        .find(|entry| entry.1 == uid)
        .map(|(name, ..)| name)
}

/// Whether the suite's user is still in the password file.
pub fn user_remains() -> bool {
    look_up(&format!("{PREFIX}{}", std::process::id())).is_some()
}

/// Removes users whose suite and watcher were both killed.
fn remove_stale() {
    for (name, ..) in passwd() {
        let stale = name
            .strip_prefix(PREFIX)
            .and_then(|pid| pid.parse::<u32>().ok())
            .is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        if stale {
            // A failure here is no reason not to test; the next suite tries again.
            let _ = Command::new("userdel").arg("-f").arg(&name).output();
        }
    }
}
