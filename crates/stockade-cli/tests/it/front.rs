//! What Hawk's front door hands out is executed, and its mode holds.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use stockade::compat::hawk::{Mode, SandboxConfig, wrap_command};

use crate::context::STOCKADE;

#[test]
fn hawk_s_modes_hold() {
    let dir = || tempfile::tempdir_in("/var/tmp").unwrap();
    let (workspace, outside) = (dir(), dir());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "echo x > inside; echo x > '{}/outside'; exec 3<>/dev/tcp/127.0.0.1/{port}; exit 0",
        outside.path().display()
    );
    let table = [
        // The control: unconfined, everything succeeds.
        (Mode::Off, false, (true, true, true)),
        (Mode::Workspace, true, (true, false, true)),
        (Mode::Workspace, false, (true, false, false)),
        (Mode::Strict, true, (false, false, true)),
        (Mode::Strict, false, (false, false, false)),
    ];
    for (mode, allow_network, expected) in table {
        let config = SandboxConfig {
            mode,
            workspace_dir: workspace.path().to_owned(),
            allow_network,
        };
        let wrapped = wrap_command(&script, &config, Path::new(STOCKADE)).unwrap();
        assert_eq!(wrapped.sandbox_active, mode != Mode::Off);
        let output = Command::new(&wrapped.program)
            .args(&wrapped.args)
            .current_dir(&wrapped.cwd)
            .env_clear()
            .envs(&wrapped.env)
            .output()
            .unwrap();
        let gone = |path: &Path| fs::remove_file(path).is_ok();
        let reached = match listener.accept() {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        };
        let effects = (
            gone(&workspace.path().join("inside")),
            gone(&outside.path().join("outside")),
            reached,
        );
        assert_eq!(effects, expected, "{mode} {allow_network}: {output:?}");
    }
    for program in ["/nonexistent/stockade", "stockade", ""] {
        let config = SandboxConfig {
            mode: Mode::Strict,
            workspace_dir: workspace.path().to_owned(),
            allow_network: true,
        };
        let refused = wrap_command(&script, &config, Path::new(program));
        assert!(refused.is_err(), "{program}: {refused:?}");
    }
}
