//! The front doors: what other programs' words come to mean, tried with attacks.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

use stockade::compat::errata::{self, build_cmd, config_from_context, with_config};
use stockade::compat::hawk::{self, Kind};
use stockade::compat::{Context, Door, FrontError};
use stockade::{Error, PlanError, RunError};
use stockade_policy::profile::Backend;

use crate::{Test, dir, own_path};

pub(crate) const TESTS: &[Test] = &[
    ("errata_s_two_dimensions_are_independent", independent),
    ("errata_without_network_is_still_free", free_files),
    ("hawk_s_document_is_enforced", document),
    ("nothing_runs_bare_when_the_helper_is_missing", no_helper),
    ("nothing_runs_bare_without_the_backend", no_backend),
    ("sub_tasks_are_confined_as_their_task", sub_tasks),
];

/// What a command tries, and what comes of it.
struct Attack {
    project: tempfile::TempDir,
    outside: tempfile::TempDir,
    listener: TcpListener,
}

/// Whether the project was written, what is outside was written, and the host was reached.
type Effects = (bool, bool, bool);

impl Attack {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            project: dir(),
            outside: dir(),
            listener,
        }
    }

    fn project(&self) -> &Path {
        self.project.path()
    }

    fn script(&self) -> String {
        format!(
            "echo x > inside; echo x > '{}/outside'; exec 3<>/dev/tcp/127.0.0.1/{}; exit 0",
            self.outside.path().display(),
            self.listener.local_addr().unwrap().port()
        )
    }

    /// By what can be seen from here, not by what the command says; then all is as before.
    fn effects(&self) -> Effects {
        let gone = |path: &Path| fs::remove_file(path).is_ok();
        let reached = match self.listener.accept() {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        };
        (
            gone(&self.project.path().join("inside")),
            gone(&self.outside.path().join("outside")),
            reached,
        )
    }

    fn errata(&self, filesystem: &str, network: &str) -> errata::Config {
        errata::Config::parse(filesystem, network, self.project()).unwrap()
    }
}

fn door() -> Door {
    Door::new(own_path())
}

fn independent() {
    let attack = Attack::new();
    let table = [
        // The control: unconfined, everything succeeds.
        ("", "", (true, true, true)),
        ("unrestricted", "none", (true, true, false)),
        ("project_only", "full", (true, false, true)),
        ("project_only", "none", (true, false, false)),
        ("read_only", "full", (false, false, true)),
        ("read_only", "none", (false, false, false)),
    ];
    for (filesystem, network, expected) in table {
        let config = attack.errata(filesystem, network);
        let command = build_cmd(
            &Context::new(),
            &door(),
            &config,
            "bash",
            ["-c", &attack.script()],
        )
        .unwrap();
        assert_eq!(command.is_confined(), config.active());
        let ended = command.output().unwrap();
        let what = format!("{filesystem} {network}: {ended:?}");
        assert_eq!(attack.effects(), expected, "{what}");
        assert_eq!(ended.report.is_some(), config.active(), "{what}");
    }
    door().available(attack.project()).unwrap();
}

