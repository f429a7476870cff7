//! What development tools need: each installed one is asked which hosts it is configured to use.
//!
//! No registry is written down here: with a private mirror in its configuration, a tool names the
//! mirror. A tool that is missing, silent or slow adds nothing.

mod apt;
mod cargo;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stockade_policy::host::{EgressMode, Host, Preset};

use crate::config::ProxyConfig;
use crate::upstream::split_port;

/// For a tool to say what it is configured to use; npm and pip take most of a second.
const TOOL_TIMEOUT: Duration = Duration::from_secs(20);

/// A list for development: the hosts that pip, npm, cargo, go and git are configured to use on
/// this machine. Addresses of private networks stay out of reach, whatever a name resolves to.
pub fn default_development_config() -> ProxyConfig {
    let found = std::thread::scope(|scope| {
        let asked: Vec<_> = [pip, npm, go, git, cargo::hosts as fn() -> Vec<String>]
            .into_iter()
            .map(|tool| scope.spawn(tool))
            .collect();
        let answers = asked.into_iter().filter_map(|thread| thread.join().ok());
        answers.flatten().collect::<BTreeSet<String>>()
    });
    ProxyConfig {
        allowed_domains: found.into_iter().collect(),
        mode: EgressMode::Allowlist,
        log_requests: true,
        ..ProxyConfig::default()
    }
}

/// The hosts that a preset means: those that the installed client is configured to use, whatever the
/// project in the current directory says. None if there is no such client.
pub fn preset_hosts(preset: Preset) -> Vec<String> {
    let mut found = match preset {
        Preset::Crates => cargo::hosts(),
        Preset::Debian => apt::hosts(),
        Preset::GitHub => GITHUB.iter().map(|host| (*host).to_owned()).collect(),
        Preset::Go => go(),
        Preset::Npm => npm(),
        Preset::PyPi => pip(),
        _ => Vec::new(),
    };
    found.sort();
    found.dedup();
    found
}

/// The site, its downloads and its interface for programs.
const GITHUB: &[&str] = &["*.github.com", "*.githubusercontent.com"];

/// The configured index, or the one that pip has built in and the host that its files are on.
fn pip() -> Vec<String> {
    const BUILT_IN: &str = "from pip._internal.models.index import PyPI as i\n\
                            print(i.simple_url); print('https://' + i.file_storage_domain)";
    let mut lines = Vec::new();
    for key in [
        "global.index-url",
        "global.extra-index-url",
        "install.index-url",
    ] {
        lines.extend(ask("pip", &["config", "get", key]));
    }
    if lines.is_empty() {
        lines = ask("python3", &["-c", BUILT_IN]);
    }
    if let Ok(index) = std::env::var("PIP_INDEX_URL") {
        lines.push(index);
    }
    hosts(lines.iter().flat_map(|line| line.split_whitespace()))
}

fn npm() -> Vec<String> {
    hosts(ask("npm", &["config", "get", "registry"]))
}

fn go() -> Vec<String> {
    let lines = ask("go", &["env", "GOPROXY", "GOSUMDB"]);
    let words = lines.iter().flat_map(|line| line.split([',', '|', ' ']));
    // The checksum database is a bare name, possibly with a key behind a plus.
    hosts(words.map(|word| {
        let word = word.split('+').next().unwrap_or_default();
        if word.contains("://") {
            word.to_owned()
        } else if word.contains('.') {
            format!("https://{word}")
        } else {
            String::new()
        }
    }))
}

/// The remotes of the repository in the current directory, and rewritten addresses.
fn git() -> Vec<String> {
    let pattern = r"^(remote\..*\.(push)?url|url\..*\.(pushinsteadof|insteadof))$";
    let lines = ask_in(None, "git", &["config", "--get-regexp", pattern]);
    let urls = lines.iter().flat_map(|line| {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let base = key
            .strip_prefix("url.")
            .and_then(|key| key.rsplit_once('.'))
            .map(|(base, _)| base.to_owned());
        [Some(value.to_owned()), base]
    });
    hosts(urls.flatten().map(|url| with_scheme(&url)))
}

