//! Sessions: many commands in one sandbox.

use std::fs;
use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stockade::{
    Ending, Error, RunError, Sandbox, SandboxPolicy, Session, SessionCommand, Stdio, Subject,
    UsageScope,
};
use stockade_linux::{SpawnError, Stage};

use crate::child::Part;
use crate::session_refusals::{own_connections, own_names};
use crate::{Test, child, dir};

pub(crate) const TESTS: &[Test] = &[
    ("a_background_process_lives_on", background),
    ("a_command_does_not_see_other_descriptors", descriptors),
    ("a_command_has_its_own_ending_and_denials", own_denials),
    ("a_command_has_its_own_refused_connections", own_connections),
    ("a_command_has_its_own_refused_names", own_names),
    ("a_command_inherits_no_signals", signal_state),
    ("a_large_command_line_arrives", large_order),
    ("a_daemon_ends_with_its_command_in_a_control_group", daemon),
    ("a_long_exec_is_killed_by_its_own_time_limit", timeout),
    ("a_missing_program_is_an_error", missing_program),
    ("a_session_with_limits_adopts_hosts", adopted),
    ("a_session_ends_everything_when_it_closes", close_ends_all),
    ("a_session_ends_when_its_owner_is_killed", owner_killed),
    ("a_thousand_commands_leave_nothing", no_growth),
    ("a_terminal_is_the_commands_own", terminal),
    (
        "a_starting_command_can_not_be_looked_into",
        starting_is_closed,
    ),
    ("commands_can_not_signal_the_supervisor", supervisor_hidden),
    ("commands_run_at_once", at_once),
    ("commands_share_the_sandbox", shared),
    ("a_snapshot_is_returned_to_and_forked", snapshots),
    (
        "directory_and_environment_are_the_commands_own",
        own_surroundings,
    ),
    ("killing_a_command_spares_the_others", kill_one),
    ("other_backends_have_no_sessions", other_backends),
    ("the_policy_holds", policy_holds),
    ("usage_is_the_commands_own", own_usage),
];

pub(crate) const CHILDREN: &[Part] = &[("session_growth", grow), ("session_owner", owner)];

pub(crate) fn workspace(cwd: &Path) -> Sandbox {
    let policy = SandboxPolicy::workspace_write(vec![]);
    Sandbox::builder()
        .policy(policy)
        .workspace(cwd)
        .build()
        .unwrap()
}

pub(crate) fn shell<'a>(session: &'a Session, script: &str) -> SessionCommand<'a> {
    let mut command = session.command("/bin/sh");
    command.args(["-c", script]).stdin(Stdio::Null);
    command
}

/// What a script prints, without the last line break.
#[track_caller]
fn printed(session: &Session, script: &str) -> String {
    let output = shell(session, script).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.finished.status_code(), 0, "{script}: {errors}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

fn shared() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    for _ in 0..2 {
        let finished = session.command("/bin/true").status().unwrap();
        assert_eq!(finished.report.ending, Ending::Exited(0));
    }
    printed(&session, "echo private > /tmp/kept; echo shared > made");
    assert_eq!(printed(&session, "cat /tmp/kept made"), "private\nshared");
    assert_eq!(
        fs::read_to_string(place.path().join("made")).unwrap(),
        "shared\n"
    );
    assert!(!Path::new("/tmp/kept").exists());
    session.close().unwrap();
}

fn policy_holds() {
    let (inside, outside) = (dir(), dir());
    let target = outside.path().join("t");
    let session = workspace(inside.path()).open().unwrap();
    let script = format!("echo x > {}", target.display());
    let output = shell(&session, &script).output().unwrap();
    assert_ne!(output.finished.status_code(), 0);
    assert!(!target.exists());
    // The control: nothing else keeps this user from doing it.
    let control = std::process::Command::new("/bin/sh")
        .args(["-c", &script])
        .status();
    assert!(control.unwrap().success() && target.exists());
}

