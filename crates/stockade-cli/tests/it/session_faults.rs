//! Whatever part of a session is killed, and whenever: nothing of it is left, and other sessions go on.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::context::Context;
use crate::serve::Client;
use crate::session::{Sessions, await_that, exists, pid};

/// How often something is killed: by the user that runs the test, and by an ordinary one.
const ROUNDS: [u32; 2] = [200, 100];

/// The longest time between the start of a command and the kill.
const MAX_DELAY: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
enum Victim {
    Client,
    Command,
    Init,
    Owner,
    /// Which is the mediator, too.
    Supervisor,
}

const VICTIMS: [Victim; 5] = [
    Victim::Client,
    Victim::Command,
    Victim::Init,
    Victim::Owner,
    Victim::Supervisor,
];

#[test]
fn a_kill_at_any_moment_leaves_nothing() {
    for (sessions, rounds) in Sessions::of_each_user().iter().zip(ROUNDS) {
        kill_at_any_moment(sessions, rounds);
    }
}

fn kill_at_any_moment(sessions: &Sessions, rounds: u32) {
    sessions.open(&["spared"]);
    let mut owners = vec![sessions.owner("spared")];
    let mut random = Random(u64::from(std::process::id()));
    for round in 0..rounds {
        let victim = VICTIMS[random.below(VICTIMS.len())];
        let delay = MAX_DELAY / 1000 * u32::try_from(random.below(1000)).unwrap();
        let what = format!(
            "seed {}, round {round}: {victim:?} after {delay:?}",
            std::process::id()
        );
        let name = format!("r{round}");
        sessions.open(&[&name]);
        let processes = Processes::of(sessions.owner(&name));
        owners.push(processes.owner);
        let seconds = format!("2{:08}{round:03}", std::process::id());
        let script = format!("while echo x > f; do rm f; done & exec sleep {seconds}");
        let mut client = sessions.start(&name, &script);
        wait_for(delay);
        match victim {
            Victim::Client => client.kill().unwrap(),
            Victim::Command => kill_all(&with_word(&seconds)),
            Victim::Init => kill_all(&[processes.init]),
            Victim::Owner => kill_all(&[processes.owner]),
            Victim::Supervisor => kill_all(&[processes.supervisor]),
        }
        if matches!(victim, Victim::Command) {
            // The kill may have come before the command, or before what the command starts.
            await_that(&what, || {
                let commands = with_word(&seconds);
                kill_all(&commands);
                commands.is_empty() && client.try_wait().unwrap().is_some()
            });
        }
        let ended = client.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        // Calls that nobody answers any more wait for the end; none fails with `ENOSYS`. When the owner
        // is killed its mediator is too, a moment before the commands.
        let is_answered = !errors.contains("not implemented");
        assert!(
            is_answered || matches!(victim, Victim::Owner),
            "{what}: {errors}"
        );
        match victim {
            Victim::Owner | Victim::Supervisor => {
                assert!(errors.contains("error: "), "{what}: {ended:?}");
            }
            // The kernel kills the command before init is gone: it ended by a signal.
            Victim::Init if errors.is_empty() => {
                assert_eq!(ended.status.code(), Some(137), "{what}");
            }
            Victim::Client | Victim::Command | Victim::Init => {}
        }
        if matches!(victim, Victim::Client | Victim::Command) {
            sessions.exec(&name, "true").ends_with(0);
            sessions
                .0
                .stockade(["session", "close", &name])
                .ends_with(0);
        }
        await_that(&what, || with_word(&seconds).is_empty());
        await_that(&what, || processes.all.iter().all(|one| !lives(*one)));
        // A process that the owner had just forked may hold its socket for a moment longer.
        await_that(&what, || {
            sessions.0.stockade(["session", "list"]).ends_with(0);
            !exists(&sessions.socket(&name))
        });
    }
    sessions.exec("spared", "exit 6").ends_with(6);
    let mut mounts = String::new();
    let mut file = fs::File::open("/proc/self/mountinfo").unwrap();
    file.read_to_string(&mut mounts).unwrap();
    let project = sessions.0.project();
    assert!(!mounts.contains(project.to_str().unwrap()), "{mounts}");
    let close = ["session", "close", "--all"];
    sessions.0.stockade(close).ends_with(0);
    await_that("a control group is left", || {
        let groups = control_groups();
        !owners.iter().any(|owner| {
            let prefix = format!("stockade-{}-", owner.as_raw_nonzero());
            groups.iter().any(|group| group.starts_with(&prefix))
        })
    });
    let left: Vec<_> = fs::read_dir(sessions.0.temporary()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The names of all control groups; those of a sandbox begin with its owner's process id.
fn control_groups() -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.push(entry.file_name().to_string_lossy().into_owned());
                waiting.push(entry.path());
            }
        }
    }
    found
}

