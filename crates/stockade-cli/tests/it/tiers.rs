//! Which tier a run gets and what is said about it; backend `landlock` at each ABI of Landlock.
//!
//! Namespaces are forbidden for a test by a filter on the launcher, as a container does, so that
//! root is root. ABI levels are masked in the plan, which is plain data: a run of the program itself
//! can't be told to use less than the kernel has.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;

use serde_json::Value;
use stockade_linux::Builder;
use stockade_linux::LinuxPlan;

use crate::context::{Context, Ran, STOCKADE, has};
use crate::doctor::FILTERED;

/// Runs the program where new user namespaces are refused.
fn refused(context: &Context, args: &[&str]) -> Ran {
    let mut words = vec!["python3", "-c", FILTERED, "0", "unshare:1", STOCKADE];
    words.extend(args);
    context.other(&words)
}

fn can_filter(test: &str) -> bool {
    has(test, "tool:python3", &["python3", "-c", ""]) && can_landlock(test, 6)
}

fn can_landlock(test: &str, abi: u32) -> bool {
    let probe = format!(
        "import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(444, None, 0, 1) < {abi})"
    );
    has(test, &format!("landlock:{abi}"), &["python3", "-c", &probe])
}

#[test]
fn a_host_without_namespaces_runs_it_anyway_and_says_so_in_one_line() {
    if !can_filter("a_host_without_namespaces_runs_it_anyway_and_says_so_in_one_line") {
        return;
    }
    let context = Context::new();
    let words = [
        "run",
        "--report",
        "r.json",
        "--",
        "sh",
        "-c",
        "echo x > f; exit 3",
    ];
    let ran = refused(&context, &words).ends_with(3);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:#?}");
    assert!(ran.stderr.contains("using `landlock`"), "{ran:#?}");
    assert!(ran.stderr.contains("processes"), "{ran:#?}");
    assert!(context.project().join("f").exists());
    let report = fs::read(context.project().join("r.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["backend"], "landlock");
    for clause in report["enforcement"].as_array().unwrap() {
        let is_full = clause["enforcement"] == "full";
        assert_eq!(is_full, clause["gap"].is_null(), "{clause:#}");
    }
    let quiet = refused(&context, &["run", "-q", "--", "true"]).ends_with(0);
    assert_eq!(quiet.stderr, "");
    let doctor = refused(&context, &["doctor", "--json"]).json();
    assert_eq!(doctor["tier"], "landlock");
}

#[test]
fn what_asks_for_more_is_refused_before_anything_runs() {
    if !can_filter("what_asks_for_more_is_refused_before_anything_runs") {
        return;
    }
    let context = Context::new();
    for flags in [
        ["--backend", "native"],
        ["--level", "enhanced"],
        ["--require", "processes"],
        ["--require", "fs-read"],
    ] {
        let mut args = vec!["run"];
        args.extend(flags);
        args.extend(["--", "touch", "ran"]);
        let ran = refused(&context, &args).ends_with(125);
        assert!(!context.project().join("ran").exists(), "{ran:#?}");
    }
    let held = ["run", "--require", "fs-write", "--", "touch", "ran"];
    refused(&context, &held).ends_with(0);
    assert!(context.project().join("ran").exists());
    let both = [
        "run",
        "--backend",
        "landlock",
        "--level",
        "enhanced",
        "--",
        "true",
    ];
    let ran = context.stockade(both).ends_with(125);
    assert!(ran.stderr.contains("below the level"), "{ran:#?}");
}

#[test]
fn a_host_with_neither_refuses() {
    if !can_filter("a_host_with_neither_refuses") {
        return;
    }
    let context = Context::new();
    let denied = "unshare:1,landlock_create_ruleset:95";
    let argv = [
        "python3", "-c", FILTERED, "0", denied, STOCKADE, "run", "--", "touch", "ran",
    ];
    let ran = context.other(&argv).ends_with(125);
    assert!(ran.stderr.contains("no Landlock"), "{ran:#?}");
    assert!(!context.project().join("ran").exists());
}

/// Tries everything once, one word for each; runs where nothing outside may change.
const ATTEMPTS: &str = r#"
import ctypes, os, signal, sys
outside, victim = sys.argv[1], int(sys.argv[2])
def attempt(name, act):
    try:
        act()
        print(name, "ok")
    except OSError as error:
        print(name, os.strerror(error.errno))
def write(path):
    with open(path, "w") as file: file.write("x")
attempt("write", lambda: write("inside"))
attempt("write-outside", lambda: write(outside + "/new"))
attempt("truncate-outside", lambda: os.truncate(outside + "/kept", 0))
attempt("chmod-outside", lambda: os.chmod(outside + "/kept", 0o777))
attempt("times-outside", lambda: os.utime(outside + "/kept", (1, 1)))
attempt("remove-outside", lambda: os.unlink(outside + "/kept"))
attempt("read-denied", lambda: open("denied").read())
attempt("list-denied", lambda: os.listdir("closed"))
attempt("hook", lambda: (os.makedirs(".git/hooks", exist_ok=True), write(".git/hooks/pre-commit")))
os.mkdir("d")
attempt("rename-within", lambda: os.rename("inside", "moved"))
attempt("rename-across", lambda: os.rename("moved", "d/moved"))
attempt("temporary", lambda: write(os.environ["TMPDIR"] + "/t"))
attempt("tmp", lambda: write("/tmp/stockade-tiers-" + str(os.getpid())))
attempt("shared-memory", lambda: os.close(os.open("/dev/shm/stockade-tiers", os.O_CREAT | os.O_RDWR)))
attempt("signal-outside", lambda: os.kill(victim, 0))
attempt("look-outside", lambda: open(f"/proc/{victim}/environ", "rb").read())
child = os.fork()
if not child: signal.pause()
attempt("signal-inside", lambda: os.kill(child, signal.SIGKILL))
if not os.fork():
    os.setsid()
    if not os.fork():
        sys.stdout.flush()
        os.execv("/bin/sleep", ["sleep", "3600"])
    os._exit(0)
sys.stdout.flush()
os.mkdir(os.environ["TMPDIR"] + "/locked")
write(os.environ["TMPDIR"] + "/locked/file")
os.chmod(os.environ["TMPDIR"] + "/locked", 0)
"#;

/// The plan of a run in backend `landlock`, as it would be on a kernel with this ABI.
fn plan_at(context: &Context, abi: u32, argv: &[&str]) -> LinuxPlan {
    let mut flags = vec!["run", "--backend", "landlock", "--dry-run", "--json"];
    flags.extend(["--deny-read", "denied", "--deny-read", "closed", "--"]);
    flags.extend(argv);
    let ran = context.stockade(flags).ends_with(0);
    let plan: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut plan: LinuxPlan = serde_json::from_value(plan["linux"].clone()).unwrap();
    plan.landlock.as_mut().unwrap().abi = abi;
    let mediation = plan.mediation.as_mut().unwrap();
    mediation.abstract_sockets = abi >= 6;
    mediation.hide_processes = abi >= 6;
    plan
}

/// Every ABI refuses what the report of that ABI calls refused, and lets pass what it lets pass.
#[test]
fn each_landlock_abi_holds_what_it_promises() {
    if !can_landlock("each_landlock_abi_holds_what_it_promises", 6) {
        return;
    }
    for abi in 1..=7 {
        let context = Context::new();
        context.file("denied", "secret");
        context.file("closed/name", "secret");
        context.file(".git/HEAD", "ref: refs/heads/main\n");
        let outside = context.home();
        fs::write(outside.join("kept"), "kept").unwrap();
        let victim = std::process::id().to_string();
        let argv = [
            "python3",
            "-c",
            ATTEMPTS,
            outside.to_str().unwrap(),
            &victim,
        ];
        let plan = plan_at(&context, abi, &argv);
        let words = execute(&context, &plan);
        let got = |name: &str| {
            let line = words.lines().find_map(|line| line.strip_prefix(name));
            line.map_or("nothing", str::trim).to_owned()
        };
        for name in [
            "write ",
            "rename-within",
            "temporary",
            "shared-memory",
            "signal-inside",
        ] {
            assert_eq!(got(name), "ok", "ABI {abi}, {name}: {words}");
        }
        for name in [
            "write-outside",
            "truncate-outside",
            "chmod-outside",
            "times-outside",
            "remove-outside",
            "read-denied",
            "list-denied",
            "hook",
            "tmp",
            "look-outside",
        ] {
            let refused = ["Permission denied", "No such file or directory"];
            assert!(refused.contains(&&*got(name)), "ABI {abi}, {name}: {words}");
        }
        let across = if abi < 2 {
            "Invalid cross-device link"
        } else {
            "ok"
        };
        assert_eq!(got("rename-across"), across, "ABI {abi}: {words}");
        let signal = if abi < 6 {
            "ok"
        } else {
            "Operation not permitted"
        };
        assert_eq!(got("signal-outside"), signal, "ABI {abi}: {words}");
        assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
        for path in &plan.scratch {
            assert!(!path.as_path().exists(), "ABI {abi}: {path} is left");
        }
        assert!(
            !lives_in(&context.project()),
            "ABI {abi}: a process is left"
        );
    }
}

/// Executes a plan and gives what it printed.
fn execute(context: &Context, plan: &LinuxPlan) -> String {
    let output = context.home().join("output");
    let null = File::open("/dev/null").unwrap();
    let file = File::create(&output).unwrap();
    let standard = [null.as_fd(), file.as_fd(), file.as_fd()];
    let mut running = stockade_linux::spawn(
        plan,
        Builder::Program(Path::new(STOCKADE)),
        standard,
        &[],
        &mut |_| Ok(()),
    )
    .unwrap();
    let outcome = running.wait().unwrap();
    let words = fs::read_to_string(&output).unwrap();
    assert_eq!(outcome.status, Some(0), "{words}");
    words
}

/// Whether any process has this working directory.
fn lives_in(directory: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut places = processes.filter_map(|process| fs::read_link(process.path().join("cwd")).ok());
    places.any(|place| place == directory)
}