fn own_denials() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let mut quiet = shell(&session, "read line; exit 3")
        .stdin(Stdio::Piped)
        .spawn()
        .unwrap();
    fs::create_dir_all(place.path().join(".git/hooks")).unwrap();
    let loud = shell(&session, "sh -c 'echo x > .git/hooks/pre-commit'; exit 4")
        .output()
        .unwrap();
    assert_eq!(loud.finished.report.ending, Ending::Exited(4));
    let denied: Vec<_> = loud
        .finished
        .report
        .denials
        .iter()
        .map(|one| one.subject.clone())
        .collect();
    assert_eq!(
        denied,
        [Subject::Path(
            place
                .path()
                .canonicalize()
                .unwrap()
                .join(".git/hooks/pre-commit")
        )]
    );
    let again = shell(&session, "echo x > .git/hooks/pre-commit")
        .output()
        .unwrap();
    assert_eq!(
        again.finished.report.denials.len(),
        1,
        "each command hears of its own"
    );
    quiet.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let quiet = quiet.wait().unwrap();
    assert_eq!(quiet.report.ending, Ending::Exited(3));
    assert!(
        quiet.report.denials.is_empty(),
        "{:?}",
        quiet.report.denials
    );
}

fn at_once() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let start = |_| {
        shell(&session, "read line; exit $line")
            .stdin(Stdio::Piped)
            .spawn()
            .unwrap()
    };
    let mut children: Vec<_> = (0..20).map(start).collect();
    for (code, child) in children.iter_mut().enumerate().rev() {
        let line = format!("{code}\n");
        child
            .stdin
            .take()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
        assert_eq!(
            child.wait().unwrap().status_code(),
            i32::try_from(code).unwrap()
        );
    }
    std::thread::scope(|scope| {
        for code in 0..8 {
            let session = &session;
            scope.spawn(move || {
                for _ in 0..10 {
                    let finished = shell(session, &format!("exit {code}")).status().unwrap();
                    assert_eq!(finished.status_code(), code);
                }
            });
        }
    });
}

fn background() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let pid = printed(&session, "sleep 1000 > /dev/null 2>&1 & echo $!");
    assert_eq!(
        printed(&session, &format!("kill -0 {pid} && echo alive")),
        "alive"
    );
    // A process that holds the pipe open does not hold up whoever collects the output.
    let begin = Instant::now();
    let other = printed(&session, "sleep 1000 & echo $!");
    assert!(begin.elapsed() < Duration::from_secs(60));
    printed(&session, &format!("kill {pid} {other}"));
}

fn own_surroundings() {
    let place = dir();
    fs::create_dir(place.path().join("sub")).unwrap();
    let session = workspace(place.path()).open().unwrap();
    let show = "pwd; echo $WORD; umask";
    let output = shell(&session, show)
        .current_dir("sub")
        .env("WORD", "one two")
        .output()
        .unwrap();
    let sub = place.path().canonicalize().unwrap().join("sub");
    let umask = printed(&session, "umask");
    let expected = format!("{}\none two\n{umask}\n", sub.display());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    printed(&session, "cd sub; umask 077; export WORD=three");
    let root = place.path().canonicalize().unwrap();
    assert_eq!(
        printed(&session, show),
        format!("{}\n\n{umask}", root.display())
    );
    match shell(&session, "true").current_dir("nowhere").status() {
        Err(Error::Run(RunError::Spawn(SpawnError::Stage { stage, .. }))) => {
            assert_eq!(stage, Stage::WorkingDirectory);
        }
        other => panic!("{other:?}"),
    }
}

fn large_order() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let words = vec!["x".repeat(100_000); 5];
    let mut count = session.command("/bin/sh");
    count.args(["-c", "echo $#", "sh"]).args(&words);
    let output = count.stdin(Stdio::Null).output().unwrap();
    assert_eq!(output.stdout, b"5\n");
}

