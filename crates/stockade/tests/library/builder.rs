//! Commands started through the builder.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stockade::{
    Clause, Ending, Enforcement, Error, PlanError, RunError, Sandbox, SandboxPolicy, Stdio,
};
use stockade_policy::ResourceLimits;

use crate::{Test, dir, own_path};

pub(crate) const TESTS: &[Test] = &[
    ("a_command_ends_with_its_handle", ends_with_its_handle),
    ("a_missing_helper_starts_nothing", missing_helper),
    (
        "a_policy_that_confines_nothing_starts_nothing",
        open_policies,
    ),
    ("both_outputs_are_collected_at_once", both_outputs),
    ("input_is_passed_on", input),
    ("many_threads_start_many_sandboxes", many_threads),
    ("output_is_counted", output_is_counted),
    ("the_environment_can_be_another", other_environment),
    ("the_helper_in_the_workspace_stays_as_it_is", helper_stays),
    ("the_policy_holds", policy_holds),
    ("the_cpu_time_ends_it", cpu_time),
    (
        "the_disk_space_ends_it_while_output_is_read",
        disk_space_while_reading,
    ),
    ("the_memory_ends_it", memory),
    ("the_wall_time_ends_it", wall_time),
    (
        "the_wall_time_ends_it_while_output_is_read",
        wall_time_while_reading,
    ),
    ("waiting_by_descriptor", waiting_by_descriptor),
];

fn workspace(cwd: &Path) -> Sandbox {
    under(SandboxPolicy::workspace_write(vec![]), cwd)
}

/// What a policy makes, and nothing beside it.
fn under(policy: SandboxPolicy, cwd: &Path) -> Sandbox {
    Sandbox::builder()
        .policy(policy)
        .workspace(cwd)
        .build()
        .unwrap()
}

pub(crate) fn shell(sandbox: &Sandbox, script: &str) -> stockade::Command {
    let mut command = sandbox.command("/bin/sh");
    command.args(["-c", script]);
    command
}

fn helper_stays() {
    let place = dir();
    let helper = place.path().join("helper");
    fs::copy(own_path(), &helper).unwrap();
    let before = fs::read(&helper).unwrap();
    let mut builder = Sandbox::builder();
    builder.workspace(place.path()).helper(helper.clone());
    let sandbox = builder.build().unwrap();
    let attacks = "echo x >> helper; mv helper y; rm -f helper; echo made > other";
    shell(&sandbox, attacks).status().unwrap();
    assert_eq!(fs::read(&helper).unwrap(), before);
    assert!(place.path().join("other").exists());
    // The control: nothing else keeps this process from doing it.
    fs::rename(&helper, place.path().join("y")).unwrap();
}

fn policy_holds() {
    let (inside, outside) = (dir(), dir());
    let target = outside.path().join("t");
    // The control: this process can write it.
    fs::write(&target, "as it was").unwrap();
    let script = format!(
        "echo in > f; echo out > '{}'; cat f; exit 7",
        target.display()
    );
    let output = shell(&workspace(inside.path()), &script).output().unwrap();
    assert_eq!(output.finished.status_code(), 7);
    assert_eq!(output.stdout, b"in\n");
    assert_eq!(fs::read(&target).unwrap(), b"as it was");
    assert!(inside.path().join("f").exists());
    let report = output.finished.report;
    assert_eq!(report.ending, Ending::Exited(7));
    assert!(!report.enforcement.is_empty());
    let holds = |clause: &stockade::ClauseReport| clause.enforcement == Enforcement::Full;
    let weak: Vec<_> = report.enforcement.iter().filter(|c| !holds(c)).collect();
    // The number of root's processes needs a control group, which nobody asked for here.
    assert!(
        weak.iter().all(|c| c.clause.as_str() == "limits"),
        "{weak:?}"
    );
}

fn open_policies() {
    let place = dir();
    for policy in [
        SandboxPolicy::full_access(),
        SandboxPolicy::ExternalSandbox {
            description: "somewhere".into(),
        },
    ] {
        let sandbox = under(policy, place.path());
        let refused = shell(&sandbox, "echo x > started").status().unwrap_err();
        assert!(
            matches!(
                refused,
                Error::Run(RunError::Plan(PlanError::NotConfined(_)))
            ),
            "{refused:?}"
        );
    }
    assert!(!place.path().join("started").exists());
}

