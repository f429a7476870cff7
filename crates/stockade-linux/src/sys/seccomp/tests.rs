//! Filters in the real kernel: every probe runs in a process of its own, with and without.
//!
//! The test program starts itself again for [`child`], which installs what it is told and reports
//! one line for each probe. The control run without a filter must see something else than the
//! refusal, else the probe proves nothing.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::seccomp::{
    ApplyError, Arch, ProfileKind, ProfileOptions, X32_BIT, apply_seccomp, compile,
    default_seccomp_profile,
};

mod listener;

const MODE: &str = "STOCKADE_SECCOMP_TEST_MODE";
const EPERM: i32 = libc::EPERM;

/// Name, arguments, and the errno that the strict filter answers. Arguments are numbers and null
/// pointers only, so that a call that gets through fails or is harmless.
const PROBES: &[(&str, [u64; 3], i32)] = &[
    ("mount", [0, 0, 0], EPERM),
    ("umount2", [0, 0, 0], EPERM),
    ("chroot", [0, 0, 0], EPERM),
    ("open_tree", [0, 0, 0], EPERM),
    ("name_to_handle_at", [0, 0, 0], EPERM),
    ("io_uring_setup", [0, 0, 0], EPERM),
    ("io_uring_enter", [u64::MAX, 0, 0], EPERM),
    ("pidfd_getfd", [u64::MAX, 0, 0], EPERM),
    ("process_madvise", [u64::MAX, 0, 0], EPERM),
    ("process_vm_readv", [0, 0, 0], EPERM),
    ("ptrace", [2, 0, 0], EPERM), // PTRACE_PEEKDATA of nobody
    ("keyctl", [0, 0xffff_fffd, 0], EPERM),
    ("add_key", [0, 0, 0], EPERM),
    ("bpf", [u64::MAX, 0, 0], EPERM),
    ("userfaultfd", [u64::MAX, 0, 0], EPERM),
    ("perf_event_open", [0, 0, 0], EPERM),
    ("setns", [u64::MAX, 0, 0], EPERM),
    ("unshare", [0x1000_0000, 0, 0], EPERM),
    ("clone", [0x1000_0200, 0, 0], EPERM), // CLONE_NEWUSER | CLONE_FS: EINVAL without filter
    ("clone3", [0, 0, 0], libc::ENOSYS),
    ("personality", [0x40_0000, 0, 0], EPERM),
    ("ioctl", [u64::MAX, 0x5412, 0], EPERM),
    ("ioctl", [u64::MAX, 0xdead_0000_0000_5412, 0], EPERM),
    ("ioctl", [u64::MAX, 0x541c, 0], EPERM),
    ("seccomp", [1, 8, 0], libc::EBUSY),
    ("socket", [40, 1, 0], libc::EAFNOSUPPORT),
    ("socket", [1, 2, 0], EPERM),
    ("socket", [1, 0xffff_ffff_0000_0002, 0], EPERM),
    ("socket", [16, 3, 15], libc::EPROTONOSUPPORT),
];

/// Name and arguments of calls that must do the same with and without the filter.
const HARMLESS: &[(&str, [u64; 3])] = &[
    ("getppid", [0, 0, 0]),
    ("personality", [0xffff_ffff, 0, 0]),
    ("unshare", [0x600, 0, 0]),
    ("ioctl", [u64::MAX, 0x5401, 0]),
    ("socket", [1, 1, 0]),
    ("socket", [16, 3, 0]),
    ("seccomp", [1, 0, 0]),
    ("openat", [u64::MAX, 0, 0]),
];

