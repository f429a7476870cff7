//! What goes wrong while something runs or is built: a clear error, and nothing left over.

use std::fs::{self, File};
use std::io::Read;
use std::time::{Duration, Instant};

use stockade::{Child, Ending, Error, RunError, Sandbox, Stdio};
use stockade_container::{ContainerError, DockerBackend, Images};
use stockade_engine::backend::Backends;
use stockade_policy::profile::Backend;
use stockade_test::keeper::Disk;

use crate::scene::{IMAGE, Scene, scene, scene_on};

/// What `run --backend docker` runs in, with an image as its files or the host's own.
fn docker(scene: &Scene, image: Option<&str>) -> Sandbox {
    let mut docker = DockerBackend::docker().at(scene.engine.socket());
    if let Some(image) = image {
        docker = docker.with_image(image);
    }
    let mut builder = Sandbox::builder();
    builder
        .workspace(scene.project())
        .backend(Backend::Docker)
        .backends(Backends::empty().with(docker))
        .helper("/nonexistent");
    builder.build().unwrap()
}

/// A command in a container, which has begun.
fn begun(scene: &Scene, script: &str) -> Child {
    let script = format!("echo begun; {script}");
    let mut command = docker(scene, None).command("sh");
    command.args(["-c", &script]);
    command.stdin(Stdio::Null).stdout(Stdio::Piped);
    let mut child = command.spawn().unwrap();
    let mut said = [0; 6];
    let stdout = child.stdout.as_mut().unwrap();
    stdout.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"begun\n");
    child
}

#[test]
fn an_image_is_what_the_command_sees() {
    let Some(scene) = scene("an_image_is_what_the_command_sees") else {
        return;
    };
    // The host has it, the image does not; the project is there under its own path.
    let host_only = scene.dir.path().join("host-only");
    fs::write(&host_only, "x").unwrap();
    let script = format!(
        "cat '{}'; test -e /usr/bin/dpkg && echo dpkg; touch /made; echo kept > file; exit 4",
        host_only.display()
    );
    let run = |image: Option<&str>| {
        let mut command = docker(&scene, image).command("sh");
        command.args(["-c", &script]).stdin(Stdio::Null).output()
    };
    let seen = run(None).unwrap();
    assert_eq!(seen.stdout, b"xdpkg\n");
    fs::remove_file(scene.project().join("file")).unwrap();
    let seen = run(Some(IMAGE)).unwrap();
    assert_eq!(seen.finished.report.ending, Ending::Exited(4));
    assert_eq!(seen.stdout, b"");
    let kept = fs::read_to_string(scene.project().join("file")).unwrap();
    assert_eq!(kept, "kept\n");

    // Nothing is pulled behind the user's back.
    match run(Some("stockade/nowhere:1")) {
        Err(Error::Run(RunError::NotStarted { reason, .. })) => {
            assert!(reason.contains("stockade image from-host"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    // A program is looked for in the image, wherever the host has it.
    let planned = docker(&scene, Some(IMAGE)).command("sh").plan().unwrap();
    let planned = planned.linux.command.argv[0].as_os_str().to_owned();
    assert_eq!(planned, "sh");
    let mut missing = docker(&scene, Some(IMAGE)).command("dpkg");
    let missing = missing.stdin(Stdio::Null).output().unwrap();
    assert_eq!(missing.finished.report.ending, Ending::Exited(127));
    assert_eq!(scene.containers(), 0);
}

/// How long the command would take that nobody waits for.
const COMMAND: Duration = Duration::from_secs(300);

#[test]
fn a_run_ends_whatever_becomes_of_its_container() {
    let Some(scene) = scene("a_run_ends_whatever_becomes_of_its_container") else {
        return;
    };
    // As it should be, with what it used.
    let finished = begun(
        &scene,
        "i=0; while test $i -lt 300000; do i=$((i + 1)); done; exit 5",
    )
    .wait()
    .unwrap();
    assert_eq!(finished.report.ending, Ending::Exited(5));
    let usage = finished.report.usage;
    assert!(usage.wall_micros > 0, "{usage:?}");
    assert!(
        usage.cpu_micros > 0 && usage.peak_memory_kib > 0,
        "{usage:?}"
    );
    assert_eq!(scene.containers(), 0);

    // Taken away behind our back.
    let before = Instant::now();
    let mut child = begun(&scene, "sleep 300");
    let [name] = &scene.names()[..] else {
        panic!("{:?}", scene.names());
    };
    scene.take_away(name);
    match child.wait() {
        Ok(finished) => assert!(
            matches!(finished.report.ending, Ending::Exited(137) | Ending::Lost),
            "{finished:?}"
        ),
        Err(other) => panic!("{other:?}"),
    }
    assert!(before.elapsed() < COMMAND, "it was waited for");
    assert_eq!(scene.containers(), 0);

    // The engine itself dies.
    let before = Instant::now();
    let mut child = begun(&scene, "sleep 300");
    scene.kill_engine();
    match child.wait() {
        // The command ran: its report is not lost, and it is not said that it never began.
        Ok(finished) => {
            assert_eq!(finished.report.ending, Ending::Lost);
            let trouble = finished.trouble.unwrap();
            assert!(trouble.contains("went away"), "{trouble}");
        }
        Err(other) => panic!("{other:?}"),
    }
    assert!(before.elapsed() < COMMAND, "it was waited for");
    let gone = DockerBackend::docker().at(scene.engine.socket());
    let refused = stockade_engine::backend::Backend::probe(&gone, "/nonexistent".as_ref());
    assert!(!refused.is_usable(), "{refused:?}");
}

#[test]
fn a_disk_that_is_full_fails_the_build_alone() {
    let test = "a_disk_that_is_full_fails_the_build_alone";
    let Some(scene) = scene_on(test, Disk::Small { mib: 160 }) else {
        return;
    };
    let mut sandbox = scene.sandbox();
    sandbox.start().unwrap();
    let serving = sandbox.container_id().unwrap().to_owned();
    let images = Images::new(sandbox.engine()).list().unwrap();

    // More than there is, and nothing that could be stored in less.
    let mut big = File::create(scene.project().join("big")).unwrap();
    let noise = File::open("/dev/urandom").unwrap();
    std::io::copy(&mut noise.take(200 << 20), &mut big).unwrap();
    let failed = sandbox.build_from_dockerfile(&format!("FROM {IMAGE}\nCOPY big /big\n"));
    let Err(ContainerError::Build(reason)) = failed else {
        panic!("{failed:?}");
    };
    assert!(reason.contains("no space left on device"), "{reason}");

    // The old container serves on, and nothing is left over.
    assert_eq!(sandbox.image(), IMAGE);
    assert_eq!(sandbox.container_id(), Some(serving.as_str()));
    assert!(sandbox.running().unwrap());
    assert_eq!(sandbox.exec("echo here", None).unwrap().stdout, b"here\n");
    assert_eq!(scene.names(), [serving]);
    assert_eq!(Images::new(sandbox.engine()).list().unwrap(), images);
    fs::remove_file(scene.project().join("big")).unwrap();
    let small = sandbox.build_from_dockerfile(&format!("FROM {IMAGE}\nENV X=1\n"));
    sandbox.stop().unwrap();
    assert!(small.is_ok(), "there is room again: {small:?}");
}