/// How often a server is killed, for each user.
const SERVER_ROUNDS: u32 = 40;

#[test]
fn a_killed_server_leaves_nothing_and_others_go_on() {
    for context in Context::of_each_user() {
        let mut spared = Client::new(&context);
        let session = spared.open(json!({}));
        let mut random = Random(u64::from(std::process::id()));
        for round in 0..SERVER_ROUNDS {
            let delay = MAX_DELAY / 1000 * u32::try_from(random.below(1000)).unwrap();
            let what = format!("round {round}: after {delay:?}");
            let seconds = format!("3{:08}{round:03}", std::process::id());
            let mut victim = Client::new(&context);
            let open = victim.send("open", json!({"overlay": round % 2 == 0}));
            // The client gives ids in order: the first session is `s1`.
            if random.below(2) == 0 {
                victim.answer_to(open);
            }
            let script = format!("while echo x > f; do rm f; done & exec sleep {seconds}");
            let exec = json!({"session": "s1", "argv": ["sh", "-c", script]});
            victim.send("exec", exec);
            wait_for(delay);
            victim.server.kill().unwrap();
            victim.server.wait().unwrap();
            await_that(&what, || with_word(&seconds).is_empty());
        }
        assert_eq!(spared.run(&session, "echo fine").1, "fine\n");
        spared.leave();
        let left: Vec<_> = fs::read_dir(context.temporary()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The processes of a session beside its commands.
struct Processes {
    owner: Pid,
    supervisor: Pid,
    init: Pid,
    all: Vec<Pid>,
}

impl Processes {
    fn of(owner: Pid) -> Self {
        let mut below = children(owner);
        // With a control group there is a process in between.
        let mut supervisor = below.pop().unwrap();
        let mut all = vec![owner, supervisor];
        let mut inner = children(supervisor);
        while !inner.iter().any(|one| is_init(*one)) {
            supervisor = inner.pop().unwrap();
            all.push(supervisor);
            inner = children(supervisor);
        }
        let init = inner.into_iter().find(|one| is_init(*one)).unwrap();
        all.push(init);
        Self {
            owner,
            supervisor,
            init,
            all,
        }
    }
}

fn stat_fields(pid: Pid) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some(fields.map(str::to_owned).collect())
}

fn lives(pid: Pid) -> bool {
    stat_fields(pid).is_some_and(|fields| fields[0] != "Z" && fields[0] != "X")
}

fn all_processes() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.map(pid).collect()
}

fn children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().to_string();
    let is_child = |one: &Pid| stat_fields(*one).is_some_and(|fields| fields[1] == parent);
    all_processes().into_iter().filter(is_child).collect()
}

/// Whether a process is the first of a pid namespace.
fn is_init(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let ids = status.lines().find(|line| line.starts_with("NSpid:"));
    ids.is_some_and(|ids| ids.split_ascii_whitespace().count() > 2 && ids.ends_with("\t1"))
}

/// The processes that sleep for these seconds, and the shells that are about to.
fn with_word(word: &str) -> Vec<Pid> {
    let has = |one: &Pid| {
        let line = fs::read(format!("/proc/{}/cmdline", one.as_raw_nonzero())).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.contains(word) && !line.contains("stockade")
    };
    all_processes().into_iter().filter(has).collect()
}

fn kill_all(victims: &[Pid]) {
    for victim in victims {
        // It may have ended by itself.
        let _ = kill_process(*victim, Signal::KILL);
    }
}

fn wait_for(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::thread::yield_now();
    }
}

/// Numbers that look random (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}
