//! `mcp` and `mcp-wrap` with real clients and real servers, which `scripts/test-deps` installs.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::context::{Context, Ran, STOCKADE, has, run};

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_client.py");

/// Where `scripts/test-deps` puts packages of Python and Node.
fn packages() -> PathBuf {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| Path::new(&home).join(".cache"));
    cache.join("stockade-tests")
}

pub(crate) fn program(name: &str) -> String {
    packages().join(name).display().to_string()
}

/// A project and a home that are not below /tmp, which is private inside.
struct Place {
    context: Context,
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let mut context = Context::new();
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let home = dir.path().join("home");
        for name in ["home/.ssh", "project", "outside"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        fs::write(home.join(".ssh/id_ed25519"), "the secret").unwrap();
        context.set("HOME", home);
        Self { context, dir }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    fn client(&self, arguments: &[&str]) -> Ran {
        let mut command = std::process::Command::new(program("venv/bin/python"));
        self.context.place(&mut command);
        command.arg(CLIENT).arg(STOCKADE).args(arguments);
        command
            .current_dir(self.path("project"))
            .stdin(Stdio::null());
        run(command)
    }
}

fn has_client(test: &str) -> bool {
    has(
        test,
        "mcp",
        &[&program("venv/bin/python"), "-c", "import mcp"],
    )
}

#[test]
fn an_agent_uses_the_sandbox_and_the_user_decides_about_grants() {
    if !has_client("an_agent_uses_the_sandbox_and_the_user_decides_about_grants") {
        return;
    }
    let place = Place::new();
    place.client(&["own", &place.path("outside")]).ends_with(0);
    assert!(Path::new(&place.path("outside/file")).exists());
    assert!(!Path::new(&place.path("outside/other")).exists());
}

#[test]
fn a_wrapped_filesystem_server_is_confined() {
    let server = program("node_modules/.bin/mcp-server-filesystem");
    let test = "a_wrapped_filesystem_server_is_confined";
    if !has_client(test) || !has(test, "mcp", &["test", "-x", &server]) {
        return;
    }
    let place = Place::new();
    let (inside, outside) = (place.path("project/file"), place.path("outside/file"));
    let command = [server, place.path("project"), place.path("outside")];
    let ask = |wrap: &[&str]| {
        let words = ["filesystem", &inside, &outside].into_iter();
        let words = words.chain(wrap.iter().copied());
        let words: Vec<&str> = words.chain(command.iter().map(String::as_str)).collect();
        place.client(&words).ends_with(0).stdout
    };
    // The control: by itself the server writes what it was told to serve.
    assert_eq!(ask(&[]), "ALLOWED\n");
    fs::remove_file(&outside).unwrap();
    assert_eq!(
        ask(&[STOCKADE, "mcp-wrap", "--preset", "filesystem", "--"]),
        "REFUSED\n"
    );
    assert!(Path::new(&inside).exists() && !Path::new(&outside).exists());
}

#[test]
fn a_wrapped_git_server_is_confined() {
    let server = program("venv/bin/mcp-server-git");
    let test = "a_wrapped_git_server_is_confined";
    if !has_client(test) || !has(test, "mcp", &["test", "-x", &server]) {
        return;
    }
    let place = Place::new();
    let (repository, hidden) = (place.path("project/repo"), place.path("outside/repo"));
    for repository in [&repository, &hidden] {
        place
            .context
            .other(&["git", "init", "-q", repository])
            .ends_with(0);
    }
    let ask = |wrap: &[&str]| {
        let words = ["git", &repository, &hidden].into_iter();
        let words = words.chain(wrap.iter().copied()).chain([server.as_str()]);
        let words: Vec<&str> = words.collect();
        place.client(&words).ends_with(0).stdout
    };
    assert_eq!(ask(&[]), "ALLOWED\n");
    let outside = place.path("outside");
    let packages = packages().display().to_string();
    let wrap = [
        STOCKADE, "mcp-wrap", "--preset", "git", "--deny", &outside, "--read", &packages, "--",
    ];
    assert_eq!(ask(&wrap), "REFUSED\n");
}

#[test]
fn a_wrapped_fetch_server_reaches_only_what_is_allowed() {
    let server = program("venv/bin/mcp-server-fetch");
    let test = "a_wrapped_fetch_server_reaches_only_what_is_allowed";
    if !has_client(test) || !has(test, "mcp", &["test", "-x", &server]) {
        return;
    }
    let place = Place::new();
    let port = web();
    let (named, address) = (
        format!("http://web.test:{port}/"),
        format!("http://127.0.0.1:{port}/"),
    );
    let ask = |first: &str, wrap: &[&str]| {
        let words = ["fetch", first, &address].into_iter();
        // The server's own check of addresses is not what is tried here.
        let command = [server.as_str(), "--allow-private-ips"];
        let words = words.chain(wrap.iter().copied()).chain(command);
        let words: Vec<&str> = words.collect();
        place.client(&words).ends_with(0).stdout
    };
    assert_eq!(ask(&address, &[]), "ALLOWED\n");
    let (host, packages) = (format!("web.test:{port}"), packages());
    let packages = packages.display().to_string();
    let wrap = [
        STOCKADE,
        "mcp-wrap",
        "--preset",
        "fetch",
        "--allow",
        &host,
        "--resolve",
        "web.test=127.0.0.1",
        "--read",
        &packages,
        "--",
    ];
    assert_eq!(ask(&named, &wrap), "REFUSED\n");
}

/// A host that greets everybody with plain text; it ends with the test program.
fn web() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\
                        Connection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}hello\n").as_bytes());
        }
    });
    port
}