/// `git@host:path` is another spelling of `ssh://git@host/path`.
fn with_scheme(url: &str) -> String {
    match url.split_once(':') {
        Some((place, path)) if !url.contains("://") && !path.starts_with('/') => {
            format!("ssh://{place}/{path}")
        }
        _ => url.to_owned(),
    }
}

/// The hosts of addresses, as patterns; with the port if it is not one that comes by itself.
fn hosts(urls: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let patterns = urls.into_iter().filter_map(|url| {
        let url = url.as_ref().trim();
        let url = url.strip_prefix("sparse+").unwrap_or(url);
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let place = authority.rsplit('@').next()?;
        let (host, port) = split_port(place)?;
        let name = Host::parse(host).ok()?;
        let port = port.or(match scheme {
            "ssh" | "git+ssh" => Some(22),
            "git" => Some(9418),
            "http" | "https" => None,
            _ => return None,
        });
        Some(match (name, port) {
            (Host::Ip(ip), None) => ip.to_string(),
            (Host::Ip(ip), Some(port)) => std::net::SocketAddr::new(ip, port).to_string(),
            (Host::Name(name), None) => name.to_string(),
            (Host::Name(name), Some(port)) => format!("{name}:{port}"),
        })
    });
    patterns.collect()
}

/// What a program prints, line by line; nothing if it is not there, fails or takes too long.
///
/// It runs in the root directory: what a project configures is not what the user configured.
fn ask(program: &str, arguments: &[&str]) -> Vec<String> {
    ask_in(Some(Path::new("/")), program, arguments)
}

/// The same in another directory than the current one, if one is given.
fn ask_in(directory: Option<&Path>, program: &str, arguments: &[&str]) -> Vec<String> {
    let Some(program) = installed(program) else {
        return Vec::new();
    };
    let mut command = Command::new(program);
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    let child = command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return Vec::new();
    };
    let pipe = child.stdout.take();
    // It is ended when time is over, and then the pipe ends too.
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        if let Some(pipe) = pipe {
            let _ = pipe.take(65_536).read_to_string(&mut text);
        }
        text
    });
    let started = Instant::now();
    while !reader.is_finished() && started.elapsed() < TOOL_TIMEOUT {
        std::thread::sleep(Duration::from_millis(5));
    }
    if !reader.is_finished() {
        let _ = child.kill();
    }
    let ended = child.wait().is_ok_and(|status| status.success());
    let text = reader.join().unwrap_or_default();
    if !ended {
        return Vec::new();
    }
    text.lines().map(str::to_owned).collect()
}

/// Where a program is, if it is on the search path and not in the current directory: a project may
/// bring programs of these names, and nothing of a project is run here.
fn installed(program: &str) -> Option<PathBuf> {
    let project = std::env::current_dir().ok();
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .filter(|directory| {
            project
                .as_ref()
                .is_none_or(|project| !directory.starts_with(project))
        })
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_patterns() {
        let found = hosts([
            "https://index.test/simple/",
            "http://user:pw@mirror.test:8080/x",
            "sparse+https://crates.test/index/",
            "ssh://git@git.test/a/b.git",
            &with_scheme("git@git2.test:a/b.git"),
            &with_scheme("/srv/local.git"),
            "off",
            "direct",
            "file:///tmp/x",
            "https://10.0.0.1/",
        ]);
        assert_eq!(
            found,
            [
                "index.test",
                "mirror.test:8080",
                "crates.test",
                "git.test:22",
                "git2.test:22",
                "10.0.0.1",
            ]
        );
    }

    #[test]
    fn a_tool_that_is_missing_or_fails_adds_nothing() {
        assert!(ask("stockade-no-such-tool", &[]).is_empty());
        assert!(ask("false", &[]).is_empty());
        assert_eq!(ask("echo", &["a"]), ["a"]);
    }
}
