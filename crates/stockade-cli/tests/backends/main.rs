//! The behaviour contract on every backend: what holds where, in the table of docs/backends.md.
//!
//! `cargo test -p stockade-cli --test backends -- bwrap/F02` runs one cell.

#![expect(clippy::too_many_lines, reason = "a function here is a table of cases")]

#[path = "../contract/fs_read_write.rs"]
mod fs_read_write;
#[path = "../contract/git.rs"]
mod git;
#[path = "../contract/ipc.rs"]
mod ipc;
#[path = "../contract/kernel_surface.rs"]
mod kernel_surface;
#[path = "../contract/lifecycle.rs"]
mod lifecycle;
#[path = "../contract/limits.rs"]
mod limits;
#[path = "../contract/network_list.rs"]
mod network_list;
#[path = "../contract/network_off.rs"]
mod network_off;
#[path = "../contract/privileges.rs"]
mod privileges;
#[path = "../contract/renames.rs"]
mod renames;
#[path = "../contract/tmp_dev.rs"]
mod tmp_dev;

use std::path::Path;
use std::process::ExitCode;

use stockade_test::Case;
use stockade_test::dockerd::Dockerd;
use stockade_test::matrix::{self, Clauses, Column, Matrix, Prepared};

/// Which clauses a leak in a row may fall under.
const CLAUSES: Clauses = &[
    ("F", &["fs-read", "fs-write", "names"]),
    ("N", &["fs-read", "fs-write", "names"]),
    ("G", &["fs-write", "names"]),
    ("U", &["privileges"]),
    ("U02b", &["seccomp"]),
    ("X", &["privileges", "seccomp"]),
    ("X07", &["processes", "seccomp"]),
    ("X14", &["processes"]),
    ("X15", &["devices", "privileges"]),
    ("X16", &["devices", "privileges"]),
    ("X17", &["ipc"]),
    ("X20", &["fs-write", "processes"]),
    ("W", &["network"]),
    ("W05", &["network", "seccomp"]),
    ("I", &["ipc"]),
    ("D", &["devices"]),
    ("L", &["limits", "processes"]),
    ("R", &["limits"]),
];

/// Claims that no row shows.
const UNSHOWN: &[(&str, &str, &str)] = &[
    (
        "native",
        "limits",
        "the rows name their limits, and get a control group for it",
    ),
    (
        "bwrap",
        "limits",
        "the rows name their limits, and get a control group for it",
    ),
];

/// Of the rows about lists of hosts one of each kind: who decides is the same everywhere.
const LISTED: &[&str] = &[
    "W04c", "W06", "W07", "W08", "W11", "W17", "W18", "W20", "W20b", "W21", "W22", "W32", "W33",
    "W33b", "W40",
];

/// Of those about devices and sockets: what the report speaks about.
const REACHED: &[&str] = &["D02", "D02b", "I01", "I01b", "I02", "I04", "I05", "I07"];

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    matrix::main(&Matrix {
        program: env!("CARGO_BIN_EXE_stockade").into(),
        rows,
        columns: columns(),
        prepare,
        clauses: CLAUSES,
        unshown: UNSHOWN,
        document: root.join("docs/backends.md"),
    })
}

/// An engine of the suite's own.
fn prepare(dir: &Path) -> Prepared {
    let mut prepared = Prepared::default();
    match Dockerd::start(dir) {
        Ok(engine) => {
            let host = format!("unix://{}", engine.socket().display());
            prepared.env.push(("DOCKER_HOST", host.leak()));
            prepared.guards.push(Box::new(engine));
        }
        Err(reason) => {
            prepared.missing.insert("docker", reason);
        }
    }
    prepared
}

fn rows() -> Vec<Case> {
    let areas = [
        fs_read_write::cases(),
        renames::cases(),
        git::cases(),
        privileges::cases(),
        kernel_surface::cases(),
        network_off::cases(),
        lifecycle::cases(),
        limits::cases(),
    ];
    let areas = areas.into_iter().flatten();
    let known = |case: &Case| {
        CLAUSES
            .iter()
            .any(|(start, _)| case.id().starts_with(start))
    };
    let listed = network_list::cases().into_iter();
    let reached = ipc::cases().into_iter().chain(tmp_dev::cases());
    areas
        // The launcher keeps this limit, whatever the backend, and the row hides its disk from others.
        .filter(|case| case.id() != "R09")
        .filter(known)
        .chain(listed.filter(|case| LISTED.contains(&case.id())))
        .chain(reached.filter(|case| REACHED.contains(&case.id())))
        .collect()
}

fn columns() -> Vec<Column> {
    vec![
        Column {
            backend: "native",
            usable: |_| Ok(()),
            flags: Vec::new(),
            by_contract: true,
            without: &[],
        },
        Column {
            backend: "landlock",
            usable: |_| Ok(()),
            flags: Vec::new(),
            by_contract: false,
            without: &[
                (
                    "X16b",
                    "it tries thousands of files, each by the mediator, and has only so much time",
                ),
                (
                    "W32",
                    "there is no network that a port could be exposed from",
                ),
            ],
        },
        Column {
            backend: "bwrap",
            usable: |_| program("bwrap", "--version"),
            flags: Vec::new(),
            by_contract: false,
            without: &[],
        },
        Column {
            backend: "nsjail",
            usable: |_| program("nsjail", "--help"),
            flags: Vec::new(),
            by_contract: false,
            without: &[],
        },
        Column {
            backend: "docker",
            usable: |prepared| match prepared.missing.get("docker") {
                Some(reason) => Err(reason.clone()),
                None => Ok(()),
            },
            flags: Vec::new(),
            by_contract: false,
            without: &[
                (
                    "L20",
                    "the engine never tells the writer, which is found out by waiting for nothing",
                ),
                (
                    "W32",
                    "nobody of ours is inside who could connect to an exposed port",
                ),
            ],
        },
        Column {
            backend: "gvisor",
            usable: |_| program("runsc", "--version"),
            flags: Vec::new(),
            by_contract: false,
            without: &[(
                "U06",
                "a priority is of gVisor's own kernel: the host's scheduler does not see it",
            )],
        },
    ]
}

/// Whether a program answers when asked something harmless.
fn program(name: &str, question: &str) -> Result<(), String> {
    let status = std::process::Command::new(name).arg(question).output();
    match status {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("`{name} {question}` ended with {}", output.status)),
        Err(error) => Err(format!("`{name}`: {error}")),
    }
}
