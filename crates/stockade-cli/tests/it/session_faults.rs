//! Whatever part of a session is killed, and whenever: nothing of it is left, and other sessions go on.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::session::{Sessions, await_that, exists, pid};

/// How often something is killed.
const ROUNDS: u32 = 200;

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
    let sessions = Sessions::new();
    sessions.open(&["spared"]);
    let mut random = Random(u64::from(std::process::id()));
    for round in 0..ROUNDS {
        let victim = VICTIMS[random.below(VICTIMS.len())];
        let delay = MAX_DELAY / 1000 * u32::try_from(random.below(1000)).unwrap();
        let what = format!(
            "seed {}, round {round}: {victim:?} after {delay:?}",
            std::process::id()
        );
        let name = format!("r{round}");
        sessions.open(&[&name]);
        let processes = Processes::of(sessions.owner(&name));
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
            // The kill may have come before the command: then it is still to come.
            await_that(&what, || {
                kill_all(&with_word(&seconds));
                client.try_wait().unwrap().is_some()
            });
        }
        client.wait().unwrap();
        if matches!(victim, Victim::Client | Victim::Command) {
            sessions.exec(&name, "true").ends_with(0);
            sessions
                .0
                .stockade(["session", "close", &name])
                .ends_with(0);
        }
        await_that(&what, || with_word(&seconds).is_empty());
        await_that(&what, || processes.all().iter().all(|one| !lives(*one)));
        sessions.0.stockade(["session", "list"]).ends_with(0);
        await_that(&what, || !exists(&sessions.socket(&name)));
    }
    sessions.exec("spared", "exit 6").ends_with(6);
    let mut mounts = String::new();
    let mut file = fs::File::open("/proc/self/mountinfo").unwrap();
    file.read_to_string(&mut mounts).unwrap();
    let project = sessions.0.project();
    assert!(!mounts.contains(project.to_str().unwrap()), "{mounts}");
}

/// The processes of a session beside its commands.
struct Processes {
    owner: Pid,
    supervisor: Pid,
    init: Pid,
}

impl Processes {
    fn of(owner: Pid) -> Self {
        let mut below = children(owner);
        // With a control group there is a process in between.
        let mut supervisor = below.pop().unwrap();
        let mut inner = children(supervisor);
        while !inner.iter().any(|one| is_init(*one)) {
            supervisor = inner.pop().unwrap();
            inner = children(supervisor);
        }
        let init = inner.into_iter().find(|one| is_init(*one)).unwrap();
        Self {
            owner,
            supervisor,
            init,
        }
    }

    fn all(&self) -> [Pid; 3] {
        [self.owner, self.supervisor, self.init]
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
