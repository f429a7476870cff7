//! `stockade mcp-wrap`: an MCP server, confined as any command is.

use stockade_policy::host::{Allowed, Methods};

use crate::args::{McpWrapArgs, Preset, RunArgs};
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn run(args: McpWrapArgs) -> Result<Exit, Failure> {
    let mut flags = args.run;
    // Without a command `run` starts a shell, which speaks no MCP.
    if flags.command.is_empty() {
        return Err(Failure::text(Exit::Usage, "no server to wrap was named"));
    }
    if let Some(preset) = args.preset {
        add(preset, &mut flags);
    }
    super::run::run(&flags)
}

/// Adds what a server needs. What was typed stays: a preset never takes a flag back.
fn add(preset: Preset, flags: &mut RunArgs) {
    let policy = &mut flags.policy;
    let has_base = policy.read_only || policy.workspace_write || policy.danger_full_access;
    match preset {
        // The default policy is what they need: a writable directory and no network.
        Preset::Filesystem | Preset::Git => {}
        Preset::Fetch => {
            policy.read_only |= !has_base;
            policy.hosts.net_methods.get_or_insert(Methods::ReadOnly);
        }
        Preset::Github => {
            policy.read_only |= !has_base;
            policy
                .hosts
                .allow
                .extend("api.github.com".parse::<Allowed>());
            policy.keep_env.push("GITHUB_PERSONAL_ACCESS_TOKEN".into());
        }
        Preset::Time => policy.read_only |= !has_base,
    }
}
