//! Containers whose policy lists hosts: by the command line as root and as an ordinary user, in an
//! image, and one that stays.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use stockade_container::{ContainerSandbox, Engine, Images};
use stockade_policy::Surroundings;
use stockade_policy::host::HostPattern;
use stockade_policy::profile::{Flags, Pin, Sources};
use stockade_proxy::SandboxProxy;
use stockade_test::dockerd::Dockerd;
use stockade_test::podman::Podman;
use tempfile::TempDir;

use crate::context::{Context, Ran, STOCKADE, run};

/// An engine, a copy of the program, and a directory where nothing may be left.
struct Scene {
    engine: Dockerd,
    dir: TempDir,
}

fn scene(test: &str) -> Option<Scene> {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let engine = match Dockerd::start(dir.path()) {
        Ok(engine) => engine,
        Err(reason) => {
            skip(test, "backend:docker", &reason);
            return None;
        }
    };
    fs::set_permissions(engine.socket(), Permissions::from_mode(0o666)).unwrap();
    let scene = Scene { engine, dir };
    fs::copy(STOCKADE, scene.program()).unwrap();
    Some(scene)
}

/// Somebody other than root, whom no file of the machine belongs to.
const SOMEBODY: u32 = 54_321;

impl Scene {
    fn program(&self) -> PathBuf {
        self.dir.path().join("stockade")
    }

    /// A place of this user's own: a project, and where temporary files go.
    fn place(&self, user: u32) -> PathBuf {
        let place = self.dir.path().join(user.to_string());
        for name in ["", "project", "tmp"] {
            let made = place.join(name);
            let _ = fs::create_dir(&made);
            std::os::unix::fs::chown(&made, Some(user), Some(user)).unwrap();
        }
        place
    }

    /// Runs the program as this user in a project of his, and looks at what it left.
    fn stockade(&self, user: u32, args: &[&str]) -> Ran {
        let place = self.place(user);
        let mut command = Command::new("setpriv");
        let [uid, gid] = ["--reuid", "--regid"].map(|word| format!("{word}={user}"));
        command.args([&uid, &gid, "--clear-groups", "--"]);
        command.arg(self.program()).args(args);
        command
            .current_dir(place.join("project"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &place)
            .env("TMPDIR", place.join("tmp"))
            .env("DOCKER_HOST", self.host())
            .stdin(Stdio::null());
        let ran = run(command);
        let left = fs::read_dir(place.join("tmp")).unwrap().count();
        assert_eq!(left, 0, "left in the temporary directory: {ran:#?}");
        ran
    }

    fn host(&self) -> String {
        format!("unix://{}", self.engine.socket().display())
    }
}

/// A host that greets everybody; it ends with the test program.
fn web() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}hello\n").as_bytes());
        }
    });
    port
}

/// By the proxy, without it, to who is not listed, and to an address.
const CLIENT: &str = r"
import os, socket, urllib.request, urllib.error
port = int(os.environ['WEB'])
def get(name):
    try: return urllib.request.urlopen('http://%s:%d/' % (name, port), timeout=100).read().decode().strip()
    except urllib.error.HTTPError as error: return error.code
