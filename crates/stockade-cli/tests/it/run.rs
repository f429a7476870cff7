//! `run`: what the caller sees of a command.

use std::path::Path;
use std::process::Command;

use crate::context::{Context, STOCKADE, has, run};

fn bare<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--danger-full-access", "--"];
    args.extend(words);
    args
}

/// Rows L01 to L03.
#[test]
fn a_command_ends_as_a_shell_would_say() {
    let context = Context::new();
    context.file("plain", "no program\n");
    context
        .stockade(bare(&["sh", "-c", "exit 42"]))
        .ends_with(42);
    context
        .stockade(bare(&["sh", "-c", "kill -TERM $$"]))
        .ends_with(143);
    context
        .stockade(bare(&["sh", "-c", "kill -KILL $$"]))
        .ends_with(137);
    let missing = context.stockade(bare(&["no-such-program"])).ends_with(127);
    assert!(missing.stderr.contains("no-such-program"), "{missing:#?}");
    let plain = context.stockade(bare(&["./plain"])).ends_with(126);
    assert!(plain.stderr.contains("./plain"), "{plain:#?}");
    // A directory can't be executed, which `execvp(3)` calls a missing permission.
    std::fs::create_dir(context.project().join("no-such")).unwrap();
    let path = format!("PATH={}:/usr/bin", context.project().display());
    let nowhere = [
        "run",
        "--danger-full-access",
        "--env",
        &path,
        "--",
        "no-such",
    ];
    context.stockade(nowhere).ends_with(127);
}

#[test]
fn a_command_needs_no_dashes() {
    let context = Context::new();
    let args = ["run", "--read-only", "printf", "%s|", "--json", "-v"];
    assert_eq!(context.stockade(args).ends_with(0).stdout, "--json|-v|");
    let mistyped = context.stockade(["run", "--nonsense", "ls"]).ends_with(2);
    assert!(mistyped.stderr.contains("--nonsense"), "{mistyped:#?}");
}

#[test]
fn without_a_command_a_terminal_gets_a_shell() {
    let context = Context::new();
    let refused = context.stockade(["run", "-q"]).ends_with(2);
    let name = "without_a_command_a_terminal_gets_a_shell";
    if !has(
        name,
        "tool:script",
        &["script", "-qec", "true", "/dev/null"],
    ) {
        return;
    }
    assert!(refused.stderr.contains("no command"), "{refused:#?}");
    let typed = context.file("typed", "echo $((6 * 7))-$PPID\nexit 7\n");
    for (word, shell) in [("shell", "/bin/sh"), ("run", "/bin/missing")] {
        let mut command = Command::new("script");
        context.place(&mut command);
        let line = format!("env SHELL={shell} {STOCKADE} {word} -q");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.env("SHELL", "/bin/sh");
        command.stdin(std::fs::File::open(&typed).unwrap());
        let ran = run(command).ends_with(7);
        assert!(ran.stdout.contains("42-"), "{ran:#?}");
    }
}

#[test]
fn the_command_gets_its_arguments_and_streams_untouched() {
    let context = Context::new();
    let ran = context
        .stockade(bare(&["printf", "%s|", "a b", "", "--json", "--"]))
        .ends_with(0);
    assert_eq!(ran.stdout, "a b||--json|--|");
    let ran = context
        .stockade(bare(&["sh", "-c", "echo talk >&2"]))
        .ends_with(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", "talk\n"));
}

/// The command has run: 125 would say that it has not.
#[test]
fn a_report_that_can_not_be_written_is_told_after_the_run() {
    let context = Context::new();
    for (code, told) in [(0, 1), (7, 7)] {
        let script = format!("echo x >> made; echo x > /usr/no; exit {code}");
        let words = [
            "run",
            "--explain",
            "--report",
            "/dev/full",
            "--",
            "sh",
            "-c",
            &script,
        ];
        let ran = context.stockade(words).ends_with(told);
        assert!(ran.stderr.contains("can't write the report"), "{ran:#?}");
        assert!(ran.stderr.contains("refused: "), "{ran:#?}");
    }
    let made = std::fs::read_to_string(context.project().join("made")).unwrap();
    assert_eq!(made, "x\nx\n");
    // The control: what fails before has the code that says so.
    let missing = ["run", "--report", "missing/report", "--", "touch", "begun"];
    context.stockade(missing).ends_with(125);
    assert!(!context.project().join("begun").exists());
}

#[test]
fn the_directory_can_be_chosen() {
    let context = Context::new();
    std::fs::create_dir(context.project().join("sub")).unwrap();
    let args = [
        "run",
        "--danger-full-access",
        "-C",
        "sub",
        "--",
        "pwd",
        "-P",
    ];
    let ran = context.stockade(args).ends_with(0);
    let sub = context.project().join("sub");
    assert_eq!(ran.stdout.trim_end(), sub.to_str().unwrap());
    let args = ["run", "--danger-full-access", "-C", "nowhere", "--", "true"];
    let refused = context.stockade(args).ends_with(125);
    assert!(refused.stderr.contains("nowhere"), "{refused:#?}");
}

/// Row L04.
#[test]
fn what_could_not_be_set_up_is_told_in_json() {
    let context = Context::new();
    let args = ["run", "--json", "-C", "nowhere", "--", "true"];
    let error = context.stockade(args).ends_with(125).json_error();
    assert_eq!(error["code"], 125);
    assert!(error["message"].as_str().unwrap().contains("nowhere"));
    assert!(error["hint"].is_string());
    let args = ["run", "--json", "--no-such-flag", "--", "true"];
    let error = context.stockade(args).ends_with(2).json_error();
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("--no-such-flag")
    );
}