fn missing_program() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    for (program, stage) in [
        ("no-such-program", Stage::Find),
        ("/etc/passwd", Stage::Execute),
    ] {
        match session.command(program).status() {
            Err(Error::Run(RunError::Spawn(SpawnError::Stage {
                stage: found,
                subject,
                ..
            }))) => {
                assert_eq!(
                    (found, subject.unwrap().as_path()),
                    (stage, Path::new(program))
                );
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(printed(&session, "echo fine"), "fine");
}

fn descriptors() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let mut others: Vec<_> = (0..4)
        .map(|_| {
            shell(&session, "read line")
                .stdin(Stdio::Piped)
                .spawn()
                .unwrap()
        })
        .collect();
    // The mediator is busy meanwhile, and opens and closes descriptors of its own.
    let busy = "while true; do echo x > busy; rm busy; done";
    let mut busy = shell(&session, busy).spawn().unwrap();
    for _ in 0..50 {
        let list = "for fd in /proc/self/fd/*; do echo ${fd##*/}; done";
        // The shell opens the directory itself while it expands the pattern.
        let seen = printed(&session, list);
        let numbers: Vec<&str> = seen.lines().filter(|line| !line.contains('*')).collect();
        assert!(
            numbers.starts_with(&["0", "1", "2"]) && numbers.len() <= 4,
            "{seen}"
        );
        let sockets = printed(&session, "ls -l /proc/self/fd | grep -c socket: || true");
        assert_eq!(sockets, "0");
    }
    busy.kill();
    assert_eq!(busy.wait().unwrap().report.ending, Ending::Killed);
    others.iter_mut().for_each(stockade::Child::kill);
}

fn signal_state() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    // This process ignores SIGPIPE, as programs in Rust do; the supervisor blocks SIGCHLD.
    let state = printed(&session, "grep -E '^Sig(Blk|Ign)' /proc/self/status");
    for line in state.lines() {
        let set = line.split_ascii_whitespace().nth(1).unwrap();
        let set = u64::from_str_radix(set, 16).unwrap();
        // The C library keeps those above 31 for itself.
        assert_eq!(set & 0x7fff_ffff, 0, "{state}");
    }
    // The command leads its session and its process group.
    let ids = printed(
        &session,
        "read -r pid c s ppid pgrp sid rest < /proc/$$/stat; echo $pid $pgrp $sid $ppid",
    );
    let ids: Vec<&str> = ids.split(' ').collect();
    assert!(
        ids[0] == ids[1] && ids[1] == ids[2] && ids[3] == "0",
        "{ids:?}"
    );
}

fn timeout() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let mut other = shell(&session, "read line")
        .stdin(Stdio::Piped)
        .spawn()
        .unwrap();
    let limit = Duration::from_millis(200);
    let script = "sh -c 'sleep 1000' & echo $!; trap '' TERM; sleep 1000";
    let late = shell(&session, script).timeout(limit).output().unwrap();
    assert_eq!(late.finished.report.ending, Ending::TimedOut);
    let child = String::from_utf8(late.stdout).unwrap();
    let gone = format!("kill -0 {} 2>/dev/null || echo gone", child.trim());
    assert_eq!(printed(&session, &gone), "gone");
    drop(other.stdin.take());
    assert_eq!(other.wait().unwrap().report.ending, Ending::Exited(1));
}

/// A session whose limit of processes is held by a control group; `None` if there can be none.
fn grouped(cwd: &Path) -> Option<Session> {
    let mut builder = Sandbox::builder();
    builder.policy(SandboxPolicy::workspace_write(vec![]));
    builder.workspace(cwd).limit("pids=200").best_effort();
    let session = builder.build().unwrap().open().unwrap();
    let is_grouped = session.plan().linux.cgroup.is_some();
    // Root can make groups, whatever else is missing.
    assert!(is_grouped || !rustix::process::geteuid().is_root());
    is_grouped.then_some(session)
}

/// Leaves a process without parents in a session of its own, prints its id, and waits for ever.
const DAEMON: &str = "(setsid sh -c 'echo $$; exec sleep 1000' &); sleep 1000";

fn daemon() {
    let place = dir();
    let run = |session: &Session| {
        let mut other = shell(session, "sleep 1000 & echo $!; wait");
        let mut other = other.stdout(Stdio::Piped).spawn().unwrap();
        let mut pid = [0; 16];
        let length = other.stdout.as_mut().unwrap().read(&mut pid).unwrap();
        let spared = String::from_utf8_lossy(&pid[..length]).trim().to_owned();
        let limit = Duration::from_secs(3);
        let late = shell(session, DAEMON).timeout(limit).output().unwrap();
        assert_eq!(late.finished.report.ending, Ending::TimedOut);
        let daemon = String::from_utf8(late.stdout).unwrap();
        let look = format!(
            "kill -0 {spared} && echo spared; kill -0 {} 2>/dev/null && echo left; true",
            daemon.trim()
        );
        (printed(session, &look), other)
    };
    // The control: without a group nothing ties the process to its command.
    let (seen, _other) = run(&workspace(place.path()).open().unwrap());
    assert_eq!(seen, "spared\nleft");
    if let Some(session) = grouped(place.path()) {
        let (seen, _other) = run(&session);
        assert_eq!(seen, "spared");
    }
}

