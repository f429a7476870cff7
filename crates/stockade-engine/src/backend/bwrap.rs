//! The backend `bwrap`: bubblewrap builds the view and the namespaces.
//!
//! For hosts where only a set-id `bwrap` may make namespaces, and for those who trust it more. All
//! its arguments, the environment included, go through `--args` on a descriptor: there is no limit
//! on how many, and nothing of them shows in `/proc`. Needs bubblewrap 0.8 (`--disable-userns`).
//!
//! Not protected, unlike in the backend `native`: see [`program`](super::program). bubblewrap looks
//! paths up by name while it mounts, so a process outside that changes the tree meanwhile can
//! change what is shown; nothing inside runs yet by then.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stockade_linux::plan::{Mount, Root, Text, View};
use stockade_policy::profile::{Backend as Name, Profile};
use stockade_rules::AbsPath;

use super::foundation::{self, Words};
use super::program::Tells;
use super::{Backend, Launch, RunningSandbox};
use super::{lookup, program};
use crate::child::RunError;
use crate::lower;
use crate::plan::{Content, ExecPlan, PlanError, Spec};
use crate::probe::{self, Support};

/// bubblewrap.
#[derive(Clone, Debug, Default)]
pub struct Bwrap {
    path: Option<PathBuf>,
}

impl Bwrap {
    /// The one on the search path, whose relative entries are left out.
    pub fn new() -> Self {
        Self::default()
    }

    /// The one at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
        }
    }

    fn program(&self) -> Result<PathBuf, PlanError> {
        let given = self.path.as_deref();
        program::located(
            given,
            Name::Bwrap,
            "bwrap",
            /*hint*/ "install the package `bubblewrap`",
        )
    }
}

impl Backend for Bwrap {
    fn name(&self) -> Name {
        Name::Bwrap
    }

    fn probe(&self, _: &Path) -> Support {
        probe::bwrap(self.path.as_deref())
    }

    fn plan(&self, profile: &Profile, spec: &Spec) -> Result<ExecPlan, PlanError> {
        let bwrap = self.program()?;
        let mut plan = foundation::plan(profile, spec, Name::Bwrap, &words())?;
        let code = program::compiled(&plan.linux.seccomp)?;

        let mut free = program::free_descriptors(&spec.keep_descriptors);
        let [arguments_fd, filter_fd, status_fd] =
            [(); 3].map(|()| free.next().unwrap_or(i32::MAX));
        let mut arguments = view(&plan, lookup::is_directory)?;
        arguments.extend(words_of(["--seccomp", &filter_fd.to_string()])?);
        arguments.extend(words_of(["--json-status-fd", &status_fd.to_string()])?);
        let argv = words_of([bwrap.as_os_str(), OsStr::new("--args")])?
            .into_iter()
            .chain(words_of([arguments_fd.to_string(), "--".to_owned()])?)
            .chain(plan.linux.command.argv.iter().cloned());
        let run = program::started_by_helper(
            &plan.linux,
            argv.collect(),
            [arguments_fd, filter_fd, status_fd],
        );
        let inputs = vec![
            program::input(arguments_fd, Content::Arguments(arguments)),
            program::input(filter_fd, Content::Bytes(code)),
        ];
        plan.carrier = program::carrier(run, inputs, Some(status_fd));
        Ok(plan)
    }

    fn spawn(
        &self,
        plan: &ExecPlan,
        launch: &Launch<'_>,
    ) -> Result<Box<dyn RunningSandbox>, RunError> {
        program::spawn(plan, launch, &Status)
    }
}

/// JSON objects, one after the other: `child-pid` when the sandbox begins, `exit-code` when a
/// command was executed in it and ended.
#[derive(Debug)]
struct Status;

impl Tells for Status {
    fn leader(&self, said: &str) -> Option<i32> {
        number(said, "child-pid")
    }

    fn is_built(&self, said: &str) -> bool {
        number(said, "exit-code").is_some()
    }
}

fn number(said: &str, key: &str) -> Option<i32> {
    let objects = serde_json::Deserializer::from_str(said).into_iter::<serde_json::Value>();
    let numbers = objects.map_while(Result::ok).filter_map(|object| {
        let number = object.get(key)?.as_i64()?;
        i32::try_from(number).ok()
    });
    numbers.last()
}

fn words() -> Words {
    Words {
        files: "bwrap's mounts",
        devices: "a /dev of its own",
        processes: "pid namespace, dies with its parent",
        privileges: "no capabilities, no_new_privs, no further user namespaces, no set-id modes",
        privileges_gap: None,
        seccomp: "seccomp filter",
        seccomp_gap: Some("process 1 inside is bwrap's and can be traced"),
        network: "network namespace with a loopback only",
        hosts: Some(program::HOSTS),
        ipc: "ipc namespace, hidden sockets",
        ipc_gap: Some(
            "Unix sockets of the host that lie in a readable directory can be connected to",
        ),
    }
}

