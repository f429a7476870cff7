//! A container that stays.

use std::fs;
use std::time::Duration;

use stockade_container::ContainerError;

use crate::scene::{IMAGE, scene};

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
    let late = "(sleep 3600; echo late > late) & sleep 3600; echo late > late";
    let output = sandbox
        .exec(late, Some(Duration::from_millis(300)))
        .unwrap();
    assert!(output.timed_out && output.code == 124);
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
    scene.take_away(&serving);
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
    scene.kill_engine();
    let refused = sandbox.exec("true", Some(Duration::from_secs(5)));
    assert!(refused.is_err() || refused.unwrap().timed_out);
}
