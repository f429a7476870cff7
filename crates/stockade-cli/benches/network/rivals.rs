//! Other proxies, if they are installed, each with a configuration of its own.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A running proxy; ended when dropped.
pub(crate) struct Rival {
    pub(crate) name: &'static str,
    pub(crate) address: String,
    child: Child,
    _place: TempDir,
}

impl Rival {
    /// Those that are installed.
    #[expect(clippy::print_stdout, reason = "a benchmark says what it leaves out")]
    pub(crate) fn start_all() -> Vec<Self> {
        let mut found = Vec::new();
        for (name, program, config) in [
            (
                "tinyproxy",
                "tinyproxy",
                tinyproxy as fn(u16, &Path) -> String,
            ),
            ("squid", "squid", squid),
        ] {
            match Self::start(name, program, config) {
                Some(rival) => found.push(rival),
                None => println!("left out: {name} is not installed or does not start"),
            }
        }
        found
    }

    fn start(name: &'static str, program: &str, config: fn(u16, &Path) -> String) -> Option<Self> {
        let place = TempDir::new().ok()?;
        // Squid gives up root and must still write here.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(place.path(), open).ok()?;
        let port = TcpListener::bind(("127.0.0.1", 0))
            .ok()?
            .local_addr()
            .ok()?
            .port();
        let file = place.path().join("config");
        std::fs::write(&file, config(port, place.path())).ok()?;
        let mut command = Command::new(program);
        match name {
            "squid" => command.args(["-N", "-f"]).arg(&file),
            _ => command.args(["-d", "-c"]).arg(&file),
        };
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut rival = Self {
            name,
            address: format!("127.0.0.1:{port}"),
            child,
            _place: place,
        };
        let started = Instant::now();
        while TcpStream::connect(&rival.address).is_err() {
            let gone = rival.child.try_wait().is_ok_and(|status| status.is_some());
            if gone || started.elapsed() > Duration::from_secs(20) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(rival)
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tinyproxy(port: u16, place: &Path) -> String {
    let place = place.display();
    format!(
        "Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 100\nLogFile \"{place}/log\"\nLogLevel Critical\n"
    )
}

fn squid(port: u16, place: &Path) -> String {
    let place = place.display();
    format!(
        "http_port 127.0.0.1:{port}\nhttp_access allow all\ncache deny all\naccess_log none\ncache_log {place}/log\n\
         pid_filename none\ncoredump_dir {place}\nvisible_hostname localhost\nshutdown_lifetime 0 seconds\n"
    )
}