fn missing_helper() {
    let place = dir();
    let mut builder = Sandbox::builder();
    builder.workspace(place.path());
    for helper in ["/nonexistent/helper", "/bin/true"] {
        let sandbox = builder.helper(helper).build().unwrap();
        let refused = shell(&sandbox, "echo x > started").status();
        assert!(
            matches!(refused, Err(Error::Run(RunError::Spawn(_)))),
            "{helper}: {refused:?}"
        );
    }
    // Nothing is searched: neither on PATH nor below the current directory.
    for helper in ["stockade", "./stockade", ""] {
        let refused = builder.helper(helper).build();
        assert!(matches!(refused, Err(Error::RelativeHelper(_))), "{helper}");
    }
    assert!(!place.path().join("started").exists());
}

fn input() {
    let place = dir();
    let mut child = workspace(place.path())
        .command("cat")
        .stdin(Stdio::Piped)
        .stdout(Stdio::Piped)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let sent: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let mut stdout = child.stdout.take().unwrap();
    let copy = sent.clone();
    let writer = thread::spawn(move || stdin.write_all(&copy).unwrap());
    let mut got = Vec::new();
    stdout.read_to_end(&mut got).unwrap();
    writer.join().unwrap();
    assert_eq!(child.wait().unwrap().status_code(), 0);
    assert!(got == sent, "the bytes differ");
}

fn both_outputs() {
    let place = dir();
    let script = "head -c 1000000 /dev/zero >&2; head -c 1000000 /dev/zero; \
                  head -c 1000000 /dev/zero >&2";
    let output = shell(&workspace(place.path()), script).output().unwrap();
    assert_eq!(output.stdout.len(), 1_000_000);
    assert_eq!(output.stderr.len(), 2_000_000);
}

fn other_environment() {
    let place = dir();
    let given = [("PATH", "/usr/bin:/bin"), ("LANG", "xx_YY"), ("TOKEN", "t")];
    let given = given.map(|(name, value)| (name.into(), value.into()));
    let script = "echo \"$LANG ${TOKEN-none} ${CARGO_MANIFEST_DIR-none}\"";
    let mut command = shell(&workspace(place.path()), script);
    command.inherit_env(given);
    assert_eq!(command.output().unwrap().stdout, b"xx_YY none none\n");
    // What is set by name is handed on, whatever the name.
    command.env("TOKEN", "u").env_remove("LANG");
    assert_eq!(command.output().unwrap().stdout, b" u none\n");
}

fn output_is_counted() {
    let place = dir();
    let sandbox = limited(place.path(), "output=100K");
    let run = |script| shell(&sandbox, script).output().unwrap();
    let exact = run("head -c 100K /dev/zero");
    assert_eq!(exact.finished.report.ending, Ending::Exited(0));
    assert_eq!(exact.stdout.len(), 102_400);
    for endless in ["yes", "yes >&2", "head -c 102401 /dev/zero"] {
        let cut = run(endless);
        assert_eq!(cut.finished.report.ending, Ending::OutputLimit, "{endless}");
        assert_eq!(cut.stdout.len() + cut.stderr.len(), 102_400);
    }
    // Whoever waits, and wherever it goes: to a descriptor of the caller, or a pipe.
    let status = |stdout: Stdio| shell(&sandbox, "yes").stdout(stdout).status();
    assert_eq!(
        status(Stdio::Null).unwrap().report.ending,
        Ending::OutputLimit
    );
    let file = place.path().join("out");
    let written = status(fs::File::create(&file).unwrap().into()).unwrap();
    assert_eq!(written.report.ending, Ending::OutputLimit);
    assert_eq!(fs::metadata(&file).unwrap().len(), 102_400);
    let mut child = shell(&sandbox, "yes").stdout(Stdio::Piped).spawn().unwrap();
    let mut read = Vec::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_end(&mut read).unwrap();
    assert_eq!(read.len(), 102_400);
    assert_eq!(child.wait().unwrap().report.ending, Ending::OutputLimit);
}

/// Known of the command itself: what its children used and were ended by is not taken for it.
fn cpu_time() {
    let place = dir();
    let sandbox = limited(place.path(), "cpu=1s");
    let run = |script| shell(&sandbox, script).output().unwrap().finished;
    let over = run("while :; do :; done");
    assert_eq!(over.report.ending, Ending::CpuLimit);
    assert_eq!(over.status_code(), 137);
    let killed = run("(while :; do :; done); kill -KILL $$");
    // The limit is kept by ticks, the usage is what the scheduler measured: a busy machine parts them.
    assert!(killed.report.usage.cpu_micros > 500_000, "{killed:?}");
    assert_eq!(killed.report.ending, Ending::Signalled(9));
    assert_eq!(run("kill -KILL $$").report.ending, Ending::Signalled(9));
    let told = run("(while :; do :; done); exit $?");
    assert_eq!(told.report.ending, Ending::Exited(137));
}