#[test]
fn the_strict_filter_refuses_real_calls() {
    let without = report(&run("none"));
    let with = report(&run("strict"));
    let mut proved = 0;
    for (at, &(name, args, errno)) in PROBES.iter().enumerate() {
        let key = format!("probe {at}");
        assert_eq!(
            with[&key],
            i64::from(-errno),
            "{name} {args:x?} under the filter"
        );
        if without[&key] == i64::from(-errno) {
            // An unprivileged control, or a kernel without the feature.
            println!("skipped: {name} {args:x?} is refused here without a filter too");
        } else {
            proved += 1;
        }
    }
    assert!(
        proved >= 20,
        "only {proved} probes differ between filter and control"
    );
    for (at, call) in HARMLESS.iter().enumerate() {
        let key = format!("harmless {at}");
        assert_eq!(with[&key] < 0, without[&key] < 0, "{call:?}");
    }
    assert_eq!(with["x32 getpid"], i64::from(-libc::ENOSYS));
    assert_eq!(with["thread"], 7, "threads start under the filter");
    assert_eq!(with["process"], 0, "processes start under the filter");
}

#[test]
fn the_logging_filter_refuses_nothing() {
    let (without, with) = (report(&run("none")), report(&run("logging")));
    for key in without.keys().filter(|key| key.starts_with("probe")) {
        assert_eq!(with[key] < 0, without[key] < 0, "{key}");
    }
}

/// `int 0x80` from a 64-bit program enters the kernel by the numbers of i386.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_call_by_another_architecture_kills() {
    let control = run("int80 none");
    if !control.status.success() {
        skip("ia32", "this kernel has no 32-bit entry (IA32_EMULATION)");
        return;
    }
    assert!(report(&control)["int80 getpid"] > 0);
    let filtered = run("int80 strict");
    assert_eq!(filtered.status.signal(), Some(libc::SIGSYS), "{filtered:?}");
}

#[test]
fn a_filter_for_the_whole_process_reaches_running_threads() {
    assert_eq!(
        report(&run("threads none"))["other thread"],
        i64::from(-libc::EFAULT)
    );
    let with = report(&run("threads apply"));
    assert_eq!(with["other thread"], i64::from(-EPERM));
    assert_eq!(
        with["own filter in the way"], 1,
        "a thread with its own filter is an error"
    );
}

/// Debuggers on a child of their own: ordinary work where the profile is for a sandbox with a pid
/// namespace, refused where it is not.
#[test]
fn a_debugger_works_on_its_own_child() {
    for (need, program) in [("strace", "/usr/bin/strace"), ("gdb", "/usr/bin/gdb")] {
        if !Path::new(program).exists() {
            skip(need, "not installed");
            continue;
        }
        assert_eq!(
            report(&run("debug native"))[need],
            0,
            "{need} under the native profile"
        );
        assert_ne!(
            report(&run("debug strict"))[need],
            0,
            "{need} without a pid namespace"
        );
    }
}

#[test]
fn actions_of_this_kernel() {
    assert!(is_available(Action::Errno(1)).unwrap());
    assert!(is_available(Action::Allow).unwrap());
    assert!(is_available(Action::KillProcess).unwrap());
}

/// Not a test of its own: what the tests above run in a new process.
#[test]
fn child() {
    let Some(mode) = std::env::var_os(MODE) else {
        return;
    };
    let mode = mode.to_str().unwrap();
    match mode {
        "none" | "strict" | "logging" => probe_all(mode),
        "int80 none" | "int80 strict" => {
            enter(&mode["int80 ".len()..]);
            #[cfg(target_arch = "x86_64")]
            println!("= int80 getpid = {}", int80_getpid());
        }
        "debug native" | "debug strict" => {
            enter(&mode["debug ".len()..]);
            let strace = ["-f", "-o", "/dev/null", "/bin/true"];
            println!("= strace = {}", status("/usr/bin/strace", &strace));
            let gdb = [
                "-nx",
                "-batch",
                "-return-child-result",
                "-ex",
                "run",
                "/bin/true",
            ];
            println!("= gdb = {}", status("/usr/bin/gdb", &gdb));
        }
        "threads none" => report_from_another_thread(|| {}),
        "threads apply" => {
            report_from_another_thread(|| {
                apply_seccomp(&default_seccomp_profile().unwrap()).unwrap();
            });
            let (ready, wait) = mpsc::channel();
            let (done, stay) = mpsc::channel::<()>();
            let divergent = thread::spawn(move || {
                enter("strict");
                ready.send(()).unwrap();
                stay.recv().unwrap_err();
            });
            wait.recv().unwrap();
            let again = apply_seccomp(&default_seccomp_profile().unwrap());
            let named =
                matches!(&again, Err(ApplyError::Install(e)) if e.to_string().contains("thread"));
            println!("= own filter in the way = {}", i32::from(named));
            drop(done);
            divergent.join().unwrap();
        }
        _ => panic!("unknown mode {mode}"),
    }
}