/// Nothing of what protects files elsewhere is in the way: names, the host's /tmp, hidden files.
fn free_files() {
    let attack = Attack::new();
    fs::create_dir_all(attack.project().join(".git/hooks")).unwrap();
    let host_tmp = tempfile::tempdir_in("/tmp").unwrap();
    let script = format!(
        "set -e; echo x > .git/hooks/pre-commit; echo x > .git/config; echo x > '{}/f'; \
         test -r /etc/shadow; mkdir d; rmdir d; exec 3<>/dev/tcp/127.0.0.1/{}",
        host_tmp.path().display(),
        attack.listener.local_addr().unwrap().port(),
    );
    let config = attack.errata("unrestricted", "none");
    let ended = build_cmd(&Context::new(), &door(), &config, "bash", ["-c", &script]).unwrap();
    let ended = ended.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(host_tmp.path().join("f").exists(), "{said}");
    assert!(attack.project().join(".git/hooks/pre-commit").exists());
    assert!(attack.project().join(".git/config").exists());
    assert!(!attack.effects().2);
    // The last of all steps is the one that failed.
    assert!(ended.code != 0 && said.contains("/dev/tcp"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
}

fn document() {
    let attack = Attack::new();
    let table = [
        (Kind::None, true, true, (true, true, true)),
        (Kind::Auto, true, true, (true, false, true)),
        (Kind::Auto, true, false, (true, false, false)),
        (Kind::Namespace, false, true, (false, false, true)),
        (Kind::Namespace, false, false, (false, false, false)),
        (Kind::Chroot, true, false, (true, false, false)),
    ];
    for (kind, allow_write, allow_network, expected) in table {
        let config = hawk::Config {
            enabled: kind != Kind::None,
            kind,
            allow_network,
            allow_write,
            ..hawk::default_config()
        };
        let command = config.run(&Context::new(), &door(), attack.project(), &attack.script());
        let ended = command.unwrap().output().unwrap();
        assert_eq!(attack.effects(), expected, "{config:?}: {ended:?}");
    }

    // Its lists: one directory more is writable, one in the project is not.
    fs::create_dir(attack.project().join("kept")).unwrap();
    let mut config = hawk::default_config();
    config.writable_dirs = vec![attack.outside.path().to_owned()];
    config.read_only_dirs = vec![attack.project().join("kept")];
    let script = format!("echo x > kept/f; {}", attack.script());
    let command = config
        .run(&Context::new(), &door(), attack.project(), &script)
        .unwrap();
    command.output().unwrap();
    assert_eq!(attack.effects(), (true, true, true));
    assert!(!attack.project().join("kept/f").exists());
}

fn no_backend() {
    let attack = Attack::new();
    for (kind, name) in [
        (Kind::Docker, Backend::Docker),
        (Kind::Seatbelt, Backend::Seatbelt),
    ] {
        let config = hawk::Config {
            kind,
            ..hawk::default_config()
        };
        let refused = config.run(&Context::new(), &door(), attack.project(), &attack.script());
        match refused {
            Err(FrontError::Sandbox(Error::Run(RunError::Plan(PlanError::Backend(missing))))) => {
                assert_eq!(missing, name);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(attack.effects(), (false, false, false));
    }
}

fn no_helper() {
    let attack = Attack::new();
    let config = attack.errata("read_only", "");
    let searched = build_cmd(
        &Context::new(),
        &Door::new("stockade"),
        &config,
        "bash",
        ["-c", "true"],
    );
    assert!(matches!(
        searched,
        Err(FrontError::Sandbox(Error::RelativeHelper(_)))
    ));
    for helper in ["/nonexistent/helper", "/bin/true"] {
        let door = Door::new(helper);
        assert!(door.available(attack.project()).is_err(), "{helper}");
        let command = build_cmd(
            &Context::new(),
            &door,
            &config,
            "bash",
            ["-c", &attack.script()],
        )
        .unwrap();
        let refused = command.output();
        assert!(
            matches!(
                refused,
                Err(FrontError::Sandbox(Error::Run(RunError::Spawn(_))))
            ),
            "{helper}: {refused:?}"
        );
        assert_eq!(attack.effects(), (false, false, false));
    }
}

fn sub_tasks() {
    let attack = Attack::new();
    let task = with_config(&Context::new(), attack.errata("read_only", "none"));
    let script = attack.script();
    let grandchild = move || {
        let context = Context::current();
        let config = config_from_context(&context).unwrap();
        let command = build_cmd(&context, &door(), config, "bash", ["-c", &script]).unwrap();
        command.output().unwrap()
    };
    let child = task.spawn(|| Context::current().spawn(grandchild).join().unwrap());
    let ended = child.join().unwrap();
    assert!(ended.report.is_some());
    assert_eq!(attack.effects(), (false, false, false));
}
