//! `doctor` on machines that lack something: each lack is made for the test alone, inside
//! namespaces or behind a filter of its own.

use std::os::unix::fs::MetadataExt as _;

use std::path::Path;

use serde_json::Value;

use crate::context::{Context, Ran, STOCKADE, has};

/// Installs a filter that answers the listed calls with an error number, then executes the rest
/// of its arguments. With the flag 8 the filter has a listener, as a supervisor's would.
pub(crate) const FILTERED: &str = r#"
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
flags, denied, argv = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
arm = platform.machine() == "aarch64"
numbers = {"unshare": 97 if arm else 272, "landlock_create_ruleset": 444,
           "socket": 198 if arm else 41, "connect": 203 if arm else 42,
           "seccomp": 277 if arm else 317}
program = struct.pack("HBBI", 0x20, 0, 0, 0)
for pair in filter(None, denied.split(",")):
    name, errno = pair.split(":")
    program += struct.pack("HBBI", 0x15, 0, 1, numbers[name])
    program += struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | int(errno))
    if name == "unshare":
        # And clone(2) with CLONE_NEWUSER, as the filter of a container does.
        program += struct.pack("HBBI", 0x15, 0, 4, 220 if arm else 56)
        program += struct.pack("HBBI", 0x20, 0, 0, 16)
        program += struct.pack("HBBI", 0x45, 0, 1, 0x10000000)
        program += struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | int(errno))
        program += struct.pack("HBBI", 0x20, 0, 0, 0)
program += struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000)
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
libc.prctl(38, 1, 0, 0, 0)
program = Program(len(program) // 8, program)
listener = libc.syscall(277 if arm else 317, 1, flags, ctypes.byref(program))
assert listener >= 0, os.strerror(ctypes.get_errno())
# As long as somebody holds it, the supervisor lives.
if flags: os.set_inheritable(listener, True)
os.execv(argv[0], argv)
"#;

const EPERM: &str = "1";
const ENOSYS: &str = "38";
const EOPNOTSUPP: &str = "95";

fn behind_filter(context: &Context, flags: &str, denied: &str) -> Ran {
    context.other(&[
        "python3", "-c", FILTERED, flags, denied, STOCKADE, "doctor", "--json",
    ])
}

#[track_caller]
fn assert_lacks(check: &Value, status: &str, reason: &str) {
    assert_eq!(check["status"], status, "{check:#}");
    let gaps = check["gaps"].as_array().unwrap();
    let told = gaps
        .iter()
        .any(|gap| gap["reason"].as_str().unwrap().contains(reason) && gap["fix"].is_string());
    assert!(told, "no gap says `{reason}` with a fix: {check:#}");
}

#[test]
fn every_mechanism_is_reported() {
    let context = Context::new();
    let report = context.stockade(["doctor", "--json"]).json();
    for check in [
        "landlock",
        "user_namespaces",
        "seccomp",
        "cgroup",
        "overlay",
        "bwrap",
        "nsjail",
        "docker",
        "runsc",
    ] {
        let status = report[check]["status"].as_str().unwrap();
        assert!(["full", "partial", "none"].contains(&status), "{check}");
        if status != "full" {
            assert_ne!(report[check]["gaps"][0]["reason"], Value::Null, "{check}");
        }
    }
    let text = context.stockade(["doctor"]).stdout;
    assert!(
        text.contains("landlock") && text.contains("runsc"),
        "{text}"
    );
}

#[test]
fn this_machine_has_what_is_required() {
    let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
    let report = Context::new().stockade(["doctor", "--json"]).json();
    for need in required.split(',') {
        let check = match need {
            "userns" => "user_namespaces",
            "seccomp" => "seccomp",
            "cgroup/root" => "cgroup",
            "overlay" => "overlay",
            "tool:bwrap" => "bwrap",
            _ => {
                if let Some(abi) = need.strip_prefix("landlock:") {
                    let found = report["landlock"]["abi"].as_u64().unwrap();
                    assert!(found >= abi.parse().unwrap(), "{report:#}");
                }
                continue;
            }
        };
        assert_eq!(report[check]["status"], "full", "{report:#}");
    }
}

#[test]
fn a_namespace_limit_of_zero_is_named() {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" doctor --json";
    if !has(
        "a_namespace_limit_of_zero_is_named",
        "userns",
        &["unshare", "-r", "true"],
    ) {
        return;
    }
    let ran = Context::new().other(&["unshare", "-r", "sh", "-c", script, STOCKADE]);
    let report = ran.json();
    assert_lacks(
        &report["user_namespaces"],
        "none",
        "user.max_user_namespaces is 0",
    );
    assert_lacks(&report["overlay"], "none", "user.max_user_namespaces is 0");
    assert_eq!(report["tier"], "landlock");
    assert_eq!(ran.code, 0);
}

#[test]
fn a_filter_on_namespaces_is_named() {
    if !has(
        "a_filter_on_namespaces_is_named",
        "tool:python3",
        &["python3", "-c", "1"],
    ) {
        return;
    }
    let ran = behind_filter(&Context::new(), "0", &format!("unshare:{EPERM}"));
    let report = ran.json();
    assert_lacks(&report["user_namespaces"], "none", "seccomp filter");
    assert_eq!(report["tier"], "landlock");
}

#[test]
fn without_any_tier_the_answer_is_no() {
    if !has(
        "without_any_tier_the_answer_is_no",
        "tool:python3",
        &["python3", "-c", "1"],
    ) {
        return;
    }
    let denied = format!("unshare:{EPERM},landlock_create_ruleset:{ENOSYS}");
    let ran = behind_filter(&Context::new(), "0", &denied).ends_with(1);
    let report = ran.json();
    assert_lacks(&report["landlock"], "none", "seccomp filter hides it");
    assert_eq!(report["landlock"]["abi"], Value::Null);
    assert_eq!(report["tier"], Value::Null);
}

#[test]
fn landlock_that_was_not_enabled_is_named() {
    if !has(
        "landlock_that_was_not_enabled_is_named",
        "tool:python3",
        &["python3", "-c", "1"],
    ) {
        return;
    }
    let denied = format!("landlock_create_ruleset:{EOPNOTSUPP}");
    let report = behind_filter(&Context::new(), "0", &denied).json();
    assert_eq!(report["landlock"]["status"], "none", "{report:#}");
    let fix = report["landlock"]["gaps"][0]["fix"].as_str().unwrap();
    assert!(fix.contains("lsm="), "{fix}");
}

#[test]
fn another_supervisor_is_named() {
    if !has(
        "another_supervisor_is_named",
        "tool:python3",
        &["python3", "-c", "1"],
    ) {
        return;
    }
    let ran = behind_filter(&Context::new(), "8", "").ends_with(1);
    let report = ran.json();
    assert_lacks(&report["seccomp"], "partial", "another supervisor");
    assert_eq!(report["seccomp"]["listener"], false);
    assert_eq!(report["tier"], Value::Null, "no tier does without");
}

#[test]
fn inside_a_sandbox_no_other_one_is_promised() {
    let context = Context::new();
    // Shown, because the checkout may lie below /tmp.
    let shown = ["run", "--read", STOCKADE, "--", STOCKADE];
    let inside = |words: &[&str]| context.stockade([&shown[..], words].concat());
    inside(&["run", "--", "true"]).ends_with(125);
    let ran = inside(&["doctor", "--json"]);
    let report = ran.ends_with(1).json();
    assert_eq!(report["tier"], Value::Null, "{report:#}");
    assert_eq!(report["levels"][1]["backend"], Value::Null, "{report:#}");
}

#[test]
fn a_masked_proc_is_named() {
    let attempt = [
        "unshare",
        "-rm",
        "mount",
        "--bind",
        "/dev/null",
        "/proc/version",
    ];
    if !has("a_masked_proc_is_named", "userns", &attempt) {
        return;
    }
    let script = "mount --bind /dev/null /proc/version && exec \"$0\" doctor --json";
    let report = Context::new()
        .other(&["unshare", "-rm", "sh", "-c", script, STOCKADE])
        .json();
    assert_lacks(&report["user_namespaces"], "partial", "masked");
    assert_eq!(report["tier"], "landlock", "what a run would get");
}

#[test]
fn tools_are_not_taken_from_relative_path_entries() {
    use std::os::unix::fs::PermissionsExt;
    let mut context = Context::new();
    let fake = context.file("bwrap", "#!/bin/sh\nexit 0\n");
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    context.set("PATH", ".:");
    let report = context.stockade(["doctor", "--json"]).json();
    assert_eq!(report["bwrap"]["path"], Value::Null);
}

#[test]
fn docker_over_the_network_is_not_used() {
    let mut context = Context::new();
    context.set("DOCKER_HOST", "tcp://192.0.2.1:2375");
    let report = context.stockade(["doctor", "--json"]).json();
    assert_lacks(&report["docker"], "none", "only Unix sockets");
}

#[test]
fn nothing_is_left_behind() {
    let context = Context::new();
    let mut doctor = context
        .command(["doctor"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let group = format!("stockade-probe-{}", doctor.id());
    doctor.wait().unwrap();
    for root in ["", "cpu", "memory", "pids", "unified"] {
        let left = Path::new("/sys/fs/cgroup").join(root).join(&group);
        assert!(!left.exists(), "{}", left.display());
    }
    let left: Vec<_> = std::fs::read_dir(context.project()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn trying_does_not_give_the_null_device_away() {
    let owner = || {
        let seen = std::fs::metadata("/dev/null").unwrap();
        (seen.uid(), seen.gid())
    };
    let before = owner();
    Context::new().stockade(["doctor"]);
    assert_eq!(owner(), before);
}
