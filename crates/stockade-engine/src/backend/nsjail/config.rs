//! nsjail's configuration: a message of its `config.proto` in protobuf's text format.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stockade_linux::plan::{LinuxPlan, Mount, Root, Text, View};
use stockade_rules::AbsPath;

use super::super::program;
use super::kafel;

/// What of the host has to be looked at.
pub(super) struct Seen<'a> {
    pub(super) is_directory: &'a dyn Fn(&Path) -> bool,
    pub(super) mounts_below: &'a dyn Fn(&AbsPath) -> Vec<AbsPath>,
}

/// The configuration of a plan; `passed` are the command's own descriptors.
pub(super) fn text(plan: &LinuxPlan, passed: &[i32], seen: &Seen<'_>) -> String {
    let mut out = String::new();
    for (name, value) in [
        ("mode", "ONCE".to_owned()),
        ("hostname", quoted(b"stockade")),
        (
            "cwd",
            quoted(plan.command.cwd.as_path().as_os_str().as_bytes()),
        ),
        // The helper keeps the time.
        ("time_limit", "0".to_owned()),
        ("log_level", "INFO".to_owned()),
        ("keep_env", "false".to_owned()),
        ("keep_caps", "false".to_owned()),
        ("skip_setsid", plan.terminal.to_string()),
        ("clone_newnet", program::cuts_network(plan).to_string()),
        ("mount_proc", "false".to_owned()),
    ] {
        field(&mut out, name, &value);
    }
    // The helper has set them already; nsjail's own would be a tenth of them.
    for limit in ["as", "core", "cpu", "fsize", "nofile", "nproc", "stack"] {
        field(&mut out, &format!("rlimit_{limit}_type"), "HARD");
    }
    for (name, id) in [
        ("uidmap", rustix::process::geteuid().as_raw()),
        ("gidmap", rustix::process::getegid().as_raw()),
    ] {
        let value = format!(r#"{{ inside_id: "{id}" outside_id: "{id}" }}"#);
        field(&mut out, name, &value);
    }
    for entry in &plan.command.env {
        field(&mut out, "envar", &quoted(bytes(entry)));
    }
    for number in passed {
        field(&mut out, "pass_fd", &number.to_string());
    }
    let mut view = Statements {
        out: &mut out,
        plan,
        seen,
    };
    view.root();
    for mount in &plan.mounts {
        view.mount(mount);
    }
    for line in kafel::policy(&plan.seccomp).lines() {
        // Each is a line of the policy.
        field(&mut out, "seccomp_string", &quoted(line.as_bytes()));
    }
    out
}

fn field(out: &mut String, name: &str, value: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(out, "{name}: {value}");
}

fn bytes(text: &Text) -> &[u8] {
    text.as_os_str().as_bytes()
}

/// A string with every byte that is not plain text in octal: names are bytes, and whoever made
/// one must not be able to end the string.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(*byte));
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// Devices that every program may use.
const DEVICES: &[&str] = &["full", "null", "random", "tty", "urandom", "zero"];
/// What is found in `/dev` by other names.
const DEVICE_LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("ptmx", "pts/ptmx"),
    ("stderr", "/proc/self/fd/2"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
];
/// Places of `/proc` that could betray the kernel; root without capabilities still owns them.
const PROC_HIDDEN: &[&str] = &["kcore", "keys", "kmsg", "timer_list"];

/// The statements about mounts.
struct Statements<'a> {
    out: &'a mut String,
    plan: &'a LinuxPlan,
    seen: &'a Seen<'a>,
}

