//! Against a real engine of the test's own: containers that stay, images, and what goes wrong.
#![cfg(target_os = "linux")]
#![expect(
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "one engine for one long story; a test may stop at what it did not expect"
)]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use stockade_container::{ContainerError, ContainerSandbox, DevEnvManager, Engine, Images};
use stockade_test::dockerd::Dockerd;

/// An engine, a project below a directory that is not `/tmp`, and an image with a shell.
struct Scene {
    engine: Dockerd,
    dir: tempfile::TempDir,
}

const IMAGE: &str = "stockade/host:test";

fn scene(test: &str) -> Option<Scene> {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let engine = match Dockerd::start(dir.path()) {
        Ok(engine) => engine,
        Err(reason) => {
            let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
            assert!(!required.contains("backend:docker"), "{test}: {reason}");
            let line = format!("ignored {test}: {reason}\n");
            std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
            return None;
        }
    };
    fs::create_dir(dir.path().join("project")).unwrap();
    let scene = Scene { engine, dir };
    Images::new(&scene.connect()).from_host(&[], IMAGE).unwrap();
    Some(scene)
}

impl Scene {
    fn connect(&self) -> Engine {
        Engine::at(&self.engine.socket()).unwrap()
    }

    fn project(&self) -> std::path::PathBuf {
        self.dir.path().join("project")
    }

    fn sandbox(&self) -> ContainerSandbox {
        ContainerSandbox::new(self.connect(), self.project(), IMAGE)
    }

    fn containers(&self) -> usize {
        let output = std::process::Command::new("curl")
            .args(["-s", "--unix-socket"])
            .arg(self.engine.socket())
            .arg("http://engine/containers/json?all=true")
            .output()
            .unwrap();
        let list: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        list.as_array().unwrap().len()
    }
}