#[test]
fn a_vanished_directory_is_named() {
    let context = Context::new();
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" run -- true";
    let ran = context
        .other(&["sh", "-c", script, crate::context::STOCKADE])
        .ends_with(125);
    assert!(ran.stderr.contains("current directory"), "{ran:#?}");
    assert!(ran.stderr.contains("hint:"), "{ran:#?}");
}

#[test]
fn a_dry_run_starts_nothing() {
    let context = Context::new();
    for base in ["--workspace-write", "--danger-full-access"] {
        let args = ["run", base, "--dry-run", "--", "touch", "ran"];
        let text = context.stockade(args).ends_with(0).stdout;
        assert!(text.contains("touch ran"), "{text}");
        let json = context.stockade(["run", base, "--dry-run", "--json", "--", "touch", "ran"]);
        assert!(json.json()["backend"].is_string());
        assert!(!context.project().join("ran").exists(), "{base}");
    }
}

/// Nothing watches an unconfined command: a limit that nobody keeps would be a lie.
#[test]
fn full_access_refuses_what_it_would_ignore() {
    let context = Context::new();
    for flags in [
        &["--timeout", "1s"][..],
        &["--limit", "mem=1M"],
        &["--require", "limits"],
        &["--report", "r.json"],
        &["--overlay"],
    ] {
        let mut args = vec!["run", "--danger-full-access"];
        args.extend(flags);
        args.extend(["--", "touch", "ran"]);
        let ran = context.stockade(args).ends_with(125);
        assert!(ran.stderr.contains(flags[0]), "{ran:#?}");
        assert!(!context.project().join("ran").exists(), "{flags:?}");
    }
}

#[test]
fn the_whole_host_can_be_denied_and_parts_of_it_reopened() {
    let context = Context::new();
    let secret = context.home().join("secret");
    std::fs::write(&secret, "it is told").unwrap();
    let script = format!("cat '{}'; cat /etc/passwd; echo alive", secret.display());
    let bare = context.other(&["sh", "-c", &script]).ends_with(0);
    assert!(bare.stdout.contains("it is told") && bare.stdout.contains("root:"));
    for backend in ["native", "landlock"] {
        let args = [
            "run",
            "--backend",
            backend,
            "--deny-read",
            "/",
            "--read",
            "/usr",
            "--read",
            "/bin",
            "--read",
            "/lib",
            "--read",
            "/lib64",
            "--",
            "sh",
            "-c",
            &script,
        ];
        let ran = context.stockade(args).ends_with(0);
        assert_eq!(ran.stdout, "alive\n", "{backend}: {ran:#?}");
    }
}

#[test]
fn a_grant_of_what_does_not_exist_is_told() {
    let context = Context::new();
    let _listener = std::os::unix::net::UnixListener::bind(context.project().join("here")).unwrap();
    context.file("file", "");
    for (flag, here) in [("--write", "file"), ("--unix", "here")] {
        let args = ["run", flag, here, "--", "true"];
        let ran = context.stockade(args).ends_with(0);
        assert!(!ran.stderr.contains("does not exist"), "{flag}: {ran:#?}");
        let args = ["run", flag, "nowhere", "--", "true"];
        let ran = context.stockade(args).ends_with(0);
        let told = "nowhere` does not exist; the grant has no effect";
        assert_eq!(ran.stderr.matches(told).count(), 1, "{flag}: {ran:#?}");
        let args = ["run", "-q", flag, "nowhere", "--", "true"];
        let ran = context.stockade(args).ends_with(0);
        assert_eq!(ran.stderr, "", "{flag}");
    }
}

