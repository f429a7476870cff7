//! The packages in sdk/, tested by their own suites with this build of the program.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::{Ran, STOCKADE, has, run};
use crate::mcp::program;

const NOBODY: u32 = 65534;
/// The system's interpreter, which an ordinary user can execute too.
const PYTHON: &str = "/usr/bin/python3";

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

/// As root and as an ordinary user, who needs a copy that is readable and the system's interpreter.
#[test]
fn the_python_package_passes_its_suite() {
    let test = "the_python_package_passes_its_suite";
    if !has(test, "python", &[PYTHON, "--version"]) {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let stockade = dir.path().join("stockade");
    fs::copy(STOCKADE, &stockade).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(sdk("python").join("src"));
    copy.arg(sdk("python").join("tests")).arg(dir.path());
    run(copy).ends_with(0);
    for (user, home) in users(dir.path()) {
        let mut suite = as_user(user, PYTHON);
        suite.args(["-B", "-m", "unittest", "discover", "-s", "tests"]);
        suite.current_dir(dir.path()).env("HOME", home);
        suite
            .env("PYTHONPATH", "src")
            .env("STOCKADE_BIN", &stockade);
        run(suite).ends_with(0);
    }
}

/// The adapters are checked against the types of the packages that they are for.
#[test]
fn the_python_package_is_typed() {
    let test = "the_python_package_is_typed";
    let packages = ["agents", "inspect_ai", "mypy", "ray", "smolagents"];
    if packages.iter().all(|package| has_package(test, package)) {
        let mypy = program("venv/bin/mypy");
        let version = "--python-version=3.10";
        let cache = "--cache-dir=/dev/null";
        ran(
            "python",
            &[&mypy, "--strict", cache, version, "src", "tests"],
        )
        .ends_with(0);
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
        let pack = ["npm", "pack", "--dry-run", "--json", "--ignore-scripts"];
        let packed = ran("node", &pack).ends_with(0).stdout;
        let holds = |name: &str| packed.contains(&format!("\"path\": \"{name}\""));
        for name in [
            "README.md",
            "dist/index.d.ts",
            "dist/index.js",
            "package.json",
        ] {
            assert!(holds(name), "{name} is missing: {packed}");
        }
        for part in ["src/", "test/", "tsconfig"] {
            assert!(!packed.contains(&format!("\"path\": \"{part}")), "{packed}");
        }
    }
}

/// Whether scripts/test-deps has installed a package of Python.
fn has_package(test: &str, package: &str) -> bool {
    let find = format!("import sys, importlib.util as i; sys.exit(not i.find_spec('{package}'))");
    has(test, package, &[&program("venv/bin/python"), "-c", &find])
}

/// Runs the tests of an adapter with the real package.
fn adapter_works(test: &str, package: &str, module: &str) {
    if has_package(test, package) {
        // inspect-ai keeps traces in the home.
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut command = Command::new(program("venv/bin/python"));
        command.args(["-B", "-W", "ignore"]);
        command.arg(format!("tests/{module}.py"));
        command.current_dir(sdk("python")).env("PYTHONPATH", "src");
        command.env("STOCKADE_BIN", STOCKADE);
        for name in ["XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            command.env_remove(name);
        }
        command.env("HOME", home.path());
        run(command).ends_with(0);
    }
}

#[test]
fn the_sandbox_provider_passes_the_self_check_of_inspect_ai() {
    let test = "the_sandbox_provider_passes_the_self_check_of_inspect_ai";
    adapter_works(test, "inspect_ai", "adapter_inspect_ai");
}

#[test]
fn the_shell_tools_work_in_runs_of_openai_agents() {
    let test = "the_shell_tools_work_in_runs_of_openai_agents";
    adapter_works(test, "agents", "adapter_openai_agents");
}

#[test]
fn the_executor_works_in_runs_of_smolagents() {
    let test = "the_executor_works_in_runs_of_smolagents";
    adapter_works(test, "smolagents", "adapter_smolagents");
}

#[test]
fn tasks_run_on_two_nodes_of_ray_and_leave_nothing() {
    let test = "tasks_run_on_two_nodes_of_ray_and_leave_nothing";
    adapter_works(test, "ray", "adapter_ray");
}

#[test]
fn the_examples_of_the_python_package_work() {
    let test = "the_examples_of_the_python_package_work";
    adapter_works(test, "inspect_ai", "adapter_readme");
}

/// What a user of the wheel writes, with nothing in the environment that names the program.
const WITH_THE_WHEEL: &str = "\
import stockade, sys, sysconfig
from stockade._program import program
assert program() == sysconfig.get_path('scripts') + '/stockade', program()
with stockade.Sandbox(sys.argv[1]) as box:
    result = box.run('echo inside > file; cat file', timeout=60)
    assert (result.exit_code, result.stdout) == (0, 'inside\\n'), result
assert not stockade.verify('import os; os.system(\"rm -rf /\")', 'python')['safe']
";

const FINDS_THE_PROVIDER: &str = "\
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
assert registry_find_sandboxenv('stockade').__module__ == 'stockade.adapters.inspect_ai'
";

/// maturin packs the program of this test, so that nothing is compiled twice; `make wheel` lets it
/// compile the static one.
#[test]
fn a_wheel_with_this_build_of_the_program_is_installed_and_runs() {
    let test = "a_wheel_with_this_build_of_the_program_is_installed_and_runs";
    let maturin = program("venv/bin/maturin");
    if !has(test, "maturin", &[&maturin, "--version"])
        || !has(test, "python", &[PYTHON, "-c", "import venv"])
    {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let cargo = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/built_cargo.py");

    let mut build = Command::new(maturin);
    build.args([
        "build",
        "--profile",
        "dev",
        "--compression-method",
        "stored",
    ]);
    build.args(["--out", &path("wheels"), "--target-dir", &path("target")]);
    build.current_dir(sdk("python")).env("CARGO", cargo);
    build.env("STOCKADE_BIN", STOCKADE);
    run(build).ends_with(0);
    let wheel = fs::read_dir(path("wheels")).unwrap().next();
    let wheel = wheel.unwrap().unwrap().path();

    let mut venv = Command::new(PYTHON);
    venv.args(["-m", "venv", "--without-pip", &path("venv")]);
    run(venv).ends_with(0);
    let mut install = Command::new(program("venv/bin/pip"));
    install.args(["--python", &path("venv/bin/python")]);
    install.args(["install", "-q", "--no-index"]).arg(wheel);
    run(install).ends_with(0);

    if has_package(test, "inspect_ai") {
        let mut lib = fs::read_dir(path("venv/lib")).unwrap();
        let site = lib.next().unwrap().unwrap().path().join("site-packages");
        let mut provider = Command::new(program("venv/bin/python"));
        provider.args(["-B", "-W", "ignore", "-c", FINDS_THE_PROVIDER]);
        provider.env("PYTHONPATH", site).env("HOME", dir.path());
        run(provider).ends_with(0);
    }

    for (user, home) in users(dir.path()) {
        let project = home.join("project");
        let mut command = as_user(user, &path("venv/bin/python"));
        command.args(["-I", "-c", WITH_THE_WHEEL]).arg(project);
        command.env_clear().env("HOME", home);
        command.env("PATH", "/usr/bin:/bin");
        run(command).ends_with(0);
    }
}

/// Root, if that is who runs this, and an ordinary user, each with a home that has a project.
fn users(dir: &Path) -> Vec<(u32, PathBuf)> {
    let caller = rustix::process::getuid();
    let users = if caller.is_root() {
        vec![0, NOBODY]
    } else {
        vec![caller.as_raw()]
    };
    let homes = users.into_iter().map(|user| {
        let home = dir.join(format!("home-{user}"));
        for path in [home.clone(), home.join("project")] {
            fs::create_dir(&path).unwrap();
            std::os::unix::fs::chown(&path, Some(user), Some(user)).unwrap();
        }
        (user, home)
    });
    homes.collect()
}

fn as_user(user: u32, program: &str) -> Command {
    if user == rustix::process::getuid().as_raw() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    let [uid, gid] = ["--reuid", "--regid"].map(|word| format!("{word}={user}"));
    command.args([&uid, &gid, "--clear-groups", "--", program]);
    command
}