/// Leaves a process without parents that counts and prints what it used, and waits for it.
const BUSY: &str =
    "(setsid sh -c 'i=0; while test $i -lt 300000; do i=$((i+1)); done; times' &) | cat";

fn adopted() {
    let place = dir();
    let sandbox = |hosts: &[&str]| {
        let mut builder = Sandbox::builder();
        builder.policy(SandboxPolicy::workspace_write(vec![]));
        builder
            .workspace(place.path())
            .limit("pids=200")
            .best_effort();
        for host in hosts {
            builder.allow(host);
        }
        builder.build().unwrap()
    };
    let session = sandbox(&["one.test"]).open().unwrap();
    let wider = sandbox(&["one.test", "two.test"]);
    assert!(session.adopt(&wider).unwrap().is_some());
}

fn own_usage() {
    let place = dir();
    let busy = |session: &Session| {
        let mut quiet = shell(session, "read line").stdin(Stdio::Piped).spawn();
        let quiet = quiet.as_mut().unwrap();
        let busy = shell(session, BUSY).output().unwrap();
        drop(quiet.stdin.take());
        let quiet = quiet.wait().unwrap().report.usage;
        let text = String::from_utf8(busy.stdout).unwrap();
        // "0m1.230000s 0m0.010000s", of the shell itself and of its children.
        let time = text.split('s').next().unwrap();
        let (minutes, seconds) = time.split_once('m').unwrap();
        let seconds = seconds.parse::<f64>().unwrap() + 60.0 * minutes.parse::<f64>().unwrap();
        let used = Duration::from_secs_f64(seconds);
        (busy.finished.report.usage, quiet, used)
    };
    let cpu = |usage: stockade::UsageReport| Duration::from_micros(usage.cpu_micros);
    let (all, quiet, used) = busy(&workspace(place.path()).open().unwrap());
    assert_eq!([all.scope, quiet.scope], [UsageScope::Waited; 2]);
    assert!(cpu(all) < used, "{all:?} {used:?}");
    if let Some(session) = grouped(place.path()) {
        let (all, quiet, used) = busy(&session);
        assert_eq!([all.scope, quiet.scope], [UsageScope::All; 2]);
        // The shell's clock may have ticks of 10 ms.
        let tick = Duration::from_millis(10);
        assert!(cpu(all) + tick >= used, "{all:?} {used:?}");
        assert!(cpu(quiet) < used, "{quiet:?} {used:?}");
    }
}

fn kill_one() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let script = "sh -c 'sleep 1000 & echo $!; wait' & wait";
    let mut doomed = shell(&session, script)
        .stdout(Stdio::Piped)
        .spawn()
        .unwrap();
    let mut spared = shell(&session, "read line; exit 7")
        .stdin(Stdio::Piped)
        .spawn()
        .unwrap();
    let mut text = [0; 16];
    let length = doomed.stdout.as_mut().unwrap().read(&mut text).unwrap();
    let grandchild = std::str::from_utf8(&text[..length]).unwrap().trim();
    drop(doomed);
    let gone = format!("kill -0 {grandchild} 2>/dev/null || echo gone");
    assert_eq!(printed(&session, &gone), "gone");
    spared.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(spared.wait().unwrap().status_code(), 7);
}

/// The processes of this user whose command line has this word.
fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(word)).collect()
}

/// Waits for something that happens in a moment.
#[track_caller]
fn await_that(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// A number of seconds that nothing else sleeps.
fn own_seconds() -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("1{:07}{count:02}", std::process::id())
}

fn close_ends_all() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let seconds = own_seconds();
    let daemon = format!("setsid setsid sleep {seconds} > /dev/null 2>&1 & sleep {seconds} &");
    printed(&session, &format!("({daemon}) > /dev/null 2>&1; echo"));
    let _child = shell(&session, &format!("exec sleep {seconds}"))
        .spawn()
        .unwrap();
    let word = format!("sleep\0{seconds}");
    await_that("the processes did not start", || {
        let sleeping = processes_with(&word);
        sleeping
            .iter()
            .filter(|line| line.starts_with("sleep"))
            .count()
            == 3
    });
    session.close().unwrap();
    assert_eq!(processes_with(&seconds), [""; 0]);
}

