//! What containers cost beside the engine itself, in an engine of the bench's own.
//!
//! `make bench`, or with the program to measure in `STOCKADE_BIN`:
//! `cargo bench -p stockade-container --bench containers`. As root, with Docker and gVisor
//! installed; what is missing is said and left out.
//!
//! Both sides of a line take turns, so that a noisy moment falls on both; medians are compared.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench prints, and may stop at what it did not expect"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use futures_util::StreamExt;
use serde_json::Value;
use stockade_container::{ContainerSandbox, Engine, Images};
use stockade_test::dockerd::Dockerd;

const IMAGE: &str = "stockade/host:bench";

fn main() {
    let Some(stockade) = std::env::var_os("STOCKADE_BIN").map(PathBuf::from) else {
        println!("containers: STOCKADE_BIN is not set");
        return;
    };
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let project = dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    println!("{:<44} {:>9} {:>9} {:>7}", "", "ours", "theirs", "ratio");
    match Dockerd::start(dir.path()) {
        Ok(engine) => {
            let connected = Engine::at(&engine.socket()).unwrap();
            Images::new(&connected).from_host(&[], IMAGE).unwrap();
            warm_exec(&engine, &project);
            container_start(&engine, &stockade, &project, dir.path());
        }
        Err(reason) => println!("containers: left out: {reason}"),
    }
    runsc_start(&stockade, &project);
}

/// A command in a container that runs: by this crate, and by the same requests without it.
fn warm_exec(engine: &Dockerd, project: &Path) {
    let connect = || Engine::at(&engine.socket()).unwrap();
    let mut sandbox = ContainerSandbox::new(connect(), project, IMAGE);
    sandbox.start().unwrap();
    let container = sandbox.container_id().unwrap().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let socket = engine.socket().to_str().unwrap().to_owned();
    let client = {
        let _entered = runtime.enter();
        bollard::Docker::connect_with_unix(&socket, 60, bollard::API_DEFAULT_VERSION).unwrap()
    };
    let client = runtime.block_on(client.negotiate_version()).unwrap();
    let bare = || {
        runtime.block_on(async {
            let config = ExecConfig {
                attach_stdout: Some(true),
                attach_stderr: Some(true),
                cmd: Some(["sh", "-c", "true"].map(str::to_owned).to_vec()),
                ..ExecConfig::default()
            };
            let id = client.create_exec(&container, config).await.unwrap().id;
            let started = client.start_exec(&id, None).await.unwrap();
            let StartExecResults::Attached { mut output, .. } = started else {
                panic!("not attached");
            };
            while output.next().await.is_some() {}
            loop {
                let ended = client.inspect_exec(&id).await.unwrap();
                if ended.running == Some(false) {
                    break;
                }
            }
        });
    };
    let ours = || {
        let output = sandbox.exec("true", None).unwrap();
        assert_eq!(output.code, 0);
    };
    compare("exec in a running container", 60, ours, bare);
}

/// A container for one command: `stockade run`, and `docker run` with the same settings.
fn container_start(engine: &Dockerd, stockade: &Path, project: &Path, dir: &Path) {
    let host = format!("unix://{}", engine.socket().display());
    let run = |words: &[&str]| {
        let mut command = Command::new(stockade);
        command
            .args(["run", "--quiet", "--backend", "docker"])
            .args(words)
            .current_dir(project)
            .env("DOCKER_HOST", &host)
            .stdin(Stdio::null());
        command
    };
    let plan = run(&["--dry-run", "--json", "--", "true"])
        .output()
        .unwrap();
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    let wanted = &plan["carrier"]["engine"]["create"];
    // Made once, so that the image is there.
    assert!(run(&["--", "true"]).status().unwrap().success());
    let filter = dir.join("seccomp.json");
    let arguments = docker_arguments(wanted, &filter);
    // What stands for hidden files; a run makes its own.
    let hidden = plan["carrier"]["engine"]["hidden_file"].as_str();
    if let Some(hidden) = hidden {
        std::fs::write(hidden, "").unwrap();
    }
    let ours = || assert!(run(&["--", "true"]).status().unwrap().success());
    let theirs = || {
        let mut command = Command::new("docker");
        command.args(["--host", &host]).args(&arguments);
        let status = command.stdin(Stdio::null()).status().unwrap();
        assert!(status.success());
    };
    compare("container for one command", 20, ours, theirs);
    if let Some(hidden) = hidden {
        std::fs::remove_file(hidden).unwrap();
    }
}

