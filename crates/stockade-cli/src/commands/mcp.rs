//! `stockade mcp`: a sandbox for an agent that speaks the Model Context Protocol.

use stockade_serve::api::Open;
use stockade_serve::{Failure as ServeFailure, Kind};

use crate::args::McpArgs;
use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn run(args: McpArgs) -> Result<Exit, Failure> {
    let flags = policy_flags(&args);
    let params = Open {
        workspace: args.cwd,
        overlay: args.overlay,
        read_only: args.read_only,
        policy: args.policy,
        read: args.read,
        write: args.write,
        deny: args.deny,
        allow: args.allow,
        limits: args.limit,
        ..Open::default()
    };
    stockade_mcp::serve(params, flags).map_err(refused)?;
    Ok(Exit::Success)
}

/// The flags by which `explain` knows the same policy.
fn policy_flags(args: &McpArgs) -> Vec<String> {
    let one = |flag: &str, value: &Option<String>| match value {
        Some(value) => vec![flag.to_owned(), value.clone()],
        None => Vec::new(),
    };
    let many = |flag: &str, values: &[String]| -> Vec<String> {
        let pairs = values.iter().map(|value| [flag.to_owned(), value.clone()]);
        pairs.flatten().collect()
    };
    let mut flags = one("--cwd", &args.cwd);
    flags.extend(one("--policy", &args.policy));
    flags.extend(args.read_only.then(|| "--read-only".to_owned()));
    flags.extend(many("--read", &args.read));
    flags.extend(many("--write", &args.write));
    flags.extend(many("--deny", &args.deny));
    flags.extend(many("--allow", &args.allow));
    flags
}

fn refused(failure: ServeFailure) -> Failure {
    let exit = match failure.kind {
        Kind::Policy => Exit::Usage,
        _ => Exit::NotSetUp,
    };
    let hint = failure.details.hint.clone();
    let refusal = Failure::new(exit, failure);
    match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}
