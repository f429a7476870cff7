//! What every command has in common: help, version, refusals, streams.

use std::process::Stdio;

use crate::context::{Context, STOCKADE, has, run};

#[test]
fn version_and_help_go_to_stdout() {
    let context = Context::new();
    let version = context.stockade(["--version"]).ends_with(0);
    assert_eq!(
        version.stdout,
        format!("stockade {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(version.stderr, "");
    for args in [
        &["--help"][..],
        &["run", "--help"],
        &["policy", "show", "--help"],
    ] {
        let help = context.stockade(args).ends_with(0);
        assert!(help.stdout.contains("Usage:"), "{help:#?}");
        assert!(
            help.stdout.contains("Examples:") || args.len() == 1,
            "{help:#?}"
        );
        assert_eq!(help.stderr, "");
    }
}

#[test]
fn what_makes_no_sense_is_usage() {
    let context = Context::new();
    let refused: &[&[&str]] = &[
        &[],
        &["nonsense"],
        &["run"],
        &["run", "--no-such-flag", "--", "true"],
        &["run", "--read-only", "--danger-full-access", "--", "true"],
        &["run", "--net", "open", "--allow", "a.test", "--", "true"],
        &["run", "--net", "sideways", "--", "true"],
        &["run", "--host-port", "0", "--", "true"],
        &["run", "--host-port", "65536", "--", "true"],
        &["run", "--expose", "http", "--", "true"],
        &["run", "--pass-fd", "-1", "--", "true"],
        &["run", "--pass-fd", "99999999999", "--", "true"],
        &["run", "-q", "-v", "--", "true"],
        &["completions", "tcsh"],
        &["policy"],
        &["explain"],
    ];
    for args in refused {
        let refusal = context.stockade(*args).ends_with(2);
        assert_eq!(refusal.stdout, "", "{args:?}");
        assert_ne!(refusal.stderr, "", "{args:?}");
    }
}

#[test]
fn colours_need_a_terminal() {
    let mut context = Context::new();
    context.set("TERM", "xterm-256color");
    for args in [&["doctor"][..], &["run", "--help"], &["run", "--nope"]] {
        let ran = context.stockade(args);
        assert!(!ran.stdout.contains('\x1b'), "{ran:#?}");
        assert!(!ran.stderr.contains('\x1b'), "{ran:#?}");
    }
}

#[test]
fn a_terminal_gets_colours_unless_they_are_unwanted() {
    let name = "a_terminal_gets_colours_unless_they_are_unwanted";
    if !has(
        name,
        "tool:script",
        &["script", "-qec", "true", "/dev/null"],
    ) {
        return;
    }
    let mut context = Context::new();
    context.set("TERM", "xterm-256color");
    context.set("SHELL", "/bin/sh");
    let command = format!("{STOCKADE} explain /etc");
    let on_terminal = ["script", "-qec", &command, "/dev/null"];
    let coloured = context.other(&on_terminal).stdout;
    assert!(coloured.contains("\x1b["), "{coloured:?}");
    context.set("NO_COLOR", "1");
    let plain = context.other(&on_terminal).stdout;
    assert!(
        plain.contains("allowed") && !plain.contains("\x1b["),
        "{plain:?}"
    );
}

#[test]
fn a_closed_pipe_is_quiet() {
    let context = Context::new();
    for args in [
        &["man"][..],
        &["completions", "bash"],
        &["doctor", "--json"],
        &["--help"],
    ] {
        let mut command = context.command(args);
        // A pipe without a reader.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command.stdout(Stdio::from(writer));
        let ran = run(command).ends_with(0);
        assert_eq!(ran.stderr, "", "{args:?}");
    }
}

#[test]
fn a_full_disk_is_not_quiet() {
    let context = Context::new();
    let mut command = context.command(["man"]);
    command.stdout(std::fs::File::create("/dev/full").unwrap());
    let ran = run(command).ends_with(1);
    assert!(ran.stderr.contains("output can't be written"), "{ran:#?}");
}

#[test]
fn completions_know_the_flags() {
    let context = Context::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = context.stockade(["completions", shell]).ends_with(0).stdout;
        assert!(script.contains("deny-read"), "{shell}: {script}");
    }
    let json = context.stockade(["completions", "bash", "--json"]).json();
    assert_eq!(json["shell"], "bash");
}

#[test]
fn the_manual_can_be_written_out() {
    let context = Context::new();
    let dir = context.project().join("man");
    context
        .stockade(["man".as_ref(), "--out".as_ref(), dir.as_os_str()])
        .ends_with(0);
    for page in ["stockade.1", "stockade-run.1", "stockade-policy-show.1"] {
        assert!(dir.join(page).is_file(), "{page}");
    }
    let refused = context
        .stockade(["man", "--out", "/dev/null/x"])
        .ends_with(1);
    assert!(refused.stderr.contains("/dev/null/x"), "{refused:#?}");
}
