//! Hawk's containers, against an engine of the test's own. Where none can be started the test says
//! so, and `STOCKADE_REQUIRE=backend:docker` makes that a failure.

use std::cell::RefCell;
use std::fs;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use stockade::SandboxPolicy;
use stockade::compat::hawk::{
    CONTAINER_IMAGE_TAG, CachedImage, ContainerSandbox, ContainerSandboxError, DevEnvManager,
    IsolationLevel, SwapRequest, default_container_image, docker_available, gvisor_available,
    gvisor_docker_args, select_sandbox,
};
use stockade::compat::{Context, FrontError};
use stockade_container::{Engine, Images};
use stockade_test::dockerd::Dockerd;

use crate::{PART, Test, dir, own_path};

pub(crate) const TESTS: &[Test] = &[
    ("availability", availability),
    ("images", images),
    ("life", life),
    ("names", names),
];

pub(crate) const PARTS: &[Test] = &[
    ("availability", availability_part),
    ("images", images_part),
    ("life", life_part),
    ("names", names_part),
];

/// Runs a part in a process whose engine is one of its own.
fn with_engine(part: &str) {
    let place = dir();
    let engine = match Dockerd::start(place.path()) {
        Ok(engine) => engine,
        Err(reason) => {
            let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
            assert!(!required.contains("backend:docker"), "{part}: {reason}");
            crate::print(&format!("ignored hawk_container::{part}: {reason}"));
            return;
        }
    };
    let socket = engine.socket();
    let image = default_container_image();
    Images::new(&Engine::at(&socket).unwrap())
        .from_host(&[], &image)
        .unwrap();
    let output = Command::new(own_path())
        .args([PART, part])
        .env("DOCKER_HOST", format!("unix://{}", socket.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{part}: {output:?}");
}

fn names() {
    with_engine("names");
    let image = default_container_image();
    assert!(image.ends_with(&format!(":{CONTAINER_IMAGE_TAG}")));
    assert_eq!(CONTAINER_IMAGE_TAG, "latest");
}

fn names_part() {
    let engine = Engine::connect().unwrap();
    let expected: &[&str] = if engine.has_runtime("runsc").unwrap() {
        &["--runtime=runsc"]
    } else {
        &[]
    };
    assert_eq!(gvisor_docker_args(), expected);
}

fn availability() {
    with_engine("availability");
}

fn availability_part() {
    let place = dir();
    let helper = own_path();
    assert!(docker_available(&helper));
    let policy = SandboxPolicy::workspace_write(vec![]);
    let select = |level| select_sandbox(level, &policy, place.path(), &helper);
    let chosen = select(IsolationLevel::Container).unwrap();
    assert_eq!(chosen.backend, stockade::Backend::Docker, "{chosen}");
    // gVisor is chosen exactly where it works.
    let maximum = select(IsolationLevel::Maximum);
    assert_eq!(gvisor_available(&helper), maximum.is_ok(), "{maximum:?}");
}

fn life() {
    with_engine("life");
}

fn life_part() {
    let place = dir();
    let mut sandbox = ContainerSandbox::new(place.path()).unwrap();
    let context = Context::new();
    assert_eq!(sandbox.image(), default_container_image());
    assert_eq!(sandbox.container_id(), "");
    assert!(!sandbox.running().unwrap());
    sandbox.start(&context).unwrap();
    assert!(sandbox.running().unwrap());
    let name = sandbox.container_id().to_owned();
    let output = sandbox.exec(&context, "echo x > f; echo out; exit 3", None);
    let output = output.unwrap();
    assert_eq!((output.code, output.stdout.as_slice()), (3, &b"out\n"[..]));
    assert_eq!(fs::read(place.path().join("f")).unwrap(), b"x\n");
    let limit = Some(Duration::from_millis(300));
    assert!(
        sandbox
            .exec(&context, "sleep 3600", limit)
            .unwrap()
            .timed_out
    );
    sandbox.hot_swap(&context).unwrap();
    assert_ne!(sandbox.container_id(), name);
    sandbox.set_image("stockade/none:none");
    assert!(sandbox.hot_swap(&context).is_err());
    assert!(sandbox.running().unwrap(), "the old one serves on");

    // Cancelled while a command runs: the container is removed, and nothing runs on.
    let (context, cancel) = context.with_cancel();
    let started = place.path().join("started");
    let canceller = std::thread::spawn(move || {
        while !started.exists() {
            std::thread::yield_now();
        }
        cancel.cancel();
    });
    let ended = sandbox.exec(&context, "touch started; sleep 3600", None);
    let is_cancelled = |error: &ContainerSandboxError| {
        matches!(
            error,
            ContainerSandboxError::Cancelled(FrontError::Cancelled)
        )
    };
    assert!(is_cancelled(&ended.unwrap_err()));
    canceller.join().unwrap();
    assert!(!sandbox.running().unwrap());
    sandbox.set_image(default_container_image());
    assert!(is_cancelled(&sandbox.start(&context).unwrap_err()));
    assert!(!sandbox.running().unwrap());
    sandbox.stop().unwrap();
}

fn images() {
    with_engine("images");
}

fn images_part() {
    let (place, state) = (dir(), dir());
    let base = default_container_image();
    let dockerfile = place.path().join("Dockerfile");
    let text = format!("FROM {base}\nLABEL made=here\n");
    fs::write(&dockerfile, &text).unwrap();
    let context = Context::new();
    let mut sandbox = ContainerSandbox::new(place.path()).unwrap();
    let tag = sandbox.build_from_dockerfile(&context, &text).unwrap();
    assert_eq!(sandbox.image(), tag);

    let mut manager = DevEnvManager::new(place.path(), state.path()).unwrap();
    assert!(manager.is_stale(&dockerfile).unwrap());
    let first = manager.get_or_build(&context, &dockerfile).unwrap();
    assert!(!manager.is_stale(&dockerfile).unwrap());
    assert_eq!(manager.get_or_build(&context, &dockerfile).unwrap(), first);
    let index = fs::read(state.path().join("images.json")).unwrap();
    let index: std::collections::BTreeMap<String, CachedImage> =
        serde_json::from_slice(&index).unwrap();
    assert!(
        index
            .values()
            .any(|cached| cached.tag == first && !cached.stale)
    );
    manager.invalidate(&dockerfile).unwrap();
    assert!(manager.is_stale(&dockerfile).unwrap());

    let requests: Rc<RefCell<Vec<SwapRequest>>> = Rc::default();
    let told = Rc::clone(&requests);
    manager.on_swap_needed = Some(Box::new(move |request| told.borrow_mut().push(request)));
    let rebuilt = manager
        .rebuild_and_force_swap(&context, &dockerfile)
        .unwrap();
    {
        let requests = requests.borrow();
        let SwapRequest {
            image_tag,
            dockerfile: built,
            workspace,
            ..
        } = &requests[0];
        assert_eq!((image_tag, built), (&rebuilt, &dockerfile));
        assert_eq!(workspace, place.path());
    }
    let (cancelled, cancel) = context.with_cancel();
    cancel.cancel();
    assert!(
        manager
            .rebuild_and_force_swap(&cancelled, &dockerfile)
            .is_err()
    );
    assert!(sandbox.build_from_dockerfile(&cancelled, &text).is_err());
    assert_eq!(requests.borrow().len(), 1, "no swap after a cancellation");
}
