//! The steps, inside the child.
//!
//! A step that others stand on ends the attempt where it fails. That matters most for the user
//! namespace: without it the later steps would act on the host.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use landlock::{ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetStatus};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::UnshareFlags;

use super::{Attempt, MARKER, Step, Subject};
use crate::seccomp::{Action, Arch, FilterSpec, InstallFlags, Listener, Rule, compile, install};
use crate::sys::process::unshare;

/// Second argument of the child's own child, which is the first of a new pid namespace.
pub(super) const PROC: &str = "proc";

/// An errno no kernel returns for the filtered call, so that seeing it proves the filter.
const FILTERED: u16 = 118; // ENOTNAM

pub(super) fn run(subject: Subject, report: &mut impl FnMut(Step, i32)) {
    match subject {
        Subject::Landlock => landlock(report),
        Subject::Namespaces => {
            // The failing step has been reported; there is nothing to add.
            let _ = namespaces(report);
        }
        Subject::Seccomp => seccomp(report),
    }
}

/// Mounts a new `/proc` on the directory that was passed and sets the namespace limit there.
pub(super) fn proc(mut args: impl Iterator<Item = OsString>, report: &mut impl FnMut(Step, i32)) {
    let Some(dir) = args.next().map(PathBuf::from) else {
        return;
    };
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mounted = mount("proc", &dir, "proc", flags, None);
    report(Step::Proc, code(mounted.map_err(io::Error::from)));
    if mounted.is_ok() {
        // Per user namespace (user_namespaces(7)): the host's own limit is another one.
        let limit = fs::write(dir.join("sys/user/max_user_namespaces"), "0");
        report(Step::NamespaceLimit, code(limit));
    }
}

fn landlock(report: &mut impl FnMut(Step, i32)) {
    // Rights of the first ABI: the question is whether a domain takes effect at all.
    let entered = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self);
    let held = matches!(&entered, Ok(status) if status.ruleset != RulesetStatus::NotEnforced);
    report(
        Step::LandlockRestrict,
        if held { 0 } else { libc::EOPNOTSUPP },
    );
    if held {
        let refused =
            fs::File::open("/").is_err_and(|error| error.raw_os_error() == Some(libc::EACCES));
        report(
            Step::LandlockEffective,
            if refused { 0 } else { libc::ENOTRECOVERABLE },
        );
    }
}

fn seccomp(report: &mut impl FnMut(Step, i32)) {
    let listener = match filter() {
        Ok(listener) => listener,
        Err(error) => return report(Step::Listener, code(Err(error))),
    };
    report(Step::Listener, 0);
    report(Step::SyncWakeUp, code(listener.wake_synchronously()));
    let answer = rustix::process::getpriority_process(None);
    let refused = answer.is_err_and(|errno| errno.raw_os_error() == i32::from(FILTERED));
    report(
        Step::FilterEffective,
        if refused { 0 } else { libc::ENOTRECOVERABLE },
    );
}

/// Refuses one call and allows the rest; made by the same compiler as the real filters.
fn filter() -> io::Result<Listener> {
    let unsupported = || io::Error::from_raw_os_error(libc::ENOSYS);
    let program = compile(&FilterSpec {
        arch: Arch::native().ok_or_else(unsupported)?,
        foreign: Action::Allow,
        x32: Action::Allow,
        unknown: Action::Allow,
        default: Action::Allow,
        rules: vec![Rule {
            syscalls: vec!["getpriority".to_owned()],
            cases: Vec::new(),
            otherwise: Action::Errno(FILTERED),
        }],
    })
    .map_err(|_| unsupported())?;
    rustix::thread::set_no_new_privs(true)?;
    let fd = install(&program, InstallFlags::LISTENER)?.ok_or_else(unsupported)?;
    Listener::new(fd)
}

fn namespaces(report: &mut impl FnMut(Step, i32)) -> Result<(), ()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    must(report, Step::UserNamespace, unshare(UnshareFlags::NEWUSER))?;
    let mapped = fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("0 {} 1", uid.as_raw())))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("0 {} 1", gid.as_raw())));
    must(report, Step::IdentityMap, mapped)?;
    must(report, Step::MountNamespace, unshare(UnshareFlags::NEWNS))?;
    for (step, flag) in [
        (Step::CgroupNamespace, UnshareFlags::NEWCGROUP),
        (Step::IpcNamespace, UnshareFlags::NEWIPC),
        (Step::NetworkNamespace, UnshareFlags::NEWNET),
        (Step::PidNamespace, UnshareFlags::NEWPID),
        (Step::UtsNamespace, UnshareFlags::NEWUTS),
    ] {
        report(step, code(unshare(flag)));
    }
    let private = mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    );
    must(
        report,
        Step::PrivateMounts,
        private.map_err(io::Error::from),
    )?;
    let dir = mount_point();
    let tmpfs = mount(
        "tmpfs",
        dir,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        None,
    );
    must(report, Step::Tmpfs, tmpfs.map_err(io::Error::from))?;
    report(Step::Overlay, code(overlay(dir)));
    first_of_pid_namespace(&dir.join("proc"), report);
    Ok(())
}

/// Lower, upper and work directories on the tmpfs, as `run --overlay` without a store would have.
fn overlay(dir: &Path) -> io::Result<()> {
    let at = |name: &str| dir.join(name);
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(at(name))?;
    }
    fs::write(at("lower/file"), "below")?;
    let options = format!(
        "userxattr,lowerdir={},upperdir={},workdir={}",
        at("lower").display(),
        at("upper").display(),
        at("work").display()
    );
    let options = std::ffi::CString::new(options)?;
    mount(
        "overlay",
        at("merged"),
        "overlay",
        MountFlags::empty(),
        Some(options.as_c_str()),
    )?;
    fs::write(at("merged/file"), "above")?;
    let untouched = fs::read(at("lower/file"))? == b"below";
    let copied = fs::read(at("upper/file"))? == b"above";
    if untouched && copied {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ENOTRECOVERABLE))
    }
}

/// Only a child is born into the new pid namespace (unshare(2)), and only there a new `/proc`
/// can be mounted.
fn first_of_pid_namespace(dir: &Path, report: &mut impl FnMut(Step, i32)) {
    let output = fs::create_dir(dir).and_then(|()| {
        Command::new("/proc/self/exe")
            .args([MARKER, PROC])
            .arg(dir)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
    });
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(Attempt::parse)
            .for_each(|attempt| report(attempt.step, attempt.errno)),
        Err(error) => report(Step::Proc, code(Err(error))),
    }
}

/// Some directory to mount on; the mount is seen by this child alone.
fn mount_point() -> &'static Path {
    ["/tmp", "/mnt", "/usr", "/etc"]
        .into_iter()
        .map(Path::new)
        .find(|dir| dir.is_dir())
        .unwrap_or(Path::new("/dev"))
}

fn must(report: &mut impl FnMut(Step, i32), step: Step, result: io::Result<()>) -> Result<(), ()> {
    let errno = code(result);
    report(step, errno);
    if errno == 0 { Ok(()) } else { Err(()) }
}

fn code(result: io::Result<()>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    }
}