print('proxy', get('a.test'), get('b.test'))
def raw(name):
    try:
        place = socket.getaddrinfo(name, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
        s = socket.create_connection(place, 100); s.sendall(b'GET / HTTP/1.0\r\n\r\n')
        text = b''
        while chunk := s.recv(4096): text += chunk
        return text.decode().split()[-1]
    except socket.gaierror: return 'no such name'
    except TimeoutError: return 'late'
    except OSError: return 'refused'
print('raw', raw('a.test'), '/', raw('b.test'), '/', raw('203.0.113.9'))
print(open('/etc/resolv.conf').read().strip(), '/', os.environ['https_proxy'])
";

const SEEN: &str = "proxy hello 403\nraw hello / no such name / refused\n\
                    nameserver 127.0.0.1 / http://127.64.0.1:3128\n";

#[test]
fn listed_hosts_are_reached_from_a_container() {
    let Some(scene) = scene("listed_hosts_are_reached_from_a_container") else {
        return;
    };
    let port = web();
    let (allow, web) = (format!("a.test:{port}"), format!("WEB={port}"));
    let list = ["--resolve", "a.test=127.0.0.1", "--allow", &allow];
    for user in [0, SOMEBODY] {
        let mut args = vec!["run", "--level", "container", "--report", "r.json"];
        args.extend(list);
        args.extend(["--env", &web, "--", "python3", "-c", CLIENT]);
        let ran = scene.stockade(user, &args).ends_with(0);
        assert_eq!(ran.stdout, SEEN, "{ran:#?}");
        let report = fs::read(scene.place(user).join("project/r.json")).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        assert_eq!(report["backend"], "docker");
        let records = report["network"].as_array().unwrap();
        let has = |host: &str, protocol: &str, allowed: bool| {
            records.iter().any(|record| {
                record["host"] == host
                    && record["protocol"] == protocol
                    && record["allowed"] == allowed
            })
        };
        assert!(has("a.test", "http", true), "{report:#}");
        assert!(has("b.test", "http", false), "{report:#}");
        assert!(has("b.test", "dns", false), "{report:#}");
        let clauses = report["enforcement"].as_array().unwrap();
        let network = clauses.iter().find(|one| one["clause"] == "network");
        assert_eq!(network.unwrap()["enforcement"], "full");
    }
    // A proxy that looks into requests opens TLS, and programs inside are shown whom to trust.
    let script = "curl -s -o /dev/null -w '%{http_code} ' http://a.test:$WEB/; \
                  curl -s -o /dev/null -w '%{http_code} ' -X POST http://a.test:$WEB/; \
                  grep -c 'BEGIN CERTIFICATE' $SSL_CERT_FILE > /dev/null && echo trusted";
    let mut args = vec!["run", "--level", "container", "--net-methods", "read-only"];
    args.extend(list);
    args.extend(["--env", &web, "--", "sh", "-c", script]);
    let ran = scene.stockade(SOMEBODY, &args).ends_with(0);
    assert_eq!(ran.stdout, "200 403 trusted\n", "{ran:#?}");
    // What has begun with the helper ends as everything else does.
    for (command, code) in [("nowhere", 127), ("/etc/passwd", 126), ("false", 1)] {
        let mut args = vec!["run", "--level", "container"];
        args.extend(list);
        args.extend(["--", command]);
        scene.stockade(SOMEBODY, &args).ends_with(code);
    }
    // Nobody of ours is inside who could connect to a port there.
    let args = ["run", "--backend", "docker", "--expose", "8080", "--"];
    let args = [&args[..], &["touch", "ran"]].concat();
    let ran = scene.stockade(0, &args).ends_with(125);
    assert!(ran.stderr.contains("expose"), "{ran:#?}");
    assert!(!scene.place(0).join("project/ran").exists());
}

/// The image's own file system, and a container that stays.
#[test]
fn listed_hosts_are_reached_from_an_image() {
    let Some(scene) = scene("listed_hosts_are_reached_from_an_image") else {
        return;
    };
    let engine = Engine::at(&scene.engine.socket()).unwrap();
    let image = "stockade/host:hosts";
    // With the libraries that a program of a debug build needs.
    let programs = ["curl".to_owned(), scene.program().display().to_string()];
    Images::new(&engine).from_host(&programs, image).unwrap();
    let port = web();
    let allow = format!("a.test:{port}");
    let script = format!(
        "curl -sS http://a.test:{port}/; curl -sS --noproxy '*' http://a.test:{port}/; \
         curl -s -o /dev/null -w '%{{http_code}}' http://b.test:{port}/; \
         curl -s --noproxy '*' http://b.test:{port}/ || echo \" $?\""
    );
    let seen = "hello\nhello\n403 6\n";
    let mut args = vec!["run", "--image", image, "--resolve", "a.test=127.0.0.1"];
    args.extend(["--allow", &allow, "--", "sh", "-c", &script]);
    let ran = scene.stockade(SOMEBODY, &args).ends_with(0);
    assert_eq!(ran.stdout, seen, "{ran:#?}");
    let last = args.len() - 3;
    args.truncate(last);
    args.push("nowhere");
    scene.stockade(SOMEBODY, &args).ends_with(127);

    let project = scene.place(0).join("project");
    let network = listed(&project, &allow);
    let sandbox = ContainerSandbox::new(engine, &project, image);
    let service = Arc::new(SandboxProxy::default());
    let mut sandbox = sandbox.with_network(network, service, scene.program());
    sandbox.start().unwrap();
    for _ in 0..2 {
        let output = sandbox.exec(&script, Some(Duration::from_secs(300)));
        let output = output.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), seen, "{output:?}");
        // The next container has a network of its own, and somebody who answers there.
        sandbox.hot_swap().unwrap();
    }
    sandbox.stop().unwrap();
    let records = sandbox.take_network_records();
    let of = |host: &str, allowed: bool| {
        let of_host = records.iter().filter(|record| record.host == host);
        let counts = of_host.filter(|record| record.allowed == allowed);
        counts.map(|record| record.count).sum::<u64>()
    };
    assert_eq!(of("a.test", true), 4, "{records:#?}");
    assert_eq!(of("a.test", false), 0, "{records:#?}");
    assert!(of("b.test", false) >= 4, "{records:#?}");
    assert!(sandbox.take_network_records().is_empty());
}

