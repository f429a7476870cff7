//! The packages in sdk/, tested by their own suites with this build of the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::{Ran, STOCKADE, has, run};
use crate::mcp::program;

fn sdk(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../sdk")
        .join(name)
}

fn ran(name: &str, argv: &[&str]) -> Ran {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).current_dir(sdk(name));
    command
        .env("STOCKADE_BIN", STOCKADE)
        .env("PYTHONPATH", "src");
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    run(command)
}

#[test]
fn the_python_package_passes_its_suite() {
    if has(
        "the_python_package_passes_its_suite",
        "python",
        &["python3", "--version"],
    ) {
        let suite = ["python3", "-m", "unittest", "discover", "-s", "tests"];
        ran("python", &suite).ends_with(0);
    }
}

#[test]
fn the_python_package_is_typed() {
    let mypy = program("venv/bin/mypy");
    if has("the_python_package_is_typed", "mypy", &[&mypy, "--version"]) {
        let check = [&mypy, "--strict", "--cache-dir=/dev/null", "src", "tests"];
        ran("python", &check).ends_with(0);
    }
}

#[test]
fn the_node_package_passes_its_suite() {
    let tsc = program("node_modules/.bin/tsc");
    if has(
        "the_node_package_passes_its_suite",
        "tsc",
        &[&tsc, "--version"],
    ) {
        let types = program("node_modules/@types");
        ran("node", &[&tsc, "--typeRoots", &types]).ends_with(0);
        ran("node", &["node", "--test", "test/"]).ends_with(0);
    }
}
