//! Backends by name: what is refused, what is said, and that nothing runs bare.

use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::process::Stdio;

use serde_json::Value;

use crate::context::{Context, STOCKADE, has};

#[test]
fn nothing_runs_unconfined_without_the_word_for_it() {
    let context = Context::new();
    for flags in [["--backend", "none"], ["--level", "off"]] {
        let args = ["run", flags[0], flags[1], "--", "touch", "ran"];
        let ran = context.stockade(args).ends_with(125);
        assert!(ran.stderr.contains("--danger-full-access"), "{ran:#?}");
        assert!(!context.project().join("ran").exists());
    }
    for flags in [["--backend", "native"], ["--level", "default"]] {
        let danger = "--danger-full-access";
        let args = ["run", danger, flags[0], flags[1], "--", "touch", "ran"];
        context.stockade(args).ends_with(125);
        assert!(!context.project().join("ran").exists());
    }
    let args = [
        "run",
        "--danger-full-access",
        "--backend",
        "none",
        "--",
        "touch",
        "ran",
    ];
    context.stockade(args).ends_with(0);
    assert!(context.project().join("ran").exists());
}

#[test]
fn unknown_words_are_refused() {
    let context = Context::new();
    for flags in [["--backend", "bubblewrap"], ["--level", "Maximum"]] {
        let args = ["run", flags[0], flags[1], "--", "touch", "ran"];
        context.stockade(args).ends_with(2);
        assert!(!context.project().join("ran").exists());
    }
}

#[test]
fn a_backend_that_is_not_there_is_an_error() {
    let context = Context::new();
    let empty = context.project().join("empty");
    fs::create_dir(&empty).unwrap();
    let path = format!("PATH={}", empty.display());
    for backend in ["bwrap", "nsjail", "gvisor", "docker", "seatbelt"] {
        let argv = [
            "env",
            "-i",
            &path,
            STOCKADE,
            "run",
            "--backend",
            backend,
            "--",
            "/usr/bin/touch",
            "ran",
        ];
        let ran = context.other(&argv).ends_with(125);
        assert!(ran.stderr.contains(backend), "{ran:#?}");
        assert!(!context.project().join("ran").exists());
    }
}

#[test]
fn a_weaker_backend_than_the_level_is_refused() {
    let context = Context::new();
    for (backend, level) in [
        ("bwrap", "enhanced"),
        ("native", "container"),
        ("docker", "maximum"),
    ] {
        let args = [
            "run",
            "--backend",
            backend,
            "--level",
            level,
            "--",
            "touch",
            "ran",
        ];
        let ran = context.stockade(args).ends_with(125);
        assert!(ran.stderr.contains("below the level"), "{ran:#?}");
        assert!(!context.project().join("ran").exists());
    }
}

#[test]
fn the_caller_s_own_sandbox_must_be_vouched_for() {
    let context = Context::new();
    let ran = context.stockade(["run", "--backend", "external", "--", "touch", "ran"]);
    ran.ends_with(125);
    assert!(!context.project().join("ran").exists());
    let args = [
        "run",
        "--backend",
        "external",
        "--best-effort",
        "--",
        "touch",
        "ran",
    ];
    let ran = context.stockade(args).ends_with(0);
    assert!(ran.stderr.contains("only partly enforced"), "{ran:#?}");
}