/// The time limit holds although nobody reads the output, and the pipe to the reader is full.
#[test]
fn a_container_ends_in_time_though_nobody_reads() {
    let Some(scene) = scene("a_container_ends_in_time_though_nobody_reads") else {
        return;
    };
    let (unread, full) = std::io::pipe().unwrap();
    let mut command = Command::new("timeout");
    command
        .args(["--signal", "KILL", "60"])
        .arg(scene.program());
    command.args(["run", "-q", "--backend", "docker", "--timeout", "1s"]);
    command.args(["--", "head", "-c", "8M", "/dev/zero"]);
    command
        .current_dir(scene.place(0).join("project"))
        .env("DOCKER_HOST", scene.host())
        .stdin(Stdio::null())
        .stdout(full);
    let status = command.status().unwrap();
    drop(unread);
    assert_eq!(status.code(), Some(124));
}

/// Row B01: in a container an engine's own filter forbids namespaces and mounts. Landlock and the
/// filter are left, hold, and are named; what needs the rest is refused.
#[test]
fn inside_a_container_landlock_holds_and_says_so() {
    let test = "inside_a_container_landlock_holds_and_says_so";
    let Some(scene) = scene(test) else { return };
    if !Command::new("docker")
        .arg("--version")
        .output()
        .is_ok_and(|ran| ran.status.success())
    {
        return skip(
            test,
            "backend:docker",
            "there is no `docker` to start a container with",
        );
    }
    let engine = Engine::at(&scene.engine.socket()).unwrap();
    let image = "stockade/host:inside";
    let program = scene.program().display().to_string();
    let programs = [program.clone()];
    Images::new(&engine).from_host(&programs, image).unwrap();
    let attacks = "echo x > f; cat ~/.ssh/id_rsa; echo x > /srv/x && echo wrote; \
                   mkdir -p .git/hooks; echo x > .git/hooks/pre-commit && echo hooked; kill -0 1 && echo seen";
    for user in [0, SOMEBODY] {
        let place = scene.place(user);
        let project = place.join("project");
        fs::create_dir_all(place.join(".ssh")).unwrap();
        fs::write(place.join(".ssh/id_rsa"), "SECRET\n").unwrap();
        let inside = |words: &[&str]| {
            let mut command = Command::new("docker");
            command.args(["--host", &scene.host(), "run", "--rm", "--pull", "never"]);
            command.args(["--network", "none"]);
            command.args(["--user", &format!("{user}:{user}")]);
            command.args(["--tmpfs", "/srv:mode=1777"]);
            command.args(["--volume", &format!("{0}:{0}", place.display())]);
            command.args(["--env", &format!("HOME={}", place.display())]);
            command.args(["--workdir", &project.display().to_string(), image]);
            command.args(words).stdin(Stdio::null());
            run(command)
        };
        // Pid 1 is the shell itself without the sandbox, so it may ask.
        let bare = inside(&["sh", "-c", attacks]).ends_with(0);
        assert_eq!(bare.stdout, "SECRET\nwrote\nhooked\nseen\n", "{bare:#?}");
        fs::remove_dir_all(project.join(".git")).unwrap();
        fs::remove_file(project.join("f")).unwrap();

        let report = project.join("report.json").display().to_string();
        let words = [
            &program, "run", "--report", &report, "--", "sh", "-c", attacks,
        ];
        let ran = inside(&words);
        assert_eq!(ran.stdout, "", "{ran:#?}");
        assert!(project.join("f").exists(), "{ran:#?}");
        assert!(!project.join(".git/hooks/pre-commit").exists(), "{ran:#?}");
        let report = fs::read_to_string(report).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["backend"], "landlock", "{report:#}");
        // What this tier can't do is an error, not a surprise.
        let refused = inside(&[&program, "run", "--backend", "native", "--", "true"]);
        assert_eq!(refused.code, 125, "{refused:#?}");
        assert!(refused.stderr.contains("namespace"), "{refused:#?}");
    }
}

/// Makes a program and gives it set-id bits; what was refused is no failure.
const SET_ID: &str = "cp /bin/sh set-id; chmod u+s set-id; chmod 2755 set-id; true";