fn owner_killed() {
    let place = dir();
    let seconds = own_seconds();
    fs::write(place.path().join("seconds"), &seconds).unwrap();
    let mut owner = child::command("session_owner", place.path());
    let mut owner = owner.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut ready = [0; 6];
    owner
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut ready)
        .unwrap();
    let word = format!("sleep\0{seconds}");
    await_that("nothing sleeps", || !processes_with(&word).is_empty());
    owner.kill().unwrap();
    owner.wait().unwrap();
    await_that("something sleeps on", || {
        processes_with(&seconds).is_empty()
    });
}

/// As the owner of a session that is about to be killed.
fn owner(place: &Path) {
    let session = workspace(place).open().unwrap();
    let script = "sleep $(cat seconds) & echo ready; wait";
    let mut child = shell(&session, script).spawn().unwrap();
    child.wait().unwrap();
}

fn no_growth() {
    // Other tests open descriptors in this process.
    child::run("session_growth", dir().path());
}

fn grow(place: &Path) {
    let session = workspace(place).open().unwrap();
    let run = |count: usize| {
        for _ in 0..count {
            assert_eq!(
                session.command("/bin/true").status().unwrap().status_code(),
                0
            );
        }
    };
    let supervisor = supervisor_of(&session);
    let state = || {
        // Threads that keep time limits end a moment after their commands.
        await_that("threads go on", || {
            fs::read_dir("/proc/self/task").unwrap().count() == 1
        });
        let own = fs::read_dir("/proc/self/fd").unwrap().count();
        let its = fs::read_dir(format!("/proc/{supervisor}/fd")).map(Iterator::count);
        let memory = fs::read_to_string(format!("/proc/{supervisor}/statm")).unwrap();
        let pages: u64 = memory.split(' ').nth(1).unwrap().parse().unwrap();
        (own, its.unwrap_or(0), pages)
    };
    run(100);
    let before = state();
    run(1000);
    let after = state();
    assert_eq!((after.0, after.1), (before.0, before.1));
    assert!(after.2 <= before.2 + 64, "{before:?} {after:?}");
}

/// The process that forks the commands: the parent of one.
fn supervisor_of(session: &Session) -> i32 {
    let script = format!(": {}; echo ready; read line", own_seconds());
    let mut child = shell(session, &script)
        .stdin(Stdio::Piped)
        .stdout(Stdio::Piped)
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut ready)
        .unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let found = entries.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let is_it = String::from_utf8_lossy(&line).contains(&script);
        is_it.then(|| fs::read_to_string(entry.path().join("stat")).ok())?
    });
    let stat = found.last().unwrap();
    let fields = stat.rsplit_once(')').unwrap().1;
    fields
        .split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

fn terminal() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let script = "test -t 0 && test -t 2 && echo on a terminal > /dev/tty; ps -o tty= -p $$";
    let child = shell(&session, script).terminal([true; 3]).spawn();
    let mut child = child.unwrap();
    let mut screen = fs::File::from(child.take_terminal().unwrap());
    let finished = child.wait().unwrap();
    assert_eq!(finished.status_code(), 0);
    let mut text = Vec::new();
    // Nobody has the other end open any more: reading ends with EIO.
    let _ = screen.read_to_end(&mut text);
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.starts_with("on a terminal\r\n") && text.contains("pts/"),
        "{text}"
    );
}

fn supervisor_hidden() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let supervisor = supervisor_of(&session);
    // Every process that can be seen inside is init or one of this command's.
    let pids = printed(&session, "cd /proc; echo [0-9]*");
    assert!(pids.split(' ').count() <= 2, "{pids}");
    let attack = format!("kill -9 {supervisor} 1 2>/dev/null; kill -9 -1");
    let _ = shell(&session, &attack).output().unwrap();
    assert_eq!(printed(&session, "echo still here"), "still here");
    // The control: this user may signal the supervisor from outside.
    let probe = rustix::process::Pid::from_raw(supervisor).unwrap();
    rustix::process::test_kill_process(probe).unwrap();
}

