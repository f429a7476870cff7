//! `stockade doctor`: what this machine offers, tried by doing.

use std::io::{self, Write};
use std::path::Path;

use anstyle::Style;
use serde::Serialize;
use stockade_engine::probe::{self, Report, Support, Tier};

use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, BAD, BOLD, DIM, GOOD, SO_SO};

#[cfg(target_os = "linux")]
mod levels;

pub(crate) fn run(args: &DoctorArgs) -> Result<Exit, Failure> {
    // The running program itself, even if its file has been replaced since.
    let helper = Path::new("/proc/self/exe");
    let report = probe::probe(helper);
    #[cfg(target_os = "linux")]
    let levels = levels::table(helper);
    if args.output.json {
        output::json(Document {
            report: &report,
            #[cfg(target_os = "linux")]
            levels,
        })?;
    } else {
        output::text(|out| {
            print(&report, out)?;
            #[cfg(target_os = "linux")]
            levels::print(&levels, out)?;
            conclude(&report, out)
        })?;
    }
    Ok(if report.tier.is_some() {
        Exit::Success
    } else {
        Exit::Negative
    })
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[cfg(target_os = "linux")]
    levels: Vec<levels::LevelRow>,
}

/// One line of the table.
struct Row<'a> {
    name: &'a str,
    detail: String,
    support: &'a Support,
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let system = &report.system;
    let kernel = system.kernel.as_deref().unwrap_or("unknown kernel");
    writeln!(out, "{BOLD}{} {kernel} {}{BOLD:#}", system.os, system.arch)?;
    for row in rows(report) {
        let (style, word) = verdict(row.support);
        writeln!(
            out,
            "  {:<16} {style}{word:<8}{style:#} {}",
            row.name, row.detail
        )?;
        let mut gaps = row.support.gaps().iter().peekable();
        while let Some(gap) = gaps.next() {
            writeln!(out, "    {DIM}{}:{DIM:#} {}", gap.what, gap.reason)?;
            // What would fix several is said once, below the last of them.
            let next = gaps.peek().and_then(|gap| gap.fix.as_ref());
            if let Some(fix) = gap.fix.as_ref().filter(|fix| next != Some(fix)) {
                writeln!(out, "    {DIM}hint:{DIM:#} {fix}")?;
            }
        }
    }
    Ok(())
}

fn conclude(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let (style, conclusion) = match report.tier {
        Some(Tier::Native) => (
            GOOD,
            "commands run in backend `native`: namespaces and mounts",
        ),
        Some(Tier::Landlock) => (
            SO_SO,
            "commands run in backend `landlock`: no namespaces; the report of a run says what that leaves open",
        ),
        _ => (BAD, "nothing here can confine a command; `run` refuses"),
    };
    writeln!(out, "{style}{conclusion}{style:#}")
}

fn verdict(support: &Support) -> (Style, &'static str) {
    match support {
        Support::Full => (GOOD, "yes"),
        Support::Partial { .. } => (SO_SO, "partly"),
        Support::None { .. } => (BAD, "no"),
    }
}

fn rows(report: &Report) -> Vec<Row<'_>> {
    let tool = |name, tool: &'_ probe::Tool| -> (&str, String) {
        (name, tool.version.clone().unwrap_or_default())
    };
    let row = |(name, detail), support| Row {
        name,
        detail,
        support,
    };
    vec![
        row(
            ("landlock", landlock_detail(report)),
            &report.landlock.support,
        ),
        row(
            ("user namespaces", String::new()),
            &report.user_namespaces.support,
        ),
        row(("seccomp", seccomp_detail(report)), &report.seccomp.support),
        row(("cgroups", cgroup_detail(report)), &report.cgroup.support),
        row(
            ("overlayfs", "in a user namespace".to_owned()),
            &report.overlay.support,
        ),
        row(tool("bwrap", &report.bwrap), &report.bwrap.support),
        row(tool("nsjail", &report.nsjail), &report.nsjail.support),
        row(("docker", docker_detail(report)), &report.docker.support),
        row(tool("runsc", &report.runsc), &report.runsc.support),
    ]
}

fn landlock_detail(report: &Report) -> String {
    report
        .landlock
        .abi
        .map_or_else(String::new, |abi| format!("ABI {abi}"))
}

fn seccomp_detail(report: &Report) -> String {
    let seccomp = &report.seccomp;
    let mut parts = Vec::new();
    if seccomp.support.is_usable() {
        parts.push("filter");
    }
    if seccomp.listener {
        parts.push("listener");
    }
    if seccomp.sync_wake_up {
        parts.push("wake-up on the caller's core");
    }
    parts.join(", ")
}

fn cgroup_detail(report: &Report) -> String {
    let cgroup = &report.cgroup;
    let versions: Vec<String> = cgroup
        .versions
        .iter()
        .map(|version| format!("v{version}"))
        .collect();
    let names = cgroup.controllers.iter().map(|found| found.name.clone());
    let words: Vec<String> = [versions.join("+")].into_iter().chain(names).collect();
    words.join(" ")
}

fn docker_detail(report: &Report) -> String {
    let docker = &report.docker;
    let mut detail = docker.version.clone().unwrap_or_default();
    if docker.runtimes.iter().any(|name| name == "runsc") {
        detail.push_str(" with runsc");
    }
    detail
}