#[test]
fn bwrap_reports_what_it_planned() {
    let test = "bwrap_reports_what_it_planned";
    if !has(
        test,
        "tool:bwrap",
        &["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"],
    ) {
        return;
    }
    let context = Context::new();
    let args = [
        "run",
        "--backend",
        "bwrap",
        "--report",
        "r.json",
        "--",
        "sh",
        "-c",
        "exit 3",
    ];
    let ran = context.stockade(args).ends_with(3);
    assert!(ran.stderr.contains("using `bwrap`"), "{ran:#?}");
    let report = fs::read(context.project().join("r.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let args = [
        "run",
        "--backend",
        "bwrap",
        "--dry-run",
        "--json",
        "--",
        "true",
    ];
    let plan = context.stockade(args).json();
    assert_eq!(report["backend"], "bwrap");
    assert_eq!(report["enforcement"], plan["enforcement"]);
    assert_eq!(report["ending"]["exited"], 3);
    let args = [
        "run",
        "--backend",
        "bwrap",
        "--require",
        "names",
        "--",
        "touch",
        "ran",
    ];
    context.stockade(args).ends_with(125);
    assert!(!context.project().join("ran").exists());
}

#[test]
fn doctor_says_what_each_level_means() {
    let context = Context::new();
    let report = context.stockade(["doctor", "--json"]).json();
    let levels = report["levels"].as_array().unwrap();
    let names: Vec<_> = levels
        .iter()
        .map(|row| row["level"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["off", "default", "enhanced", "container", "maximum"]
    );
    assert_eq!(levels[0]["backend"], "none");
    for row in levels {
        assert!(!row["reason"].as_str().unwrap().is_empty(), "{row:#}");
    }
    let default = &levels[1]["backend"];
    assert_eq!(*default, report["tier"], "the default is the tier of a run");
}

/// `runsc` gives the standard streams away when root starts it: a log file, `/dev/null` itself.
#[test]
fn gvisor_leaves_the_callers_streams_their_owner() {
    let name = "gvisor_leaves_the_callers_streams_their_owner";
    if !has(name, "backend:gvisor", &["runsc", "--version"]) {
        return;
    }
    let context = Context::new();
    let streams = ["in", "out", "err"].map(|name| context.file(name, ""));
    fs::write(&streams[0], "text\n").unwrap();
    let owner = |path: &std::path::PathBuf| {
        let seen = fs::metadata(path).unwrap();
        (seen.uid(), seen.gid())
    };
    let before = streams.each_ref().map(owner);
    let open = |index: usize| File::options().read(true).write(true).open(&streams[index]);
    let mut command = context.command(["run", "--backend", "gvisor", "--", "cat"]);
    command.stdin(open(0).unwrap()).stdout(open(1).unwrap());
    assert!(command.stderr(open(2).unwrap()).status().unwrap().success());
    assert_eq!(fs::read_to_string(&streams[1]).unwrap(), "text\n");
    assert_eq!(streams.each_ref().map(owner), before);
}

#[test]
fn gvisor_writes_behind_what_a_file_has() {
    let name = "gvisor_writes_behind_what_a_file_has";
    if !has(name, "backend:gvisor", &["runsc", "--version"]) {
        return;
    }
    let context = Context::new();
    let log = context.file("log", "");
    let mut file = File::options().write(true).open(&log).unwrap();
    file.write_all(b"before\n").unwrap();
    let script = "echo out; echo err >&2; echo out; exit 5";
    let mut command = context.command(["run", "-q", "--backend", "gvisor"]);
    command
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::null());
    command.stdout(file.try_clone().unwrap());
    command.stderr(file.try_clone().unwrap());
    assert_eq!(command.status().unwrap().code(), Some(5));
    file.write_all(b"after\n").unwrap();
    let written = fs::read_to_string(&log).unwrap();
    assert_eq!(written, "before\nout\nerr\nout\nafter\n");
}

#[test]
fn gvisor_reads_a_file_from_where_it_is() {
    let name = "gvisor_reads_a_file_from_where_it_is";
    if !has(name, "backend:gvisor", &["runsc", "--version"]) {
        return;
    }
    let context = Context::new();
    // More than a pipe takes: what the command leaves must hold nobody up.
    let rest = "rest\n".repeat(100_000);
    let list = context.file("list", &format!("first\n{rest}"));
    for (script, expected) in [
        ("cat", rest.as_str()),
        ("head -n 1", "rest\n"),
        ("true", ""),
    ] {
        let mut file = File::open(&list).unwrap();
        file.seek(SeekFrom::Start(6)).unwrap();
        let mut command = context.command(["run", "-q", "--backend", "gvisor"]);
        command.args(["--", "sh", "-c", script]);
        command.stdin(file.try_clone().unwrap());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
        let read = String::from_utf8_lossy(&output.stdout);
        assert!(read == expected, "{script}: {} bytes", read.len());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{script}");
        // The rest of the list is the caller's own.
        assert_eq!(file.stream_position().unwrap(), 6, "{script}");
    }
}

#[test]
fn seatbelt_is_shown_everywhere_and_run_nowhere_else() {
    let context = Context::new();
    let args = ["run", "--backend", "seatbelt", "--dry-run", "--", "true"];
    let shown = context.stockade(args).ends_with(0);
    assert!(
        shown.stdout.starts_with("(version 1)\n(deny default)\n"),
        "{shown:#?}"
    );
    let project = context.project();
    // macOS has its /tmp in /private.
    let grant = "(allow file-write* (subpath \"/private";
    let grant = format!("{grant}{}\"))", project.display());
    assert!(shown.stdout.contains(&grant), "{shown:#?}");
    assert!(!shown.stdout.contains("(allow network*"), "{shown:#?}");
    let open = ["run", "--backend", "seatbelt", "--net", "open"];
    let open = open
        .into_iter()
        .chain(["--dry-run", "--json", "--", "true"]);
    let document = context.stockade(open).json();
    assert_eq!(document["backend"], "seatbelt");
    assert!(document["profile"].as_str().unwrap().contains("network*"));

    let ran = context
        .stockade(["run", "--backend", "seatbelt", "--", "touch", "ran"])
        .ends_with(125);
    assert!(ran.stderr.contains("this is not macOS"), "{ran:#?}");
    let listed = ["run", "--backend", "seatbelt", "--allow", "example.com"];
    let listed = listed.into_iter().chain(["--dry-run", "--", "true"]);
    context.stockade(listed).ends_with(125);
    assert!(!project.join("ran").exists());
}

#[test]
fn an_image_means_a_container() {
    let context = Context::new();
    for flags in [
        &["--backend", "native"][..],
        &["--backend", "bwrap"],
        &["--danger-full-access"],
    ] {
        let args = ["run", "--image", "stockade/host:latest"].into_iter();
        let args = args.chain(flags.iter().copied());
        let ran = context
            .stockade(args.chain(["--", "touch", "ran"]))
            .ends_with(2);
        assert!(ran.stderr.contains("container"), "{ran:#?}");
        assert!(!context.project().join("ran").exists());
    }
    let args = ["run", "--image", "x", "--dry-run", "--json", "--", "true"];
    let plan = context.stockade(args).json();
    assert_eq!(plan["backend"], "docker");
    assert_eq!(plan["carrier"]["engine"]["create"]["Image"], "x");
}

#[test]
fn a_list_of_hosts_is_for_those_who_can_filter() {
    let context = Context::new();
    let list = ["--allow", "example.com", "--", "touch", "ran"];
    if has("a_list_of_hosts", "tool:bwrap", &["bwrap", "--version"]) {
        let methods = ["run", "--backend", "bwrap", "--net-methods", "read-only"];
        let ran = context.stockade(methods.iter().chain(&list)).ends_with(125);
        assert!(ran.stderr.contains("methods"), "{ran:#?}");
        assert!(!context.project().join("ran").exists());
    }
    for (flags, word) in [
        (&["--backend", "landlock"][..], "network namespace"),
        (&["--backend", "external", "--best-effort"], "external"),
        // As a runtime of an engine's it has a network that nothing can be handed out of.
        (&["--backend", "gvisor", "--image", "x"], "gvisor"),
    ] {
        let args = ["run"].iter().chain(flags).chain(&list);
        let ran = context.stockade(args).ends_with(125);
        assert!(ran.stderr.contains(word), "{ran:#?}");
        assert!(!context.project().join("ran").exists());
    }
}

/// Where nobody may make namespaces, and nothing but a container was asked for.
#[test]
fn a_run_falls_back_as_far_as_it_is_told_and_says_so() {
    let mut context = Context::new();
    context.set("DOCKER_HOST", "unix:///nonexistent/docker.sock");
    let args = ["run", "--level", "container", "--", "touch", "ran"];
    let ran = context.stockade(args).ends_with(125);
    assert!(ran.stderr.contains("docker"), "{ran:#?}");
    assert!(!context.project().join("ran").exists());

    let best = [
        "run",
        "--level",
        "container",
        "--best-effort",
        "--report",
        "r.json",
    ];
    let args = best.into_iter().chain(["--", "touch", "ran"]);
    let ran = context.stockade(args).ends_with(0);
    let said = "below the level `container`, using `native`: docker:";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    assert!(context.project().join("ran").exists());
    let report = fs::read(context.project().join("r.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["backend"], "native");
    let warning = report["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with(said), "{report:#}");
    let args = best
        .into_iter()
        .chain(["--dry-run", "--json", "--", "true"]);
    let plan = context.stockade(args).json();
    assert_eq!(plan["backend"], "native", "tried, not guessed");

    // A clause that is required holds, or nothing runs.
    let args = [
        "run",
        "--level",
        "maximum",
        "--best-effort",
        "--require",
        "names",
    ];
    let args = args
        .into_iter()
        .chain(["--dry-run", "--json", "--", "true"]);
    let plan = context.stockade(args).json();
    assert_eq!(plan["backend"], "native", "none of the others holds it");
}
