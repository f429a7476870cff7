//! The text of starter files.

use std::fmt::Write as _;

use super::project::Project;

/// For the project itself, which may only narrow.
pub(super) fn project_file(project: &Project) -> String {
    let mut text = String::from(
        "# What commands may not do in this project. Read by `stockade run` in this directory.\n\
         # A project's file can only narrow what is allowed: nothing here grants anything.\n\
         # Check it with `stockade policy check stockade.toml`.\n\
         version = 1\n\n[filesystem]\n",
    );
    if project.secrets.is_empty() {
        text.push_str("# Paths and patterns that commands neither read nor write.\n");
        text.push_str("# deny_read = [\"secrets\", \"**/*.pem\"]\n");
    } else {
        text.push_str("# These look like secrets. Take out what your commands need.\n");
        let _ = writeln!(text, "deny_read = {:?}", project.secrets);
    }
    text.push_str(
        "\n[limits]\n# mem = \"4G\"\n# timeout = \"30m\"\n\n\
         [network]\n# Hosts that may not be reached, whoever allows them.\n\
         # block = [\"telemetry.example.com\"]\n",
    );
    text
}

/// For the user, who may grant.
pub(super) fn profile(project: &Project) -> String {
    let mut text = String::from(
        "# A profile of your own: `stockade run --profile NAME COMMAND`.\n\
         # Every key is described by `stockade policy schema`.\n\
         version = 1\n\n[network]\n",
    );
    if project.hosts.is_empty() {
        text.push_str("# allow = [\"example.com\"]\n");
    } else {
        text.push_str("# The project's lock files name these hosts. Uncomment those you trust.\n");
        text.push_str("# allow = [\n");
        for host in &project.hosts {
            let _ = writeln!(text, "#   {host:?},");
        }
        text.push_str("# ]\n");
    }
    text.push_str(
        "\n[filesystem]\n# Paths outside the project that commands may write.\n# write = []\n\n\
         [environment]\n# Variables to hand on from your own environment.\n# keep = []\n",
    );
    text
}