/// Of the program there is nothing but itself; the bits could be set.
fn assert_no_set_id(project: &Path) {
    let program = project.join("set-id");
    let mode = || fs::metadata(&program).unwrap().permissions().mode() & 0o6000;
    assert_eq!(mode(), 0);
    fs::set_permissions(&program, Permissions::from_mode(0o4755)).unwrap();
    assert_ne!(mode(), 0, "the control: this file system takes them");
    fs::remove_file(program).unwrap();
}

/// The same requests, to Podman: it takes some of them otherwise.
#[test]
fn podman_is_as_good_as_docker() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let podman = match Podman::start(dir.path()) {
        Ok(podman) => podman,
        Err(reason) => return skip("podman_is_as_good_as_docker", "backend:podman", &reason),
    };
    let mut context = Context::new();
    let host = format!("unix://{}", podman.socket().display());
    context.set("CONTAINER_HOST", host);
    context.file(".git/hooks/x", "");
    let script = "grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status; echo x > f; touch /x /etc/x; \
                  echo x > .git/hooks/pre-commit; mount -t tmpfs x /tmp; ls /run; exit 3";
    let args = ["run", "-q", "--backend", "docker", "--", "sh", "-c", script];
    let ran = context.stockade(args).ends_with(3);
    for seen in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(ran.stdout.contains(seen), "{ran:#?}");
    }
    assert!(!ran.stdout.contains(".sock"), "{ran:#?}");
    for refused in ["'/x'", "'/etc/x'", "pre-commit", "mount"] {
        assert!(ran.stderr.contains(refused), "{ran:#?}");
    }
    assert!(context.project().join("f").exists());
    assert!(!context.project().join(".git/hooks/pre-commit").exists());

    let args = ["run", "-q", "--backend", "docker", "--", "sh", "-c", SET_ID];
    context.stockade(args).ends_with(0);
    assert_no_set_id(&context.project());

    let port = web();
    let (allow, web) = (format!("a.test:{port}"), format!("WEB={port}"));
    let mut args = vec![
        "run",
        "-q",
        "--backend",
        "docker",
        "--resolve",
        "a.test=127.0.0.1",
    ];
    args.extend([
        "--allow", &allow, "--env", &web, "--", "python3", "-c", CLIENT,
    ]);
    let ran = context.stockade(args).ends_with(0);
    assert_eq!(ran.stdout, SEEN, "{ran:#?}");

    // Images, a container that stays, and another in its place.
    let engine = Engine::at(&podman.socket()).unwrap();
    let image = "stockade/host:podman";
    Images::new(&engine).from_host(&[], image).unwrap();
    let known = Images::new(&engine).list().unwrap();
    assert!(known.iter().any(|one| one.name == image), "{known:?}");
    let mut sandbox = ContainerSandbox::new(engine, context.project(), image);
    sandbox.start().unwrap();
    let output = sandbox.exec("cat f; exit 7", None).unwrap();
    assert_eq!((output.code, output.stdout.as_slice()), (7, &b"x\n"[..]));
    sandbox.exec(SET_ID, None).unwrap();
    assert_no_set_id(&context.project());
    let args = ["run", "-q", "--image", image, "--", "sh", "-c", SET_ID];
    context.stockade(args).ends_with(0);
    assert_no_set_id(&context.project());
    let next = sandbox.build_from_dockerfile(&format!("FROM {image}\nENV STAGE=two\n"));
    assert_eq!(sandbox.image(), next.unwrap());
    sandbox.hot_swap().unwrap();
    let late = sandbox.exec("sleep 3600", Some(Duration::from_millis(200)));
    assert!(late.unwrap().timed_out);
    let output = sandbox.exec("echo $STAGE", None).unwrap();
    assert_eq!(output.stdout, b"two\n");
    sandbox.stop().unwrap();
    assert!(!sandbox.running().unwrap());
}

fn skip(test: &str, need: &str, reason: &str) {
    let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
    assert!(!required.contains(need), "{test}: {reason}");
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
}

/// The network of a profile that lists this.
fn listed(project: &Path, allow: &str) -> stockade_policy::profile::NetworkProfile {
    let flags = Flags {
        allow: vec![HostPattern::parse(allow).unwrap()],
        resolve: vec!["a.test=127.0.0.1".parse::<Pin>().unwrap()],
        ..Flags::default()
    };
    let sources = Sources {
        flags,
        ..Sources::new(Surroundings::from_env(project).unwrap())
    };
    stockade_engine::Files::load(&sources).unwrap().network
}
