//! Programs that every project runs.

/// Programs that change what is mounted, who sees what, what a program may.
pub(super) const RIGHTS: &[&str] = &[
    "chroot",
    "debugfs",
    "losetup",
    "mknod",
    "mount",
    "nsenter",
    "pivot_root",
    "setcap",
    "swapoff",
    "umount",
    "unshare",
];

/// Tools that build, test or publish a project.
pub(super) const TOOLS: &[&str] = &[
    "black",
    "bun",
    "bundle",
    "cargo",
    "cd",
    "cmake",
    "composer",
    "deno",
    "dotnet",
    "echo",
    "eslint",
    "flake8",
    "git",
    "go",
    "gofmt",
    "gradle",
    "jest",
    "make",
    "mkdir",
    "mkdocs",
    "mvn",
    "mypy",
    "ninja",
    "npm",
    "npx",
    "pnpm",
    "poetry",
    "prettier",
    "protoc",
    "pytest",
    "ruff",
    "rustc",
    "sphinx-build",
    "tox",
    "tsc",
    "twine",
    "uv",
    "vite",
    "webpack",
    "yarn",
];

/// Whether a command is for tools alone that build, test or publish a project. What they are told
/// to do was judged already.
pub(super) fn builds(command: &str) -> bool {
    let parts = command.split(['&', '|', ';', '\n']).map(str::trim);
    let mut parts = parts.filter(|part| !part.is_empty()).peekable();
    parts.peek().is_some()
        && !command.contains(['`', '$', '<', '('])
        && parts.all(|part| {
            let tool = part.split_whitespace().next();
            tool.is_some_and(|tool| TOOLS.contains(&tool))
        })
}
