//! A home, a project, a model that asks for one tool call, and an agent between them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::context::{Ran, STOCKADE, has, run};
use crate::mcp::program;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agents");

/// The key that the model sees and nobody inside may see.
pub(super) const KEY: &str = "sk-test-4f1c9a7be2d80356";

/// What lies in `~/.ssh`.
const PLANTED: &str = "the planted key";

/// The name that the model has in its certificate.
const HOST: &str = "model.test";

/// An ordinary user; need not have a name.
const USER: u32 = 4321;

/// Where that user finds the agents.
const MOUNTED: &str = "/mnt";

/// How an agent is started without a person in front of it. `{url}` stands for the model's address.
pub(super) struct Agent {
    pub(super) name: &'static str,
    /// Below the directory of agents.
    pub(super) program: &'static str,
    pub(super) key: &'static str,
    pub(super) variables: &'static [(&'static str, &'static str)],
    pub(super) arguments: &'static [&'static str],
    /// A file below the home that decides what the agent does, and what is in it.
    pub(super) settings: (&'static str, &'static str),
    /// A directory below the home whose changes are kept, if the agent writes to it.
    pub(super) state: Option<&'static str>,
}

/// Which address the agent gets.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reach {
    /// Over TLS, by the name in the certificate.
    Name,
    /// The port on loopback.
    Loopback,
}

pub(super) struct Fixture {
    dir: TempDir,
    agent: &'static Agent,
    model: Child,
    url: String,
    is_user: bool,
}

impl Agent {
    /// Whether the agent is there; if not, the test is skipped and says so.
    pub(super) fn is_installed(&self, test: &str) -> bool {
        let program = self.path();
        has(test, "agents", &["test", "-x", &program])
    }

    fn path(&self) -> String {
        program(&format!("agents/{}", self.program))
    }
}

impl Fixture {
    pub(super) fn new(agent: &'static Agent, reach: Reach) -> Self {
        Self::with_commands(agent, reach, &probe(agent))
    }