fn probe_all(mode: &str) {
    enter(mode);
    for (at, (name, args, _)) in PROBES.iter().enumerate() {
        println!("= probe {at} = {}", attempt(name, *args));
    }
    for (at, (name, args)) in HARMLESS.iter().enumerate() {
        println!("= harmless {at} = {}", attempt(name, *args));
    }
    let x32 = X32_BIT | Arch::native().unwrap().number("getpid").unwrap();
    println!("= x32 getpid = {}", raw(x32, [0; 3]));
    println!("= thread = {}", thread::spawn(|| 7).join().unwrap());
    println!("= process = {}", status("/bin/true", &[]));
}

fn status(program: &str, args: &[&str]) -> i32 {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output();
    output
        .ok()
        .and_then(|output| output.status.code())
        .unwrap_or(-1)
}

/// Puts the current thread under the filter a mode names.
fn enter(mode: &str) {
    let options = ProfileOptions::shared_namespaces();
    let options = match mode {
        "none" => return,
        "native" => ProfileOptions::native(),
        "logging" => ProfileOptions {
            kind: ProfileKind::Logging,
            ..options
        },
        _ => options,
    };
    let program = compile(&options.filter(Arch::native().unwrap()).unwrap()).unwrap();
    rustix::thread::set_no_new_privs(true).unwrap();
    assert!(install(&program, InstallFlags::NONE).unwrap().is_none());
}

/// Runs `apply` while another thread is alive, then lets that thread try to mount.
fn report_from_another_thread(apply: impl FnOnce()) {
    let (go, wait) = mpsc::channel();
    let other = thread::spawn(move || {
        wait.recv().unwrap();
        attempt("mount", [0; 3])
    });
    apply();
    go.send(()).unwrap();
    println!("= other thread = {}", other.join().unwrap());
}

fn run(mode: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "sys::seccomp::tests::child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(MODE, mode)
        .output()
        .unwrap()
}

/// Says why a test proves nothing here; fails where `STOCKADE_REQUIRE` names the need.
fn skip(need: &str, reason: &str) {
    let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|required| required == need),
        "{need}: {reason}"
    );
    println!("skipped: {need}: {reason}");
}

fn report(output: &Output) -> BTreeMap<String, i64> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once("= "));
    lines
        .filter_map(|(_, line)| line.split_once(" = "))
        .map(|(key, value)| (key.to_owned(), value.parse().unwrap()))
        .collect()
}

fn attempt(name: &str, args: [u64; 3]) -> i64 {
    raw(Arch::native().unwrap().number(name).unwrap(), args)
}

/// The kernel's own answer: a value, or minus an errno.
fn raw(number: u32, [a, b, c]: [u64; 3]) -> i64 {
    // SAFETY: only the probes above come here. They pass numbers and null pointers, which the
    // kernel answers with an errno, and change at most the process that was started for them.
    let result = unsafe { libc::syscall(libc::c_long::from(number), a, b, c, 0, 0, 0) };
    if result < 0 {
        return -i64::from(io::Error::last_os_error().raw_os_error().unwrap());
    }
    result
}

#[cfg(target_arch = "x86_64")]
fn int80_getpid() -> i32 {
    let result: i32;
    // SAFETY: number 20 on i386 is getpid, which takes no arguments and touches no memory. The
    // kernel may clear r8 to r11 on this way in.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") 20 => result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    result
}