/// The arguments that make namespaces, view and environment.
fn view(plan: &ExecPlan, is_directory: impl Fn(&Path) -> bool) -> Result<Vec<Text>, PlanError> {
    let linux = &plan.linux;
    let mut out = Arguments::default();
    for flag in [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
    ] {
        out.add([flag])?;
    }
    if program::cuts_network(linux) {
        out.add(["--unshare-net"])?;
    }
    if !linux.terminal {
        // A group that bwrap itself is not in, so that a signal does not end it. With a terminal
        // the session must stay, for the sake of job control.
        out.add(["--new-session"])?;
    }
    if !linux.nested_namespaces {
        out.add(["--disable-userns"])?;
    }
    out.add(["--cap-drop", "ALL"])?;
    if linux.root == Root::Host {
        out.add(["--ro-bind", "/", "/"])?;
    }
    for mount in &linux.mounts {
        out.mount(mount, &is_directory)?;
    }
    if linux.root == Root::Empty {
        out.sealed.push(AbsPath::root());
    }
    for path in std::mem::take(&mut out.sealed) {
        out.add([OsStr::new("--remount-ro"), path.as_path().as_os_str()])?;
    }
    out.add([
        OsStr::new("--chdir"),
        linux.command.cwd.as_path().as_os_str(),
    ])?;
    out.add(["--clearenv"])?;
    for entry in &linux.command.env {
        let bytes = entry.as_os_str().as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=');
        let (name, value) = bytes.split_at(at.unwrap_or(bytes.len()));
        let value = value.get(1..).unwrap_or_default();
        out.add([
            OsStr::new("--setenv"),
            OsStr::from_bytes(name),
            OsStr::from_bytes(value),
        ])?;
    }
    Ok(out.list)
}

/// Places of `/proc` that could change the kernel. Root without capabilities still owns them.
const PROC_READ_ONLY: &[&str] = &["bus", "fs", "irq", "sys", "sysrq-trigger"];
/// Places of `/proc` that could betray it.
const PROC_HIDDEN: &[&str] = &[
    "acpi",
    "asound",
    "kcore",
    "keys",
    "kmsg",
    "scsi",
    "timer_list",
];

#[derive(Default)]
struct Arguments {
    list: Vec<Text>,
    /// What becomes read-only when everything is in place.
    sealed: Vec<AbsPath>,
}

impl Arguments {
    fn add(
        &mut self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<(), PlanError> {
        self.list.extend(words_of(arguments)?);
        Ok(())
    }

    fn mount(
        &mut self,
        mount: &Mount,
        is_directory: impl Fn(&Path) -> bool,
    ) -> Result<(), PlanError> {
        let path = mount.path.as_path();
        let name = path.as_os_str();
        let bind = |how: &'static str| [OsStr::new(how), name, name];
        match &mount.view {
            View::Devices {
                granted,
                shared_memory,
            } => {
                self.add([OsStr::new("--dev"), name])?;
                self.temporary(&path.join("shm"), *shared_memory)?;
                for device in granted {
                    let device = device.as_path().as_os_str();
                    self.add([OsStr::new("--dev-bind"), device, device])?;
                }
            }
            View::Empty => {
                self.add([OsStr::new("--perms"), OsStr::new("0555")])?;
                self.add([OsStr::new("--tmpfs"), name])?;
                self.sealed.push(mount.path.clone());
            }
            View::Hidden => self.hide(path, is_directory(path))?,
            View::Proc => {
                self.add([OsStr::new("--proc"), name])?;
                for fixed in PROC_READ_ONLY {
                    let fixed = path.join(fixed);
                    let fixed = fixed.as_os_str();
                    self.add([OsStr::new("--ro-bind-try"), fixed, fixed])?;
                }
                for hidden in PROC_HIDDEN {
                    let hidden = path.join(hidden);
                    if hidden.exists() {
                        self.hide(&hidden, is_directory(&hidden))?;
                    }
                }
            }
            // Overlays are the helper's alone; if one ever comes here, nothing is written through.
            View::KeptLayer { .. }
            | View::Overlay { .. }
            | View::PrivateLayer { .. }
            | View::ReadOnly => {
                self.add(bind("--ro-bind"))?;
            }
            View::Symlink(target) => {
                let target = target.as_path().as_os_str();
                self.add([OsStr::new("--symlink"), target, name])?;
            }
            View::Temporary { size } => self.temporary(path, *size)?,
            View::Writable => self.add(bind("--bind"))?,
        }
        Ok(())
    }

    /// Puts something over `path` that can be neither read nor entered.
    fn hide(&mut self, path: &Path, is_directory: bool) -> Result<(), PlanError> {
        let name = path.as_os_str();
        if is_directory {
            self.add([OsStr::new("--perms"), OsStr::new("0000")])?;
            self.add([OsStr::new("--tmpfs"), name])?;
            return self.add([OsStr::new("--remount-ro"), name]);
        }
        // A device on a mount without devices can't be opened (`mount(8)`, nodev).
        self.add([OsStr::new("--ro-bind"), OsStr::new("/dev/null"), name])
    }

    fn temporary(&mut self, path: &Path, size: u64) -> Result<(), PlanError> {
        self.add(["--perms", "1777"])?;
        if size > 0 {
            self.add(["--size", &size.to_string()])?;
        }
        self.add([OsStr::new("--tmpfs"), path.as_os_str()])
    }
}

fn words_of(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Vec<Text>, PlanError> {
    words.into_iter().map(lower::text).collect()
}

#[cfg(test)]
mod tests;
