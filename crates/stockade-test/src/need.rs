//! What a case needs from the machine, tried by doing.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use crate::exec::{Invocation, PATH, run};
use crate::runner::Runner;
use crate::stage::{Actor, Role, Stage, is_root};

/// One need. Its text is what `STOCKADE_REQUIRE` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Need {
    /// User namespaces for the actor.
    Userns,
    /// At least this Landlock ABI.
    Landlock(u32),
    /// The suite is root.
    Root,
    /// A program on the search path that the actor can execute.
    Tool(&'static str),
    /// A pseudo-terminal.
    Tty,
    /// Control groups that the actor can limit a whole sandbox with.
    Cgroup,
    /// An IPv4 address besides loopback; defines nothing, `@LAN@` is set by the suite.
    Lan,
    /// The filtering proxy behind `--allow`.
    Allowlist,
    /// A host device node.
    Device(&'static str),
    /// Something that the suite prepares for all fixtures.
    Shared(&'static str),
    /// The machine's architecture.
    Arch(&'static str),
    /// A kernel setting below `/proc/sys` with this value.
    Sysctl(&'static str, &'static str),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Userns => f.write_str("userns"),
            Self::Landlock(abi) => write!(f, "landlock:{abi}"),
            Self::Root => f.write_str("root"),
            Self::Tool(name) => write!(f, "tool:{name}"),
            Self::Tty => f.write_str("tty"),
            Self::Cgroup => f.write_str("cgroup"),
            Self::Lan => f.write_str("lan"),
            Self::Allowlist => f.write_str("allowlist"),
            Self::Device(path) => write!(f, "device:{path}"),
            Self::Shared(name) => write!(f, "shared:{name}"),
            Self::Arch(name) => write!(f, "arch:{name}"),
            Self::Sysctl(name, value) => write!(f, "sysctl:{name}={value}"),
        }
    }
}

/// Tries needs once for each user and remembers the answer.
#[derive(Debug)]
pub struct Prober<'a> {
    stage: &'a Stage,
    runner: &'a Runner,
    known: HashMap<(Need, Role), Result<(), String>>,
}

impl<'a> Prober<'a> {
    /// A prober that knows nothing yet.
    pub fn new(stage: &'a Stage, runner: &'a Runner) -> Self {
        Self {
            stage,
            runner,
            known: HashMap::new(),
        }
    }

    /// Whether the need is met for the actor; the reason if not.
    ///
    /// # Errors
    /// If it is not met.
    pub fn check(&mut self, need: Need, actor: &Actor) -> Result<(), String> {
        let key = (need, actor.role);
        if let Some(answer) = self.known.get(&key) {
            return answer.clone();
        }
        let answer = self.attempt(need, actor);
        self.known.insert(key, answer.clone());
        answer
    }

    fn attempt(&self, need: Need, actor: &Actor) -> Result<(), String> {
        match need {
            Need::Userns => self.succeeds(&["unshare", "-Ur", "true"], actor),
            Need::Landlock(abi) => {
                let source = format!(
                    "import ctypes; abi = ctypes.CDLL(None).syscall(444, None, 0, 1); \
                     raise SystemExit(0 if abi >= {abi} else f'the kernel has ABI {{abi}}')"
                );
                self.succeeds(&["python3", "-c", &source], actor)
            }
            Need::Root => if_so(is_root(), "the suite is not root"),
            Need::Tool(name) => self
                .succeeds(&["/bin/sh", "-c", &format!("command -v {name}")], actor)
                .map_err(|_| format!("no {name} on {PATH}")),
            Need::Tty => if_so(Path::new("/dev/ptmx").exists(), "no /dev/ptmx"),
            Need::Cgroup => {
                let flags = ["--limit", "mem=64M", "--require", "limits"];
                self.runs(&flags, actor)
            }
            Need::Lan => if_so(lan_address().is_some(), "no address besides loopback"),
            Need::Allowlist => self.runs(&["--allow", "a.test"], actor),
            Need::Shared(name) => {
                let prepared = self.stage.shared.iter().any(|(word, _)| *word == name);
                if_so(prepared, "it could not be prepared here")
            }
            Need::Arch(name) => if_so(std::env::consts::ARCH == name, "another architecture"),
            Need::Sysctl(name, value) => {
                let found = std::fs::read_to_string(Path::new("/proc/sys").join(name));
                let found = found.unwrap_or_default();
                if_so(
                    found.trim() == value,
                    &format!("it is {:?} here", found.trim()),
                )
            }
            Need::Device(path) => if_so(Path::new(path).exists(), &format!("no {path}")),
        }
    }

    /// Whether the program under test can run a command with these flags.
    fn runs(&self, flags: &[&str], actor: &Actor) -> Result<(), String> {
        let program = self.runner.program().display().to_string();
        let words = [&[program.as_str(), "run"], flags, &["--", "/bin/true"]];
        self.succeeds(&words.concat(), actor)
    }

    fn succeeds(&self, argv: &[&str], actor: &Actor) -> Result<(), String> {
        let invocation = Invocation {
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            cwd: "/".into(),
            env: vec![
                ("PATH".into(), PATH.into()),
                ("HOME".into(), "/nonexistent".into()),
            ],
            stdin: None,
            capture: self.stage.dir.join(format!("probe{}", self.stage.next())),
            bound: crate::case::BOUND,
        };
        let outcome = run(&invocation, actor)?;
        if outcome.code == 0 {
            return Ok(());
        }
        let reason = outcome.err();
        Err(format!("exit code {}: {}", outcome.code, reason.trim()))
    }
}

/// Whether `STOCKADE_REQUIRE` says that this need must be met here: `cgroup` for everybody,
/// `cgroup/root` for root alone.
pub fn is_required(need: Need, role: Role, list: &str) -> bool {
    let role = format!("/{}", role.label());
    list.split(',').map(str::trim).any(|word| {
        let word = word.strip_suffix(&role).unwrap_or(word);
        if word == "all" || word == need.to_string() {
            return true;
        }
        let required = word
            .strip_prefix("landlock:")
            .and_then(|abi| abi.parse::<u32>().ok());
        matches!((need, required), (Need::Landlock(abi), Some(have)) if have >= abi)
    })
}

/// Whether the list has this very word.
pub fn is_required_word(word: &str, list: &str) -> bool {
    let mut words = list.split(',').map(str::trim);
    words.any(|required| required == "all" || required == word)
}

/// The address of the host that is not loopback. Connecting a datagram socket sends nothing.
pub fn lan_address() -> Option<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then(|| address.to_string())
}

fn if_so(met: bool, reason: &str) -> Result<(), String> {
    if met { Ok(()) } else { Err(reason.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::{Need, Role, is_required};

    #[test]
    fn a_higher_landlock_abi_requires_the_lower_ones() {
        let by_user = |need, list| is_required(need, Role::User, list);
        assert!(by_user(Need::Landlock(4), "userns,landlock:7"));
        assert!(!by_user(Need::Landlock(8), "userns,landlock:7"));
        assert!(by_user(Need::Tool("git"), "tool:git"));
        assert!(!by_user(Need::Tool("go"), "tool:git"));
    }

    #[test]
    fn a_need_can_be_required_for_one_user() {
        assert!(is_required(Need::Cgroup, Role::Root, "tty,cgroup/root"));
        assert!(!is_required(Need::Cgroup, Role::User, "tty,cgroup/root"));
    }
}