/// The request as the arguments of `docker run`.
fn docker_arguments(wanted: &Value, filter: &Path) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let config = &wanted["HostConfig"];
    let mut words: Vec<String> = ["run", "--rm", "--init", "--read-only", "--cap-drop=ALL"]
        .map(str::to_owned)
        .to_vec();
    let mut add = |word: String| words.push(word);
    add("--log-driver=none".to_owned());
    add("--interactive".to_owned());
    add(format!("--network={}", text(&config["NetworkMode"])));
    add(format!("--ipc={}", text(&config["IpcMode"])));
    add(format!("--user={}", text(&wanted["User"])));
    add(format!("--workdir={}", text(&wanted["WorkingDir"])));
    for option in config["SecurityOpt"].as_array().unwrap() {
        let option = text(option);
        match option.strip_prefix("seccomp=") {
            Some(profile) => {
                std::fs::write(filter, profile).unwrap();
                add(format!("--security-opt=seccomp={}", filter.display()));
            }
            None => add(format!("--security-opt={option}")),
        }
    }
    for (flag, key) in [("memory", "Memory"), ("pids-limit", "PidsLimit")] {
        if let Some(value) = config[key].as_i64() {
            add(format!("--{flag}={value}"));
        }
    }
    for limit in config["Ulimits"].as_array().into_iter().flatten() {
        let (soft, hard) = (&limit["Soft"], &limit["Hard"]);
        add(format!("--ulimit={}={soft}:{hard}", text(&limit["Name"])));
    }
    for mount in config["Mounts"].as_array().unwrap() {
        let mut one = vec![
            format!("type={}", text(&mount["Type"])),
            format!("target={}", text(&mount["Target"])),
        ];
        one.extend(
            mount["Source"]
                .as_str()
                .map(|path| format!("source={path}")),
        );
        one.extend((mount["ReadOnly"] == true).then(|| "readonly".to_owned()));
        let size = mount["TmpfsOptions"]["SizeBytes"].as_i64();
        one.extend(size.map(|size| format!("tmpfs-size={size}")));
        let one = one.join(",");
        add(format!("--mount={one}"));
    }
    for variable in wanted["Env"].as_array().unwrap() {
        add(format!("--env={}", text(variable)));
    }
    let entry = wanted["Entrypoint"].as_array().unwrap();
    add(format!("--entrypoint={}", text(&entry[0])));
    add(text(&wanted["Image"]));
    words
}

/// gVisor without a daemon: `stockade run --backend gvisor`, and `runsc do`.
fn runsc_start(stockade: &Path, project: &Path) {
    let version = Command::new("runsc").arg("--version").output();
    if version.is_err() {
        println!("runsc: left out: it is not installed");
        return;
    }
    let ours = || {
        let mut command = Command::new(stockade);
        command.args(["run", "--quiet", "--backend", "gvisor", "--", "true"]);
        let status = command.current_dir(project).stdin(Stdio::null()).status();
        assert!(status.unwrap().success());
    };
    let theirs = || {
        let mut command = Command::new("runsc");
        command.args(["--network=none", "do", "true"]);
        // It gives its streams to another user: these are pipes of its own, the null device is not.
        let ran = command.current_dir(project).stdin(Stdio::piped()).output();
        assert!(ran.unwrap().status.success());
    };
    compare(
        "gVisor for one command, against `runsc do`",
        20,
        ours,
        theirs,
    );
}

fn compare(what: &str, rounds: usize, ours: impl Fn(), theirs: impl Fn()) {
    let time = |act: &dyn Fn()| {
        let begun = Instant::now();
        act();
        begun.elapsed()
    };
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let pair = if round % 2 == 0 {
            let first = time(&ours);
            (first, time(&theirs))
        } else {
            let second = time(&theirs);
            (time(&ours), second)
        };
        // The first warms up.
        if round > 0 {
            one.push(pair.0);
            other.push(pair.1);
        }
    }
    let (one, other) = (median(one), median(other));
    let ratio = one.as_secs_f64() / other.as_secs_f64();
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "{what:<44} {:>6.1} ms {:>6.1} ms {ratio:>6.2}",
        millis(one),
        millis(other)
    );
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