#[test]
fn the_presets_time_and_github_run_their_servers_read_only() {
    let test = "the_presets_time_and_github_run_their_servers_read_only";
    let time = program("venv/bin/mcp-server-time");
    let github = program("node_modules/.bin/mcp-server-github");
    let are_there = ["test", "-x", &time, "-a", "-x", &github];
    if !has_client(test) || !has(test, "mcp", &are_there) {
        return;
    }
    let place = Place::new();
    let packages = packages().display().to_string();
    let wrap = |preset| {
        [
            STOCKADE, "mcp-wrap", "--preset", preset, "--read", &packages, "--",
        ]
    };
    let told = |mode: &str, preset, server: &str| {
        let words = wrap(preset);
        let words: Vec<&str> = [mode].into_iter().chain(words).chain([server]).collect();
        place.client(&words).ends_with(0).stdout
    };
    assert_eq!(told("time", "time", &time), "ALLOWED\n");
    let tools = told("tools", "github", &github);
    assert!(tools.contains("search_repositories"), "{tools}");
    let write = |preset: Option<&str>| {
        let mut words = vec!["mcp-wrap"];
        words.extend(preset.iter().flat_map(|preset| ["--preset", preset]));
        words.extend(["--", "sh", "-c", "echo x > written"]);
        let mut command = place.context.command(words);
        command.current_dir(place.path("project"));
        run(command).code
    };
    assert_eq!(write(None), 0);
    for preset in ["time", "github", "fetch"] {
        assert_ne!(write(Some(preset)), 0, "{preset}");
    }
}

#[test]
fn the_inspectors_command_line_sees_the_tools() {
    let inspector = program("node_modules/.bin/mcp-inspector");
    let test = "the_inspectors_command_line_sees_the_tools";
    if !has(test, "mcp", &["test", "-x", &inspector]) {
        return;
    }
    let place = Place::new();
    let mut command = std::process::Command::new(inspector);
    place.context.place(&mut command);
    command.args(["--cli", STOCKADE, "mcp", "--method", "tools/list"]);
    command.current_dir(place.path("project"));
    let ran = run(command).ends_with(0);
    assert!(ran.stdout.contains("explain_denial"), "{ran:?}");
}

#[test]
fn wrapping_needs_a_server() {
    let context = Context::new();
    let ran = context
        .stockade(["mcp-wrap", "--preset", "git"])
        .ends_with(2);
    assert!(ran.stderr.contains("no server to wrap"), "{ran:?}");
}

#[test]
fn wrapping_changes_no_byte() {
    let place = Place::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let file = place.path("bytes");
    fs::write(&file, &bytes).unwrap();
    let mut command = place
        .context
        .command(["mcp-wrap", "--preset", "time", "--", "cat"]);
    command.current_dir(place.path("project"));
    command.stdin(fs::File::open(&file).unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stdout == bytes);
}