impl Statements<'_> {
    fn root(&mut self) {
        match self.plan.root {
            Root::Host => self.show(&AbsPath::root(), false),
            Root::Empty => self.temporary(Path::new("/"), "mode=0755", false),
        }
    }

    fn mount(&mut self, mount: &Mount) {
        let path = mount.path.as_path();
        match &mount.view {
            View::Devices {
                granted,
                shared_memory,
            } => self.devices(path, granted, *shared_memory),
            View::Empty => self.temporary(path, "mode=0555", false),
            View::Hidden => self.hide(path, true),
            View::Proc => {
                self.add(path, &[], "fstype: \"proc\" rw: false");
                for hidden in PROC_HIDDEN {
                    self.hide(&path.join(hidden), false);
                }
            }
            // Overlays are the helper's alone; if one ever comes here, nothing is written through.
            View::KeptLayer { .. }
            | View::Overlay { .. }
            | View::PrivateLayer { .. }
            | View::ReadOnly => {
                self.show(&mount.path, false);
            }
            View::Symlink(target) => {
                let target = target.as_path().as_os_str().as_bytes();
                self.add(path, target, "is_symlink: true");
            }
            View::Temporary { size } => self.temporary(path, &sized(*size), true),
            View::Writable => self.show(&mount.path, true),
        }
    }

    /// Shows a path of the host. nsjail makes only the mount itself read-only, not those below
    /// it, so each of them gets a statement of its own.
    fn show(&mut self, path: &AbsPath, writable: bool) {
        let bind = |view: &mut Self, path: &AbsPath| {
            let is_directory = (view.seen.is_directory)(path.as_path());
            let rest = format!(
                "is_bind: true rw: {writable} is_dir: {is_directory} nosuid: true nodev: true"
            );
            view.add(path.as_path(), path.as_path().as_os_str().as_bytes(), &rest);
        };
        bind(self, path);
        if writable {
            return;
        }
        for below in (self.seen.mounts_below)(path) {
            // What is said about it, or about something between, comes later.
            let covered = self.plan.mounts.iter().any(|mount| {
                below.is_within(&mount.path) && mount.path.is_within(path) && mount.path != *path
            });
            if !covered {
                bind(self, &below);
            }
        }
    }

    /// Puts something over `path` that can be neither read nor entered.
    fn hide(&mut self, path: &Path, mandatory: bool) {
        if (self.seen.is_directory)(path) {
            return self.temporary(path, "mode=0000", false);
        }
        // A device on a mount without devices can't be opened (`mount(8)`, nodev).
        let rest = format!(
            "is_bind: true rw: false is_dir: false nosuid: true nodev: true mandatory: {mandatory}"
        );
        self.add(path, b"/dev/null", &rest);
    }

    fn temporary(&mut self, path: &Path, options: &str, writable: bool) {
        let rest = format!(
            "fstype: \"tmpfs\" options: {} rw: {writable} nosuid: true nodev: true",
            quoted(options.as_bytes())
        );
        self.add(path, &[], &rest);
    }

    fn devices(&mut self, path: &Path, granted: &[AbsPath], shared_memory: u64) {
        self.temporary(path, "mode=0755", false);
        let known = DEVICES.iter().map(|name| path.join(name));
        let granted = granted.iter().map(|device| device.as_path().to_owned());
        for device in known.chain(granted) {
            let rest = "is_bind: true rw: true is_dir: false nosuid: true";
            self.add(&device, device.as_os_str().as_bytes(), rest);
        }
        self.add(
            &path.join("pts"),
            &[],
            "fstype: \"devpts\" options: \"newinstance,ptmxmode=0666,mode=0620\" rw: true",
        );
        for (name, target) in DEVICE_LINKS {
            self.add(&path.join(name), target.as_bytes(), "is_symlink: true");
        }
        self.temporary(&path.join("shm"), &sized(shared_memory), true);
    }

    fn add(&mut self, path: &Path, source: &[u8], rest: &str) {
        let source = match source {
            [] => String::new(),
            source => format!("src: {} ", quoted(source)),
        };
        let target = quoted(path.as_os_str().as_bytes());
        let value = format!("{{ {source}dst: {target} {rest} }}");
        field(self.out, "mount", &value);
    }
}

fn sized(size: u64) -> String {
    match size {
        0 => "mode=1777".to_owned(),
        size => format!("mode=1777,size={size}"),
    }
}
