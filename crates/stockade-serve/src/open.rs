//! Making a sandbox of the parameters of `open`.

use std::path::Path;
use std::time::Duration;

use stockade::overlay::WorkspaceName;
use stockade::{NetworkMode, Sandbox, SandboxBuilder};

use crate::api;
use crate::error::{Failure, Kind};

/// The running program itself, even if its file has been replaced since.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// Adds one value of a list to a builder.
type Add = for<'a> fn(&'a mut SandboxBuilder, &str) -> &'a mut SandboxBuilder;

/// The sandbox that `params` describe, over this overlay if it is not the workspace's own.
pub(crate) fn build(
    params: &api::Open,
    overlay: Option<&WorkspaceName>,
) -> Result<Sandbox, Failure> {
    let mut builder = builder(params)?;
    if let Some(name) = overlay {
        builder.overlay_named(name);
    }
    Ok(builder.build()?)
}

/// The same before it is built. The running program must be Stockade's own: it is the helper.
///
/// # Errors
/// If a parameter can't be used.
pub fn builder(params: &api::Open) -> Result<SandboxBuilder, Failure> {
    let mut builder = Sandbox::builder();
    builder.helper(THIS_PROGRAM);
    match (&params.policy, params.no_user_files) {
        (Some(file), _) => drop(builder.profile_file(file)),
        (None, false) => drop(builder.user_files()),
        (None, true) => {}
    }
    if let Some(workspace) = &params.workspace {
        if !Path::new(workspace).is_dir() {
            let text = format!("the workspace `{workspace}` is not a directory");
            return Err(Failure::new(Kind::Policy, text));
        }
        builder.workspace(workspace);
    }
    if params.read_only {
        builder.read_only();
    }
    if params.overlay {
        builder.overlay();
    }
    if params.best_effort {
        builder.best_effort();
    }
    if let Some(mode) = &params.network {
        builder.network(match mode.as_str() {
            "off" => NetworkMode::Off,
            "open" => NetworkMode::Open,
            _ => {
                let text = format!("`network` is `off` or `open`, not `{mode}`");
                return Err(Failure::new(Kind::Policy, text));
            }
        });
    }
    let lists: [(&[String], Add); 9] = [
        (&params.read, |to, path| to.read(path)),
        (&params.write, |to, path| to.write(path)),
        (&params.deny, |to, path| to.deny(path)),
        (&params.deny_write, |to, path| to.deny_write(path)),
        (&params.allow, |to, host| to.allow(host)),
        (&params.block, |to, host| to.block(host)),
        (&params.resolve, |to, pin| to.resolve(pin)),
        (&params.keep_env, |to, name| to.keep_env(name)),
        (&params.limits, |to, limit| to.limit(limit)),
    ];
    for (texts, add) in lists {
        for text in texts {
            add(&mut builder, text);
        }
    }
    for (name, value) in &params.env {
        builder.env(name, value);
    }
    if let Some(limit) = params.timeout_ms {
        builder.timeout(Duration::from_millis(limit));
    }
    builder.flags(|flags| flags.unix.extend(params.sockets.iter().map(Into::into)));
    Ok(builder)
}
