//! `stockade proxy`: the filtering proxy by itself.

mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use stockade_proxy::{NetworkProxy, ProxyConfig};
use stockade_rules::AbsPath;

use crate::args::ProxyArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

pub(crate) fn run(args: &ProxyArgs) -> Result<Exit, Failure> {
    // Before there is a second thread, which gets the same mask.
    let until = watch::End::catch()?;
    let config = config(args)?;
    let mut proxy = NetworkProxy::new(config).map_err(failed)?;
    let address = proxy.start().map_err(failed)?;
    let format = Format::of(args.output.json);
    announce(&address.to_string(), &proxy.env_vars(), format)?;
    if args.watch {
        watch::show(&proxy, &until, format)?;
    } else {
        until.wait()?;
    }
    proxy.stop();
    Ok(Exit::Success)
}

fn config(args: &ProxyArgs) -> Result<ProxyConfig, Failure> {
    let mut config = if args.dev {
        stockade_proxy::default_development_config()
    } else {
        ProxyConfig::default()
    };
    let hosts = &args.hosts;
    let allowed = hosts.allowed().map(ToString::to_string);
    config.allowed_domains.extend(allowed);
    let presets = hosts.presets().flat_map(stockade_proxy::preset_hosts);
    config.allowed_domains.extend(presets);
    config.danger_wide_patterns = !hosts.danger_allow.is_empty();
    let blocked = hosts.block.iter().map(ToString::to_string);
    config.blocked_domains.extend(blocked);
    let pins = hosts.resolve.iter();
    config
        .resolve
        .extend(pins.map(|pin| (pin.name.to_string(), pin.address)));
    config.methods = hosts.net_methods.unwrap_or_default();
    config.danger_hidden_names = hosts.danger_hidden_names;
    for mask in &hosts.mask {
        let value = std::env::var_os(mask.name.as_os_str());
        config
            .mask(mask.clone(), value.as_deref())
            .map_err(failed)?;
    }
    config.trust_file = args.trust_file.as_deref().map(absolute).transpose()?;
    config.mode = args.mode;
    config.listen = args.listen;
    config.log_file.clone_from(&args.log);
    for file in [&config.log_file, &config.trust_file].into_iter().flatten() {
        check_output(file)?;
    }
    config.upstream = args.upstream.choose()?;
    Ok(config)
}

/// Refuses a file in the working directory that a command may have put a link in the way of.
fn check_output(file: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let what = format!("can't write `{}`", file.display());
        Failure::new(Exit::NotSetUp, anyhow::Error::new(error).context(what))
    };
    let here = std::env::current_dir().map_err(failed)?;
    let here = AbsPath::new(here).map_err(|error| Failure::new(Exit::NotSetUp, error))?;
    stockade_engine::open_output(file, &[here]).map_err(failed)?;
    Ok(())
}

fn announce(address: &str, env: &BTreeMap<String, String>, format: Format) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        address: &'a str,
        env: &'a BTreeMap<String, String>,
    }
    match format {
        Format::Json => output::json(Document { address, env }),
        Format::Text => output::text(|out| {
            writeln!(out, "listening on {address}")?;
            for (name, value) in env {
                writeln!(out, "{name}={value}")?;
            }
            Ok(())
        }),
    }
}

/// Programs elsewhere get the path in a variable.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(failed)
}

fn failed(error: impl Into<anyhow::Error>) -> Failure {
    Failure::new(Exit::NotSetUp, error)
}