#[test]
fn a_container_serves_swaps_and_survives_what_goes_wrong() {
    let Some(scene) = scene("a_container_serves_swaps_and_survives_what_goes_wrong") else {
        return;
    };
    fs::create_dir_all(scene.project().join(".git/hooks")).unwrap();
    let mut sandbox = scene.sandbox();
    assert!(matches!(
        sandbox.exec("true", None),
        Err(ContainerError::NotRunning)
    ));
    sandbox.start().unwrap();
    assert!(sandbox.running().unwrap());
    assert_eq!(scene.containers(), 1);

    // Hardened.
    let status = sandbox
        .exec(
            "grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; touch /x; echo $?",
            None,
        )
        .unwrap();
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(text.contains("CapEff:\t0000000000000000"), "{text}");
    assert!(
        text.contains("NoNewPrivs:\t1") && text.contains("Seccomp:\t2"),
        "{text}"
    );
    assert!(text.ends_with("1\n"), "{text}");
    let hook = sandbox
        .exec("echo x > .git/hooks/pre-commit", None)
        .unwrap();
    assert_ne!(hook.code, 0);
    assert!(!scene.project().join(".git/hooks/pre-commit").exists());

    // Codes and output.
    let output = sandbox
        .exec("echo out; echo err >&2; exit 7", None)
        .unwrap();
    assert_eq!(
        (
            output.code,
            output.stdout.as_slice(),
            output.stderr.as_slice()
        ),
        (7, &b"out\n"[..], &b"err\n"[..])
    );

    // A command that takes too long is ended inside, children and all.
    let before = Instant::now();
    let late = "(sleep 3; echo late > late) & sleep 3; echo late > late";
    let output = sandbox
        .exec(late, Some(Duration::from_millis(300)))
        .unwrap();
    assert!(output.timed_out && output.code == 124);
    assert!(before.elapsed() < Duration::from_secs(3));
    let left = sandbox.exec("ls /proc | grep -c '^[0-9]'", None).unwrap();
    // Process 1, sleep, and this very pipeline.
    let left: u32 = String::from_utf8(left.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(left <= 5, "{left}");

    // Swapped for another image: the workspace stays, the old container goes.
    sandbox.exec("echo kept > file", None).unwrap();
    let old = sandbox.container_id().unwrap().to_owned();
    let image = sandbox
        .build_from_dockerfile(&format!("FROM {IMAGE}\nENV STAGE=two\n"))
        .unwrap();
    assert_eq!(sandbox.image(), image);
    sandbox.hot_swap().unwrap();
    assert_ne!(sandbox.container_id().unwrap(), old);
    assert_eq!(scene.containers(), 1);
    let seen = sandbox.exec("cat file; echo $STAGE", None).unwrap();
    assert_eq!(seen.stdout, b"kept\ntwo\n");
    assert!(!scene.project().join("Dockerfile").exists());

    // One that does not build changes nothing.
    let failed = sandbox.build_from_dockerfile(&format!("FROM {IMAGE}\nCOPY nowhere /x\n"));
    assert!(
        matches!(failed, Err(ContainerError::Build(_))),
        "{failed:?}"
    );
    assert_eq!(sandbox.image(), image);

    // A new container that is not healthy is given up, and the old one serves on.
    let serving = sandbox.container_id().unwrap().to_owned();
    sandbox = {
        let mut sick = sandbox.with_health_check("exit 3");
        let refused = sick.hot_swap();
        assert!(
            matches!(refused, Err(ContainerError::Unhealthy(_))),
            "{refused:?}"
        );
        sick.with_health_check("true")
    };
    assert_eq!(sandbox.container_id(), Some(serving.as_str()));
    assert_eq!(sandbox.exec("echo here", None).unwrap().stdout, b"here\n");
    sandbox.set_image("stockade/nothing:1");
    assert!(sandbox.hot_swap().is_err());
    assert_eq!(sandbox.exec("echo here", None).unwrap().stdout, b"here\n");
    assert_eq!(scene.containers(), 1);

    // Taken away behind our back.
    sandbox.set_image(IMAGE);
    let gone = std::process::Command::new("curl")
        .args(["-s", "-X", "DELETE", "--unix-socket"])
        .arg(scene.engine.socket())
        .arg(format!("http://engine/containers/{serving}?force=true"))
        .output()
        .unwrap();
    assert!(gone.status.success());
    assert!(!sandbox.running().unwrap());
    assert!(matches!(
        sandbox.exec("true", None),
        Err(ContainerError::NotRunning)
    ));
    sandbox.start().unwrap();
    assert_eq!(sandbox.exec("cat file", None).unwrap().stdout, b"kept\n");
    sandbox.stop().unwrap();
    assert_eq!(scene.containers(), 0);

    // The engine itself goes.
    sandbox.start().unwrap();
    let engine = rustix::process::Pid::from_raw(scene.engine.pid()).unwrap();
    rustix::process::kill_process(engine, rustix::process::Signal::KILL).unwrap();
    let refused = sandbox.exec("true", Some(Duration::from_secs(5)));
    assert!(refused.is_err() || refused.unwrap().timed_out);
}

#[test]
fn images_are_known_again_by_what_they_are_made_of() {
    let Some(scene) = scene("images_are_known_again_by_what_they_are_made_of") else {
        return;
    };
    let engine = scene.connect();
    let state = scene.dir.path().join("state");
    let dockerfile = scene.project().join("Dockerfile");
    fs::write(&dockerfile, format!("FROM {IMAGE}\nCOPY data /data\n")).unwrap();
    fs::write(scene.project().join("data"), "one").unwrap();
    fs::write(scene.project().join(".dockerignore"), "ignored\n").unwrap();
    let manager = || DevEnvManager::new(&engine, &scene.project(), &state).unwrap();

    let lines = std::cell::RefCell::new(Vec::new());
    let mut first = manager();
    assert!(first.is_stale(&dockerfile).unwrap());
    first.on_progress = Some(Box::new(|line| lines.borrow_mut().push(line.to_owned())));
    let tag = first.get_or_build(&dockerfile).unwrap();
    drop(first);
    assert!(
        lines.borrow().iter().any(|line| line.contains("COPY")),
        "{lines:?}"
    );

    // The index outlives the manager, and nothing is built again.
    let mut second = manager();
    assert!(!second.is_stale(&dockerfile).unwrap());
    second.on_progress = Some(Box::new(|line| panic!("built again: {line}")));
    assert_eq!(second.get_or_build(&dockerfile).unwrap(), tag);
    drop(second);
    fs::write(scene.project().join("ignored"), "x").unwrap();
    assert!(!manager().is_stale(&dockerfile).unwrap());
    let other = manager().with_arguments(vec![("A".into(), "1".into())]);
    assert!(other.is_stale(&dockerfile).unwrap());

    // The context, a declaration, a missing image: each makes it stale.
    fs::write(scene.project().join("data"), "two").unwrap();
    assert!(manager().is_stale(&dockerfile).unwrap());
    let newer = manager().get_or_build(&dockerfile).unwrap();
    assert_ne!(newer, tag);
    manager().invalidate(&dockerfile).unwrap();
    assert!(manager().is_stale(&dockerfile).unwrap());
    let mut swaps = Vec::new();
    let mut forced = manager();
    forced.on_swap_needed = Some(Box::new(|request| swaps.push(request)));
    let forced_tag = forced.rebuild_and_force_swap(&dockerfile).unwrap();
    drop(forced);
    assert_eq!(swaps.len(), 1);
    assert_eq!(swaps[0].image_tag, forced_tag);
    assert!(Images::new(&engine).remove(&forced_tag).unwrap());
    assert!(manager().is_stale(&dockerfile).unwrap());

    // A build that fails leaves the index as it was and asks for no swap.
    fs::write(&dockerfile, format!("FROM {IMAGE}\nCOPY nowhere /x\n")).unwrap();
    let mut failing = manager();
    failing.on_swap_needed = Some(Box::new(|_| panic!("a swap after a build that failed")));
    assert!(failing.rebuild_and_force_swap(&dockerfile).is_err());
    drop(failing);
    assert!(manager().get_or_build(Path::new("/nonexistent")).is_err());
    assert_eq!(scene.containers(), 0);
}