/// Known where a control group limits memory, which here only root can make.
fn memory() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = dir();
    let sandbox = limited(place.path(), "mem=64M");
    let hog = "head -c 512M /dev/zero | tail -n 1 > /dev/null";
    for script in [
        format!("exec sh -c '{hog}; exit $?'"),
        format!("{hog}; exit 3"),
    ] {
        let ended = shell(&sandbox, &script).output().unwrap().finished;
        assert_eq!(ended.report.ending, Ending::MemoryLimit, "{script}");
        assert_ne!(ended.status_code(), 0);
    }
    // Streaming, and waiting only then.
    let mut child = shell(&sandbox, &format!("{hog}; echo failed; exit 4"))
        .stdout(Stdio::Piped)
        .spawn()
        .unwrap();
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().report.ending, Ending::MemoryLimit);
    // Who gets along all the same has not failed.
    let told = shell(&sandbox, &format!("{hog}; exit 0")).output().unwrap();
    assert_eq!(told.finished.report.ending, Ending::Exited(0));
    let killed = shell(&sandbox, "kill -KILL $$").output().unwrap();
    assert_eq!(killed.finished.report.ending, Ending::Signalled(9));
}

/// Kept while the caller reads output that does not end.
fn disk_space_while_reading() {
    let place = dir();
    let sandbox = limited(place.path(), "disk=128M");
    let script = "i=0; while :; do fallocate -l 64M f$i || exit 1; i=$((i + 1)); echo more; \
                  sleep 0.2; done";
    let mut child = shell(&sandbox, script)
        .stdout(Stdio::Piped)
        .spawn()
        .unwrap();
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    let report = child.wait().unwrap().report;
    assert_eq!(report.ending, Ending::DiskLimit);
    let limits = report.enforcement.iter();
    let mut limits = limits.filter(|clause| clause.clause == Clause::Limits);
    assert_eq!(limits.next().unwrap().enforcement, Enforcement::Partial);
}

fn limited(place: &Path, limit: &str) -> Sandbox {
    let mut builder = Sandbox::builder();
    builder.workspace(place).limit(limit).build().unwrap()
}

fn wall_time() {
    let place = dir();
    let limits = ResourceLimits::default().with_timeout_secs(3);
    let policy = SandboxPolicy::workspace_write_with_limits(vec![], limits);
    let sandbox = under(policy, place.path());
    let script = "(trap '' TERM HUP; sleep 3600) & echo begun; sleep 3600";
    let output = shell(&sandbox, script).output().unwrap();
    assert_eq!(output.finished.report.ending, Ending::TimedOut);
    assert_eq!(output.stdout, b"begun\n");
}

/// The caller waits for the end of the output, and the command has none.
fn wall_time_while_reading() {
    let place = dir();
    let limits = ResourceLimits::default().with_timeout_secs(3);
    let policy = SandboxPolicy::workspace_write_with_limits(vec![], limits);
    let sandbox = under(policy, place.path());
    let script = "(trap '' TERM HUP; sleep 3600) & while :; do echo more; sleep 1; done";
    let mut child = shell(&sandbox, script)
        .stdout(Stdio::Piped)
        .spawn()
        .unwrap();
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("more\n"), "{text}");
    assert_eq!(child.wait().unwrap().report.ending, Ending::TimedOut);
}

/// Everything that holds the pipe is dead when the pipe is at its end.
fn ends_with_its_handle() {
    let place = dir();
    let mut child = shell(
        &workspace(place.path()),
        "setsid sleep 3600 & echo begun; sleep 3600",
    )
    .stdout(Stdio::Piped)
    .spawn()
    .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut begun = [0; 6];
    stdout.read_exact(&mut begun).unwrap();
    drop(child);
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert_eq!((&begun, rest.len()), (b"begun\n", 0));
}

fn waiting_by_descriptor() {
    let place = dir();
    let mut child = workspace(place.path())
        .command("cat")
        .stdin(Stdio::Piped)
        .spawn()
        .unwrap();
    let ready = |child: &stockade::Child, patience: Duration| {
        let mut watched = [PollFd::from_borrowed_fd(child.pidfd(), PollFlags::IN)];
        let patience = Timespec::try_from(patience).unwrap();
        poll(&mut watched, Some(&patience)).unwrap() > 0
    };
    assert!(!ready(&child, Duration::ZERO));
    drop(child.stdin.take());
    assert!(ready(&child, Duration::from_secs(120)));
    assert_eq!(child.wait().unwrap().status_code(), 0);
}

fn many_threads() {
    let place = dir();
    let sandbox = workspace(place.path());
    thread::scope(|scope| {
        for thread in 0..8 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for run in 0..4 {
                    let word = format!("{thread}-{run}");
                    let output = shell(sandbox, &format!("echo {word}")).output().unwrap();
                    assert_eq!(output.stdout, format!("{word}\n").into_bytes());
                }
            });
        }
    });
}
