//! `stockade proxy`: the filtering proxy by itself.

mod watch;

use std::collections::BTreeMap;

use serde::Serialize;
use stockade_proxy::{NetworkProxy, ProxyConfig, Upstream};

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
    let texts = |list: &[stockade_policy::host::HostPattern]| {
        list.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    config.allowed_domains.extend(texts(&args.allow));
    config.allowed_domains.extend(texts(&args.danger_allow));
    config.danger_wide_patterns = !args.danger_allow.is_empty();
    config.blocked_domains.extend(texts(&args.block));
    let pins = args.resolve.iter();
    config
        .resolve
        .extend(pins.map(|pin| (pin.name.to_string(), pin.address)));
    config.mode = args.mode;
    config.listen = args.listen;
    config.log_file.clone_from(&args.log);
    config.upstream = match &args.upstream {
        Some(upstream) => Some(upstream.clone()),
        None if args.no_upstream => None,
        None => Upstream::from_environment().map_err(failed)?,
    };
    Ok(config)
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

fn failed(error: impl Into<anyhow::Error>) -> Failure {
    Failure::new(Exit::NotSetUp, error)
}