/// Looks at every new process: at its descriptors, its memory and its directory. Prints a line when
/// it was refused, which happens only before a process has executed its program, and a line when it
/// saw anything that a command does not have.
const SPY: &str = "
import os, sys
refused = 0
while True:
    for pid in filter(str.isdigit, os.listdir('/proc')):
        if pid in ('1', str(os.getpid())):
            continue
        for act in (lambda: [os.readlink(f'/proc/{pid}/fd/{n}') for n in os.listdir(f'/proc/{pid}/fd')],
                    lambda: [str(os.pread(os.open(f'/proc/{pid}/mem', os.O_RDONLY), 1, 0x1000))]):
            try:
                seen = act()
                if any('socket:' in one or 'eventfd' in one for one in seen):
                    print('leak', seen, flush=True)
            except PermissionError:
                print('refused', flush=True)
            except OSError:
                pass
";

fn starting_is_closed() {
    let place = dir();
    let session = workspace(place.path()).open().unwrap();
    let mut spy = session.command("python3");
    spy.args(["-c", SPY]).stdin(Stdio::Null);
    let mut spy = spy.stdout(Stdio::Piped).spawn().unwrap();
    let stdout = spy.stdout.take().unwrap();
    let is_seen = Arc::new(AtomicBool::new(false));
    let sees = Arc::clone(&is_seen);
    let lines = std::thread::spawn(move || {
        let lines = std::io::BufReader::new(stdout).lines();
        let lines = lines.map_while(Result::ok);
        lines
            .inspect(|_| sees.store(true, Ordering::Relaxed))
            .collect::<Vec<String>>()
    });
    // On a busy machine the spy may not run in the moment before a command executes its program.
    for number in 0..20_000 {
        if number >= 400 && is_seen.load(Ordering::Relaxed) {
            break;
        }
        assert_eq!(
            session.command("/bin/true").status().unwrap().status_code(),
            0
        );
    }
    spy.kill();
    spy.wait().unwrap();
    let lines = lines.join().unwrap();
    assert!(lines.iter().all(|line| line == "refused"), "{lines:?}");
    assert!(
        !lines.is_empty(),
        "no process was seen before it executed its program"
    );
}

fn other_backends() {
    let place = dir();
    let mut landlock = Sandbox::builder();
    landlock.backend(stockade::Backend::Landlock).best_effort();
    match landlock.workspace(place.path()).build().unwrap().open() {
        Err(Error::Run(error @ RunError::NoSessions(_))) => {
            assert_eq!(error.to_string(), "the backend `landlock` has no sessions");
        }
        other => panic!("{other:?}"),
    }
}

fn snapshots() {
    let (place, store) = (dir(), dir());
    fs::write(place.path().join("kept"), "old\n").unwrap();
    let sandbox = Sandbox::builder()
        .workspace(place.path())
        .overlay_in(store.path())
        .build()
        .unwrap();
    let mut session = sandbox.open().unwrap();
    printed(&session, "echo one > kept");
    session.snapshot("first").unwrap();
    printed(&session, "echo two > kept; echo here > /tmp/kept");
    for bad in ["", "../first", "a/b"] {
        assert!(matches!(session.snapshot(bad), Err(Error::Overlay(_))));
        assert!(matches!(session.restore(bad), Err(Error::Overlay(_))));
    }
    // A command that nobody has waited for may still run.
    let child = shell(&session, "true").spawn().unwrap();
    assert!(matches!(session.restore("first"), Err(Error::SessionBusy)));
    assert!(matches!(session.fork(), Err(Error::SessionBusy)));
    drop(child);
    assert_eq!(printed(&session, "cat /tmp/kept"), "here");
    let second = session.fork().unwrap();
    assert_eq!(printed(&second, "cat kept"), "two");
    printed(&second, "echo three > kept");
    session.restore("first").unwrap();
    assert_eq!(printed(&session, "cat kept"), "one");
    assert!(session.restore("second").is_err());
    assert_eq!(printed(&session, "cat kept"), "one");
    let fork = second.sandbox().clone();
    second.close().unwrap();
    fork.commit().unwrap();
    fork.remove_overlay().unwrap();
    let host = fs::read_to_string(place.path().join("kept")).unwrap();
    assert_eq!(host, "three\n");
    assert_eq!(session.snapshots().unwrap().len(), 1);
    session.close().unwrap();
}