#[test]
fn a_grant_of_the_whole_host_is_refused() {
    let context = Context::new();
    let args = ["run", "--write", "/", "--", "touch", "ran"];
    let ran = context.stockade(args).ends_with(125);
    assert!(ran.stderr.contains("name the directories"), "{ran:#?}");
    assert!(!context.project().join("ran").exists());
}

/// What README says that programs notice.
#[test]
fn little_differs_inside() {
    let context = Context::new();
    let script = "import ctypes, errno, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
def call(*words): return libc.syscall(*words) < 0 and errno.errorcode[ctypes.get_errno()]
def pair(kind):
    try: socket.socketpair(socket.AF_UNIX, kind)
    except OSError as error: return errno.errorcode[error.errno]
beneath = struct.pack('QQQ', 0, 0, 8)
print(call(437, -100, b'.', beneath, 24), call(425, 1, bytes(120)), libc.unshare(0x10000000))
print(pair(socket.SOCK_DGRAM), pair(socket.SOCK_STREAM), pair(socket.SOCK_SEQPACKET))";
    let ran = context.stockade(["run", "--", "python3", "-c", script]);
    let ran = ran.ends_with(0);
    assert_eq!(ran.stdout, "ENOSYS EPERM -1\nEPERM None None\n", "{ran:#?}");
}

/// The mediator works for everybody inside: a run must not end because its time is over.
#[test]
fn the_commands_cpu_time_is_not_the_mediators() {
    let context = Context::new();
    let files = ["/proc/self/limits", "/proc/1/limits"];
    let args = ["run", "--limit", "cpu=7s", "--", "grep", "-h", "cpu time"];
    let ran = context.stockade(args.into_iter().chain(files)).ends_with(0);
    let soft = ran
        .stdout
        .lines()
        .map(|line| line.split_whitespace().nth(3));
    let soft: Vec<_> = soft.collect();
    assert_eq!(soft, [Some("7"), Some("unlimited")], "{ran:#?}");
}

#[test]
fn a_sandbox_in_a_sandbox_is_a_clear_error() {
    let context = Context::new();
    let marker = context.project().join("ran");
    let inner = format!("'{STOCKADE}' run -- touch ran; echo \"ended $?\"");
    // Shown, because the checkout may lie below /tmp.
    let ran = context.stockade(["run", "--read", STOCKADE, "--", "sh", "-c", &inner]);
    let ran = ran.ends_with(0);
    assert_eq!(ran.stdout, "ended 125\n", "{ran:#?}");
    let reason = "a sandbox around this one listens to system calls already";
    assert!(ran.stderr.contains(reason), "{ran:#?}");
    assert!(ran.stderr.contains("hint: --best-effort"), "{ran:#?}");
    assert!(!marker.exists(), "{ran:#?}");
}

/// Row B04: what confines the next run can't be changed by this one.
#[test]
fn the_program_in_the_project_stays_as_it_is() {
    let context = Context::new();
    let bin = context.project().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = bin.join("stockade");
    let attacks = "echo x >> bin/stockade; chmod 777 bin/stockade; mv bin/stockade y; rm -f bin/stockade; \
                   mv bin b; mkdir -p bin; cp /bin/true bin/stockade; ln -f /bin/true bin/stockade; true";
    std::fs::copy(STOCKADE, &program).unwrap();
    // The control: without a sandbox another program takes its place.
    context.stockade(bare(&["sh", "-c", attacks])).ends_with(0);
    assert_ne!(read(&program), read(STOCKADE));

    std::fs::remove_dir_all(&bin).unwrap();
    std::fs::create_dir(&bin).unwrap();
    std::fs::copy(STOCKADE, &program).unwrap();
    let script = format!("{attacks}; echo made > bin/other");
    let this = program.to_str().unwrap();
    let ran = context.other(&[this, "run", "--", "sh", "-c", &script]);
    let ran = ran.ends_with(0);
    assert_eq!(read(&program), read(STOCKADE), "{ran:#?}");
    assert_eq!(read(bin.join("other")), b"made\n");
    let explained = context.other(&[this, "explain", "bin/stockade"]);
    assert!(
        explained.stdout.contains("the program that confines"),
        "{explained:#?}"
    );
}

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    std::fs::read(path).unwrap()
}