    /// The same with other commands for the tool calls, an empty line between them.
    pub(super) fn with_commands(agent: &'static Agent, reach: Reach, commands: &str) -> Self {
        // Not below /tmp, which is private inside.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        for name in ["home/.ssh", "project", "tls", "run"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        // For the sockets of sessions.
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(dir.path().join("run"), private).unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("home/.ssh/id_ed25519"), PLANTED).unwrap();
        let (settings, text) = agent.settings;
        fs::create_dir_all(path("home").join(settings).parent().unwrap()).unwrap();
        fs::write(path("home").join(settings), text).unwrap();
        fs::copy(format!("{DIRECTORY}/probe.sh"), path("project/probe.sh")).unwrap();
        let mut model = Command::new("python3");
        model.arg(format!("{DIRECTORY}/model.py"));
        model.arg(path("log")).arg(commands);
        if reach == Reach::Name {
            certify(&path("tls"));
            model.arg(path("tls/model.pem")).arg(path("tls/model.key"));
        }
        let model = model.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut model = model.spawn().unwrap();
        let mut port = String::new();
        let stdout = model.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut port).unwrap();
        let port = port.trim();
        let url = match reach {
            Reach::Name => format!("https://{HOST}:{port}"),
            Reach::Loopback => format!("http://127.0.0.1:{port}"),
        };
        Self {
            dir,
            agent,
            model,
            url,
            is_user: false,
        }
    }

    /// The same for an ordinary user, if this is root.
    pub(super) fn of_user(mut self) -> Self {
        self.is_user = true;
        let path = self.dir.path();
        let owner = format!("{USER}:{USER}");
        let ran = Command::new("chown")
            .args(["-R", &owner])
            .arg(path)
            .status();
        assert!(ran.unwrap().success());
        self
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Stockade itself, as the agent's user would start it.
    pub(super) fn stockade(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new(STOCKADE);
        command.args(arguments).env_clear();
        command.env("PATH", std::env::var("PATH").unwrap());
        command.env("HOME", self.path("home"));
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.current_dir(self.path("project"));
        command.stdin(Stdio::null());
        run(command)
    }

    /// The agent as it is.
    pub(super) fn bare(&self) -> Ran {
        self.start(&[])
    }

    /// `stockade agent`.
    pub(super) fn inside(&self) -> Ran {
        let pin = format!("{HOST}=127.0.0.1");
        self.start(&[STOCKADE, "agent", self.agent.name, "--resolve", &pin, "--"])
    }

    fn start(&self, wrapper: &[&str]) -> Ran {
        let path = self.agent.path();
        let directory = Path::new(&path).parent().unwrap();
        let directory = if self.is_user {
            let below = directory.strip_prefix(program("agents")).unwrap();
            Path::new(MOUNTED).join(below)
        } else {
            directory.to_owned()
        };
        let name = Path::new(&path).file_name().unwrap().to_str().unwrap();
        let arguments = self.agent.arguments.iter();
        let arguments = arguments.map(|word| word.replace("{url}", &self.url));
        // Stockade finds the program itself.
        let name = wrapper.is_empty().then(|| name.to_owned());
        let words = wrapper.iter().map(|word| (*word).to_owned());
        let words: Vec<String> = words.chain(name).chain(arguments).collect();
        let mut command = Command::new("timeout");
        command.arg("120");
        if self.is_user {
            // The directory of agents is in root's home.
            let script = format!(
                "mount --bind \"$0\" {MOUNTED} && \
                 exec setpriv --reuid {USER} --regid {USER} --clear-groups -- \"$@\""
            );
            command.args(["unshare", "-m", "sh", "-c", &script]);
            command.arg(program("agents"));
        }
        // Not the first word: `env` looks it up in the new PATH.
        command.arg("env").args(words);
        let search = std::env::var("PATH").unwrap();
        command.env_clear();
        command.env("PATH", format!("{}:{search}", directory.display()));
        command.env("HOME", self.path("home"));
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("SSL_CERT_FILE", self.path("tls/authority.pem"));
        command.env(self.agent.key, KEY);
        for (name, value) in self.agent.variables {
            command.env(name, value.replace("{url}", &self.url));
        }
        command.current_dir(self.path("project"));
        command.stdin(Stdio::null());
        run(command)
    }

    /// What the tool call reported.
    pub(super) fn report(&self) -> String {
        fs::read_to_string(self.path("project/probe.out")).unwrap_or_default()
    }

    /// The requests that the model got.
    pub(super) fn requests(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        log.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Whether the tool call reached the host: its home, the settings, the planted key.
    pub(super) fn escapes(&self) -> [bool; 3] {
        let (settings, text) = self.agent.settings;
        let now = fs::read_to_string(self.path("home").join(settings)).unwrap();
        [
            self.path("home/escaped").exists(),
            now != text,
            self.report().contains(PLANTED),
        ]
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stockade(&["session", "close", "--all"]);
        // It ends when its input does.
        drop(self.model.stdin.take());
        let _ = self.model.wait();
    }
}

/// The command of the tool call.
pub(super) fn probe(agent: &Agent) -> String {
    format!("sh probe.sh ~/{}", agent.settings.0)
}

/// An authority, and a certificate for the model's name.
fn certify(directory: &Path) {
    let script = format!(
        "set -e
        new='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
        openssl req -x509 $new -keyout authority.key -out authority.pem -days 2 -subj /CN=authority \
            -addext basicConstraints=critical,CA:TRUE
        openssl req $new -keyout model.key -out model.csr -subj /CN={HOST}
        echo subjectAltName=DNS:{HOST} >names
        openssl x509 -req -in model.csr -CA authority.pem -CAkey authority.key -CAcreateserial \
            -days 2 -extfile names -out model.pem"
    );
    let made = Command::new("sh")
        .args(["-c", &script])
        .current_dir(directory)
        .output();
    let made = made.unwrap();
    assert!(made.status.success(), "{made:?}");
}
